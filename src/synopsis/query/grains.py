"""Grains: groups finer than what remains in a sketch are answered at the grain that remains, or refused if one insists.

Where a bucket is shorter than the time that a sketch keeps together, and where a cell would part positions that it
keeps together, the next coarser key stands in; the answer says so, and has the start and end of every bucket.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from synopsis.core.errors import NotKept
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.query.binding import Keyed, Plan, Source
from synopsis.query.groups import finest_cell
from synopsis.query.tree import BucketKey, CellKey
from synopsis.sketch.strands import Strands
from synopsis.sketch.summary import Summary

#: Units of buckets within a day, longest first.
_UNITS_S: Final = (("h", 3_600), ("m", 60), ("s", 1))


def settled(asked: Plan, strands: Strands, summary: Summary | None, strict: bool = False) -> Plan:
    """The plan with keys that the sketch can tell apart, noting those that it cannot.

    Cost: nothing for plans without keys; for cells finer than those of strands, a pass over the cells in scope.
    """
    changed: dict[Keyed, Keyed] = {}
    for key in asked.groups:
        coarser = _remaining(key, asked, strands, summary)
        if coarser is not None:
            changed[key] = coarser
    if not changed:
        return asked
    notes = tuple(
        f"{_told(key)} is finer than what this sketch keeps: {_told(changed[key])} stands in" for key in changed
    )
    if strict:
        key = next(iter(changed))
        place = key.where if isinstance(key, CellKey | BucketKey) else ()
        raise NotKept(f"{notes[0].split(':')[0]}; ask for {_told(changed[key])}, or without strict", *place)

    def kept(source: Source) -> Source:
        return changed.get(source, source) if isinstance(source, Keyed) else source

    return replace(
        asked,
        columns=tuple((name, kept(source)) for name, source in asked.columns),
        groups=tuple(changed.get(key, key) for key in asked.groups),
        order=tuple((kept(source), descending) for source, descending in asked.order),
        notes=(*asked.notes, *notes),
    )


def _finest(summary: Summary) -> Bucket | None:
    """The shortest bucket that a summary tells apart; None where any is."""
    layout = summary.layout
    if layout.moving:  # paths know the time of day
        return None
    if layout.hours is None:
        return Bucket("d", layout.spell)
    seconds = layout.hours[0] // 1_000_000
    unit, length = next((unit, length) for unit, length in _UNITS_S if seconds % length == 0)
    return Bucket(unit, seconds // length)


def _told(key: Keyed) -> str:
    if isinstance(key, CellKey):
        return f"CELL({key.length})"
    assert isinstance(key, BucketKey)
    return f"BUCKET('{key.span}')"


def _remaining(key: Keyed, asked: Plan, strands: Strands, summary: Summary | None) -> Keyed | None:
    """The key that stands in for one that is too fine; None where none has to."""
    if isinstance(key, BucketKey):
        own = strands.layout.span if summary is None else _finest(summary)
        is_finer = own is not None and own.nominal_s > Bucket.parse(key.span).nominal_s
        return replace(key, span=str(own)) if is_finer else None
    if not isinstance(key, CellKey):
        return None
    if summary is None:
        length = finest_cell(key, asked, strands)
    else:
        bits = summary.layout.place_bits
        length = key.length if bits is None else min(key.length, bits // geohash.BITS_PER_CHARACTER)
    if length == key.length:
        return None
    if not length:
        raise NotKept(f"{_told(key)} would part positions that this sketch keeps together; leave CELL out", *key.where)
    return replace(key, length=length)
