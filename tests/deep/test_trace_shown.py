"""A step on the terminal."""

from __future__ import annotations

import io

from rich.console import Console

from anaphora import CostSnapshot, DeepStep, SubCall
from anaphora.surfaces.cli.deep import show_step


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
