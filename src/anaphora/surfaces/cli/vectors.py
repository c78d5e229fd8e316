"""Computes vectors after a command has imported many texts, with visible progress."""

from __future__ import annotations

from typing import Final

from anaphora.api.memory import Memory
from anaphora.errors import EmbeddingError
from anaphora.surfaces.cli.output import show_degraded
from anaphora.surfaces.cli.progress import long_work
from anaphora.values.conversations import Degraded

EMBED: Final = "Compute the vectors now; otherwise questions do, with keyword search until then."

_INTERRUPTED: Final = (
    "Everything is stored and can be searched by keyword. `anaphora reindex` computes the rest of "
    "the vectors; questions do so, too."
)


def finish_vectors(memory: Memory, *, quiet: bool) -> None:
    """Compute missing vectors; those computed before an interruption are stored.

    An unavailable embedder does not fail the import: it is reported.
    """
    try:
        with long_work("Computing vectors", kept=_INTERRUPTED, quiet=quiet) as progress:
            memory.reindex(links=False, progress=progress)
    except EmbeddingError as error:
        show_degraded((Degraded("vectors", f"{error}; search by keyword works"),))
