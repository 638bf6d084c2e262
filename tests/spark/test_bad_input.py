"""Bad input gets a clear answer and loses nothing: rows are set aside with a reason, builds refused in one sentence."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import synopsis as syn
from synopsis import cli
from synopsis.core.errors import EmptySource, RowsRejected
from synopsis.core.spec import Spec
from synopsis.spark import jobs
from synopsis.spark.observations import observations
from synopsis.spark.sources import located, opened
from synopsis.testing.rows import Rows
from synopsis.testing.strategies import close

pytestmark = pytest.mark.usefixtures("spark")

GOOD = Rows.of_stations(40)
SPEC = Spec("lat", "lon", "ts", GOOD.features, exact_at=(3, "1mo"))
NAN, INF = float("nan"), float("inf")

#: Places, times and first values of bad rows, and why they are set aside.
BAD = [
    (None, 1.0, 0, "no place"),
    (1.0, NAN, 0, "place not a finite number"),
    (INF, 1.0, 0, "place not a finite number"),
    (-90.5, 1.0, 0, "place out of range"),
    (1.0, 180.5, 0, "place out of range"),
    (1.0, 1.0, None, "no time"),
    (1.0, 1.0, 300_000_000_000_000_000, "time out of range"),
    (1.0, 1.0, -70_000_000_000_000_000, "time out of range"),
]


def with_bad_rows() -> pa.Table:
    """The good rows, bad ones, and among the good ones values that are no finite numbers."""
    bad = pa.table(
        {
            "station": pa.array([99] * len(BAD), pa.int64()),
            "lat": pa.array([row[0] for row in BAD], pa.float64()),
            "lon": pa.array([row[1] for row in BAD], pa.float64()),
            "ts": pa.array([row[2] for row in BAD], pa.timestamp("us", "UTC")),
        }
        | {name: pa.array([5.0] * len(BAD)) for name in GOOD.features}
    )
    values = GOOD.values.copy()
    values[0, :3], values[1, 3] = [np.inf, -np.inf, 1e200], np.inf
    good = GOOD.table()
    for position, name in enumerate(GOOD.features):
        column = [None if x != x else x for x in values[position].tolist()]
        good = good.set_column(4 + position, name, pa.array(column, pa.float64()))
    good = good.set_column(6, "rain", pa.array([NAN if x is None else x for x in good["rain"].to_pylist()]))
    return pa.concat_tables([bad.slice(0, 4), good, bad.slice(4)])


def accepted() -> Rows:
    values = GOOD.values.copy()
    values[0, :3] = values[1, 3] = np.nan
    return Rows(GOOD.station, GOOD.latitude, GOOD.longitude, GOOD.instants_us, values, GOOD.features)


def test_bad_rows_are_set_aside_with_their_reasons_and_bad_values_are_missing(tmp_path: Path) -> None:
    report = syn.build(with_bad_rows(), SPEC, tmp_path / "w.syn", batch="first", progress=False)
    reasons = Counter(row[3] for row in BAD)
    absent = int(np.isnan(GOOD.values[2]).sum())
    assert (report.rows, report.rejected, report.reasons) == (len(GOOD), len(BAD), dict(reasons))
    assert report.missing == {"temperature": 3, "pressure": 1, "rain": absent}
    assert f"set aside: {len(BAD)} rows (1 no place, 1 no time, 2 place not a finite number, " in str(report)
    assert f"counted as missing: 3 in temperature, 1 in pressure, {absent} in rain" in str(report)
    db = syn.open(tmp_path / "w.syn")
    assert close(db.strands, accepted().strands(db.layout))
    rejects = db.rejects()
    assert rejects.column_names == ["batch", "reason", "row"]
    assert Counter(rejects["reason"].to_pylist()) == reasons
    assert set(rejects["batch"].to_pylist()) == {"first"}
    by_reason = dict(zip(rejects["reason"].to_pylist(), map(json.loads, rejects["row"].to_pylist()), strict=True))
    assert by_reason["no place"].items() >= {"station": 99, "lon": 1.0, "rain": 5.0}.items()
    assert by_reason["no time"]["lat"] == 1.0
    (batch,) = db.info()["batches"]
    assert (batch["rejected"], batch["missing"]) == (dict(reasons), report.missing)


def test_accepted_rows_are_those_with_no_reason_against_them(spark: SparkSession) -> None:
    with opened(spark, located(with_bad_rows())) as source:
        observed = observations(source, SPEC)
        plain = observed.frame.where("reason = 0").drop("reason").orderBy("instant_us", "latitude", "longitude")
        found = observed.accepted.orderBy("instant_us", "latitude", "longitude")
        assert found.toArrow() == plain.toArrow()
        assert found.count() == len(GOOD)


def test_a_strict_build_refuses_them_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RowsRejected, match=r"strict: rows would be rejected \(1 with no place, 1 with no time, 2 with"):
        syn.build(with_bad_rows(), SPEC, tmp_path / "w.syn", strict=True, progress=False)
    assert list(tmp_path.iterdir()) == []
    assert syn.build(GOOD.table(), SPEC, tmp_path / "w.syn", strict=True, progress=False).rows == len(GOOD)


def test_rejects_add_up_over_batches_and_a_refused_build_adds_none(tmp_path: Path) -> None:
    place, table = tmp_path / "w.syn", with_bad_rows()
    for batch, rows in (("one", table.slice(0, 20)), ("two", GOOD.table()), ("three", table.slice(20))):
        syn.build(rows, SPEC, place, batch=batch, progress=False)
        assert syn.build(rows, SPEC, place, batch=batch, progress=False).repeated
    with pytest.raises(EmptySource, match="all 4 rows of the table lack a usable place or time; check that lat"):
        syn.build(table.slice(0, 4), SPEC, place, batch="four", progress=False)
    with pytest.raises(RowsRejected):
        syn.build(table, SPEC, place, batch="five", strict=True, progress=False)
    assert Counter(syn.open(place).rejects()["batch"].to_pylist()) == {"one": 4, "three": 4}


def test_rejects_are_written_in_files_of_bounded_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(jobs.BOUNDED_BATCHES, "spark.sql.execution.arrow.maxBytesPerBatch", "1")
    syn.build(with_bad_rows(), SPEC, tmp_path / "w.syn", progress=False)
    assert len(list((tmp_path / "w.syn" / "rejects").rglob("*.parquet"))) == len(BAD)
    assert syn.open(tmp_path / "w.syn").rejects().num_rows == len(BAD)


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def command(
    *arguments: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["synopsis", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        cli.main()
    said = capsys.readouterr()
    return int(left.value.code or 0), said.out, said.err


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that cannot be built from, each for a reason of its own; and a good one, and a sketch of it."""
    folder = tmp_path_factory.mktemp("bad")
    good = GOOD.table().append_column("name", pa.array(["x"] * len(GOOD)))
    pq.write_table(good, folder / "good.parquet")
    pq.write_table(good.slice(0, 0), folder / "none.parquet")
    pq.write_table(good.set_column(1, "lat", pa.array([NAN] * len(GOOD))), folder / "nowhere.parquet")
    pq.write_table(with_bad_rows(), folder / "some.parquet")
    pq.write_table(good.set_column(3, "ts", pa.array([True] * len(GOOD))), folder / "boolean.parquet")
    damaged = bytearray((folder / "good.parquet").read_bytes())
    damaged[8:400] = bytes(392)  # the footer is whole, the pages are not
    (folder / "damaged.parquet").write_bytes(damaged)
    lines = [f"1,2,2025-01-01T00:00:00Z,{k}.5,{k % 7},0,x\n" for k in range(40_000)]
    text = "lat,lon,ts,temperature,pressure,rain,name\n" + "".join(lines)
    (folder / "truncated.csv.gz").write_bytes(gzip.compress(text.encode())[:-5_000])
    (folder / "header.csv").write_text("lat,lon,ts,temperature,pressure,rain\n")
    (folder / "empty.csv").touch()
    (folder / "words.csv").write_text("lat,lon,ts,temperature,pressure,rain\nnorth,west,2025-01-01,1,2,3\n")
    (folder / "order").mkdir()
    (folder / "order" / "a.csv").write_text("lat,lon,ts,temperature,pressure,rain\n1,2,2025-01-01,1,2,3\n")
    (folder / "order" / "b.csv").write_text("lon,lat,ts,temperature,pressure,rain\n1,2,2025-01-01,1,2,3\n")
    (folder / "array.json").write_text(json.dumps([{"lat": 1.0, "lon": 2.0}], indent=1))
    (folder / "types").mkdir()
    pq.write_table(good, folder / "types" / "a.parquet")
    pq.write_table(good.set_column(4, "temperature", pa.array([1] * len(GOOD))), folder / "types" / "b.parquet")
    syn.build(folder / "good.parquet", SPEC, folder / "w.syn", progress=False)
    return folder


BUILD = ("--lat", "lat", "--lon", "lon", "--time", "ts", "--quiet")
FEATURES = ("--features", "temperature,pressure,rain", "--exact-at", "3,1mo")

#: What is asked, and what is answered.
REFUSED = {
    "an unknown column": (
        ("good.parquet", "--features", "temprature"),
        r"no column 'temprature'; did you mean 'temperature'\? it has station, lat",
    ),
    "a column of words": (
        ("good.parquet", "--features", "name"),
        r"column 'name' is string, not a number; cast it",
    ),
    "places that are words": (
        ("words.csv", *FEATURES),
        r"column 'lat' is text, not a number; cast it",
    ),
    "times that are none": (
        ("boolean.parquet", *FEATURES),
        r"time column 'ts' is boolean; give timestamps",
    ),
    "no rows": (
        ("none.parquet", *FEATURES),
        r"none\.parquet holds no rows; nothing was built",
    ),
    "a header and no rows": (
        ("header.csv", *FEATURES),
        r"header\.csv holds no rows",
    ),
    "an empty file": (
        ("empty.csv", *FEATURES),
        r"empty\.csv holds no rows",
    ),
    "nothing but bad rows": (
        ("nowhere.parquet", *FEATURES),
        r"all 40 rows of .*nowhere\.parquet lack a usable place or time; check",
    ),
    "bad rows, strictly": (
        ("some.parquet", *FEATURES, "--strict"),
        r"strict: rows would be rejected \(.*\); mend them, or build without strict",
    ),
    "a promise that does not fit": (
        ("good.parquet", *FEATURES, "--memory", "1KB"),
        r"exact_at=\(3, '1mo'\) takes [\d,]+ bytes and memory is 1,000; give memory=",
    ),
    "damaged Parquet": (
        ("damaged.parquet", *FEATURES),
        r"damaged\.parquet cannot be read \(.+\); mend it or leave it out",
    ),
    "truncated gzip": (
        ("truncated.csv.gz", *FEATURES),
        r"truncated\.csv\.gz cannot be read \(.+\); mend it or leave it out",
    ),
    "headers that differ": (
        ("order", *FEATURES),
        r"[ab]\.csv cannot be read \(CSV header does not conform.*\); mend it",
    ),
    "types that differ": (
        ("types", *FEATURES),
        r"[ab]\.parquet cannot be read \(.+\); mend it or leave it out",
    ),
    "JSON that is not lines": (
        ("array.json", *FEATURES),
        r"array\.json is not JSON lines; write one object a line",
    ),
    "a name that long rows lack": (
        ("good.parquet", "--features", "rain", "--name-column", "name", "--value-column", "pressure"),
        r"column 'name' never holds 'rain'; it holds x",
    ),
    "a Spark setting that makes no sense": (
        ("good.parquet", *FEATURES, "--conf", "spark.sql.shuffle.partitions=many"),
        r"Spark failed: .*spark\.sql\.shuffle\.partitions.*\.log\)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_command_line_answers_in_one_sentence_and_touches_nothing(
    case: str, sources: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (file, *arguments), sentence = REFUSED[case]
    monkeypatch.chdir(tmp_path)
    code, out, err = command(
        "build", sources / file, *BUILD, *arguments, "--to", "new.syn", capsys=capsys, monkeypatch=monkeypatch
    )
    assert (code, out) == (2, "")
    assert re.fullmatch(rf"synopsis: .*{sentence}.*\n", err), err
    assert list(tmp_path.iterdir()) == []


def test_a_sketch_that_is_there_stays_as_it_is(
    sources: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(sources / "w.syn")
    for case in (
        "no rows",
        "nothing but bad rows",
        "bad rows, strictly",
        "truncated gzip",
        "a promise that does not fit",
    ):
        (file, *arguments), _ = REFUSED[case]
        code, _, err = command(
            "build",
            sources / file,
            *BUILD,
            *arguments,
            "--batch",
            case,
            "--to",
            sources / "w.syn",
            capsys=capsys,
            monkeypatch=monkeypatch,
        )
        assert (code, err.count("\n")) == (2, 1), err
        assert contents(sources / "w.syn") == before, case


def test_the_command_line_builds_tells_and_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words among numbers are missing values, in the report too; the second time nothing is changed."""
    rows = [f"{k % 5},{k % 3},2025-01-{k % 28 + 1:02},{k}\n" for k in range(50)]
    (tmp_path / "a.csv").write_text("lat,lon,ts,x\n" + "".join(rows) + "1,1,2025-01-01,n/a\n,1,2025-01-01,1\n")
    place, run = tmp_path / "w.syn", {"capsys": capsys, "monkeypatch": monkeypatch}
    build = ("build", tmp_path / "a.csv", *BUILD, "--features", "x", "--to", place, "--batch", "b1")
    code, out, err = command(*build, **run)
    assert (code, err) == (0, "")
    assert re.match(r"51 rows in [\d.]+ s \([\d,]+ rows/s\)\nsketch: [\d,]+ strata of [\d,]+ places x ", out)
    assert "set aside: 1 rows (1 no place)\n" in out
    assert "counted as missing: 1 in x\n" in out
    code, out, err = command(*build, **run)
    assert (code, err) == (0, "")
    assert out.startswith("batch b1 is in the sketch already; nothing was changed")
    code, out, _ = command("query", place, "SELECT COUNT(*), SUM(x)", "--format", "csv", **run)
    assert code == 0
    code, out, _ = command("info", place, "--json", **run)
    assert (code, json.loads(out)["rows"]) == (0, 51)
