"""How a text was typed changes nothing that is read of it: capitals, spaces, final marks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anaphora.rank.currency import FEATURES, answer_loss
from anaphora.rank.replacement import Statement, is_possible, replacement_probability
from anaphora.rank.statements import read_cues, read_statement, words_of
from anaphora.rank.subjects import read_keys
from anaphora.rank.turn_table import PERSONAL, STANDING, turn_flags

DAY = 86_400.0
TOLD = "Mara told us that the printer café is in Ghent."


def _statement(text: str, day: float, speaker: str = "") -> Statement:
    return Statement(text, day * DAY, speaker, assistant=False, reading=read_statement(text))


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
    assert replace(bare, size=0) == replace(asked, size=0)


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
    assert whole == bare


def test_a_standing_instruction_is_one_with_more_spaces_too() -> None:
    assert turn_flags("  From  now  on,  answer  in  French.") == STANDING


def test_a_short_question_loses_as_much_with_more_spaces() -> None:
    question, cues = "Where is it, " + "so " * 25 + "far?", read_cues("where is it")
    wide = question.replace(" ", "     ")
    assert len(wide) > 100
    assert answer_loss(wide, 1.0, cues) == answer_loss(question, 1.0, cues) > 0


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
    assert replace(read_statement(text), size=0) == replace(read_statement(small), size=0)
    assert read_keys(text, "Mara Lind") == read_keys(small, "mara lind")


def test_no_feature_counts_capitals_of_one_text() -> None:
    assert not {"new name", "name in both", "other names", "other name"} & set(FEATURES)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Mara still lives in Porto.", "Mara still lives in Ghent."),
        ("I still go to boxing on Mondays.", "I still go to boxing on Saturdays."),
        ("Ada: I drink tea now.", "Ben: I drink tea without milk now."),
    ],
)
def test_small_letters_replace_what_capitals_do(older: str, newer: str) -> None:
    told, small = (
        (_statement(form(older), 0), _statement(form(newer), 30)) for form in (str, str.lower)
    )
    assert is_possible(*told) == is_possible(*small)
    assert replacement_probability(*told, 0.8) == pytest.approx(
        replacement_probability(*small, 0.8)
    )


@pytest.mark.parametrize("text", ["I used to live there", "I'm in Porto", "My desk", "Mine is red"])
def test_who_speaks_of_themselves_in_small_letters_is_personal(text: str) -> None:
    assert read_statement(text.lower()).personal
    assert turn_flags(text.lower()) & PERSONAL


@pytest.mark.parametrize("text", ["i.e. the port", "the i/o port", "option (a), i-beam"])
def test_another_i_is_not_personal(text: str) -> None:
    assert not read_statement(text).personal
