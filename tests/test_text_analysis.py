"""What the analyser makes of texts."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anaphora.core.analyser import (
    MAX_TOKEN,
    STOP_WORDS,
    analyse,
    fold,
    index_text,
    query_terms,
    query_words,
)

# Half surrogate pairs too, which `st.text()` leaves out.
ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("I was running to the stores", ["i", "was", "run", "to", "the", "store"]),
        ("don't take the user's car", ["don't", "take", "the", "user", "car"]),
        ("Straße CAFÉ naïve", ["strass", "cafe", "naiv"]),
        ("привет мирами", ["привет", "мир"]),
        ("1,000,000 and 3.14", ["1000000", "and", "3.14"]),
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
        ("std::vector", "std::vector", ["std", "vector"]),
    ],
)
def test_identifiers_stay_whole_and_come_in_parts(text: str, whole: str, parts: list[str]) -> None:
    """An identifier, path, address or version is found by itself and by its parts."""
    tokens = analyse(text)
    assert tokens[0] == whole
    assert set(parts) <= set(tokens)


ONE_TOKEN = {
    "2.3.1": ["v2.3.1", "2.3.1", "V2.3.1"],
    "3.10": ["v3.10", "3.10"],
    "4.1.2": ["§4.1.2", "4.1.2"],
    "err4021": ["ERR-4021", "ERR4021", "err_4021", "Err-4021"],
    "15:00": [
        *("3 pm", "3pm", "3 p.m.", "15:00", "15 Uhr", "15h", "15 h", "15.00 Uhr", "15 heures"),
        *(
            "15 horas",
            "3 de la tarde",
            "下午3点",
            "午後3時",
            "15時",
            "3 Uhr nachmittags",
            "3:00 PM",
        ),
    ],
    "15:30": ["3:30 pm", "15:30", "15.30 Uhr", "15 Uhr 30", "15h30", "15時30分", "15:30:00"],
    "2026-03-05": [
        *("2026-03-05", "5 March 2026", "March 5, 2026", "5th of March 2026", "Mar 5th, 2026"),
        *("5.3.2026", "05.03.2026", "2026/03/05", "5. März 2026", "5 de marzo de 2026"),
        *("le 5 mars 2026", "5 de março de 2026", "2026年3月5日", "2026년 3월 5일", "5 MARCH 2026"),
        *("2026-03-05T10:00:00Z", "notes/2026-03-05-standup.md", "1/2 on 5-3-2026"),
    ],
    "2026-03": ["March 2026", "2026-03", "März 2026", "marzo de 2026", "mars 2026", "2026年3月"],
    "--03-05": ["5 March", "March 5th", "am 5. März", "el 5 de marzo", "le 5 mars", "3月5日"],
    "2026-03-25": ["25/3/2026", "3/25/2026", "25.03.2026", "25/03/26"],
    "1200": ["$1,200", "1200"],
    "3f2a9c1": ["3f2a9c1", "3f2a9c1d8e4b7a6f5c0d9e8b7a6f5c4d3e2f1a0b", "3F2A9C1D8E"],
}


@pytest.mark.promise("index.analyser")
@pytest.mark.parametrize(
    ("token", "written"), [(token, one) for token, ways in ONE_TOKEN.items() for one in ways]
)
def test_a_thing_has_one_token_however_it_is_written(token: str, written: str) -> None:
    """Text and question agree on it, and the question names one exact thing."""
    assert token in index_text(written).tokens
    assert token in analyse(written)
    assert any(word.exact and token in word.tokens for word in query_words(written))


@pytest.mark.promise("index.analyser")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3.1", "3.10"),
        ("v2.3.1", "v3.2.1"),
        ("4.2.1", "2.4.1"),
        ("ERR-4021", "ERR-4201"),
        ("5 March 2026", "3 May 2026"),
        ("2026-03-05", "2025-03-05"),
        ("3 pm", "3 am"),
        ("15 Uhr", "15:30"),
        ("March 2026", "May 2026"),
    ],
)
def test_what_differs_in_its_digits_is_another_thing(one: str, other: str) -> None:
    """No exact word of one stands for a token of the other."""
    exact = [word for word in query_words(one) if word.exact]
    assert exact
    for word in exact:
        assert not {*word.tokens} & {*index_text(other).tokens}


@pytest.mark.parametrize(
    "text",
    ["3 people", "the 30th of February 2026", "31.6.2026", "25 Uhr"],
)
def test_what_is_no_date_is_no_date(text: str) -> None:
    """Days that no calendar has, and hours that no clock has."""
    assert not any(token.startswith(("2026-02-", "2026-06-", "25:0")) for token in analyse(text))


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("we met on 05/03/2026", {"2026-03-05", "2026-05-03"}),
        ("wir haben uns am 05/03/2026 getroffen, und es war schön", {"2026-03-05"}),
        ("nos vimos el 05/03/2026 con los niños en la casa", {"2026-03-05"}),
    ],
)
def test_a_date_that_reads_two_ways_stands_for_both(text: str, readings: set[str]) -> None:
    """In a language that writes the day first it reads one way; what was written is kept."""
    tokens = set(analyse(text, keep_stop_words=False))
    assert tokens & {"2026-03-05", "2026-05-03"} == readings
    assert "05/03/2026" in tokens


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
