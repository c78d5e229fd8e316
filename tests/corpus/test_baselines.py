"""Three searches over one small story, through the engine with the bundled model."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus.baselines import METHODS, main
from corpus.reading import read_stories
from corpus.scoring import read_results, score
from tests.corpus.stories import small_story, written


def test_every_search_is_asked_both_ways(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page has its rows, and the files of results can be scored again."""
    written(tmp_path / "stories", small_story())
    page, found = tmp_path / "page.md", tmp_path / "found"
    given = {"--stories": tmp_path / "stories", "--authors": "a01", "--page": page}
    given |= {"--results": found}
    assert main([str(word) for pair in given.items() for word in pair]) == 0
    text = page.read_text("utf-8")
    assert text in capsys.readouterr().out
    for lane in ("turns", "facts"):
        for method in METHODS:
            assert f"| {lane} | {method} | 2 | " in text
    files = {file.stem: read_results(file) for file in found.glob("*.jsonl")}
    assert sorted(files) == ["anaphora", "anaphora-no-floor", "bm25", "cosine"]
    stories = read_stories(tmp_path / "stories")
    for name in ("cosine", "anaphora-no-floor"):
        rows = {row.group: row.figures for row in score(stories, files[name])}
        assert rows["facts",]["recall@10"].value == 1.0, name
        assert rows["turns",]["in 10"].value == 1.0, name
