"""The path of the file of a page, and the kind and path of the page of a new file.

    memories/staging/port.md        a memory with the path staging.port
    facts/Rafi owns staging.md      a memory without a path
    notes/Use uv for all builds.md  a note

Names are such that every system can have them: no reserved character or name, none longer than 80
characters, and none that differ from another by case alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Final

from anaphora.features.mirror.page import HomePage, PageKind

ENDING: Final = ".md"
MEMORIES: Final = "memories"
FACTS: Final = "facts"
NOTES: Final = "notes"
ROOMS: Final = (MEMORIES, FACTS, NOTES)
_LONGEST: Final = 80
_SHORT_ID: Final = 6
_MOST_STEPS: Final = 30
"""The most folders for a path; the steps beyond them are joined in one name."""
# Characters that some file system refuses, or that have a meaning in Obsidian's links.
_REFUSED: Final = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*#^\[\]`]+')
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?\Z", re.IGNORECASE)


def file_of(page: HomePage, taken: Collection[str]) -> str:
    """The path of a new page's file below the folder; `taken` are keys of files that are there."""
    if page.kind == "note":
        parts = [NOTES, _title(page.said.text)]
    elif page.path is None:
        parts = [FACTS, _title(page.said.text)]
    else:
        steps = page.path.split("/") if "/" in page.path else page.path.split(".")
        if len(steps) > _MOST_STEPS:
            steps = [*steps[: _MOST_STEPS - 1], ".".join(steps[_MOST_STEPS - 1 :])]
        parts = [MEMORIES, *(_name(step) for step in steps)]
    plain = "/".join(parts) + ENDING
    if key_of(plain) not in taken:
        return plain
    number = 1
    while True:
        mark = page.id[-_SHORT_ID:] + ("" if number == 1 else f" {number}")
        marked_file = "/".join([*parts[:-1], f"{parts[-1]} {mark}"]) + ENDING
        if key_of(marked_file) not in taken:
            return marked_file
        number += 1


def key_of(file: str) -> str:
    """The key that is equal for files which some system cannot tell apart."""
    return unicodedata.normalize("NFC", file).casefold()


def clean_file(file: str, taken: Collection[str]) -> str:
    """A free name for a file, from the name that `redact_path` has redacted."""
    room, *parts = PurePosixPath(file.removesuffix(ENDING)).parts
    plain = "/".join([room, *map(_name, parts)])
    number = 1
    while key_of(new_file := f"{plain}{'' if number == 1 else f' {number}'}{ENDING}") in taken:
        number += 1
    return new_file


def kind_of(file: str) -> PageKind:
    """The kind of a new file at this path."""
    return "note" if file.startswith(f"{NOTES}/") else "memory"


def path_of(file: str) -> str | None:
    """The memory path of a new file."""
    path = PurePosixPath(file)
    if path.parts[0] != MEMORIES:
        return None
    return ".".join([*path.parts[1:-1], path.name.removesuffix(ENDING)])


def _title(text: str) -> str:
    lines = (line.strip(" #*->\t") for line in text.splitlines())
    return _name(next((line for line in lines if line), "note"))


def _name(words: str) -> str:
    """A name for a file or folder that every system can have."""
    name = " ".join(_REFUSED.sub(" ", unicodedata.normalize("NFC", words)).split())
    if len(name) > _LONGEST:
        cut_name = name[:_LONGEST]
        name = cut_name.rpartition(" ")[0] or cut_name
    while len(name.encode("utf-8", "replace")) > 2 * _LONGEST:
        name = name[:-1]
    name = name.strip(". ") or "_"
    return f"{name}_" if _RESERVED.match(name) else name
