"""A file of a project as truth keeps it: looked at, read, cut into sections.

In: a file that was found, and what was known of it. Out: rows for truth, without ids of sections.
Whether a file changed is told by its size, modification time and inode, and by the hash of its
bytes where these do not say enough. It writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from anaphora.ingest.files import Found, language_of, read, role_of
from anaphora.ingest.projects.entities import facts_of
from anaphora.ingest.secrets.redacting import redact
from anaphora.ingest.sections import Section, parse
from anaphora.store.hashing import embedded_text_hash
from anaphora.store.projects.rows import FileRow, SectionRow
from anaphora.values.projects import Skipped

if TYPE_CHECKING:
    from pathlib import Path

PARSER: Final = 2
"""Which version of reading and cutting made the sections; files of an older one are read again.
From 2 on secrets are taken out of them."""

# A file that was changed this shortly before it was read may change again within one tick of the
# clock of its disk, and look the same (2 s is the grain of the coarsest, FAT).
_GRAIN_NS = 2_000_000_000
_HEAD = 4_000
SIGNED: Final = 2**63 - 1
"""SQL knows signed numbers of 64 bits; an inode may have one bit more."""


@dataclass(frozen=True, slots=True)
class Stat:
    """What a folder's entry says of a file: bytes, nanoseconds since 1970, a number."""

    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Looked:
    """A file that was read: its row, its sections where it has any, whether it had secrets."""

    file: FileRow
    sections: tuple[SectionRow, ...] = ()
    redacted: bool = False


def stat_of(place: Path | str) -> Stat | None:
    """The present state of a file, None where it is not to be had."""
    try:
        found = os.lstat(place)
    except (OSError, ValueError):
        return None
    return Stat(found.st_size, found.st_mtime_ns, found.st_ino & SIGNED)


def unchanged(file: FileRow, stat: Stat) -> bool:
    """Whether a file is surely the one that was read. One that was read too soon never is."""
    same = (file.size, file.mtime_ns, file.inode) == (stat.size, stat.mtime_ns, stat.inode)
    return same and file.parser == PARSER


def settled(stat: Stat, now_ns: int) -> Stat:
    """The state to remember: with a negative time where it may change unseen."""
    if stat.mtime_ns > now_ns - _GRAIN_NS:
        return replace(stat, mtime_ns=-stat.mtime_ns)
    return stat


def looked_at(
    found: Found,
    project: str,
    known: FileRow | None,
    committed: Mapping[str, datetime],
    *,
    now_ns: Callable[[], int],
) -> Looked | Skipped:
    """Read a file and cut it, unless its bytes are those that were known.

    `committed` says when paths were committed last. A file whose bytes are known comes back with
    its row alone, its state renewed; `Skipped` is one that cannot be read now.
    """
    stat = stat_of(found.absolute)
    if stat is None:
        return Skipped(found.path, "gone")
    stat = settled(stat, now_ns())
    text = read(found)
    if isinstance(text, Skipped) and text.reason not in _LASTING:
        return text
    row = FileRow(
        id=known.id if known else "",
        project=project,
        path=found.path,
        role="unknown",
        language=None,
        content_hash="" if isinstance(text, Skipped) else text.sha,
        skipped=text.reason if isinstance(text, Skipped) else None,
        parser=PARSER,
        size=stat.size,
        mtime_ns=stat.mtime_ns,
        inode=stat.inode,
        changed_at=committed.get(found.path) or _time(abs(stat.mtime_ns)),
    )
    if isinstance(text, Skipped):
        return Looked(row)
    if known is not None and known.parser == PARSER and known.content_hash == text.sha:
        return Looked(in_state(known, row))
    return cut_up(row, text.text)


def cut_up(row: FileRow, text: str) -> Looked:
    """A file of this text in sections, without its secrets: every line keeps its number."""
    clean = redact(text, keep_lines=True)
    parsed = parse(row.path, clean.text)
    role = role_of(row.path, clean.text[:_HEAD])
    row = replace(
        row,
        role=role,
        language=language_of(row.path, clean.text[:_HEAD]),
        facts=facts_of(row.path, role, parsed, clean.text),
    )
    sections = tuple(_section(row, one) for one in parsed.sections)
    return Looked(row, sections, redacted=bool(clean.kinds))


def in_state(known: FileRow, seen: FileRow) -> FileRow:
    """A file that is known, in the state in which it was seen now."""
    return replace(known, size=seen.size, mtime_ns=seen.mtime_ns, inode=seen.inode)


# Reasons that hold as long as the bytes do.
_LASTING: Final = frozenset({"binary", "too_large", "minified"})


def embedded_text(title: str, heading: tuple[str, ...], text: str) -> str:
    """The words of a section that become its vector: what it stands under, then its text.

    The path is not among them, so that a file that is moved keeps its vectors.
    """
    named = " > ".join((*heading, title)) if title else " > ".join(heading)
    return f"{named}\n{text}" if named else text


def _section(file: FileRow, one: Section) -> SectionRow:
    return SectionRow(
        id="",
        project=file.project,
        path=file.path,
        role=file.role,
        language=file.language,
        kind=one.kind,
        title=one.title,
        heading=one.heading,
        symbol=one.symbol,
        text=one.text,
        start_line=one.start_line,
        end_line=one.end_line,
        changed_at=file.changed_at,
        text_hash=embedded_text_hash(embedded_text(one.title, one.heading, one.text)),
    )


def _time(nanoseconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    except (OverflowError, ValueError, OSError):
        # A disk may hold any number.
        return datetime.fromtimestamp(0, UTC)
