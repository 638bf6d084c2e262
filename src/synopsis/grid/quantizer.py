"""Quantizer: the bins of one feature, each of equal mass, and the code of the bin that a value falls into.

The density-driven bins of the Synopsis paper (3.2.3), with two changes. A value so heavy that no bins could share it
(rain is 0 nine hours in ten) is an atom: it gets a bin of its own, and the other bins share the rest. And nothing is
clamped: the outer bins are open, so a code is true of every value, seen or not.

Bin c holds edges[c - 1] <= value < edges[c], with infinities outside. An atom's bin is closed around it by an edge
at the atom and one at the next double above; on the outer side of a lowest or highest atom there is no edge, as nothing
was seen there.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from synopsis.grid.density import Bandwidth, Density, Floats, distinct, silverman

Integers = NDArray[np.int64]

MAGIC, VERSION = b"SYNQ", 1
_HEADER = struct.Struct("<4sHII")  #: magic, version, length and checksum of what follows
_BODY = struct.Struct("<ddII")  #: low, high, how many edges, how many atoms

ATOM_SHARE = 1.5  #: below this many fair shares a heavy value does better with neighbours than alone


@dataclass(frozen=True, slots=True, eq=False)
class Quantizer:
    """The bins of one feature.

    >>> quantizer = Quantizer.fit([1.0, 2.0, 3.0, 4.0], None, 2)
    >>> quantizer.codes([-5.0, 1.0, 4.0, float("nan")])
    array([0, 0, 1, 2])
    >>> low, high = quantizer.bounds([0, 1])
    >>> low, high.round(9)
    (array([-inf,  2.5]), array([2.5, inf]))
    """

    edges: Floats  #: ascending; where one bin ends and the next begins
    atoms: Floats  #: ascending; values whose bin held nothing else that was seen
    low: float = math.nan  #: lowest value seen, NaN where all were missing
    high: float = math.nan  #: highest value seen

    def __post_init__(self) -> None:
        for name in ("edges", "atoms"):
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.ndim != 1 or not np.isfinite(array).all() or (array[1:] <= array[:-1]).any():
                raise ValueError(f"{name} of a quantizer ascend and are finite; got {array}")
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def fit(
        cls,
        values: ArrayLike,
        weights: ArrayLike | None,
        bins: int,
        *,
        bandwidth: Bandwidth = "silverman",
        atom_share: float = ATOM_SHARE,
    ) -> Self:
        """At most `bins` bins of equal mass under the density of weighted values; missing values are left aside.

        Weights are numbers of observations (None: one each). A value of at least `atom_share` fair shares of what the
        heavier ones leave over is an atom. Where there are no more different values than bins, each has its own bin.
        Other edges lie half-way between two neighbouring values, so no bin is empty.

        Silverman's rule thinks of one hump and blurs several, or a steep start, into one: on hourly radiation some of
        30 bins then held three times their share. So it goes no further than half the narrowest bin that plain
        quantiles would give. A bandwidth given as a number is used as it is.
        """
        if bins < 1:
            raise ValueError(f"{bins} bins were asked for; a quantizer has at least 1")
        points, mass = distinct(values, weights)
        if points.size == 0:
            return cls(np.empty(0), np.empty(0))

        largest = float(np.abs(points).max())
        exponent = int(np.frexp(largest)[1])  # near 1 the density can neither overflow nor underflow
        scaled = np.ldexp(points, -exponent)

        def shares(first: int, last: int, count: int) -> Floats:
            here, weight = scaled[first:last], mass[first:last]
            if isinstance(bandwidth, str):
                width = min(silverman(here, weight), 0.5 * _narrowest(here, weight, count))
            else:
                width = float(np.ldexp(min(bandwidth, 64.0 * largest), -exponent))  # a wider kernel is flat anyway
            return Density.of(here, weight, bandwidth=width, bounded=True).cdf(here[:-1] + 0.5 * np.diff(here))

        heavy = _heavy(mass, bins, atom_share)
        starts, alone = _runs(mass, bins, heavy[mass[heavy] >= 2.0], shares)  # one observation is no atom
        edges = _between(points, mass, starts, alone)
        return cls(edges, points[alone], float(points[0]), float(points[-1]))

    @property
    def bins(self) -> int:
        """How many bins there are; also the code of an absent value."""
        return int(self.edges.size) + 1

    def codes(self, values: ArrayLike) -> Integers:
        """The bin of each value: 0 to bins - 1, or `bins` where it is missing (NaN)."""
        borders = np.append(self.edges, math.nan)  # NaN sorts last, and so falls behind this one
        return np.asarray(np.searchsorted(borders, np.asarray(values, dtype=np.float64), side="right"), dtype=np.int64)

    def bounds(self, codes: ArrayLike, *, low: float = -math.inf, high: float = math.inf) -> tuple[Floats, Floats]:
        """The lowest and the highest double that each bin can hold, both included; NaN for absent.

        The outer bins reach to infinity, unless the caller knows between which values the rows lie.
        """
        chosen = np.asarray(codes, dtype=np.int64)
        lows = np.concatenate([[-math.inf], self.edges, [math.nan]])
        highs = np.concatenate([np.nextafter(self.edges, -math.inf), [math.inf, math.nan]])
        return np.maximum(lows, low)[chosen], np.minimum(highs, high)[chosen]

    def to_bytes(self) -> bytes:
        """These bins as bytes."""
        body = _BODY.pack(self.low, self.high, self.edges.size, self.atoms.size)
        body += self.edges.astype("<f8").tobytes() + self.atoms.astype("<f8").tobytes()
        return _HEADER.pack(MAGIC, VERSION, len(body), zlib.crc32(body)) + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The bins that `to_bytes` wrote."""
        if len(data) < _HEADER.size or data[:4] != MAGIC:
            raise ValueError(f"no quantizer: {len(data)} bytes that begin with {data[:4]!r}, not {MAGIC!r}")
        _, version, length, checksum = _HEADER.unpack_from(data)
        body = data[_HEADER.size :]
        if version != VERSION:
            raise ValueError(f"a quantizer of format {version}; this release reads {VERSION}")
        if len(body) != length or zlib.crc32(body) != checksum:
            raise ValueError(f"a damaged quantizer: {len(body)} of {length} bytes, or another checksum")
        low, high, edges, atoms = _BODY.unpack_from(body)
        numbers = np.frombuffer(body, dtype="<f8", offset=_BODY.size)
        if numbers.size != edges + atoms:
            raise ValueError(f"a damaged quantizer: {numbers.size} numbers for {edges} edges and {atoms} atoms")
        return cls(numbers[:edges], numbers[edges:], low, high)

    def __eq__(self, other: object) -> bool:
        return self.to_bytes() == other.to_bytes() if isinstance(other, Quantizer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_bytes())


def nested(
    quantizer: Quantizer, bins: int, *, mass: ArrayLike | None = None, atom_share: float = ATOM_SHARE
) -> tuple[Quantizer, Integers]:
    """The same bins joined with neighbours into at most `bins`, and the new code of every old one (absent among them).

    Joined bins share `mass`, the weight of each old bin, evenly. Without it all bins count the same and atoms stay
    alone while there is room; with it, bins that are heavy now stay alone.

    >>> coarse, new = nested(Quantizer.fit(range(100), None, 4), 2)
    >>> coarse.edges, new
    (array([49.5]), array([0, 0, 1, 1, 2]))
    """
    if bins < 1:
        raise ValueError(f"{bins} bins were asked for; a quantizer has at least 1")
    weights = np.ones(quantizer.bins) if mass is None else np.asarray(mass, dtype=np.float64)
    if weights.shape != (quantizer.bins,):
        raise ValueError(f"{weights.size} masses for {quantizer.bins} bins; give one to each, and none to absent")
    weights = np.maximum(weights, 1e-12 * weights.sum() or 1.0)  # bins that are empty now still take a place
    heavy = quantizer.codes(quantizer.atoms) if mass is None else _heavy(weights, bins, atom_share)

    def shares(first: int, last: int, count: int) -> Floats:
        here = np.cumsum(weights[first:last])
        return np.asarray(here[:-1] / here[-1])

    starts, _ = _runs(weights, bins, heavy, shares)
    codes = np.zeros(quantizer.bins, dtype=np.int64)
    codes[starts] = 1
    codes = np.cumsum(codes)
    holds_one = np.bincount(codes) == 1
    atoms = quantizer.atoms[holds_one[codes[quantizer.codes(quantizer.atoms)]]]
    coarse = Quantizer(quantizer.edges[starts - 1], atoms, quantizer.low, quantizer.high)
    return coarse, np.append(codes, coarse.bins)


def _narrowest(points: Floats, mass: Floats, count: int) -> float:
    """The width of the narrowest of `count` bins between plain quantiles; infinite if all lie on one value."""
    cumulative = np.cumsum(mass)
    places = np.searchsorted(cumulative, cumulative[-1] * np.arange(1, count) / count)
    widths = np.diff(np.concatenate([points[:1], points[places], points[-1:]]))
    return float(np.min(widths[widths > 0.0], initial=math.inf))


def _heavy(mass: Floats, bins: int, atom_share: float) -> Integers:
    """Items that outweigh `atom_share` fair shares of what the heavier ones leave to the other bins, heaviest first."""
    order = np.argsort(-mass, kind="stable")[:bins]
    taken = np.cumsum(mass[order])
    fair = (mass.sum() - taken + mass[order]) / (bins - np.arange(order.size))
    outweighs = np.append(mass[order] >= atom_share * fair, False)
    return order[: np.argmin(outweighs)]


def _runs(
    mass: Floats, bins: int, heavy: Integers, shares: Callable[[int, int, int], Floats]
) -> tuple[Integers, NDArray[np.bool_]]:
    """Items in a row, put into at most `bins` runs: where runs after the first begin, and which heavy items are alone.

    `shares(first, last, count)` says, for each gap between the items first..last, which share of their mass is below
    it; they will be put into `count` runs.
    """
    alone = np.zeros(mass.size, dtype=np.bool_)
    if mass.size <= bins:
        alone[heavy] = True
        return np.arange(1, mass.size), alone
    alone[_affordable(mass.size, bins, heavy)] = True
    first = np.concatenate([[0], np.flatnonzero(alone[1:] | alone[:-1]) + 1])
    last = np.append(first[1:], mass.size)
    between = ~alone[first]
    first_between, last_between = first[between], last[between]
    left = bins - int(np.count_nonzero(alone))
    runs = _shared_out(np.add.reduceat(mass, first)[between], last_between - first_between, left)
    cuts = [
        start + _even(shares(start, end, count), count)
        for start, end, count in zip(first_between.tolist(), last_between.tolist(), runs.tolist(), strict=True)
        if count > 1
    ]
    return np.sort(np.concatenate([first[1:], *cuts])), alone


def _affordable(size: int, bins: int, heavy: Integers) -> Integers:
    """As many of the heavy items as can be alone while each stretch between them keeps a bin."""
    taken = np.ones(size + 2, dtype=np.bool_)  # with walls at both ends
    taken[1:-1] = False
    stretches, affordable = 1, 0
    for count, item in enumerate(heavy.tolist(), 1):
        stretches += 1 - int(taken[item]) - int(taken[item + 2])
        taken[item + 1] = True
        if count + stretches <= bins:
            affordable = count
    return heavy[:affordable]


def _shared_out(mass: Floats, most: Integers, bins: int) -> Integers:
    """How many bins each stretch gets: one, and the rest where bins are fullest (the method of D'Hondt)."""
    already = np.arange(1, max(bins, 1))
    fullness = np.where(already < most[:, None], mass[:, None] / already, -1.0)
    extra = np.argsort(-fullness, axis=None, kind="stable")[: bins - mass.size]
    extra = extra[fullness.ravel()[extra] > 0.0]
    return 1 + np.bincount(extra // max(already.size, 1), minlength=mass.size)


def _even(shares: Floats, count: int) -> Integers:
    """The gaps, counted from 1, that part items into `count` runs of nearly equal share, none of them empty."""
    wanted = np.arange(1, count) / count
    gaps = np.searchsorted(0.5 * (shares[1:] + shares[:-1]), wanted)  # the nearest
    order = np.arange(count - 1)
    gaps = np.maximum.accumulate(gaps - order) + order
    return np.minimum(gaps, shares.size - (count - 1) + order) + 1


def _between(points: Floats, mass: Floats, starts: Integers, alone: NDArray[np.bool_]) -> Floats:
    """An edge below each starting point: tight around an atom (of two, the heavier), else half-way from the last."""
    below, above = points[starts - 1], points[starts]
    halfway = 0.5 * below + 0.5 * above
    halfway = np.where(halfway > below, np.minimum(halfway, above), above)  # neighbouring doubles have no middle
    atom_below, atom_above = alone[starts - 1], alone[starts]
    closes_below = atom_below & (~atom_above | (mass[starts - 1] >= mass[starts]))
    edges = np.where(atom_above, above, halfway)
    return np.where(closes_below, np.nextafter(below, math.inf), edges)
