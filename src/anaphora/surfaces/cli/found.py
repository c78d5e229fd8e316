"""How the answer of `anaphora recall` is shown."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from anaphora.surfaces.cli.output import (
    console,
    emit,
    show_factors,
    show_notes,
    show_text,
    styled,
    version_words,
)
from anaphora.text.display import one_line, visible
from anaphora.text.short_ids import short_id, short_place, short_turn
from anaphora.text.shown_times import shown_minute, tell_days
from anaphora.values.conversations import Recall
from anaphora.values.search import SearchHit

_NEAREST = 2


def show_search(answer: Recall[SearchHit], *, full: bool, why: bool, as_json: bool) -> None:
    """Show the answer as text, or as JSON for programs."""
    if as_json:
        emit(answer)
        return
    terminal = console()
    for rank, hit in enumerate(answer.hits, 1):
        show_hit(terminal, f"{rank}  ", hit, full=full, why=why)
    if not answer.hits and not answer.nearest:
        terminal.print("No results.")
    elif not answer.hits:
        sure = "" if answer.confidence is None else f" ({answer.confidence:.0%})"
        terminal.print(Text(f"No confident match{sure}. Closest:"))
        for hit in answer.nearest[:_NEAREST]:
            show_hit(terminal, "   ", hit, full=False, why=False)
        terminal.print(Text("--min-confidence 0 shows all of them", style="dim"))
    show_notes(answer)


def show_hit(out: Console, mark: str, hit: SearchHit, *, full: bool, why: bool) -> None:
    """Show one hit: its kind, time, speaker, short id, and the words that matched."""
    label, hit_id = _label(hit)
    head = Text(mark, style="dim").append(label, style="bold")
    when = shown_minute(hit.ts)
    head.append(f"{when and '  '}{when}  {hit_id}", style="dim")
    head.append(f"  {hit.score:.2f}", style="green")
    if not hit.current:
        head.append("  older", style="yellow")
    out.print(head)
    if full or not hit.snippet:
        show_text(out, hit.text or hit.title)
    else:
        # The snippet in a line, the words that matched set off.
        text, at = Text("   "), 0
        for start, end in hit.matches:
            text.append(visible(hit.snippet[at:start]))
            text.append(visible(hit.snippet[start:end]), style="bold yellow")
            at = end
        out.print(text.append(visible(hit.snippet[at:])))
    for line in hit.versions:
        out.print(styled(f"   {version_words(line)}", "dim"))
    if why:
        if hit.ts is not None and (days := tell_days(hit.text or hit.snippet, hit.ts)):
            out.print(styled(f"   {days}", "dim"))
        show_factors(out, hit.factors, hit.answers)


def _label(hit: SearchHit) -> tuple[str, str]:
    """The kind and title of a hit, and its short id."""
    label, hit_id = f"{hit.kind} {one_line(hit.title)}", short_id(hit.id)
    if hit.kind == "turn":
        label = one_line(hit.speaker)
    elif hit.kind == "tool_call":
        label = f"tool call {one_line(hit.title)}"
    elif hit.kind == "file":
        label, hit_id = f"file {one_line(hit.project)}", hit.id
    elif hit.kind == "document":
        hit_id = short_place(hit.id)
    if hit.kind in {"turn", "tool_call"} and hit.index is not None:
        hit_id = short_turn(hit.conversation_id, hit.index)
    return label.strip(), one_line(hit_id, None)
