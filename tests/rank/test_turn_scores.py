"""Scores of turns, what is told of a turn, and that no non-evidence lifts one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from anaphora.rank.question import QuestionReading
from anaphora.rank.turn_table import (
    PERSONAL,
    ROLE_ASSISTANT,
    ROLE_USER,
    SESSION_GAP_SECONDS,
    STANDING,
    TurnTable,
    turn_flags,
)
from anaphora.rank.turns import (
    DEFAULT_WEIGHTS,
    best_rows,
    score_turns,
)

NOTHING = QuestionReading(terms=(), meaning="")
DAY = 86_400.0
T = TypeVar("T")
Problem = tuple[TurnTable, QuestionReading, NDArray[np.float64], NDArray[np.float64]]


def make_table(
    threads: Sequence[int],
    *,
    ts: Sequence[float] | None = None,
    roles: Sequence[int] | None = None,
    speakers: Sequence[str | None] | None = None,
    lengths: Sequence[int] | None = None,
    flags: Sequence[int] | None = None,
) -> TurnTable:
    """A table whose row i is the next turn of thread `threads[i]`, a minute after row i - 1."""
    n = len(threads)
    times = [60.0 * i for i in range(n)] if ts is None else list(ts)
    previous, following = [-1] * n, [-1] * n
    position, session = [0] * n, [0] * n
    last: dict[int, int] = {}
    sessions = 0
    for row, thread in enumerate(threads):
        before = last.get(thread, -1)
        previous[row] = before
        position[row] = position[before] + 1 if before >= 0 else 0
        if before >= 0:
            following[before] = row
        if before >= 0 and times[row] - times[before] <= SESSION_GAP_SECONDS:
            session[row] = session[before]
        else:
            session[row], sessions = sessions, sessions + 1
        last[thread] = row
    names = tuple(dict.fromkeys(name for name in speakers or () if name))
    codes = [names.index(name) if name else -1 for name in speakers or [None] * n]
    return TurnTable(
        conversation=np.array(threads, np.int32),
        position=np.array(position, np.int32),
        previous=np.array(previous, np.int32),
        following=np.array(following, np.int32),
        session=np.array(session, np.int32),
        role=np.array([ROLE_USER] * n if roles is None else roles, np.int8),
        speaker=np.array(codes, np.int16),
        ts=np.array(times, np.float64),
        length=np.array([8] * n if lengths is None else lengths, np.int32),
        flags=np.array([0] * n if flags is None else flags, np.int32),
        conversations=tuple(f"thread-{i}" for i in range(max(threads, default=-1) + 1)),
        speakers=names,
    )


@st.composite
def problems(draw: st.DrawFn, least: int = 1) -> Problem:
    """Interleaved threads with gaps, a reading, BM25 and cosines."""
    n = draw(st.integers(least, 24))

    def column(values: st.SearchStrategy[T]) -> list[T]:
        return draw(st.lists(values, min_size=n, max_size=n))

    gaps = column(st.sampled_from([0.0, 60.0, SESSION_GAP_SECONDS + 1, 3 * DAY]))
    table = make_table(
        column(st.integers(0, 2)),
        ts=np.cumsum(gaps).tolist(),
        roles=column(st.integers(0, 2)),
        speakers=column(st.sampled_from([None, "Ada", "Bo"])),
        lengths=column(st.integers(0, 500)),
        flags=column(st.integers(0, PERSONAL | STANDING)),
    )
    reading = QuestionReading(
        terms=("some",),
        meaning="some",
        speakers=tuple(draw(st.sets(st.integers(0, 1)))),
        roles=tuple(draw(st.sets(st.integers(0, 2)))),
        spans=tuple(draw(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), max_size=2))),
    )
    words = np.array(column(st.floats(0, 60)))
    cosine = np.array(column(st.floats(-1, 1)))
    return table, reading, words, cosine


@given(problems(), st.booleans())
def test_factors_add_up(problem: Problem, with_vectors: bool) -> None:
    """The parts of every score add up to it, and no score leaves 0 to 1."""
    table, reading, words, cosine = problem
    scores = score_turns(table, reading, words, cosine if with_vectors else None)
    for place in range(len(table)):
        assert sum(scores.explain(place).values()) == pytest.approx(
            float(scores.total[place]), abs=1e-6
        )
    assert np.all((scores.total >= 0) & (scores.total <= 1.000001))
    assert with_vectors or not scores.factors["meaning"].any()


@given(problems(least=2), st.data(), st.floats(0.1, 50))
def test_a_better_match_never_loses_a_place(
    problem: Problem, data: st.DataObject, rise: float
) -> None:
    """Raising one turn's BM25, or its cosine, never lowers that turn among the others."""
    table, reading, words, cosine = problem
    row = data.draw(st.integers(0, len(table) - 1))
    before = score_turns(table, reading, words, cosine).total
    more = words.copy()
    more[row] += rise
    closer = cosine.copy()
    closer[row] = min(1.0, closer[row] + rise)
    for after in (
        score_turns(table, reading, more, cosine).total,
        score_turns(table, reading, words, closer).total,
    ):
        assert not np.any((before[row] > before) & (after[row] < after - 1e-6))
        assert after[row] >= before[row]


@given(problems())
def test_some_rows_alone_score_as_among_all(problem: Problem) -> None:
    """Scoring some rows gives them the scores they have among all, neighbours outside included."""
    table, reading, words, cosine = problem
    # Whether a speaker tells turns apart does depend on the turns that are asked about.
    reading = replace(reading, speakers=(), roles=())
    rows = np.flatnonzero(table.conversation == table.conversation[0])
    whole = score_turns(table, reading, words, cosine)
    some = score_turns(table, reading, words, cosine, rows=rows)
    assert some.rows.tolist() == rows.tolist()
    np.testing.assert_array_equal(some.total, whole.total[rows])


@given(problems(), st.integers(0, 30))
def test_best_rows_are_the_sorted_ones(problem: Problem, limit: int) -> None:
    """The best rows are those that sorting everything would put first, ties in thread order."""
    table, reading, words, cosine = problem
    # Coarse scores, so that ties are the rule.
    scores = score_turns(table, reading, np.round(words, -1), np.round(cosine))
    scores = replace(scores, total=np.round(scores.total, 1))
    found = [p for p in range(len(table)) if scores.found[p]]
    wanted = sorted(
        found, key=lambda p: (-scores.total[p], table.conversation[p], table.position[p])
    )
    assert best_rows(table, scores, limit).tolist() == wanted[:limit]


@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(problem: Problem, random: Random) -> None:
    """Handing over the same rows in another order gives the same ranking."""
    table, reading, words, cosine = problem
    rows = list(range(len(table)))
    random.shuffle(rows)
    one = score_turns(table, reading, words, cosine)
    two = score_turns(table, reading, words, cosine, rows=np.array(rows))
    first = one.rows[best_rows(table, one, 10)]
    second = two.rows[best_rows(table, two, 10)]
    assert first.tolist() == second.tolist()


def test_a_turn_without_a_time_is_in_no_span() -> None:
    """A turn whose time is not known gains nothing from a span and breaks nothing."""
    table = make_table([0, 0], ts=[float("nan"), 10.0])
    reading = QuestionReading(terms=(), meaning="", spans=((0.0, 100.0),))
    assert score_turns(table, reading, np.zeros(2), None).found.tolist() == [False, True]


def test_columns_of_another_length_are_refused() -> None:
    """Words or cosines of another index are an error, never silently misread."""
    table = make_table([0, 0])
    with pytest.raises(ValueError, match="2 turns"):
        score_turns(table, NOTHING, np.zeros(3), None)
    with pytest.raises(ValueError, match="2 turns"):
        score_turns(table, NOTHING, np.zeros(2), np.zeros(1))


def test_the_scale_is_the_sum_of_the_highest_parts() -> None:
    """A turn with every part at its highest scores 1, so that scores have one scale for good."""
    weights = DEFAULT_WEIGHTS
    table = make_table(
        [0, 0, 0], lengths=[100] * 3, flags=[PERSONAL | STANDING] * 3, speakers=["Bo", "Ada", "Bo"]
    )
    reading = QuestionReading(terms=(), meaning="", speakers=(1,), spans=((0.0, 1000.0),))
    scores = score_turns(table, reading, np.full(3, 1e12), np.ones(3), weights)
    assert float(scores.total[1]) == pytest.approx(1.0)


def test_words_alone_find_only_what_they_touch() -> None:
    """Without vectors a turn is found when a word matches in it or right beside it, else not."""
    table = make_table([0] * 5)
    scores = score_turns(table, NOTHING, np.array([0.0, 0.0, 9.0, 0.0, 0.0]), None)
    assert scores.rows[scores.found].tolist() == [1, 2, 3]
    assert scores.rows[best_rows(table, scores, 9)].tolist() == [2, 1, 3]


def test_neighbours_end_with_the_sitting_and_with_the_thread() -> None:
    """A match lends to the turns beside it in its thread, unless hours lie between."""
    table = make_table([0, 1, 0, 0], ts=[0.0, 1.0, 2.0, 3.0 + SESSION_GAP_SECONDS])
    scores = score_turns(table, NOTHING, np.array([0.0, 0.0, 20.0, 0.0]), None)
    context = scores.factors["context"] * DEFAULT_WEIGHTS.scale
    assert context.tolist() == pytest.approx([0.075, 0.0, 0.0, 0.0])


def test_a_named_time_lifts_its_turns_and_those_of_the_day_after() -> None:
    """A turn written in a span, or within a day after it, gains; earlier and later ones do not."""
    table = make_table([0] * 4, ts=[0.0, 2 * DAY, 3.5 * DAY, 5 * DAY])
    reading = QuestionReading(terms=(), meaning="", spans=((2 * DAY, 3 * DAY),))
    scores = score_turns(table, reading, np.zeros(4), None)
    assert scores.found.tolist() == [False, True, True, False]


def test_the_role_that_is_meant_goes_first() -> None:
    """Of two equal turns, the one by the role that the question means stands first."""
    table = make_table([0, 1], roles=[ROLE_ASSISTANT, ROLE_USER])
    reading = QuestionReading(terms=(), meaning="", roles=(ROLE_USER,))
    scores = score_turns(table, reading, np.full(2, 5.0), None)
    assert int(best_rows(table, scores, 1)[0]) == 1


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("I moved to Turin last week.", PERSONAL),
        ("It’s fine, we’re close to my office", PERSONAL),
        ("Sounds great! Where was that?", 0),
        ("haha yes", 0),
        ("", 0),
        ("Always show version numbers when I ask about libraries.", STANDING | PERSONAL),
        ("Thanks. From now on, answer in French.", STANDING),
        ("Please never use tabs", STANDING),
        ("She has always liked tea", 0),
        ("Ich wohne in Köln", PERSONAL),
        ("Bitte immer die Versionsnummer nennen, wenn ich frage.", STANDING | PERSONAL),
        ("Wohnort: Köln", 0),
    ],
)
def test_what_a_turn_shows_is_marked(text: str, flags: int) -> None:
    """Turns about their speaker and standing instructions are marked, small talk is not."""
    assert turn_flags(text) == flags


def test_a_huge_turn_is_judged_by_its_ends() -> None:
    """A turn of megabytes is marked by what stands around the pasted part."""
    assert turn_flags("x " * 3_000_000 + "This is what I got.") == PERSONAL
    assert turn_flags("x " * 2_500 + "I" + " x" * 2_500) == 0


@given(st.text())
def test_any_text_has_flags(text: str) -> None:
    """No text makes the marking fail, and it depends on nothing but the text."""
    assert turn_flags(text) == turn_flags(text) & (PERSONAL | STANDING)


ASKED = QuestionReading(terms=("some",), meaning="some", speakers=(0,))


def _table(flags: tuple[int, ...]) -> TurnTable:
    """One sitting of one speaker and another, a minute between two turns."""
    size = len(flags)
    rows = np.arange(size, dtype=np.int32)
    return TurnTable(
        conversation=np.zeros(size, np.int32),
        position=rows,
        previous=rows - 1,
        following=np.array([*rows[1:], -1], np.int32),
        session=np.zeros(size, np.int32),
        role=np.full(size, ROLE_USER, np.int8),
        speaker=np.array([0] * (size - 1) + [1], np.int16),
        ts=rows.astype(np.float64) * 60.0,
        length=np.full(size, 8, np.int32),
        flags=np.array(flags, np.int32),
        conversations=("thread",),
        speakers=("Ada", "Bo"),
    )


def test_neighbours_lift_no_turn_that_has_nothing_to_do_with_the_question() -> None:
    # Beside the answer stands what says nothing of it; further off one that says a little more.
    cosine = np.array([0.7, 0.0, 0.02, 0.05, 0.0, 0.0])
    scores = score_turns(_table((0,) * 6), ASKED, np.zeros(6), cosine)
    assert scores.factors["context"][1] < 0.01
    assert scores.total[3] > scores.total[2] > scores.total[1]


def test_what_has_evidence_has_its_neighbours_share() -> None:
    cosine = np.array([0.7, 0.25, 0.02, 0.0, 0.25, 0.0])
    scores = score_turns(_table((0,) * 6), ASKED, np.zeros(6), cosine)
    share = scores.factors["context"]
    assert share[1] == pytest.approx(
        0.15 * (scores.factors["meaning"][0] + scores.factors["meaning"][2])
    )
    assert scores.total[1] > scores.total[4]


@pytest.mark.parametrize("flag", [PERSONAL, STANDING], ids=["personal", "standing"])
def test_a_flag_counts_as_far_as_there_is_evidence(flag: int) -> None:
    name = "personal" if flag == PERSONAL else "standing"
    cosine = np.array([0.0, 0.05, 0.3, 0.3, 0.0, 0.0])
    scores = score_turns(_table((flag, 0, flag, 0, 0, 0)), ASKED, np.zeros(6), cosine)
    assert scores.factors[name][0] < scores.factors[name][2]
    assert scores.total[1] > scores.total[0]
    assert scores.total[2] > scores.total[3]
