"""Imports of exports: what is missing here comes in, what is here stays.

A line that cannot be read is reported with its number, and the rest goes in. Importing the same
file again changes nothing; an import that was interrupted is finished by doing it again. Vectors
come later.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from anaphora.container.home import Container
from anaphora.core.progress import Progress
from anaphora.errors import CorruptThread, StoreError, UnknownFormat
from anaphora.ingest.importers.base import Problems, shortened
from anaphora.ops.transfer.deep import GapReader, OriginReader
from anaphora.ops.transfer.incoming import BATCH, LineReader, Target
from anaphora.ops.transfer.lines import FORMAT, from_line, string
from anaphora.ops.transfer.memories import LinkReader, MemoryReader
from anaphora.ops.transfer.notes import ProjectNoteReader
from anaphora.ops.transfer.threads import NoteReader, ThreadReader
from anaphora.store.disk import open_regular, translate
from anaphora.store.threads.ids import check_id
from anaphora.values.conversations import ImportProblem

# Wrong in the file or in what it says; anything else is trouble with this home.
_WRONG = (ValueError, TypeError, CorruptThread)
# Bytes: no turn and no memory is longer, and one line never takes all of a machine's memory.
_MOST_LINE = 128 << 20
_MOST_PROBLEMS = 10_000
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Transferred:
    """What an import of an export did. Turns and memories were `added`, or `known` before.

    `changed` memories were here and got something new; `forgotten` ones and turns were deleted
    here and stay out. `renamed` are threads that were here under the same id with other turns, and
    came in beside them: id in the file to id here. `notes` are the ids, by namespace, of notes of
    projects that came or changed: they are to be linked to what they name.
    """

    threads: int = 0
    turns_added: int = 0
    turns_known: int = 0
    memories_added: int = 0
    memories_changed: int = 0
    memories_known: int = 0
    forgotten: int = 0
    renamed: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[ImportProblem, ...] = ()
    notes_added: int = 0
    notes_changed: int = 0
    notes_known: int = 0
    gaps_added: int = 0
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def import_export(
    container: Container,
    source: str | os.PathLike[str],
    *,
    namespace: str | None = None,
    again: bool = False,
    progress: Progress | None = None,
) -> Transferred:
    """Bring the export at `source` in, each namespace into its own, or all into `namespace`.

    `again` also brings back what was deleted here. `progress` is called with the file's name,
    bytes read and bytes in all. `UnknownFormat` for a file that is no export, `StoreError` for one
    of a newer format, `StoreError` and its kinds when this home refuses: what was written until
    then stays, and importing again goes on from there.
    """
    path = Path(source).expanduser().absolute()
    run = _Import(container, path, check_id(namespace) if namespace is not None else None, again)
    try:
        with open_regular(path) as file:
            size = path.stat().st_size
            run.begin(file.readline(_MOST_LINE))
            for line in _lines(file):
                run.take(line)
                if progress is not None and run.number % BATCH == 0:
                    progress(path.name, file.tell(), size)
    except OSError as error:
        raise translate(error, "read", path) from error
    report = run.end()
    if progress is not None:
        progress(path.name, size, size)
    return report


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Each line; None for one that is longer than any line may be, which is never held."""
    while line := file.readline(_MOST_LINE):
        rest = b"" if line.endswith(b"\n") else file.readline(_CHUNK)
        yield None if rest else line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(_CHUNK)


class _Readers:
    """What reads the lines of one namespace."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.threads = ThreadReader(target)
        self.notes = NoteReader(target, self.threads)
        self.memories = MemoryReader(target)
        self.links = LinkReader(target)
        self.project_notes = ProjectNoteReader(target)
        self.origins = OriginReader(target)
        self.gaps = GapReader(target)

    def of_kind(self, kind: str) -> LineReader:
        """What reads the lines of a kind."""
        reader: LineReader = getattr(self, _KINDS[kind])
        return reader

    def finish(self) -> None:
        """Write what is left; what refers to something comes after it."""
        for name in dict.fromkeys(_KINDS.values()):
            getattr(self, name).finish()


# The kinds of lines, in the order of the file, and which of `_Readers` reads each.
_KINDS: Mapping[str, str] = {
    "thread": "threads",
    "turn": "threads",
    "conversation_note": "notes",
    "turn_note": "notes",
    "forgotten_turn": "notes",
    "memory": "memories",
    "link": "links",
    "observation": "project_notes",
    "diary": "project_notes",
    "taken_from": "origins",
    "gap": "gaps",
}


class _Import:
    """An import under way."""

    def __init__(self, container: Container, path: Path, into: str | None, again: bool) -> None:
        self._container = container
        self._path = path
        self._into = into
        self._again = again
        self._counts: Counter[str] = Counter()
        self._problems = Problems(_MOST_PROBLEMS)
        self._namespaces: dict[str, _Readers] = {}
        self._reader: LineReader | None = None
        self._ended = False
        self.number = 1

    def begin(self, line: bytes) -> None:
        """Read the first line."""
        try:
            head = from_line(line)
        except ValueError:
            head = {}
        if head.get("anaphora") != "export":
            raise UnknownFormat("source", str(self._path), "an export of Anaphora")
        if head.get("version") != FORMAT:
            reason = f"its format {head.get('version')} is newer than this program"
            raise StoreError("read", self._path, reason)

    def take(self, line: bytes | None) -> None:
        """Read another line, and do what can be done by now; None for one that is too long."""
        self.number += 1
        if line is None:
            self._problem(self.number, f"longer than {_MOST_LINE:,} bytes; it was left out")
            return
        try:
            self._take(line)
        except RecursionError:
            self._problem(self.number, "it is nested too deeply")
        except MemoryError:
            self._problem(self.number, "there is not memory enough for it")
        except _WRONG as error:
            self._problem(self.number, str(error))

    def _take(self, line: bytes) -> None:
        found = from_line(line)
        kind = string(found, "kind")
        if kind == "end":
            self._ended = True
            return
        if kind not in _KINDS:
            raise ValueError(f"a line of the unknown kind {kind!r}")
        namespace = self._into or check_id(string(found, "namespace"))
        reader = self._readers(namespace).of_kind(kind)
        if reader is not self._reader:
            before, self._reader = self._reader, reader
            if before is not None:
                before.flush()
        reader.take(self.number, found)

    def end(self) -> Transferred:
        """Write what is left, and say what was done."""
        if self._reader is not None:
            self._reader.flush()
        for readers in self._namespaces.values():
            readers.finish()
        if not self._ended:
            self._problem(self.number, "the file ends here, before its own end")
        counts = self._counts
        return Transferred(
            threads=counts["threads"],
            turns_added=counts["turns added"],
            turns_known=counts["turns known"],
            memories_added=counts["added"],
            memories_changed=counts["changed"],
            memories_known=counts["known"],
            forgotten=counts["forgotten"],
            renamed={
                there: here
                for readers in self._namespaces.values()
                for there, here in readers.target.thread_ids.items()
                if there != here
            },
            problems=self._problems.all(),
            notes_added=counts["notes added"],
            notes_changed=counts["notes changed"],
            notes_known=counts["notes known"],
            gaps_added=counts["gaps added"],
            notes={
                name: tuple(dict.fromkeys(readers.project_notes.touched))
                for name, readers in self._namespaces.items()
                if readers.project_notes.touched
            },
        )

    def _readers(self, namespace: str) -> _Readers:
        if namespace not in self._namespaces:
            services = self._container.namespace(namespace)
            gone = frozenset(one for _, one in services.records.tombstones_since(0))
            target = Target(services, self._again, gone, self._problem, self._counts)
            self._namespaces[namespace] = _Readers(target)
        return self._namespaces[namespace]

    def _problem(self, number: int, reason: str) -> None:
        self._problems.take(ImportProblem(str(self._path), f"line {number}", shortened(reason)))
