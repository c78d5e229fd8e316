"""What hands wrote for training: its form, how much there is, and what the page says of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from corpus.agreement import measure_labels
from corpus.counting import PAGE
from corpus.reading import CorpusError, read_stories
from corpus.written import read_chains, read_exchanges, read_groups, read_wanted


def test_groups_set_what_replaces_against_what_holds() -> None:
    """Ten hands, half as chat, a quarter in other languages; the page gives the numbers."""
    groups = read_groups()
    labels = Counter(later.label for group in groups for later in group.newer)
    page = PAGE.read_text("utf-8")
    assert f"{labels.total():,} later statements in {len(groups)} groups" in page
    assert len({group.hand for group in groups}) == 10
    assert all(
        [later.label for later in group.newer].count("replaces") >= 2
        and {"holds", "other"} <= {later.label for later in group.newer}
        for group in groups
    )
    size_of = Counter({group.lane: 0 for group in groups})
    for group in groups:
        size_of[group.lane] += len(group.newer)
    assert abs(size_of["turns"] - size_of["facts"]) < labels.total() / 20
    foreign = sum(len(group.newer) for group in groups if group.language != "en")
    assert 4 * foreign >= labels.total()
    texts = [later.said.text for group in groups for later in group.newer]
    assert len(set(texts)) == len(texts)


def test_a_second_reader_labels_alike() -> None:
    """The page states how far, on 500 later statements."""
    share = measure_labels()
    assert share >= 0.9
    assert f"{share:.3f}".removeprefix("0") in PAGE.read_text("utf-8")


def test_what_is_begun_is_whole() -> None:
    """Every line has the form, and every question an answer or a near miss."""
    exchanges, chains = read_exchanges(), read_chains()
    page = " ".join(PAGE.read_text("utf-8").split())
    asked = sum(len(chain.questions) for chain in chains)
    assert f"{len(exchanges)} questions with a short reply" in page
    assert f"{len(chains)} chains of values of one attribute, and {asked} questions" in page
    assert all(len(one.questions) >= 2 and one.misleading for one in exchanges)
    wanted = read_wanted(read_stories())
    assert all(any(one.misleading.values()) for one in wanted)
    assert {one.hand for one in wanted} == {
        folder.name for folder in (PAGE.parent / "questions").iterdir()
    }


@pytest.mark.parametrize(
    ("read", "row", "problem"),
    [
        (read_groups, {"lane": "fact"}, "language is missing"),
        (read_exchanges, {"turns": [], "ask": 0, "reply": 0}, "line 1.ask: no such place"),
        (read_chains, {"lane": "chat"}, "language is missing"),
    ],
)
def test_a_line_of_another_form_is_named(
    read: Callable[[Path], Sequence[object]], row: object, problem: str, tmp_path: Path
) -> None:
    """The error says in which line of which file, and what is wrong."""
    (tmp_path / "g01.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    with pytest.raises(CorpusError, match=r"g01.jsonl: line 1") as caught:
        read(tmp_path)
    assert problem in str(caught.value)
