"""Everyday changes on which nothing is trained: what they hold, and that nothing else has them."""

from __future__ import annotations

import re
from collections import Counter

from corpus.reading import FOLDER, read_stories
from corpus.textbook import read_textbook
from corpus.written import read_groups


def test_the_card_counts_what_is_there() -> None:
    pairs, unrelated = read_textbook()
    page = (FOLDER.parent / "README.md").read_text("utf-8")
    changes = sum(pair.changes for pair in pairs)
    assert f"{changes} everyday changes and {len(pairs) - changes} pairs that both hold" in page
    assert f"{len(unrelated)} unrelated statements" in page
    assert len({pair.language for pair in pairs}) == 11


def test_no_two_changes_begin_alike() -> None:
    pairs, _ = read_textbook()
    openings = Counter(
        " ".join(re.findall(r"\w+", text.casefold())[:3])
        for pair in pairs
        if pair.language == "en"
        for text in (pair.older, pair.newer)
    )
    assert openings.most_common(1)[0][1] <= 5


def test_nothing_that_is_trained_on_holds_a_statement_of_them() -> None:
    pairs, _ = read_textbook()
    told = {text for pair in pairs for text in (pair.older, pair.newer)}
    trained = {
        said.text
        for group in read_groups()
        for said in (group.older, *(later.said for later in group.newer))
    }
    trained |= {
        text
        for story in read_stories()
        for lane in ("turns", "facts")
        for text in story.texts(lane).values()
    }
    assert not told & trained
