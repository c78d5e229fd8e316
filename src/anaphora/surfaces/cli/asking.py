"""One question to everything that is kept, as `anaphora recall` asks it.

It needs nothing of what reads command lines: loading that takes 0.1 s, and this is asked often.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from anaphora.surfaces.cli.where import Where, note_missing, opened_at
from anaphora.values.conversations import READ_AWAITED

TOP: Final = 8
BUDGET: Final = 4000
"""Hits, and their tokens, that a question has unless it says otherwise."""


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
    with opened_at(where, warm=True) as memory:
        # The model is being loaded beside this.
        from anaphora.surfaces.cli.found import show_found

        found = memory.search(question, directory=None if everywhere else Path.cwd(), **options)
        if not found.hits:
            note_missing(memory)
    show_found(found, full=full, why=why, as_json=as_json)
