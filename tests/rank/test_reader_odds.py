"""What a reader's log-odds do: to the order of what was read, and to what is put into a prompt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.rank import silence
from anaphora.rank.reading import MOST, UNREAD, WEIGHTS, read_scores
from anaphora.rank.relevance import TurnEvidence, is_worth_it, turn_relevance

TOTALS = st.lists(st.floats(0, 2), max_size=40).map(lambda values: sorted(values, reverse=True))
ODDS = st.lists(st.floats(-60, 60), max_size=40)


@pytest.mark.promise("recall.read")
@given(TOTALS, ODDS, st.sampled_from(sorted(WEIGHTS)))
def test_nothing_falls_behind_what_was_not_read(
    totals: list[float], odds: list[float], lane: str
) -> None:
    """No score is below its total, whatever the reader says; what was not read keeps its own."""
    read = np.array(odds[: len(totals)])
    scores = read_scores(totals[: len(read)], read, lane)
    assert scores.shape == read.shape
    assert (scores >= np.array(totals[: len(read)])).all()
    unread = read_scores(totals, np.full(len(totals), np.nan), lane)
    assert unread == pytest.approx(totals)


@given(TOTALS, ODDS)
def test_of_equal_totals_the_surer_one_stands_first(totals: list[float], odds: list[float]) -> None:
    """And of equal log-odds the better total: each part alone keeps its order."""
    count = min(len(totals), len(odds))
    read = np.array(sorted(odds[:count], reverse=True))
    scores = read_scores([1.0] * count, read, "turns")
    assert (np.diff(scores) <= 0).all()
    scores = read_scores(totals[:count], np.full(count, 1.5), "turns")
    assert (np.diff(scores) <= 0).all()


def test_a_score_is_the_total_and_the_weighted_log_odds() -> None:
    """From where a reader thinks nothing of it up to where it is not surer."""
    weight = WEIGHTS["turns"]
    scores = read_scores([0.9, 0.8, 0.7, 0.6], np.array([-2.0, 2.0, 99.0, -99.0]), "turns")
    expected = [0.9 + weight, 0.8 + 5 * weight, 0.7 + (MOST - UNREAD) * weight, 0.6]
    assert scores == pytest.approx(expected)
    assert not len(read_scores([], np.array([]), "turns"))


def test_what_was_not_read_is_as_silent_as_before() -> None:
    """The reader's part of the probability that anything answers is there only where it read."""
    unread = silence.CONSTANT + silence.MEANING * 0.5 + silence.UNSEEN * 0.2
    assert silence.probability(0.5, 0.2) == pytest.approx(1 / (1 + np.exp(-unread)))
    read = silence.READ_CONSTANT + silence.READ_MEANING * 0.5 + silence.READ_UNSEEN * 0.2
    read += silence.READ_ODDS * 3.0
    assert silence.probability(0.5, 0.2, 3.0) == pytest.approx(1 / (1 + np.exp(-read)))
    assert silence.probability(0.5, 0.2, 99.0) == silence.probability(0.5, 0.2, silence.MOST)


_SHARES = st.floats(0, 1)
_TURNS = st.lists(
    st.builds(TurnEvidence, _SHARES, st.floats(0, 3), _SHARES, st.none() | _SHARES),
    min_size=1,
    max_size=8,
)


@given(_TURNS, _SHARES, _SHARES)
def test_a_turn_that_answers_more_surely_is_worth_no_less(
    turns: list[TurnEvidence], one: float, other: float
) -> None:
    """For the first turn, read twice with another belief; it is a probability throughout."""
    low, high = (
        [replace(turns[0], answers=answers), *turns[1:]] for answers in sorted((one, other))
    )
    assert 0.0 <= turn_relevance(low, 0) <= turn_relevance(high, 0) <= 1.0
    assert is_worth_it(low, 0) <= is_worth_it(high, 0)


def test_what_the_reader_thinks_nothing_of_is_left_out() -> None:
    """What would be put in unread stays out where the reader is sure that it does not answer."""
    turn = TurnEvidence(0.6, 1.8, 0.7)
    others = [TurnEvidence(0.3, 1.5, 0.4)]
    assert is_worth_it([turn, *others], 0)
    # Its score has the reader's part, too.
    assert not is_worth_it([replace(turn, score=0.05, answers=0.001), *others], 0)
    assert is_worth_it([replace(turn, answers=0.9), *others], 0)
