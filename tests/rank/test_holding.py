"""What holds, of statements and what links them: laws of the order and of the marks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.rank.holding import (
    BEFORE,
    CONSTANT,
    FEATURES,
    LEADS,
    FoundStatement,
    Standing,
    Verdicts,
    answer_loss,
    find_echoes,
    find_standing,
    precedence,
    precedence_features,
    put_coming_first,
)
from anaphora.rank.pairs import OUTDONE, REPLACED, PairVerdict, beside_rivals, statement_of
from anaphora.rank.statements import read_cues, read_statement

DAY = 86_400.0
QUESTION = "which port does the staging database listen on?"
SURE = PairVerdict(0.95, 0.02, 0.0)

_TEXTS = st.sampled_from(
    [
        "The staging database listens on port 5433.",
        "Staging's database is on port 5439 now.",
        "Noted: the staging database listens on port 5433.",
        QUESTION,
        "which port did the staging database listen on before?",
        "which port did we start with originally?",
        "I don't know the port.",
        "Lunch is at noon.",
        "Ada drinks tea.",
        "",
        "?!",
    ]
) | st.text(max_size=40)
_SCORES = st.floats(0, 1)
_FOUND = st.builds(
    lambda text, day, speaker, score, meaning, restated: FoundStatement(
        statement_of(text, day * DAY, speaker), score, meaning, day * DAY, restated
    ),
    _TEXTS,
    st.floats(0, 400) | st.just(math.nan),
    st.sampled_from(("", "Ada", "assistant")),
    _SCORES,
    st.floats(-1, 1),
    st.integers(0, 9),
)
_VERDICTS = st.builds(PairVerdict, _SCORES, _SCORES, _SCORES)
_SPANS = st.lists(st.tuples(st.just(0.0), st.floats(1, 400 * DAY)), max_size=1)


@st.composite
def _linked(
    draw: st.DrawFn,
) -> tuple[dict[int, FoundStatement], dict[tuple[int, int], PairVerdict]]:
    """Statements, and what links some of them, in whichever direction."""
    found = dict(enumerate(draw(st.lists(_FOUND, min_size=2, max_size=7))))
    ends = st.tuples(*(st.sampled_from(sorted(found)),) * 2).filter(lambda pair: pair[0] != pair[1])
    return found, draw(st.dictionaries(ends, _VERDICTS, max_size=10))


def found_of(
    *told: tuple[str, float], assistant: tuple[int, ...] = ()
) -> dict[int, FoundStatement]:
    """(text, day) of statements, best first; scores fall by a tenth of the best."""
    return {
        index: FoundStatement(
            statement_of(text, day * DAY, "assistant" if index in assistant else ""),
            1.0 - 0.1 * index,
            0.6 - 0.06 * index,
            day * DAY,
        )
        for index, (text, day) in enumerate(told)
    }


def standing_of(
    found: Mapping[int, FoundStatement],
    verdicts: Verdicts,
    question: str = QUESTION,
    *spans: tuple[float, float],
) -> Standing:
    return find_standing(found, verdicts, read_cues(question), spans)


@pytest.mark.promise("recall.current")
@given(_linked(), _TEXTS, _SPANS, _SCORES)
def test_an_unrelated_statement_changes_nothing(
    linked: tuple[dict[int, FoundStatement], dict[tuple[int, int], PairVerdict]],
    question: str,
    spans: list[tuple[float, float]],
    score: float,
) -> None:
    """What no link names, at any score, moves and marks none of the rest."""
    found, verdicts = linked
    noise = FoundStatement(statement_of("Quokkas yodel.", 7 * DAY), score, 0.0, 7 * DAY)
    alone = standing_of(found, verdicts, question, *spans)
    assert standing_of({**found, 99: noise}, verdicts, question, *spans) == alone
    assert standing_of(found, {}, question, *spans) == Standing({}, {})


@pytest.mark.promise("recall.current")
@given(_linked(), _TEXTS)
def test_only_what_was_said_later_replaces(
    linked: tuple[dict[int, FoundStatement], dict[tuple[int, int], PairVerdict]], question: str
) -> None:
    """A mark names a later one, surely enough; where the past is not asked, later ones lead."""
    found, verdicts = linked
    standing = standing_of(found, verdicts, question)
    for old, (new, chance) in standing.marks.items():
        assert found[old].at < found[new].at
        assert chance >= REPLACED
        assert new not in standing.marks
    past = read_cues(question).past >= 2
    for index, leaders in standing.leaders.items():
        assert len(leaders) == len(set(leaders))
        for leader in leaders:
            older, newer = (leader, index) if past else (index, leader)
            assert found[older].at < found[newer].at


@pytest.mark.promise("recall.current")
@given(_linked(), _TEXTS, _TEXTS, _SPANS)
def test_no_question_changes_what_is_marked(
    linked: tuple[dict[int, FoundStatement], dict[tuple[int, int], PairVerdict]],
    question: str,
    other: str,
    spans: list[tuple[float, float]],
) -> None:
    """What is replaced is replaced whatever is asked, and of whichever time."""
    assert standing_of(*linked, question).marks == standing_of(*linked, other, *spans).marks


@pytest.mark.promise("recall.current")
@given(st.permutations(range(5)), st.floats(REPLACED, 1))
def test_a_mark_names_the_last_of_a_chain(days: list[int], chance: float) -> None:
    """However the statements are found, and whatever links come first."""
    found = found_of(*((f"The port is {5430 + day}.", day) for day in days))
    in_time = sorted(found, key=lambda index: found[index].at)
    verdicts = {pair: PairVerdict(chance, 0.0, 0.0) for pair in pairwise(in_time)}
    marks = standing_of(found, verdicts).marks
    assert marks == dict.fromkeys(in_time[:-1], (in_time[-1], chance))


@pytest.mark.promise("recall.repetition")
@given(st.floats(REPLACED, 1), _TEXTS)
def test_an_echo_replaces_nothing_and_is_outdated_with_its_source(
    chance: float, question: str
) -> None:
    """An assistant's repetition supports what was said, and goes with it."""
    found = found_of(
        ("The staging database listens on port 5433.", 0),
        ("Noted: the staging database listens on port 5433.", 1),
        ("Staging moved, the database listens on port 5439.", 10),
        ("Noted: the staging database listens on port 5433.", 20),
        assistant=(1, 3),
    )
    statements = {index: one.statement for index, one in found.items()}
    assert find_echoes(statements) == {1: 0, 3: 0}
    verdict = PairVerdict(chance, 0.0, 0.0)
    # Of what was said after its source, the last echo is no change; and of its source neither.
    standing = standing_of(found, {(0, 3): verdict, (2, 3): verdict}, question)
    assert standing == Standing({}, {})
    marks = standing_of(found, {(0, 2): verdict, (2, 3): verdict}, question).marks
    assert marks == {0: (2, chance), 1: (2, chance)}


@given(st.lists(_FOUND, max_size=6))
def test_an_assistant_repeats_what_a_user_said_before(found: list[FoundStatement]) -> None:
    statements = {index: one.statement for index, one in enumerate(found)}
    for echo, source in find_echoes(statements).items():
        assert statements[echo].assistant
        assert not statements[source].assistant
        assert statements[source].at < statements[echo].at


def test_the_past_that_is_asked_for_turns_the_order() -> None:
    """What holds stands first; of the past what was replaced, the best or the first of it."""
    found = found_of(("The port is 5439.", 40), ("The port is 5435.", 20), ("The port is 5433.", 0))
    verdicts = {(2, 1): SURE, (1, 0): SURE, (2, 0): SURE}
    leaders = standing_of(found, verdicts).leaders
    assert leaders == {1: [0], 2: [0, 1]}
    before = standing_of(found, verdicts, "which port did staging use before?").leaders
    assert before == {0: [1, 2], 1: [2]}
    first = standing_of(found, verdicts, "which port did staging use at first?").leaders
    assert first == {0: [2, 1], 1: [2]}


@pytest.mark.promise("recall.current")
@given(st.integers(0, 100))
def test_a_time_in_the_question_asks_for_what_held_then(day: int) -> None:
    """A span that ends before a change gets the value before it, one after it the value since."""
    found = found_of(("The port is 5439.", 40), ("The port is 5433.", 0))
    asked = "which port did the staging database listen on in January?"
    leaders = standing_of(found, {(1, 0): SURE}, asked, (0.0, day * DAY)).leaders
    assert leaders == ({1: [0]} if day > 40 else {0: [1]})


@given(_FOUND, _FOUND, _VERDICTS, _TEXTS)
def test_what_stands_first_is_as_probable_as_its_link(
    older: FoundStatement, newer: FoundStatement, verdict: PairVerdict, question: str
) -> None:
    """It is a probability of known features, and no less for a surer replacement."""
    cues = read_cues(question)
    assert len(precedence_features(older, newer, verdict, cues)) == len(FEATURES)
    chance = precedence(older, newer, verdict, cues)
    assert 0.0 <= chance <= 1.0
    surer = PairVerdict(1.0, verdict.both, verdict.repeats)
    assert precedence(older, newer, surer, cues) >= chance


@pytest.mark.promise("recall.current")
@given(st.integers(0, 9_999), st.integers(0, 9_999), _VERDICTS)
def test_an_identifier_of_the_question_that_is_lacking_keeps_the_newer_one_behind(
    asked: int, other: int, verdict: PairVerdict
) -> None:
    older, newer = found_of(
        (f"Ticket {asked:04} is done.", 0), (f"Ticket {other:04} is open.", 9)
    ).values()
    cues = read_cues(f"what about ticket {asked:04}?")
    behind = precedence(older, newer, verdict, cues) == 0.0
    assert behind == (asked != other)
    if behind:
        assert (
            standing_of({0: older, 1: newer}, {(0, 1): SURE}, f"ticket {asked:04}?").leaders == {}
        )


def test_of_several_that_are_as_sure_the_latest_leads() -> None:
    found = found_of(
        ("The port is 5433.", 0),
        ("The port is 5439.", 40),
        ("The port is 5435.", 10),
        ("The printer is new.", 50),
    )
    verdicts = {(0, 2): SURE, (0, 1): SURE, (0, 3): PairVerdict(0.02, 0.9, 0.0)}
    standing = standing_of(found, verdicts)
    assert standing == Standing({0: [1, 2]}, {0: (1, 0.95)})


@given(
    st.lists(st.tuples(st.floats(-1e9, 4e9) | st.just(math.nan), st.booleans()), max_size=8).filter(
        lambda ones: not any(coming and math.isnan(at) for at, coming in ones)
    )
)
def test_what_is_coming_is_put_before_all_that_was_said(ones: list[tuple[float, bool]]) -> None:
    """In its order; what was said keeps its time."""
    at, coming = [one[0] for one in ones], [one[1] for one in ones]
    put = put_coming_first(at, coming)
    said = [time for time, ahead in zip(put, coming, strict=True) if not ahead]
    assert said == pytest.approx([time for time, ahead in ones if not ahead], nan_ok=True)
    for time, ahead in zip(put, coming, strict=True):
        known = [one for one in said if not math.isnan(one)]
        assert not ahead or not known or time < min(known)
    ahead_at = sorted((at[index], put[index]) for index in range(len(at)) if coming[index])
    assert [time for _, time in ahead_at] == sorted(time for _, time in ahead_at)


@given(_TEXTS, st.floats(-1, 1), _TEXTS)
def test_only_what_asks_or_does_not_know_loses_and_never_all(
    text: str, score: float, question: str
) -> None:
    read, cues = read_statement(text), read_cues(question)
    loss = answer_loss(read, score, cues)
    assert 0.0 <= loss <= max(0.0, score) / 2
    if loss:
        assert read.asks or read.unknown or read.words - read.told
    long = read_statement(text + " The staging database has a port." * 4)
    assert answer_loss(long, score, cues) == 0.0


def test_the_weights_of_what_holds_are_those_of_the_features() -> None:
    assert set(BEFORE) == {CONSTANT, *FEATURES}
    assert 0 < LEADS <= REPLACED < 1


@given(st.floats(1, 59), st.floats(0.05, 0.59))
def test_what_is_said_again_within_a_minute_leads_nothing(seconds: float, chance: float) -> None:
    """Many such would crowd out all else."""
    text = "The staging database listens on port 5433."
    found = found_of((text, 0.0), (f"{text} Yes.", seconds / DAY))
    repeated = PairVerdict(chance, 0.0, 0.9)
    assert not find_standing(found, {(0, 1): repeated}, read_cues(QUESTION)).leaders


LAST = 99
CHANCES = st.lists(st.floats(0.0, 0.99), min_size=1, max_size=8)


def beside_others(
    chances: list[float], of_one: dict[tuple[int, int], float] | None = None
) -> list[float]:
    """What is left of these probabilities, in their order."""
    verdicts = {(older, LAST): PairVerdict(p, 0.0, 0.0) for older, p in enumerate(chances)}
    rated = beside_rivals(verdicts, of_one or {})
    return [rated[older, LAST].replaces for older in range(len(chances))]


@pytest.mark.promise("links.rivals")
@given(CHANCES)
def test_unrelated_ones_share_one_probability(chances: list[float]) -> None:
    """None gains, the surest stays it, and only that can be more probable than not."""
    left = beside_others(chances)
    assert sorted(left)[-2:-1] <= [0.5 + 1e-6]
    assert all(now <= was + 1e-6 for now, was in zip(left, chances, strict=True))
    surest = max(range(len(chances)), key=chances.__getitem__)
    # The square of the tiniest is no number any more.
    assert max(range(len(left)), key=left.__getitem__) == surest or max(chances) < 1e-150


@pytest.mark.promise("links.rivals")
@given(CHANCES)
def test_what_is_of_one_thing_keeps_its_probability(chances: list[float]) -> None:
    """A value that was said and changed before is replaced as often as it was said."""
    numbers = range(len(chances))
    of_one = {(first, second): 1.0 for first in numbers for second in numbers if first < second}
    assert beside_others(chances, of_one) == pytest.approx(chances, abs=1e-6)


@pytest.mark.promise("links.rivals")
def test_forty_alike_replace_nothing() -> None:
    """Where nothing tells them apart, none is replaced; beside a sure one they are nothing."""
    assert max(beside_others([0.5] * 40)) < 0.05
    sure, *others = beside_others([0.95, *[0.4] * 39])
    assert sure == pytest.approx(0.95, abs=1e-6)
    assert max(others) < 0.05


@pytest.mark.promise("links.rivals")
def test_what_was_judged_before_tells_what_is_of_one_thing() -> None:
    """The later of two verdicts sees the earlier one, as it was left beside its own rivals."""
    both = {(1, 2): PairVerdict(0.9, 0.0, 0.0)}
    both |= {(older, 3): PairVerdict(0.8, 0.0, 0.0) for older in (1, 2)}
    assert [one.replaces for one in beside_rivals(both).values()] == pytest.approx([0.9, 0.8, 0.8])
    apart = {pair: one for pair, one in both.items() if pair != (1, 2)}
    assert max(one.replaces for one in beside_rivals(apart).values()) < 0.5
    repeated = {(1, 2): OUTDONE}
    known = beside_rivals(apart, repeated)
    assert [one.replaces for one in known.values()] == pytest.approx([0.8, 0.8])
