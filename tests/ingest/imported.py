"""What the importers give of a path, file after file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anaphora.ingest.bounds import BOUNDS, Bounds
from anaphora.ingest.importers import file_imports
from anaphora.ingest.importers.base import ImportItem


def read(
    path: Path | str, form: str | None = None, bounds: Bounds = BOUNDS
) -> Iterator[ImportItem]:
    """Every conversation and memory under a path, and what could not be read. Raises at once."""
    given = file_imports(path, form, bounds)
    return (item for one in given for item in one.items)
