"""The layout: the choices that every part of one sketch shares, versioned in the store.

Two sketches add up only within one layout. It changes by nesting alone: cells go to their parents, buckets to the
buckets that enclose them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from synopsis.grid.buckets import Bucket
from synopsis.grid.zones import Zone

#: Statistics that strands answer to float64 rounding wherever no strand is cut.
EXACT_STATISTICS = ("count", "sum", "mean", "var", "std", "min", "max", "covariance", "correlation")


@dataclass(frozen=True)
class Layout:
    """Grain and features of a sketch.

    >>> layout = Layout(("temp_c", "rh", "wind_ms"), bits=20, bucket="1mo")
    >>> layout.pairs
    ((0, 1), (0, 2), (1, 2))
    """

    features: tuple[str, ...]
    bits: int  #: of a strand's cell
    bucket: str  #: a strand's span of time
    timezone: str = "UTC"

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Positions of the two features of each pair, in the order in which comoments are kept."""
        return tuple(combinations(range(len(self.features)), 2))

    @property
    def zone(self) -> Zone:
        """The zone whose calendar cuts the buckets."""
        return Zone.named(self.timezone)

    @property
    def span(self) -> Bucket:
        """The bucket, read."""
        return Bucket.parse(self.bucket)

    @property
    def grain(self) -> str:
        """The grain in words.

        >>> Layout(("a",), bits=20, bucket="1mo").grain
        'geohash 4 x 1mo'
        """
        length, rest = divmod(self.bits, 5)
        return f"geohash {length} x {self.bucket}" if not rest else f"{self.bits}-bit cell x {self.bucket}"

    @property
    def exact(self) -> dict[str, str]:
        """The grain at which each statistic is exact."""
        return dict.fromkeys(EXACT_STATISTICS, self.grain)

    def nests_in(self, coarser: Layout) -> bool:
        """Whether every strand of this layout lies within one strand of the other."""
        return (
            self.features == coarser.features
            and self.timezone == coarser.timezone
            and coarser.bits <= self.bits
            and coarser.span.encloses(self.span)
        )

    def strand_bytes(self) -> int:
        """Bytes of one strand in memory: two keys, rows, two times, five numbers a feature, six a pair."""
        return 8 * (5 + 5 * len(self.features) + 6 * len(self.pairs))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self) | {"features": list(self.features)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Layout:
        """The layout that `to_dict` gave.

        >>> layout = Layout(("a",), 20, "1d")
        >>> Layout.from_dict(layout.to_dict()) == layout
        True
        """
        return cls(tuple(plain["features"]), int(plain["bits"]), str(plain["bucket"]), str(plain["timezone"]))
