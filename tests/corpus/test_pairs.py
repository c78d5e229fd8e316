"""Pairs and changes: each is whole, none is told twice, and none is of a held-out story."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from corpus.counting import PAGE
from corpus.reading import read_split, read_stories

FOLDER = PAGE.parent / "pairs"


@pytest.fixture(scope="module")
def pairs() -> list[dict[str, Any]]:
    files = sorted(FOLDER.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]


def test_each_pair_is_whole(pairs: list[dict[str, Any]]) -> None:
    """Three different wordings, and four statements beside the answer that differ from it."""
    for pair in pairs:
        assert set(pair) == {"lane", "language", "answer", "question", "also", "misleading"}
        assert pair["lane"] in {"turn", "fact"}
        assert len({pair["question"], *pair["also"]}) == 3, pair
        assert len({pair["answer"], *pair["misleading"]}) == 5, pair
        assert all(text.strip() for text in (pair["answer"], *pair["also"], *pair["misleading"]))


def test_each_change_is_labelled() -> None:
    """Two different statements of one lane, and one of four labels; the page says how many."""
    files = sorted((PAGE.parent / "changes").glob("*.jsonl"))
    rows = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    for row in rows:
        assert set(row) == {
            "lane",
            "language",
            "older",
            "newer",
            "older_by",
            "newer_by",
            "question",
            "label",
        }
        assert row["lane"] in {"turn", "fact"}
        assert row["label"] in {"replaces", "holds", "other", "same"}
        assert row["older"] != row["newer"]
        assert row["question"].strip()
    assert len({(row["older"], row["newer"]) for row in rows}) == len(rows)
    assert f"{len(rows):,} of them" in PAGE.read_text("utf-8")


def test_no_answer_stands_twice(pairs: list[dict[str, Any]]) -> None:
    counts = Counter(pair["answer"] for pair in pairs)
    assert [text for text, count in counts.items() if count > 1] == []


def test_nothing_is_of_a_story_that_is_held_out(pairs: list[dict[str, Any]]) -> None:
    written = {text for pair in pairs for text in (pair["answer"], *pair["misleading"])}
    for author in read_split().held_out:
        for story in read_stories(authors=[author]):
            assert not written & set(story.texts("turns").values())
            assert not written & set(story.texts("facts").values())


def test_the_page_says_how_many(pairs: list[dict[str, Any]]) -> None:
    assert f"{len(pairs):,} pairs" in PAGE.read_text("utf-8")
