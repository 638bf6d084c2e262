"""The tree of a question: what was asked, before any sketch is known.

SQL text becomes this tree, and so does the same as JSON; binding it to a layout gives a plan. Every part knows its
place in the text, so that whoever refuses it can point there; two parts are equal when they ask the same, wherever.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from synopsis.core.hashing import Hashed

#: What counts entities: how many different ones, how many in all of several scopes, how many in the first alone.
SETS: Final = ("cardinality", "common", "only")

#: The functions of this release and how many features each takes; COUNT takes none as COUNT(*), PREDICT may take more.
FUNCTIONS: Final = {
    "count": (0, 1),
    "sum": (1,),
    "mean": (1,),
    "std": (1,),
    "var": (1,),
    "min": (1,),
    "max": (1,),
    "covariance": (2,),
    "correlation": (2,),
    "quantile": (1,),
    "probability": (0,),
    "frequency": (0,),
    "contains": (0,),
    "outliers": (1,),
    "predict": (2,),
    "std_samp": (1,),
    "var_samp": (1,),
    "covariance_samp": (2,),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the text of a question, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Placed(Hashed):
    """A part of a question that knows its place, if it came from text."""

    place: Place | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def where(self) -> tuple[int | None, int | None]:
        """Line and column, as errors take them."""
        return (self.place.line, self.place.column) if self.place else (None, None)


# --- what is selected, grouped by and ordered by ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name(Placed):
    """A bare name: a feature, a column of the answer, or something that does not exist."""

    text: str
    quoted: bool = field(default=False, compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Aggregate(Placed):
    """A statistic: one of FUNCTIONS, and the features that it is of."""

    function: str
    arguments: tuple[Name, ...] = ()
    share: float | None = None  #: of a quantile: how much of the rows lies below it, 0 to 1
    only: Condition | None = None  #: which rows of the group it is of; None: all
    numbers: tuple[float, ...] = ()  #: of outliers: how many deviations away; of a prediction: the predictors' values
    condition: Condition | None = None  #: of a probability, a frequency, a combination: what rows fulfil

    def __str__(self) -> str:
        arguments = [*map(str, self.arguments), *([] if self.share is None else [str(self.share)])]
        if self.condition is not None:
            arguments = [str(self.condition)]
        elif self.function == "predict":
            at = zip(arguments[1:], self.numbers, strict=True)
            arguments = [arguments[0], *(f"{name} = {number}" for name, number in at)]
        else:
            arguments += map(str, self.numbers)
        only = "" if self.only is None else f" of ({self.only})"
        return f"{self.function}({', '.join(arguments) or '*'}){only}"


@dataclass(frozen=True, slots=True)
class SetOf(Placed):
    """How many different ones there are, or whether one is there: of entities, or of keys such as cells."""

    function: str  #: one of SETS, or contains
    name: Name | None = None  #: what entities are called, or a feature whose bins are counted
    keys: tuple[Key, ...] = ()  #: what is counted instead
    text: str | None = None  #: the entity that may be there
    scopes: tuple[Condition, ...] = ()  #: where and when, of several
    only: Condition | None = None  #: which rows of the group it is of; None: all

    def __str__(self) -> str:
        of = [str(each) for each in (self.name, *self.keys, self.text and repr(self.text), *self.scopes) if each]
        only = "" if self.only is None else f" of ({self.only})"
        return f"{self.function}({', '.join(of)}){only}"


@dataclass(frozen=True, slots=True)
class CellKey(Placed):
    """The geohash of `length` characters as a group key."""

    length: int

    def __str__(self) -> str:
        return f"cell({self.length})"


@dataclass(frozen=True, slots=True)
class BucketKey(Placed):
    """The span of time as a group key, spelled as grid's buckets spell it, by the clocks of a zone."""

    span: str
    zone: str | None = None  #: None: the sketch's

    def __str__(self) -> str:
        return f"bucket({self.span}{'' if self.zone is None else f', {self.zone}'})"


@dataclass(frozen=True, slots=True)
class BinKey(Placed):
    """A range of a feature's values as a group key: of that width, or with about as many rows as the others."""

    name: Name
    width: float | None = None

    def __str__(self) -> str:
        return f"bin({self.name}{'' if self.width is None else f', {self.width}'})"


@dataclass(frozen=True, slots=True)
class Number(Placed):
    """A number in an expression."""

    value: float

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Arithmetic(Placed):
    """One of + - * / of statistics and numbers."""

    operator: str
    left: Operand
    right: Operand

    def __str__(self) -> str:
        return f"({self.left} {self.operator} {self.right})"


@dataclass(frozen=True, slots=True)
class ColumnOf(Placed):
    """A column of one of the questions that are joined."""

    source: str | None  #: None: of whichever has it
    name: str

    def __str__(self) -> str:
        return self.name if self.source is None else f"{self.source}.{self.name}"


Operand = Aggregate | SetOf | Number | Arithmetic | ColumnOf
Key = CellKey | BucketKey | BinKey
Expression = Aggregate | SetOf | Arithmetic | ColumnOf | CellKey | BucketKey | BinKey


def has_set(operand: Operand) -> bool:
    """Whether entities or keys are counted in it."""
    if isinstance(operand, Arithmetic):
        return has_set(operand.left) or has_set(operand.right)
    return isinstance(operand, SetOf)


def is_alike(one: Key, other: Key) -> bool:
    """Whether an answer can have only one of two keys: one cell, one bucket, one bin of a feature."""
    same_feature = isinstance(one, BinKey) and isinstance(other, BinKey) and one.name == other.name
    return same_feature or (type(one) is type(other) and not isinstance(one, BinKey))


@dataclass(frozen=True, slots=True)
class Item:
    """A column of the answer, named by its text as written or by its alias."""

    name: str
    expression: Expression

    def __str__(self) -> str:
        return f"{self.expression} as {self.name!r}"


@dataclass(frozen=True, slots=True)
class Order:
    """One key to sort by: an expression, or the name of a column of the answer."""

    by: Expression | Name
    descending: bool = False

    def __str__(self) -> str:
        return f"{self.by} {'descending' if self.descending else 'ascending'}"


# --- what is in scope -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Moment(Placed):
    """A point in time as written: what the clock shows, and in which zone (None: the sketch's)."""

    local_us: int
    zone: str | None = None

    def __str__(self) -> str:
        clock = datetime(1970, 1, 1) + timedelta(microseconds=self.local_us)
        return f"{clock.isoformat()} {self.zone or 'local'}"


@dataclass(frozen=True, slots=True)
class InCells(Placed):
    """`location` lies in any of these geohashes."""

    prefixes: tuple[str, ...]

    def __str__(self) -> str:
        return f"location in {' '.join(self.prefixes)}"


@dataclass(frozen=True, slots=True)
class TimeIs(Placed):
    """`time` compared with a moment: one of < <= = <> >= >."""

    comparison: str
    moment: Moment

    def __str__(self) -> str:
        return f"time {self.comparison} {self.moment}"


@dataclass(frozen=True, slots=True)
class InBox(Placed):
    """The position lies in a closed box; with west > east it runs over the dateline."""

    south: float
    west: float
    north: float
    east: float

    def __str__(self) -> str:
        return f"in box {self.south} {self.west} {self.north} {self.east}"


@dataclass(frozen=True, slots=True)
class Within(Placed):
    """The position lies in the interior of a POLYGON or MULTIPOLYGON, as well-known text."""

    text: str

    def __str__(self) -> str:
        return f"within {self.text}"


@dataclass(frozen=True, slots=True)
class Near(Placed):
    """The position lies within so many kilometres of a centre."""

    latitude: float
    longitude: float
    km: float

    def __str__(self) -> str:
        return f"near {self.latitude} {self.longitude} {self.km} km"


@dataclass(frozen=True, slots=True)
class FeatureIs(Placed):
    """A feature, or a coordinate of the position, compared with a number: one of < <= = <> >= >.

    The number may be a statistic of the scope.
    """

    name: Name
    comparison: str
    number: float | Aggregate | Arithmetic

    def __str__(self) -> str:
        return f"{self.name} {self.comparison} {self.number}"


@dataclass(frozen=True, slots=True)
class FeatureBetween(Placed):
    """A feature, or a coordinate of the position, lies in a closed range, whose ends may be statistics of the scope."""

    name: Name
    low: float | Aggregate | Arithmetic
    high: float | Aggregate | Arithmetic

    def __str__(self) -> str:
        return f"{self.name} between {self.low} and {self.high}"


@dataclass(frozen=True, slots=True)
class FeatureIn(Placed):
    """A feature has one of these values."""

    name: Name
    numbers: tuple[float, ...]

    def __str__(self) -> str:
        return f"{self.name} in {' '.join(map(str, self.numbers))}"


@dataclass(frozen=True, slots=True)
class FeatureNull(Placed):
    """A feature is absent."""

    name: Name

    def __str__(self) -> str:
        return f"{self.name} is null"


@dataclass(frozen=True, slots=True)
class GroupIs(Placed):
    """Statistics of a group compared, in HAVING: one of < <= = <> >= >."""

    left: Operand
    comparison: str
    right: Operand

    def __str__(self) -> str:
        return f"{self.left} {self.comparison} {self.right}"


@dataclass(frozen=True, slots=True)
class Not(Placed):
    """The condition is false."""

    condition: Condition

    def __str__(self) -> str:
        return f"not ({self.condition})"


@dataclass(frozen=True, slots=True)
class And(Placed):
    """All of these hold; nothing in it means everything."""

    conditions: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        return " and ".join(map(_part, self.conditions)) or "all"


@dataclass(frozen=True, slots=True)
class Or(Placed):
    """Any of these holds."""

    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(map(_part, self.conditions))


OnPlace = InCells | InBox | Within | Near
OnFeature = FeatureIs | FeatureBetween | FeatureIn | FeatureNull
Condition = OnPlace | TimeIs | OnFeature | GroupIs | Not | And | Or


#: What holds everywhere and always.
EVERYTHING: Final = And()


def any_of(parts: tuple[Condition, ...], place: Place) -> Condition:
    """An OR; one of geohashes alone is a list of geohashes, and one that holds everywhere says nothing."""
    if EVERYTHING in parts:
        return And(place=place)
    cells = [part for part in parts if isinstance(part, InCells)]
    if len(cells) == len(parts):
        return InCells(tuple(prefix for part in cells for prefix in part.prefixes), place=place)
    return Or(parts, place=place)


def negated(condition: Condition, place: Place) -> Condition:
    """A NOT; that of a NOT is what stands in it."""
    return condition.condition if isinstance(condition, Not) else Not(condition, place=place)


def _part(condition: Condition) -> str:
    return f"({condition})" if isinstance(condition, And | Or) else str(condition)


@dataclass(frozen=True, slots=True)
class Question(Hashed):
    """A whole question. Group keys that are not selected stand in front of `items`."""

    items: tuple[Item, ...]
    scope: Condition = And()
    groups: tuple[Key, ...] = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None
    having: Condition | None = None
    sketch: str | None = None  #: which one is asked, by the name in FROM

    __hash__ = Hashed.__hash__

    def __str__(self) -> str:
        lines = [f"select {item}" for item in self.items]
        lines.append(f"scope {self.scope}")
        lines += [f"group {key}" for key in self.groups]
        lines += [] if self.having is None else [f"having {self.having}"]
        lines += [f"order {order}" for order in self.order]
        return "\n".join(lines if self.limit is None else [*lines, f"limit {self.limit}"])


@dataclass(frozen=True, slots=True)
class Source:
    """A question whose answer is joined with others, under a name."""

    alias: str
    question: Question

    def __str__(self) -> str:
        inner = "\n".join(f"  {line}" for line in str(self.question).splitlines())
        return f"{self.alias}:\n{inner}"


@dataclass(frozen=True, slots=True)
class Join:
    """Answers joined by their keys: rows for which all of them have the same keys."""

    items: tuple[Item, ...]
    sources: tuple[Source, ...]
    on: tuple[tuple[str, ...], ...] = ()  #: for each key, what each source calls it
    having: Condition | None = None  #: which rows are in the answer
    order: tuple[Order, ...] = ()
    limit: int | None = None

    def __str__(self) -> str:
        lines = [f"select {item}" for item in self.items]
        lines += [f"from {source}" for source in self.sources]
        lines += [f"on {' = '.join(names)}" for names in self.on]
        lines += [] if self.having is None else [f"having {self.having}"]
        lines += [f"order {order}" for order in self.order]
        return "\n".join(lines if self.limit is None else [*lines, f"limit {self.limit}"])


@dataclass(frozen=True, slots=True)
class Selection:
    """A part of the sketch itself: some of its features, in some places and times, under a condition."""

    features: tuple[Name, ...] = ()  #: none: all of them
    scope: Condition = And()
    sketch: str | None = None

    def __str__(self) -> str:
        return f"part {', '.join(map(str, self.features)) or 'of all features'}\nscope {self.scope}"


@dataclass(frozen=True, slots=True)
class Curve(Placed):
    """Many rows of one feature: the points of its density, or the buckets of its forecast; perhaps for each cell."""

    function: str  #: density or forecast
    name: Name
    column: str  #: what the numbers are called in the answer
    scope: Condition = And()
    bandwidth: float | None = None  #: of a density; None: found out
    horizon: str | None = None  #: of a forecast: how far ahead
    step: str = "1d"  #: of a forecast: its buckets
    cell: CellKey | None = None
    sketch: str | None = None

    def __str__(self) -> str:
        options = (self.bandwidth,) if self.function == "density" else (self.horizon, self.step)
        words = [self.function, str(self.name), *(str(each) for each in options if each is not None)]
        group = [] if self.cell is None else [f"group {self.cell}"]
        return "\n".join([f"{' '.join(words)} as {self.column!r}", f"scope {self.scope}", *group])


Asked = Question | Join | Selection | Curve
