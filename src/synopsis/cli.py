"""The command line: arguments in, sentences and tables out. A mistake is one sentence and exit code 2."""

from __future__ import annotations

import json
import logging
import math
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from synopsis.core.errors import BadQuery, BadSpec, BadTarget, SynopsisError

application = typer.Typer(
    name="synopsis",
    help="A small, mergeable summary of a spatiotemporal stream, with an interval on every answer.\n\n"
    "Build one:  synopsis build 'rows/*.csv' --lat lat --lon lon --time ts --features temp_c,rh --to weather.syn\n\n"
    "Ask it:     synopsis query weather.syn \"SELECT MEAN(temp_c) WHERE location LIKE '6g%'\"",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Cut(StrEnum):
    """What becomes of strands that a scope cuts."""

    keep = "keep"
    drop = "drop"


class Format(StrEnum):
    """How an answer is written."""

    table = "table"
    json = "json"
    geojson = "geojson"
    csv = "csv"
    arrow = "arrow"
    parquet = "parquet"


@application.command()
def build(
    source: Annotated[list[str], typer.Argument(help="files, folders or globs of Parquet, CSV or JSON lines")],
    to: Annotated[str, typer.Option(help="folder of the sketch; made where there is none, added to where there is")],
    lat: Annotated[str, typer.Option(help="column of latitudes, degrees")],
    lon: Annotated[str, typer.Option(help="column of longitudes, degrees")],
    time: Annotated[str, typer.Option(help="column of times: timestamps, dates, ISO texts, epochs")],
    features: Annotated[str, typer.Option(help="numeric columns to summarise, parted by commas")],
    entity: Annotated[str | None, typer.Option(help="column that says who observed")] = None,
    precision: Annotated[int, typer.Option(help="finest geohash length the planner may use")] = 4,
    bucket: Annotated[str, typer.Option(help="finest span of time the planner may use, as 1h, 1d, 1mo")] = "1d",
    memory: Annotated[str, typer.Option(help="what the sketch may take in memory")] = "8MB",
    exact_at: Annotated[
        str | None, typer.Option(help="a grain at which all must be exact, as 4,1mo; else paths")
    ] = None,
    timezone: Annotated[str, typer.Option(help="calendar of the buckets; zone of times that name none")] = "UTC",
    name_column: Annotated[str | None, typer.Option(help="long rows: the column that names the feature")] = None,
    value_column: Annotated[str | None, typer.Option(help="long rows: the column of its value")] = None,
    time_unit: Annotated[str | None, typer.Option(help="of numeric times: s, ms, us or ns; else found out")] = None,
    batch: Annotated[str | None, typer.Option(help="name of what is added; the same name again adds nothing")] = None,
    strict: Annotated[bool, typer.Option(help="refuse rows without a usable place or time")] = False,
    master: Annotated[str | None, typer.Option(help="Spark master, as local[2] or spark://host:7077")] = None,
    conf: Annotated[list[str] | None, typer.Option(help="Spark setting, as name=value; may be repeated")] = None,
    quiet: Annotated[bool, typer.Option(help="no progress")] = False,
) -> None:
    """Build a sketch from observations, or add to one."""
    from synopsis.core.spec import Spec
    from synopsis.wiring import build as run

    spec = Spec(
        lat=lat,
        lon=lon,
        time=time,
        features=[name.strip() for name in features.split(",")],
        entity=entity,
        precision=precision,
        bucket=bucket,
        memory=memory,
        exact_at=_grain(exact_at),
        timezone=timezone,
        name_column=name_column,
        value_column=value_column,
        time_unit=time_unit,
    )
    asked: Any = source[0] if len(source) == 1 else source
    settings = dict(_setting(text) for text in conf or [])
    report = run(
        asked, spec, to, batch=batch, strict=strict, master=master, conf=settings, progress=False if quiet else None
    )
    typer.echo(str(report))


@application.command()
def query(
    sketch: Annotated[str, typer.Argument(help="folder of a sketch")],
    question: Annotated[str, typer.Argument(help="SELECT ... WHERE ... GROUP BY ..., or the same as JSON")],
    format: Annotated[Format, typer.Option(help="how the answer is written")] = Format.table,
    strict: Annotated[bool, typer.Option("--strict", help="refuse groups finer than what the sketch keeps")] = False,
    cut: Annotated[Cut | None, typer.Option(help="count what the scope cuts whole, or not at all")] = None,
    other: Annotated[list[str] | None, typer.Option(help="NAME=FOLDER of a sketch that FROM can name")] = None,
    to: Annotated[str | None, typer.Option(help="folder to save the part that plain columns select")] = None,
) -> None:
    """Ask a sketch: every number comes with an interval and what it promises.

    Functions: COUNT, SUM, MEAN, STD, VAR, MIN, MAX, COVARIANCE, CORRELATION, QUANTILE, MEDIAN, and + - * / of them.
    Places: location LIKE 'dj%', = or IN; BOX(s, w, n, e), WITHIN('POLYGON (...)'), NEAR(lat, lon, km).
    Times: time >= '2025-01-01' AND time < '2025-02-01'. Features: rh > 80, wind_ms > MEAN(wind_ms). AND, OR, NOT.
    Groups: GROUP BY CELL(3), BUCKET('1mo'), BIN(rh, 10) HAVING COUNT(*) > 9. ORDER BY, LIMIT.
    Contrasts: MEAN(rh) FILTER (WHERE ...) - MEAN(rh); FROM (SELECT ...) AS a JOIN (SELECT ...) AS b USING (cell).
    Parts: SELECT temp_c, rh WHERE location LIKE '6g%' --to part.syn. EXPLAIN in front of a question tells how.
    """
    from synopsis.database import open as open_sketch
    from synopsis.sketches import Sketch

    database = open_sketch(sketch)
    named = dict(_setting(text) for text in other or [])
    sketches: dict[str, Sketch] = {name: open_sketch(folder) for name, folder in named.items()}
    if question.lstrip()[:8].upper() == "EXPLAIN ":
        typer.echo(str(database.explain(question, sketches=sketches)))
        return
    answer = database.query(question, strict=strict, cut=None if cut is None else cut.value, sketches=sketches)
    if to is not None:
        if not isinstance(answer, Sketch):
            raise BadQuery("--to saves a part of the sketch, which plain columns select; these are statistics")
        answer.save(to)
    if format is Format.table or (isinstance(answer, Sketch) and format is Format.geojson):
        typer.echo(str(answer))
        return
    if format is Format.geojson:
        typer.echo(json.dumps(answer.to_geojson(), indent=1))
        return
    table = answer.to_arrow()
    if format is Format.json:
        rows = [{name: _finite(value) for name, value in row.items()} for row in table.to_pylist()]
        typer.echo(json.dumps(rows, default=str, indent=1))
        return
    import pyarrow as pa

    stream = pa.BufferOutputStream()
    if format is Format.csv:
        import pyarrow.csv

        pyarrow.csv.write_csv(table, stream)
    elif format is Format.arrow:
        with pa.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table)
    else:
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, stream)
    sys.stdout.buffer.write(stream.getvalue())
    sys.stdout.buffer.flush()


@application.command()
def synthesize(
    sketch: Annotated[str, typer.Argument(help="folder of a sketch")],
    to: Annotated[str, typer.Option(help="file or address: .parquet, .csv, .arrow, or .vw with --label")],
    rows: Annotated[int | None, typer.Option(help="how many rows")] = None,
    share: Annotated[float | None, typer.Option(help="or how large a share of those that there are, as 0.1")] = None,
    where: Annotated[str | None, typer.Option(help='a condition as in a question, "rh > 80 AND lat < 0"')] = None,
    seed: Annotated[int, typer.Option(help="the same seed draws the same rows")] = 0,
    label: Annotated[str | None, typer.Option(help="of .vw: the feature to learn")] = None,
    features: Annotated[str | None, typer.Option(help="with these alone, comma-separated; all, else")] = None,
) -> None:
    """Draw rows that were never observed, with the joint structure of those that were."""
    from synopsis.database import open as open_sketch

    asked = None if features is None else [name.strip() for name in features.split(",")]
    drawn = open_sketch(sketch).synthetic(rows, share, where, seed, asked)
    suffix = Path(to).suffix.lower()
    if (suffix == ".vw") != (label is not None):
        raise BadTarget("--label names what is learnt from a .vw file, which needs one; leave it out for others")
    if suffix == ".vw" and label is not None:
        drawn.to_vw(to, label)
        return
    writers = {".parquet": drawn.to_parquet, ".csv": drawn.to_csv, ".arrow": drawn.to_ipc}
    if suffix not in writers:
        raise BadTarget(f"--to is {to!r}; its suffix says how it is written: .parquet, .csv, .arrow or .vw")
    writers[suffix](to)


@application.command()
def info(
    sketch: Annotated[str, typer.Argument(help="folder of a sketch")],
    as_json: Annotated[bool, typer.Option("--json", help="as JSON")] = False,
) -> None:
    """Show what a sketch is: layout, what is exact, what was given up, bytes by part, batches."""
    from synopsis.core.sizes import format_bytes
    from synopsis.database import open as open_sketch

    facts = open_sketch(sketch).info()
    if as_json:
        typer.echo(json.dumps(facts, indent=1))
        return
    leaves = next(name for name in ("strands", "strata") if name in facts)
    typer.echo(f"{facts['place']}: {facts['rows']:,} rows in {facts[leaves]:,} {leaves} of {facts['grain']}")
    typer.echo(f"features   {', '.join(facts['features'])}")
    if leaves == "strands":
        typer.echo(f"exact      {', '.join(facts['exact'])} on whole strands; elsewhere certain intervals")
    else:
        typer.echo("exact      " + "; ".join(f"{name} of {grain}" for name, grain in facts["exact"].items()))
        typer.echo("given up   " + "; ".join(f"{name}: {what}" for name, what in facts["given_up"].items()))
    typer.echo(f"memory     {format_bytes(facts['sketch_bytes'])} of {format_bytes(facts['memory'])} allowed")
    typer.echo("parts      " + ", ".join(f"{name} {format_bytes(size)}" for name, size in facts["parts"].items()))
    typer.echo(f"stored     {format_bytes(facts['stored_bytes'])}")
    for function, errors in facts.get("expected_error", {}).items():
        told = ", ".join(f"{error:g}" for error in errors.values() if error is not None)
        unit = {"count": "of itself", "correlation": ""}.get(function, "standard deviations")
        typer.echo(
            f"error      {function} {told or 'not known'} {unit}".rstrip()
            + (" with 0, 1, ... predicates" if told else "")
        )
    if tree := facts.get("tree"):
        typer.echo(
            f"tree       {' > '.join(tree['planes'])}: {tree['vertices']:,} vertices, {tree['edges']:,} edges "
            f"(reversed {tree['vertices_reversed']:,} and {tree['edges_reversed']:,})"
        )
    for batch in facts["batches"]:
        aside = sum(batch["rejected"].values())
        typer.echo(f"batch      {batch['id']}: {batch['rows']:,} rows" + (f", {aside:,} set aside" if aside else ""))


@application.command()
def demo(
    to: Annotated[Path | None, typer.Option(help="keep the sketch here; else a temporary folder")] = None,
) -> None:
    """Build a sketch of 336,776 real flights of 2013, ask three questions, and show the truth beside each answer."""
    from synopsis.demo import run

    run(to, typer.echo)


def _grain(text: str | None) -> tuple[int, str] | None:
    if text is None:
        return None
    length, _, span = text.partition(",")
    if not length.strip().isdigit() or not span.strip():
        raise BadSpec(f"--exact-at is {text!r}; give a geohash length and a span, as 4,1mo")
    return int(length), span.strip()


def _finite(value: Any) -> Any:
    """A value as JSON takes it, which knows neither infinity nor NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise BadSpec(f"--conf is {text!r}; give name=value, as spark.executor.memory=2g")
    return name.strip(), value.strip()


def main() -> None:
    """Run the command line."""
    logging.getLogger().addHandler(logging.NullHandler())  # libraries that log must not talk between our sentences
    try:
        application()
    except (SynopsisError, OSError) as problem:  # OSError: a disk that is full or cannot be written
        typer.echo(f"synopsis: {problem}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
