"""The probability that anything answers, and that of each hit, also of long texts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.rank.silence import (
    LANES,
    SOUGHT,
    USUAL,
    HitEvidence,
    Lane,
    abundance,
    hit_probability,
    probability,
    scarcity,
)
from anaphora.rank.sought import bearing_parts, find_held_terms, read_question_terms

SHARES = st.floats(0, 1)
ODDS = st.floats(-20, 20)
COSINES = st.none() | st.floats(-1, 1)
LANE = st.sampled_from(LANES)

EVIDENCE = st.builds(
    HitEvidence,
    meaning=st.floats(-1, 1),
    missing=SHARES,
    place=st.integers(0, 500),
    asks=st.booleans(),
    lead=st.floats(-2, 2),
    few=SHARES,
    many=st.floats(0, 3),
    named=st.booleans(),
    read=st.none() | ODDS,
    sought=st.booleans(),
)


@given(COSINES, SHARES, st.none() | ODDS, SHARES)
def test_a_probability_of_an_answer_is_one(
    meaning: float | None, unseen: float, read: float | None, few: float
) -> None:
    """Between 0 and 1 whatever is asked; without a cosine and a reading it cannot be told."""
    if meaning is None and read is None:
        with pytest.raises(ValueError, match="neither a cosine nor a reading"):
            probability(meaning, unseen, read, few)
    else:
        assert 0.0 <= probability(meaning, unseen, read, few) <= 1.0


@given(COSINES, SHARES, ODDS, st.floats(0.01, 8))
def test_what_a_reader_thinks_more_of_is_surer(
    meaning: float | None, unseen: float, read: float, more: float
) -> None:
    """The higher the log-odds of the best one that was read, the higher the probability."""
    assert probability(meaning, unseen, read) <= probability(meaning, unseen, read + more)


@given(COSINES, SHARES, ODDS)
def test_among_few_statements_the_same_evidence_says_more(
    meaning: float | None, unseen: float, read: float
) -> None:
    """The best of two is no worse an answer for being less near than the best of a thousand."""
    sizes = (1, 2, 5, 10, 18, 100_000)
    chances = [probability(meaning, unseen, read, scarcity(size)) for size in sizes]
    assert chances == sorted(chances, reverse=True)
    assert chances[-1] == chances[-2] == probability(meaning, unseen, read)


@given(SHARES, EVIDENCE, LANE, st.booleans())
def test_no_hit_is_surer_than_the_answer(
    answered: float, evidence: HitEvidence, lane: Lane, calibrated: bool
) -> None:
    """A hit answers at most as probably as anything does, unless it was sought by name."""
    chance = hit_probability(answered, evidence, lane, calibrated=calibrated)
    assert 0.0 <= chance <= max(answered, SOUGHT if evidence.sought else 0.0)


@given(SHARES, EVIDENCE, LANE, st.booleans(), st.integers(1, 10**6), st.integers(0, 10**7))
def test_among_more_statements_the_same_evidence_says_no_more(
    answered: float,
    evidence: HitEvidence,
    lane: Lane,
    calibrated: bool,
    statements: int,
    more: int,
) -> None:
    """The best of a hundred thousand is near by chance; up to the usual number nothing changes."""
    chances = [
        hit_probability(answered, replace(evidence, many=many), lane, calibrated=calibrated)
        for many in (0.0, abundance(statements), abundance(statements + more))
    ]
    assert chances == sorted(chances, reverse=True)
    assert abundance(USUAL) == 0.0 < abundance(2 * USUAL)


@given(SHARES, EVIDENCE, LANE, st.integers(1, 50))
def test_the_same_evidence_further_down_is_no_surer(
    answered: float, evidence: HitEvidence, lane: Lane, further: int
) -> None:
    """Of two hits with the same evidence the one that stands first is surer."""
    later = replace(evidence, place=evidence.place + further)
    assert hit_probability(answered, later, lane) <= hit_probability(answered, evidence, lane)


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("what did Mara say?", {"mara"}),
        ("what do you know about Ida?", {"ida"}),
        ("tell me about Ben", {"ben"}),
        ("was weißt du über Ida?", {"ida"}),
        ("erzähl mir von Ben", {"ben"}),
        ("¿qué sabes de Ida?", {"ida"}),
        ("what does ERR-4021 mean?", {"err4021"}),
        ("what does locker 3 hold?", {"locker#3", "hold"}),
        ("what happened?", {"happen"}),
    ],
)
def test_framing_words_are_no_words_of_a_question(question: str, terms: set[str]) -> None:
    """What only frames a question is not looked for in an answer, unless there is nothing else."""
    assert read_question_terms(question).terms == terms


@pytest.mark.parametrize("code", ["QX-771", "KB5021233", "0x80070643", "SIGBUS-17", "ORA-01555"])
def test_a_word_is_seen_wherever_it_stands(code: str) -> None:
    """A code at the end of a long text is held by it, one that is not there is not."""
    text = "The pump runs and the log goes on. " * 60 + f"{code}: the tank is low."
    assert find_held_terms(f"what does {code} mean?", text)
    assert not find_held_terms("what does ZZ-999 mean?", text)


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
