"""The whole language, at random: do answers agree with DuckDB, whatever is asked and however it is spelled?

    python benches/grammar.py [--questions 3000] [--from 0] [--only flights] [--kind summary] [--seed 17] [--plain]
                              [--depth 3] [--keep FOLDER]

Random questions of all statistics, arithmetic, places, times, predicates, groups, HAVING, ORDER BY and LIMIT are put to
sketches of generated stations at poles and dateline, of moving objects that cross both, of flights, and, where
../shared is there, of weather and air: summaries of a tenth of the rows' bytes, and strands that are exact by cell and
month.
Each is asked as SQL and as JSON, and two groups of it by themselves; tests/query/oracle.py says what is true.
`--seed` asks one question again and, if it is answered wrongly, finds a smaller one that is, too; `--plain` leaves out
ORs and NOTs that join places, times and features.

Bar: nothing certain misses, nothing exact is off, no question fails, and spellings agree. Intervals at 95% are counted.
Writes benches/results/grammar.json as questions are answered; figures of data that was not asked this time stay in it,
and a run that goes on where the last one ended (`--from`) is added to it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import synopsis as syn
from _shared import DATA, ROOT, bar, print_table, write_results
from synopsis.query.tree import Aggregate, And, Arithmetic, Condition, Expression, Item, Key, Not, Number, Or, Question

sys.path.insert(0, str(ROOT))

from tests.query.exam import Exam, Tally
from tests.query.grounds import Data, flights, moving, stations
from tests.query.oracle import Oracle
from tests.query.questions import both, either, negated, spelled

QUESTIONS = 3000
AT_ONCE = 100  #: questions after which figures are written
SHOWN = 5  #: problems of each sketch
#: Groups of a question and depth of its condition: every term of it, and every bin, is evaluated by itself.
MOST_GROUPS, DEPTH = 12, 2
HEADINGS = (
    *("data", "kind", "questions", "refused", "values", "certain misses", "wrong exact", "outside", "groups", "order"),
    *("failed", "spelling", "alone", "apart", "p95 held %", "ms a question"),
)


def _stored(name: str, file: str, features: str) -> Callable[[], Data]:
    """Rows that lie beside the repository."""

    def read() -> Data:
        names = features.split(",")
        table = pq.read_table(DATA / f"{file}.parquet", columns=["lat", "lon", "ts", *names])
        return Data(name, pa.table(table.columns, ["lat", "lon", "time", *names]))

    return read


GENERATED: dict[str, Callable[[], Data]] = {"stations": stations, "flights": flights, "moving": moving}
SHARED: dict[str, Callable[[], Data]] = {
    "brazil": _stored(
        "brazil", "brazil_weather_2025", "temp_c,rh,wind_ms,press_mb,precip_mm,rad_kjm2,dew_c,wind_gust_ms"
    ),
    "beijing": _stored("beijing", "beijing_air_2013_2017", "PM25,PM10,SO2,NO2,CO,O3,TEMP,PRES,DEWP,RAIN,WSPM"),
}
KINDS = {"stations": ("summary", "strands"), "flights": ("summary", "strands")}


def built(data: Data, kind: str, folder: Path) -> syn.Database:
    """The sketch, built unless it is there."""
    place = folder / f"{data.name}-{kind}.syn"
    if not place.exists():
        syn.build(data.table, data.spec(kind), place, progress=False)
    return syn.open(place)


def examined(data: Data, kind: str, folder: Path, seeds: range, mixed: bool, depth: int) -> Iterator[Tally]:
    """What came of the questions, some at a time."""
    database, oracle = built(data, kind, folder), Oracle(data)
    exam = Exam(database, oracle, data.ground(kind, most_groups=MOST_GROUPS), mixed, depth)
    for first in range(seeds.start, seeds.stop, AT_ONCE):
        tally, begun = Tally(), time.perf_counter()
        for seed in seeds[first - seeds.start :][:AT_ONCE]:
            exam.examine(seed, tally)
        yield replace(tally, seconds=time.perf_counter() - begun)
    if len(seeds) == 1:
        question, text = exam.drawn(seeds[0])
        print(f"{data.name} {kind}, seed {seeds[0]}: {text}")
        if tally.wrong:
            print("smaller:", spelled(smallest(exam, question)))
    oracle.close()


# --- smaller questions ------------------------------------------------------------------------------------------------


def smallest(exam: Exam, question: Question) -> Question:
    """A question from which nothing can be taken without it being answered rightly."""
    while True:
        found = next((each for each in smaller(question) if each != question and _is_wrong(exam, each)), None)
        if found is None:
            return question
        question = found


def _is_wrong(exam: Exam, question: Question) -> bool:
    tally = Tally()
    exam.examine_question(question, spelled(question), 0, tally)
    return tally.wrong > 0


def smaller(question: Question) -> Iterator[Question]:
    """The question without one of its parts."""
    yield from (replace(question, limit=None), replace(question, having=None))
    if question.order:
        yield replace(question, order=question.order[:-1])
    if question.scope != And():
        yield from (replace(question, scope=scope) for scope in (And(), *_weaker(question.scope)))
    for gone in (*question.groups, *(item.expression for item in question.items)):
        items = tuple(item for item in question.items if item.expression != gone)
        if any(not isinstance(item.expression, Key) for item in items):
            groups = tuple(key for key in question.groups if key != gone)
            names = {item.name for item in question.items if item.expression == gone}
            order = tuple(each for each in question.order if each.by != gone and str(each.by) not in names)
            if isinstance(gone, Key) == (groups != question.groups):
                yield replace(question, items=items, groups=groups, order=order)
    for at, item in enumerate(question.items):
        for expression in _simpler(item.expression):
            changed = Item(f"c{at}", expression)
            yield replace(question, items=(*question.items[:at], changed, *question.items[at + 1 :]), order=())


def _weaker(condition: Condition) -> Iterator[Condition]:
    if isinstance(condition, Not):
        yield condition.condition
        yield from map(negated, _weaker(condition.condition))
    if isinstance(condition, And | Or):
        joined = both if isinstance(condition, And) else either
        parts = condition.conditions
        yield from parts
        for at, part in enumerate(parts):
            yield joined([*parts[:at], *parts[at + 1 :]])
            yield from (joined([*parts[:at], each, *parts[at + 1 :]]) for each in _weaker(part))


def _simpler(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Arithmetic):
        yield from (part for part in (expression.left, expression.right) if not isinstance(part, Number))
    if isinstance(expression, Aggregate) and expression.only is not None:
        yield replace(expression, only=None)
        yield from (replace(expression, only=only) for only in _weaker(expression.only))


# --- running ----------------------------------------------------------------------------------------------------------


def line_of(sketch: str, tally: Tally) -> list[Any]:
    name, kind = sketch.split()
    return [
        *(name, kind, tally.questions, tally.refused, tally.values, tally.certain_misses, tally.wrong_exact),
        *(tally.outside, tally.wrong_groups, tally.wrong_order, tally.failed, tally.spellings),
        *(tally.alone, tally.alone_apart, tally.coverage, tally.seconds * 1e3 / max(tally.questions, 1)),
    ]


def measure(
    names: list[str], kinds: tuple[str, ...], folder: Path, seeds: range, mixed: bool, depth: int, is_kept: bool
) -> dict[str, Tally]:
    """All figures, shown as they come."""
    found: dict[str, Tally] = {}
    for name in names:
        data = (GENERATED | SHARED)[name]()
        for kind in (each for each in KINDS.get(name, ("summary",)) if each in kinds):
            sketch = f"{name} {kind}"
            tally = so_far(sketch, seeds.start) if is_kept else Tally()
            for part in examined(data, kind, folder, seeds, mixed, depth):
                tally = found[sketch] = tally + part
                if is_kept:
                    write_results("grammar", {"sketches": known_figures() | {sketch: figures_of(tally)}})
            print_table(HEADINGS, [line_of(sketch, tally)])
            for problem in tally.problems[:SHOWN]:
                print("!!", problem, flush=True)
    return found


def figures_of(tally: Tally) -> dict[str, Any]:
    """A tally as it is written."""
    known = asdict(tally) | {"coverage": tally.coverage, "wrong": tally.wrong}
    return known | {"problems": tally.problems[:SHOWN], "notes": tally.notes[:SHOWN]}


def so_far(sketch: str, first: int) -> Tally:
    """What came of the questions before this one, where they were all asked; nothing otherwise."""
    known = known_figures().get(sketch, {})
    if not first or known.get("questions") != first:
        return Tally()
    return Tally(**{each.name: known[each.name] for each in fields(Tally) if each.name in known})


def known_figures() -> dict[str, Any]:
    """What the last runs found."""
    file = ROOT / "benches" / "results" / "grammar.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["sketches"] if file.exists() else {}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed, where a run goes on")
    parser.add_argument("--kind", choices=["summary", "strands"])
    parser.add_argument("--only", choices=[*GENERATED, *SHARED])
    parser.add_argument("--seed", type=int, help="ask the question of this seed only")
    parser.add_argument("--plain", action="store_true", help="no ORs and NOTs that join places, times and features")
    parser.add_argument("--depth", type=int, default=DEPTH, help="of ORs, ANDs and NOTs within each other")
    parser.add_argument("--keep", type=Path, help="where sketches are built, and found the next time")
    options = parser.parse_args()
    from synopsis.spark import session

    names = [options.only] if options.only else [*GENERATED, *(SHARED if DATA.is_dir() else ())]
    if not DATA.is_dir():
        print("the folder shared does not lie beside this repository: weather and air are left out")
    seeds = range(options.first, options.questions)
    if options.seed is not None:
        seeds = range(options.seed, options.seed + 1)
    kinds = (options.kind,) if options.kind else ("summary", "strands")
    is_kept = options.seed is None and not options.plain
    try:
        with tempfile.TemporaryDirectory(prefix="synopsis-bench-") as folder:
            place = options.keep or Path(folder)
            found = measure(names, kinds, place, seeds, not options.plain, options.depth, is_kept)
    finally:
        session.stop()
    wrong, asked, values = (
        sum(getattr(tally, name) for tally in found.values()) for name in ("wrong", "questions", "values")
    )
    print("\n" + bar(not wrong, f"{wrong} wrong in {values:,} values of {asked:,} questions"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
