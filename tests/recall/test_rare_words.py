"""A rare word leads to the text that holds it, however long that text is, on every lane."""

from __future__ import annotations

from pathlib import Path

import pytest

from anaphora import Memory

LONG = " ".join(["foo"] * 2_500 + ["heliotrope"] + ["foo"] * 2_500)
KETTLES = [f"The kettle number {n} is blue and stands on shelf {n}." for n in range(40)]


@pytest.mark.parametrize("reopened", [False, True], ids=["in memory", "on disk"])
@pytest.mark.parametrize("question", ["where is the heliotrope?", "heliotrope"])
def test_of_a_long_memory(tmp_path: Path, question: str, reopened: bool) -> None:
    """It stands before short texts that share only words of any question."""
    memory = Memory.open(tmp_path, embedder="hashing", warm=False)
    memory.remember_many(KETTLES)
    wanted = memory.remember(LONG).id
    if reopened:
        memory.ready()
        memory.close()
        memory = Memory.open(tmp_path, embedder="hashing", warm=False)
    with memory:
        assert memory.recall(question).hits[0].id == wanted
        assert memory.search(question).hits[0].id == wanted


def test_among_many_texts_with_the_other_words(tmp_path: Path) -> None:
    """Candidates are cut by what each text matches; the only one with the word is among them."""
    with Memory.open(tmp_path, embedder="hashing", warm=False) as memory:
        memory.remember_many(f"The blue kettle of room {n} and of {n + 1}." for n in range(600))
        wanted = memory.remember(LONG).id
        hits = memory.recall("blue kettle heliotrope", mode="words", top_k=100).hits
        assert wanted in {hit.id for hit in hits[:1]}


@pytest.mark.parametrize("lane", ["turn", "document"])
def test_of_other_lanes(tmp_path: Path, lane: str) -> None:
    """A turn and a document of the same length are found by the word, too."""
    with Memory.open(tmp_path, embedder="hashing", warm=False) as memory:
        for text in KETTLES:
            memory.conversations.append_user("kettles", text)
        if lane == "turn":
            memory.conversations.append_user("long", LONG)
        else:
            memory.add_document(LONG.encode(), name="long.txt")
        assert ["heliotrope" in hit.text for hit in memory.search("heliotrope").hits][:1] == [True]
