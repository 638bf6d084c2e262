"""Sets: do counts of entities, comparisons of scopes, frequencies and memberships keep what they promise?

    python benches/sets.py [--questions 400] [--fleets 25] [--only fleet] [--seed 1]

A generated fleet of 30,000 vehicles and, where ../shared is there, aircraft and weather stations are built by Spark at
a tenth of the bytes of their rows (zstd Parquet), entities named. Scopes are random: geohashes of one to three
characters, alone or two of them, whole months or any days, boxes that cut spans. DuckDB tells the truth of the raw
rows. Errors are those of scopes of whole spans, relative, in the median; intervals are counted everywhere.

CARDINALITY, COMMON and ONLY are counted as held where the truth lies in the interval at 95%. The hash of a name decides
how far a sketch is off, so one sketch is one draw: coverage is measured over many fleets, whose names and rows differ,
made in the plain way (`synopsis.testing.members`), on scopes with more than 1,024 entities; fewer are told exactly. And
scopes of one fleet are alike: for CARDINALITY, two sets each of 1,500 to 24,000 new names are united, again and again.
Beside it stands what a user would do with a sample of the same bytes as the whole sketch: count who is in it.

CONTAINS: entities that were in scope (none may be denied) and 200,000 names that were nowhere (their share that seems
to be there, against the rate that the answer states). FREQUENCY: combinations of values of random rows, with scopes.

Bars: intervals at 95% hold in 93 to 99%; frequencies always lie in their bounds; no entity is denied; false yeses are
within 1.2 times of the stated rate. Writes benches/results/sets.json; figures of what was not asked this time stay.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datasketches import hll_sketch, hll_union, tgt_hll_type

import synopsis as syn
from _shared import DATA, ROOT, bar, print_table, write_results
from synopsis.grid import geohash
from synopsis.query.binding import bind
from synopsis.query.evaluate import asked_of
from synopsis.query.relation import Relation
from synopsis.query.scope import select
from synopsis.query.spelling import question_of
from synopsis.query.tree import Question
from synopsis.sketch.layout import Layout
from synopsis.sketch.members import COUNT_BITS, Count, Opened
from synopsis.sketch.strands import Strands
from synopsis.testing.members import members_of

SHARE, ABSENT, DAY_US = 0.1, 200_000, 86_400_000_000
VEHICLES, ROWS, DAYS = 30_000, 600_000, 90
COUNTS = ("CARDINALITY", "COMMON", "ONLY")


def fleet(seed: int = 0, rows: int = ROWS, vehicles: int = VEHICLES, name: str = "vehicle") -> pa.Table:
    """Vehicles around homes in Europe; some report far more often than others, and a few leave home."""
    random = np.random.default_rng(seed)
    often = random.gamma(1.0, 1.0, vehicles)
    vehicle = random.choice(vehicles, rows, p=often / often.sum())
    home = random.uniform((37.0, -9.0), (60.0, 29.0), (vehicles, 2))[vehicle]
    reach = np.where(random.random(vehicles) < 0.2, 5.0, 0.3)[vehicle]
    speed = random.gamma(4.0, 15.0, rows)
    return pa.table(
        {
            "entity": pa.array(np.char.add(f"{name} {seed}-", vehicle.astype(str))),
            "lat": np.clip(home[:, 0] + random.normal(0.0, 1.0, rows) * reach, -89.0, 89.0),
            "lon": home[:, 1] + random.normal(0.0, 1.0, rows) * reach,
            "time": pa.array(
                1_735_689_600_000_000 + random.integers(0, DAYS * DAY_US, rows), pa.timestamp("us", "UTC")
            ),
            "speed": np.round(speed, 1),
            "load": np.round(np.clip(12.0 + speed / 20.0 + random.normal(0.0, 3.0, rows), 0.0, 40.0)),
        }
    )


def _stored(file: str, entity: str, features: str) -> Callable[[], pa.Table]:
    def read() -> pa.Table:
        names = features.split(",")
        table = pq.read_table(DATA / f"{file}.parquet", columns=[entity, "lat", "lon", "ts", *names])
        return pa.table(table.columns, ["entity", "lat", "lon", "time", *names])

    return read


SETS: dict[str, Callable[[], pa.Table]] = {"fleet": fleet}
SHARED = {
    "aircraft": _stored("aircraft_tracks", "icao24", "altitude,groundspeed"),
    "brazil": _stored("brazil_weather_2025", "station", "temp_c,rh,wind_ms,press_mb"),
}


class Truth:
    """The raw rows in DuckDB."""

    def __init__(self, table: pa.Table) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")
        self.connection.register("given", table)
        self.connection.execute("CREATE TABLE rows AS SELECT * FROM given WHERE lat IS NOT NULL AND time IS NOT NULL")
        cells = geohash.to_text(geohash.encode(*(self.column(name) for name in ("lat", "lon")), 20), 4)
        self.cells = np.asarray(cells)
        self.connection.register("cells", pa.table({"cell": pa.array(self.cells)}))
        self.connection.execute("CREATE TABLE placed AS SELECT * FROM rows POSITIONAL JOIN cells")

    def column(self, name: str) -> np.ndarray:
        return self.connection.execute(f"SELECT {name} FROM rows").fetchnumpy()[name]

    def ask(self, select: str, where: str = "true") -> Any:
        return self.connection.execute(f"SELECT {select} FROM placed WHERE {where}").fetchall()[0][0]


class Scopes:
    """Random places and times in both languages."""

    def __init__(self, truth: Truth, random: np.random.Generator) -> None:
        self.random, self.cells = random, truth.cells
        self.first, self.last = (truth.ask(f"{end}(time)") for end in ("min", "max"))
        self.south, self.north = truth.ask("quantile_cont(lat, 0.02)"), truth.ask("quantile_cont(lat, 0.98)")
        self.west, self.east = truth.ask("quantile_cont(lon, 0.02)"), truth.ask("quantile_cont(lon, 0.98)")

    def drawn(self) -> tuple[str, str]:
        """A condition on place and perhaps time, ours and DuckDB's."""
        ours, theirs = self._place()
        if self.random.random() < 0.5:
            begin, end = self._times()
            ours += f" AND time >= '{begin}' AND time < '{end}'"
            theirs += f" AND time >= '{begin}' AND time < '{end}'"
        return ours, theirs

    def _place(self) -> tuple[str, str]:
        kind = self.random.random()
        if kind < 0.15:
            return "location LIKE '%'", "true"
        if kind < 0.75:
            some = self.random.integers(1, 3)
            cells = {str(self.random.choice(self.cells))[: self.random.integers(1, 4)] for _ in range(some)}
            return (
                "(" + " OR ".join(f"location LIKE '{cell}%'" for cell in cells) + ")",
                "(" + " OR ".join(f"cell LIKE '{cell}%'" for cell in cells) + ")",
            )
        south, north = np.sort(self.random.uniform(self.south, self.north, 2)).round(2)
        west, east = np.sort(self.random.uniform(self.west, self.east, 2)).round(2)
        return (
            f"BOX({south}, {west}, {north}, {east})",
            f"(lat BETWEEN {south} AND {north} AND lon BETWEEN {west} AND {east})",
        )

    def _times(self) -> tuple[str, str]:
        unit = "M" if self.random.random() < 0.5 else "D"
        first, last = (np.datetime64(end.replace(tzinfo=None), unit) for end in (self.first, self.last))
        starts = np.sort(self.random.integers(0, int((last - first).astype(int)) + 2, 2))
        return tuple(str((first + start).astype("datetime64[D]")) for start in (starts[0], starts[1] + 1))


# --- counts -----------------------------------------------------------------------------------------------------------


def is_cut(relation: Relation, where: str) -> bool:
    """Whether a scope cuts a span."""
    assert relation.members is not None
    asked = question_of(f"SELECT COUNT(*) WHERE {where}")
    assert isinstance(asked, Question)
    parts = bind(asked, relation.layout).parts
    return any(select(part.scope, relation.members.spans).cut.size for part in parts)


def counted(relation: Relation, truth: Truth, scopes: Scopes, questions: int) -> list[dict[str, Any]]:
    """Every question of a kind, its interval and the truth."""
    found = []
    for _ in range(questions):
        (ours, theirs), (there, also) = scopes.drawn(), scopes.drawn()
        every = {
            "CARDINALITY": (f"CARDINALITY(entity) AS v WHERE {ours}", f"SELECT entity FROM placed WHERE {theirs}"),
            "COMMON": (
                f"COMMON(entity, {ours}, {there}) AS v",
                f"SELECT entity FROM placed WHERE {theirs} INTERSECT SELECT entity FROM placed WHERE {also}",
            ),
            "ONLY": (
                f"ONLY(entity, {ours}, {there}) AS v",
                f"SELECT entity FROM placed WHERE {theirs} EXCEPT SELECT entity FROM placed WHERE {also}",
            ),
        }
        for kind, (mine, theirs_) in every.items():
            value = asked_of(relation, f"SELECT {mine}")["v"]
            cut = is_cut(relation, ours) or (kind != "CARDINALITY" and is_cut(relation, there))
            real = truth.connection.execute(f"SELECT count(DISTINCT entity) FROM ({theirs_})").fetchall()[0][0]
            held = value.low <= real <= value.high
            width = (value.high - value.low) / max(real, 1)
            found.append({"kind": kind, "truth": real, "held": held, "width": width, "cut": cut}
                         | {"error": abs(value.estimate - real) / max(real, 1)})  # fmt: skip
    return found


def fleets(count: int, questions: int, seed: int) -> list[dict[str, Any]]:
    """The same of many small fleets, whose members are made in the plain way: scopes of whole spans and others."""
    found = []
    for at in range(count):
        table = fleet(seed + at, rows=60_000, vehicles=12_000)
        truth, random = Truth(table), np.random.default_rng([seed, at])
        instants = table["time"].cast(pa.int64()).to_numpy()
        places = (table["lat"].to_numpy(), table["lon"].to_numpy())
        members = members_of(Layout((), 10, "1mo"), *places, instants, table["entity"].to_pylist())
        strands = Strands.of(Layout((), 10, "1d"), *places, instants, np.empty((0, table.num_rows)))
        relation = Relation(strands, members=members)
        asked = counted(relation, truth, Scopes(truth, random), questions)
        found += [each | {"fleet": at} for each in asked]
        print(f"fleet {at + 1} of {count}: {sum(each['held'] for each in asked)} of {len(asked)} held", flush=True)
    return found


def unions(sizes: tuple[int, ...] = (1_500, 3_000, 6_000, 12_000, 24_000), draws: int = 1_000) -> dict[str, float]:
    """In how many of a hundred draws the number of names in two sets together lies in its interval."""
    found = {}
    for size in sizes:
        held = 0
        for draw in range(draws):
            union = hll_union(COUNT_BITS)
            for half in range(2):
                sketch = hll_sketch(COUNT_BITS)
                for name in range(size // 2):
                    sketch.update(f"{size} {draw} {half} {name}")
                union.update(sketch)
            count = Count.of(union.get_result(tgt_hll_type.HLL_4))
            held += count.low <= size <= count.high
        found[f"{size:,}"] = 100 * held / draws
        print(f"{size:,} names: {found[f'{size:,}']:.1f}% held", flush=True)
    return found


# --- memberships and frequencies --------------------------------------------------------------------------------------


def memberships(database: syn.Database, truth: Truth, scopes: Scopes, questions: int) -> dict[str, Any]:
    """Entities that were there, and names that were nowhere."""
    denied = asked = 0
    for _ in range(questions):
        ours, theirs = scopes.drawn()
        present = truth.ask("list(DISTINCT entity)[:3]", theirs) or []
        for name in present:
            if name is not None:
                asked += 1
                denied += database.query(f"SELECT CONTAINS('{name}') AS c WHERE {ours}")["c"].estimate == 0
    members = database.relation.members
    assert members is not None
    assert members.marks is not None
    marks = Opened(members).marks_of(np.arange(len(members.spans)))
    names = np.array([members.marks.mark(f"nobody {at}") for at in range(ABSENT)], np.uint32)
    seeming = float(np.isin(names, marks).mean())
    stated = members.marks.rate(marks.size)
    for at in range(50):  # the answer says what the marks say
        answer = database.query(f"SELECT CONTAINS('nobody {at}') AS c")
        assert answer["c"].estimate == np.isin(names[at], marks)
    return {"asked": asked, "denied": int(denied), "false yes": seeming, "stated": stated}


def frequencies(database: syn.Database, truth: Truth, scopes: Scopes, questions: int) -> dict[str, Any]:
    """Combinations of the values of random rows, and of different rows."""
    missed = 0
    random, features = scopes.random, database.features
    columns = {name: truth.column(name) for name in features}
    size = len(truth.cells)
    for _ in range(questions):
        ours, theirs = scopes.drawn()
        together, parts = random.integers(size), []
        for name in random.permutation(features)[: random.integers(1, 4)]:
            value = columns[name][together if random.random() < 0.7 else random.integers(size)]
            if value is np.ma.masked or not math.isfinite(float(value)):
                continue
            wide = random.random() < 0.5
            parts.append(f"{name} BETWEEN {float(value) - 1} AND {float(value) + 1}" if wide else f"{name} = {value}")
        if parts:
            answer = database.query(
                f"SELECT FREQUENCY({', '.join(parts)}) AS f, CONTAINS({', '.join(parts)}) AS c WHERE {ours}"
            )
            real = truth.ask("count(*)", f"{theirs} AND {' AND '.join(parts)}")
            value, present = answer["f"], answer["c"]
            missed += not value.low <= real <= value.high
            missed += real > 0 and present.estimate == 0
    return {"asked": questions, "missed": int(missed)}


# --- running ----------------------------------------------------------------------------------------------------------


def sample_error(
    table: pa.Table, budget: int, relation: Relation, truth: Truth, scopes: Scopes, questions: int
) -> float:
    """How far off it is to count who is in a sample of the same bytes, in the median of scopes of whole spans."""
    random = np.random.default_rng(5)
    order = random.permutation(table.num_rows)
    share = budget / written_bytes(table)
    sample = Truth(table.take(np.sort(order[: max(int(share * table.num_rows), 1)])))
    errors = []
    for _ in range(questions):
        ours, theirs = scopes.drawn()
        if is_cut(relation, ours):
            continue
        real, found = (each.ask("count(DISTINCT entity)", theirs) for each in (truth, sample))
        errors.append(abs(found - real) / max(real, 1))
    return float(np.median(errors))


def written_bytes(table: pa.Table) -> int:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return int(sink.getvalue().size)


def summed(found: list[dict[str, Any]], kind: str, least: int = 0) -> dict[str, Any]:
    some = [each for each in found if each["kind"] == kind and each["truth"] >= least]
    if not some:
        return dict.fromkeys(("questions", "whole"), 0) | dict.fromkeys(
            ("held", "held_whole", "error", "width"), math.nan
        )
    whole = [each for each in some if not each["cut"]]
    error, width = (
        float(np.median([each[name] for each in whole])) if whole else math.nan for name in ("error", "width")
    )
    held = 100 * float(np.mean([each["held"] for each in some]))
    held_whole = 100 * float(np.mean([each["held"] for each in whole])) if whole else math.nan
    figures = {"questions": len(some), "held": held, "whole": len(whole), "held_whole": held_whole}
    return figures | {"error": error, "width": width}


def measured(table: pa.Table, place: Path, questions: int, seed: int) -> dict[str, Any]:
    """All figures of one data set."""
    features = [each for each in table.column_names if each not in ("entity", "lat", "lon", "time")]
    budget = int(SHARE * written_bytes(table))
    spec = syn.Spec("lat", "lon", "time", features, entity="entity", memory=budget)
    syn.build(table, spec, place, progress=False)
    database, truth = syn.open(place), Truth(table)
    scopes = Scopes(truth, np.random.default_rng(seed))
    asked = counted(database.relation, truth, scopes, questions)
    known = {kind: summed(asked, kind) for kind in COUNTS}
    known["CONTAINS"] = memberships(database, truth, scopes, questions)
    known["FREQUENCY"] = frequencies(database, truth, scopes, questions)
    known["sample"] = {"error": sample_error(table, budget, database.relation, truth, scopes, questions)}
    return known | {"members": database.info()["members"], "entities": truth.ask("count(DISTINCT entity)")}


def shown(figures: dict[str, Any]) -> list[bool]:
    """Print the tables, and say which bars are met."""
    met, lines = [], []
    for name in (each for each in (*SETS, *SHARED) if each in figures):
        known = figures[name]
        contains, frequency = known["CONTAINS"], known["FREQUENCY"]
        ratio = contains["false yes"] / contains["stated"]
        met += [contains["denied"] == 0, frequency["missed"] == 0, 1 / 1.2 <= ratio <= 1.2]
        lines.append(
            [name, known["entities"], known["members"]["grain"]]
            + [known[kind][each] for kind in COUNTS for each in ("held", "error")]
            + [known["sample"]["error"], contains["denied"], ratio, frequency["missed"]]
        )
    counts = (f"{kind} held %" for kind in COUNTS)
    heads = ("data", "entities", "spans", *(head for each in counts for head in (each, "error")))
    print_table((*heads, "sample's error", "denied", "false yes / stated", "frequencies missed"), lines)
    if "fleets" in figures:
        print_table(
            ("many fleets", "questions", "held %", "more than 1,024, whole spans", "held %", "error", "width"),
            [
                [kind, each["all"]["questions"], each["all"]["held"]]
                + [each["estimated"][name] for name in ("whole", "held_whole", "error", "width")]
                for kind, each in figures["fleets"].items()
            ],
        )
        met += [93.0 <= figures["fleets"][kind]["estimated"]["held_whole"] <= 99.0 for kind in ("COMMON", "ONLY")]
    if "unions" in figures:
        print_table(("names in two sets", "CARDINALITY held %"), list(figures["unions"].items()))
        met += [93.0 <= each <= 99.0 for each in figures["unions"].values()]
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--fleets", type=int, default=25)
    parser.add_argument("--only", choices=[*SETS, *SHARED, "fleets", "unions"])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    from synopsis.spark import session

    every = [*SETS, *(SHARED if DATA.is_dir() else ()), "fleets", "unions"]
    if not DATA.is_dir():
        print("the folder shared does not lie beside this repository: aircraft and stations are left out")
    file = ROOT / "benches" / "results" / "sets.json"
    figures: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for name in [options.only] if options.only else every:
        if name == "unions":
            figures[name] = unions()
        elif name == "fleets":
            found = fleets(options.fleets, max(options.questions // 8, 1), options.seed)
            figures[name] = {
                kind: {"all": summed(found, kind), "estimated": summed(found, kind, least=1_025)} for kind in COUNTS
            }
        else:
            try:
                with tempfile.TemporaryDirectory(prefix="synopsis-bench-") as folder:
                    place = Path(folder) / f"{name}.syn"
                    figures[name] = measured((SETS | SHARED)[name](), place, options.questions, options.seed)
            finally:
                session.stop()
    met = shown(figures)
    write_results("sets", figures)
    print(bar(all(met), "93 to 99% held of more than 1,024, none denied, none missed, rate within 1.2"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
