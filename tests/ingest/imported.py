"""What the importers give of a path, file after file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anaphora.features.importing.formats import file_imports
from anaphora.features.importing.formats.base import ImportItem
from anaphora.ingest.bounds import BOUNDS, Bounds


def read(
    path: Path | str, form: str | None = None, bounds: Bounds = BOUNDS
) -> Iterator[ImportItem]:
    """Every conversation and memory under a path, and what could not be read. Raises at once."""
    given = file_imports(path, form, bounds)
    return (item for one in given for item in one.items)
