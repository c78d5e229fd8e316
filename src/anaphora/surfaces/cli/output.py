"""How the command line shows things: tables, hits, errors and exit codes.

What others wrote is shown escaped (see `core.display`): names in one line, words indented. It can
neither move the cursor, nor pass for markup or for a line of ours.
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

from anaphora.core.display import one_line, visible
from anaphora.core.shown_times import shown_minute
from anaphora.errors import AnaphoraError, InvalidInput, NotFound, StoreError
from anaphora.surfaces.next_steps import further_step
from anaphora.surfaces.wire import dumps
from anaphora.values.conversations import Degraded, Recall, TurnHit
from anaphora.values.memories import MemoryHit

# 0 done · 1 a check failed or another error · 70 an unexpected one (unexpected.py) · then:
EXIT_INPUT = 2  # the arguments or the input are invalid
EXIT_NOT_FOUND = 3  # the id does not exist
EXIT_STORE = 4  # stored data could not be read or written
EXIT_PARTLY = 5  # done, but something was reported (a malformed line of an import)

ValueT = TypeVar("ValueT")

_VERSIONS = (
    (re.compile(r'^older: on (\S+) (?=")'), r"replaced on \1 by "),
    (re.compile(r'^older: (?=")'), "replaced by "),
    (re.compile(r'^(?:until \S+|before): on (\S+) (?=")'), r"replaces (\1) "),
    (re.compile(r'^(?:until \S+|before): (?=")'), "replaces "),
)
BAR_WIDTH = 24
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


def give(
    value: ValueT, show: str | Text | Table | Callable[[ValueT], object], *, as_json: bool
) -> None:
    """`value` for a program; for a person a line, a table, or what `show` prints of it."""
    if as_json:
        emit(value)
    elif callable(show):
        show(value)
    else:
        console().print(shown(show) if isinstance(show, str) else show)


def exit_code(error: AnaphoraError) -> int:
    """The exit code that stands for a kind of error."""
    if isinstance(error, NotFound):
        return EXIT_NOT_FOUND
    if isinstance(error, InvalidInput):
        return EXIT_INPUT
    if isinstance(error, StoreError):
        return EXIT_STORE
    return 1


def show_error(error: AnaphoraError) -> None:
    """What went wrong in one line on standard error, and what to do about it in another."""
    out = console(stderr=True)
    message = one_line(str(error), ERROR_CHARACTERS)
    out.print(Text("anaphora:", "red").append(f" {message}", "none"))
    if step := further_step(error):
        out.print(shown(f"  next: {step}", "dim"))


def shown(text: str, style: str = "") -> Text:
    """One line of a terminal, whatever stands in it, and not endless."""
    line = visible(text[:LINE_CHARACTERS]).replace("\n", " ")
    return Text(line + "…" * (len(text) > LINE_CHARACTERS), style)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A plain table; columns whose name ends in "#" hold numbers and are set to the right."""
    made = Table(
        title=title or None, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for column in columns:
        made.add_column(column.rstrip("#"), justify="right" if column.endswith("#") else "left")
    for row in rows:
        made.add_row(*[shown(str(cell)) for cell in row])
    return made


def show_hits(recall: Recall[TurnHit], *, why: bool, out: Console | None = None) -> None:
    """Recalled turns for a person, each with its place, time and, if asked, its factors."""
    from anaphora.recall.render import cut_text

    out = out or console()
    if not recall.hits:
        show_nothing(recall, out)
    for rank, hit in enumerate(recall.hits, 1):
        head = Text(f"{rank}  ", style="dim")
        head.append(one_line(hit.speaker or hit.role), style="bold")
        place = f"{one_line(hit.conversation_id, None)} #{hit.index}"
        head.append(f"  {shown_minute(hit.ts)}  {place}", style="dim")
        head.append(f"  {hit.score:.3f}", style="green")
        out.print(head)
        show_text(out, cut_text(hit.excerpt, hit.text))
        show_versions(out, hit)
        if why:
            show_reason(out, hit.reason)
            show_factors(out, hit.factors, hit.answers)
    show_notes(recall)


def show_reason(out: Console, reason: str) -> None:
    """Why a hit is said to be replaced, if it is."""
    if reason:
        out.print(shown(f"   older because: {reason}", "dim"))


def show_nothing(recall: Recall[Any], out: Console) -> None:
    """That there is nothing, and how to see what came nearest."""
    out.print("No results.")
    if recall.nearest:
        sure = "" if recall.confidence is None else f" ({recall.confidence:.0%})"
        words = f"No confident match{sure}; --min-confidence 0 shows the closest."
        out.print(Text(words, style="dim"))


def show_versions(out: Console, hit: TurnHit | MemoryHit) -> None:
    """What replaced a hit, what it replaced, and when it was said again."""
    from anaphora.recall.render import version_lines

    for line in version_lines(hit):
        out.print(shown(f"   {version_words(line)}", "dim"))


def version_words(line: str) -> str:
    """A line about another version in words: `replaced on 2026-03-19 by "…"`."""
    for pattern, words in _VERSIONS:
        line = pattern.sub(words, line)
    return line


def show_text(out: Console, text: str) -> None:
    """Remembered words, indented, so that no line of them passes for one of ours."""
    words = visible(text).strip()
    if out.is_terminal:
        out.print(Padding(Text(words), (0, 0, 0, 3), expand=False))
    else:
        # In a pipe a line of a turn stays one line, whatever its length.
        out.print(Text("   " + words.replace("\n", "\n   ")))


def show_factors(out: Console, factors: Mapping[str, float], answers: float | None = None) -> None:
    """The parts of a score as bars, the largest first, and what the reader made of the hit."""
    shown = {name: value for name, value in factors.items() if abs(value) >= 0.0005}
    largest = max((abs(value) for value in shown.values()), default=1.0)
    for name, value in sorted(shown.items(), key=lambda item: -abs(item[1])):
        bar = "█" * max(1, round(BAR_WIDTH * abs(value) / largest))
        style = "cyan" if value >= 0 else "red"
        out.print(Text(f"   {name:>12} {value:+.3f} ", style="dim").append(bar, style=style))
    if answers is not None:
        out.print(Text(f"   the reader: answers the question ({answers:.0%})", "dim"))


def show_notes(recall: Recall[Any]) -> None:
    """Notices and what was unavailable, on standard error."""
    show_notices(recall.notices)
    show_degraded(recall.degraded)


def show_notices(notices: Sequence[str]) -> None:
    """What the user should know, on standard error."""
    for notice in notices:
        said = one_line(notice, ERROR_CHARACTERS)
        console(stderr=True).print(Text("note:", "yellow").append(f" {said}", "none"))


def show_degraded(parts: Sequence[Degraded]) -> None:
    """What was unavailable, on standard error so that a pipe gets only the answer."""
    for part in parts:
        said = one_line(str(part), ERROR_CHARACTERS)
        console(stderr=True).print(Text("note:", "yellow").append(f" {said}", "none"))
