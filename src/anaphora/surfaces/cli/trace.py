"""A step of deep recall on the terminal: what the model thought, wrote and saw, and what it cost.

In: a `DeepStep`, live or kept. Out: lines on a console. What a model or a history says is shown
escaped: it can neither move the cursor nor pass for markup.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from anaphora.core.display import visible
from anaphora.surfaces.cli.output import console, show_text, shown
from anaphora.values.deep import CostSnapshot, DeepStep, SubCall

OUTPUT_LINES = 20
PROMPT_CHARS = 100
ANSWER_CHARS = 200
_COLOURS = {"submit": "green", "extraction": "yellow", "limit": "red"}


def show_step(step: DeepStep, out: Console | None = None) -> None:
    """One step: its head with time and cost so far, then thought, code, output and sub-calls."""
    out = out or console()
    head = Text(f"step {step.number}  ", "dim")
    head.append(step.kind, f"bold {_COLOURS.get(step.kind, 'cyan')}")
    out.print(head.append(f"  {step.seconds:.1f} s  {cost_line(step.cost)}", "dim"))
    if step.thought:
        show_text(out, step.thought)
    for line in step.code.splitlines():
        out.print(Text(f"   │ {visible(line)}", "cyan"))
    if step.output.strip():
        show_text(out, _short(step.output))
    for call in step.sub_calls:
        out.print(shown(f"   ? {_call(call)}", "magenta"))
    if step.error:
        out.print(Text("   " + visible(step.error).replace("\n", "\n   "), "red"))


def cost_line(cost: CostSnapshot) -> str:
    """What was spent so far in a few words; a price that is not known is said to be so."""
    money = "cost unknown"
    if cost.estimated_dollars is not None:
        money = f"${cost.estimated_dollars:.4f}"
    parts = [f"{cost.input_tokens:,} + {cost.output_tokens:,} tokens", money]
    if cost.sub_calls:
        parts.append(f"{cost.sub_calls} sub-call{'s' if cost.sub_calls != 1 else ''}")
    return ", ".join(parts)


def _call(call: SubCall) -> str:
    asked = " ".join(call.prompt[:PROMPT_CHARS].split())
    said = " ".join((call.error or call.answer)[:ANSWER_CHARS].split())
    return f"{asked} → {said}{' (asked before)' if call.cached else ''}"


def _short(output: str) -> str:
    lines = output.strip().splitlines()
    if len(lines) <= OUTPUT_LINES:
        return "\n".join(lines)
    return "\n".join([*lines[:OUTPUT_LINES], f"… {len(lines) - OUTPUT_LINES} lines more"])
