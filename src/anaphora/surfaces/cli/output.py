"""How the command line shows things: tables, hits, errors and exit codes.

Untrusted text is escaped (see `text.display`): names in one line, texts indented. It can neither
move the cursor, nor pass for markup or for our own output.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from anaphora.errors import AnaphoraError, InvalidInput, NotFound, StoreError
from anaphora.surfaces.next_steps import further_step
from anaphora.surfaces.wire import dumps
from anaphora.text.display import one_line, visible
from anaphora.text.short_ids import short_turn
from anaphora.text.shown_times import shown_minute
from anaphora.values.conversations import Degraded, Recall, TurnHit
from anaphora.values.memories import Forgotten, MemoryHit

# 0 done · 1 a check failed or another error · 70 an unexpected one (unexpected.py) · then:
EXIT_INPUT = 2  # the arguments or the input are invalid
EXIT_NOT_FOUND = 3  # the id does not exist
EXIT_STORE = 4  # stored data could not be read or written
EXIT_PARTLY = 5  # done, but something was reported (a malformed line of an import)
INDENT = 3
"""Columns before stored text."""

ValueT = TypeVar("ValueT")

_VERSIONS = (
    (re.compile(r'^older: on (\S+) (?=")'), r"replaced on \1 by "),
    (re.compile(r'^older: (?=")'), "replaced by "),
    (re.compile(r'^(?:until \S+|before): on (\S+) (?=")'), r"replaces (\1) "),
    (re.compile(r'^(?:until \S+|before): (?=")'), "replaces "),
)
PARTS = {"threads": "conversations", "truth": "database"}
"""What parts of a home are called here, where that is another name than in JSON."""
LINE_CHARACTERS = 2_000
ERROR_CHARACTERS = 4_000


def console(*, stderr: bool = False) -> Console:
    """A console that never interprets recalled text as markup or emoji codes."""
    # A pipe has no width: a table for a file or a test must not be cut at 80 columns.
    width = None if sys.stdout.isatty() else 140
    return Console(
        stderr=stderr,
        markup=False,
        highlight=False,
        emoji=False,
        width=width,
        soft_wrap=width is not None,
    )


def emit(value: Any) -> None:
    """`value` as JSON on standard output."""
    sys.stdout.write(dumps(value) + "\n")


def present(
    value: ValueT, show: str | Text | Table | Callable[[ValueT], object], *, as_json: bool
) -> None:
    """Print `value` as JSON, or as a line, a table, or as `show` prints it."""
    if as_json:
        emit(value)
    elif callable(show):
        show(value)
    else:
        console().print(styled(show) if isinstance(show, str) else show)


def confirmed(question: str) -> bool | None:
    """Whether the user agrees; None without an answer, as at the end of input."""
    import typer

    try:
        return typer.confirm(question)
    except typer.Abort:
        return None


def show_surviving(done: Forgotten) -> None:
    """Print what still contains a forgotten text."""
    terminal = console()
    for location in done.surviving:
        at = "" if location.index is None else f"#{location.index}"
        terminal.print(styled(f"  still in {location.kind} {location.id}{at}", "yellow"))
    if done.more:
        terminal.print(Text(f"  … and in {done.more:,} more", "yellow"))


def exit_code(error: AnaphoraError) -> int:
    """The exit code for a kind of error."""
    if isinstance(error, NotFound):
        return EXIT_NOT_FOUND
    if isinstance(error, InvalidInput):
        return EXIT_INPUT
    if isinstance(error, StoreError):
        return EXIT_STORE
    return 1


def show_error(error: AnaphoraError) -> None:
    """Print the error in one line on standard error, and what to do about it in another."""
    terminal = console(stderr=True)
    terminal.print(Text("anaphora:", "red").append(f" {_failure_words(error)}", "none"))
    if step := further_step(error):
        terminal.print(styled(f"  next: {step}", "dim"))


def styled(text: str, style: str = "") -> Text:
    """`text` as one line for a terminal: escaped, without line breaks, of limited length."""
    line = visible(text[:LINE_CHARACTERS]).replace("\n", " ")
    return Text(line + "…" * (len(text) > LINE_CHARACTERS), style)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A plain table; columns named with a final "#" contain numbers and are right-aligned."""
    grid = Table(
        title=title or None, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for column in columns:
        grid.add_column(column.rstrip("#"), justify="right" if column.endswith("#") else "left")
    for row in rows:
        grid.add_row(*[styled(str(cell)) for cell in row])
    return grid


def show_hits(recall: Recall[TurnHit], *, why: bool, out: Console | None = None) -> None:
    """Show recalled turns with position and time and, if asked, the parts of their scores."""
    from anaphora.recall.render import cut_text

    out = out or console()
    if not recall.hits:
        show_nothing(recall, out)
    for rank, hit in enumerate(recall.hits, 1):
        head = Text(f"{rank}  ", style="dim")
        head.append(one_line(hit.speaker or hit.role), style="bold")
        position = one_line(short_turn(hit.conversation_id, hit.index), None)
        head.append(f"  {shown_minute(hit.ts)}  {position}", style="dim")
        head.append(f"  {hit.score:.3f}", style="green")
        out.print(head)
        show_text(out, cut_text(hit.excerpt, hit.text))
        show_versions(out, hit)
        if why:
            show_reason(out, hit.reason)
            show_factors(out, hit.factors, hit.answers)
    show_notes(recall)


def show_reason(out: Console, reason: str) -> None:
    """Show why a hit is marked as replaced, if it is."""
    if reason:
        out.print(styled(f"   older because: {reason}", "dim"))


def show_nothing(recall: Recall[Any], out: Console) -> None:
    """Say that there is no result, and how to see the closest ones."""
    out.print("No results.")
    if recall.nearest:
        sure = "" if recall.confidence is None else f" ({recall.confidence:.0%})"
        words = f"No confident match{sure}; --min-confidence 0 shows the closest."
        out.print(Text(words, style="dim"))


def show_versions(out: Console, hit: TurnHit | MemoryHit) -> None:
    """Show what replaced a hit, what it replaced, and when it was repeated."""
    from anaphora.recall.render import version_lines

    for line in version_lines(hit):
        out.print(styled(f"   {version_words(line)}", "dim"))


def version_words(line: str) -> str:
    """Reword a line about another version: `replaced on 2026-03-19 by "…"`."""
    for pattern, words in _VERSIONS:
        line = pattern.sub(words, line)
    return line


def show_text(out: Console, text: str, indent: int = INDENT) -> None:
    """Print stored text indented, so that no line of it passes for our own output."""
    words, margin = visible(text).strip(), " " * indent
    if out.is_terminal:
        out.print(Padding(Text(words), (0, 0, 0, indent), expand=False))
    else:
        # In a pipe each line of a turn stays one line, regardless of its length.
        out.print(Text(margin + words.replace("\n", f"\n{margin}")))


def show_factors(out: Console, factors: Mapping[str, float], answers: float | None = None) -> None:
    """Show the parts of a score, largest first, and how probably a hit answers, as one line."""
    weights = {name: weight for name, weight in factors.items() if abs(weight) >= 0.0005}
    largest_first = sorted(weights.items(), key=lambda item: -abs(item[1]))
    parts = [f"{name.replace('_', ' ')} {weight:+.3f}" for name, weight in largest_first]
    if answers is not None:
        parts.append(f"answers the question ({answers:.0%})")
    if parts:
        out.print(Padding(styled(" · ".join(parts), "dim"), (0, 0, 0, INDENT), expand=False))


def show_notes(recall: Recall[Any]) -> None:
    """Print notices and unavailable parts on standard error."""
    show_notices(recall.notices)
    show_degraded(recall.degraded)


def show_notices(notices: Sequence[str]) -> None:
    """Print notices for the user on standard error."""
    for notice in notices:
        message = one_line(notice, ERROR_CHARACTERS)
        console(stderr=True).print(Text("note:", "yellow").append(f" {message}", "none"))


def show_degraded(parts: Sequence[Degraded]) -> None:
    """Print what was unavailable on standard error, so that a pipe gets only the answer."""
    for part in parts:
        message = _failure_words(part)
        console(stderr=True).print(Text("note:", "yellow").append(f" {message}", "none"))


def _failure_words(failure: AnaphoraError | Degraded) -> str:
    """What failed, in one line; a model, a server or a file may quote a secret in it."""
    from anaphora.ingest.secrets.masking import mask_text

    return one_line(mask_text(str(failure)), ERROR_CHARACTERS)
