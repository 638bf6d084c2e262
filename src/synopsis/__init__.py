"""Synopsis: a small, mergeable summary of a spatiotemporal stream, with an interval on every answer.

>>> import synopsis as syn
>>> spec = syn.Spec(lat="lat", lon="lon", time="ts", features=["temp_c"])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from synopsis.core.errors import SynopsisError
from synopsis.core.report import Report
from synopsis.core.spec import Spec

if TYPE_CHECKING:
    from synopsis import frames, plot
    from synopsis.database import Database, open
    from synopsis.query.answer import Answer
    from synopsis.query.values import Value
    from synopsis.sketches import Sketch
    from synopsis.wiring import build

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "Database",
    "Report",
    "Sketch",
    "Spec",
    "SynopsisError",
    "Value",
    "build",
    "frames",
    "open",
    "plot",
]

#: Where each public name lives; loaded when first asked for, so that importing synopsis stays quick.
_HOMES = {
    "Answer": "synopsis.query.answer",
    "Database": "synopsis.database",
    "Sketch": "synopsis.sketches",
    "Value": "synopsis.query.values",
    "build": "synopsis.wiring",
    "open": "synopsis.database",
    "frames": "synopsis.frames",
    "plot": "synopsis.plot",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"synopsis has no {name!r}; it has {', '.join(__all__)}")
    home = import_module(_HOMES[name])
    return home if home.__name__ == f"{__name__}.{name}" else getattr(home, name)  # frames and plot are modules


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
