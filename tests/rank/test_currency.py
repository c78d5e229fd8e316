"""What replaces what, from words and times alone: laws of the order, and what is read of a text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.rank.currency import (
    Statements,
    compare_statements,
    date_echoes,
    order_by_currency,
)
from anaphora.rank.frames import Frame, compare_frames
from anaphora.rank.silence import answer_probability
from anaphora.rank.statements import read_cues, read_statement

DAY = 86_400.0
QUESTION = "which port does the staging database listen on?"


def said(*told: tuple[str, float], assistant: tuple[int, ...] = ()) -> Statements:
    """(text, day) of candidates, best first; scores fall by a tenth of the best."""
    size = len(told)
    scores = np.array([1.0 - 0.1 * at for at in range(size)], np.float32)
    return Statements(
        [text for text, _ in told],
        np.array([day * DAY for _, day in told]),
        [""] * size,
        np.array([at in assistant for at in range(size)]),
        scores,
        scores * 0.6,
        np.zeros(size, np.bool_),
    )


_TEXTS = st.sampled_from(
    [
        "The staging database listens on port 5433.",
        "Staging's database is on port 5439 now.",
        "which port does the staging database listen on?",
        "I don't know the port.",
        "Lunch is at noon.",
        "Ada drinks tea.",
        "",
        "?!",
    ]
) | st.text(max_size=80)
_TOLD = st.lists(
    st.tuples(_TEXTS, st.floats(0, 400) | st.just(float("nan"))), min_size=1, max_size=12
)


@pytest.mark.promise("recall.current")
@given(_TOLD, _TEXTS)
def test_an_order_loses_nothing_and_its_groups_fall(
    told: list[tuple[str, float]], question: str
) -> None:
    """Every candidate comes once, and stands where the best one of its group does."""
    statements = said(*told)
    ordered = order_by_currency(statements, question, 0.4)
    assert sorted(ordered.order) == list(range(len(told)))
    groups = [ordered.groups[place] for place in ordered.order]
    assert groups == sorted(groups, reverse=True)
    for place in ordered.order:
        own = float(statements.scores[place]) - ordered.lowered.get(place, 0.0)
        assert own <= ordered.groups[place] + 1e-6
    assert all(older != newer for older, newer in ordered.replaced)


@pytest.mark.promise("recall.current")
@given(_TOLD, _TEXTS, st.integers(0, 12), st.floats(0, 1))
def test_unrelated_statements_change_no_order(
    told: list[tuple[str, float]], question: str, place: int, score: float
) -> None:
    """One about nothing that was asked or told, at any score, moves and marks none of the rest."""
    statements = said(*told)
    alone = order_by_currency(statements, question, 0.4)
    noise = said(("Quokkas yodel.", 7))
    at = min(place, len(told))
    parts = [statements.take(range(at)), noise, statements.take(range(at, len(told)))]
    texts = [text for part in parts for text in part.texts]
    scores = np.concatenate([part.scores for part in parts])
    scores[at] = score
    both = replace(
        said(*((text, 0.0) for text in texts)),
        at=np.concatenate([part.at for part in parts]),
        scores=scores,
        meaning=np.concatenate([statements.meaning[:at], [0.0], statements.meaning[at:]]),
    )
    ordered = order_by_currency(both, question, 0.4)
    left = [spot - (spot > at) for spot in ordered.order if spot != at]
    assert left == list(alone.order)
    marks = {(old - (old > at), new - (new > at)) for old, new in ordered.replaced}
    assert marks == set(alone.replaced)


@pytest.mark.promise("recall.current")
@given(_TOLD, _TEXTS)
def test_only_what_was_said_later_replaces(told: list[tuple[str, float]], question: str) -> None:
    """A probability stands only where times are known and the second is the later one."""
    pairs = compare_statements(said(*told), read_cues(question))
    for chances in (pairs.before, pairs.replaces):
        assert chances.shape == (len(told), len(told))
        assert np.all((chances >= 0) & (chances <= 1))
        for older, newer in np.argwhere(chances > 0).tolist():
            assert pairs.at[newer] > pairs.at[older]
            assert not np.isnan([told[older][1], told[newer][1]]).any()


@given(_TOLD, _TEXTS)
def test_a_probability_of_an_answer_is_one(told: list[tuple[str, float]], question: str) -> None:
    """Whatever is asked of whatever was said, it lies between 0 and 1."""
    assert 0.0 <= answer_probability(said(*told), read_cues(question)) <= 1.0


@pytest.mark.promise("recall.current")
def test_what_the_question_says_word_for_word_is_never_replaced() -> None:
    """A question that is a stored statement itself gets that statement first."""
    statements = said(("fact 0 0", 0), ("fact 0 7", 1), ("fact 1 0", 2))
    assert order_by_currency(statements, "fact 0 0", 0.4).order[0] == 0


@pytest.mark.promise("recall.repetition")
def test_an_echo_has_the_date_of_what_it_repeats() -> None:
    """An assistant's repetition is dated by the last statement of the user that it repeats."""
    statements = said(
        ("The staging database listens on port 5433.", 0),
        ("Staging moved, the database listens on port 5439.", 10),
        ("Noted: the staging database listens on port 5439.", 20),
        ("Noted: the staging database listens on port 5433.", 30),
        ("It will rain.", 40),
        assistant=(2, 3, 4),
    )
    days = (date_echoes(statements) / DAY).round(3).tolist()
    assert days == [0, 10, 10, 0, 40]
    pairs = compare_statements(statements, read_cues(QUESTION))
    # Neither news nor before what it repeats.
    assert np.all(pairs.replaces[:, [2, 3]] == 0)
    assert pairs.before[1, 2] == pairs.before[0, 3] == 0


@pytest.mark.promise("recall.current")
def test_a_time_in_the_question_asks_for_what_held_then() -> None:
    """A span that ends before a change gets the value before it, one after it the value since."""
    statements = said(
        ("Staging's database listens on port 5439 now, we moved it.", 40),
        ("The staging database listens on port 5433.", 0),
    )
    asked = "which port did the staging database listen on in January?"
    early = order_by_currency(statements, asked, 0.4, [(0.0, 31 * DAY)])
    late = order_by_currency(statements, asked, 0.4, [(31 * DAY, 62 * DAY)])
    assert (early.order[0], late.order[0]) == (1, 0)


def test_others_between_do_not_hide_what_holds() -> None:
    """What replaced the best one stands before it, whatever stands between the two."""
    filler = [(f"Remark {at} on the garden and the cat.", 1.0) for at in range(10)]
    statements = said(
        ("The staging database listens on port 5433.", 0),
        *filler,
        ("The staging database listens on port 5439 now.", 40),
    )
    scores = np.linspace(1.0, 0.7, len(statements)).astype(np.float32)
    ordered = order_by_currency(replace(statements, scores=scores), QUESTION, 0.4)
    assert ordered.order[:2] == (len(statements) - 1, 0)
    assert ordered.replaced == {(0, len(statements) - 1): "another value"}


@pytest.mark.parametrize(
    ("text", "asks", "unknown"),
    [
        ("Which port is it?", True, False),
        ("what is the wifi password", True, False),
        ("I don't know that yet.", False, True),
        ("Nobody told me.", False, True),
        ("The port is 5433. Is that right?", False, False),
        ("Who knows, it rains.", False, False),
        ("Wo ist der Schlüssel?", True, False),
        ("Keine Ahnung.", False, True),
        ("no lo sé", False, True),
    ],
)
def test_what_a_text_does_is_read(text: str, asks: bool, unknown: bool) -> None:
    """Questions and "I do not know" are told from statements, in three languages."""
    read = read_statement(text)
    assert (read.asks, read.unknown) == (asks, unknown)


@pytest.mark.parametrize(
    ("question", "past", "first", "now"),
    [
        ("which port does staging use?", 0, False, False),
        ("which port does staging use now?", 0, False, True),
        ("which port did staging use?", 1, False, False),
        ("which port did staging use before?", 2, False, False),
        ("where did we start out?", 2, True, False),
        ("what was the original plan?", 2, True, False),
        ("what is Ada's first name?", 0, False, False),
        ("what do we run before a release?", 0, False, False),
        ("when is the earlier train?", 0, False, False),
        ("what do we log with in Spring Boot?", 0, False, False),
        ("what is my rent in November?", 0, False, False),
        ("what was my rent in November?", 2, False, False),
        ("what is my previous address?", 2, False, False),
        ("how old is the captain?", 0, False, False),
        ("Wo war das Lager früher?", 2, False, False),
    ],
)
def test_what_a_question_asks_of_time_is_read(
    question: str, past: int, first: bool, now: bool
) -> None:
    """Past, first and now are read from the words of a question."""
    cues = read_cues(question)
    assert (cues.past, cues.first, cues.now) == (past, first, now)


def test_wording_tells_a_change_from_another_thing() -> None:
    """One place that differs is a value, two are two things; a negation takes back."""
    cases = {
        ("My rent is 950 euros a month.", "My rent is 1,020 euros a month."): Frame.VALUE,
        ("I eat meat.", "I do not eat meat."): Frame.NEGATION,
        ("Server alpha runs Debian 12.", "Server beta runs Ubuntu 24.04."): Frame.OTHER,
        ("The key of the garage is in the blue drawer.", "The key of the attic is on the mat."): (
            Frame.APART
        ),
        ("Mia likes green tea.", "Mia likes green apples."): Frame.ADDED,
        ("Standing on one leg is hard.", "Lunch is at noon."): Frame.OPEN,
        ("The web server moves on Monday.", "The web server might move on Friday."): Frame.ADDED,
    }
    frames = {pair: compare_frames(*map(read_statement, pair)) for pair in cases}
    assert frames == cases


def test_what_was_said_often_stays_before_a_near_one_off() -> None:
    """Said many times and not changed, it stands first; another value of it stands before it."""
    fact = "The user works in Neovim every day."
    for other, first in (
        ("The user opened a CSV file in an editor called Modern CSV.", fact),
        ("The user works in Helix every day.", "The user works in Helix every day."),
    ):
        statements = replace(said((other, 40), (fact, 0)), restated=np.array([0, 12]))
        ordered = order_by_currency(statements, "which editor does the user use?", 0.4)
        assert statements.texts[ordered.order[0]] == first
