"""The escaping rule: reversible, injective, quiet on ordinary text, true to prefixes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.errors import InvalidInput
from anaphora.store.escaping import escape, unescape

# Half of the characters are the ones that the rule is about, and the ones its codes are made of.
HARD = st.sampled_from("\x00\x10\ud800\udbff\udc00\udfff00D8F1a")
ANY_TEXT = st.text(alphabet=st.one_of(HARD, st.characters()), max_size=30)


@pytest.mark.promise("truth.round_trip")
@given(ANY_TEXT)
def test_every_string_comes_back(text: str) -> None:
    """Unescaping gives back exactly what was escaped."""
    assert unescape(escape(text)) == text


@given(ANY_TEXT)
def test_databases_take_the_escaped_form(text: str) -> None:
    """An escaped string is valid UTF-8 without NUL."""
    assert b"\x00" not in escape(text).encode("utf-8")


@given(ANY_TEXT, ANY_TEXT)
def test_two_strings_never_share_a_form(one: str, other: str) -> None:
    """Different strings have different escaped forms."""
    assert (escape(one) == escape(other)) == (one == other)


@given(ANY_TEXT, ANY_TEXT)
def test_prefixes_stay_prefixes(start: str, rest: str) -> None:
    """A string begins with another exactly when its escaped form begins with the other's."""
    assert escape(start + rest) == escape(start) + escape(rest)
    assert escape(rest).startswith(escape(start)) == rest.startswith(start)


@given(st.text(alphabet=st.characters(exclude_characters="\x00\x10", exclude_categories=["Cs"])))
def test_ordinary_text_is_unchanged(text: str) -> None:
    """Text without NUL, DLE and surrogates is stored as it is."""
    assert escape(text) == text
    assert unescape(text) == text


@pytest.mark.parametrize(
    "stored", ["\x10", "\x1000", "\x10000g", "\x100041", "\x10D80", "\x10d800"]
)
def test_what_no_escaping_wrote_is_refused(stored: str) -> None:
    """A stored text that holds a code of no refused character is an error, not a guess."""
    with pytest.raises(InvalidInput):
        unescape(stored)


def test_every_naughty_string_comes_back(naughty: list[str]) -> None:
    """Texts that trouble programs survive escaping."""
    assert len(naughty) > 400
    assert [unescape(escape(text)) for text in naughty] == naughty
