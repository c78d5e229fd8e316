"""Every figure of the README and of the comparison is what a result says."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.docs.running import ROOT
from tools.claims import PAGES, problems, renewed


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The pages and the results, to be changed."""
    for page in PAGES:
        (tmp_path / page).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / page, tmp_path / page)
    shutil.copytree(ROOT / "bench" / "results", tmp_path / "bench" / "results")
    return tmp_path


def change(file: Path, pattern: str, new: str) -> None:
    text, count = re.subn(pattern, new, file.read_text("utf-8"), count=1)
    assert count
    file.write_text(text, "utf-8")


@pytest.mark.promise("docs.claims")
def test_pages_and_results_agree() -> None:
    """No figure differs, every claim is stated, every result has a command and a record."""
    assert problems() == []


@pytest.mark.promise("docs.claims")
def test_what_a_page_says_wrongly_is_noticed_and_renewed(copy: Path) -> None:
    """A wrong figure in a sentence and in a table, and a sentence that is gone."""
    readme, comparison = copy / "README.md", copy / "docs" / "comparison.md"
    texts = [page.read_text("utf-8") for page in (readme, comparison)]
    change(readme, r"(and\s+Anaphora\s+finds) \d\d %", r"\1 11 %")
    change(
        comparison, r"precision of injected context \| 0\.\d\d", "precision of injected context | 9"
    )
    lines = problems(copy)
    assert [line.split(":")[0] for line in lines] == ["README.md", "docs/comparison.md"]
    assert [renewed(copy, page.read_text("utf-8")) for page in (readme, comparison)] == texts
    change(readme, r"turns\s+acknowledged", "turns kept")
    assert any(line.startswith("no page says: Of {turns} turns") for line in problems(copy))


@pytest.mark.promise("docs.claims")
def test_a_result_that_changed_is_noticed(copy: Path) -> None:
    """Another figure, one that was renamed, and a result without a date."""
    results = copy / "bench" / "results"
    change(results / "hooks.json", "a hook with a warm process, over that, p50", "a hook, p50")
    rows = json.loads((results / "measured.json").read_text("utf-8"))
    del rows["silence"]
    (results / "measured.json").write_text(json.dumps(rows), "utf-8")
    lines = problems(copy)
    assert any("no figure 'a hook with a warm process" in line for line in lines)
    assert any(line.startswith("bench/results/hooks: not what the measurement") for line in lines)
    assert any(line.startswith("bench/results/silence: measured.json has no") for line in lines)
    assert not any("bench/results/speed:" in line for line in lines)
