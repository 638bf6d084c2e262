"""Summaries as Arrow tables: a row with what all blocks share, and a row a block, numbers as frames of bytes.

Meetings, where there are any, have a row of their own.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from synopsis.grid.quantizer import Quantizer
from synopsis.sketch.blocks import Block
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.effects import Effects
from synopsis.sketch.joints import Grain
from synopsis.sketch.meetings import KEYS, Meetings
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.scales import Scales
from synopsis.sketch.streams import Odds
from synopsis.sketch.summary import Summary
from synopsis.sketch.ticks import Ticks

SCHEMA = pa.schema(
    [("part", pa.string()), ("facts", pa.string()), ("frames", pa.list_(pa.field("element", pa.binary())))]
)

#: Numbers of the scales, one a feature.
OF_FEATURES = ("steps", "low", "high", "values", "beyond")

#: What is told of a block beside its frames.
FACTS = ("place_low", "place_high", "period_low", "period_high", "kept", "share", "weekly")


def to_table(summary: Summary) -> pa.Table:
    """The summary as rows."""
    scales, contexts = summary.scales, summary.contexts
    shared = {
        "layout": summary.layout.to_dict(),
        "ticks": [ticks.to_dict() for ticks in scales.ticks],
        "symbols": int(contexts.centres.shape[1]),
        "odds": contexts.odds.levels.shape[1:],
        "effects": None if summary.effects is None else summary.effects.to_dict(),
    }
    frames = [
        summary.latitude.astype("<f8").tobytes(),
        summary.longitude.astype("<f8").tobytes(),
        contexts.parents.astype("<i8").tobytes(),
        contexts.centres.tobytes(),
        contexts.odds.levels.tobytes(),
        *(getattr(scales, name).astype("<f8").tobytes() for name in OF_FEATURES),
        *(quantizer.to_bytes() for quantizer in scales.quantizers),
        *(each.astype("<f4").tobytes() for each in (*scales.means, *scales.masses)),
        *(each.astype("<f2").tobytes() for each in scales.spreads),
    ]
    facts: list[dict[str, Any]] = [shared] + [
        {name: getattr(block, name) for name in FACTS} for block in summary.blocks
    ]
    rows = [frames] + [[block.head, *block.bins, *block.paths, *block.stretches] for block in summary.blocks]
    parts = ["shared"] + ["block"] * len(summary.blocks)
    if summary.meetings is not None:
        met = summary.meetings
        facts.append({"bits": met.grain.bits, "months": met.grain.months, "starts": [[*s] for s in met.grain.starts]})
        rows.append([*(getattr(met, name).astype("<i8").tobytes() for name in KEYS), *met.frames])
        parts.append("meetings")
    return pa.table([parts, [json.dumps(each) for each in facts], rows], schema=SCHEMA)


def from_table(table: pa.Table) -> Summary | None:
    """The summary of such rows; None where there are none."""
    if not table.num_rows:
        return None
    facts = [json.loads(text) for text in table["facts"].to_pylist()]
    rows: list[list[bytes]] = table["frames"].to_pylist()
    parts = table["part"].to_pylist()
    at = parts.index("shared")
    shared, frames = facts[at], iter(rows[at])

    def numbers(kind: str) -> Any:
        return np.frombuffer(next(frames), kind).astype(kind[1:], copy=False)

    width = len(shared["ticks"])
    latitude, longitude, parents = numbers("<f8"), numbers("<f8"), numbers("<i8")
    centres = np.frombuffer(next(frames), np.uint8).reshape(width, shared["symbols"], shared["symbols"])
    odds = Odds(np.frombuffer(next(frames), np.uint8).reshape(width, *shared["odds"]))
    of_features = {name: numbers("<f8") for name in OF_FEATURES}
    quantizers = tuple(Quantizer.from_bytes(next(frames)) for _ in range(width))
    means, masses = (tuple(numbers("<f4") for _ in range(width)) for _ in range(2))
    spreads = tuple(numbers("<f2") for _ in range(width))
    ticks = tuple(map(Ticks.from_dict, shared["ticks"]))
    return Summary(
        PathLayout.from_dict(shared["layout"]),
        latitude,
        longitude,
        Scales(quantizers, ticks, means, spreads, masses, **of_features),
        Contexts(parents.reshape(width, 2), centres, odds),
        tuple(
            Block(
                **facts[row],
                head=rows[row][0],
                bins=tuple(rows[row][1 : width + 1]),
                paths=tuple(rows[row][width + 1 : 2 * width + 2]),
                stretches=tuple(rows[row][2 * width + 2 :]),
            )
            for row in range(len(rows))
            if parts[row] == "block"
        ),
        _meetings(facts[parts.index("meetings")], rows[parts.index("meetings")]) if "meetings" in parts else None,
        None if shared["effects"] is None else Effects.from_dict(shared["effects"]),
    )


def _meetings(facts: dict[str, Any], frames: list[bytes]) -> Meetings:
    """The meetings of their row."""
    grain = Grain(facts["bits"], facts["months"], tuple(map(bytes, facts["starts"])))
    numbers = (np.frombuffer(frame, "<i8").astype(np.int64, copy=False) for frame in frames)
    keys = {name: next(numbers) for name in KEYS}
    return Meetings(grain, **keys, frames=tuple(frames[len(KEYS) :]))
