"""Questions: random ones of the whole language, as trees and in the spellings that mean them.

A `Ground` says what there is to ask about: a few rows of the data, from which places, times and numbers are drawn so
that they often hit values exactly, edges, poles and the dateline. Trees are drawn in the form that reading gives: no
AND right within an AND, no NOT of a NOT. `spelled` writes a tree as SQL, by one of many spellings if chance is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.grid.zones import Zone
from synopsis.query.tree import (
    FUNCTIONS,
    Aggregate,
    And,
    Arithmetic,
    BinKey,
    BucketKey,
    CellKey,
    Condition,
    Expression,
    FeatureBetween,
    FeatureIn,
    FeatureIs,
    FeatureNull,
    GroupIs,
    InBox,
    InCells,
    Item,
    Key,
    Moment,
    Name,
    Near,
    Not,
    Number,
    Operand,
    Or,
    Order,
    Question,
    TimeIs,
    Within,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_Any = TypeVar("_Any")

SPANS: Final = ("1d", "1w", "1mo", "1q", "1y", "2d", "2w", "2mo", "12h", "6h")
#: Functions that are drawn, and how many features each takes.
STATISTICS: Final = {
    "count": (0, 1),
    "sum": (1,),
    "mean": (1,),
    "std": (1,),
    "var": (1,),
    "std_samp": (1,),
    "var_samp": (1,),
    "min": (1,),
    "max": (1,),
    "covariance": (2,),
    "covariance_samp": (2,),
    "correlation": (2,),
    "quantile": (1,),
}
_WIDTHS: Final = (0.25, 1.0, 5.0, 20.0, 100.0, 1000.0)
_ZONES: Final = (None, None, "UTC", "Europe/Paris", "Asia/Kolkata", "America/Sao_Paulo", "Pacific/Auckland")
BUCKET_ZONES: Final = ("UTC", "Europe/Paris", "Asia/Kolkata", "America/Sao_Paulo")
_COORDINATES: Final = ("lat", "latitude", "lon", "longitude")
_ORDERED: Final = ("<", "<=", ">=", ">")
_COMPARISONS: Final = (*_ORDERED, "=", "<>")
_FLIPPED: Final = {"<": ">", "<=": ">=", "=": "=", "<>": "<>", ">=": "<=", ">": "<"}
_SYNONYMS: Final = {
    "mean": ("MEAN", "AVG", "mean"),
    "std": ("STD", "STDDEV", "STDDEV_POP"),
    "var": ("VAR", "VARIANCE", "VAR_POP"),
    "covariance": ("COVARIANCE", "COVAR_POP"),
    "correlation": ("CORRELATION", "CORR"),
    "quantile": ("QUANTILE", "QUANTILE_CONT"),
}
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_WORDS: Final = frozenset(
    [
        "near",
        "box",
        "within",
        "order",
        "group",
        "by",
        "select",
        "where",
        "limit",
        "desc",
        "asc",
        "time",
        "location",
        "in",
        "is",
        "not",
    ]
)
_EPOCH: Final = datetime(1970, 1, 1)
_HOUR_US: Final = 3_600_000_000
_DAY_US: Final = 24 * _HOUR_US
_MINUTE_US: Final = 60_000_000


@dataclass(frozen=True)
class Ground:
    """What there is to ask about, and what a sketch of it keeps."""

    latitude: Floats  #: of some rows
    longitude: Floats
    instants_us: Integers
    values: Mapping[str, Floats]  #: of each feature, those that are present
    timezone: str = "UTC"
    paths: bool = True  #: whether conditions on features and quantiles are answered
    finest: int = 4  #: the longest geohash to group by
    most_groups: int = 150  #: about so many groups a question may have

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(self.values)

    @cached_property
    def keys(self) -> tuple[tuple[Key, ...], ...]:
        """What can be grouped by without too many groups."""
        zone = Zone.named(self.timezone)
        cells: dict[Key, NDArray[Any]] = {
            CellKey(length): geohash.encode(self.latitude, self.longitude, 5 * length)
            for length in range(1, self.finest + 1)
        }
        buckets: dict[Key, NDArray[Any]] = {
            BucketKey(span): Bucket.parse(span).ordinals(self.instants_us, zone) for span in SPANS
        }
        alone = [(key,) for key, own in (cells | buckets).items() if np.unique(own).size <= self.most_groups]
        pairs: list[tuple[Key, ...]] = [(cell, bucket) for cell in cells for bucket in buckets]
        few = [
            pair
            for pair in pairs
            if np.unique(np.stack([cells[pair[0]], buckets[pair[1]]]), axis=1).shape[1] <= self.most_groups
        ]
        bins = [(BinKey(Name(name), width),) for name, width in self.widths] if self.paths else []
        return (*alone, *few, *((bucket, cell) for cell, bucket in few), *bins)

    @property
    def widths(self) -> list[tuple[str, float]]:
        """Features, and how wide their bins can be."""
        found = []
        for name, own in self.values.items():
            low, first, last, high = np.quantile(own, [0.0, 0.1, 0.9, 1.0]) if own.size else np.zeros(4)
            if high - low < 5 * (last - first):  # a long tail has many bins, and more beyond the rows seen here
                found += [(name, width) for width in _WIDTHS if 2.0 < (high - low) / width < self.most_groups]
        return found


@dataclass
class Questions:
    """Draws questions about a ground.

    >>> ground = Ground(np.array([1.0]), np.array([2.0]), np.array([0]), {"rh": np.array([80.0])})
    >>> drawn = Questions(ground, np.random.default_rng(1)).question()
    >>> isinstance(drawn, Question)
    True
    """

    ground: Ground
    random: np.random.Generator
    mixed: bool = True  #: whether ORs and NOTs join places, times and features
    thresholds: bool = True  #: whether features are compared with statistics, too
    depth: int = 3  #: of ORs, ANDs and NOTs within each other
    _thresholds_left: int = field(default=0, init=False)

    def question(self) -> Question:
        """One question."""
        self._thresholds_left = 2 if self._one_in(8) and self.thresholds and self.ground.paths else 0
        groups: tuple[Key, ...] = self._of(self.ground.keys) if self.ground.keys and self._one_in(2) else ()
        if self._one_in(6):
            zone = self._of(BUCKET_ZONES)
            groups = tuple(replace(key, zone=zone) if isinstance(key, BucketKey) else key for key in groups)
        items = self._items(groups)
        return Question(
            items,
            self._scope(),
            groups,
            self._orders(items, groups) if groups and self._one_in(3) else (),
            int(self.random.integers(0, 12)) if groups and self._one_in(5) else None,
            self._tree(1, self._of_groups) if self._one_in(4 if groups else 20) else None,
        )

    # --- chance -------------------------------------------------------------------------------------------------------

    def _one_in(self, many: float) -> bool:
        return bool(self.random.random() * many < 1.0)

    def _of(self, choices: Sequence[_Any] | NDArray[Any]) -> _Any:
        return cast(_Any, choices[int(self.random.integers(len(choices)))])

    def _number(self, feature: str) -> float:
        """A number near those of a feature: one of them, a rounded one, one between two, or one beyond all."""
        values = self.ground.values[feature]
        if not values.size:
            return float(np.round(self.random.normal(), 2))
        known = float(self._of(values))
        kind = self.random.random()
        if kind < 0.5:
            return known + 0.0
        if kind < 0.75:
            return float(np.round(known, int(self.random.integers(0, 3)))) + 0.0
        if kind < 0.95:
            return (known + float(self._of(values))) / 2 + 0.0
        return float(self._of((float(values.max()) + 1.0, float(values.min()) - 1.0, 0.0, 1e-5, -1e7)))

    # --- what is selected ---------------------------------------------------------------------------------------------

    def _items(self, groups: tuple[Key, ...]) -> tuple[Item, ...]:
        drawn: list[Expression] = [self._expression() for _ in range(self.random.integers(1, 5))]
        named = [key for key in groups if self._one_in(2)]
        for key in named:
            drawn.insert(int(self.random.integers(len(drawn) + 1)), key)
        items = [Item(written(key), key) for key in groups if key not in named]
        aliases = ["n", "worst one", "c1", "x2", *self.ground.features]
        for expression in dict.fromkeys(drawn):
            taken = {item.name for item in items}
            free = [alias for alias in aliases if alias not in taken]
            items.append(Item(self._of(free) if self._one_in(3) else written(expression), expression))
        return tuple(items)

    def _statistic(self) -> Aggregate:
        beyond = () if self.ground.paths else ("quantile", "covariance_samp")
        function = self._of([name for name in STATISTICS if name in FUNCTIONS and name not in beyond])
        takes = self._of(STATISTICS[function])
        names = tuple(Name(self._of(self.ground.features)) for _ in range(takes))
        share = None
        if function == "quantile":
            share = float(self._of((0.0, 0.5, 1.0, round(self.random.random(), 2), round(self.random.random(), 3))))
        return Aggregate(function, names, share, self._only() if self._one_in(10) else None)

    def _only(self) -> Condition:
        """Which rows a statistic is of."""
        left, self._thresholds_left = self._thresholds_left, 0
        is_mixed = self.mixed or not self.ground.paths
        condition = self._tree(int(self.random.integers(0, 2)), self._leaf if is_mixed else self._feature)
        self._thresholds_left = left
        return condition

    def _expression(self, depth: int = 2) -> Aggregate | Arithmetic:
        if depth == 0 or not self._one_in(4):
            return self._statistic()
        left, right = self._expression(depth - 1), self._operand(depth - 1)
        ends: tuple[Operand, Operand] = (left, right) if self._one_in(2) else (right, left)
        return Arithmetic(self._of("+-*/"), *ends)

    def _operand(self, depth: int = 1) -> Operand:
        if self._one_in(3):
            return Number(float(self._of((2.0, 100.0, 0.5, -1.5, 1e-5, 1e17, round(self.random.normal(), 3)))))
        return self._expression(depth)

    def _of_groups(self) -> Condition:
        """A comparison of statistics of a group."""
        value, comparison = self._expression(1), self._of(_COMPARISONS)
        bound = self._expression(0) if self._one_in(6) else Number(self._likely(value))
        if self._one_in(6):
            other = Number(self._likely(value))
            return And((GroupIs(value, ">=", bound), GroupIs(value, "<=", other)))
        return GroupIs(value, comparison, bound) if self._one_in(1.2) else GroupIs(bound, comparison, value)

    def _likely(self, value: Operand) -> float:
        if isinstance(value, Aggregate) and value.function in ("mean", "min", "max", "quantile"):
            return self._number(value.arguments[0].text)
        return float(self._of((0.0, 1.0, 30.0, 700.0, round(self.random.normal() * 100, 1))))

    def _orders(self, items: tuple[Item, ...], groups: tuple[Key, ...]) -> tuple[Order, ...]:
        def by() -> Expression | Name:
            kind = self.random.random()
            if kind < 0.4:
                return Name(self._of(items).name)
            return self._of(groups) if kind < 0.6 else self._expression(1)

        return tuple(Order(by(), self._one_in(2)) for _ in range(self.random.integers(1, 3)))

    # --- what is in scope ---------------------------------------------------------------------------------------------

    def _scope(self) -> Condition:
        if self._one_in(8):
            return And()
        if self.mixed:
            return self._tree(int(self.random.integers(0, self.depth + 1)), self._leaf)
        parts = [self._place() for _ in range(self.random.integers(0, 3))]
        parts += [self._time() for _ in range(self.random.integers(0, 3))]
        if self.ground.paths:
            parts += [
                self._tree(int(self.random.integers(0, self.depth)), self._feature)
                for _ in range(self.random.poisson(1))
            ]
        self.random.shuffle(parts)
        return both(parts) if parts else And()

    def _leaf(self) -> Condition:
        kinds = [self._place, self._time, *([self._feature] * 2 if self.ground.paths else [])]
        return self._of(kinds)()

    def _tree(self, depth: int, leaf: Callable[[], Condition]) -> Condition:
        kind = self.random.random()
        if depth == 0 or kind < 0.2:
            return leaf()
        if kind < 0.35:
            return negated(self._tree(depth - 1, leaf))
        parts = [self._tree(depth - 1, leaf) for _ in range(self.random.integers(2, 4))]
        return both(parts) if kind < 0.7 else either(parts)

    def _time(self) -> Condition:
        first = TimeIs(self._of(_COMPARISONS if self._one_in(4) else (">=", "<")), self._moment())
        if not self._one_in(2):
            return first
        second = self._moment()
        zones = {moment: Zone.named(moment.zone or self.ground.timezone) for moment in (first.moment, second)}
        low, high = sorted(zones, key=lambda each: int(zones[each].to_utc(each.local_us))) * (3 - len(zones))
        return And((TimeIs(">=", low), TimeIs(self._of(("<", "<=")), high)))

    def _moment(self) -> Moment:
        instant_us = int(self._of(self.ground.instants_us))
        zone = self._of(_ZONES)
        local_us = int(Zone.named(zone or self.ground.timezone).to_local(instant_us))
        if self._one_in(3):
            return Moment(local_us + int(self.random.integers(-_HOUR_US, _HOUR_US)), zone)
        unit = self._of((_DAY_US, _DAY_US, _HOUR_US, 1))
        clock = _EPOCH + timedelta(microseconds=local_us)
        if self._one_in(5):
            clock = datetime(clock.year, clock.month, 1)
        return Moment((clock - _EPOCH) // timedelta(microseconds=1) // unit * unit, zone)

    def _place(self) -> Condition:
        places: list[Callable[[], Condition]] = [self._cells, self._cells, self._box, self._polygon, self._circle]
        return self._of([*places, self._range])()

    def _position(self) -> tuple[float, float]:
        at = int(self.random.integers(self.ground.latitude.size))
        return float(self.ground.latitude[at]), float(self.ground.longitude[at])

    def _cells(self) -> InCells:
        prefixes = []
        for _ in range(self._of((1, 1, 2, 4))):
            length = int(self.random.integers(1, 6))
            cell = geohash.encode(*self._position(), 5 * length)
            prefixes.append(str(geohash.to_text(cell, length)))
        return InCells(tuple(dict.fromkeys(prefixes)))

    def _box(self) -> InBox:
        (one, first), (other, second) = self._position(), self._position()
        if self._one_in(2):  # the two positions are corners, which a closed box holds
            south, north, west, east = min(one, other), max(one, other), first, second
            if west > east and not self._one_in(3):
                west, east = east, west
        else:
            reach = np.exp(self.random.uniform(-2.0, 4.5, 4))
            south, north = (float(np.clip(one + step, -90.0, 90.0)) for step in (-reach[0], reach[1]))
            west, east = (_around(first + float(step)) for step in (-reach[2], reach[3]))
            if self._one_in(2):
                south, north, west, east = (float(np.round(side, 1)) for side in (south, north, west, east))
        return InBox(south + 0.0, west + 0.0, north + 0.0, east + 0.0)

    def _range(self) -> Condition:
        name = self._of(_COORDINATES)
        axis = 0 if name in _COORDINATES[:2] else 1
        one, other = sorted((self._position()[axis] + 0.0, self._position()[axis] + 0.0))
        if self._one_in(2):
            one, other = float(np.floor(one)) + 0.0, float(np.ceil(other)) + 0.0
        if self._one_in(2):
            return FeatureBetween(Name(name), one, other)
        comparison = self._of((*_ORDERED, *_ORDERED, "="))
        return FeatureIs(Name(name), comparison, one if comparison.startswith(">") else other)

    def _circle(self) -> Near:
        latitude, longitude = self._position()
        kind = self.random.random()
        if kind < 0.15:
            latitude, longitude = float(self._of((90.0, -90.0))), float(self._of((0.0, 180.0, -77.5)))
        elif kind < 0.3:
            longitude = float(self._of((180.0, -180.0, 179.99, -179.5)))
        elif kind < 0.6:
            latitude = float(np.clip(np.round(latitude + self.random.normal(), 2), -90.0, 90.0))
            longitude = _around(float(np.round(longitude + self.random.normal(), 2)))
        km = float(np.round(np.exp(self.random.uniform(1.0, 9.9)), 1))
        return Near(latitude + 0.0, longitude + 0.0, km)

    def _polygon(self) -> Within:
        while True:
            text = self._outline()
            if text is not None:
                return Within(text)

    def _outline(self) -> str | None:
        """A star around a position, perhaps with a hole, perhaps with another one; what lies beyond the dateline
        appears on the other side. One in four is a rectangle whose edges run through positions."""
        import shapely

        shapes = []
        for _ in range(self._of((1, 1, 2))):
            latitude, longitude = self._position()
            if self._one_in(4):
                other = self._position()
                west, east = sorted((longitude, other[1]))
                south, north = sorted((latitude, other[0]))
                shapes.append(shapely.box(west, south, east if east > west else west + 1, north))
                continue
            corners = int(self.random.integers(3, 10))
            angles = np.sort(self.random.uniform(0.0, 2 * np.pi, corners))
            reach = float(np.exp(self.random.uniform(-1.0, 3.8))) * self.random.uniform(0.4, 1.0, corners)
            ring = np.stack([reach * np.cos(angles), reach * np.sin(angles)], axis=1)
            centre = np.array([longitude, latitude]) + (0.0 if self._one_in(3) else self.random.normal(0, 1, 2))
            holes = [ring * self.random.uniform(0.1, 0.7) + centre] if self._one_in(2) else []
            star = shapely.Polygon(ring + centre, holes)
            if not star.is_valid:
                return None
            shapes.append(star)
        world = shapely.box(-180.0, -90.0, 180.0, 90.0)
        moved = [
            shapely.transform(shape, lambda at, by=by: at + np.array([by, 0.0]))
            for shape in shapes
            for by in (-360, 0, 360)
        ]
        if not all(shape.is_valid for shape in shapes):
            return None
        whole = shapely.union_all([shapely.intersection(shape, world) for shape in moved])
        parts = [part for part in shapely.get_parts(whole) if part.geom_type == "Polygon" and part.area > 0.0]
        if not parts:
            return None
        geometry = parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)
        text = str(shapely.to_wkt(geometry, rounding_precision=self._of((2, 6, -1))))
        read = shapely.from_wkt(text)
        west, south, east, north = read.bounds
        inside = west >= -180.0 and south >= -90.0 and east <= 180.0 and north <= 90.0
        return text if read.is_valid and not read.is_empty and inside else None

    def _feature(self) -> Condition:
        feature = self._of(self.ground.features)
        name = Name(feature)
        if self._thresholds_left and self._one_in(2):
            self._thresholds_left -= 1
            return FeatureIs(name, self._of(_ORDERED), self._threshold(name))
        kind = self.random.random()
        if kind < 0.55:
            return FeatureIs(name, self._of(_COMPARISONS), self._number(feature))
        if kind < 0.75:
            low, high = sorted((self._number(feature), self._number(feature)), reverse=self._one_in(20))
            return FeatureBetween(name, low, high)
        if kind < 0.9:
            numbers = dict.fromkeys(self._number(feature) for _ in range(self.random.integers(1, 5)))
            return FeatureIn(name, tuple(numbers))
        return FeatureNull(name)

    def _threshold(self, name: Name) -> Aggregate | Arithmetic:
        function = self._of(("mean", "mean", "min", "max", "quantile"))
        share = round(self.random.random(), 2) if function == "quantile" else None
        middle = Aggregate(function, (name,), share)
        if self._one_in(2):
            return middle
        spread = Arithmetic("*", Number(float(self._of((0.5, 1.0, 2.0)))), Aggregate("std", (name,)))
        return Arithmetic(self._of("+-"), middle, spread)


def _around(longitude: float) -> float:
    """The longitude within -180..180."""
    return float((longitude + 180.0) % 360.0 - 180.0) if abs(longitude) > 180.0 else longitude


# --- the form that reading gives --------------------------------------------------------------------------------------


def is_between(condition: Condition) -> bool:
    """Whether an AND is what BETWEEN is read as, which stays a part of its own."""
    if not isinstance(condition, And) or len(condition.conditions) != 2:
        return False
    first, second = condition.conditions
    if isinstance(first, TimeIs) and isinstance(second, TimeIs):
        return (first.comparison, second.comparison) == (">=", "<=")
    if isinstance(first, GroupIs) and isinstance(second, GroupIs):
        return (first.comparison, second.comparison) == (">=", "<=") and first.left == second.left
    return False


def both(conditions: Iterable[Condition]) -> Condition:
    """All of these, as reading has it.

    >>> print(both([TimeIs("<", Moment(0)), And((FeatureNull(Name("a")), FeatureNull(Name("b"))))]))
    time < 1970-01-01T00:00:00 local and a is null and b is null
    """
    parts: list[Condition] = []
    for condition in conditions:
        parts += condition.conditions if isinstance(condition, And) and not is_between(condition) else [condition]
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def either(conditions: Iterable[Condition]) -> Condition:
    """Any of these, as reading has it: geohashes alone are one list of them."""
    parts: list[Condition] = []
    for condition in conditions:
        parts += condition.conditions if isinstance(condition, Or) else [condition]
    if len(parts) == 1:
        return parts[0]
    cells = [part for part in parts if isinstance(part, InCells)]
    if len(cells) == len(parts):
        return InCells(tuple(prefix for part in cells for prefix in part.prefixes))
    return Or(tuple(parts))


def negated(condition: Condition) -> Condition:
    """The opposite, as reading has it."""
    return condition.condition if isinstance(condition, Not) else Not(condition)


# --- SQL --------------------------------------------------------------------------------------------------------------


def spelled(question: Question, random: np.random.Generator | None = None) -> str:
    """The question as SQL; with chance, in one of many spellings that all mean it.

    >>> spelled(Question((Item("n", Aggregate("count")),), InCells(("dj",)), (CellKey(3),), limit=2))
    "SELECT COUNT(*) AS n WHERE location LIKE 'dj%' GROUP BY CELL(3) LIMIT 2"
    """
    write = _Writer(random)
    shown = _shown(question)
    text = "SELECT " + ", ".join(map(write.item, shown))
    if question.scope != And():
        text += f" WHERE {write.condition(question.scope)}"
    if question.groups:
        aliases = {item.expression: item.name for item in shown}
        text += " GROUP BY " + ", ".join(
            quoted(aliases[key]) if key in aliases and aliases[key] != written(key) and write.maybe() else written(key)
            for key in question.groups
        )
    if question.having is not None:
        text += f" HAVING {write.condition(question.having)}"
    if question.order:
        text += " ORDER BY " + ", ".join(map(write.order, question.order))
    return text if question.limit is None else f"{text} LIMIT {question.limit}"


def _shown(question: Question) -> tuple[Item, ...]:
    """The columns without the keys that stand in front of them anyway."""
    for hidden in range(min(len(question.groups), len(question.items) - 1), 0, -1):
        front, rest = question.items[:hidden], question.items[hidden:]
        selected = {item.expression for item in rest}
        if front == tuple(Item(written(key), key) for key in question.groups if key not in selected):
            return rest
    return question.items


def written(expression: Expression | Number) -> str:
    """An expression in its plainest spelling."""
    return _Writer(None).expression(expression)


def quoted(name: str) -> str:
    """A name, in quotes unless it is a word and none of the language."""
    if _IDENTIFIER.fullmatch(name) and name.lower() not in _WORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


class _Writer:
    """Writes parts of a question; chance picks among spellings."""

    def __init__(self, random: np.random.Generator | None) -> None:
        self._random = random

    def maybe(self) -> bool:
        return self._random is not None and bool(self._random.random() < 0.4)

    def item(self, item: Item) -> str:
        if item.name == written(item.expression):
            return item.name
        return f"{self.expression(item.expression)} AS {quoted(item.name)}"

    def order(self, order: Order) -> str:
        by = quoted(order.by.text) if isinstance(order.by, Name) else self.expression(order.by)
        return by + (" DESC" if order.descending else " ASC" if self.maybe() else "")

    def number(self, number: float) -> str:
        if self.maybe() and number.is_integer() and abs(number) < 1e15:
            return str(int(number))
        return repr(number)

    def expression(self, expression: Expression | Number) -> str:
        match expression:
            case Number():
                return self.number(expression.value)
            case CellKey():
                return f"CELL({expression.length})"
            case BucketKey():
                return f"BUCKET({', '.join(repr(each) for each in (expression.span, expression.zone) if each)})"
            case BinKey():
                width = "" if expression.width is None else f", {self.number(expression.width)}"
                return f"BIN({quoted(expression.name.text)}{width})"
            case Arithmetic():
                left, right = (
                    f"({self.expression(part)})" if isinstance(part, Arithmetic) else self.expression(part)
                    for part in (expression.left, expression.right)
                )
                return f"{left} {expression.operator} {right}"
            case Aggregate():
                return self._aggregate(expression)
        raise TypeError(f"{expression} is not drawn")

    def _aggregate(self, aggregate: Aggregate) -> str:
        text = self._function(aggregate)
        return text if aggregate.only is None else f"{text} FILTER (WHERE {self.condition(aggregate.only)})"

    def _function(self, aggregate: Aggregate) -> str:
        names = [quoted(name.text) for name in aggregate.arguments]
        function = aggregate.function.upper()
        if self.maybe() and self._random is not None:
            if aggregate.share == 0.5:
                return f"MEDIAN({names[0]})"
            if aggregate.share is not None and self._random.random() < 0.5:
                return f"PERCENTILE_CONT({aggregate.share!r}) WITHIN GROUP (ORDER BY {names[0]})"
            function = str(self._random.choice(_SYNONYMS.get(aggregate.function, (function, function.lower()))))
        arguments = [*names, *([] if aggregate.share is None else [self.number(aggregate.share)])]
        return f"{function}({', '.join(arguments) or '*'})"

    def condition(self, condition: Condition) -> str:
        match condition:
            case And() if is_between(condition) and (text := self._between(condition)):
                return text
            case And():
                return " AND ".join(self._part(part) for part in condition.conditions)
            case Or():
                return " OR ".join(self._part(part) for part in condition.conditions)
            case Not():
                return self._not(condition.condition)
            case _:
                return self._leaf(condition)

    def _part(self, condition: Condition) -> str:
        """A part of an AND, an OR or a NOT, in parentheses where they are needed."""
        if isinstance(condition, And | Or) and not is_between(condition):
            return f"({self.condition(condition)})"
        text = self.condition(condition)
        return f"({text})" if self.maybe() else text

    def _not(self, condition: Condition) -> str:
        if self.maybe():
            match condition:
                case FeatureBetween():
                    return self._leaf(condition).replace(" BETWEEN ", " NOT BETWEEN ", 1)
                case FeatureIn():
                    return self._leaf(condition).replace(" IN (", " NOT IN (", 1)
                case FeatureNull():
                    return self._leaf(condition).replace(" IS NULL", " IS NOT NULL")
                case InCells():
                    return f"location NOT IN ({', '.join(map(repr, condition.prefixes))})"
        return f"NOT ({self.condition(condition)})" if not self.maybe() else f"NOT {self._part(condition)}"

    def _between(self, condition: And) -> str:
        first, second = condition.conditions
        if isinstance(first, TimeIs) and isinstance(second, TimeIs):
            return f"time BETWEEN {self._moment(first.moment)} AND {self._moment(second.moment)}"
        assert isinstance(first, GroupIs)
        assert isinstance(second, GroupIs)
        value, low, high = (self.expression(each) for each in (first.left, first.right, second.right))
        return f"{value} BETWEEN {low} AND {high}"

    def _compared(self, left: str, comparison: str, right: str) -> str:
        if self.maybe():
            left, comparison, right = right, _FLIPPED[comparison], left
        return f"{left} {'!=' if comparison == '<>' and self.maybe() else comparison} {right}"

    def _leaf(self, condition: Condition) -> str:
        match condition:
            case InCells(prefixes=(prefix,)):
                return f"location = '{prefix}'" if self.maybe() else f"location LIKE '{prefix}%'"
            case InCells():
                if self.maybe():
                    return "(" + " OR ".join(f"location LIKE '{prefix}%'" for prefix in condition.prefixes) + ")"
                return f"location IN ({', '.join(map(repr, condition.prefixes))})"
            case InBox():
                sides = (condition.south, condition.west, condition.north, condition.east)
                return f"BOX({', '.join(map(self.number, sides))})"
            case Within():
                return f"WITHIN('{condition.text}')"
            case Near():
                return f"NEAR({', '.join(map(self.number, (condition.latitude, condition.longitude, condition.km)))})"
            case TimeIs():
                return self._compared("time", condition.comparison, self._moment(condition.moment))
            case GroupIs():
                left, right = self.expression(condition.left), self.expression(condition.right)
                return f"{left} {condition.comparison} {right}"
            case FeatureIs():
                threshold = self._threshold(condition.number)
                return self._compared(quoted(condition.name.text), condition.comparison, threshold)
            case FeatureBetween():
                low, high = self._threshold(condition.low), self._threshold(condition.high)
                return f"{quoted(condition.name.text)} BETWEEN {low} AND {high}"
            case FeatureIn():
                return f"{quoted(condition.name.text)} IN ({', '.join(map(self.number, condition.numbers))})"
            case FeatureNull():
                return f"{quoted(condition.name.text)} IS NULL"
        raise TypeError(f"{condition} is no single condition")

    def _threshold(self, threshold: float | Aggregate | Arithmetic) -> str:
        return self.number(threshold) if isinstance(threshold, float) else self.expression(threshold)

    def _moment(self, moment: Moment) -> str:
        """A time in quotes: as short as can be, or whole; UTC also as what the clock shows at an offset."""
        offset_min = 0
        if moment.zone == "UTC" and self.maybe() and self._random is not None:
            offset_min = int(self._random.choice([-210, 60, 330, 765]))
        clock = _EPOCH + timedelta(microseconds=moment.local_us + offset_min * _MINUTE_US)
        text = clock.isoformat(" " if self.maybe() else "T")
        is_midnight = moment.local_us % _DAY_US == 0
        if moment.zone is None and is_midnight and not self.maybe():
            text = text[:10]
        if moment.zone is None and self.maybe():
            return f"{'DATE' if is_midnight and len(text) == 10 else 'TIMESTAMP'} '{text}'"
        if moment.zone == "UTC":
            sign, minutes = "-" if offset_min < 0 else "+", abs(offset_min)
            text += f"{sign}{minutes // 60:02}:{minutes % 60:02}" if offset_min else "Z"
        elif moment.zone is not None:
            text += f" {moment.zone}"
        return f"'{text}'"
