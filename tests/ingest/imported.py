"""What the importers give of a path, file after file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anaphora.features.importing.formats import check_format, found_imports
from anaphora.features.importing.formats.base import ImportItem
from anaphora.ingest.bounds import BOUNDS, Bounds


def read(
    path: Path | str, form: str | None = None, bounds: Bounds = BOUNDS
) -> Iterator[ImportItem]:
    """Every conversation and memory under a path, and what could not be read. Raises at once."""
    if form is not None:
        check_format(form)
    return (item for one in found_imports(path, form, bounds) for item in one.items)
