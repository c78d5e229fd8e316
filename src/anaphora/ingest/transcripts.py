"""Transcripts that grow: which files of some folders are new or changed, imported one by one.

What was imported is noted in a small file that may be lost: importing a transcript again adds
nothing. A conversation has ended when its file was left alone for a while. Nothing is written into
the folders that are watched.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from anaphora.errors import InvalidInput, StoreError, UnknownFormat
from anaphora.ingest.secrets.masking import mask_text
from anaphora.store.disk import make_directory
from anaphora.values.conversations import ImportProblem, ImportReport

IDLE: Final = timedelta(minutes=30)
"""A transcript that was left alone this long is taken for a session that has ended."""

_DEEPEST: Final = 50
"""Folders within folders; clients make two."""
_SUFFIX: Final = ".jsonl"
_Stamp = tuple[int, int]
ImportFile = Callable[[Path], ImportReport]


@dataclass(frozen=True, slots=True)
class WatchReport:
    """One look at the folders: files that were read, what came in, conversations that ended."""

    files: int = 0
    added: int = 0
    ended: tuple[str, ...] = ()
    problems: tuple[ImportProblem, ...] = ()


class TranscriptWatch:
    """Follows transcript folders. `stamps` is the file in which it notes what it has read.

    `import_file` must add nothing for what it imported before. A look reads the `most` that changed
    last, without it all, and none of these that has more than `largest` bytes; the others wait for
    the next look. Not safe to share between threads;
    two processes that watch the same folders do no harm to each other.
    """

    def __init__(
        self,
        folders: Iterable[Path],
        import_file: ImportFile,
        *,
        clock: Callable[[], datetime],
        stamps: Path,
        idle: timedelta = IDLE,
        most: int | None = None,
        largest: int | None = None,
    ) -> None:
        self._folders = tuple(folders)
        self._import = import_file
        self._clock = clock
        self._place = stamps
        self._idle = idle
        self._most = most
        self._largest = largest
        try:
            noted_stamps = json.loads(stamps.read_text("utf-8"))
            self._stamps = {
                str(path): (int(size), int(at)) for path, (size, at) in noted_stamps.items()
            }
        except (OSError, ValueError, TypeError, AttributeError):
            # Lost or torn: every transcript is read once more, which adds nothing.
            self._stamps = {}
        # Files that grew while they were watched: when they changed, and their conversations.
        self._live: dict[Path, tuple[datetime, tuple[str, ...]]] = {}

    def look(self) -> WatchReport:
        """Import what changed since the last look. StoreError when it cannot be stored."""
        now = self._clock()
        files = added_count = 0
        problems: list[ImportProblem] = []
        for path, stamp in self._find_changed():
            report: ImportReport | None = None
            try:
                report = self._import(path)
                problems.extend(report.problems)
            except UnknownFormat:
                # A transcript of another program, or one that has no message yet.
                pass
            except InvalidInput as error:
                problems.append(ImportProblem(str(path), "", mask_text(str(error))))
            files += 1
            self._stamps[_digest_path(path)] = stamp
            if report is not None:
                added_count += report.added
                _, previous_ids = self._live.get(path, (now, ()))
                ids = dict.fromkeys((*previous_ids, *report.conversation_ids))
                self._live[path] = (now, tuple(ids))
        if files:
            new_path = self._place.with_suffix(f".{os.getpid()}.new")
            try:
                make_directory(self._place.parent)
                new_path.write_text(json.dumps(self._stamps), "utf-8")
                new_path.replace(self._place)
            except OSError as error:
                raise StoreError("write", self._place, str(error)) from error
        ended_ids: list[str] = []
        for path, (changed_at, conversations) in list(self._live.items()):
            if now - changed_at >= self._idle:
                del self._live[path]
                ended_ids += conversations
        return WatchReport(files, added_count, tuple(ended_ids), tuple(problems))

    def _find_changed(self) -> Iterator[tuple[Path, _Stamp]]:
        """Files with another size or time than when they were read, the oldest change first.

        The mark is taken before the file is read: what is written meanwhile is found next time.
        """
        changed_files: list[tuple[int, Path, _Stamp]] = []
        present: set[str] = set()
        for path in self._list_transcripts():
            with suppress(OSError):
                status = path.stat()
                stamp = (status.st_size, status.st_mtime_ns)
                present.add(_digest_path(path))
                if self._stamps.get(_digest_path(path)) != stamp:
                    changed_files.append((status.st_mtime_ns, path, stamp))
        for removed_path in self._stamps.keys() - present:
            del self._stamps[removed_path]
        last_files = sorted(changed_files)[-self._most :] if self._most else sorted(changed_files)
        for _, path, stamp in last_files:
            if self._largest is None or stamp[0] <= self._largest:
                yield path, stamp

    def _list_transcripts(self) -> Iterator[Path]:
        for folder in self._folders:
            if folder.is_file():
                yield folder
            for directory, folders, names in os.walk(folder):
                if Path(directory).relative_to(folder).parts[_DEEPEST:]:
                    folders.clear()
                for name in names:
                    if name.endswith(_SUFFIX):
                        yield Path(directory, name)


def _digest_path(path: Path) -> str:
    # No path in clear: the marks of a sealed home lie outside of what is sealed.
    return hashlib.blake2b(os.fsencode(path), digest_size=16).hexdigest()
