"""Given: plain values taken apart, each with its path; what does not fit is refused with that path.

A path is the steps from the whole to a part, printed as in where.and[1].time.from. No message repeats what was given
at length, and none depends on how deep it is nested.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Final, TypeVar

from synopsis.core.errors import BadQuery, nearest

Path = tuple[str | int, ...]
_Meaning = TypeVar("_Meaning")

TOO_DEEP: Final = "the question is nested too deeply to be read"
WHOLE: Final = 2.0**53  #: below it a whole number is one without a doubt

_DEEPEST: Final = 200  #: steps of a path; SQL is refused at less
_SHOWN: Final = 40  #: characters of a text in a message
_STEP: Final = re.compile(r"\w+")
#: What others call ours.
_OTHERWISE: Final = {
    "avg": "mean",
    "average": "mean",
    "stddev": "std",
    "variance": "var",
    "median": "quantile",
    "percentile": "quantile",
    "corr": "correlation",
    "covar": "covariance",
    "!=": "<>",
    "==": "=",
    "eq": "=",
    "ne": "<>",
    "gt": ">",
    "gte": ">=",
    "lt": "<",
    "lte": "<=",
    "null": "is",
}


def members_of(plain: object, path: Path, takes: str) -> Mapping[str, object]:
    """An object with at least one key, all of them texts."""
    if len(path) > _DEEPEST:
        raise BadQuery(TOO_DEEP)
    if not isinstance(plain, Mapping):
        raise refused(path, f"takes {takes}, found {shown(plain)}")
    odd = [key for key in plain if not isinstance(key, str)]
    if odd:
        raise refused(path, f"a key is a text, not {shown(odd[0])}")
    if not plain:
        raise refused(path, f"takes {takes}, found an empty object")
    return plain


def only_member(plain: object, path: Path, takes: str, several: str = "") -> tuple[str, object]:
    """The one key of an object, and what it holds; `several` tells what to do with more."""
    parts = members_of(plain, path, takes)
    if len(parts) != 1:
        keys = ", ".join(shown(key) for key in list(parts)[:3])
        raise refused(path, f"takes {takes}, one at a time, found {keys}{several}")
    return next(iter(parts.items()))


def parts_of(
    plain: object, path: Path, takes: str, least: int = 1, most: int | None = None
) -> list[tuple[object, Path]]:
    """The parts of a list, each with its path."""
    if not isinstance(plain, list | tuple):
        raise refused(path, f"takes {takes}, found {shown(plain)}")
    if len(plain) < least or (most is not None and len(plain) > most):
        raise refused(path, f"takes {takes}, found {len(plain) or 'none'}")
    return [(part, (*path, at)) for at, part in enumerate(plain)]


def numbers_of(plain: object, path: Path, names: tuple[str, ...]) -> list[float]:
    """The numbers of an object that has all of these keys and no others."""
    parts = members_of(plain, path, f"an object of {', '.join(names)}")
    for name in parts:
        if name not in names:
            raise unknown(path, "part", name, names)
    missing = [name for name in names if name not in parts]
    if missing:
        raise refused(path, f"takes {', '.join(names)}; {missing[0]} is missing")
    return [number_of(parts[name], (*path, name), "a number") for name in names]


def number_of(plain: object, path: Path, takes: str) -> float:
    """A finite number of any kind that Python or NumPy has; a truth value is none."""
    if isinstance(plain, bool) or not isinstance(plain, Real):
        raise refused(path, f"takes {takes}, found {shown(plain)}")
    try:
        number = float(plain)
    except (OverflowError, ValueError):
        number = math.inf
    if math.isnan(number):
        raise refused(path, f"takes {takes}, found NaN")
    if math.isinf(number):
        raise refused(path, f"{shown(plain)} is beyond the largest number, about 1.8e308")
    return number + 0.0  # there is no zero below zero


def whole_of(plain: object) -> int | None:
    """A whole number, None for everything else."""
    return None if isinstance(plain, bool) or not isinstance(plain, Integral) else int(plain)


def text_of(plain: object, path: Path, takes: str) -> str:
    """A text that can be written down."""
    if not isinstance(plain, str):
        raise refused(path, f"takes {takes}, found {shown(plain)}")
    try:
        plain.encode()
    except UnicodeEncodeError:
        raise refused(path, f"takes {takes}; {shown(plain)} holds half a character") from None
    return plain


def meaning_of(parse: Callable[[str], _Meaning], plain: object, path: Path, takes: str) -> _Meaning:
    """What a text means to a parser whose ValueError says why it means nothing."""
    text = text_of(plain, path, takes)
    try:
        return parse(text)
    except ValueError as error:
        raise refused(path, str(error)) from None


def refused(path: Path, why: str) -> BadQuery:
    """The refusal of what stands at a path.

    >>> print(refused(("where", "and", 1, "PM2.5", ">"), "takes a number, found null"))
    where.and[1]["PM2.5"][">"]: takes a number, found null
    """
    place = "".join(f".{step}" if _is_word(step) else f"[{json.dumps(_cut(step))}]" for step in path)
    return BadQuery(f"{place.removeprefix('.')}: {why}" if path else f"the question: {why}")


def _is_word(step: str | int) -> bool:
    return isinstance(step, str) and len(step) <= _SHOWN and _STEP.fullmatch(step) is not None


def _cut(step: str | int) -> str | int:
    return step if isinstance(step, int) or len(step) <= _SHOWN else step[: _SHOWN - 3] + "..."


def unknown(path: Path, kind: str, word: str, known: tuple[str, ...], hint: str = "") -> BadQuery:
    """That there is no such word, which ones there are, and which one may be meant."""
    meant = _OTHERWISE.get(word.lower())
    close = f"; did you mean {meant!r}?" if meant in known else nearest(word, known) or hint
    why = f"there is no {kind} {shown(word)}{close or ';'} there are {', '.join(known)}"
    return refused(path, why) if path else BadQuery(why)


def shown(plain: object) -> str:
    """A value in a sentence, never long."""
    if plain is None or isinstance(plain, bool):
        return {None: "null", True: "true", False: "false"}[plain]
    if isinstance(plain, str):
        return repr(_cut(plain))
    if isinstance(plain, float):
        return repr(float(plain))
    if isinstance(plain, Integral):
        return str(int(plain)) if abs(int(plain)) < WHOLE else f"a number of {int(plain).bit_length()} bits"
    if isinstance(plain, Mapping):
        return "an object"
    return "a list" if isinstance(plain, list | tuple) else f"a value of type {type(plain).__name__}"
