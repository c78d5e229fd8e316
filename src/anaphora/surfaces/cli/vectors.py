"""What a command does that brought many texts in: their vectors, while somebody looks on."""

from __future__ import annotations

from typing import Final

from anaphora.api.memory import Memory
from anaphora.errors import EmbeddingError
from anaphora.surfaces.cli.output import show_degraded
from anaphora.surfaces.cli.progress import long_work
from anaphora.values.conversations import Degraded

EMBED: Final = "Compute the vectors now; otherwise questions begin to, and words answer meanwhile."

_INTERRUPTED: Final = (
    "Everything is stored and can be searched by keyword. `anaphora reindex` computes the rest of "
    "the vectors; questions do so, too."
)


def finish_vectors(memory: Memory, *, quiet: bool) -> None:
    """Compute the vectors that are lacking; interrupted, those that are done are kept.

    An embedder that cannot be had is no failure of what was brought in: it is told.
    """
    try:
        with long_work("Computing vectors", kept=_INTERRUPTED, quiet=quiet) as progress:
            memory.reindex(progress=progress)
    except EmbeddingError as error:
        show_degraded((Degraded("vectors", f"{error}; words find everything"),))
