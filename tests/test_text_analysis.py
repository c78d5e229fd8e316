"""What the analyser makes of texts."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anaphora.core.analyser import MAX_TOKEN, STOP_WORDS, analyse, fold, query_terms

# Half surrogate pairs too, which `st.text()` leaves out.
ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("I was running to the stores", ["i", "was", "run", "to", "the", "store"]),
        ("don't take the user's car", ["don't", "take", "the", "user", "car"]),
        ("Straße CAFÉ naïve", ["strass", "cafe", "naiv"]),
        ("привет мирами", ["привет", "мир"]),
        ("1,000,000 and 3.14", ["1000000", "and", "3.14", "3", "14"]),
        ("我喜欢 猫", ["我喜", "喜欢", "我", "喜", "欢", "猫"]),
        ("iPhone手机", ["iphone", "i", "phone", "手机", "手", "机"]),
        ("👍🏽 ❤️ 🇩🇪", ["👍", "❤", "🇩🇪"]),
        ("C++ and c#", ["c++", "and", "c#"]),
        ("ＦＵＬＬ ﬁne", ["full", "fine"]),
        ("0xDEADBEEF", ["0xdeadbeef"]),
        ("!!! ... --", []),
        ("", []),
    ],
)
def test_words_numbers_and_signs_become_tokens(text: str, tokens: list[str]) -> None:
    """Words are folded and stemmed, numbers joined, other scripts and emoji kept searchable."""
    assert analyse(text) == tokens


@pytest.mark.parametrize(
    ("text", "whole", "parts"),
    [
        ("getUserName", "getusername", ["get", "user", "name"]),
        ("HTTPServer2", "httpserver2", ["http", "server", "2"]),
        ("snake_case_name", "snake_case_name", ["snake", "case", "name"]),
        ("__init__", "__init__", ["init"]),
        ("kebab-case", "kebab-case", ["kebab", "case"]),
        ("os.path.join", "os.path.join", ["os", "path", "join"]),
        ("/etc/hosts", "etc/hosts", ["etc", "host"]),
        ("src/anaphora/text.py", "src/anaphora/text.py", ["text.py", "text", "py"]),
        ("https://x.org/a?b=c.", "https://x.org/a?b=c", ["x.org", "a", "b", "c"]),
        ("first.last@example.com", "first.last@example.com", ["first.last", "example.com"]),
        ("v1.2.3", "v1.2.3", ["v1", "2", "3"]),
        ("std::vector", "std::vector", ["std", "vector"]),
    ],
)
def test_identifiers_stay_whole_and_come_in_parts(text: str, whole: str, parts: list[str]) -> None:
    """An identifier, path, address or version is found by itself and by its parts."""
    tokens = analyse(text)
    assert tokens[0] == whole
    assert set(parts) <= set(tokens)


@pytest.mark.promise("index.analyser")
def test_a_query_leaves_out_stop_words_unless_it_has_nothing_else() -> None:
    """Stop words alone are looked up as they are; a blank query has no terms."""
    assert query_terms("Where did the cats sleep, and where do cats eat?") == (
        "cat",
        "sleep",
        "eat",
    )
    assert query_terms("to be or not to be") == ("to", "be", "or", "not")
    assert query_terms("  \n?!") == ()


def test_stop_words_are_folded() -> None:
    """A stop word that is not in its folded form would never match."""
    assert {fold(word) for word in STOP_WORDS} == STOP_WORDS


@given(ANY_TEXT | ANY_TEXT.map("see https://example.org/{0}?q={0} there".format))
@example("https://example.org/d\ud800")
@example("https://\x1f")
def test_any_text_gives_clean_tokens(text: str) -> None:
    """Whatever the text, tokens are short, hold no white space and no surrogate, and repeat."""
    tokens = analyse(text)
    assert tokens == analyse(text)
    for token in tokens:
        assert 0 < len(token) <= MAX_TOKEN
        assert not any(c.isspace() or unicodedata.category(c) == "Cs" for c in token)


@given(st.text())
def test_the_terms_of_a_text_find_that_text(text: str) -> None:
    """Every term of a query is a token of the same words in a turn."""
    assert set(query_terms(text)) <= set(analyse(text))


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_case_does_not_count_but_for_the_parts_of_names(text: str) -> None:
    """Upper and lower case of plain words give the same tokens."""
    lower = [word for word in text.lower().split() if word.isalpha()]
    assert analyse(" ".join(lower)) == analyse(" ".join(word.upper() for word in lower))


@pytest.mark.parametrize("unit", ["a", "a+", "a.", "é ", "中", "-", "1,", "1,234", "\ud800", "\0"])
def test_long_texts_are_analysed_to_the_end(unit: str) -> None:
    """A megabyte of anything is analysed, and what follows it is found."""
    assert "marker" in analyse(unit * (300_000 // len(unit)) + " marker")


def test_naughty_strings_give_clean_tokens(naughty: list[str]) -> None:
    """Texts that trouble programs break nothing."""
    assert len(naughty) > 400
    for line in naughty:
        assert not any(c.isspace() for token in analyse(line) for c in token)
