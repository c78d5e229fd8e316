"""Statements and questions: what is read of one, however it was typed."""

from __future__ import annotations

from functools import cached_property

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.rank.sameness_pairs import ONE_FACT, TWO_FACTS

from anaphora.language.languages.language import languages
from anaphora.rank.holding import answer_loss
from anaphora.rank.statements import (
    StatementReading,
    asked_words,
    keep_reading,
    read_cues,
    read_statement,
    words_of,
)
from anaphora.rank.turn_table import PERSONAL, STANDING, turn_flags


@pytest.mark.parametrize(
    ("text", "attributes", "values"),
    [
        ("The staging database listens on port 5433.", "number port", "5433 port"),
        ("We moved the staging database to port 5439.", "number port", "5439 port"),
        ("Mara lives in Ghent.", "", "ghent"),
        ("Mara moved to Turin.", "", "turin"),
        ("My desk phone is 4417.", "number", "4417"),
        ("The landlord raised our rent to 1,040 euros.", "number euro", None),
        ("The choir is on Thursdays.", "day", "thursday"),
        ("The stand-up is at 9:15.", "number time", None),
        ("The parser lives in src/lang/parser.py.", "path", None),
        ("Wir wohnen in der Lindenstraße 5.", "number lindenstrass", "5"),
    ],
)
def test_keys_are_read_of_one_text(text: str, attributes: str, values: str | None) -> None:
    """Days, times, numbers with their words; what stands before the verb is no value."""
    keys = read_statement(text).keys
    assert " ".join(sorted(keys.attributes)) == attributes
    if values is not None:
        assert keys.values == set(values.split())


TOLD = "Mara told us that the printer café is in Ghent."


PARTS = [
    name
    for name, part in vars(StatementReading).items()
    if isinstance(part, property | cached_property) and not name.startswith("_")
]


def _list_parts(reading: StatementReading) -> dict[str, object]:
    """All that is read of a text, but how long it is and how it is written."""
    return {name: getattr(reading, name) for name in PARTS if name not in ("size", "head")}


@pytest.mark.parametrize(
    "text",
    [
        "  " + TOLD.replace(" ", "  ") + " \n",
        TOLD.replace(" ", "\t"),
        TOLD.replace("é", "e\u0301"),
    ],
    ids=["spaces", "tabs", "decomposed"],
)
def test_spaces_and_normal_forms_change_no_reading(text: str) -> None:
    assert read_statement(text) == read_statement(TOLD)
    assert words_of(text) == words_of(TOLD)


def test_lines_stay_apart() -> None:
    assert read_statement("Is it far\nYes, a day.").asks is False
    assert read_statement("one  line\nanother   one ") == read_statement("one line\nanother one")


def test_final_marks_are_not_counted() -> None:
    with_marks, without = read_statement(f"{TOLD}..."), read_statement(TOLD.rstrip("."))
    assert with_marks.size == without.size == len(TOLD) - 1


@pytest.mark.parametrize(
    "question",
    [
        "Where is our podcast hosted?",
        "What is the desk phone?",
        "On which day is boxing?",
        "Jonas: Who is my dentist?",
        "¿Dónde está la llave?",
        "Whens the last time you had one?",
    ],
)
def test_a_question_without_its_mark_tells_nothing_either(question: str) -> None:
    asked, bare = read_statement(question), read_statement(question.rstrip("?"))
    assert bare.asks
    assert bare.told == asked.told == frozenset()
    assert _list_parts(bare) == _list_parts(asked)


@pytest.mark.parametrize(
    "text",
    [
        "Will: lawyer in Kranach Street, copy in Elsbeth's desk.",
        "What a day.",
        "When I get home I cook.",
        "I liked it. Where did you learn to make it?",
        "Really?",
    ],
)
def test_a_text_asks_the_same_without_its_last_mark(text: str) -> None:
    whole, bare = read_statement(text), read_statement(text[:-1])
    assert _list_parts(whole) == _list_parts(bare)


WORDS_OF_MANY = sorted(
    {
        *("Ghent", "I.", "not", "5433", "9:15", "src/a.py", "May", "3rd", "locker", "3", "now?"),
        *("a=b", "=", "getUserName", "1,040"),
        *(word for language in languages().values() for word in language.written),
        *(f"{word}?" for language in languages().values() for word in language.written),
    }
)


@given(
    st.one_of(
        st.text(max_size=200),
        st.sampled_from([text for pair in ONE_FACT + TWO_FACTS for text in pair]),
        st.lists(st.sampled_from(WORDS_OF_MANY), max_size=12).map(" ".join),
    )
)
@example("Are you sure? I am not. We moved the server to port 5439 on Monday, 9:15.")
@example("¿Dónde vive María? Ya no vive aquí. Wir wohnen in der Lindenstraße 5.")
@example("\ud800 \x1c a\tb")
@example("I know it. " + "word " * 2_000 + "Why?")
def test_what_is_kept_of_a_reading_is_that_reading(text: str) -> None:
    kept = keep_reading(text)
    assert "\n" not in kept
    assert _list_parts(read_statement(text, kept)) == _list_parts(read_statement(text))


def test_what_is_kept_is_not_read_again() -> None:
    text = "Mara lives in Ghent."
    reading = read_statement(text, keep_reading(text).replace("ghent", "turin"))
    assert reading.words == {"mara", "live", "turin"}
    assert reading.keys.values == {"turin"}


@pytest.mark.parametrize("wiped", [0, 1, 9, 12, 24])
def test_what_was_kept_of_another_text_is_not_believed(wiped: int) -> None:
    """Nor what is wiped just then: a line is overwritten from its beginning."""
    kept, text = keep_reading("Mara lives in Ghent."), "Mara lives in Turin."
    assert read_statement(text, kept).words == read_statement(text).words
    assert read_statement("Mara lives in Ghent.", kept[wiped:]).words == {"mara", "live", "ghent"}


def test_a_standing_instruction_is_one_with_more_spaces_too() -> None:
    assert turn_flags("  From  now  on,  answer  in  French.") == STANDING


def test_a_short_question_loses_as_much_with_more_spaces() -> None:
    question, cues = "Where is it, " + "so " * 25 + "far?", read_cues("where is it")
    wide = question.replace(" ", "     ")
    assert len(wide) > 100
    losses = [answer_loss(read_statement(text), 1.0, cues) for text in (wide, question)]
    assert losses[0] == losses[1] > 0


@pytest.mark.parametrize(
    "text",
    [
        "For Kestrel, MySQL is gone.",
        "Yes, Mara is in Porto.",
        "Our family car is still a Fiat.",
        "The key of the garage is with Paula.",
    ],
)
def test_capitals_change_nothing_that_is_read(text: str) -> None:
    small = text.casefold()
    assert _list_parts(read_statement(text)) == _list_parts(read_statement(small))


@pytest.mark.parametrize("text", ["I used to live there", "I'm in Porto", "My desk", "Mine is red"])
def test_who_speaks_of_themselves_in_small_letters_is_personal(text: str) -> None:
    assert read_statement(text.lower()).personal
    assert turn_flags(text.lower()) & PERSONAL


@pytest.mark.parametrize("text", ["i.e. the port", "the i/o port", "option (a), i-beam"])
def test_another_i_is_not_personal(text: str) -> None:
    assert not read_statement(text).personal


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
