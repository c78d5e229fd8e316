"""Words of time: which of a question ask for the past, and which are looked up."""

from __future__ import annotations

import pytest

from anaphora.rank.currency import arrange_group
from anaphora.rank.statements import asked_words, read_cues

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
