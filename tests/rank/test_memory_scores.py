"""Scores of memories: the seed's formula to the letter, and what hybrid does beside it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.rank.memories import DAY_MICROS, MemoryCandidates, rank_memories, similarity
from anaphora.values.memories import HalfLives

NOW = 1_777_000_000_000_000
HALF_LIVES = HalfLives()
DAYS = (HALF_LIVES.episodic, HALF_LIVES.semantic, HALF_LIVES.procedural)

Row = tuple[float, float, int, float, int]
ROWS = st.lists(
    st.tuples(
        st.floats(-1, 1),  # cosine
        st.floats(0, 1),  # words
        st.integers(0, 2),  # type
        st.floats(-50, 4000),  # days since it was reinforced
        st.integers(0, 500),  # count
    ),
    min_size=1,
    max_size=30,
)


def candidates(rows: list[Row]) -> MemoryCandidates:
    cosine, words, kind, days, count = zip(*rows, strict=True)
    at = np.array([NOW - round(d * DAY_MICROS) for d in days], np.int64)
    return MemoryCandidates(
        ids=tuple(f"{n:04}" for n in range(len(rows))),
        cosine=np.array(cosine, np.float64),
        words=np.array(words, np.float64),
        type=np.array(kind, np.int64),
        created=at,
        reinforced_at=at,
        count=np.array(count, np.int64),
    )


def by_the_seed(row: Row) -> float:
    cosine, _, kind, days, count = row
    distance = 2.0 - 2.0 * cosine  # squared L2 of unit vectors
    decay = math.exp(-math.log(2) / DAYS[kind] * max(0.0, days))
    return max(0.0, 1.0 - distance / 2.0) * decay * (1.0 + math.log(1.0 + count))


@pytest.mark.promise("recall.formula")
@given(ROWS)
def test_vector_mode_is_the_formula(rows: list[Row]) -> None:
    """Without words, every score is the seed's product, and the order follows it."""
    scores = rank_memories(candidates(rows), NOW, HALF_LIVES, hybrid=False)
    assert scores.score == pytest.approx([by_the_seed(row) for row in rows], abs=1e-5)
    ordered = scores.score[scores.order]
    assert (np.diff(ordered) <= 0).all()


@given(ROWS)
def test_the_score_is_the_product_of_its_factors(rows: list[Row]) -> None:
    """In either mode a score is similarity × decay × reinforcement, as they are reported."""
    for hybrid in (True, False):
        s = rank_memories(candidates(rows), NOW, HALF_LIVES, hybrid=hybrid)
        assert s.score == pytest.approx(s.similarity * s.decay * s.reinforcement)
        assert ((s.similarity >= 0) & (s.similarity <= 1)).all()
        assert ((s.decay >= 0) & (s.decay <= 1)).all()
        assert (s.reinforcement >= 1).all()


@given(ROWS, st.integers(0, 29), st.floats(0.1, 400))
def test_time_only_fades(rows: list[Row], at: int, later: float) -> None:
    """A memory that was reinforced earlier never scores higher, whatever its type."""
    row = rows[at % len(rows)]
    older = (*row[:3], row[3] + later, row[4])
    for hybrid in (True, False):
        s = rank_memories(candidates([row, older]), NOW, HALF_LIVES, hybrid=hybrid)
        assert s.score[1] <= s.score[0] + 1e-12


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1))
def test_words_only_raise(cosine: float, less: float, more: float) -> None:
    """Matching more of a question's words never lowers similarity."""
    low, high = sorted((less, more))
    both = np.array([cosine, cosine])
    found = similarity(both, np.array([low, high]))
    assert found[0] <= found[1]
    assert found[0] >= similarity(both[:1], None)[0] - 1e-9


def test_half_lives() -> None:
    """After one half-life of its type, half of a memory is left; a clock that jumped back takes
    nothing away."""
    for kind, days in enumerate(DAYS):
        rows = [(0.8, 0.0, kind, days, 0), (0.8, 0.0, kind, -3.0, 0)]
        s = rank_memories(candidates(rows), NOW, HALF_LIVES, hybrid=False)
        assert s.score == pytest.approx([0.4, 0.8])


@pytest.mark.promise("recall.exact_first")
@given(ROWS, st.integers(0, 29), st.floats(0.0, 0.95))
def test_restating_comes_near_an_exact_answer_and_not_past_it(
    rows: list[Row], at: int, similar: float
) -> None:
    """What is not almost exact never outranks an exact answer of now that was said once, however
    often it was restated; and what is below relevance never scores above its similarity."""
    row = (similar, 0.0, *rows[at % len(rows)][2:])
    exact = (1.0, 0.0, 1, 0.0, 0)
    s = rank_memories(candidates([row, exact]), NOW, HALF_LIVES)
    assert s.score[0] <= s.score[1] == 1.0
    assert similar > 0.6 or s.score[0] <= s.similarity[0]


@given(ROWS, st.integers(0, 29), st.integers(1, 500))
def test_restating_only_raises(rows: list[Row], at: int, more: int) -> None:
    """A memory that was restated more often never scores lower, in either mode."""
    row = rows[at % len(rows)]
    often = (*row[:4], row[4] + more)
    for hybrid in (True, False):
        s = rank_memories(candidates([row, often]), NOW, HALF_LIVES, hybrid=hybrid)
        assert s.score[1] >= s.score[0] - 1e-12


@given(ROWS, st.integers(0, 29), st.floats(-1, 1), st.floats(-1, 1))
def test_nearer_never_ranks_lower(rows: list[Row], at: int, one: float, other: float) -> None:
    """Of two memories alike in all but meaning, the nearer one never scores lower."""
    low, high = sorted((one, other))
    row = rows[at % len(rows)][1:]
    for hybrid in (True, False):
        s = rank_memories(candidates([(low, *row), (high, *row)]), NOW, HALF_LIVES, hybrid=hybrid)
        assert s.score[1] >= s.score[0] - 1e-12


@given(ROWS)
def test_a_score_does_not_depend_on_the_other_memories(rows: list[Row]) -> None:
    """A memory scores alike alone and among others: a least score means the same everywhere."""
    among = rank_memories(candidates(rows), NOW, HALF_LIVES).score
    alone = [rank_memories(candidates([row]), NOW, HALF_LIVES).score[0] for row in rows]
    assert among == pytest.approx(alone)


def test_what_is_exact_is_raised_as_the_seed_says() -> None:
    """An exact answer of now that was restated has the seed's factor, 1 + ln(1 + n)."""
    s = rank_memories(candidates([(1.0, 0.0, 1, 0.0, n) for n in (0, 1, 5)]), NOW, HALF_LIVES)
    assert s.reinforcement == pytest.approx([1 + math.log(1 + n) for n in (0, 1, 5)])
