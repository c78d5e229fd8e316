"""A home of two or five statements answers what it can, and is silent about the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from anaphora import Memory

HOME = {
    "The boiler was serviced in May by Kowalski.": "who looked after the heating?",
    "My sister's train arrives at ten past six.": "when do I pick her up from the station?",
    "The spare tyre has a slow leak.": "what's wrong with the car?",
    "Lena keeps bees behind the church.": "who makes honey?",
    "The landlord wants the rent by the third.": "when do I have to pay for the flat?",
}
FOREIGN = ("what is the weather on Mars?", "capital of Peru?", "where is the wifi router")


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
        for question in FOREIGN:
            assert not memory.recall(question).hits
            assert not memory.recall_conversation(None, question).hits
