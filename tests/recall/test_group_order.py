"""The order of groups, from candidates and what the index holds beside each of them."""

from __future__ import annotations

from collections.abc import Iterable

from anaphora.rank.currency import answer_loss
from anaphora.rank.statements import read_cues
from anaphora.recall.currency import Candidate, order_turns

DAY = 86_400.0
QUESTION = "which car do we take for long weekend trips?"
TRIPS = "Our family car for long weekend trips is"
TOLD = (
    ("Our family car makes strange noises.", 40, 0.60),
    (f"{TRIPS} a Volvo now.", 30, 0.58),
    (f"{TRIPS} a Fiat.", 0, 0.57),
    (f"{TRIPS} a Kia.", 10, 0.56),
    (f"{TRIPS} a Lada.", 5, 0.55),
)


def _candidates(texts: Iterable[tuple[str, int, float]] = TOLD) -> list[Candidate]:
    return [
        Candidate(place, text, score, 0.6, day * DAY, closeness=0.8)
        for place, (text, day, score) in enumerate(texts)
    ]


def _ordered(candidates: list[Candidate], noise: int = 0) -> list[Candidate]:
    """In their order; the noise stands between the first ones and is in no words of theirs."""
    others = [
        Candidate(100 + n, f"Nobody knows number {n}.", 0.59 - n / 1e4, 0.0, 0.0)
        for n in range(noise)
    ]
    stream = sorted((*candidates, *others), key=lambda one: -one.score)
    found = order_turns(stream, QUESTION, lambda _: candidates, repetitions=True).candidates
    return [one for one in found if one.place < 100]


def test_what_was_replaced_stands_behind_also_where_it_waited_already() -> None:
    # That it is not known for sure lowers it: it waits among those that are still to come.
    unsure = (f"{TRIPS} a Saab, no idea.", 3, 0.62)
    unrelated = ("Nobody drives on Sundays.", 20, 0.2)
    assert answer_loss(unsure[0], unsure[2], read_cues(QUESTION)) > 0
    found = _ordered(_candidates((*TOLD, unsure, unrelated)))
    places = [one.place for one in found]
    assert places.index(5) > places.index(6)
    assert found[places.index(5)].older_than is not None


def test_no_candidate_comes_twice_and_none_is_lost() -> None:
    for noise in (0, 1, 5, 30):
        found = [one.place for one in _ordered(_candidates(), noise=noise)]
        assert sorted(found) == [0, 1, 2, 3, 4]


def test_the_same_said_with_other_spaces_is_one_candidate() -> None:
    twice = [(TOLD[0][0], 40, 0.6), ("  our family car   makes strange  noises \n", 41, 0.59)]
    candidates = _candidates(twice)
    assert candidates[0].wording == candidates[1].wording
    found = list(order_turns(candidates, QUESTION, lambda _: ()).candidates)
    assert [one.again for one in found] == [(1,)]
