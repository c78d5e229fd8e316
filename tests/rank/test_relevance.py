"""What is worth putting into a prompt that did not ask: more of a reader's belief never less."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from anaphora.rank.relevance import TurnEvidence, is_worth_it, turn_relevance

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
