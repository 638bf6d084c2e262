"""The README's tour: every block is run as it stands, and prints what the README shows."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: A progress line; on a terminal it is a bar, and gone when the work is done.
PROGRESS = re.compile(r"^[\w ]+: [\d,]+ rows, [\d,]+ rows/s, \d+ of \d+ tasks\n", re.MULTILINE)
END = "---- end of a block ----"
PATIENCE_S = 500.0


@dataclass(frozen=True)
class Block:
    """A fenced block of the tour, and the output that the README shows beneath it, if any."""

    language: str
    code: str
    shown: str | None = None


def blocks_of(readme: str) -> list[Block]:
    """The blocks of the tour in order; a block of `text` belongs to the one before it."""
    (tour,) = re.findall(r"^## A five-minute tour$(.*?)^## ", readme, re.MULTILINE | re.DOTALL)
    blocks: list[Block] = []
    for language, body in FENCED.findall(tour):
        if language == "text":
            assert blocks[-1].shown is None, "two outputs for one block"
            blocks[-1] = Block(blocks[-1].language, blocks[-1].code, body)
        else:
            blocks.append(Block(language, body))
    return blocks


def run(command: list[str], folder: Path) -> str:
    """What a command prints on both streams, as a person sees it when it is done."""
    beside = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}
    told = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | beside,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
    )
    assert told.returncode == 0, f"exit code {told.returncode} of {command[-1]}\n{told.stdout}"
    return PROGRESS.sub("", told.stdout)


@pytest.fixture(scope="module")
def printed(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Block, str]]:
    """Every block of the tour with what it printed. Shell blocks are run one by one, Python ones as one session."""
    folder = tmp_path_factory.mktemp("tour")
    outputs: list[tuple[Block, str]] = []
    for language, together in groupby(blocks_of((repository / "README.md").read_text()), lambda block: block.language):
        blocks = list(together)
        if language == "sh":
            outputs += [(block, run(["sh", "-e", "-u", "-c", block.code], folder)) for block in blocks]
        else:
            program = "".join(f"{block.code}\nprint({END!r})\n" for block in blocks)
            told = run(["python", "-c", program], folder).split(f"{END}\n")
            outputs += list(zip(blocks, told, strict=False))
    return outputs


def test_the_tour_has_blocks_of_shell_and_of_python_and_no_others(repository: Path) -> None:
    blocks = blocks_of((repository / "README.md").read_text())
    assert {block.language for block in blocks} == {"sh", "python"}
    assert sum(block.shown is not None for block in blocks) >= 10


def test_every_block_of_the_tour_runs_and_prints_what_the_readme_shows(printed: list[tuple[Block, str]]) -> None:
    checker, options = doctest.OutputChecker(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    different = [
        f"{block.code}\nshown in the README:\n{block.shown}\nprinted:\n{told}"
        for block, told in printed
        if block.shown is not None and not checker.check_output(block.shown, told, options)
    ]
    assert not different, "\n\n".join(different)
