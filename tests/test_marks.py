"""What is shown of words of others: marks, lines, quotations, and steps on the terminal."""

from __future__ import annotations

import io
import json
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from anaphora import CostSnapshot, DeepStep, SubCall
from anaphora.features.deep.commands import show_step
from anaphora.text.display import headed, one_line, quoted, visible, visible_json

JOINERS = "\u200c\u200d"
FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
SELECTORS = range(0xE0100, 0xE01F0)


@pytest.mark.promise("marks.visible")
def test_what_has_no_shape_is_shown_by_its_code() -> None:
    """All control, format and separating characters are escaped, and nothing else that has one."""
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        kind = unicodedata.category(character)
        if kind == "Cn":
            # Formats of a newer Unicode than this Python's.
            continue
        shapeless = character in FILLERS or code in SELECTORS
        shapeless |= kind in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        kept = character in "\n\t" + JOINERS or not shapeless
        assert (visible(character) == character) is kept, hex(code)
        assert kept or visible(character).isascii()
    assert visible("a\r\nb\rc \x1b]52; \u202e \U000e0041") == (
        "a\nb\\x0dc \\x1b]52; \\u202e \\U000e0041"
    )


@pytest.mark.promise("marks.visible")
@settings(deadline=None)
@given(st.text(st.characters(), max_size=80), st.integers(5, 60))
def test_a_name_is_one_line_of_bounded_length(name: str, most: int) -> None:
    """Whatever a name holds, it takes one line, no more than its bound, and nothing hidden."""
    line = one_line(name, most)
    assert len(line) <= most
    assert len(line.splitlines()) <= 1
    assert visible(line) == line
    assert len(headed(name).splitlines()) == 1


@pytest.mark.promise("marks.unforgeable")
@settings(deadline=None)
@given(st.text(st.characters(), max_size=200), st.none() | st.integers(1, 100))
def test_no_line_of_a_text_leaves_its_mark(text: str, most: int | None) -> None:
    """Every line of a quoted text begins with the mark, and none with that of an item's head."""
    lines = quoted(text, most).splitlines()
    if most is not None and len(text) > most:
        assert lines.pop() == f"(cut after {most} characters)"
    assert lines
    assert all(line.startswith("| ") for line in lines)


@pytest.mark.promise("marks.unforgeable")
@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=20), st.text(st.characters(), max_size=40)))
def test_visible_json_is_the_same_value(value: dict[str, str]) -> None:
    """JSON made visible holds nothing hidden, and reads back as it was, laid out or in one line."""
    for indent in (None, 2):
        text = json.dumps(value, ensure_ascii=False, indent=indent)
        assert visible(visible_json(text)) == visible_json(text)
        assert json.loads(visible_json(text)) == json.loads(json.dumps(value))
        assert indent or len(visible_json(text).splitlines()) == 1


@pytest.mark.parametrize(
    "hidden",
    [
        "".join(chr(0xE0100 + byte - 16) for byte in b"obey"),
        "".join(chr(0xFE00 + byte % 16) for byte in b"obey"),
        "\u200c\u200d" * 8,
        "\u3164\uffa0\u115f\u1160",
        "\u034f\u180b\u17b4",
    ],
    ids=["selectors", "emoji selectors", "joiners", "fillers", "marks"],
)
def test_text_in_letters_without_a_shape_is_shown(hidden: str) -> None:
    """A model reads what nobody sees: bytes behind an emoji, bits in joiners."""
    shown = visible(f"heron \U0001f600{hidden}!")
    assert len(set(hidden) & set(shown)) <= 1
    assert sum(shown.count(letter) for letter in set(hidden)) <= 1
    assert "\\u" in shown.lower()


@pytest.mark.parametrize(
    "text",
    [
        "\u2764\ufe0f",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\u845b\U000e0100",
        "می\u200cخواهم",
    ],
)
def test_one_that_shapes_the_letter_before_it_stays(text: str) -> None:
    """Emoji, families of them, a form of an ideograph, a Persian verb."""
    assert visible(text) == text


def shown(step: DeepStep) -> str:
    out = Console(file=io.StringIO(), width=120, highlight=False)
    show_step(step, out)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def test_a_step_is_shown_whole() -> None:
    """Thought, code, output, sub-calls, error and cost of a step are on the terminal."""
    step = DeepStep(
        2,
        "code",
        thought="I look.",
        code="x = 1\nprint(x)",
        output="\n".join(f"line {n}" for n in range(30)),
        error="NameError: y",
        sub_calls=(SubCall("Is it\nred?", "yes", 9), SubCall("Is it\nred?", "yes", cached=True)),
        seconds=1.25,
        cost=CostSnapshot(1200, 34, 0.0123, 2, 1),
    )
    lines = shown(step).splitlines()
    assert lines[0] == "step 2  code  1.2 s  1,200 + 34 tokens, $0.0123, 1 sub-call"
    assert lines[1:4] == ["   I look.", "   │ x = 1", "   │ print(x)"]
    assert "   … 10 lines more" in lines
    assert lines[-3:] == [
        "   ? Is it red? → yes",
        "   ? Is it red? → yes (asked before)",
        "   NameError: y",
    ]


def test_an_unknown_price_is_said() -> None:
    """A cost that nobody knows is not shown as nothing."""
    head = shown(DeepStep(1, "limit", cost=CostSnapshot(estimated_dollars=None)))
    assert "cost unknown" in head
    assert "$" not in head


def test_what_models_say_is_escaped() -> None:
    """Escape sequences and markup of outputs and code are shown, not obeyed."""
    step = DeepStep(1, "code", thought="[red]x[/red]", code="\x1b[2J", output="\x1b]0;t\x07")
    text = shown(step)
    assert "\x1b" not in text
    assert "[red]x[/red]" in text
    assert "\\x1b[2J" in text
