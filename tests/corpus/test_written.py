"""What hands wrote for training: its form, how much there is, and what the page says of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from corpus.agreement import (
    measure_exchanges,
    measure_labels,
    measure_past,
    measure_plain,
    measure_questions,
)
from corpus.counting import PAGE
from corpus.reading import CorpusError, read_stories
from corpus.written import ROOT, read_chains, read_exchanges, read_groups, read_wanted


def test_plain_groups_set_another_value_against_another_thing() -> None:
    """In nearly the same words; the page gives the numbers."""
    groups = read_groups(ROOT / "plain")
    labels = Counter(later.label for group in groups for later in group.newer)
    page = PAGE.read_text("utf-8")
    assert f"{labels.total():,} later statements in {len(groups)} plain groups" in page
    assert all(
        [later.label for later in group.newer].count("replaces") == 2
        and {"holds", "same"} <= {later.label for later in group.newer}
        for group in groups
    )


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


@pytest.mark.parametrize(
    "measure", [measure_labels, measure_plain, measure_questions, measure_exchanges, measure_past]
)
def test_a_second_reader_is_of_one_mind(measure: Callable[[], float]) -> None:
    """The page states how far, on 500 of each kind, 300 of the plain ones."""
    share = measure()
    assert share >= 0.9
    assert f"{share:.3f}".removeprefix("0") in PAGE.read_text("utf-8")


def test_the_page_counts_what_was_written() -> None:
    """Every line has the form, every exchange a near one beside it, every question its hand."""
    exchanges, chains, stories = read_exchanges(), read_chains(), read_stories()
    page = " ".join(PAGE.read_text("utf-8").split())
    wanted = read_wanted(stories)
    near = sum(not (one.turns or one.facts) for one in wanted)
    counted = (
        f"{len(wanted):,} short, vague questions over the stories",
        f"{near:,} are near misses",
        f"{len(exchanges):,} questions with a short reply",
        f"{sum(len(one.questions) for one in exchanges):,} questions; `misleading`",
        f"{len(chains)} chains of values of one attribute",
        f"{sum(len(chain.questions) for chain in chains)} questions for the former",
    )
    assert [line for line in counted if line not in page] == []
    assert all(len(one.questions) >= 2 and one.misleading for one in exchanges)
    assert all(any(one.misleading.values()) for one in wanted)
    assert {one.hand for one in wanted} == {
        folder.name for folder in (PAGE.parent / "questions").iterdir()
    }


def test_hands_wrote_as_much_as_was_asked() -> None:
    """Enough of each kind, in ten languages beside English, and few of one form."""
    wanted = read_wanted(read_stories())
    assert len(wanted) >= 8000
    assert sum(not (one.turns or one.facts) for one in wanted) >= 1500
    assert len(read_exchanges()) >= 1500
    assert sum(len(chain.questions) for chain in read_chains()) >= 600
    assert len({one.language for one in wanted}) >= 11
    openings = Counter(" ".join(one.text.lower().split()[:2]) for one in wanted)
    assert max(openings.values()) < len(wanted) / 10


def test_a_text_is_told_in_every_language() -> None:
    """A translation has twelve languages, and none stands twice."""
    files = sorted((PAGE.parent / "translations").glob("*.jsonl"))
    rows = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    assert f"{len(rows)} everyday statements and questions" in " ".join(
        PAGE.read_text("utf-8").split()
    )
    assert {tuple(sorted(row)) for row in rows} == {
        ("de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "zh")
    }
    assert all(text.strip() for row in rows for text in row.values())
    assert len({row["en"] for row in rows}) == len(rows)


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
