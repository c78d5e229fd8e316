"""`anaphora recall`: one search over everything stored.

Hits come as snippets with the words that matched, dates, and short ids that every command accepts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anaphora.api.memory import Memory
from anaphora.calls.operation import operation_of
from anaphora.container.feature import search_kinds
from anaphora.surfaces.cli.grammar import Option
from anaphora.surfaces.cli.shared import AS_JSON, MIN_CONFIDENCE, TIMEOUT
from anaphora.surfaces.cli.where import Where, open_memory_at
from anaphora.surfaces.wire import times_between
from anaphora.values.conversations import READ_AWAITED

if TYPE_CHECKING:
    import typer

WHEN = 'A day, a time, or words, in your time zone: 2026-03-01, "last week".'

_DESCRIBED: Final = operation_of(Memory.search).describe
OPTIONS: Final = (
    Option("question", _DESCRIBED("question").meaning, is_argument=True),
    Option("top_k", _DESCRIBED("top_k").meaning, int, 8, names=("--top-k", "-k"), least=1),
    Option("budget", _DESCRIBED("budget").meaning, int, 4000, least=0),
    Option("kind", f"Only these kinds: {', '.join(search_kinds())}.", is_repeated=True),
    Option("since", f"{_DESCRIBED('since').meaning} {WHEN}"),
    Option("until", f"{_DESCRIBED('until').meaning} {WHEN}"),
    Option("speaker", _DESCRIBED("speaker").meaning),
    Option("project", "Only this project: a name, folder or repository."),
    Option("everywhere", "Do not prefer the project of this folder.", bool, default=False),
    Option("tag", "Only memories with this tag.", is_repeated=True),
    MIN_CONFIDENCE,
    TIMEOUT,
    Option("full", "Whole texts instead of snippets.", bool, default=False),
    Option("why", "Show the parts of each score.", bool, default=False),
    AS_JSON,
)


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    from anaphora.surfaces.cli.options import add_command

    add_command(app, recall, OPTIONS)


def recall(
    where: Where,
    question: str,
    *,
    top_k: int,
    budget: int,
    kind: Sequence[str] | None,
    since: str | None,
    until: str | None,
    speaker: str | None,
    project: str | None,
    everywhere: bool,
    tag: Sequence[str] | None,
    min_confidence: float | None,
    timeout: float | None,
    full: bool,
    why: bool,
    as_json: bool,
) -> None:
    """Search memories, notes, conversations, project files and documents.

    Results from the project of this folder come first. Tool calls of coding agents are found
    with --kind tool_call.
    """
    times = times_between({"since": since, "until": until})
    with open_memory_at(where, warm=True) as memory:
        # Imported while the model loads in the background.
        from anaphora.surfaces.cli.found import show_search

        answer = memory.search(
            question,
            top_k=top_k,
            budget=budget,
            read=READ_AWAITED,
            directory=None if everywhere else Path.cwd(),
            kinds=kind or None,
            since=times["since"],
            until=times["until"],
            speaker=speaker,
            project=project,
            tags=tag or (),
            min_confidence=min_confidence,
            timeout=timeout,
        )
    show_search(answer, full=full, why=why, as_json=as_json)
