"""Exports: everything that was said and remembered, as lines of JSON that any program can read.

In: a home, and a path where nothing stands yet. Out: a file as docs/formats.md has it, and
`Exported`. Texts leave in clear, those of a sealed home too. Vectors are not exported: they are
made again. Threads are read first, then truth as of one moment: notes about turns that came in
between are left out, as their turns are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from anaphora.container.home import Container
from anaphora.container.namespace import NamespaceServices
from anaphora.container.snapshot import snapshot
from anaphora.core.progress import Progress
from anaphora.errors import EncryptionError, InvalidInput, NotFound
from anaphora.ops import staging
from anaphora.ops.deep_lines import gap_lines, origin_lines
from anaphora.ops.lines import from_line, link_line, memory_line, time_text, to_line
from anaphora.ops.project_notes import project_note_line
from anaphora.store.disk import open_regular
from anaphora.store.hashing import stored_turn_hash
from anaphora.store.records.mending import unreadable_records
from anaphora.store.records.rows import STANDS_ALONE
from anaphora.store.threads.gojson import NotAThread, decode
from anaphora.store.threads.ids import check_id
from anaphora.store.threads.sidecar import TurnNote
from anaphora.values.conversations import ImportedConversation, ImportProblem, Thread
from anaphora.values.memories import MemoryRecord

FORMAT = 1
Source = str | os.PathLike[str] | ImportedConversation
_STEP = 512
_STANDS_ALONE = (
    "SELECT record_id FROM record "
    "WHERE namespace = :namespace AND kind = 'memory' AND same_key = :same_key"
)


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export holds. `problems` are thread files that could not be read."""

    path: str
    namespaces: tuple[str, ...]
    threads: int
    turns: int
    memories: int
    links: int
    problems: tuple[ImportProblem, ...] = ()
    notes: int = 0
    gaps: int = 0


def export(
    parts: Container,
    path: str | os.PathLike[str] | BinaryIO,
    *,
    clock: Callable[[], datetime],
    namespaces: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Exported:
    """Write an export of `namespaces` (None: all there are) to `path`, whole or not at all.

    An open file gets it as it is made. Others may go on writing. `NotEmpty` when something stands
    at `path`, `NotFound` for a namespace that there is not, `StoreError` and its kinds,
    `EncryptionError`.
    """
    if not isinstance(path, (str, os.PathLike)):
        chosen = _chosen(parts, namespaces)
        return _written(parts, path, chosen, clock, progress).report("", chosen)
    target = staging.free_path(path)
    chosen = _chosen(parts, namespaces)
    with staging.staged(target) as stage:
        with staging.open_new(stage / "export.jsonl") as file:
            writing = _written(parts, file, chosen, clock, progress)
        staging.put_file(stage / "export.jsonl", target)
    return writing.report(str(target), chosen)


def _written(
    parts: Container,
    file: BinaryIO,
    chosen: tuple[str, ...],
    clock: Callable[[], datetime],
    progress: Progress | None,
) -> _Writing:
    writing = _Writing(file, progress)
    writing.head(chosen, clock())
    for namespace in chosen:
        writing.namespace(parts, namespace, clock)
    writing.line({"kind": "end", "lines": writing.lines})
    return writing


def is_export(path: str | os.PathLike[str]) -> bool:
    """Whether the file at `path` begins as an export does. Nothing is raised: another may read it.

    A folder, a pipe, or a file that cannot be opened, is none.
    """
    try:
        with open_regular(Path(path)) as file:
            return from_line(file.readline(1 << 20)).get("anaphora") == "export"
    except (OSError, ValueError):
        return False


def exports_among(
    sources: Iterable[Source], form: str | None
) -> tuple[list[str | os.PathLike[str]], list[Source]]:
    """What of the sources is an export of ours, and the rest; `form` is what the caller named."""
    own: list[str | os.PathLike[str]] = []
    others: list[Source] = []
    for source in sources:
        path = None if isinstance(source, ImportedConversation) else source
        if path is not None and (form == "anaphora" or (form is None and is_export(path))):
            own.append(path)
        else:
            others.append(source)
    return own, others


def _chosen(parts: Container, namespaces: Iterable[str] | None) -> tuple[str, ...]:
    known = parts.namespaces()
    if namespaces is None:
        return known
    if isinstance(namespaces, str):
        raise InvalidInput("namespaces", namespaces, "expected a list of names, or None for all")
    chosen = tuple(dict.fromkeys(check_id(name) for name in namespaces))
    for name in chosen:
        if name not in known:
            raise NotFound("namespace", name)
    return chosen


def _left_out(kind: str, record_id: str) -> ImportProblem:
    return ImportProblem(kind, record_id, "it cannot be read; doctor --repair mends it")


class _Writing:
    """An export under way, and what it has counted."""

    def __init__(self, file: BinaryIO, progress: Progress | None) -> None:
        self._file = file
        self._progress = progress
        self._problems: list[ImportProblem] = []
        self.lines = 0
        self._threads = self._turns = self._memories = self._links = 0
        self._notes = self._gaps = 0

    def line(self, value: dict[str, object]) -> None:
        self._write(to_line(value))

    def head(self, namespaces: tuple[str, ...], now: datetime) -> None:
        from importlib.metadata import version

        self.line(
            {
                "anaphora": "export",
                "version": FORMAT,
                "program": version("anaphora"),
                "created": time_text(now),
                "namespaces": list(namespaces),
            }
        )

    def namespace(self, parts: Container, namespace: str, clock: Callable[[], datetime]) -> None:
        live = parts.namespace(namespace)
        hashes = dict(self._thread_lines(live))
        with snapshot(parts.truth) as truth:
            lane = NamespaceServices(parts, namespace, truth)
            self._note_lines(lane, hashes)
            self._memory_lines(parts, lane)
            for line in origin_lines(lane):
                self._write(line)
            self._project_note_lines(lane)
            for line in gap_lines(lane, clock()):
                self._write(line)
                self._gaps += 1

    def report(self, target: str, namespaces: tuple[str, ...]) -> Exported:
        return Exported(
            target,
            namespaces,
            self._threads,
            self._turns,
            self._memories,
            self._links,
            tuple(self._problems),
            self._notes,
            self._gaps,
        )

    def _thread_lines(self, lane: NamespaceServices) -> Iterator[tuple[str, list[str]]]:
        files = sorted(lane.conversations.files())
        for done, (conversation_id, path) in enumerate(files):
            try:
                thread = decode(lane.conversations.read_file(conversation_id)[0])
            except FileNotFoundError:
                continue  # Deleted since the folder was listed.
            except (NotAThread, EncryptionError, OSError) as error:
                # One file that cannot be read must not keep the others from leaving.
                self._problems.append(ImportProblem(str(path), conversation_id, str(error)))
                continue
            yield conversation_id, self._thread(lane.namespace, conversation_id, thread)
            self._tell("threads", done + 1, len(files))

    def _thread(self, namespace: str, conversation_id: str, thread: Thread) -> list[str]:
        self.line(
            {
                "kind": "thread",
                "namespace": namespace,
                "id": conversation_id,
                "title": thread.title or None,
                "updated": thread.updated_text,
                "turns": len(thread.turns),
            }
        )
        for index, turn in enumerate(thread.turns):
            self.line(
                {
                    "kind": "turn",
                    "namespace": namespace,
                    "thread": conversation_id,
                    "index": index,
                    "role": turn.role,
                    "text": turn.text,
                    "intent_id": turn.intent_id or None,
                    "ts": turn.ts_text,
                }
            )
        self._threads += 1
        self._turns += len(thread.turns)
        return [stored_turn_hash(turn.role, turn.text) for turn in thread.turns]

    def _note_lines(self, lane: NamespaceServices, hashes: dict[str, list[str]]) -> None:
        for conversation_id, origin in sorted(lane.sidecar.conversation_notes().items()):
            self.line(
                {
                    "kind": "conversation_note",
                    "namespace": lane.namespace,
                    "thread": conversation_id,
                    "source": origin.source,
                    "source_key": origin.source_key,
                    "branch_of": origin.branch_of,
                    "branch_at": origin.branch_at,
                }
            )
        # Notes of deleted conversations keep their messages from being imported again.
        for conversation_id in sorted(hashes.keys() | lane.sidecar.changed_since(0)):
            known = hashes.get(conversation_id, [])
            for index, note in lane.sidecar.turn_notes(conversation_id).items():
                stands = index < len(known) and known[index] == note.turn_hash
                if note.forgotten or stands:
                    self._turn_note(lane.namespace, note)

    def _turn_note(self, namespace: str, note: TurnNote) -> None:
        self.line(
            {
                "kind": "forgotten_turn" if note.forgotten else "turn_note",
                "namespace": namespace,
                "thread": note.conversation_id,
                "index": note.index,
                "speaker": note.speaker,
                "source": note.source,
                "source_key": note.source_key,
                "message_key": note.message_key,
            }
        )

    def _memory_lines(self, parts: Container, lane: NamespaceServices) -> None:
        key = parts.sealing.rows.lookup("same_key", lane.namespace, STANDS_ALONE)
        named = {"namespace": lane.namespace, "same_key": key}
        rows = lane.records.truth.rows(_STANDS_ALONE, named)
        alone = {row[0] for row in rows}
        after, ids = 0, []
        while found := lane.records.changed_since(after, _STEP):
            for record in found:
                self._memory(lane, record, stands_alone=record.id in alone)
            ids += [record.id for record in found]
            after = found[-1].seq
            self._tell("memories", self._memories, self._memories)
        left = unreadable_records(lane.notes.truth, lane.namespace, lane.notes.sealer)
        for kind, damaged in left.items():
            self._problems += [_left_out(kind, one) for one in damaged]
        for start in range(0, len(ids), _STEP):
            some = ids[start : start + _STEP]
            first = set(some)
            for link in lane.records.links(some):
                # Each link once: by the end that it is kept under.
                if link.record_id in first:
                    self._write(link_line(lane.namespace, link))
                    self._links += 1

    def _memory(self, lane: NamespaceServices, record: MemoryRecord, *, stands_alone: bool) -> None:
        events = lane.records.events(record.id)
        self._write(memory_line(lane.namespace, record, events, stands_alone=stands_alone))
        self._memories += 1

    def _project_note_lines(self, lane: NamespaceServices) -> None:
        names = {row.id: row.name for row in lane.projects.rows()}
        after = 0
        while found := lane.notes.notes_since(after, _STEP):
            for row in found:
                events = lane.notes.events(row.record.id)
                name = names.get(row.project or "")
                self._write(project_note_line(lane.namespace, row, events, name))
            after = found[-1].record.seq
            self._notes += len(found)
            self._tell("notes", self._notes, self._notes)

    def _write(self, line: bytes) -> None:
        self._file.write(line)
        self.lines += 1

    def _tell(self, label: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(label, done, total)
