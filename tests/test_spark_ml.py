"""The page about Spark ML: its blocks are run as they stand, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.test_sketches import PATHS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_block_of_the_page_runs(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from synopsis.spark import session

    PATHS.save(tmp_path / "weather.syn")
    monkeypatch.chdir(tmp_path)
    session.session()  # with the settings that Python workers need
    blocks = BLOCK.findall((repository / "docs" / "spark-ml.md").read_text(encoding="utf-8"))
    assert len(blocks) >= 6
    names: dict[str, object] = {}
    try:
        for block in blocks:
            exec(compile(block, "docs/spark-ml.md", "exec"), names)
    finally:
        session.stop()
    assert any((tmp_path / "rows").glob("*.parquet"))
    assert (tmp_path / "rows.vw").stat().st_size > 0
