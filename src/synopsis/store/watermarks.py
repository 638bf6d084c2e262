"""Watermarks: how far in time the rows of a committed state had come.

Every commit tells the latest instant of its own batch. Batches mostly come in the order of time, so a look at the last
ones finds the latest of all without the whole log, which a stream makes long.
"""

from __future__ import annotations

import json
from typing import Final

from deltalake import DeltaTable

from synopsis.store.store import State, Store

#: Commits that are looked at; a batch may be late by so many others and still be outdone.
_LOOKED_AT: Final = 256


def watermark_us(store: Store, state: State) -> int | None:
    """The latest instant of the last batches of a state; None where no commit tells. Later commits are not seen.

    Cost: proportional to the commits looked at, at most 256.
    """
    table = DeltaTable(store.sketch_place, version=state.version)
    # History begins at the end of the log, whatever version was asked for, and numbers commits from there. Turns tell.
    turn = table.transaction_version("synopsis.turn") or 0
    commits = [commit for commit in table.history(_LOOKED_AT) if int(commit.get("synopsis.turn", turn + 1)) <= turn]
    told = [json.loads(commit["synopsis.watermark"]) for commit in commits]
    return max((instant_us for instant_us in told if instant_us is not None), default=None)
