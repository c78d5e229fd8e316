"""Finds threads that have changed since they were indexed, and their new turns: in files, or rows.

An unchanged file is never opened; a file that only grew since it was read here is parsed from where
it grew. A time stamp that is too fresh to distinguish two writes is not trusted. In a database, one
number is read if nothing was written to the namespace, and only the new turns of a conversation
that only grew. No clock is trusted there: each state of a conversation has a stamp.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from anaphora.errors import InvalidId, StoreError
from anaphora.index.turns.records import (
    Identity,
    IndexChange,
    Indexed,
    ThreadCheckpoint,
    chain_of,
    digest_of,
    first_difference,
    record_of,
)
from anaphora.store.crypto.index import CLEAR_INDEX, IndexSealer
from anaphora.store.disk import identity_of, identity_of_entry, translate
from anaphora.store.hashing import stored_turn_hash
from anaphora.store.threads.gojson import NotAThread, parse
from anaphora.values.conversations import Degraded, Turn

if TYPE_CHECKING:
    from anaphora.store.threads.file_store import ConversationStore
    from anaphora.store.threads.sidecar import Sidecar
    from anaphora.store.threads.sql_store import SqlConversationStore, StoredThread


# File systems take times from the tick of a kernel clock (1 to 10 ms): two writes of the same size
# within a tick could look like one.
RACY_NS = 50_000_000
_REMEMBERED = 64
# A stat takes 2.5 microseconds. With more files than this, an unchanged directory (every write that
# renames a file into it changes it) is trusted for a while; an edit in place is noticed that much
# later.
_MANY_FILES = 256
_BELIEVED_NS = 2_000_000_000
_OPENING = b'{"turns":['


@dataclass(frozen=True, slots=True)
class _Read:
    """A thread file as it was read; only its turns from `start` on were parsed."""

    identity: Identity
    digests: list[bytes]
    start: int
    turns: list[Turn]
    title: str


@dataclass(frozen=True, slots=True)
class _HashedPrefix:
    """The beginning of a file up to the end of its list of turns, with its hash so far."""

    offset: int
    hashed: hashlib.blake2b
    digests: list[bytes]
    title: str


class FileThreadSource:
    """Follows the thread files of one store."""

    def __init__(
        self,
        store: ConversationStore,
        sidecar: Sidecar | None,
        wall_ns: Callable[[], int] = time.time_ns,
        sealer: IndexSealer = CLEAR_INDEX,
    ) -> None:
        self.problems: list[Degraded] = []
        self._sidecar, self._sealer = sidecar, sealer
        self._store = store
        self._wall_ns = wall_ns
        self._names: dict[str, str | None] = {}
        self._scanned: tuple[int, int, dict[str, Identity]] = (0, 0, {})
        # Files and checkpoints that did not differ.
        self._settled: tuple[object, object] = (None, None)
        self._remembered: OrderedDict[str, _HashedPrefix] = OrderedDict()

    def notes_version(self) -> int:
        """The sidecar's version, -1 without one."""
        return -1 if self._sidecar is None else self._sidecar.version()

    def noted_since(self, version: int) -> frozenset[str]:
        """Conversations with notes that changed after that version."""
        return frozenset() if self._sidecar is None else self._sidecar.changed_since(version)

    def differing(self, checkpoints: Mapping[str, ThreadCheckpoint], only: str | None) -> list[str]:
        """Conversations with files that may differ from their checkpoints."""
        if only is not None:
            try:
                identity = identity_of(os.stat(self._store.path(only)))  # noqa: PTH116
            except (OSError, InvalidId, StoreError):
                identity = None
            return [] if self._trusted(checkpoints.get(only), identity) else [only]
        files = self._files()
        if files is self._settled[0] and checkpoints is self._settled[1]:
            return []
        differing = [
            key
            for key, identity_now in files.items()
            if not self._trusted(checkpoints.get(key), identity_now)
        ]
        differing += [key for key in checkpoints if key not in files]
        if not differing:
            self._settled = files, checkpoints
        return differing

    def change(
        self,
        conversation_id: str,
        checkpoint: ThreadCheckpoint | None,
        indexed: Indexed,
        *,
        noted: bool = False,
    ) -> IndexChange | None:
        """The change from `checkpoint` to the current file; None if there is none.

        `noted` also compares the speakers of turns that are indexed already.
        """
        now_ns = self._wall_ns()
        try:
            read = self._read(conversation_id)
        except (OSError, StoreError) as error:
            self.problems.append(Degraded("conversations", f"{conversation_id}: {error}"))
            return None
        if read is None:
            removal = IndexChange(conversation_id, checkpoint, 0, (), None)
            return removal if checkpoint is not None else None
        chain = chain_of(read.digests)
        current_checkpoint = ThreadCheckpoint(
            read.identity, now_ns, len(read.digests), chain, title=read.title
        )
        start = first_difference(checkpoint, read.digests, indexed)
        if noted and checkpoint is not None:
            start = min(start, self._first_new_speaker(conversation_id, checkpoint, read, indexed))
        if start < read.start:
            # Only the end was parsed, but earlier turns are needed.
            self._remembered.pop(conversation_id, None)
            return self.change(conversation_id, checkpoint, indexed, noted=noted)
        if (
            checkpoint is not None
            and current_checkpoint.same_content(checkpoint)
            and start == checkpoint.count
        ):
            # A new checkpoint for the same content only if its time stamp can be trusted now.
            if self._fresh(checkpoint) and not self._fresh(current_checkpoint):
                current_checkpoint = replace(current_checkpoint, code=checkpoint.code)
                return IndexChange(
                    conversation_id, checkpoint, checkpoint.count, (), current_checkpoint
                )
            return None
        names = self._speakers(conversation_id, read, start)
        records = tuple(
            record_of(turn, start + i, names.get(start + i), read.digests[start + i], self._sealer)
            for i, turn in enumerate(read.turns[start - read.start :])
        )
        return IndexChange(conversation_id, checkpoint, start, records, current_checkpoint)

    def _trusted(self, checkpoint: ThreadCheckpoint | None, identity: Identity | None) -> bool:
        if checkpoint is None or identity is None:
            return checkpoint is None and identity is None
        return checkpoint.identity == identity and not self._fresh(checkpoint)

    @staticmethod
    def _fresh(checkpoint: ThreadCheckpoint) -> bool:
        return checkpoint.seen_ns - max(checkpoint.identity[2:]) < RACY_NS

    def _files(self) -> dict[str, Identity]:
        """The file identity of every conversation, cached for a moment if that is safe."""
        directory, changed_ns = self._store.directory, 0
        if directory is not None:
            with suppress(OSError):
                changed_ns = directory.stat().st_mtime_ns
        now_ns = self._wall_ns()
        was, at, files = self._scanned
        is_fresh = at - changed_ns < RACY_NS
        if (
            len(files) > _MANY_FILES
            and was == changed_ns
            and not is_fresh
            and now_ns - at < _BELIEVED_NS
        ):
            return files
        files = self._scan()
        self._scanned = (changed_ns, now_ns, files)
        return files

    def _scan(self) -> dict[str, Identity]:
        """The file identity of every conversation, by one scan of the directory."""
        directory = self._store.directory
        if directory is None:
            return {}
        identities: dict[str, Identity] = {}
        try:
            with os.scandir(directory) as entries:
                for file in entries:
                    name = file.name
                    if name.endswith(self._store.suffix):
                        identities[name] = identity_of_entry(file)
        except FileNotFoundError:
            # Nothing was written yet, or a file vanished during the scan: scan again.
            if not directory.is_dir():
                return {}
            return self._scan()
        except OSError as error:
            raise translate(error, "read", directory) from error
        if identities.keys() != self._names.keys():
            ids_by_name = {path.name: key for key, path in self._store.files()}
            self._names = {name: ids_by_name.get(name) for name in identities}
        names = self._names
        return {key: identity for name, identity in identities.items() if (key := names[name])}

    def _read(self, conversation_id: str) -> _Read | None:
        try:
            content, identity = self._store.read_file(conversation_id)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except NotAThread as error:
            self._report(conversation_id, error)
            return None
        read = self._read_end(conversation_id, content, identity)
        if read is not None:
            return read
        try:
            document = parse(content)
        except NotAThread as error:
            self._report(conversation_id, error)
            return None
        digests = _digests(document.turns, self._sealer)
        if document.splice is not None:
            offset = document.splice[0]
            begun = _HashedPrefix(offset, _hash(content, offset), digests, document.title)
            self._remember(conversation_id, begun)
        return _Read(identity, digests, 0, document.turns, document.title)

    def _report(self, conversation_id: str, error: NotAThread) -> None:
        # The store quarantines the file and reports it.
        self.problems.append(Degraded("conversations", f"{conversation_id}: {error}"))
        self._store.get(conversation_id)

    def _read_end(self, conversation_id: str, data: bytes, identity: Identity) -> _Read | None:
        """Parse only the turns added since the last read, if nothing else changed."""
        remembered_end = self._remembered.get(conversation_id)
        if remembered_end is None or len(data) < remembered_end.offset:
            return None
        content_hash = _hash(data, remembered_end.offset)
        if content_hash.digest() != remembered_end.hashed.digest():
            return None
        new_data = data[remembered_end.offset :]
        added_bytes = new_data.lstrip(b", \t\r\n")
        try:
            document = parse(_OPENING + added_bytes)
        except NotAThread:
            return None
        if document.splice is None:
            return None
        digests = remembered_end.digests + _digests(document.turns, self._sealer)
        offset = (
            remembered_end.offset
            + len(new_data)
            - len(added_bytes)
            + document.splice[0]
            - len(_OPENING)
        )
        content_hash.update(memoryview(data)[remembered_end.offset : offset])
        # The title comes before the turns.
        self._remember(
            conversation_id, _HashedPrefix(offset, content_hash, digests, remembered_end.title)
        )
        return _Read(
            identity, digests, len(remembered_end.digests), document.turns, remembered_end.title
        )

    def _remember(self, conversation_id: str, begun: _HashedPrefix) -> None:
        self._remembered[conversation_id] = begun
        self._remembered.move_to_end(conversation_id)
        while len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)

    def _first_new_speaker(
        self, conversation_id: str, checkpoint: ThreadCheckpoint, read: _Read, indexed: Indexed
    ) -> int:
        if read.start:
            thread = self._store.get(conversation_id)
            turns = [] if thread is None else list(thread.turns)
            read = _Read(read.identity, read.digests, 0, turns, read.title)
        names = self._speakers(conversation_id, read, 0)
        indexed_speakers = indexed.speakers(checkpoint)
        changed_positions = (i for i, name in enumerate(indexed_speakers) if names.get(i) != name)
        return next(changed_positions, checkpoint.count)

    def _speakers(self, conversation_id: str, read: _Read, start: int) -> dict[int, str]:
        if self._sidecar is None or start >= len(read.digests):
            return {}
        turns, first_position = read.turns, read.start
        # A note with another hash is void: its turn was changed, or never written.
        return {
            index: note.speaker
            for index, note in self._sidecar.turn_notes(conversation_id, start).items()
            if note.speaker is not None
            and first_position <= index < first_position + len(turns)
            and note.turn_hash
            == stored_turn_hash(
                turns[index - first_position].role, turns[index - first_position].text
            )
        }


def _digests(turns: Sequence[Turn], sealer: IndexSealer) -> list[bytes]:
    return [digest_of(turn, sealer.hash_key) for turn in turns]


def _hash(data: bytes, end: int) -> hashlib.blake2b:
    return hashlib.blake2b(memoryview(data)[:end], digest_size=16)


class SqlThreadSource:
    """Follows the conversations of one `SqlConversationStore`."""

    def __init__(
        self,
        store: SqlConversationStore,
        sidecar: Sidecar | None,
        sealer: IndexSealer = CLEAR_INDEX,
    ) -> None:
        self.problems: list[Degraded] = []
        self._sidecar, self._sealer = sidecar, sealer
        self._store = store
        self._states: dict[str, Identity] = {}
        self._seen = -1
        self._just_read: int | None = None
        self._noted_from: dict[str, int] = {}

    def notes_version(self) -> int:
        """The namespace's version, -1 without a sidecar."""
        # Notes and turns share one sequence, so `differing` can reuse this version.
        self._just_read = self._store.version()
        return -1 if self._sidecar is None else self._just_read

    def noted_since(self, version: int) -> frozenset[str]:
        """Conversations with notes that changed after that version."""
        if self._sidecar is None:
            return frozenset()
        positions = self._sidecar.places_since(version)
        for key, position in positions.items():
            self._noted_from[key] = min(position, self._noted_from.get(key, position))
        return frozenset(positions)

    def differing(self, checkpoints: Mapping[str, ThreadCheckpoint], only: str | None) -> list[str]:
        """Conversations with turns that differ from their checkpoints."""
        self._read_states()
        states = self._states
        if only is not None:
            return [only] if _differs(checkpoints.get(only), states.get(only)) else []
        changed_keys = [
            key for key, state in states.items() if _differs(checkpoints.get(key), state)
        ]
        return changed_keys + [key for key in checkpoints if key not in states]

    def change(
        self,
        conversation_id: str,
        checkpoint: ThreadCheckpoint | None,
        indexed: Indexed,
        *,
        noted: bool = False,
    ) -> IndexChange | None:
        """The change from `checkpoint` to the current conversation; None if there is none.

        `noted` also compares the speakers of turns that are indexed already.
        """
        position = self._noted_from.pop(conversation_id, 0)
        noted_from = position if noted else None
        known_digests = [] if checkpoint is None else list(indexed.digests(checkpoint))
        if checkpoint is not None and chain_of(known_digests) != checkpoint.chain:
            known_digests = []
        # One turn more than the new ones: it shows whether the turns before are unchanged.
        start = max(0, len(known_digests) - 1)
        if noted_from is not None and noted_from < len(known_digests):
            start = 0
        stored_thread = self._store.stored(conversation_id, start)
        if stored_thread is None:
            if checkpoint is None:
                return None
            return IndexChange(conversation_id, checkpoint, 0, (), None)
        last = len(known_digests) - 1 - stored_thread.start
        if stored_thread.start and not (
            checkpoint is not None
            and last < len(stored_thread.stamps)
            and stored_thread.stamps[last] == checkpoint.identity[0]
        ):
            stored_thread = self._store.stored(conversation_id)
            if stored_thread is None:
                return IndexChange(conversation_id, checkpoint, 0, (), None)
        turns = stored_thread.thread.turns
        digests = known_digests[: stored_thread.start] + _digests(turns, self._sealer)
        first_changed = first_difference(checkpoint, digests, indexed)
        if noted_from is not None and checkpoint is not None:
            first_changed = min(
                first_changed,
                _first_new_speaker(stored_thread, noted_from, indexed.speakers(checkpoint)),
            )
        identity = stored_thread.identity
        current_checkpoint = ThreadCheckpoint(
            identity, 0, len(digests), chain_of(digests), title=stored_thread.thread.title
        )
        if (
            checkpoint is not None
            and current_checkpoint.same_content(checkpoint)
            and first_changed == checkpoint.count
        ):
            return None
        records = tuple(
            record_of(turn, position, turn.speaker, digests[position], self._sealer)
            for position, turn in enumerate(turns, stored_thread.start)
            if position >= first_changed
        )
        return IndexChange(conversation_id, checkpoint, first_changed, records, current_checkpoint)

    def _read_states(self) -> None:
        version, self._just_read = self._just_read, None
        if version is None:
            version = self._store.version()
        if version < self._seen:
            # The database was restored from a backup.
            self._states, self._seen = {}, -1
        if version == self._seen:
            return
        for key, state in self._store.changes_since(self._seen).items():
            if state is None:
                self._states.pop(key, None)
            else:
                self._states[key] = state
        self._seen = version


ThreadSource: TypeAlias = FileThreadSource | SqlThreadSource
"""Finds the conversations of a store that changed since they were indexed, and their changes."""


def _differs(checkpoint: ThreadCheckpoint | None, state: Identity | None) -> bool:
    return (checkpoint.identity if checkpoint is not None else None) != state


def _first_new_speaker(
    stored: StoredThread, start: int, indexed_speakers: Sequence[str | None]
) -> int:
    turns: tuple[Turn, ...] = stored.thread.turns
    for position, turn in enumerate(turns, stored.start):
        if start <= position < len(indexed_speakers) and indexed_speakers[position] != turn.speaker:
            return position
    return len(indexed_speakers)
