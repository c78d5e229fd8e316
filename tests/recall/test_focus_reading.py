"""What a focus is read as: terms, names, intents; and what it survives."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anaphora.core.analyser import STOP_WORDS
from anaphora.recall.context.focus import (
    LEAD_CHARACTERS,
    MOST_MENTIONS,
    MOST_TERMS,
    parts_of,
    read_focus,
)

BUG = """\
`Session.resolve_redirects` loses the method

### Describe the bug
<!-- A clear and concise description of what the bug is. -->
When I call `client.get()` after a redirect, a `TooManyRedirects` is raised.

```python-traceback
Traceback (most recent call last):
  File "/home/me/app.py", line 3, in main
    client.get(url)
  File "/usr/lib/python3/site-packages/requests/sessions.py", line 224, in resolve_redirects
    raise TooManyRedirects('Exceeded 30 redirects.')
requests.exceptions.TooManyRedirects: Exceeded 30 redirects.
```

### Environment
- Python version: 3.9
- OS: Windows eleven
"""


def mentions(text: str) -> dict[str, str]:
    return {m.text: m.kind for m in read_focus(text).mentions}


@pytest.mark.parametrize(
    ("focus", "whole", "parts"),
    [
        ("fix src/app/user_store.py", "src/app/user_store.py", {"app", "user", "store", "py"}),
        ("the built-in pre-commit hook", "pre-commit", {"pre", "commit"}),
        ("flask.Config.from_file fails", "flask.config.from_file", {"flask", "config", "file"}),
        ("rename getUserName", "getusername", {"get", "user", "name"}),
        ("see repo\\tools\\build.ps1", "repo\\tools\\build.ps1", {"tool", "build", "ps1"}),
    ],
)
def test_names_are_terms_whole_and_in_parts(focus: str, whole: str, parts: set[str]) -> None:
    """A path, a dotted, hyphenated or humped name is looked up whole and by each of its parts."""
    terms = set(read_focus(focus).focus.terms)
    assert whole in terms
    assert parts <= terms


@pytest.mark.promise("context.reading")
def test_a_bug_report_is_read_in_parts() -> None:
    """Its first line counts most, a template's questions and the environment nothing."""
    reading = read_focus(BUG)
    assert reading.weights["session.resolve_redirects"] > reading.weights["app"]
    assert "window" not in reading.weights
    assert "concis" not in reading.weights
    assert "describ" not in reading.weights
    assert [part.kind for part in parts_of(BUG)][:1] == ["first"]
    assert reading.lead.startswith("`Session.resolve_redirects` loses the method")


@pytest.mark.promise("context.reading")
def test_a_bug_report_names_places() -> None:
    """Frames of a traceback, symbols in back-ticks, dotted names and error classes are named."""
    found = mentions(BUG)
    assert found["/usr/lib/python3/site-packages/requests/sessions.py"] == "frame"
    assert ("resolve_redirects", "symbol") in {(m.text, m.kind) for m in read_focus(BUG).mentions}
    assert found["requests.exceptions.TooManyRedirects"] == "dotted"
    assert "/usr/lib/python3/site-packages/requests/sessions.py" in read_focus(BUG).focus.names


@pytest.mark.parametrize(
    ("focus", "intent"),
    [
        ("fix a typo in the readme", "docs"),
        ("bump the dependency and release a version", "setup"),
        ("implement retries in the client", "implementation"),
        ("more tests for the parser", "tests"),
        ("why did we choose SQLite, what was the decision", "decisions"),
        ("what did we try previously, before the rollback", "history"),
    ],
)
def test_intents(focus: str, intent: str) -> None:
    """What a task appears to need is read off its words."""
    assert intent in read_focus(focus).focus.intents


@pytest.mark.promise("context.reading")
@pytest.mark.parametrize(
    "focus", ["", "   \n", "?!…", "()[]{}\"'*", "a", "the of and", [], ["", " "]]
)
def test_no_useful_term_gives_nothing(focus: str | list[str]) -> None:
    """A focus without useful terms is empty: no terms, no names, no intents, nothing to embed."""
    reading = read_focus(focus)
    assert not reading
    assert reading.focus.terms == reading.focus.names == reading.focus.intents == ()
    assert reading.mentions == ()
    assert reading.lead == ""


@pytest.mark.parametrize(
    "focus",
    [
        'title:"connection pool" AND NOT (retry OR timeout~2)^4 -closed +open*',
        "NEAR(connection pool, 5) \"unbalanced ( quotes' pool connection",
        "connection\x00pool \ud800 \\ % _ ; DROP TABLE section; --",
    ],
)
def test_query_syntax_is_only_words(focus: str) -> None:
    """Operators and quotes of search engines, and odd characters, are read as plain words."""
    assert {"connect", "pool"} <= set(read_focus(focus).weights)


@pytest.mark.parametrize(
    ("focus", "term"),
    [
        ("Где обрабатывается авторизация пользователя", "пользовател"),
        ("用户登录失败", "登录"),
        ("Wo wird die Anmeldung geprüft", "gepruft"),
    ],
)
def test_other_languages(focus: str, term: str) -> None:
    """A focus in another language and script has terms too."""
    assert any(one.startswith(term[:6]) for one in read_focus(focus).weights)


def test_fifty_kilobytes_are_bounded() -> None:
    """A pasted log gives a bounded reading, in which its first line still counts most."""
    log = "\n".join(f"{n} worker-{n % 700} failed to reach host{n}.example" for n in range(1_200))
    reading = read_focus("Pool exhausted in scheduler\n\n" + log)
    assert len(log) > 50_000
    assert len(reading.weights) <= MOST_TERMS
    assert len(reading.mentions) <= MOST_MENTIONS
    assert len(reading.lead) <= LEAD_CHARACTERS
    assert {"pool", "exhaust", "schedul"} <= set(reading.weights)


def test_several_statements_each_have_a_first_line() -> None:
    """Each statement of several counts as one that was given alone."""
    both = read_focus(["retry policy", "token refresh"])
    assert both.focus.statements == ("retry policy", "token refresh")
    assert set(both.weights.values()) == {1.0}
    assert set(both.weights) == {"retri", "polici", "token", "refresh"}


@settings(deadline=None)
@given(st.text(max_size=400) | st.text(string.printable, max_size=2_000))
def test_any_text_is_read(text: str) -> None:
    """Any text is read without error, to terms of its own, none of which is a stop word."""
    reading = read_focus(text)
    assert tuple(reading.weights) == reading.focus.terms
    assert not STOP_WORDS & set(reading.weights)
    assert all(weight > 0.0 for weight in reading.weights.values())
    assert all(0.0 < m.weight <= 1.0 for m in reading.mentions)
