"""What a command does that brought many texts in: their vectors, while somebody looks on."""

from __future__ import annotations

from typing import Final

import typer

from anaphora.api.memory import Memory
from anaphora.errors import EmbeddingError
from anaphora.surfaces.cli.output import EXIT_INTERRUPTED, console, show_degraded, tracker
from anaphora.values.conversations import Degraded

EMBED: Final = "Compute the vectors now; otherwise questions begin to, and words answer meanwhile."

_INTERRUPTED: Final = (
    "interrupted: everything is kept and found by its words; questions go on with the vectors, "
    "and `anaphora reindex` computes them at once"
)


def finish_vectors(memory: Memory, *, quiet: bool) -> None:
    """Compute the vectors that are lacking; interrupted, those that are done are kept.

    An embedder that cannot be had is no failure of what was brought in: it is told.
    """
    try:
        with tracker(quiet=quiet) as progress:
            memory.reindex(progress=progress)
    except EmbeddingError as error:
        show_degraded((Degraded("vectors", f"{error}; words find everything"),))
    except KeyboardInterrupt:
        console(stderr=True).print(_INTERRUPTED)
        raise typer.Exit(EXIT_INTERRUPTED) from None
