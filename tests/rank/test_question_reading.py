from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.rank.question import read_question
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
