"""What is read of a very long text to tell which words of a question it holds."""

from __future__ import annotations

import pytest

from anaphora.rank.sought import bearing_parts, find_held_terms, read_question_terms

FILLER = "The tram was late and the bread was dear.\n" * 24_000
QUESTION = "Where is the locker QX-77183 of Grunwald?"


@pytest.mark.promise("recall.large_things")
@pytest.mark.parametrize("place", [0, len(FILLER) // 2, len(FILLER)], ids=["first", "mid", "last"])
def test_words_of_a_question_are_held_wherever_they_stand(place: int) -> None:
    """Of 1 MB little more than its beginning is read, and what it holds counts to its end."""
    told = "Grunwald has the lockers; QX-77183 is the upper one.\n"
    part = bearing_parts(QUESTION, FILLER[:place] + told + FILLER[place:])
    assert len(part) < 110_000
    assert find_held_terms(QUESTION, part) == read_question_terms(QUESTION).terms
    assert find_held_terms(QUESTION, bearing_parts(QUESTION, FILLER)) == frozenset()
