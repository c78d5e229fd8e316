"""Among many statements, what only shares a common word with a question is no sure answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from anaphora import Memory, NewMemory

TOWNS = ("Porto", "Lund", "Graz", "Brest", "Turku", "Bari", "Cork", "Split")
THINGS = ("printer", "ladder", "heater", "projector", "trolley", "scanner", "kettle", "fan")


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """More statements than usual: 60 about posters, one about Zora."""
    texts = [
        f"The {THINGS[at % 8]} in room {at} of the {TOWNS[at // 8 % 8]} office was checked."
        for at in range(1_500)
    ]
    texts += [f"The poster in hall {at} hangs beside the door." for at in range(60)]
    texts.append("Zora keeps bees behind the mill.")
    with Memory.open(tmp_path_factory.mktemp("crowded")) as memory:
        memory.remember_many(NewMemory(text) for text in texts)
        # All have a vector then; links may be due.
        memory.ready(1)
        yield memory


def test_a_common_word_singles_nothing_out(crowded: Memory) -> None:
    """The question about the poster has sixty posters and no answer; there is one Zora."""
    posters = crowded.recall("what did the poster say originally?", min_confidence=0.0, read=0)
    assert "poster" in posters.hits[0].text
    assert max(hit.answers or 0.0 for hit in posters) < 0.6
    (first, *_) = crowded.recall("what do you know about Zora?", read=0)
    assert "Zora" in first.text
    assert (first.answers or 0.0) >= 0.6
