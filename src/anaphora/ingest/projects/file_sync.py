"""One pass over the files of a project: which to read, and what to write of them.

In: a project and the files that were known of it. Out: rows in truth, in transactions of a few
files, and counts of what was done. A file that another run has written meanwhile is not written
again, and a missing file whose bytes turn up elsewhere has moved there. It makes no graph and no
vectors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, TypeAlias

from anaphora.core.progress import Progress
from anaphora.errors import InvalidInput
from anaphora.ingest.projects.files import Found, language_of, read, role_of, walk
from anaphora.ingest.projects.graph import Past, facts_of
from anaphora.ingest.projects.sections import Section, parse
from anaphora.ingest.secrets.redacting import redact
from anaphora.store.hashing import embedded_text_hash
from anaphora.store.projects.rows import FileRow, ProjectRow, SectionRow
from anaphora.values.projects import Skipped

if TYPE_CHECKING:
    from pathlib import Path

    from anaphora.store.projects.store import Projects
    from anaphora.store.projects.work import ProjectTransaction


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


State: TypeAlias = tuple[str, str, int, int, int]
"""A file as it was read: path, place on the disk, modification time (ns), bytes, inode."""


def project_folder(root: str | Path) -> Path:
    """The real folder of a project. InvalidInput where there is none."""
    try:
        place = Path(root).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidInput("root", str(root), "there is no such folder") from error
    if not place.is_dir():
        raise InvalidInput("root", str(root), "it is no folder")
    return place


def path_inside(root: Path, path: str) -> str:
    """A path relative to the project's folder. InvalidInput for one outside of it."""
    given = PurePosixPath(Path(path).as_posix())
    if given.is_absolute():
        if not given.is_relative_to(root.as_posix()):
            raise InvalidInput("only", path, "expected a path inside the project")
        given = given.relative_to(root.as_posix())
    if ".." in given.parts:
        raise InvalidInput("only", path, "expected a path inside the project")
    return str(given)


def is_under(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is one of these, or in one of them; "." is the whole project."""
    return any(one in {".", path} or path.startswith(one + "/") for one in folders)


def known_states(root: Path, known: Mapping[str, FileRow]) -> list[State]:
    """What `changed_files` compares with, made once for many looks.

    A file that another version has cut is in no state that it could still be in.
    """
    base = f"{root}/"
    return [
        (path, base + path, row.mtime_ns, row.size if row.parser == PARSER else -1, row.inode)
        for path, row in known.items()
    ]


def changed_files(root: Path, known: Iterable[State]) -> tuple[list[Found], list[str]]:
    """The known files whose state is another one now, and the paths of those that are gone."""
    todo: list[Found] = []
    missing: list[str] = []
    look = os.lstat
    # Before each recall this is asked of every file of a project: a call for each would show.
    for path, place, mtime_ns, size, inode in known:
        try:
            seen = look(place)
        except (OSError, ValueError):
            if _is_gone(place):
                missing.append(path)
            continue
        if seen.st_mtime_ns != mtime_ns or seen.st_size != size or seen.st_ino & SIGNED != inode:
            todo.append(Found(path, root / path, seen.st_size, seen.st_mtime_ns))
    return todo, missing


def folder_times(root: Path, files: Iterable[str], started: int) -> dict[str, int]:
    """The modification times (ns) of the folders that have files, or folders with files.

    `started` is when the walk began: a folder that changed since, or just before, has 0.
    """
    folders = {"."}
    for path in files:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    found: dict[str, int] = {}
    for folder in sorted(folders):
        stat = stat_of(root / folder)
        found[folder] = 0 if stat is None else max(0, settled(stat, started).mtime_ns)
    return found


def folders_changed(times: Mapping[str, int], root: Path) -> bool:
    """Whether anything came to one of these folders, or left it; so where none is known."""
    if not times:
        return True
    base = str(root)
    try:
        return any(
            os.lstat(base if folder == "." else f"{base}/{folder}").st_mtime_ns != mtime_ns
            for folder, mtime_ns in times.items()
        )
    except (OSError, ValueError):
        return True


def _is_gone(place: str) -> bool:
    """Whether there is no such file; one that cannot be looked at may be there."""
    try:
        os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


# Files of one transaction: enough that its fsync does not count, few enough that others get their
# turn, and that little is done again after a crash.
_FILES: Final = 64
_BATCH_CHARS: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class Tools:
    """What a pass works with: truth, the present (aware), new ids, nanoseconds since 1970."""

    projects: Projects
    clock: Callable[[], datetime]
    ids: Callable[[], str]
    wall: Callable[[], int]


@dataclass(slots=True)
class Pass:
    """One pass, and what it has done so far.

    `committed` says when paths were committed last; `pasts` collects what moved; `missing` are
    known files that are not there, `redacted` the paths of files that had secrets, `touched` the
    ids of files whose words were written, `reshaped` whether a file began or ceased to be one that
    has words.
    """

    tools: Tools
    project: ProjectRow
    root: Path
    known: dict[str, FileRow]
    committed: Mapping[str, datetime] = field(default_factory=dict)
    pasts: list[Past] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    missing: dict[str, FileRow] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)
    redacted: list[str] = field(default_factory=list)
    added: int = 0
    changed: int = 0
    renamed: int = 0
    removed: int = 0
    unchanged: int = 0
    reshaped: bool = False

    def sort(self, only: list[str] | None) -> list[Found]:
        """Which files are to be read; notes those that are missing, unchanged and skipped."""
        todo: list[Found] = []
        seen: set[str] = set()
        kept: list[str] = []
        for one in walk(self.root, only=only):
            if isinstance(one, Skipped):
                self.skipped.append(one)
                if one.reason == "unreadable":
                    # What cannot be looked at now is not gone.
                    kept.append(one.path)
                continue
            seen.add(one.path)
            known, stat = self.known.get(one.path), stat_of(one.absolute)
            if known is not None and stat is not None and unchanged(known, stat):
                self.unchanged += 1
                if known.skipped is not None:
                    self.skipped.append(Skipped(one.path, known.skipped))
            else:
                todo.append(one)
        if not self.root.is_dir() or "." in kept:
            raise InvalidInput("root", str(self.root), "the folder cannot be read")
        self.missing = {
            path: row
            for path, row in self.known.items()
            if path not in seen
            and (only is None or is_under(path, only))
            and not is_under(path, kept)
        }
        return todo

    def take(self, todo: list[Found], tell: Progress) -> None:
        """Read files and write them in batches; then remove what is missing."""
        batch: list[Looked] = []
        chars = done = 0
        for found in todo:
            done += 1
            known = self.known.get(found.path)
            look = looked_at(found, self.project.id, known, self.committed, now_ns=self.tools.wall)
            if isinstance(look, Skipped):
                self.skipped.append(look)
                if look.reason == "gone" and known is not None:
                    self.missing[found.path] = known
                continue
            if look.redacted:
                self.redacted.append(found.path)
            if look.file.skipped is not None:
                self.skipped.append(Skipped(found.path, look.file.skipped))
            batch.append(look)
            chars += sum(len(section.text) for section in look.sections)
            if len(batch) >= _FILES or chars >= _BATCH_CHARS:
                self._write(batch)
                batch, chars = [], 0
                tell("files", done, len(todo))
        self._write(batch)
        tell("files", len(todo), len(todo))
        self._drop()

    def _write(self, batch: list[Looked]) -> None:
        """One transaction: what another run has written meanwhile is not written again."""
        fresh = [look for look in batch if self._differs(look)]
        self.unchanged += len(batch) - len(fresh)
        if not fresh:
            return
        with self.tools.projects.change() as work:
            work.mark_stale(self.project.id)
            known = work.known(self.project.id, [look.file.path for look in fresh])
            for look in fresh:
                self._put(work, look, known.get(look.file.path))

    def _differs(self, look: Looked) -> bool:
        """Whether there is anything to write of a file that was read."""
        known = self.known.get(look.file.path)
        return known is None or bool(look.sections) or replace(look.file, facts={}) != known

    def _put(self, work: ProjectTransaction, look: Looked, known: FileRow | None) -> None:
        new = look.file
        if known is not None and _same_bytes(known, new):
            work.put_file(in_state(known, new), known=True)
            self.unchanged += 1
            return
        before = None if known is not None else self._moved_from(work, new)
        if before is not None:
            self.pasts.append(Past(before.path, new.path, self.tools.clock()))
            self.renamed += 1
        old = known or before
        row = replace(new, id=old.id if old else self.tools.ids())
        if before is not None:
            # The words are as old as they were.
            row = replace(row, changed_at=before.changed_at)
        work.put_file(row, known=old is not None)
        work.put_sections(row, look.sections, self.tools.ids, known=old is not None)
        if before is not None:
            work.flush()
            work.moved(row.id)
        elif known is not None:
            self.changed += 1
            # Its folders come or go with it.
            self.reshaped |= (known.skipped is None) != (new.skipped is None)
        else:
            self.added += 1
        self.touched.add(row.id)

    def _moved_from(self, work: ProjectTransaction, new: FileRow) -> FileRow | None:
        """A missing file of the same bytes, the one of the same name first."""
        if not new.content_hash:
            return None
        same = [row for row in self.missing.values() if row.content_hash == new.content_hash]
        name = PurePosixPath(new.path).name
        for row in sorted(same, key=lambda one: (PurePosixPath(one.path).name != name, one.path)):
            found = work.file(row.id)
            if found is not None and found.path == row.path:
                del self.missing[row.path]
                return found
        return None

    def _drop(self) -> None:
        gone = list(self.missing.values())
        for start in range(0, len(gone), _FILES):
            some = gone[start : start + _FILES]
            with self.tools.projects.change() as work:
                work.mark_stale(self.project.id)
                known = work.known(self.project.id, [row.path for row in some])
                # A file that is another one now was written by another self.
                ids = {row.id for row in known.values()} & {row.id for row in some}
                self.removed += work.remove_files(ids)


def _same_bytes(known: FileRow, new: FileRow) -> bool:
    return (known.content_hash, known.parser, known.skipped) == (
        new.content_hash, new.parser, new.skipped,
    )  # fmt: skip
