"""What is read of a question: words, kinds, and whom it means by a name or nickname."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.rank.question import (
    find_bearer,
    match_misspelt,
    match_shortened,
    read_question,
    unknown_names,
)
from anaphora.rank.turn_table import ROLE_ASSISTANT, ROLE_USER

PRESENT = {0: "Kevin", 1: "Fahim Khan", 2: "Will", 3: "Zoë"}


@pytest.mark.parametrize(
    ("question", "speakers", "meaning"),
    [
        ("What sports does Kevin play?", (0,), "What sports does I play?"),
        (
            "what is kevin's job, and where does he live?",
            (0,),
            "what is my job, and where does I live?",
        ),
        ("Where did Fahim work?", (1,), "Where did I work?"),
        ("Where did Fahim Khan work?", (1,), "Where did I work?"),
        ("Which films do both Kevin and Fahim like?", (0, 1), "Which films do we like?"),
        ("Wo wohnt Kevin jetzt?", (0,), "Wo wohnt jetzt?"),
        ("What does Zoe cook?", (3,), "What does I cook?"),
        ("When will the parcel come?", (), "When will the parcel come?"),
        ("Will it rain?", (), "Will it rain?"),
        ("Did Will call?", (2,), "Did I call?"),
        ("Who is Kevinson?", (), "Who is Kevinson?"),
    ],
)
def test_names_of_speakers_are_read(question: str, speakers: tuple[int, ...], meaning: str) -> None:
    """A speaker's name says whose turns are meant, and the meaning is put as they would put it."""
    reading = read_question(question, PRESENT)
    assert reading.speakers == speakers
    assert reading.meaning == meaning
    assert not speakers or not {"kevin", "fahim", "khan", "zoe"} & set(reading.terms)


def test_a_name_alone_is_looked_for() -> None:
    """A question that is nothing but a name keeps it, for want of anything else."""
    reading = read_question("Kevin?", PRESENT)
    assert reading.terms == ("kevin",)
    assert reading.meaning == "Kevin?"


def test_a_speaker_is_named_by_what_others_call_them() -> None:
    """A name that somebody is called by stands for them, alone or beside their own."""
    called = read_question("Where does Kate work?", PRESENT, called={"Kate": 0})
    assert called.speakers == (0,)
    assert called.terms == ("work",)
    assert called.meaning == "Where does I work?"
    both = read_question("Did Kate, Kevin and Fahim cook?", PRESENT, called={"Kate": 0})
    assert both.speakers == (0, 1)
    assert both.meaning == "Did we cook?"
    assert both.terms == ("cook",)


def test_nobody_known_changes_nothing() -> None:
    """Where no speaker is known, the question is looked up and embedded as it stands."""
    reading = read_question("What sports does Kevin play?")
    assert "kevin" in reading.terms
    assert reading.meaning == "What sports does Kevin play?"


@pytest.mark.parametrize(
    ("question", "roles"),
    [
        ("When does my first sprint end?", (ROLE_USER,)),
        ("where did i park?", (ROLE_USER,)),
        ("What port did we choose?", (ROLE_USER,)),
        ("What was the recipe you gave me?", (ROLE_ASSISTANT,)),
        ("How did you recommend structuring the work?", (ROLE_ASSISTANT,)),
        ("Which book have you recommended to me?", (ROLE_ASSISTANT,)),
        ("What was your suggestion for the logo?", (ROLE_ASSISTANT,)),
        ("What do you need from me?", (ROLE_USER,)),
        ("Can you list my appointments?", (ROLE_USER,)),
        ("What is the response time of the API?", ()),
        ("In i.e. and i/o, what is meant?", ()),
    ],
)
def test_i_and_you_are_read(question: str, roles: tuple[int, ...]) -> None:
    """ "I" means the user's turns, and what "you" did before means the assistant's."""
    assert read_question(question).roles == roles


@given(st.text(max_size=200), st.lists(st.text(max_size=12), max_size=3))
def test_any_text_can_be_read(question: str, names: list[str]) -> None:
    """No question and no speaker's name makes the reading fail."""
    reading = read_question(question, dict(enumerate(names)), [(0.0, 1.0)])
    assert reading.spans == ((0.0, 1.0),)
    assert len(set(reading.terms)) == len(reading.terms)


NICKNAMED = {0: "Emi", 1: "elise", 2: "Christopher Reed", 3: "Zoë"}


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Where does Kate work?", ("Kate",)),
        ("Kate's job, and what did Elise say?", ("Kate",)),
        ("What did Emi and Christopher say to Zoe Reed?", ()),
        ("Will it rain, and did Will call?", ("Will",)),
        ("what does kate do at NASA?", ()),
        ("A, B, C and Ana, Bea, Cleo, Dana, Ella", ("Ana", "Bea", "Cleo", "Dana")),
        ("Has Emi seen the Mona Lisa in February, or on Sunday with Max?", ("Max",)),
        ("", ()),
    ],
)
def test_names_that_are_nobodys_are_picked_out(question: str, names: tuple[str, ...]) -> None:
    """Words written like a name that stand in no speaker's name are names to ask about."""
    assert unknown_names(question, NICKNAMED) == names
    assert unknown_names(question, {}) == ()


@pytest.mark.parametrize(
    ("name", "code"),
    [("Chris", 2), ("chris", 2), ("Zo", None), ("Reed", None), ("Christina", None), ("Kate", None)],
)
def test_a_short_form_is_its_speaker(name: str, code: int | None) -> None:
    """A first name's beginning means its speaker, a name that merely begins alike does not."""
    assert match_shortened(name, NICKNAMED) == code


def test_a_short_form_of_two_is_nobody() -> None:
    """Where two speakers' names begin so, neither is meant."""
    assert match_shortened("Chris", {0: "Christina", 1: "Christopher"}) is None


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Nikolas", 0),
        ("Nicloas", 0),
        ("Nicola", 0),
        ("Nicolass", 0),
        ("Nicolas", None),
        ("Nebras", 1),
        ("Picolas", None),
        ("Nikolaus", None),
        ("Enes", None),
    ],
)
def test_a_letter_wrong_is_forgiven(name: str, code: int | None) -> None:
    """One letter more, less, wrong or out of place still means the speaker; two do not."""
    assert match_misspelt(name, {0: "Nicolas Reed", 1: "Nebraas", 2: "Ines"}) == code
    assert match_misspelt(name, {0: "Nicolas", 1: "Nicolas", 2: "Nebraas", 3: "Nebraas"}) is None


HEY, THANKS, BYE = ("Hey Kate!", 1, 0), ("Thank you so much, Kate. ", 1, 0), ("bye kate", 1, 0)


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        ([HEY, THANKS, BYE], 0),
        ([HEY, THANKS], None),
        ([("This is Kate, my cat. Its name is Kate", 1, 0)] * 9, None),
        ([("Haha, forgot to introduce myself: my name is Kate.", 0, 1)], 0),
        ([("I'm Kate, hi", 0, 1), HEY, THANKS], 0),
        ([HEY, HEY, HEY, ("Hey Kate", 0, 1)], None),
        ([HEY, HEY, HEY, HEY, ("Hey Kate", 0, 1)], 0),
        ([("Hey Kate", 1, -1)] * 9, None),
        ([("I met Kate, thanks", 1, 0)] * 9, None),
        ([("Thanks Kate's mother", 1, 0)] * 9, None),
        ([("Hey Katerina", 1, 0)] * 9, None),
        ([("I'm Kate Moss' biggest fan", 1, 0)] * 9, None),
        ([], None),
    ],
)
def test_greetings_tell_who_is_called_so(
    texts: Sequence[tuple[str, int, int]], code: int | None
) -> None:
    """Three greetings or one "my name is" name somebody, unless one in five says otherwise."""
    assert find_bearer("Kate", texts) == code


@given(
    st.text(min_size=1),
    st.lists(st.tuples(st.text(), st.integers(-1, 3), st.integers(-1, 3))),
)
def test_any_name_and_texts_are_read(name: str, texts: list[tuple[str, int, int]]) -> None:
    """No name or text makes the reading fail, and who is named has written or was spoken to."""
    code = find_bearer(name, texts)
    assert code is None or any(code in pair[1:] for pair in texts)
    assert len(unknown_names(name, NICKNAMED)) <= 4
    assert {match_shortened(name, NICKNAMED), match_misspelt(name, NICKNAMED)} <= {None, *NICKNAMED}


@given(st.permutations([HEY, THANKS, BYE, ("Kate?", 1, 0), ("hi Kate", 0, 1)]))
def test_the_order_of_texts_does_not_matter(texts: list[tuple[str, int, int]]) -> None:
    """The same texts in another order name the same person, or nobody."""
    assert find_bearer("Kate", texts) == find_bearer("Kate", sorted(texts))
