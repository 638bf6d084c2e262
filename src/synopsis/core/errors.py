"""Every way in which Synopsis says no, as one tree.

SynopsisError
├── BadSpec                 a field of the spec makes no sense                         (ValueError)
│   ├── DuplicateFeature    the same feature named twice
│   └── BudgetTooSmall      what was promised does not fit `memory`
├── BadSource               the source cannot be read, or not as asked                 (ValueError)
│   ├── UnknownColumn       a column that the source does not have                     (KeyError)
│   ├── NotNumeric          a column of places or of a feature without numbers         (TypeError)
│   ├── EmptySource         a source without a single usable row
│   └── RowsRejected        a strict build met rows without a place or time
├── BadTarget               the target is not ours to write or read                    (ValueError)
│   ├── NotASketch          nothing there, or something else                           (FileNotFoundError)
│   ├── ForeignFormat       a format version that this release does not know
│   └── SpecDiffers         the sketch was built with another spec
├── NoJava                  Spark needs Java and found none that will do               (RuntimeError)
├── SparkFailed             a job failed inside Spark; the log file is named           (RuntimeError)
└── BadQuery                a question that cannot be read, with line and column       (ValueError)
    ├── UnknownFeature      a feature that the sketch does not keep                    (KeyError)
    └── NotKept             a question that needs what the sketch did not keep

Each takes plain values, so that it survives pickling between processes, and each sentence names the remedy.
"""

from __future__ import annotations

import difflib

_LISTED = 30  # names in a message; a table may have hundreds


class SynopsisError(Exception):
    """The root: catch this to catch everything that Synopsis raises on purpose."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


def nearest(name: str, known: tuple[str, ...]) -> str:
    """A hint such as `; did you mean 'temp_c'?`, or nothing.

    >>> nearest("temp", ("temp_c", "rh"))
    "; did you mean 'temp_c'?"
    """
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


class BadSpec(SynopsisError, ValueError):
    """A field of the spec makes no sense."""


class DuplicateFeature(BadSpec):
    """The same feature is named twice."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"feature {self.name!r} is named twice; name each feature once"


class BudgetTooSmall(BadSpec):
    """What was promised does not fit `memory`."""

    def __init__(self, promise: str, needed_bytes: int, memory_bytes: int) -> None:
        super().__init__(promise, needed_bytes, memory_bytes)
        self.promise, self.needed_bytes, self.memory_bytes = promise, needed_bytes, memory_bytes

    def __str__(self) -> str:
        return (
            f"{self.promise} takes {self.needed_bytes:,} bytes and memory is {self.memory_bytes:,}; "
            f"give memory={self.needed_bytes} or more, fewer features, or a coarser grain"
        )


class BadSource(SynopsisError, ValueError):
    """The source cannot be read, or not as asked."""


class UnknownColumn(BadSource, KeyError):
    """The spec names a column that the source does not have, or in long rows a name that `inside` never holds."""

    def __init__(self, name: str, known: tuple[str, ...], inside: str | None = None) -> None:
        super().__init__(name, known, inside)
        self.name, self.known, self.inside = name, known, inside

    def __str__(self) -> str:
        hint = nearest(self.name, self.known) or ";"
        listed = ", ".join(self.known[:_LISTED]) + (", ..." if len(self.known) > _LISTED else "")
        if self.inside is not None:
            return f"column {self.inside!r} never holds {self.name!r}{hint} it holds {listed}"
        return f"the source has no column {self.name!r}{hint} it has {listed}"


class NotNumeric(BadSource, TypeError):
    """The column of a place or a feature holds no numbers."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(name, kind)
        self.name, self.kind = name, kind

    def __str__(self) -> str:
        return f"column {self.name!r} is {self.kind}, not a number; cast it, or name another column"


class EmptySource(BadSource):
    """There is not a single usable row."""

    def __init__(self, source: str, rejected: int = 0) -> None:
        super().__init__(source, rejected)
        self.source, self.rejected = source, rejected

    def __str__(self) -> str:
        if self.rejected:
            return (
                f"all {self.rejected:,} rows of {self.source} lack a usable place or time; "
                "check that lat, lon and time name the right columns"
            )
        return f"{self.source} holds no rows; nothing was built"


class RowsRejected(BadSource):
    """A strict build met rows without a usable place or time."""

    def __init__(self, reasons: dict[str, int]) -> None:
        super().__init__(reasons)
        self.reasons = reasons

    def __str__(self) -> str:
        told = ", ".join(f"{count:,} with {reason}" for reason, count in sorted(self.reasons.items()))
        return f"strict: rows would be rejected ({told}); mend them, or build without strict to set them aside"


class BadTarget(SynopsisError, ValueError):
    """The target is not ours to write or read."""


class NotASketch(BadTarget, FileNotFoundError):
    """Nothing is there, or something else than a sketch."""


class ForeignFormat(BadTarget):
    """A sketch whose format version this release does not know."""

    def __init__(self, place: str, found: str, known: str) -> None:
        super().__init__(place, found, known)
        self.place, self.found, self.known = place, found, known

    def __str__(self) -> str:
        return (
            f"{self.place} has sketch format {self.found} and this release reads {self.known}; "
            "upgrade synopsis, or build the sketch again"
        )


class SpecDiffers(BadTarget):
    """The sketch at the target was built with another spec."""

    def __init__(self, place: str, fields: dict[str, tuple[str, str]]) -> None:
        super().__init__(place, fields)
        self.place, self.fields = place, fields

    def __str__(self) -> str:
        told = "; ".join(f"{name} was {old}, now {new}" for name, (old, new) in self.fields.items())
        return f"{self.place} was built with another spec ({told}); build into another target, or with the same spec"


class NoJava(SynopsisError, RuntimeError):
    """Spark needs Java 17, 21 or 25."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        return (
            f"building needs Java 17, 21 or 25 ({self.found}); "
            "run pip install 'synopsis[java]', or set JAVA_HOME to one"
        )


class SparkFailed(SynopsisError, RuntimeError):
    """A job failed inside Spark."""

    def __init__(self, what: str, log: str) -> None:
        super().__init__(what, log)
        self.what, self.log = what, log

    def __str__(self) -> str:
        return f"Spark failed: {self.what} (nothing was committed; the whole story is in {self.log})"


class BadQuery(SynopsisError, ValueError):
    """A question that cannot be read or answered, with the place in its text where that shows."""

    def __init__(self, why: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(why, line, column)
        self.why, self.line, self.column = why, line, column

    def __str__(self) -> str:
        where = f"line {self.line}, column {self.column}: " if self.line is not None else ""
        return where + self.why


class UnknownFeature(BadQuery, KeyError):
    """A question names a feature that this sketch does not keep."""

    def __init__(self, name: str, known: tuple[str, ...], line: int | None = None, column: int | None = None) -> None:
        super().__init__(f"no feature {name!r}", line, column)
        self.args = (name, known, line, column)
        self.name, self.known = name, known
        hint = nearest(name, known) or ";"
        self.why = f"no feature {name!r}{hint} this sketch keeps {', '.join(known)}"


class NotKept(BadQuery):
    """A question that needs what this sketch did not keep."""
