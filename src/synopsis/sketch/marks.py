"""Marks: sets of names as short hashes, which tell who is surely not in a set, and unite.

A mark is the first bits of a name's MD5. A name whose mark is not in a set is not in it; one whose mark is there is in
it, or shares its mark with one that is: of names that are not there, as many do as there are marks, out of all that
there can be. Sets are sorted, and kept as the gaps between neighbours, in a good byte a name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.moments import Integers
from synopsis.sketch.packing import packed, unpacked

#: Bits of the hash that marks are cut from.
HASH_BITS: Final = 32

#: Bits of a mark beyond those that number the names: one absent name in 256 to 512 has the mark of another.
_SPARE_BITS: Final = 8

Hashes = NDArray[np.uint32]


def hash_of(name: str) -> int:
    """The hash of a name, as Spark's `md5` gives it.

    >>> hex(hash_of("A652"))
    '0x1d591782'
    """
    return int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[: HASH_BITS // 4], 16)


@dataclass(frozen=True, eq=False)
class Marks:
    """The marks of several sets, one after the other."""

    bits: int
    ends: Integers  #: where each set ends
    low: bytes  #: the last byte of every gap, packed
    high: bytes  #: the rest of every gap, packed

    @classmethod
    def of(cls, sets: Sequence[Hashes], hash_bits: int = HASH_BITS) -> Marks:
        """The marks of hashes, long enough to tell most names of all sets apart."""
        names = np.unique(np.concatenate([np.empty(0, np.uint32), *sets])).size
        bits = min(int(names).bit_length() + _SPARE_BITS, hash_bits)
        shift = np.uint32(hash_bits - bits)
        return cls.plain([np.unique(each >> shift) for each in sets], bits)

    @classmethod
    def plain(cls, sets: Sequence[Hashes], bits: int) -> Marks:
        """Sets of marks that are sorted and distinct."""
        ends = np.cumsum([each.size for each in sets], dtype=np.int64)
        marks = np.concatenate([np.empty(0, np.uint32), *sets])
        gaps = np.diff(marks, prepend=np.uint32(0))  # wraps around where the next set begins
        return cls(bits, ends, packed((gaps & 0xFF).astype(np.uint8)), packed(gaps >> np.uint32(8)))

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.ends.nbytes + len(self.low) + len(self.high)

    @property
    def sets(self) -> list[Hashes]:
        """Each set, sorted. Cost: in proportion to all marks."""
        gaps = (unpacked(self.high).astype(np.uint32) << np.uint32(8)) | unpacked(self.low)
        return np.split(np.cumsum(gaps, dtype=np.uint32), self.ends[:-1]) if self.ends.size else []

    def cut(self, bits: int) -> Marks:
        """The same sets with shorter marks."""
        return self if bits == self.bits else Marks.plain([_cut(each, self.bits - bits) for each in self.sets], bits)

    def mark(self, name: str) -> int:
        """The mark of a name."""
        return hash_of(name) >> (HASH_BITS - self.bits)

    def rate(self, size: int) -> float:
        """How many of the names that are not in a set of that size seem to be, 0 to 1."""
        return float(size / 2**self.bits)


def _cut(marks: Hashes, by: int) -> Hashes:
    return np.unique(marks >> np.uint32(by))
