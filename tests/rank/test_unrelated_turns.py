"""Of turns that have nothing to do with the question, none is lifted by what is no evidence."""

from __future__ import annotations

import numpy as np
import pytest

from anaphora.rank.question import QuestionReading
from anaphora.rank.turn_table import PERSONAL, ROLE_USER, STANDING, TurnTable
from anaphora.rank.turns import score_turns

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
