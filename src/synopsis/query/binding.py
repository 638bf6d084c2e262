"""Binding: a question meets a layout and becomes a plan, in which names are positions and times are instants.

`scoping` tells what its WHERE clause means; here are columns, keys, HAVING and order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from synopsis.core.errors import BadQuery, NotKept, nearest
from synopsis.core.hashing import Hashed
from synopsis.grid.geohash import BITS_PER_CHARACTER
from synopsis.query import terms as terms_of
from synopsis.query import tree
from synopsis.query.naming import find
from synopsis.query.predicates import EVERYTHING, Leaf, positive
from synopsis.query.predictions import moments_of
from synopsis.query.scoping import Part, conjuncts, feature_of, on_features, part_of, parts_of, where_of
from synopsis.query.terms import Where
from synopsis.query.tree import (
    Aggregate,
    And,
    Arithmetic,
    BinKey,
    BucketKey,
    CellKey,
    ColumnOf,
    Condition,
    Expression,
    GroupIs,
    Key,
    Name,
    Not,
    Number,
    Or,
    Place,
    Placed,
    Question,
    SetOf,
)
from synopsis.sketch.layout import Layout


@dataclass(frozen=True, slots=True)
class Statistic(Placed):
    """A function and the positions of its features in the layout, ascending."""

    function: str
    features: tuple[int, ...] = ()
    share: float | None = None  #: of a quantile: how much of the rows lies below it, 0 to 1
    only: tuple[Part, ...] | None = None  #: the rows that it is of, where they are not all of a group
    away: float | None = None  #: of outliers: how many standard deviations
    rounded: bool = True  #: of a count: to whole rows; what shares are made of is not
    by_paths: bool = False  #: of a count: by paths alone, as what it is a part of, or the whole of, is known

    __hash__ = Hashed.__hash__

    @property
    def is_of_rows(self) -> bool:
        """Whether it is COUNT(*) of all rows of the scope."""
        return self.function == "count" and not self.features and self.only is None and not self.by_paths

    @property
    def is_count(self) -> bool:
        """Whether it is a number of rows, 0 where there are none."""
        return self.function in ("count", "outliers")


@dataclass(frozen=True, slots=True)
class Computed:
    """One of + - * / of statistics and numbers."""

    operator: str
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Binned:
    """Ranges of a feature's values as a group key."""

    feature: int
    width: float | None = None


@dataclass(frozen=True, slots=True)
class Predicted:
    """A feature where others have these values, by least squares."""

    target: int
    predictors: tuple[int, ...]
    at: tuple[float, ...]
    only: tuple[Part, ...] | None = None

    @property
    def moments(self) -> tuple[Statistic, ...]:
        """The statistics that it is made of."""
        found = moments_of(self.target, self.predictors)
        return tuple(Statistic(function, features, only=self.only) for function, features in found)


@dataclass(frozen=True, slots=True)
class Membership(Placed):
    """How many different entities or keys there are, or whether an entity is there."""

    function: str
    name: str | None = None  #: what entities are called; None: whatever they are
    keys: tuple[Keyed, ...] = ()  #: what is counted instead of entities
    text: str | None = None  #: the entity that may be there
    scopes: tuple[tuple[Part, ...], ...] = ()  #: where and when; none: as the question


Operand = Statistic | Computed | Predicted | Membership | float
Keyed = CellKey | BucketKey | Binned
Source = Statistic | Computed | Predicted | Membership | Keyed


@dataclass(frozen=True, slots=True)
class Compared:
    """Numbers of a group compared."""

    left: Operand
    comparison: str
    right: Operand


@dataclass(frozen=True, slots=True)
class Every:
    """All of these hold."""

    conditions: tuple[Having, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """Any of these holds."""

    conditions: tuple[Having, ...]


@dataclass(frozen=True, slots=True)
class Fails:
    """The condition is false."""

    condition: Having


Having = Compared | Every | Some | Fails


@dataclass(frozen=True)
class Plan:
    """A question bound to a layout."""

    columns: tuple[tuple[str, Source], ...]  #: name of each and where it comes from
    parts: tuple[Part, ...]  #: which rows are asked for; no row is in two parts
    groups: tuple[Keyed, ...]
    order: tuple[tuple[Source, bool], ...]  #: what to sort by, and whether descending
    limit: int | None
    condition_place: Place | None = field(default=None, compare=False, repr=False)  #: of the first on features
    having: Having | None = None  #: which groups are in the answer
    notes: tuple[str, ...] = ()  #: what is answered otherwise than asked
    cut: str | None = None  #: "keep" or "drop": what the scope cuts counts whole, or not at all

    @cached_property
    def statistics(self) -> tuple[Statistic, ...]:
        """All statistics that the answer needs, each once."""
        return tuple(each for each in self._needed if isinstance(each, Statistic))

    @cached_property
    def features(self) -> frozenset[int]:
        """All features that statistics and groups name."""
        named = {feature for each in self.statistics for feature in each.features}
        return frozenset(named | {key.feature for key in self.groups if isinstance(key, Binned)})

    @cached_property
    def memberships(self) -> tuple[Membership, ...]:
        """All that is asked of entities and different keys, each once."""
        return tuple(each for each in self._needed if isinstance(each, Membership))

    @cached_property
    def looked_for(self) -> tuple[Statistic, ...]:
        """The counts of which it is asked only whether there are any."""
        found = (each.left for each in self._operands if isinstance(each, Computed) and each.operator == "present")
        return tuple(dict.fromkeys(each for each in found if isinstance(each, Statistic)))

    @cached_property
    def _needed(self) -> tuple[Statistic | Membership, ...]:
        found: dict[Statistic | Membership, None] = {}
        for operand in self._operands:
            if isinstance(operand, Statistic | Membership):
                found[operand] = None
            elif isinstance(operand, Predicted):
                found |= dict.fromkeys(operand.moments)
        return tuple(found)

    @cached_property
    def _operands(self) -> tuple[Operand, ...]:
        """Everything that the answer is computed of, and what that is computed of, left to right."""
        operands: list[Operand] = [source for _, source in self.columns if not isinstance(source, Keyed)]
        operands += [source for source, _ in self.order if not isinstance(source, Keyed)]
        conditions = [] if self.having is None else [self.having]
        while conditions:
            match conditions.pop():
                case Compared(left=left, right=right):
                    operands += [left, right]
                case Fails(condition=condition):
                    conditions.append(condition)
                case Every(conditions=parts) | Some(conditions=parts):
                    conditions += parts
        found: list[Operand] = []
        operands.reverse()
        while operands:
            operand = operands.pop()
            found.append(operand)
            if isinstance(operand, Computed):
                operands += [operand.right, operand.left]
        return tuple(found)

    @property
    def has_conditions(self) -> bool:
        """Whether features must fulfil anything, anywhere."""
        return any(part.condition != EVERYTHING for part in self.parts)


@lru_cache(maxsize=1024)
def plan(question: Question, layout: Layout, text: str) -> Plan:
    """The plan of a question; one that was asked before, in the same words, costs a look-up."""
    return bind(question, layout)


def bind(question: Question, layout: Layout) -> Plan:
    """The plan of a question; it refuses names that the sketch does not know. Cost: in proportion to its parts.

    >>> from synopsis.query.language import read
    >>> bind(read("SELECT MEAN(rh)"), Layout(("temp", "rh"), 20, "1mo")).statistics[0].features
    (1,)
    """
    part = part_of(question.scope, layout)
    where: Where = terms_of.All(())  # which plain columns do not ask for
    parts: tuple[Part, ...]
    if part is not None and _is_plain(question):
        parts = (part,)
        columns = tuple(
            (item.name, _statistic(item.expression, item.expression.place, layout)) for item in question.items
        )
    else:
        where = where_of(question.scope, layout)
        columns = tuple((item.name, _source(item.expression, layout, where)) for item in question.items)
        parts = parts_of(where)
    named = (part for part in conjuncts(question.scope) if next(on_features(part, layout), None) is not None)
    first = next(named, None)
    return Plan(
        columns,
        parts,
        tuple(_keyed(key, layout) for key in question.groups),
        tuple(
            (_ordered(order.by, columns, question.groups, layout, where), order.descending) for order in question.order
        ),
        question.limit,
        first.place if first else None,
        None if question.having is None else _having(question.having, layout, where),
    )


# --- columns ----------------------------------------------------------------------------------------------------------


def _is_plain(question: Question) -> bool:
    """Whether columns are statistics of all rows of the scope, and nothing is sorted or left out."""
    if question.order or question.having is not None:
        return False
    for item in question.items:
        own = item.expression
        if type(own) is not Aggregate or own.only is not None or own.condition is not None:
            return False
    return True


@lru_cache(maxsize=2_048)
def _statistic(asked: Aggregate, place: Place | None, layout: Layout) -> Source:
    """A statistic of all rows of the scope, at a place of the text, which makes no difference otherwise."""
    return _source(asked, layout, terms_of.All(()))


def _source(expression: Expression, layout: Layout, where: Where) -> Source:
    if isinstance(expression, Key):
        return _keyed(expression, layout)
    found = _operand(expression, layout, where)
    assert not isinstance(found, float)  # reading lets no bare number through
    return found


def _keyed(key: Key, layout: Layout) -> Keyed:
    return Binned(feature_of(key.name, layout), key.width) if isinstance(key, BinKey) else key


def _operand(operand: tree.Operand, layout: Layout, where: Where) -> Operand:
    match operand:
        case Number():
            return operand.value
        case ColumnOf():
            raise BadQuery(f"{operand} is a column of a question that is joined, and nothing is", *operand.where)
        case Arithmetic():
            left, right = (_operand(each, layout, where) for each in (operand.left, operand.right))
            return Computed(operand.operator, left, right)
        case SetOf():
            return _membership(operand, layout, where)
        case Aggregate():
            named = tuple(feature_of(name, layout) for name in operand.arguments)
            features = tuple(sorted(named))
            if operand.only is not None:
                where = terms_of.All((where, _filter(operand.only, layout)))
            only = None if operand.only is None else parts_of(where)
            if operand.function.endswith("_samp"):
                return _of_sample(operand, features, only)
            if operand.condition is not None:
                held = parts_of(terms_of.All((where, _filter(operand.condition, layout))))
                if operand.function != "probability":
                    rows = Statistic("count", only=held, place=operand.place)
                    return rows if operand.function == "frequency" else Computed("present", rows, 0.0)
                by_paths = not all(isinstance(positive(part.condition), Leaf) for part in held)
                some = Statistic("count", only=held, rounded=False, by_paths=by_paths, place=operand.place)
                return Computed("share", some, replace(some, only=only))
            if operand.function == "predict":
                if len(set(named)) < len(named):
                    raise BadQuery("PREDICT takes every feature once", *operand.where)
                return Predicted(named[0], named[1:], operand.numbers, only)
            away = operand.numbers[0] if operand.function == "outliers" else None
            return Statistic(operand.function, features, operand.share, only, away, place=operand.place)


def _membership(asked: SetOf, layout: Layout, where: Where) -> Membership:
    """A set bound: a name is a feature's, whose bins are meant, or `location`, or else the entities'."""
    if asked.only is not None:
        where = terms_of.All((where, _filter(asked.only, layout)))
    scopes = tuple(parts_of(terms_of.All((where, _filter(each, layout)))) for each in asked.scopes)
    if asked.only is not None and not scopes:
        scopes = (parts_of(where),)
    keys, name = tuple(_keyed(key, layout) for key in asked.keys), asked.name
    if asked.function == "cardinality" and name is not None:
        if find(name.text, list(layout.features)) is not None:
            keys, name = (Binned(feature_of(name, layout)),), None
        elif name.text.lower() == "location":
            keys, name = (CellKey(max(layout.bits // BITS_PER_CHARACTER, 1), place=asked.place),), None
    called = None if name is None else name.text
    return Membership(asked.function, called, keys, asked.text, scopes, place=asked.place)


def _of_sample(operand: Aggregate, features: tuple[int, ...], only: tuple[Part, ...] | None) -> Operand:
    """A statistic that divides by n - 1: that which divides by n, times n / (n - 1)."""
    count = Statistic("count", tuple(dict.fromkeys(features)), only=only, place=operand.place)
    function = "covariance" if operand.function == "covariance_samp" else "var"
    spread = Computed("*", Statistic(function, features, only=only, place=operand.place), count)
    found = Computed("/", spread, Computed("-", count, 1.0))
    return Computed("root", found, 1.0) if operand.function == "std_samp" else found


def _filter(condition: Condition, layout: Layout) -> Where:
    try:
        return where_of(condition, layout)
    except NotKept as problem:
        why = "FILTER compares features with numbers; statistics to compare with go in WHERE"
        raise BadQuery(why, problem.line, problem.column) from problem


def _having(condition: Condition, layout: Layout, where: Where) -> Having:
    match condition:
        case GroupIs():
            left, right = (_operand(each, layout, where) for each in (condition.left, condition.right))
            return Compared(left, condition.comparison, right)
        case Not():
            return Fails(_having(condition.condition, layout, where))
        case And() | Or():
            parts = tuple(_having(part, layout, where) for part in condition.conditions)
            return Every(parts) if isinstance(condition, And) else Some(parts)
    raise BadQuery("HAVING compares statistics of groups; places, times and features go in WHERE", *condition.where)


def _ordered(
    by: Expression | Name,
    columns: tuple[tuple[str, Source], ...],
    groups: tuple[Key, ...],
    layout: Layout,
    where: Where,
) -> Source:
    """What ORDER BY means: a column by its name, a group key, or a statistic, selected or not."""
    if isinstance(by, Name):
        names = [name for name, _ in columns]
        found = find(by.text, names)
        if found is None:
            hint = nearest(by.text, tuple(names)) or ";"
            raise BadQuery(f"ORDER BY names no column {by.text!r}{hint} there are {', '.join(names)}", *by.where)
        return dict(columns)[found]
    if isinstance(by, Key) and by not in groups:
        raise BadQuery("ORDER BY takes a key only when GROUP BY has it", *by.where)
    return _source(by, layout, where)
