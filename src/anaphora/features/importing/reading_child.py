"""The worker side of `reading`: finds the files under a path, and reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from anaphora.features.importing.formats import check_source, found_imports
from anaphora.features.importing.reading import SMALL, FileStarted, ReadFrom, ReadItem
from anaphora.ingest.bounds import Bounds
from anaphora.system.worker import Piece


def check(folder: str, path: str, form: str | None, name: str) -> Iterator[None]:
    """Yields nothing. Raises UnknownFormat or InvalidInput."""
    with suppress(OSError):
        os.chdir(folder)
    check_source(path, form, name)
    yield from ()


def read(
    folder: str, path: str, form: str | None, name: str, bounds: Bounds, begin: ReadFrom
) -> Iterator[ReadItem | Piece]:
    """The files under a path, in the caller's folder.

    Each begins a piece of its own; what lies between it and the next is a part of that.
    """
    with suppress(OSError):
        os.chdir(folder)
    previous_size = 0
    for number, file in enumerate(found_imports(path, form, bounds, name)):
        if number < begin.skip:
            continue
        _, size = file.progress()
        # A file behind a large one is reported as well: it marks the end of that one.
        is_soon = not begin.each and max(previous_size, size) <= SMALL
        previous_size = size
        yield Piece(bounds.seconds_for(size), FileStarted(file.label, size), is_soon)
        for imported_record in file.items:
            yield ReadItem(imported_record, file.progress()[0])
