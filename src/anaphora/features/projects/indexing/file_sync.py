"""The files of a project brought in line with its folder: what changed is read, cut and written.

Whether a file changed is told by its size, modification time and inode, and by the hash of its
bytes where these do not say enough; new files are noticed by the modification times of their
folders. Rows are written in transactions of a few files. A file that another run has written
meanwhile is not written again, and a missing file whose bytes turn up elsewhere has moved there.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, TypeAlias

from anaphora.calls.moments import utc_moment
from anaphora.calls.progress import Progress
from anaphora.embed.chunking import first_pieces
from anaphora.errors import InvalidInput
from anaphora.features.projects.indexing.git_history import Rename
from anaphora.features.projects.indexing.graph import IndexServices, facts_of
from anaphora.features.projects.store.rows import FileRow, ProjectRow, SectionRow
from anaphora.ingest.files.reading import read
from anaphora.ingest.files.walking import FoundFile, FoundFolder, is_notebook, walk
from anaphora.ingest.secrets.redacting import redact
from anaphora.ingest.sections import Section, lacks_parser, parse
from anaphora.ingest.sections.roles import language_of, role_of
from anaphora.store.hashing import hash_text
from anaphora.system.helper import with_helper
from anaphora.values.files import Skipped

if TYPE_CHECKING:
    from anaphora.features.projects.store.transaction import ProjectTransaction


PARSER: Final = 2
"""The version of reading and cutting that made the sections; files of an older one are read again.
From 2 on secrets are taken out of them."""

NOTEBOOKS: Final = 3
"""The same for notebooks, which are read by their cells from then on."""

BY_LINES: Final = 100
"""Added to the version of code that was cut without its parser: it is read again once that is
installed."""

# A file that was changed this shortly before it was read may change again within one tick of the
# clock of its disk, and look the same (2 s is the grain of the coarsest, FAT).
_GRAIN_NS: Final = 2_000_000_000
# SQL knows signed numbers of 64 bits; an inode may have one bit more.
_SIGNED: Final = 2**63 - 1
_HEAD: Final = 4_000
# Why a file was skipped, where that holds as long as the bytes do.
_LASTING: Final = frozenset({"binary", "too_large", "minified", "broken_notebook"})
# Files of one transaction: enough that its fsync does not count, few enough that others get their
# turn, and that little is done again after a crash.
_FILES: Final = 64
# Files to be read from which on a helper is worth its start.
_HELPED: Final = 300
_SHARES: Final = (24, 48)
_BATCH_CHARS: Final = 2_000_000

EMBEDDED_PIECES: Final = 64
"""Word pieces, about, of a section that become its vector."""

COUNTS: Final = ("added", "changed", "renamed", "removed", "unchanged")
"""The outcomes for files, by the names of an `IndexReport`."""

FileState: TypeAlias = tuple[str, str, int, int, int]
"""A file as it was read: path, place on the disk, modification time (ns), bytes, inode."""


@dataclass(frozen=True, slots=True)
class FileSections:
    """A file as it was read: its row, its sections if it has any, whether it had secrets."""

    file: FileRow
    sections: tuple[SectionRow, ...] = ()
    redacted: bool = False


FileLook: TypeAlias = FileSections | Skipped | tuple[FileRow, str]
"""A file as it was looked at: done with, or its row and its text, which is to be cut."""


def _read_stat(path: Path | str) -> os.stat_result | None:
    """The present state of a file, None if it is not to be had."""
    try:
        return os.lstat(path)
    except (OSError, ValueError):
        return None


def is_current(file: FileRow) -> bool:
    """Whether this version would cut the file no better than it is."""
    version = _find_version(file.path)
    by_lines = file.parser == version + BY_LINES and lacks_parser(file.language)
    return file.parser == version or by_lines


def _find_version(path: str) -> int:
    """The current version of reading and cutting a file."""
    return NOTEBOOKS if is_notebook(path) else PARSER


def _settle_time(mtime_ns: int, now_ns: int) -> int:
    """The modification time to remember: negative where the file may change unseen."""
    return -mtime_ns if mtime_ns > now_ns - _GRAIN_NS else mtime_ns


def cut_file(row: FileRow, text: str) -> FileSections:
    """A file of this text in sections, without its secrets: every line keeps its number."""
    clean = redact(text, keep_lines=True)
    parsed_file = parse(row.path, clean.text)
    role = role_of(row.path, clean.text[:_HEAD])
    language = language_of(row.path, clean.text[:_HEAD])
    row = replace(
        row,
        role=role,
        language=language,
        parser=_find_version(row.path) + (BY_LINES if lacks_parser(language) else 0),
        facts=facts_of(row.path, role, parsed_file, clean.text),
    )
    sections = tuple(
        SectionRow(
            id="",
            project=row.project,
            path=row.path,
            role=row.role,
            language=row.language,
            kind=section.kind,
            title=section.title,
            heading=section.heading,
            symbol=section.symbol,
            text=section.text,
            start_line=section.start_line,
            end_line=section.end_line,
            changed_at=row.changed_at,
            text_hash=hash_text(whole_text(section.title, section.heading, section.text)),
        )
        for section in parsed_file.sections
    )
    return FileSections(row, sections, redacted=bool(clean.kinds))


def cut_look(look: FileLook) -> FileSections | Skipped:
    """A file that was looked at, cut if it is to be."""
    return cut_file(*look) if isinstance(look, tuple) else look


def _copy_state(stored: FileRow, present: FileRow) -> FileRow:
    """A stored file with its present state."""
    return replace(stored, size=present.size, mtime_ns=present.mtime_ns, inode=present.inode)


def whole_text(title: str, heading: tuple[str, ...], text: str) -> str:
    """A section with its headings and title, which tells whether it has a vector already.

    The path is not in it, so that a file that is moved keeps its vectors.
    """
    section_name = " > ".join((*heading, title)) if title else " > ".join(heading)
    return f"{section_name}\n{text}" if section_name else text


def embedded_text(section: SectionRow | Section) -> str:
    """The text that a section is embedded with: headings, title, and the beginning of its text.

    A signature, its docstring and the first lines show what a section is about; the rest is found
    by its keywords, and would take four times as long to embed (decision 0022).
    """
    text = whole_text(section.title, section.heading, section.text)
    return first_pieces(text, EMBEDDED_PIECES)


def project_folder(root: str | Path) -> Path:
    """The real folder of a project. InvalidInput if there is none."""
    try:
        folder = Path(root).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidInput("root", str(root), "the folder does not exist") from error
    if not folder.is_dir():
        raise InvalidInput("root", str(root), "it is not a folder")
    return folder


def known_states(root: Path, known: Mapping[str, FileRow]) -> dict[str, FileState]:
    """The states that `changed_files` compares with, by path, made once for many calls.

    A file that another version has cut is in no state that it could still be in.
    """
    base = f"{root}/"
    return {
        path: (path, base + path, row.mtime_ns, row.size if is_current(row) else -1, row.inode)
        for path, row in known.items()
    }


def changed_files(root: Path, known: Iterable[FileState]) -> tuple[list[FoundFile], list[str]]:
    """The known files with a changed state, and the paths of those that are gone."""
    todo: list[FoundFile] = []
    missing: list[str] = []
    look = os.lstat
    # This runs for every file of a project before each recall: a call per file would be noticeable.
    for path, file_path, mtime_ns, size, inode in known:
        try:
            stat = look(file_path)
        except (FileNotFoundError, NotADirectoryError):
            missing.append(path)
            continue
        except (OSError, ValueError):
            # One that cannot be looked at may be there.
            continue
        if stat.st_mtime_ns != mtime_ns or stat.st_size != size or stat.st_ino & _SIGNED != inode:
            todo.append(FoundFile(path, root / path))
    return todo, missing


def folder_times(root: Path, folders: Iterable[str], started: int) -> dict[str, int]:
    """The modification times (ns) of these folders.

    `started` is when the walk began: a folder that changed since, or just before, has 0.
    """
    times: dict[str, int] = {}
    for folder in folders:
        stat = _read_stat(root / folder)
        times[folder] = 0 if stat is None else max(0, _settle_time(stat.st_mtime_ns, started))
    return times


def folders_changed(times: Mapping[str, int], root: Path) -> bool:
    """Whether an entry was added to one of these folders or removed; True if none is known."""
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


@dataclass(slots=True)
class FileSync:
    """One pass over a project's files, and what it has done so far.

    `committed` says when paths were committed last; `folders` are those that were looked into, none
    where nothing was walked; `renames` collects what moved; `missing` are known files that are not
    there, `redacted` the paths of files that had secrets, `touched` the ids of files whose words
    were written, `reshaped` whether a file began or ceased to be one that has words, `gone_texts`
    the hashes of texts that sections had and some may have no longer.
    """

    services: IndexServices
    project: ProjectRow
    root: Path
    known: dict[str, FileRow]
    committed: Mapping[str, datetime] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    renames: list[Rename] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    missing: dict[str, FileRow] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)
    gone_texts: set[str] = field(default_factory=set)
    redacted: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(COUNTS, 0)))
    reshaped: bool = False

    def find_changes(self) -> list[FoundFile]:
        """The files to read; notes those that are missing, unchanged and skipped."""
        todo: list[FoundFile] = []
        present: set[str] = set()
        unreadable: list[str] = []
        for visited_file in walk(self.root):
            if isinstance(visited_file, FoundFolder):
                self.folders.append(visited_file.path)
                continue
            if isinstance(visited_file, Skipped):
                self.skipped.append(visited_file)
                if visited_file.reason == "unreadable":
                    # What cannot be read now is not gone.
                    unreadable.append(visited_file.path)
                continue
            present.add(visited_file.path)
            stored_file, stat = self.known.get(visited_file.path), _read_stat(visited_file.absolute)
            # A file that was read too soon after its change is never surely the same.
            if (
                stored_file is not None
                and stat is not None
                and (stored_file.size, stored_file.mtime_ns) == (stat.st_size, stat.st_mtime_ns)
                and stored_file.inode == stat.st_ino & _SIGNED
                and is_current(stored_file)
            ):
                self.counts["unchanged"] += 1
                if stored_file.skipped is not None:
                    self.skipped.append(Skipped(visited_file.path, stored_file.skipped))
            else:
                todo.append(visited_file)
        if not self.root.is_dir() or "." in unreadable:
            raise InvalidInput("root", str(self.root), "the folder cannot be read")
        self.missing = {
            path: row
            for path, row in self.known.items()
            if path not in present
            and not any(
                path == unreadable_path or path.startswith(unreadable_path + "/")
                for unreadable_path in unreadable
            )
        }
        return todo

    def write_changes(self, todo: list[FoundFile], tell: Progress) -> None:
        """Read files and write them in batches; then remove what is missing."""
        batch: list[FileSections] = []
        chars = done_count = 0
        looks = (self._read(file) for file in todo)
        worth = len(todo) >= _HELPED
        for read_file in with_helper(cut_look, looks, worth=worth, shares=_SHARES):
            done_count += 1
            if isinstance(read_file, Skipped):
                self.skipped.append(read_file)
                if read_file.reason == "gone" and read_file.path in self.known:
                    self.missing[read_file.path] = self.known[read_file.path]
                continue
            if read_file.redacted:
                self.redacted.append(read_file.file.path)
            if read_file.file.skipped is not None:
                self.skipped.append(Skipped(read_file.file.path, read_file.file.skipped))
            batch.append(read_file)
            chars += sum(len(section.text) for section in read_file.sections)
            if len(batch) >= _FILES or chars >= _BATCH_CHARS:
                self._write_batch(batch)
                batch, chars = [], 0
                tell("files", done_count, len(todo))
        self._write_batch(batch)
        tell("files", len(todo), len(todo))
        missing = list(self.missing.values())
        for start in range(0, len(missing), _FILES):
            rows = missing[start : start + _FILES]
            with self.services.projects.change() as work:
                work.mark_stale(self.project.id)
                stored_files = work.known(self.project.id, [row.path for row in rows])
                # A path that has another id now was written by another run.
                ids = {row.id for row in stored_files.values()} & {row.id for row in rows}
                self.counts["removed"] += work.remove_files(ids)

    def _read(self, found: FoundFile) -> FileLook:
        """Read a file that is to be cut, unless its bytes are unchanged.

        An unchanged file comes back as its row alone, with a new state; one that cannot be read now
        is `Skipped`.
        """
        stat = _read_stat(found.absolute)
        if stat is None:
            return Skipped(found.path, "gone")
        mtime_ns = _settle_time(stat.st_mtime_ns, self.services.wall())
        text = read(found)
        if isinstance(text, Skipped) and text.reason not in _LASTING:
            return text
        known_file = self.known.get(found.path)
        changed_at = self.committed.get(found.path)
        if changed_at is None:
            try:
                changed_at = utc_moment(abs(mtime_ns) / 1e9)
            except (OverflowError, ValueError):
                # A disk may hold any number.
                changed_at = datetime.fromtimestamp(0, UTC)
        row = FileRow(
            id=known_file.id if known_file else "",
            project=self.project.id,
            path=found.path,
            role="unknown",
            language=None,
            content_hash="" if isinstance(text, Skipped) else text.sha,
            skipped=text.reason if isinstance(text, Skipped) else None,
            parser=_find_version(found.path),
            size=stat.st_size,
            mtime_ns=mtime_ns,
            inode=stat.st_ino & _SIGNED,
            changed_at=changed_at,
        )
        if isinstance(text, Skipped):
            return FileSections(row)
        if (
            known_file is not None
            and is_current(known_file)
            and known_file.content_hash == text.sha
        ):
            return FileSections(_copy_state(known_file, row))
        return row, text.text

    def _write_batch(self, batch: list[FileSections]) -> None:
        """One transaction: what another run has written meanwhile is not written again."""
        # What was read with the same row and without sections says nothing new.
        differing = [
            look
            for look in batch
            if look.sections or replace(look.file, facts={}) != self.known.get(look.file.path)
        ]
        self.counts["unchanged"] += len(batch) - len(differing)
        if not differing:
            return
        with self.services.projects.change() as work:
            # Whether it is still there.
            work.project(self.project.id)
            touched_before = len(self.touched)
            stored_files = work.known(self.project.id, [look.file.path for look in differing])
            for look in differing:
                self._write_file(work, look, stored_files.get(look.file.path))
            if len(self.touched) > touched_before:
                # A file that was only looked at again says nothing new.
                work.mark_stale(self.project.id)
            self.gone_texts |= work.gone_texts

    def _write_file(
        self, work: ProjectTransaction, look: FileSections, known: FileRow | None
    ) -> None:
        new_file = look.file
        is_same = known is not None and (known.content_hash, known.parser, known.skipped) == (
            new_file.content_hash, new_file.parser, new_file.skipped,
        )  # fmt: skip
        if known is not None and is_same:
            work.put_file(_copy_state(known, new_file), known=True)
            self.counts["unchanged"] += 1
            return
        renamed_file: FileRow | None = None
        if known is None and new_file.content_hash:
            # A missing file of the same bytes, the one of the same name first.
            same_bytes = [
                r for r in self.missing.values() if r.content_hash == new_file.content_hash
            ]
            name = PurePosixPath(new_file.path).name
            same_bytes.sort(key=lambda r: (PurePosixPath(r.path).name != name, r.path))
            stored_files = ((r.path, work.file(r.id)) for r in same_bytes)
            renamed_file = next(
                (file for path, file in stored_files if file and file.path == path), None
            )
        if renamed_file is not None:
            del self.missing[renamed_file.path]
            self.renames.append(Rename(renamed_file.path, new_file.path, self.services.clock()))
            self.counts["renamed"] += 1
        old_file = known or renamed_file
        row = replace(new_file, id=old_file.id if old_file else self.services.ids())
        if renamed_file is not None:
            # The words are as old as they were.
            row = replace(row, changed_at=renamed_file.changed_at)
        work.put_file(row, known=old_file is not None)
        work.put_sections(row, look.sections, self.services.ids, known=old_file is not None)
        if renamed_file is not None:
            work.flush()
            work.moved(row.id)
        elif known is not None:
            self.counts["changed"] += 1
            # Its folders come or go with it.
            self.reshaped |= (known.skipped is None) != (new_file.skipped is None)
        else:
            self.counts["added"] += 1
        self.touched.add(row.id)
