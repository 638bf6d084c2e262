"""Quantiles: what a KLL sketch made by Spark knows of a feature, as weighted values.

KLL is Karnin, Lang & Liberty (2016): every item kept stands for a power of two of observations. Spark and the
`datasketches` package share the bytes but not the type: a sketch of bigints read as doubles gives garbage without a
word. So sketches travel with a tag that names their kind, and reading one as another kind is an error.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

import numpy as np

from synopsis.grid.density import Floats

KLL_DOUBLE = "kll_double"  #: made by Spark's kll_sketch_agg_double

MAGIC, VERSION = b"SYNK", 1
_HEADER = struct.Struct("<4sHII")  #: magic, version, length and checksum of what follows


def tagged(kind: str, payload: bytes) -> bytes:
    """The bytes of a sketch behind the name of its kind.

    >>> untagged("kll_double", tagged("kll_double", b"..."))
    b'...'
    """
    name = kind.encode("ascii")
    body = bytes([len(name)]) + name + bytes(payload)
    return _HEADER.pack(MAGIC, VERSION, len(body), zlib.crc32(body)) + body


def untagged(kind: str, data: bytes) -> bytes:
    """The bytes of a sketch of this kind; any other kind is a ValueError."""
    if len(data) < _HEADER.size or data[:4] != MAGIC:
        raise ValueError(f"a sketch without a tag: it begins with {bytes(data[:4])!r}, not {MAGIC!r}")
    _, version, length, checksum = _HEADER.unpack_from(data)
    body = bytes(data[_HEADER.size :])
    if version != VERSION:
        raise ValueError(f"a tag of format {version}; this release reads {VERSION}")
    if len(body) != length or zlib.crc32(body) != checksum:
        raise ValueError(f"a damaged sketch: {len(body)} of {length} bytes, or another checksum")
    start = 1 + body[0]
    found = body[1:start].decode("ascii")
    if found != kind:
        raise ValueError(f"a sketch of kind {found!r} cannot be read as {kind!r}; the numbers would be garbage")
    return body[start:]


def weighted_points(data: bytes) -> tuple[Floats, Floats]:
    """Values in order and how many observations each stands for, out of a tagged KLL sketch of doubles.

    The weights add up to the number of observations. The lowest and highest value are exact and always among them.
    """
    from datasketches import kll_doubles_sketch

    sketch = kll_doubles_sketch.deserialize(untagged(KLL_DOUBLE, data))
    if sketch.is_empty():
        return np.empty(0), np.empty(0)
    values, weights = np.array(list(sketch), dtype=np.float64).T
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    low, high = sketch.get_min_value(), sketch.get_max_value()
    # An extreme that was compacted away comes back as one observation, lent by the nearest item that has one to spare.
    if values[0] > low:
        weights[np.argmax(weights > 1.0)] -= 1.0
        values, weights = np.insert(values, 0, low), np.insert(weights, 0, 1.0)
    if values[-1] < high:
        weights[weights.size - 1 - np.argmax(weights[::-1] > 1.0)] -= 1.0
        values, weights = np.append(values, high), np.append(weights, 1.0)
    return values, weights


def merged(sketches: Iterable[bytes]) -> bytes:
    """One tagged KLL sketch of doubles that has seen what all of them saw; the coarsest decides how fine it is."""
    from datasketches import kll_doubles_sketch

    parts = [kll_doubles_sketch.deserialize(untagged(KLL_DOUBLE, data)) for data in sketches]
    union = kll_doubles_sketch(min((part.k for part in parts), default=200))
    for part in parts:
        union.merge(part)
    return tagged(KLL_DOUBLE, union.serialize())
