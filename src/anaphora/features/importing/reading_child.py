"""The worker side of `reading`: finds the files under a path, and reads them."""

from __future__ import annotations

import base64
import os
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from anaphora.errors import InvalidInput
from anaphora.features.importing.formats import check_format, found_imports
from anaphora.features.importing.formats.finding import UNREADABLE, reason_of
from anaphora.features.importing.reading import SMALL, FileStarted, ReadFrom, ReadItem
from anaphora.ingest.bounds import Bounds
from anaphora.store.disk import open_regular
from anaphora.system.worker import Piece

_PIECE = 3 << 18
"""Bytes of a member that are sent together."""


def check(form: str) -> Iterator[None]:
    """Yields nothing. Raises UnknownFormat."""
    check_format(form)
    yield from ()


def member(path: str, name: str) -> Iterator[str]:
    """The bytes of a member of a zip file, piece by piece, in Base64. Raises InvalidInput."""
    try:
        with (
            open_regular(Path(path)) as file,
            zipfile.ZipFile(file) as archive,
            archive.open(name) as content,
        ):
            while piece := content.read(_PIECE):
                yield base64.b64encode(piece).decode()
    except UNREADABLE as error:
        raise InvalidInput("document", name, reason_of(error)) from error


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
