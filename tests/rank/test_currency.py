"""What replaces what, from words and times alone: laws of the order, and the words of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.fit_currency import Fit, Fitted, source_of
from tools.fitting import constants

from anaphora.rank import currency, currency_weights, replacement
from anaphora.rank.currency import (
    GroupJudgement,
    RankedStatement,
    arrange_group,
    compare_statements,
    date_echoes,
    find_echoes,
    judge_group,
)
from anaphora.rank.currency_weights import CONSTANT
from anaphora.rank.frames import Frame, compare_frames
from anaphora.rank.replacement import Statement, StatementPair
from anaphora.rank.statements import asked_words, read_cues, read_statement

DAY = 86_400.0
THRESHOLD = 0.4
QUESTION = "which port does the staging database listen on?"


Ranked = list[RankedStatement]


def statements_of(*told: tuple[str, float], assistant: tuple[int, ...] = ()) -> Ranked:
    """(text, day) of candidates, best first; scores fall by a tenth of the best."""
    return [
        RankedStatement(
            Statement(text, day * DAY, "", place in assistant, read_statement(text)),
            1.0 - 0.1 * place,
            0.6 - 0.06 * place,
        )
        for place, (text, day) in enumerate(told)
    ]


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


def order_of_group(statements: Ranked, question: str, *spans: tuple[float, float]) -> list[int]:
    """The places of the group of the best one in their order, those that stand behind last."""
    judged = judge_group(statements, question, THRESHOLD, spans)
    old = sorted({older for older, _ in judged.replaced})
    front, behind = arrange_group(0, judged.lifted, old, question)
    return front + behind


@pytest.mark.promise("recall.current")
@given(_TOLD, _TEXTS)
def test_a_group_loses_nothing_and_shows_one_of_what_it_replaced(
    told: list[tuple[str, float]], question: str
) -> None:
    """The best one, and all that is lifted or replaced, comes once; what holds stands in front."""
    judged = judge_group(statements_of(*told), question, THRESHOLD)
    old = sorted({older for older, _ in judged.replaced})
    front, behind = arrange_group(0, judged.lifted, old, question)
    past = read_cues(question).past >= 2
    assert sorted(front + behind) == sorted({0, *judged.lifted, *(() if past else old)})
    assert front
    if past:
        assert front == [*judged.lifted, 0]
        return
    holding = [place for place in front if place not in old]
    assert front == holding + old[:1]
    assert behind == old[1:]


@pytest.mark.promise("recall.current")
@given(_TOLD, _TEXTS, st.integers(1, 12), st.floats(0, 1))
def test_unrelated_statements_change_no_group(
    told: list[tuple[str, float]], question: str, place: int, score: float
) -> None:
    """One about nothing that was asked or told, at any score, moves and marks none of the rest."""
    statements = statements_of(*told)
    alone = judge_group(statements, question, THRESHOLD)
    at = min(place, len(told))
    noise = replace(statements_of(("Quokkas yodel.", 7))[0], score=score, meaning=0.0)
    both = [*statements[:at], noise, *statements[at:]]
    judged = judge_group(both, question, THRESHOLD)
    assert at not in judged.lifted
    assert [spot - (spot > at) for spot in judged.lifted] == list(alone.lifted)
    marks = {
        (old - (old > at), new - (new > at)): reason
        for (old, new), reason in judged.replaced.items()
    }
    assert marks == alone.replaced


@pytest.mark.promise("recall.current")
@given(_TOLD, _TEXTS)
def test_only_what_was_said_later_replaces(told: list[tuple[str, float]], question: str) -> None:
    """A probability stands only where both times are known, and a mark names the later one."""
    statements = statements_of(*told)
    pairs = compare_statements(statements, read_cues(question))
    days = [day for _, day in told]
    assert 0 not in pairs
    for place, pair in pairs.items():
        assert 0 <= pair.before <= 1
        assert 0 <= pair.replaces <= 1
        assert days[place] > days[0] if pair.is_newer else days[place] < days[0]
    for older, newer in judge_group(statements, question, THRESHOLD).replaced:
        assert 0 in (older, newer)
        assert days[newer] > days[older]


@pytest.mark.promise("recall.current")
@given(_TOLD, _TEXTS, _TEXTS)
def test_no_question_changes_what_replaces_what(
    told: list[tuple[str, float]], question: str, other: str
) -> None:
    """Two that are compared for two questions are a change for both of them, or for none."""
    statements = statements_of(*told)
    first, second = (compare_statements(statements, read_cues(q)) for q in (question, other))
    for place in first.keys() & second.keys():
        assert first[place].replaces == second[place].replaces


@pytest.mark.promise("recall.current")
@given(_TOLD, _TEXTS)
def test_what_is_marked_never_stands_before_what_replaced_it(
    told: list[tuple[str, float]], question: str
) -> None:
    """But where the past is asked for: a mark is as sure as the order."""
    order = order_of_group(statements := statements_of(*told), question)
    if read_cues(question).past >= 2:
        return
    for older, newer in judge_group(statements, question, THRESHOLD).replaced:
        assert order.index(newer) < order.index(older)


@pytest.mark.promise("recall.current")
def test_what_the_question_says_word_for_word_is_never_replaced() -> None:
    """A question that is a stored statement itself gets that statement first."""
    statements = statements_of(("fact 0 0", 0), ("fact 0 7", 1), ("fact 1 0", 2))
    assert judge_group(statements, "fact 0 0", THRESHOLD) == GroupJudgement()
    assert judge_group(statements, "which fact is it?", THRESHOLD).lifted


@pytest.mark.promise("recall.repetition")
def test_an_echo_has_the_date_of_what_it_repeats() -> None:
    """An assistant's repetition is dated by the last statement of the user that it repeats."""
    statements = statements_of(
        ("The staging database listens on port 5433.", 0),
        ("Staging moved, the database listens on port 5439.", 10),
        ("Noted: the staging database listens on port 5439.", 20),
        ("Noted: the staging database listens on port 5433.", 30),
        ("It will rain.", 40),
        assistant=(2, 3, 4),
    )
    dated = date_echoes(statements, find_echoes(statements))
    days = [round(one.at / DAY, 3) for one in dated]
    assert days == [0, 10, 10, 0, 40]
    for best, own in ((0, 3), (1, 2)):
        order = [best, *(place for place in range(len(days)) if place != best)]
        pairs = compare_statements([statements[place] for place in order], read_cues(QUESTION))
        # Neither news nor before what it repeats.
        news = {order[at] for at, pair in pairs.items() if pair.is_newer and pair.replaces}
        assert not news & {2, 3}
        own_pair = pairs.get(order.index(own))
        assert own_pair is None or own_pair.before == 0


@pytest.mark.promise("recall.current")
def test_a_time_in_the_question_asks_for_what_held_then() -> None:
    """A span that ends before a change gets the value before it, one after it the value since."""
    statements = statements_of(
        ("Staging's database listens on port 5439 now, we moved it.", 40),
        ("The staging database listens on port 5433.", 0),
    )
    asked = "which port did the staging database listen on in January?"
    early = order_of_group(statements, asked, (0.0, 31 * DAY))
    late = order_of_group(statements, asked, (31 * DAY, 62 * DAY))
    assert (early[0], late[0]) == (1, 0)


def test_of_several_replaced_values_one_stands_with_what_holds() -> None:
    """The value that holds comes first, then the best of the older ones; the rest are behind."""
    statements = statements_of(
        ("The staging database listens on port 5433.", 0),
        ("The staging database listens on port 5435.", 10),
        ("The staging database listens on port 5437.", 20),
        ("The staging database listens on port 5439 now.", 40),
    )
    lifted = judge_group(statements, QUESTION, THRESHOLD).lifted
    assert lifted[0] == 3
    order = [3, 0, 1, 2]
    judged = judge_group([statements[place] for place in order], QUESTION, THRESHOLD)
    assert judged.replaced == {
        (place, 0): f"another value of staging database: {port}, then 5439"
        for place, port in ((1, 5433), (2, 5435), (3, 5437))
    }
    old = [older for older, _ in judged.replaced]
    assert arrange_group(0, judged.lifted, old, QUESTION) == ([0, 1], [2, 3])


def test_another_judge_says_what_is_replaced() -> None:
    """It is asked once for all pairs that can be a change, the older statement of each first."""
    asked: list[list[tuple[str, str]]] = []

    def judge(pairs: Sequence[StatementPair]) -> list[float]:
        asked.append([(pair.older.text, pair.newer.text) for pair in pairs])
        return [1.0 if "the cellar" in pair.newer.text else 0.0 for pair in pairs]

    old, unlike = "The staging database listens on port 5433.", "Lunch is at noon."
    cellar = "The staging database stands in the cellar."
    newer = "The staging database listens on port 5439."
    statements = statements_of((old, 0), (unlike, 5), (cellar, 10), (newer, 20))
    judged = judge_group(statements, QUESTION, THRESHOLD, judge=judge)
    assert asked == [[(old, cellar), (old, newer)]]
    assert list(judged.replaced) == [(0, 2)]
    assert judged.lifted[0] == 2


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
        best, often = statements_of((other, 40), (fact, 0))
        statements = [best, replace(often, restated=12, closeness=0.5)]
        order = order_of_group(statements, "which editor does the user use?")
        assert statements[order[0]].statement.text == first


ASKED_FOR: tuple[str, ...] = (
    "what was the alarm code before?",
    "which gym did I go to before the move?",
    "what did we use until the migration?",
    "who used to water the plants?",
    "where Mara used to live",
    "what is the number that we used to call?",
    "what's my previous address?",
    "what is the previous price of the ticket?",
    "what is my old phone number?",
    "who was our accountant at first?",
    "what'd we pay for parking before?",
    "which broker have we used before Kafka?",
    "what was the rent in March?",
    "which school did Ida go to last year?",
    "what was the earlier price?",
    "welchen Editor habe ich früher benutzt?",
    "wo wohnte Mara vorher?",
    "was war unser altes Passwort?",
    "wer war zuerst unser Vermieter?",
    "wie hieß mein früherer Zahnarzt?",
    "was haben wir bis zum Umzug verwendet?",
    "où habitait Mara avant ?",
    "quel éditeur est-ce que j'utilisais avant ?",
    "quelle banque avons-nous utilisée avant ?",
    "quel est mon ancien numéro ?",
    "¿dónde vivía Mara antes?",
    "¿qué editor usaba yo antes?",
    "¿cuál es mi antiguo número?",
    "¿cuánto pagábamos hasta la mudanza?",
    "onde morava a Mara antes?",
    "quanto pagava eu antes da mudança?",
    "qual é o meu antigo número?",
)

NOT_ASKED_FOR: tuple[str, ...] = (
    "which port do I use before a release?",
    "what message queue do I look at first?",
    "whom do I call first about the boiler?",
    "what do I check at the start of a shift?",
    "what happens at the beginning of the show?",
    "what do I have to begin with?",
    "how do I log in Spring Boot?",
    "what broke in Spring Boot when it was deployed?",
    "which platform did the earlier train leave from?",
    "when did the first bus leave?",
    "what did the previous tenant leave?",
    "how old was the dog?",
    "what was in the first aid kit?",
    "what did I do first thing?",
    "until when was the pool open?",
    "what is the green towel used to dry?",
    "is Emil used to the dark?",
    "what is the former chapel now?",
    "where are the old bricks?",
    "which one do I take first?",
    "can we meet earlier on Friday?",
    "wen rufe ich zuerst an?",
    "was mache ich am Anfang der Stunde?",
    "kann ich am Freitag früher kommen?",
    "welchen Port nehme ich vor einem Release?",
    "wie alt war der Hund?",
    "bis wann war das Bad offen?",
    "was war im ersten Stock?",
    "qui est-ce que j'appelle d'abord ?",
    "que dois-je faire avant le train ?",
    "que fait-on au début de la semaine ?",
    "jusqu'à quelle heure était ouverte la piscine ?",
    "¿a quién llamo primero?",
    "¿qué hago antes de una reunión?",
    "¿hasta qué hora estaba abierta la piscina?",
    "a quem ligo primeiro?",
    "o que faço antes de uma reunião?",
)


@pytest.mark.promise("recall.current")
@pytest.mark.parametrize("question", ASKED_FOR)
def test_the_past_is_asked_for(question: str) -> None:
    assert read_cues(question).past == 2


@pytest.mark.promise("recall.current")
@pytest.mark.parametrize("question", NOT_ASKED_FOR)
def test_a_mere_word_of_time_asks_for_no_past(question: str) -> None:
    assert read_cues(question).past < 2


@pytest.mark.promise("recall.current")
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("which bank do I ask first?", {"bank", "ask"}),
        ("which bank do I ask first", {"bank", "ask"}),
        ("what was stuck earlier?", {"stuck"}),
        ("who lives on the first floor?", {"live", "first", "floor"}),
        ("which first aid kit do I open first?", {"first", "aid", "kit", "open"}),
        ("when does the last bus leave?", {"last", "bus", "leav"}),
        ("what was missing last year?", {"miss"}),
        ("what is the current account number?", {"current", "account", "number"}),
        ("what was the previous price?", {"price"}),
        ("what did the previous tenant leave?", {"previous", "tenant", "leav"}),
        ("which present did I buy?", {"present", "buy"}),
        ("what was the rent in March?", {"rent", "march"}),
        ("what was it before?", {"befor"}),
    ],
)
def test_what_only_says_when_is_not_looked_up(question: str, expected: set[str]) -> None:
    found = {word.tokens[0] for word in asked_words(question)}
    assert found == expected or (found >= expected and not found & {"earlier", "last", "first"})


def test_what_was_replaced_stands_first_where_the_past_is_asked_for() -> None:
    # Place 9 holds now and 4 was replaced by it; 11 only complains.
    front, behind = arrange_group(11, [9, 4], [4], "what was my desk phone before?")
    assert front == [4, 9, 11]
    assert not behind


def test_the_oldest_stands_first_where_it_is_asked_for() -> None:
    front, _ = arrange_group(11, [9, 4], [4], "what was my desk phone originally?")
    assert front == [9, 4, 11]


def test_the_weights_of_change_are_those_of_the_features() -> None:
    assert list(currency_weights.BEFORE) == [CONSTANT, *currency.FEATURES]
    assert list(currency_weights.REPLACES) == [CONSTANT, *replacement.FEATURES]


def test_the_module_of_weights_is_written_as_it_stands() -> None:
    fit = Fit(
        Fitted(dict(currency_weights.BEFORE), 0, 0),
        Fitted(dict(currency_weights.REPLACES), 0, 0),
        (),
    )
    written = [line for line in source_of(fit).splitlines() if not line.startswith("# Fitted")]
    file = constants.SOURCE / "rank" / "currency_weights.py"
    stands = [line for line in file.read_text("utf-8").splitlines() if line[:8] != "# Fitted"]
    assert written == stands
