"""Which threads have changed since they were indexed, and what of them is new: files, or rows.

An unchanged file is never opened; one that only grew, and was read here before, is parsed from
where it grew. A time stamp that is too fresh to tell two writes apart is not trusted. In a
database, where nothing was written to the namespace one number is read; of a conversation that only
grew, only its new turns. No clock is trusted there: each state of a conversation has a stamp.
"""

from __future__ import annotations

import hashlib
import os
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from anaphora.errors import InvalidId, StoreError
from anaphora.index.turns.records import (
    Change,
    Checkpoint,
    Identity,
    Indexed,
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


# File systems stamp times with the tick of a kernel clock (1 to 10 ms): within it, two writes of
# the same size could look like one.
RACY_NS = 50_000_000
_REMEMBERED = 64
# Looking at a file takes 2.5 microseconds. With more files than this, an unchanged directory (every
# write that renames a file into place changes it) is believed for a while; an edit in place is then
# seen that much later.
_MANY_FILES = 256
_BELIEVED_NS = 2_000_000_000
_OPENING = b'{"turns":['


@dataclass(frozen=True, slots=True)
class _Read:
    """A thread file as it was read; of its turns only those from `start` on were parsed."""

    identity: Identity
    digests: list[bytes]
    start: int
    turns: list[Turn]
    title: str


@dataclass(frozen=True, slots=True)
class _Remembered:
    """A file's beginning, up to where its list of turns ended, hashed so far."""

    offset: int
    hashed: hashlib.blake2b
    digests: list[bytes]
    title: str


class ThreadSource(ABC):
    """Tells what has changed in a store of conversations since it was indexed."""

    def __init__(self, sidecar: Sidecar | None, sealer: IndexSealer) -> None:
        self.problems: list[Degraded] = []
        self._sidecar = sidecar
        self._sealer = sealer

    @abstractmethod
    def notes_version(self) -> int:
        """A number that changes with the notes about turns; -1 where there are none."""

    @abstractmethod
    def noted_since(self, version: int) -> frozenset[str]:
        """Conversations whose notes changed after that version."""

    @abstractmethod
    def differing(self, checkpoints: Mapping[str, Checkpoint], only: str | None) -> list[str]:
        """Conversations, or that one, that are not, or not surely, as they were marked."""

    @abstractmethod
    def change(
        self,
        conversation_id: str,
        checkpoint: Checkpoint | None,
        indexed: Indexed,
        *,
        noted: bool = False,
    ) -> Change | None:
        """What brings the index from `checkpoint` to the conversation now; None for nothing.

        `noted` asks to compare the speakers of turns that are indexed already.
        """

    def _digests(self, turns: Sequence[Turn]) -> list[bytes]:
        return [digest_of(turn, self._sealer.hash_key) for turn in turns]


class FileThreadSource(ThreadSource):
    """Follows the thread files of one store."""

    def __init__(
        self,
        store: ConversationStore,
        sidecar: Sidecar | None,
        wall_ns: Callable[[], int] = time.time_ns,
        sealer: IndexSealer = CLEAR_INDEX,
    ) -> None:
        super().__init__(sidecar, sealer)
        self._store = store
        self._wall_ns = wall_ns
        self._names: dict[str, str | None] = {}
        self._scanned: tuple[int, int, dict[str, Identity]] = (0, 0, {})
        self._remembered: OrderedDict[str, _Remembered] = OrderedDict()

    def notes_version(self) -> int:
        """The sidecar's version, -1 without one."""
        return -1 if self._sidecar is None else self._sidecar.version()

    def noted_since(self, version: int) -> frozenset[str]:
        """Conversations whose notes changed after that version."""
        return frozenset() if self._sidecar is None else self._sidecar.changed_since(version)

    def differing(self, checkpoints: Mapping[str, Checkpoint], only: str | None) -> list[str]:
        """Conversations whose file is not, or not surely, the one that was marked."""
        if only is not None:
            found = self._stat(only)
            return [] if self._trusted(checkpoints.get(only), found) else [only]
        files = self._files()
        differing = [
            key for key, found in files.items() if not self._trusted(checkpoints.get(key), found)
        ]
        return differing + [key for key in checkpoints if key not in files]

    def change(
        self,
        conversation_id: str,
        checkpoint: Checkpoint | None,
        indexed: Indexed,
        *,
        noted: bool = False,
    ) -> Change | None:
        """What brings the index from `checkpoint` to the file now; None for nothing."""
        seen = self._wall_ns()
        try:
            read = self._read(conversation_id)
        except (OSError, StoreError) as error:
            self.problems.append(Degraded("conversations", f"{conversation_id}: {error}"))
            return None
        if read is None:
            gone = Change(conversation_id, checkpoint, 0, (), None)
            return gone if checkpoint is not None else None
        chain = chain_of(read.digests)
        fresh = Checkpoint(read.identity, seen, len(read.digests), chain, title=read.title)
        start = first_difference(checkpoint, read.digests, indexed)
        if noted and checkpoint is not None:
            start = min(start, self._first_new_speaker(conversation_id, checkpoint, read, indexed))
        if start < read.start:
            # Only the end was parsed, and turns before it are wanted.
            self._remembered.pop(conversation_id, None)
            return self.change(conversation_id, checkpoint, indexed, noted=noted)
        if checkpoint is not None and fresh.same_content(checkpoint) and start == checkpoint.count:
            return self._refreshed(conversation_id, checkpoint, fresh)
        names = self._speakers(conversation_id, read, start)
        records = tuple(
            record_of(turn, start + i, names.get(start + i), read.digests[start + i], self._sealer)
            for i, turn in enumerate(read.turns[start - read.start :])
        )
        return Change(conversation_id, checkpoint, start, records, fresh)

    def _refreshed(
        self, conversation_id: str, checkpoint: Checkpoint, now: Checkpoint
    ) -> Change | None:
        """The same content, looked at later: worth a note only if the time stamp is sure now."""
        if self._fresh(checkpoint) and not self._fresh(now):
            now = replace(now, code=checkpoint.code)
            return Change(conversation_id, checkpoint, checkpoint.count, (), now)
        return None

    def _trusted(self, checkpoint: Checkpoint | None, found: Identity | None) -> bool:
        if checkpoint is None or found is None:
            return checkpoint is None and found is None
        return checkpoint.identity == found and not self._fresh(checkpoint)

    @staticmethod
    def _fresh(checkpoint: Checkpoint) -> bool:
        return checkpoint.seen_ns - max(checkpoint.identity[2:]) < RACY_NS

    def _stat(self, conversation_id: str) -> Identity | None:
        try:
            return identity_of(os.stat(self._store.path(conversation_id)))  # noqa: PTH116
        except (OSError, InvalidId, StoreError):
            return None

    def _files(self) -> dict[str, Identity]:
        """Every conversation's file identity, as of now or of a moment ago where that is sure."""
        changed = self._directory_changed()
        now = self._wall_ns()
        was, at, files = self._scanned
        fresh = at - changed < RACY_NS
        if len(files) > _MANY_FILES and was == changed and not fresh and now - at < _BELIEVED_NS:
            return files
        files = self._scan()
        self._scanned = (changed, now, files)
        return files

    def _directory_changed(self) -> int:
        directory = self._store.directory
        if directory is None:
            return 0
        try:
            return directory.stat().st_mtime_ns
        except OSError:
            return 0

    def _scan(self) -> dict[str, Identity]:
        """Every conversation's file identity, by one look at the directory."""
        directory = self._store.directory
        if directory is None:
            return {}
        found: dict[str, Identity] = {}
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    name = entry.name
                    if name.endswith(self._store.suffix):
                        found[name] = identity_of_entry(entry)
        except FileNotFoundError:
            # Nothing was written yet, or a file went while it was looked at: look again below.
            if not directory.is_dir():
                return {}
            return self._scan()
        except OSError as error:
            raise translate(error, "read", directory) from error
        if found.keys() != self._names.keys():
            named = {path.name: key for key, path in self._store.files()}
            self._names = {name: named.get(name) for name in found}
        names = self._names
        return {key: identity for name, identity in found.items() if (key := names[name])}

    def _read(self, conversation_id: str) -> _Read | None:
        try:
            data, identity = self._store.read_file(conversation_id)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except NotAThread as error:
            self._report(conversation_id, error)
            return None
        read = self._read_end(conversation_id, data, identity)
        if read is not None:
            return read
        try:
            document = parse(data)
        except NotAThread as error:
            self._report(conversation_id, error)
            return None
        digests = self._digests(document.turns)
        if document.splice is not None:
            offset = document.splice[0]
            begun = _Remembered(offset, _hashed(data, offset), digests, document.title)
            self._remember(conversation_id, begun)
        return _Read(identity, digests, 0, document.turns, document.title)

    def _report(self, conversation_id: str, error: NotAThread) -> None:
        # The store sets it aside and says so, in its own way.
        self.problems.append(Degraded("conversations", f"{conversation_id}: {error}"))
        self._store.get(conversation_id)

    def _read_end(self, conversation_id: str, data: bytes, identity: Identity) -> _Read | None:
        """Parse only what was added since this file was read last, if that is all that changed."""
        known = self._remembered.get(conversation_id)
        if known is None or len(data) < known.offset:
            return None
        hashed = _hashed(data, known.offset)
        if hashed.digest() != known.hashed.digest():
            return None
        rest = data[known.offset :]
        added = rest.lstrip(b", \t\r\n")
        try:
            document = parse(_OPENING + added)
        except NotAThread:
            return None
        if document.splice is None:
            return None
        digests = known.digests + self._digests(document.turns)
        offset = known.offset + len(rest) - len(added) + document.splice[0] - len(_OPENING)
        hashed.update(memoryview(data)[known.offset : offset])
        # The title stands before the turns.
        self._remember(conversation_id, _Remembered(offset, hashed, digests, known.title))
        return _Read(identity, digests, len(known.digests), document.turns, known.title)

    def _remember(self, conversation_id: str, begun: _Remembered) -> None:
        self._remembered[conversation_id] = begun
        self._remembered.move_to_end(conversation_id)
        while len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)

    def _first_new_speaker(
        self, conversation_id: str, checkpoint: Checkpoint, read: _Read, indexed: Indexed
    ) -> int:
        if read.start:
            thread = self._store.get(conversation_id)
            turns = [] if thread is None else list(thread.turns)
            read = _Read(read.identity, read.digests, 0, turns, read.title)
        names = self._speakers(conversation_id, read, 0)
        old = indexed.speakers(checkpoint)
        changed = (i for i, name in enumerate(old) if names.get(i) != name)
        return next(changed, checkpoint.count)

    def _speakers(self, conversation_id: str, read: _Read, start: int) -> dict[int, str]:
        if self._sidecar is None or start >= len(read.digests):
            return {}
        turns, first = read.turns, read.start
        # A note without its turn is void: the turn was changed, or never came to be written.
        return {
            index: note.speaker
            for index, note in self._sidecar.turn_notes(conversation_id, start).items()
            if note.speaker is not None
            and first <= index < first + len(turns)
            and note.turn_hash
            == stored_turn_hash(turns[index - first].role, turns[index - first].text)
        }


def _hashed(data: bytes, end: int) -> hashlib.blake2b:
    return hashlib.blake2b(memoryview(data)[:end], digest_size=16)


class SqlThreadSource(ThreadSource):
    """Follows the conversations of one `SqlConversationStore`."""

    def __init__(
        self,
        store: SqlConversationStore,
        sidecar: Sidecar | None,
        sealer: IndexSealer = CLEAR_INDEX,
    ) -> None:
        super().__init__(sidecar, sealer)
        self._store = store
        self._states: dict[str, Identity] = {}
        self._seen = -1
        self._just_read: int | None = None
        self._noted_from: dict[str, int] = {}

    def notes_version(self) -> int:
        """The namespace's version, -1 without a sidecar."""
        # Notes and turns share one sequence: `differing` need not ask the server again.
        self._just_read = self._store.version()
        return -1 if self._sidecar is None else self._just_read

    def noted_since(self, version: int) -> frozenset[str]:
        """Conversations whose notes changed after that version."""
        if self._sidecar is None:
            return frozenset()
        places = self._sidecar.places_since(version)
        for key, place in places.items():
            self._noted_from[key] = min(place, self._noted_from.get(key, place))
        return frozenset(places)

    def differing(self, checkpoints: Mapping[str, Checkpoint], only: str | None) -> list[str]:
        """Conversations whose turns are not the ones that were marked."""
        self._read_states()
        states = self._states
        if only is not None:
            return [only] if _differs(checkpoints.get(only), states.get(only)) else []
        changed = [key for key, state in states.items() if _differs(checkpoints.get(key), state)]
        return changed + [key for key in checkpoints if key not in states]

    def change(
        self,
        conversation_id: str,
        checkpoint: Checkpoint | None,
        indexed: Indexed,
        *,
        noted: bool = False,
    ) -> Change | None:
        """What brings the index from `checkpoint` to the conversation now; None for nothing."""
        place = self._noted_from.pop(conversation_id, 0)
        noted_from = place if noted else None
        known = _known(checkpoint, indexed)
        # One turn more than is new: it tells whether those before it are still the same.
        start = max(0, len(known) - 1)
        if noted_from is not None and noted_from < len(known):
            start = 0
        found = self._store.stored(conversation_id, start)
        if found is None:
            return None if checkpoint is None else Change(conversation_id, checkpoint, 0, (), None)
        if found.start and not _continues(found, known, checkpoint):
            found = self._store.stored(conversation_id)
            if found is None:
                return Change(conversation_id, checkpoint, 0, (), None)
        digests = known[: found.start] + self._digests(found.thread.turns)
        first = first_difference(checkpoint, digests, indexed)
        if noted_from is not None and checkpoint is not None:
            first = min(first, _first_new_speaker(found, noted_from, indexed.speakers(checkpoint)))
        identity = found.identity
        fresh = Checkpoint(identity, 0, len(digests), chain_of(digests), title=found.thread.title)
        if checkpoint is not None and fresh.same_content(checkpoint) and first == checkpoint.count:
            return None
        records = tuple(
            record_of(turn, place, turn.speaker, digests[place], self._sealer)
            for place, turn in enumerate(found.thread.turns, found.start)
            if place >= first
        )
        return Change(conversation_id, checkpoint, first, records, fresh)

    def _read_states(self) -> None:
        version, self._just_read = self._just_read, None
        if version is None:
            version = self._store.version()
        if version < self._seen:
            # Truth was put back to an earlier moment (a backup was restored).
            self._states, self._seen = {}, -1
        if version == self._seen:
            return
        for key, state in self._store.changes_since(self._seen).items():
            if state is None:
                self._states.pop(key, None)
            else:
                self._states[key] = state
        self._seen = version


def _differs(checkpoint: Checkpoint | None, state: Identity | None) -> bool:
    return (checkpoint.identity if checkpoint is not None else None) != state


def _known(checkpoint: Checkpoint | None, indexed: Indexed) -> list[bytes]:
    """Digests of the indexed turns, if they are those that were marked."""
    if checkpoint is None:
        return []
    digests = list(indexed.digests(checkpoint))
    return digests if chain_of(digests) == checkpoint.chain else []


def _continues(found: StoredThread, known: Sequence[bytes], checkpoint: Checkpoint | None) -> bool:
    """Whether the turns before those that were read are the ones that were marked."""
    last = len(known) - 1 - found.start
    return (
        checkpoint is not None
        and last < len(found.stamps)
        and found.stamps[last] == checkpoint.identity[0]
    )


def _first_new_speaker(found: StoredThread, start: int, old: Sequence[str | None]) -> int:
    turns: tuple[Turn, ...] = found.thread.turns
    for place, turn in enumerate(turns, found.start):
        if start <= place < len(old) and old[place] != turn.speaker:
            return place
    return len(old)
