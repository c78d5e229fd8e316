"""Names that are no display names, and whom a question means by them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.rank.question import find_bearer, match_misspelt, match_shortened, unknown_names

PRESENT = {0: "Emi", 1: "elise", 2: "Christopher Reed", 3: "Zoë"}


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
    assert unknown_names(question, PRESENT) == names
    assert unknown_names(question, {}) == ()


@pytest.mark.parametrize(
    ("name", "code"),
    [("Chris", 2), ("chris", 2), ("Zo", None), ("Reed", None), ("Christina", None), ("Kate", None)],
)
def test_a_short_form_is_its_speaker(name: str, code: int | None) -> None:
    """A first name's beginning means its speaker, a name that merely begins alike does not."""
    assert match_shortened(name, PRESENT) == code


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
    assert len(unknown_names(name, PRESENT)) <= 4
    assert {match_shortened(name, PRESENT), match_misspelt(name, PRESENT)} <= {None, *PRESENT}


@given(st.permutations([HEY, THANKS, BYE, ("Kate?", 1, 0), ("hi Kate", 0, 1)]))
def test_the_order_of_texts_does_not_matter(texts: list[tuple[str, int, int]]) -> None:
    """The same texts in another order name the same person, or nobody."""
    assert find_bearer("Kate", texts) == find_bearer("Kate", sorted(texts))
