"""The pages keep their word: terms are explained, links lead somewhere, commands exist, figures are those measured."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from synopsis.cli import application
from synopsis.spark.observations import REASONS
from synopsis.store.codec import SCHEMA

PAGES = ("README.md", "CHANGELOG.md", "docs")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
#: KLL tosses coins: a figure in a page may differ from the last run by this share of itself.
TOLERANCE = 0.02


@pytest.fixture(scope="session")
def pages(repository: Path) -> dict[Path, str]:
    """Every page by its path."""
    files: list[Path] = []
    for name in PAGES:
        place = repository / name
        files += sorted(place.rglob("*.md")) if place.is_dir() else [place]
    return {file: file.read_text(encoding="utf-8") for file in files}


@pytest.fixture(scope="session")
def glossary(repository: Path) -> list[str]:
    """The lines of the glossary's terms."""
    text = (repository / "docs" / "glossary.md").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.startswith("- ")]


def term_of(line: str) -> str:
    """The term that a line of the glossary explains."""
    match = re.fullmatch(r"- \*\*([^*]+)\*\*: \S.*\.", line)
    assert match is not None, f"a line of the glossary is a term in bold, a colon and a sentence: {line}"
    return match[1]


def slug(heading: str) -> str:
    """A heading as the anchor that readers of Markdown make of it."""
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.strip().lower()))


def in_code(text: str) -> Iterator[str]:
    """Lines of shell blocks, and code within sentences."""
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield from block.splitlines()
    yield from re.findall(r"`([^`\n]+)`", FENCED.sub("", text))


def test_the_glossary_has_one_line_a_term_in_order(glossary: list[str]) -> None:
    terms = [term_of(line).lower() for line in glossary]
    assert terms == sorted(set(terms))
    assert max(map(len, glossary)) <= 120


def test_every_bold_term_of_how_it_works_is_in_the_glossary(repository: Path, glossary: list[str]) -> None:
    text = FENCED.sub("", (repository / "docs" / "how-it-works.md").read_text(encoding="utf-8"))
    used = {term.lower().rstrip(".") for term in re.findall(r"\*\*([^*]+)\*\*", text)}
    known = {term_of(line).lower() for line in glossary}
    unknown = {term for term in used if term not in known and term.removesuffix("s") not in known}
    assert used
    assert not unknown


def test_every_local_link_leads_somewhere(pages: dict[Path, str]) -> None:
    lost = []
    for file, text in pages.items():
        for target in LINK.findall(FENCED.sub("", text)):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            place = (file.parent / name).resolve() if name else file
            headings = re.findall(r"^#+ (.*)$", place.read_text(encoding="utf-8"), re.MULTILINE) if anchor else []
            if not place.exists() or (anchor and anchor not in map(slug, headings)):
                lost.append(f"{file.name}: {target}")
    assert not lost


def test_every_command_in_the_readme_exists(repository: Path) -> None:
    text = (repository / "README.md").read_text(encoding="utf-8")
    named = {match[1] for code in in_code(text) if (match := re.match(r"synopsis ([a-z]+)\b", code))}
    command = typer.main.get_command(application)
    assert {"build", "query", "info"} <= named
    assert named <= set(getattr(command, "commands", {}))


def test_every_target_of_make_in_the_pages_exists(repository: Path, pages: dict[Path, str]) -> None:
    targets = set(re.findall(r"^([a-z]+):", (repository / "Makefile").read_text(), re.MULTILINE))
    named = {
        match[1] for text in pages.values() for code in in_code(text) if (match := re.match(r"make ([a-z]+)\b", code))
    }
    assert {"demo", "test"} <= named
    assert named <= targets


def test_every_file_of_the_code_that_a_page_names_exists(repository: Path, pages: dict[Path, str]) -> None:
    roots = (repository, repository / "src" / "synopsis")
    named = {code for text in pages.values() for code in in_code(text) if re.fullmatch(r"\w+/[\w/]+\.py", code)}
    assert named
    assert {name for name in named if not any((root / name).exists() for root in roots)} == set()


def test_every_column_of_the_store_is_described(repository: Path) -> None:
    text = (repository / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]+`) \| (?:int64|double|list of \w+) \|", text, re.MULTILINE)
    described = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert described == SCHEMA.names


def test_every_reason_against_a_row_is_described(repository: Path) -> None:
    text = " ".join((repository / "docs" / "how-it-works.md").read_text(encoding="utf-8").split())
    assert [reason for reason in REASONS.values() if reason not in text] == []


def test_every_decision_says_what_was_asked_considered_chosen_and_given_up(repository: Path) -> None:
    files = sorted((repository / "docs" / "decisions").glob("*.md"))
    for number, file in enumerate(files, 1):
        text = file.read_text(encoding="utf-8")
        assert file.name.startswith(f"{number:04}-")
        assert text.startswith(f"# {number:04}: ")
        assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Question", "Options", "Choice", "What we gave up"]
        assert 15 <= len(text.splitlines()) <= 45


def test_figures_in_tables_are_those_that_the_benches_measured(repository: Path, pages: dict[Path, str]) -> None:
    """A table row `| words | key | figure |` quotes the key of the results file that its page names."""
    compared, wrong = 0, []
    for file, text in pages.items():
        results = {
            key: value
            for name in re.findall(r"benches/results/(\w+\.json)", text)
            for key, value in json.loads((repository / "benches" / "results" / name).read_text()).items()
        }
        for key, figure in re.findall(r"^\|[^|]*\| `([^`|]+)` \| ([\d.,]+%?) \|$", text, re.MULTILINE):
            quoted = float(figure.rstrip("%").replace(",", "")) / (100.0 if figure.endswith("%") else 1.0)
            compared += 1
            if abs(quoted - results[key]) > TOLERANCE * abs(results[key]):
                wrong.append(f"{file.name}: {key} is {results[key]}, the page says {figure}")
    assert compared >= 8
    assert not wrong
