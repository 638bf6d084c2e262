"""What this machine lends us: cores, memory, and a place to keep files between runs.

A container sees the memory of its host but is killed at the limit of its control group, so the smaller of the two
counts. Files go to the user's cache; where that cannot be written, to a temporary directory of this process alone.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

_CONTROL_GROUPS = Path("/sys/fs/cgroup")


def cores() -> int:
    """How many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """The memory of the machine, or of the control group where that is less."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_control_group_limits()])


def _control_group_limits() -> Iterator[int]:
    """Every memory limit set on this process's control group or on a group around it."""
    try:
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:  # no Linux
        return
    for group in groups:
        _, controllers, inside = group.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root = _CONTROL_GROUPS / "memory" if controllers else _CONTROL_GROUPS
        here = root / inside.lstrip("/")
        for folder in (here, *here.parents):
            yield from _limit(folder / ("memory.limit_in_bytes" if controllers else "memory.max"))
            if folder == root:
                break


def _limit(file: Path) -> Iterator[int]:
    try:
        text = file.read_text(encoding="ascii").strip()
    except OSError:
        return
    if text.isdigit() and int(text) > 0:  # "max" means none
        yield int(text)


def keeping_places(name: str, environ: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """Directories called `name` that this user alone can write, best first.

    The first lasts from run to run and is left out where it cannot be written; the last is fresh for this process.
    """
    cache = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME") or "~", ".cache"))
    place = Path(cache) / "synopsis" / name
    try:
        place = place.expanduser()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(place, os.W_OK | os.X_OK):
            yield place
    except (OSError, RuntimeError):  # cannot be written; there is no home at all
        pass
    fresh = _temporary() / name
    fresh.mkdir(exist_ok=True)
    yield fresh


@functools.cache
def _temporary() -> Path:
    """One temporary directory for this process: a fixed name in a shared place could be somebody else's trap."""
    return Path(tempfile.mkdtemp(prefix="synopsis-"))
