"""One search over everything stored, as `anaphora recall` runs it.

It does not import the command-line parser: loading that takes 0.1 s, and this runs often.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from anaphora.surfaces.cli.where import Where, note_missing, open_memory_at
from anaphora.values.conversations import READ_AWAITED

TOP: Final = 8
BUDGET: Final = 4000
"""The default number of hits and their total tokens."""


def ask(
    where: Where,
    question: str,
    *,
    everywhere: bool = False,
    full: bool = False,
    why: bool = False,
    as_json: bool = False,
    **options: Any,
) -> None:
    """Ask and show; `options` are those of `Memory.search`."""
    options = {"top_k": TOP, "budget": BUDGET, "read": READ_AWAITED, **options}
    with open_memory_at(where, warm=True) as memory:
        # Imported while the model loads in the background.
        from anaphora.surfaces.cli.found import show_search

        answer = memory.search(question, directory=None if everywhere else Path.cwd(), **options)
        if not answer.hits:
            note_missing(memory)
    show_search(answer, full=full, why=why, as_json=as_json)
