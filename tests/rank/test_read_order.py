"""The order of what was read: laws of the new scores, for any totals and log-odds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.rank.reading import MOST, WEIGHTS, read_scores, shared_probability
from anaphora.rank.silence import CONSTANT, MEANING, READING, UNSEEN, probability

TOTALS = st.lists(st.floats(0, 2), max_size=40).map(lambda values: sorted(values, reverse=True))
ODDS = st.lists(st.floats(-60, 60), max_size=40)


@pytest.mark.promise("recall.read")
@given(TOTALS, ODDS, st.sampled_from(sorted(WEIGHTS)))
def test_nothing_leaves_the_window(totals: list[float], odds: list[float], lane: str) -> None:
    """No score falls behind the first candidate that was not read, nor below 0."""
    read = np.array(odds[: len(totals)])
    scores = read_scores(totals, read, lane)
    behind = totals[len(read)] if len(totals) > len(read) else 0.0
    assert scores.shape == read.shape
    assert (scores >= behind).all()


@given(TOTALS, ODDS)
def test_of_equal_totals_the_surer_one_stands_first(totals: list[float], odds: list[float]) -> None:
    """And of equal log-odds the better total: each part alone keeps its order."""
    count = min(len(totals), len(odds))
    read = np.array(sorted(odds[:count], reverse=True))
    scores = read_scores([1.0] * count, read, "turns")
    assert (np.diff(scores) <= 0).all()
    scores = read_scores(totals[:count], np.full(count, 1.5), "facts")
    assert (np.diff(scores) <= 0).all()


def test_a_score_is_the_total_and_the_weighted_log_odds() -> None:
    """Up to where a reader is not surer; what would fall further stands where the next begins."""
    weight = WEIGHTS["turns"]
    scores = read_scores([0.9, 0.8, 0.7, 0.6, 0.5], np.array([-2.0, 2.0, 99.0, -99.0]), "turns")
    expected = [0.9 - 2 * weight, 0.8 + 2 * weight, 0.7 + MOST * weight, 0.5]
    assert scores == pytest.approx([*expected[:3], max(0.5, 0.6 - MOST * weight)])
    assert not len(read_scores([0.5], np.array([]), "turns"))


def test_two_probabilities_of_a_replacement_are_shared_out() -> None:
    """From nothing of the reader's to nothing but the reader's."""
    assert shared_probability(0.2, 0.8, 0.0) == pytest.approx(0.2)
    assert shared_probability(0.2, 0.8, 0.5) == pytest.approx(0.5)
    assert shared_probability(0.2, 0.8, 1.0) == pytest.approx(0.8)


def test_what_was_not_read_is_as_silent_as_before() -> None:
    """The reader's part of the probability that anything answers is there only where it read."""
    own = 1 / (1 + np.exp(-(CONSTANT + MEANING * 0.5 + UNSEEN * 0.2)))
    assert probability(0.5, 0.2) == pytest.approx(own)
    read = 1 / (1 + np.exp(-(CONSTANT + MEANING * 0.5 + UNSEEN * 0.2 + READING * 3.0)))
    assert probability(0.5, 0.2, 3.0) == pytest.approx(read)
