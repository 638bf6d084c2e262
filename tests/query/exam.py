"""The exam: whether an answer agrees with what the oracle says is true, in all that it promises."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tests.query.oracle import Oracle, Truth, has_thresholds
from tests.query.questions import Ground, Questions, spelled

from synopsis.core.errors import NotKept
from synopsis.database import Database
from synopsis.query.answer import Answer
from synopsis.query.language import read
from synopsis.query.plain import to_json
from synopsis.query.spelling import from_json
from synopsis.query.tree import (
    Aggregate,
    And,
    Arithmetic,
    BucketKey,
    CellKey,
    Condition,
    Expression,
    GroupIs,
    Item,
    Key,
    Name,
    Not,
    Number,
    Operand,
    Or,
    Question,
)
from synopsis.query.values import GUARANTEES

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

#: What rounding may do, in parts of the numbers that go in.
ROUNDING: Final = 1e-9
#: What an answer says of groups that are finer than the sketch.
_STANDS_IN: Final = re.compile(
    r"(?P<key>CELL|BUCKET)\(.*\) is finer than what this sketch keeps: \w+\('?(?P<coarser>\w+)'?\) stands in"
)


@dataclass
class Tally:
    """What came of many questions."""

    questions: int = 0
    refused: int = 0  #: for what the sketch does not keep
    coarser: int = 0  #: questions whose groups the sketch could not part as asked
    values: int = 0
    certain_misses: int = 0
    wrong_exact: int = 0
    outside: int = 0  #: estimates outside of their interval
    wrong_groups: int = 0
    unordered: int = 0  #: groups that do not come in the order of their keys
    wrong_order: int = 0  #: HAVING, ORDER BY or LIMIT did otherwise than the estimates say
    failed: int = 0
    spellings: int = 0  #: differences between SQL, JSON and the tree
    likely: int = 0  #: intervals at 95%
    likely_held: int = 0
    alone: int = 0  #: values of groups that were asked by themselves
    alone_apart: int = 0  #: and came out otherwise
    likely_of: dict[str, list[int]] = field(default_factory=dict)  #: both of these by function
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  #: what is worth a look, and not wrong
    refusals: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0  #: that all of it took

    def __add__(self, other: Tally) -> Tally:
        """Both, of different questions."""
        added: dict[str, Any] = {}
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            added[each.name] = _joined(mine, theirs) if isinstance(mine, dict) else mine + theirs
        return Tally(**added)

    @property
    def wrong(self) -> int:
        """All that must not be."""
        counts = (self.certain_misses, self.wrong_exact, self.outside, self.wrong_groups, self.wrong_order)
        return sum(counts) + self.failed + self.spellings

    @property
    def coverage(self) -> float:
        """Percent of the intervals at 95% that held."""
        return 100.0 * self.likely_held / max(self.likely, 1)

    def problem(self, what: str) -> None:
        self.problems.append(what)


def _joined(mine: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Counts, or lists of them, by name."""
    nothing = {name: [0, 0] if isinstance(count, list) else 0 for name, count in (mine | theirs).items()}
    pairs = {name: (mine.get(name, none), theirs.get(name, none)) for name, none in nothing.items()}
    return {
        name: [a + b for a, b in zip(one, two, strict=True)] if isinstance(one, list) else one + two
        for name, (one, two) in pairs.items()
    }


@dataclass(frozen=True)
class Exam:
    """A sketch, the truth, and questions about both."""

    database: Database
    oracle: Oracle
    ground: Ground
    mixed: bool = True  #: whether ORs and NOTs join places, times and features
    depth: int = 3  #: of ORs, ANDs and NOTs within each other

    def drawn(self, seed: int) -> tuple[Question, str]:
        """The question of a seed, and one of its spellings."""
        random = np.random.default_rng(seed)
        question = Questions(self.ground, random, self.mixed, depth=self.depth).question()
        return question, spelled(question, random)

    def examine(self, seed: int, tally: Tally) -> None:
        """Ask the question of a seed in all ways, and count what is wrong."""
        question, text = self.drawn(seed)
        self.examine_question(question, text, seed, tally)

    def examine_question(self, question: Question, text: str, seed: int, tally: Tally) -> None:
        tally.questions += 1
        label = f"seed {seed}: {text}"
        try:
            self._examine(question, text, label, seed, tally)
        except NotKept as error:
            tally.refused += 1
            reason = str(error).split(":")[0][:90]
            tally.refusals[reason] = tally.refusals.get(reason, 0) + 1
        except Exception as error:  # whatever it is, it is counted, shown and replayed
            tally.failed += 1
            tally.problem(f"failed with {type(error).__name__}: {error}; {label}")

    def _examine(self, question: Question, text: str, label: str, seed: int, tally: Tally) -> None:
        plain = json.dumps(to_json(question))
        trees = {"SQL": read.__wrapped__(text), "JSON": from_json(plain)}
        for spelling, tree in trees.items():
            if tree != question:
                tally.spellings += 1
                tally.problem(f"{spelling} is read as another tree; {label}")
        answer = self.database.query(text)
        again = not question.groups or seed % 4 == 0  # what is read as the same tree takes as long again
        if again and not answer.to_arrow().equals(self.database.query(plain).to_arrow()):
            tally.spellings += 1
            tally.problem(f"SQL and JSON are answered differently; {label}")
        bare = self._bare(question)
        all_groups = self.database.query(to_json(bare))
        self._check_finish(question, bare, all_groups, answer, label, tally)
        bare = _settled(bare, all_groups.notes)
        tally.coarser += bool(all_groups.notes)
        truth = self.oracle.truth(bare, _aggregates(bare))
        keys = self.oracle.keys_of(bare, all_groups)
        shown = _Shown(all_groups)
        self._check_groups(bare, keys, shown, truth, label, tally)
        at = {key: row for row, key in enumerate(truth.keys)}
        pairs = [(row, at[key]) for row, key in enumerate(keys) if key in at]
        own, true = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
        _check_values(bare, shown, own, truth, true, label, tally)
        self._check_alone(bare, keys, shown, truth, at, seed, label, tally)

    def _bare(self, question: Question) -> Question:
        """All groups in the order of their keys, and all that decides on them."""
        keys = [item for item in question.items if isinstance(item.expression, Key)]
        wanted: dict[Expression, None] = {item.expression: None for item in question.items}
        wanted |= dict.fromkeys(order.by for order in question.order if not isinstance(order.by, Name))
        if question.having is not None:
            wanted |= dict.fromkeys(each for each in _operands(question.having) if not isinstance(each, Number))
        wanted[Aggregate("count")] = None
        for aggregate in _aggregates(Question(tuple(Item("", each) for each in wanted))):
            counted = [(), *((name,) for name in aggregate.arguments)]
            wanted |= dict.fromkeys(Aggregate("count", names, None, aggregate.only) for names in counted)
        others = [each for each in wanted if not isinstance(each, Key)]
        items = [Item(f"key {at}", item.expression) for at, item in enumerate(keys)]
        items += [Item(f"column {at}", each) for at, each in enumerate(others)]
        return replace(question, items=tuple(items), order=(), limit=None, having=None)

    def _check_groups(
        self, bare: Question, keys: list[tuple[Any, ...]], shown: _Shown, truth: Truth, label: str, tally: Tally
    ) -> None:
        count = shown.of(_name(bare, Aggregate("count")))
        known, there = set(truth.keys), set(keys)
        missing = sorted(known - there)
        stray = [key for key, low in zip(keys, count.low, strict=True) if key not in known and not low <= 0]
        tally.unordered += keys != sorted(keys)
        if missing or stray or len(there) < len(keys):
            tally.wrong_groups += 1
            what = f"missing {missing[:3]}" if missing else f"without rows {stray[:3]}" if stray else "twice"
            tally.problem(f"groups {what} ({len(keys)} of {len(known)}); {label}")

    def _check_finish(
        self, question: Question, bare: Question, all_groups: Answer, answer: Answer, label: str, tally: Tally
    ) -> None:
        """HAVING, ORDER BY and LIMIT, applied to the estimates of all groups, give the answer."""
        columns = {item.expression: all_groups.to_arrow().column(item.name).to_pylist() for item in bare.items}
        having = question.having
        ordered = [row for row in range(len(all_groups)) if having is None or _holds(having, columns, row)]
        named = {item.name: item.expression for item in question.items}
        for order in reversed(question.order):
            numbers = columns[named[order.by.text] if isinstance(order.by, Name) else order.by]
            undefined = [row for row in ordered if numbers[row] is None]
            ordered = [row for row in ordered if numbers[row] is not None]
            ordered = sorted(ordered, key=numbers.__getitem__, reverse=order.descending) + undefined
        ordered = ordered[: question.limit]
        found = answer.to_arrow()
        for item in question.items:
            expected = [columns[item.expression][row] for row in ordered]
            if found.column(item.name).to_pylist() != expected:
                tally.wrong_order += 1
                tally.problem(f"column {item.name} is not what HAVING, ORDER BY and LIMIT leave; {label}")
                return

    def _check_alone(
        self,
        bare: Question,
        keys: list[tuple[Any, ...]],
        shown: _Shown,
        truth: Truth,
        at: Mapping[tuple[Any, ...], int],
        seed: int,
        label: str,
        tally: Tally,
    ) -> None:
        """Groups asked one at a time, their keys as conditions."""
        if not bare.groups or not keys or has_thresholds(bare.scope):
            return
        random = np.random.default_rng(seed)
        for row in random.choice(len(keys), min(2, len(keys)), replace=False):
            alone = self.oracle.only(bare, keys[row])
            if alone is None or keys[row] not in at:
                continue
            answer = _Shown(self.database.query(to_json(alone)))
            of_group = f"{keys[row]} alone; {label}"
            _check_values(alone, answer, np.array([0]), truth, np.array([at[keys[row]]]), of_group, tally)
            for item in alone.items:
                one, other = shown.of(item.name).estimate[row], answer.of(item.name).estimate[0]
                tally.alone += 1
                known = float(np.nan_to_num(truth.of(_operand(item.expression)).slack[at[keys[row]]]))
                slack = known + ROUNDING * abs(one)
                if not (np.isnan(one) and np.isnan(other)) and not abs(one - other) <= slack:
                    tally.alone_apart += 1
                    tally.notes.append(f"{_short(item.expression)} {one:.12g} among groups, {other:.12g} {of_group}")


@dataclass(frozen=True)
class _Numbers:
    """A column of an answer, NaN where there is no number."""

    estimate: Floats
    low: Floats
    high: Floats
    guarantee: NDArray[Any]
    p95_low: Floats
    p95_high: Floats


class _Shown:
    """The columns of an answer."""

    def __init__(self, answer: Answer) -> None:
        self._table = answer.to_arrow()
        self._known: dict[str, _Numbers] = {}

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def of(self, name: str) -> _Numbers:
        if name not in self._known:
            self._known[name] = self._of(name)
        return self._known[name]

    def _of(self, name: str) -> _Numbers:
        def numbers(column: str) -> Floats:
            if column not in self._table.column_names:
                return np.full(len(self._table), np.nan)
            return np.asarray(self._table.column(column).cast(pa.float64(), safe=False).fill_null(np.nan))

        guarantee = np.array(self._table.column(f"{name} guarantee").to_pylist(), np.str_)
        low, high, p95_low, p95_high = (numbers(f"{name} {each}") for each in ("low", "high", "p95 low", "p95 high"))
        return _Numbers(numbers(name), low, high, guarantee, p95_low, p95_high)


def _check_values(
    question: Question, shown: _Shown, own: Any, truth: Truth, true: Any, label: str, tally: Tally
) -> None:
    """Rows `own` of an answer against rows `true` of the truth."""
    for item in question.items:
        if isinstance(item.expression, Key):
            continue
        column, known = shown.of(item.name), truth.of(_operand(item.expression))
        estimate, low, high = (each[own] for each in (column.estimate, column.low, column.high))
        number, slack, promise = known.number[true], known.slack[true], column.guarantee[own]
        maybe_none = _maybe_none(item.expression, question, shown)[own]
        is_there, exists = ~np.isnan(estimate), ~np.isnan(number)
        tally.values += len(own)
        bounded = ~np.isnan(low)
        exact, certain = promise == GUARANTEES[0], promise == GUARANTEES[1]
        apart = exact & (is_there != exists) | exact & is_there & exists & ~(np.abs(estimate - number) <= slack)
        missed = certain & is_there & exists & ~((low - slack <= number) & (number <= high + slack))
        missed |= certain & (is_there != exists) & ~maybe_none
        outside = bounded & is_there & ~((low <= estimate) & (estimate <= high))
        for wrong, words, name in (
            (apart, "is called exact and is not", "wrong_exact"),
            (missed, "is called certain and misses", "certain_misses"),
            (outside, "lies outside of its interval", "outside"),
        ):
            if wrong.any():
                setattr(tally, name, getattr(tally, name) + int(wrong.sum()))
                row = int(np.flatnonzero(wrong)[0])
                told = f"{estimate[row]:.12g} in {low[row]:.12g}..{high[row]:.12g}, truth {number[row]:.12g}"
                key = truth.keys[int(true[row])]
                tally.problem(f"{_short(item.expression)} {words} {int(wrong.sum())} times: {told} {key}; {label}")
        p95 = promise == GUARANTEES[2]
        likely_low = np.where(p95, low, column.p95_low[own])
        likely_high = np.where(p95, high, column.p95_high[own])
        asked = exists & ~np.isnan(likely_low) & ~exact
        tally.likely += int(asked.sum())
        held = (likely_low - slack <= number) & (number <= likely_high + slack)
        tally.likely_held += int((asked & held).sum())
        function = item.expression.function if isinstance(item.expression, Aggregate) else "arithmetic"
        counts = tally.likely_of.setdefault(function, [0, 0])
        counts[0] += int(asked.sum())
        counts[1] += int((asked & held).sum())


def _maybe_none(expression: Expression, question: Question, shown: _Shown) -> Booleans:
    """Whether it is not certain that a statistic is one of any rows."""
    undecided = np.zeros(1, np.bool_)
    for aggregate in _aggregates(Question((Item("", expression),))):
        counts = [
            shown.of(_name(question, Aggregate("count", names, None, aggregate.only)))
            for names in [(), *((name,) for name in aggregate.arguments)]
        ]
        if len(counts) == 3:
            undecided = undecided | (counts[1].low + counts[2].low - counts[0].high <= 1)
        elif len(counts) == 2 and aggregate.function != "count":
            undecided = undecided | (counts[1].low <= aggregate.function.endswith("_samp"))
        if aggregate.function == "correlation":
            undecided = undecided | True
    if isinstance(expression, Arithmetic):
        undecided = undecided | ("/" in str(expression))
    return np.broadcast_to(undecided, len(shown))


def _short(expression: Expression) -> str:
    text = str(expression)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _settled(question: Question, notes: Iterable[str]) -> Question:
    """The question with the coarser keys that stood in for those asked, as notes tell."""
    coarser: dict[Key, Key] = {}
    for note in notes:
        told = _STANDS_IN.fullmatch(note)
        assert told is not None, f"a note that nobody understands: {note}"
        for key in question.groups:
            if isinstance(key, CellKey) and told["key"] == "CELL":
                coarser[key] = CellKey(int(told["coarser"]))
            elif isinstance(key, BucketKey) and told["key"] == "BUCKET":
                coarser[key] = replace(key, span=told["coarser"])
    items = tuple(
        replace(item, expression=coarser[item.expression])
        if isinstance(item.expression, Key) and item.expression in coarser
        else item
        for item in question.items
    )
    return replace(question, items=items, groups=tuple(coarser.get(key, key) for key in question.groups))


def _name(question: Question, aggregate: Aggregate) -> str:
    return next(item.name for item in question.items if item.expression == aggregate)


def _operand(expression: Expression) -> Operand:
    assert isinstance(expression, Aggregate | Arithmetic)
    return expression


def _operands(having: Condition) -> list[Operand]:
    match having:
        case GroupIs():
            return [having.left, having.right]
        case Not():
            return _operands(having.condition)
        case And() | Or():
            return [each for part in having.conditions for each in _operands(part)]
    raise TypeError(f"{having} does not stand in HAVING")


def _aggregates(question: Question) -> list[Aggregate]:
    found: list[Aggregate] = []
    stack: list[Any] = [item.expression for item in question.items]
    while stack:
        each = stack.pop()
        if isinstance(each, Aggregate):
            found.append(each)
        elif isinstance(each, Arithmetic):
            stack += [each.left, each.right]
    return found


def _holds(having: Condition, columns: Mapping[Any, list[Any]], row: int) -> bool | None:
    """Whether a group is in the answer, by its estimates; None where nobody knows."""
    match having:
        case GroupIs():
            left, right = (
                each.value if isinstance(each, Number) else columns[each][row] for each in (having.left, having.right)
            )
            if left is None or right is None:
                return None
            signs = {"<": left < right, "=": left == right, ">": left > right}
            return any(holds for sign, holds in signs.items() if sign in having.comparison)
        case Not():
            inner = _holds(having.condition, columns, row)
            return None if inner is None else not inner
        case And() | Or():
            parts = [_holds(part, columns, row) for part in having.conditions]
            decisive = isinstance(having, Or)
            return decisive if decisive in parts else None if None in parts else not decisive
    raise TypeError(f"{having} does not stand in HAVING")
