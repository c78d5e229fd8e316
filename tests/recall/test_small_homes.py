"""A home of two or five statements answers what it can, and is silent about the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus.reading import read_stories

from anaphora import Memory

FLOOR = 0.15
"""The probability below which a home is silent by default."""
IMPROBABLE = 0.05

HOME = {
    "The boiler was serviced in May by Kowalski.": "who looked after the heating?",
    "My sister's train arrives at ten past six.": "when do I pick her up from the station?",
    "The spare tyre has a slow leak.": "what's wrong with the car?",
    "Lena keeps bees behind the church.": "who makes honey?",
    "The landlord wants the rent by the third.": "when do I have to pay for the flat?",
}
FOREIGN = "what is the weather on Mars?"


@pytest.mark.parametrize("size", [2, 5])
def test_a_small_home_answers_in_other_words(size: int, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home") as memory:
        statements = list(HOME)[:size]
        for number, statement in enumerate(statements):
            memory.remember(statement)
            memory.conversations.append(f"chat {number}", "user", statement)
        memory.ready()
        for statement in statements:
            assert next(hit.text for hit in memory.recall(HOME[statement])) == statement
            turns = memory.recall_conversation(None, HOME[statement])
            assert next(hit.text for hit in turns) == statement
        assert not memory.recall(FOREIGN).hits
        assert not memory.recall_conversation(None, FOREIGN).hits


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("saywa-rumi-tandem", "what were we aiming for originally as our start"),
        ("lorry-mechanics-10c", "did we see the 51 truck in the end"),
    ],
)
def test_nothing_is_shown_where_every_hit_is_improbable(
    tmp_path: Path, name: str, question: str
) -> None:
    """Something of this story may answer, but none of what was found does."""
    (story,) = (story for story in read_stories() if story.id == name)
    with Memory.open(tmp_path / "home") as memory:
        memory.remember_many(fact.text for fact in story.facts)
        memory.ready()
        assert memory.recall(question).hits == ()
        nearest = memory.recall(question, min_confidence=0.0)
        assert nearest.confidence is not None
        assert nearest.confidence > FLOOR
        assert max(hit.answers or 0.0 for hit in nearest) < IMPROBABLE
