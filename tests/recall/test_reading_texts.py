"""What recall reads of a focus or question, and takes out of a text: passages, snippets, marks."""

from __future__ import annotations

import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some
from hypothesis import strategies as st

from anaphora import Memory, SearchKind
from anaphora.features.projects.recall.focus import (
    LEAD_CHARACTERS,
    MOST_MENTIONS,
    MOST_TERMS,
    parts_of,
    read_focus,
)
from anaphora.language.analyser import STOP_WORDS
from anaphora.recall import question as preparing
from anaphora.recall.identifiers import identifiers_of
from anaphora.recall.query import MOST_BYTES, truncated_question, truncated_questions
from anaphora.recall.snippets import SNIPPET, passage, snippet

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


LONG = 300_000


@pytest.mark.promise("recall.length")
@settings(deadline=None)
@given(text=some.text(max_size=400), most=some.integers(20, 200))
@example(text="\ud800" * 100, most=50)
@example(text="東" * 100, most=64)
@example(text="a\n" * 300, most=64)
def test_what_is_read_is_of_the_text(text: str, most: int) -> None:
    """At most so many bytes, every line of them a part of the text; or all of it."""
    read, told = truncated_question(text, most)
    assert len(read.encode("utf-8", "surrogatepass")) <= most
    assert bool(told) == (read != text)
    assert bool(read.strip()) or not text.strip()
    for line in read.split("\n"):
        assert line.strip() in text


@pytest.mark.promise("recall.length")
@settings(deadline=None, max_examples=30)
@given(
    ask=some.sampled_from(["Which walnuts are for Ada?", "KeyError: 'walnut'", "so"]),
    middles=some.tuples(*2 * [some.text(min_size=1, max_size=40)]),
)
def test_the_middle_of_a_long_text_is_not_looked_at(ask: str, middles: tuple[str, str]) -> None:
    """What stands far from both ends changes nothing, and so costs nothing."""
    around = "of this and that, and so on.\n" * 2_000
    one, other = (
        truncated_question(f"{ask}\n\n{around}{(middle * LONG)[:LONG]}{around}")[0]
        for middle in middles
    )
    assert one == other


@pytest.mark.promise("recall.length")
@settings(deadline=None)
@given(texts=some.lists(some.text(max_size=5_000), max_size=6))
def test_several_statements_share_the_limit(texts: list[str]) -> None:
    """Each statement keeps its place and its ends; a short one leaves its room to the others."""
    read, told = truncated_questions(texts)
    assert len(read) == len(texts)
    assert sum(len(one.encode("utf-8", "surrogatepass")) for one in read) <= MOST_BYTES
    assert bool(told) == (list(read) != texts)


WORDS = some.lists(
    some.sampled_from(["the", "harbour", "closes", "at", "nine.", "tide", "über", "港口", "\n"])
)


@pytest.mark.promise("search.snippets")
@given(words=WORDS, most=some.integers(20, 300), repeat=some.integers(1, 30))
def test_a_snippet_is_of_the_text_and_marks_what_matched(
    words: list[str], most: int, repeat: int
) -> None:
    """It is no longer than it may be, stands in the text, and its marks hold the words."""
    text = " ".join(words * repeat)
    shown, places = snippet(text, ("harbour", "nine"), most)
    assert len(shown) <= most + 2
    assert shown.strip("…") in " ".join(text.split())
    for start, end in places:
        assert shown[start:end] in {"harbour", "nine"}
    assert list(places) == sorted(places)


def test_a_long_text_is_cut_where_it_matches() -> None:
    """The sentence that matters is in the snippet, however far down it stands."""
    text = f"{'Nothing to see here. ' * 100}The harbour closes at nine. {'More of it. ' * 100}"
    shown, places = snippet(text, ("harbour", "nine"))
    assert "The harbour closes at nine." in shown
    assert len(shown) <= SNIPPET + 2
    assert [shown[a:b] for a, b in places] == ["harbour", "nine"]


TEXTS = some.lists(
    some.one_of(some.sampled_from(["harbour ", "nine. ", "港口", "é\n", "\n\n"]), some.text()),
    max_size=60,
).map("".join)


@pytest.mark.promise("recall.long_turn")
@settings(deadline=None)
@given(text=TEXTS, most=some.integers(4, 300), near=some.lists(some.floats(-1, 1), max_size=5))
@example(text="\ud800" * 90, most=40, near=[])
@example(text="harbour" * 200, most=40, near=[0.1, 0.9])
def test_a_passage_is_a_part_of_the_text(text: str, most: int, near: list[float]) -> None:
    """It has no more bytes than it may, lies within the text, and is not empty."""
    start, end = passage(text, ("harbour", "nine"), most, near=near)
    assert 0 <= start <= end <= len(text)
    assert len(text[start:end].encode("utf-8", "surrogatepass")) <= most
    assert start < end or not text


@settings(deadline=None, max_examples=40)
@given(before=some.integers(0, 4_000), after=some.integers(0, 4_000))
def test_the_words_are_in_the_passage_and_the_snippet(before: int, after: int) -> None:
    """Wherever the only words that match stand, they are shown."""
    text = f"{'nothing here, ' * before}the harbour closes at nine. {'nor here, ' * after}"
    start, end = passage(text, ("harbour", "nine"), 400)
    assert "harbour closes at nine" in text[start:end]
    assert "harbour closes at nine" in snippet(text, ("harbour", "nine"))[0]


DIGITS = some.text("0123456789", min_size=7, max_size=14)


BETWEEN = some.sampled_from(["", " ", "-", ".", "/", ") ", " ("])


@pytest.mark.promise("forget.marks")
@settings(deadline=None)
@given(DIGITS, some.data())
def test_a_number_is_held_however_it_is_grouped(digits: str, data: some.DataObject) -> None:
    """Digits with any separators between them are the same number, and other digits are not."""
    marks = identifiers_of([f"the number {digits} is secret"])
    grouped = "".join(d + data.draw(BETWEEN) for d in digits[:-1]) + digits[-1]
    assert any(mark.held_by(f"call {grouped} now") for mark in marks)
    assert not any(mark.held_by(f"call 9{digits}9 now") for mark in marks)


@pytest.mark.promise("forget.marks")
@settings(deadline=None)
@given(some.text())
def test_any_text_has_marks_that_it_holds(text: str) -> None:
    """Whatever a text is, its marks can be looked for, and it holds each of them itself."""
    assert all(mark.held_by(text) for mark in identifiers_of([text]))


KINDS: tuple[SearchKind, ...] = ("memory", "note", "turn", "file", "document", "tool_call")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A memory with something of several kinds in it."""
    with Memory.open(tmp_path / "home") as opened:
        opened.conversations.append("a", "user", "The ferry harbour closes at nine.")
        opened.remember("The user prefers pnpm over npm as a package manager.")
        opened.observe("We chose PostgreSQL for the harbour log.", kind="decision")
        assert opened.ready(60)
        yield opened


@pytest.mark.promise("search.everything")
def test_a_question_is_prepared_once(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many lanes a search asks, its text is cut, split and compared with the clock once."""
    asked = "which package manager did the user prefer in the ferry harbour last week?"
    calls: list[str] = []
    steps = ("typed_question", "truncated_question", "query_words", "read_times", "_drop_times")
    for name in steps:
        function = getattr(preparing, name)

        def call(*given: Any, _name: str = name, _function: Any = function) -> Any:
            calls.append(_name)
            return _function(*given)

        monkeypatch.setattr(preparing, name, call)
    assert memory.search(asked, kinds=KINDS, min_confidence=0)
    assert sorted(calls) == sorted(steps)
