"""Imports of exports: what is missing here comes in, what is here stays.

In: a file as docs/formats.md has it. Out: `Transferred`, and a home that holds both. A line that
cannot be read is reported with its number, and the rest goes in. Importing the same file again
changes nothing; an import that was interrupted is finished by doing it again. Vectors come later.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from anaphora.container.home import Container
from anaphora.container.namespace import NamespaceServices
from anaphora.core.progress import Progress
from anaphora.errors import CorruptThread, StoreError, UnknownFormat
from anaphora.ingest.importers.base import Problems, shortened
from anaphora.ops.cleaning import cleaned
from anaphora.ops.deep_lines import GapsIn, OriginsIn
from anaphora.ops.lines import event_from, from_line, link_from, memory_from, string
from anaphora.ops.merging import Incoming, Merger
from anaphora.ops.notes_in import NotesIn
from anaphora.ops.project_notes import ProjectNotesIn, other_kinds
from anaphora.ops.threads_in import RowsIn, ThreadsIn
from anaphora.ops.transfer import FORMAT
from anaphora.store.disk import open_regular, translate
from anaphora.store.records.rows import RecordLink
from anaphora.store.threads.gojson import read_time
from anaphora.store.threads.ids import check_id
from anaphora.store.threads.sql_store import SqlConversationStore
from anaphora.values.conversations import ImportProblem, Thread, Turn

_BATCH = 256
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
    parts: Container,
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
    run = _Run(parts, path, check_id(namespace) if namespace is not None else None, again)
    try:
        with open_regular(path) as file:
            size = path.stat().st_size
            run.begin(file.readline(_MOST_LINE))
            for line in _lines(file):
                run.take(line)
                if progress is not None and run.number % _BATCH == 0:
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


class _Run:
    """An import under way: lines are gathered until what they belong to is whole."""

    def __init__(self, parts: Container, path: Path, into: str | None, again: bool) -> None:
        self._parts = parts
        self._path = path
        self._into = into
        self._again = again
        self._counts: Counter[str] = Counter()
        self._problems = Problems(_MOST_PROBLEMS)
        self._renamed: dict[str, str] = {}
        self._places: dict[str, _Place] = {}
        self._thread: dict[str, Any] | None = None
        self._thread_line = 0
        self._turns: list[Turn] = []
        self._memories: list[tuple[int, Incoming]] = []
        self._links: list[tuple[int, RecordLink]] = []
        self._now = ""
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
            found = from_line(line)
            kind = string(found, "kind")
            if kind == "end":
                self._ended = True
                return
            if kind not in _KINDS:
                raise ValueError(f"a line of the unknown kind {kind!r}")
            namespace = self._into or check_id(string(found, "namespace"))
            self._flush_before(kind, namespace)
            self._now = namespace
            _KINDS[kind](self, found)
        except RecursionError:
            self._problem(self.number, "it is nested too deeply")
        except MemoryError:
            self._problem(self.number, "there is not memory enough for it")
        except _WRONG as error:
            self._problem(self.number, str(error))

    def _flush_before(self, kind: str, namespace: str) -> None:
        """Write what a line of this kind does not belong to any more."""
        elsewhere = namespace != self._now
        if kind != "turn":
            self._flush_thread()
        if kind != "memory" or elsewhere or len(self._memories) >= _BATCH:
            self._flush_memories()
        if kind != "link" or elsewhere or len(self._links) >= _BATCH:
            self._flush_links()

    def end(self) -> Transferred:
        """Write what is left, and say what was done."""
        self._flush_thread()
        self._flush_memories()
        self._flush_links()
        for place in self._places.values():
            place.notes.flush()
            self._flush_project_notes(place)
            place.origins.flush()
            self._count("gaps", place.gaps.flush())
        if not self._ended:
            self._problem(self.number, "the file ends here, before its own end")
        return Transferred(
            threads=self._counts["threads"],
            turns_added=self._counts["turns"],
            turns_known=self._counts["turns known"],
            memories_added=self._counts["added"],
            memories_changed=self._counts["changed"],
            memories_known=self._counts["known"],
            forgotten=self._counts["forgotten"],
            renamed=dict(self._renamed),
            problems=self._problems.all(),
            notes_added=self._counts["notes added"],
            notes_changed=self._counts["notes changed"],
            notes_known=self._counts["notes known"],
            gaps_added=self._counts["gaps added"],
            notes={
                name: tuple(dict.fromkeys(place.project_notes.touched))
                for name, place in self._places.items()
                if place.project_notes.touched
            },
        )

    def _take_thread(self, found: dict[str, Any]) -> None:
        check_id(string(found, "id"))
        read_time(string(found, "updated"))
        self._thread, self._thread_line = found, self.number

    def _take_turn(self, found: dict[str, Any]) -> None:
        thread = self._thread
        if thread is None or thread["id"] != string(found, "thread"):
            raise ValueError("a turn without its thread before it")
        if found.get("index") != len(self._turns):
            raise ValueError(f"turn {found.get('index')!r} stands where {len(self._turns)} belongs")
        ts_text = string(found, "ts")
        intent = string(found, "intent_id") if "intent_id" in found else ""
        role, text = string(found, "role"), string(found, "text")
        self._turns.append(Turn(role, text, read_time(ts_text), ts_text, intent))

    def _take_note(self, found: dict[str, Any]) -> None:
        self._place().notes.take(found)

    def _take_memory(self, found: dict[str, Any]) -> None:
        record = memory_from(found)
        listed = found.get("events", [])
        if not isinstance(listed, list):
            raise ValueError('"events" is no list')
        events = tuple(event_from(record.id, one) for one in listed)
        item = Incoming(record, events, found.get("stands_alone") is True)
        self._memories.append((self.number, cleaned(item)))

    def _take_link(self, found: dict[str, Any]) -> None:
        self._links.append((self.number, link_from(found)))

    def _take_project_note(self, found: dict[str, Any]) -> None:
        place = self._place()
        place.project_notes.take(self.number, found)
        if len(place.project_notes.waiting) >= _BATCH:
            self._flush_project_notes(place)

    def _take_origin(self, found: dict[str, Any]) -> None:
        self._place().origins.take(found)

    def _take_gap(self, found: dict[str, Any]) -> None:
        self._place().gaps.take(found)

    def _flush_project_notes(self, place: _Place) -> None:
        self._count("notes", place.project_notes.flush().elements())

    def _count(self, what: str, became: Iterable[str]) -> None:
        for one in became:
            self._counts["forgotten" if one == "forgotten" else f"{what} {one}"] += 1

    def _flush_thread(self) -> None:
        found, turns = self._thread, tuple(self._turns)
        self._thread, self._turns = None, []
        if found is None:
            return
        place = self._place()
        if found.get("turns") != len(turns):
            reason = f"only the first {len(turns)} of {found.get('turns')} turns can be read"
            self._problem(self._thread_line, reason)
        updated = string(found, "updated")
        title = string(found, "title") if "title" in found else ""
        thread = Thread(found["id"], turns, read_time(updated), updated, title)
        if not self._again and place.was_deleted(thread.conversation_id):
            place.notes.left_out(thread.conversation_id)
            self._counts["forgotten"] += len(turns)
            return
        try:
            kept = place.threads.put(thread)
        except CorruptThread as error:
            self._problem(self._thread_line, str(error))
            return
        place.notes.came(thread, kept.conversation_id)
        if kept.conversation_id != thread.conversation_id:
            self._renamed[thread.conversation_id] = kept.conversation_id
        self._counts.update({"threads": 1, "turns": kept.added, "turns known": kept.known})

    def _flush_memories(self) -> None:
        items, self._memories = self._memories, []
        if not items:
            return
        place = self._place()
        taken = other_kinds(place.lane, [item.record.id for _, item in items], "memory")
        for number, item in items:
            if item.record.id in taken:
                self._problem(number, f"its id is that of a note here: {taken[item.record.id]}")
        good = [item for _, item in items if item.record.id not in taken]
        with place.lane.records.change() as work:
            became = place.merger.take(work, good)
        self._counts.update(became)

    def _flush_links(self) -> None:
        links, self._links = self._links, []
        if not links:
            return
        place = self._place()
        with place.lane.records.change() as work:
            ends = {place.merger.id_of(one) for _, k in links for one in (k.record_id, k.other_id)}
            ids = [one for one in ends if one is not None]
            work.load(ids=ids)
            known = {(one.record_id, one.other_id, one.kind) for one in work.linked(ids)}
            fresh: dict[tuple[str, str, str], RecordLink] = {}
            for number, given in links:
                one, other = sorted(
                    str(place.merger.id_of(end)) for end in (given.record_id, given.other_id)
                )
                if one == other or place.merger.gone & {one, other}:
                    continue
                if work.find(one) is None or work.find(other) is None:
                    self._problem(number, "a link to a memory that is not here")
                elif (one, other, given.kind) not in known:
                    link = RecordLink(one, other, given.kind, given.strength)
                    fresh[one, other, given.kind] = link
            work.join(fresh.values())

    def _place(self) -> _Place:
        namespace = self._now
        if namespace not in self._places:
            self._places[namespace] = _Place(self._parts, namespace, self._again, self._problem)
        return self._places[namespace]

    def _problem(self, number: int, reason: str) -> None:
        self._problems.take(ImportProblem(str(self._path), f"line {number}", shortened(reason)))


_KINDS: Mapping[str, Callable[[_Run, dict[str, Any]], None]] = {
    "thread": _Run._take_thread,
    "turn": _Run._take_turn,
    "conversation_note": _Run._take_note,
    "turn_note": _Run._take_note,
    "forgotten_turn": _Run._take_note,
    "memory": _Run._take_memory,
    "link": _Run._take_link,
    "taken_from": _Run._take_origin,
    "observation": _Run._take_project_note,
    "diary": _Run._take_project_note,
    "gap": _Run._take_gap,
}


class _Place:
    """What one namespace of this home takes lines with."""

    def __init__(
        self,
        parts: Container,
        namespace: str,
        again: bool,
        problem: Callable[[int, str], None],
    ) -> None:
        self.lane: NamespaceServices = parts.namespace(namespace)
        store = self.lane.conversations
        self.threads: ThreadsIn | RowsIn = (
            RowsIn(store)
            if isinstance(store, SqlConversationStore)
            else ThreadsIn(self.lane.folder, parts.sealing.threads(namespace))
        )
        self.notes = NotesIn(self.lane, again=again)
        gone = frozenset(one for _, one in self.lane.records.tombstones_since(0))
        self.merger = Merger(gone, again)
        self.project_notes = ProjectNotesIn(self.lane, again, problem)
        threads = self.notes.ids
        self.origins = OriginsIn(self.lane, self.merger.ids, threads)
        self.gaps = GapsIn(self.lane, again, gone, self.merger.ids, threads)

    def was_deleted(self, conversation_id: str) -> bool:
        """Whether this thread was here and was deleted: all that is known of it is forgotten."""
        notes = self.lane.sidecar.turn_notes(conversation_id).values()
        if not notes or not all(note.forgotten for note in notes):
            return False
        return self.lane.conversations.get(conversation_id) is None
