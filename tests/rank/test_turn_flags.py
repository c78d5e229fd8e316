from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.rank.turn_table import PERSONAL, STANDING, turn_flags


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("I moved to Turin last week.", PERSONAL),
        ("It’s fine, we’re close to my office", PERSONAL),
        ("Sounds great! Where was that?", 0),
        ("haha yes", 0),
        ("", 0),
        ("Always show version numbers when I ask about libraries.", STANDING | PERSONAL),
        ("Thanks. From now on, answer in French.", STANDING),
        ("Please never use tabs", STANDING),
        ("She has always liked tea", 0),
        ("Ich wohne in Köln", PERSONAL),
        ("Bitte immer die Versionsnummer nennen, wenn ich frage.", STANDING | PERSONAL),
        ("Wohnort: Köln", 0),
    ],
)
def test_what_a_turn_shows_is_marked(text: str, flags: int) -> None:
    """Turns about their speaker and standing instructions are marked, small talk is not."""
    assert turn_flags(text) == flags


def test_a_huge_turn_is_judged_by_its_ends() -> None:
    """A turn of megabytes is marked by what stands around the pasted part."""
    assert turn_flags("x " * 3_000_000 + "This is what I got.") == PERSONAL
    assert turn_flags("x " * 2_500 + "I" + " x" * 2_500) == 0


@given(st.text())
def test_any_text_has_flags(text: str) -> None:
    """No text makes the marking fail, and it depends on nothing but the text."""
    assert turn_flags(text) == turn_flags(text) & (PERSONAL | STANDING)
