"""One pass over the files of a project: which to read, and what to write of them.

In: a project and the files that were known of it. Out: rows in truth, in transactions of a few
files, and counts of what was done. A file that another run has written meanwhile is not written
again, and a missing file whose bytes turn up elsewhere has moved there. It makes no graph and no
vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from anaphora.errors import InvalidInput
from anaphora.ingest.files import Found, walk
from anaphora.ingest.projects.entities import Past
from anaphora.ingest.projects.files import Looked, in_state, looked_at, stat_of, unchanged
from anaphora.ingest.projects.folders import is_under
from anaphora.store.projects.rows import FileRow, ProjectRow
from anaphora.values.projects import Skipped

if TYPE_CHECKING:
    from anaphora.store.projects.store import Projects
    from anaphora.store.projects.transaction import ProjectTransaction

Progress = Callable[[str, int, int], None]

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
