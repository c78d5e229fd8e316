"""Importing on the command line: what it did in at most five lines, then what was not taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import typer
from rich.text import Text

from anaphora.ingest.problems import EMPTY
from anaphora.surfaces.cli.output import EXIT_PARTLY, console, present, show_notices, styled
from anaphora.surfaces.cli.progress import long_work
from anaphora.surfaces.cli.vectors import finish_vectors
from anaphora.surfaces.cli.where import open_memory
from anaphora.surfaces.wire import counted
from anaphora.text.display import one_line
from anaphora.values.conversations import ImportProblem, ImportReport

_KEPT: Final = (
    "Everything read so far is stored. Run the same import again to go on where it stopped; "
    "`anaphora reindex` computes the vectors."
)
_MOST_GONE: Final = 5
"""How many vanished sources are listed by name."""
_MOST_KINDS: Final = 5
"""How many kinds of what is in files was left out are told."""
_MOST_PROBLEMS: Final = 20
"""How many problems are told, the first of each kind in a file."""
_MOST_FILES: Final = 8
"""How many files of one kind are listed by name."""


def run_import(
    context: typer.Context,
    paths: Sequence[Path],
    *,
    form: str | None = None,
    again: bool = False,
    embed: bool = True,
    as_json: bool,
) -> None:
    """Import files of any kind, show what came of it, and compute the vectors.

    Raises `typer.Exit` where something could not be read that may have words of the user.
    """
    with open_memory(context, warm=embed, begins=True) as memory:
        with long_work("Importing", kept=_KEPT, quiet=as_json) as progress:
            report = memory.import_(paths, format=form, again=again, embed=False, progress=progress)
        present(report, _show_import, as_json=as_json)
        if embed:
            finish_vectors(memory, quiet=as_json)
    # The formats were recognised, but the files were empty.
    if report.problems or (EMPTY in report.left_out and not report.files):
        raise typer.Exit(EXIT_PARTLY)


def _show_import(report: ImportReport) -> None:
    """Show what came in, what was known, and each file that was left out, with the reason."""
    terminal = console()
    left_count = sum(report.left_out[kind] for kind in report.left_out_files)
    if left_count or report.files > 1:
        were, are = ("was", "is") if report.files == 1 else ("were", "are")
        is_new = report.added or report.memories_added or report.documents_added
        state = f"{are} in" if is_new or not report.files else f"{were} there already"
        missing = f"; {left_count:,} left out" if left_count else ""
        terminal.print(f"{counted(report.files, 'file')} {state}{missing}")
    has_memories = any(
        (
            report.memories_added,
            report.memories_known,
            report.memories_changed,
            report.memories_ended,
            report.memories_forgotten,
        )
    )
    if has_memories:
        terminal.print(
            f"{counted(report.memories_added, 'memory', 'memories')} added, "
            f"{report.memories_known} known already"
            + (f", {report.memories_changed} changed" if report.memories_changed else "")
            + (f", {report.memories_ended} ended" if report.memories_ended else "")
            + (
                f", {report.memories_forgotten} forgotten here and left out"
                if report.memories_forgotten
                else ""
            )
        )
    if report.notes_added or report.notes_known:
        terminal.print(
            f"{counted(report.notes_added, 'note')} added, {report.notes_known} known already"
        )
    has_documents = report.documents_added or report.documents_known
    if has_documents:
        terminal.print(
            f"{counted(report.documents_added, 'document')} added, "
            f"{report.documents_known} known already"
        )
    if report.gaps_added:
        terminal.print(f"{counted(report.gaps_added, 'open question')} added")
    if report.conversations or not (has_memories or has_documents or left_count):
        terminal.print(
            f"{counted(report.conversations, 'conversation')}: "
            f"{counted(report.added, 'turn')} added, {report.known} known already"
            + (f", {counted(report.branches, 'branch', 'branches')}" if report.branches else "")
            + (f", {report.forgotten} forgotten here and left out" if report.forgotten else "")
            + (f", {counted(report.tool_calls, 'tool call')} noted" if report.tool_calls else "")
        )
    _show_left_out(report)
    _show_reasons("", report.problems, "yellow")
    _show_reasons("note: ", report.remarks, "dim")
    if report.redacted:
        terminal.print(f"  taken out: {', '.join(report.redacted)}")
    if report.gone:
        shown_names = ", ".join(one_line(name) for name in report.gone[:_MOST_GONE])
        hidden_count = len(report.gone) - _MOST_GONE
        terminal.print(
            Text(
                f"  deleted at the source, kept here: {shown_names}"
                + (f" and {hidden_count} more" if hidden_count > 0 else "")
                + " (anaphora history PATH shows what they said)"
            )
        )
    show_notices(report.notices)


def _show_left_out(report: ImportReport) -> None:
    """What of files was left out on one line, then a line for each file."""
    terminal = console()
    counts = Counter(report.left_out)
    kinds = Counter({kind: n for kind, n in counts.items() if kind not in report.left_out_files})
    told_kinds = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(_MOST_KINDS))
    hidden_count = kinds.total() - sum(count for _, count in kinds.most_common(_MOST_KINDS))
    more = f", {hidden_count} of other kinds (--json lists them)" if hidden_count else ""
    if told_kinds:
        terminal.print(Text(f"  left out: {told_kinds}{more}"))
    for kind, names in report.left_out_files.items():
        for name in names[:_MOST_FILES]:
            terminal.print(styled(f"   left out: {one_line(name)}: {kind}"))
        if (more_count := counts[kind] - len(names[:_MOST_FILES])) > 0:
            terminal.print(styled(f"   left out: {more_count:,} more: {kind}"))


def _show_reasons(begin: str, problems: tuple[ImportProblem, ...], style: str) -> None:
    """List the first problem of each kind in each file."""
    terminal = console()
    alike = Counter((problem.path, problem.reason) for problem in problems)
    firsts = {(problem.path, problem.reason): problem for problem in reversed(problems)}
    shown_kinds = [*alike][:_MOST_PROBLEMS]
    for path, reason in shown_kinds:
        more = alike[path, reason] - 1
        also = f" (and {more:,} more like it)" if more else ""
        where = ": ".join(filter(None, (path, firsts[path, reason].place)))
        terminal.print(styled(f"  {begin}{where}: {reason}{also}", style))
    hidden_count = len(problems) - sum(alike[kind] for kind in shown_kinds)
    if hidden_count:
        terminal.print(styled(f"  {begin}{hidden_count:,} more (--json lists them)", style))
