"""The report: what a build did, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass, field

from synopsis.core.sizes import format_bytes


@dataclass(frozen=True)
class Report:
    """What a build did."""

    rows: int  #: accepted
    rejected: int  #: set aside for want of a usable place or time
    leaves: int  #: strands or strata of the whole sketch
    sketch_bytes: int  #: of the whole sketch in memory, measured
    stored_bytes: int  #: of everything at the target
    seconds: float
    grain: str
    batch: str
    repeated: bool = False  #: the batch was there already, and nothing was changed
    reasons: dict[str, int] = field(default_factory=dict)  #: why rows were set aside
    missing: dict[str, int] = field(default_factory=dict)  #: values that were NaN, infinite or unreadable, by feature
    kind: str = "strands"  #: what the leaves are

    def __str__(self) -> str:
        if self.repeated:
            return (
                f"batch {self.batch} is in the sketch already; nothing was changed (name another batch to add it again)"
            )
        lines = [
            f"{self.rows:,} rows in {self.seconds:.1f} s ({self.rows / max(self.seconds, 1e-9):,.0f} rows/s)",
            f"sketch: {self.leaves:,} {self.kind} of {self.grain}, {format_bytes(self.sketch_bytes)} in memory, "
            f"{format_bytes(self.stored_bytes)} stored",
        ]
        if self.rejected:
            told = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.reasons.items()))
            lines.append(f"set aside: {self.rejected:,} rows ({told})")
        if self.missing:
            told = ", ".join(f"{count:,} in {feature}" for feature, count in self.missing.items())
            lines.append(f"not finite, counted as missing: {told}")
        return "\n".join(lines)
