"""The frozen values of the files of a project."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAX_BYTES: Final = 1_000_000
"""A larger file is skipped unless the caller says otherwise."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file that may be indexed. `path` is relative to the project's root, with forward slashes.

    `size` is in bytes, `mtime_ns` in nanoseconds since 1970, as they were when it was found.
    """

    path: str
    absolute: Path
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a file. Lines end in line feeds, whatever the file has; no byte order mark.

    `encoding` is what the bytes were read as; `sha` is the SHA-256 of the bytes, in hexadecimal.
    """

    text: str
    encoding: str
    sha: str


def words(written: str) -> frozenset[str]:
    """The words of a list that is written with spaces between them."""
    return frozenset(written.split())
