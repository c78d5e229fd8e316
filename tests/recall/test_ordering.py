"""The order of candidates by what links them: nothing lost, what holds first, one mark for all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anaphora.rank.holding import COMING, Verdicts, answer_loss
from anaphora.rank.pairs import PairVerdict
from anaphora.rank.statements import read_cues, read_statement
from anaphora.recall.candidates import Candidate, Placed
from anaphora.recall.ordering import BEHIND, BLOCK, order_candidates

DAY = 86_400.0
QUESTION = "which car do we take for long weekend trips?"
BEFORE = "which car did we take for long weekend trips before?"
TRIPS = "Our family car for long weekend trips is"
TOLD = (
    ("Our family car makes strange noises.", 40, 0.60),
    (f"{TRIPS} a Volvo now.", 30, 0.58),
    (f"{TRIPS} a Fiat.", 0, 0.57),
    (f"{TRIPS} a Kia.", 10, 0.56),
    (f"{TRIPS} a Lada.", 5, 0.55),
)
SURE = PairVerdict(0.95, 0.02, 0.0)
NEWER = {(older, 1): SURE for older in (2, 3, 4)} | {(4, 3): SURE, (2, 3): SURE, (2, 4): SURE}


@dataclass
class Linked:
    """Links as they were made, of candidates and of others that can be fetched."""

    verdicts: Verdicts = field(default_factory=dict)
    others: Sequence[Candidate] = ()
    asked: list[tuple[int, ...]] = field(default_factory=list)

    def link(
        self, block: Sequence[Candidate], known: Mapping[int, Candidate]
    ) -> tuple[Sequence[Candidate], Verdicts]:
        own = {one.index for one in block}
        self.asked.append(tuple(own))
        pairs = {pair: verdict for pair, verdict in self.verdicts.items() if own & {*pair}}
        ends = {end for pair in pairs for end in pair}
        fetched = [one for one in self.others if one.index in ends - own - known.keys()]
        reach = own | known.keys() | {one.index for one in fetched}
        return (*block, *fetched), {p: pairs[p] for p in pairs if reach.issuperset(p)}


def candidates_of(told: Iterable[tuple[str, float, float]] = TOLD) -> list[Candidate]:
    return [
        Candidate(index, text, score, 0.6, day * DAY)
        for index, (text, day, score) in enumerate(told)
    ]


def numbered(count: int, score: float = 0.5) -> list[Candidate]:
    return [
        Candidate(100 + n, f"Item {n} costs {n} euros.", score - n / 1e4, 0.1, n * DAY)
        for n in range(count)
    ]


def in_order(
    candidates: Iterable[Candidate],
    verdicts: Verdicts | None = None,
    question: str = QUESTION,
    others: Sequence[Candidate] = (),
    **kwargs: Any,
) -> list[Placed]:
    best_first = sorted(candidates, key=lambda one: -one.score)
    linked = Linked(verdicts or {}, [*best_first, *others])
    return list(order_candidates(best_first, question, linked, **kwargs).candidates)


def indexes_of(placed: Iterable[Placed]) -> list[int]:
    return [one.index for one in placed]


_TEXTS = st.sampled_from([*(text for text, _, _ in TOLD), QUESTION, "I don't know.", "Tea.", ""])
_VERDICTS = st.builds(PairVerdict, *(st.floats(0, 1),) * 3)
_QUESTIONS = st.sampled_from([QUESTION, BEFORE, "which car was our first one?", "", "and in May?"])


@st.composite
def _homes(draw: st.DrawFn) -> tuple[list[Candidate], Verdicts]:
    """Candidates of a home, more than a block of them, with links between some."""
    count = draw(st.integers(1, 60))
    told = st.tuples(_TEXTS, st.integers(0, 30), st.floats(0, 1), st.booleans(), st.booleans())
    candidates = [
        Candidate(
            index,
            # Few are said twice.
            text if index % 5 == 0 else f"{text} Number {index}.",
            score,
            0.5,
            day * DAY,
            assistant=assistant,
            coming=coming and day > 20,
        )
        for index, (text, day, score, assistant, coming) in enumerate(
            draw(st.lists(told, min_size=count, max_size=count))
        )
    ]
    indexes = st.integers(0, count - 1)
    pairs = draw(st.dictionaries(st.tuples(indexes, indexes), _VERDICTS, max_size=30))
    return candidates, {
        (old, new): verdict
        for (old, new), verdict in pairs.items()
        if candidates[old].at < candidates[new].at
    }


@pytest.mark.promise("recall.current")
@settings(max_examples=60, deadline=None)
@given(_homes(), _QUESTIONS, st.booleans(), st.sampled_from([(), ((0.0, 15 * DAY),)]))
def test_no_candidate_comes_twice_and_none_is_lost(
    home: tuple[list[Candidate], Verdicts],
    question: str,
    repetitions: bool,
    spans: tuple[tuple[float, float], ...],
) -> None:
    """Whatever links them, each comes once, itself or folded into one; standings never rise."""
    candidates, verdicts = home
    placed = in_order(candidates, verdicts, question, spans=spans, repetitions=repetitions)
    found = [index for one in placed for index in (one.index, *one.candidate.copies)]
    assert sorted(found) == list(range(len(candidates)))
    assert not repetitions or indexes_of(placed) == found
    assert all(one.standing >= next_one.standing for one, next_one in pairwise(placed))


@settings(max_examples=40, deadline=None)
@given(_homes(), _QUESTIONS)
def test_without_links_the_best_comes_first(
    home: tuple[list[Candidate], Verdicts], question: str
) -> None:
    """Equal ones come as they were found, and nothing is marked."""
    candidates, cues = home[0], read_cues(question)
    placed = in_order(candidates, {}, question, repetitions=True)
    lowered = {
        one.index: one.score - answer_loss(one.statement.reading, one.score, cues)
        for one in candidates
    }
    assert [one.standing for one in placed] == sorted(lowered.values(), reverse=True)
    assert all(one.standing == one.candidate.score == lowered[one.index] for one in placed)
    assert all(one.older_than is None and not one.previous for one in placed)
    same = [replace(one, score=0.5, text=f"Car {one.index}.") for one in candidates]
    assert indexes_of(in_order(same, {}, question)) == list(range(len(same)))


@pytest.mark.promise("recall.current")
@settings(max_examples=40, deadline=None)
@given(_homes(), _QUESTIONS, _QUESTIONS)
def test_marks_are_the_same_for_any_question(
    home: tuple[list[Candidate], Verdicts], question: str, other: str
) -> None:
    """Of candidates that are linked at once, whatever is asked."""
    candidates, verdicts = home[0][:BLOCK], home[1]
    verdicts = {pair: one for pair, one in verdicts.items() if max(pair) < len(candidates)}
    first, second = (
        {
            one.index: (one.older_than, one.reason)
            for one in in_order(candidates, verdicts, asked, repetitions=True)
        }
        for asked in (question, other)
    )
    assert first == second
    for index, (newer, _) in first.items():
        assert newer is None or (first[newer][0] is None and newer != index)


@pytest.mark.promise("recall.current")
@pytest.mark.parametrize("chained", [False, True])
def test_of_what_was_replaced_one_stands_with_what_holds(chained: bool) -> None:
    """The others stand at a tenth, behind others; also where each is linked with the next alone."""
    verdicts = {(2, 4): SURE, (4, 3): SURE, (3, 1): SURE} if chained else NEWER
    candidates = [replace(one, score=0.5) if one.index == 1 else one for one in candidates_of()]
    other = Candidate(9, "The garage opens at six.", 0.3, 0.2, 0.0)
    placed = in_order([*candidates, other], verdicts)
    assert indexes_of(placed) == [0, 1, 2, 9, 3, 4]
    by_index = {one.index: one for one in placed}
    assert sorted(by_index[1].previous) == [2, 3, 4]
    assert by_index[1].standing == by_index[2].standing == candidates[2].score
    for index in (3, 4):
        assert by_index[index].standing == BEHIND * by_index[index].candidate.score
    for index in (2, 3, 4):
        assert by_index[index].older_than == 1
        assert by_index[index].reason == "a later statement, probability 0.95"


def test_where_what_holds_is_the_best_itself_the_best_of_the_others_keeps_its_place() -> None:
    """The rest of what it replaced is behind, and it names them all."""
    other = Candidate(9, "The garage opens at six.", 0.3, 0.2, 0.0)
    placed = in_order([*candidates_of()[1:], other], NEWER)
    assert indexes_of(placed) == [1, 2, 9, 3, 4]
    assert placed[0].previous == (2, 3, 4)


def test_what_replaces_more_surely_is_named_first() -> None:
    less = {pair: PairVerdict(0.8 + pair[0] / 100, 0.0, 0.0) for pair in ((2, 1), (3, 1), (4, 1))}
    placed = in_order(candidates_of()[1:], less)
    assert placed[0].previous == (4, 3, 2)
    assert placed[1].reason == "a later statement, probability 0.82"


@pytest.mark.promise("recall.current")
def test_what_replaced_one_is_fetched_however_far_it_lies() -> None:
    """It was no candidate, and stands before the first one."""
    fiat, volvo = candidates_of()[2], replace(candidates_of()[1], score=0.3)
    placed = in_order([fiat, *numbered(3)], {(2, 1): SURE}, others=[volvo])
    assert indexes_of(placed)[:2] == [1, 2]
    assert placed[0].previous == (2,)
    assert placed[0].standing == fiat.score


@pytest.mark.parametrize("between", [0, 5, BLOCK, 3 * BLOCK])
def test_links_reach_across_blocks(between: int) -> None:
    """What is fetched from a later block comes once, and what is found there has links itself."""
    fiat, kia, volvo = (candidates_of()[index] for index in (2, 3, 1))
    low = replace(kia, score=0.01), replace(volvo, score=0.02)
    chain = {(2, 3): SURE, (3, 1): SURE}
    placed = in_order([fiat, *numbered(between), *low], chain)
    assert sorted(indexes_of(placed)) == sorted([1, 2, 3, *range(100, 100 + between)])
    newest = next(one for one in placed if one.index == 1)
    assert newest.older_than is None
    kia_placed = next(one for one in placed if one.index == 3)
    assert kia_placed.older_than in ((1,) if between < BLOCK - 2 else (1, None))


def test_what_was_fetched_and_leads_nothing_is_not_lost() -> None:
    """An older one, named by a link of the best, comes at its own place."""
    volvo, fiat = candidates_of()[1], replace(candidates_of()[2], score=0.1)
    placed = in_order([volvo, *numbered(30), fiat], {(2, 1): SURE})
    assert indexes_of(placed)[0] == 1
    assert indexes_of(placed).count(2) == 1
    assert next(one for one in placed if one.index == 2).older_than == 1


def test_what_was_replaced_stands_behind_also_where_it_waited_already() -> None:
    # That it is not known for sure lowers it: it waits among those that are still to come.
    unsure = (f"{TRIPS} a Saab, no idea.", 3, 0.62)
    unrelated = ("Nobody drives on Sundays.", 20, 0.2)
    assert answer_loss(read_statement(unsure[0]), unsure[2], read_cues(QUESTION)) > 0
    placed = in_order(candidates_of((*TOLD, unsure, unrelated)), {**NEWER, (5, 1): SURE})
    places = indexes_of(placed)
    assert places.count(5) == 1
    assert places.index(5) > 0
    assert placed[places.index(5)].older_than == 1


@pytest.mark.promise("recall.repetition")
def test_repetitions_are_one_with_their_last_time() -> None:
    """What was said again holds from then on, whatever replaced it before."""
    again = Candidate(5, f"{TRIPS}  a fiat", 0.4, 0.6, 50 * DAY)
    placed = in_order([*candidates_of()[1:3], again], {(2, 1): SURE, (1, 5): SURE})
    assert indexes_of(placed) == [2, 1]
    assert placed[0].candidate.copies == (5,)
    assert placed[0].candidate.at == 50 * DAY
    assert (placed[0].older_than, placed[1].older_than) == (None, 2)


def test_repetitions_are_linked_by_their_own_times() -> None:
    """Each is looked up as it was said, and a repetition that is fetched is folded as well."""
    again = Candidate(5, f"{TRIPS} a Volvo now.", 0.2, 0.6, 50 * DAY)
    fiat, volvo = candidates_of()[2], candidates_of()[1]
    linked = Linked({(2, 1): SURE, (2, 5): SURE}, [again])
    placed = list(order_candidates([volvo, fiat], QUESTION, linked).candidates)
    assert linked.asked == [(1, 2)]
    assert indexes_of(placed) == [1, 2]
    assert placed[0].candidate.copies == (5,)


def test_the_same_said_with_other_spaces_is_one_candidate() -> None:
    twice = [(TOLD[0][0], 40, 0.6), ("  our family car   makes strange  noises \n", 41, 0.59)]
    candidates = candidates_of(twice)
    assert candidates[0].wording == candidates[1].wording
    assert [one.candidate.copies for one in in_order(candidates)] == [(1,)]


@pytest.mark.promise("recall.current")
def test_the_past_that_is_asked_for_comes_first() -> None:
    """What was replaced, the best of it first; and the oldest where that is asked for."""
    placed = in_order(candidates_of()[1:], NEWER, BEFORE)
    assert indexes_of(placed) == [2, 3, 4, 1]
    first = in_order(candidates_of()[1:], NEWER, "which car did we take for trips at first?")
    assert indexes_of(first)[0] == 2


@pytest.mark.promise("recall.current")
@pytest.mark.parametrize(("end", "expected"), [(3, 2), (7, 4), (20, 3), (35, 1)])
@pytest.mark.parametrize("best", [1, 2, 3, 4])
def test_what_held_at_a_time_that_is_asked_for_comes_first(
    end: int, expected: int, best: int
) -> None:
    """Whichever is found first."""
    candidates = [
        replace(one, score=0.9 if one.index == best else one.score) for one in candidates_of()[1:]
    ]
    asked = "which car did we take for long weekend trips in March?"
    placed = in_order(candidates, NEWER, asked, spans=((0.0, end * DAY),))
    assert placed[0].index == expected


def test_what_is_dated_in_the_future_replaces_nothing_that_is_said_now() -> None:
    """Also where the two are found in different blocks."""
    coming = Candidate(7, f"{TRIPS} a Tesla.", 0.9, 0.6, 900 * DAY, coming=True)
    for between in (0, 2 * BLOCK):
        volvo = replace(candidates_of()[1], score=0.1)
        placed = in_order([coming, *numbered(between), volvo], {(1, 7): SURE})
        assert indexes_of(placed)[:2] == [1, 7]
        assert placed[0].older_than is None
        assert placed[1].older_than == 1
        assert placed[1].reason.startswith(COMING)


@pytest.mark.parametrize("noise", [0, 3, 12, 40])
def test_where_the_number_of_candidates_is_known_few_are_read(noise: int) -> None:
    """And the answer is the same."""
    read: list[int] = []

    def stream() -> Iterator[Candidate]:
        for candidate in candidates:
            read.append(candidate.index)
            yield candidate

    candidates = numbered(noise)
    whole = order_candidates(candidates, QUESTION, Linked(), repetitions=True)
    known = order_candidates(stream(), QUESTION, Linked(), count=noise, repetitions=True)
    assert known.confidence == pytest.approx(whole.confidence) or noise > BLOCK
    first = next(known.candidates, None)
    assert len(read) <= BLOCK + 1
    assert first == next(whole.candidates, None) or noise > BLOCK
    assert indexes_of(known.candidates) == indexes_of(whole.candidates)
