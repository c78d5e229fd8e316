"""The store of conversations in files, one JSON file each, byte-compatible with Go's.

When a write returns it is on the disk; when it fails the file is as it was. Reading takes no lock:
a file is replaced in one step. A file that Go would refuse is set aside, never overwritten. See
docs/decisions/0003-thread-files.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import TypeVar

from anaphora.core.arguments import checked
from anaphora.errors import CorruptThread, StoreError
from anaphora.store.disk import (
    NO_FILE,
    FileChanged,
    Identity,
    identity_at,
    identity_of,
    make_directory,
    translate,
)
from anaphora.store.hashing import stored_turn_hash
from anaphora.store.threads.conversations import Conversations, summary_of
from anaphora.store.threads.files import (
    Tail,
    ThreadFolder,
    ThreadLocks,
    append_turns,
    read_bytes,
    read_document,
    read_tail,
    rewrite,
)
from anaphora.store.threads.forms import PLAIN, ThreadForm
from anaphora.store.threads.gojson import (
    Document,
    NotAThread,
    nanoseconds,
    read_time,
    redact_turn,
)
from anaphora.store.threads.ids import check_id
from anaphora.store.threads.sidecar import Sidecar, TurnNote, notes_of
from anaphora.values.conversations import NewTurn, Thread, ThreadProblem, ThreadSummary, Turn

_log = logging.getLogger("anaphora")


class ThreadReader:
    """Reads the threads of one folder."""

    def __init__(self, folder: ThreadFolder, locks: ThreadLocks, sidecar: Sidecar | None) -> None:
        self._folder = folder
        self._locks = locks
        self._sidecar = sidecar
        self._summaries: dict[str, tuple[Identity, int, ThreadSummary]] = {}
        self._stuck: dict[Path, ThreadProblem] = {}

    def thread(self, conversation_id: str, last: int | None = None) -> Thread | None:
        """The conversation, or its `last` turns. Raises OSError, CorruptThread, StoreError."""
        document = self._document(conversation_id, self._folder.path(conversation_id))
        if document is None:
            return None
        start = 0 if last is None else max(0, len(document.turns) - last)
        return Thread(
            conversation_id=conversation_id,
            turns=self._with_notes(conversation_id, start, document.turns[start:]),
            updated=read_time(document.updated),
            updated_text=document.updated,
            title=document.title,
        )

    def summaries(self) -> tuple[ThreadSummary, ...]:
        """Every thread that can be read, newest first. Raises OSError if the folder cannot be."""
        fresh: dict[str, tuple[Identity, int, ThreadSummary]] = {}
        for conversation_id, path in self._folder.files():
            try:
                found = self._summary(conversation_id, path)
            except CorruptThread:
                continue
            except OSError as error:
                # One file that cannot be opened must not hide the others.
                self._keep_problem(conversation_id, path, error.strerror or str(error))
                continue
            if found is not None:
                fresh[conversation_id] = found
        self._summaries = fresh
        ordered = sorted(fresh.values(), key=lambda f: (-f[1], f[2].conversation_id))
        return tuple(summary for _, _, summary in ordered)

    def problems(self) -> tuple[ThreadProblem, ...]:
        """What could not be read: still in its place, or set aside. Raises OSError."""
        stuck = [problem for path, problem in self._stuck.items() if path.exists()]
        return (*stuck, *self._folder.problems())

    def set_aside(self, conversation_id: str, path: Path, reason: str) -> CorruptThread:
        """Move an unreadable file out of the way; the error that says so.

        The caller holds the lock of the thread. Where the file cannot be moved it stays.
        """
        try:
            place = self._folder.set_aside(path)
        except OSError as error:
            why = f"{reason}; it could not be set aside: {error.strerror or error}"
            self._keep_problem(conversation_id, path, why)
            return CorruptThread(path, why)
        corrupt = CorruptThread(path, reason, place)
        _log.warning("%s", corrupt)
        return corrupt

    def _document(self, conversation_id: str, path: Path) -> Document | None:
        try:
            return self._read(conversation_id, path)
        except NotAThread as error:
            reason = str(error)
        try:
            with self._locks.hold(self._folder.key(conversation_id)):
                # Whoever held the lock may have set it aside, or put a good one in its place.
                try:
                    return self._read(conversation_id, path)
                except NotAThread as error:
                    raise self.set_aside(conversation_id, path, str(error)) from error
        except OSError as error:
            why = f"{reason}; it could not be set aside: {error.strerror or error}"
            self._keep_problem(conversation_id, path, why)
            raise CorruptThread(path, why) from error

    def _read(self, conversation_id: str, path: Path) -> Document | None:
        try:
            document, _opened, _identity = read_document(path, conversation_id, self._folder.form)
        except FileNotFoundError:
            # It may be gone because the home was sealed a moment ago.
            self._folder.form.check()
            return None
        self._stuck.pop(path, None)
        return document

    def _summary(
        self, conversation_id: str, path: Path
    ) -> tuple[Identity, int, ThreadSummary] | None:
        known = self._summaries.get(conversation_id)
        try:
            identity = identity_of(path.stat())
        except FileNotFoundError:
            return None
        if known is not None and known[0] == identity:
            return known
        document = self._document(conversation_id, path)
        if document is None:
            return None
        # The identity is older than the bytes, never newer: at worst it is read once more.
        return identity, nanoseconds(document.updated), summary_of(conversation_id, document)

    def _with_notes(
        self, conversation_id: str, start: int, turns: Sequence[Turn]
    ) -> tuple[Turn, ...]:
        if self._sidecar is None:
            return tuple(turns)
        notes = self._sidecar.turn_notes(conversation_id, start)
        return tuple(_with_note(turn, notes.get(start + i)) for i, turn in enumerate(turns))

    def _keep_problem(self, conversation_id: str, path: Path, reason: str) -> None:
        if path not in self._stuck:
            _log.warning("cannot read %s: %s", path, reason)
        self._stuck[path] = ThreadProblem(conversation_id, str(path), reason)


def _with_note(turn: Turn, note: TurnNote | None) -> Turn:
    """A note whose hash is another turn's is void: its own turn is not here."""
    if note is None or note.forgotten or note.turn_hash != stored_turn_hash(turn.role, turn.text):
        return turn
    return replace(turn, speaker=note.speaker, source=note.source)


ResultT = TypeVar("ResultT")
# A tail is some hundred bytes; few processes write more threads than this.
_TAILS = 1024
# Another program may replace a file between our read and our write, but hardly ever again.
_TRIES = 5


class ThreadWriter:
    """Writes the threads of one folder. `strict`: an unreadable file ends an append."""

    def __init__(
        self,
        folder: ThreadFolder,
        locks: ThreadLocks,
        reader: ThreadReader,
        sidecar: Sidecar | None,
        *,
        strict: bool,
    ) -> None:
        self._folder = folder
        self._locks = locks
        self._reader = reader
        self._sidecar = sidecar
        self._strict = strict
        self._swept = False
        self._mutex = Lock()
        self._tails: OrderedDict[str, Tail] = OrderedDict()

    def extend(
        self,
        conversation_id: str,
        news: Sequence[NewTurn],
        turns: Sequence[Turn],
        title: str = "",
    ) -> range:
        """Add `turns`, made from `news`, in one write; the places that they got.

        A thread that begins with them gets the title.
        """

        def add() -> range:
            path = self._folder.path(conversation_id)
            tail = self._tail(conversation_id, path)
            self._note(conversation_id, tail.count, news, turns)
            if tail.identity == NO_FILE and tail.document is not None:
                tail.document.title = title
            tail = append_turns(path, conversation_id, tail, turns, self._folder.form)
            self._remember(conversation_id, tail)
            return range(tail.count - len(turns), tail.count)

        with self._writing(conversation_id):
            return _until_unchanged(add)

    def delete(self, conversation_id: str) -> bool:
        """Remove the thread and what was set aside of it; whether there was anything."""
        if not self._folder.directory.is_dir():
            return False
        with self._writing(conversation_id):
            self._forget(conversation_id, None)
            return self._folder.remove(conversation_id)

    def set_title(self, conversation_id: str, title: str) -> bool:
        """Give the thread this title; whether there is such a thread."""

        def change(document: Document) -> bool:
            document.title = title
            return True

        with self._writing(conversation_id):
            return _until_unchanged(lambda: self._change(conversation_id, change))

    def redact(self, conversation_id: str, index: int) -> bool:
        """Redact the turn at `index`; whether there is such a turn."""
        words: list[str] = []

        def change(document: Document) -> bool:
            if not 0 <= index < len(document.turns):
                return False
            words[:] = [document.turns[index].text]
            for place in redact_turn(document, index):
                self._forget(conversation_id, place)
            return True

        with self._writing(conversation_id):
            if not _until_unchanged(lambda: self._change(conversation_id, change)):
                return False
            self._folder.remove_temporaries(conversation_id)
            self._folder.scrub(conversation_id, words[0])
            return True

    @contextmanager
    def _writing(self, conversation_id: str) -> Iterator[None]:
        make_directory(self._folder.directory)
        if not self._swept:
            self._swept = True
            self._folder.sweep(self._locks)
        with self._locks.hold(self._folder.key(conversation_id)):
            # Under the lock: a conversion writes the marker, then waits for this lock.
            self._folder.form.check()
            yield

    def _change(self, conversation_id: str, change: Callable[[Document], bool]) -> bool:
        path = self._folder.path(conversation_id)
        try:
            document, _opened, identity = read_document(path, conversation_id, self._folder.form)
        except FileNotFoundError:
            return False
        except NotAThread as error:
            raise self._reader.set_aside(conversation_id, path, str(error)) from error
        if not change(document):
            return False
        form = self._folder.form
        self._remember(conversation_id, rewrite(path, conversation_id, document, identity, form))
        return True

    def _tail(self, conversation_id: str, path: Path) -> Tail:
        """The end of the file, read from it unless this process left it that way."""
        with self._mutex:
            # Whoever fails to write with it must not find it again.
            known = self._tails.pop(conversation_id, None)
        if known is not None and known.identity == identity_at(path):
            return known
        try:
            return read_tail(path, conversation_id, self._folder.form)
        except NotAThread as error:
            corrupt = self._reader.set_aside(conversation_id, path, str(error))
            if self._strict or corrupt.set_aside is None:
                raise corrupt from error
        return read_tail(path, conversation_id, self._folder.form)

    def _remember(self, conversation_id: str, tail: Tail) -> None:
        with self._mutex:
            self._tails[conversation_id] = tail
            while len(self._tails) > _TAILS:
                self._tails.popitem(last=False)

    def _note(
        self,
        conversation_id: str,
        start: int,
        news: Sequence[NewTurn],
        turns: Sequence[Turn],
    ) -> None:
        """Tell the sidecar first: a note whose turn never came is seen to be void by its hash."""
        if self._sidecar is None:
            return
        notes = notes_of(conversation_id, start, news, turns)
        if notes:
            self._sidecar.note_turns(notes)

    def _forget(self, conversation_id: str, index: int | None) -> None:
        if self._sidecar is not None:
            self._sidecar.forget(conversation_id, index)


def _until_unchanged(action: Callable[[], ResultT]) -> ResultT:
    """Do it again where another program, which knows no lock, came in between."""
    for _ in range(_TRIES - 1):
        try:
            return action()
        except FileChanged:
            continue
    return action()


def conversations_dir(override: str | Path | None, root: str | Path | None) -> Path | None:
    """Where conversations lie: the override, else "conversations" beside `root`, else nowhere.

    For programs that share a folder with Neo's daemon, whose `root` is its cortex.
    """
    if override is not None and str(override).strip():
        return Path(override)
    if root is not None and str(root).strip():
        return Path(root).parent / "conversations"
    return None


class ConversationStore(Conversations):
    """Conversations in one directory; a blank directory gives a store that keeps nothing.

    A bare store logs what the disk refuses, counts it in `failures` and goes on; a `strict` one
    raises StoreError, ReadOnly, DiskFull or CorruptThread. Both raise InvalidId and InvalidTurn.
    `clock` gives the time of turns that come without one; `sidecar` keeps speakers and sources;
    `on_removed` is called with the id of a conversation that lost words; `form` says how
    files are named and written (those of a sealed home are encrypted: EncryptionError and its
    kinds are raised by both stores).
    Any number of threads and processes may use the same directory.
    """

    @checked
    def __init__(
        self,
        directory: Path | str | None,
        *,
        clock: Callable[[], datetime] | None = None,
        strict: bool = False,
        sidecar: Sidecar | None = None,
        on_removed: Callable[[str], object] | None = None,
        form: ThreadForm = PLAIN,
    ) -> None:
        super().__init__(clock, sidecar, on_removed)
        blank = directory is None or not str(directory).strip()
        self._directory = None if blank else Path(str(directory))
        self._strict = strict
        self._failures = 0
        self._counting = Lock()
        self._folder = ThreadFolder(self._directory or Path(), form)
        locks = ThreadLocks(self._folder.directory)
        self._reader = ThreadReader(self._folder, locks, sidecar)
        self._writer = ThreadWriter(self._folder, locks, self._reader, sidecar, strict=strict)

    @property
    def directory(self) -> Path | None:
        """The folder of the thread files; None where there are none."""
        return self._directory

    @property
    def enabled(self) -> bool:
        """Whether there is a directory to keep conversations in."""
        return self._directory is not None

    @property
    def failures(self) -> int:
        """How often the disk refused something that a bare store only logged."""
        return self._failures

    @property
    def suffix(self) -> str:
        """What the names of thread files end in: ".json", or ".json.sealed"."""
        return self._folder.form.suffix

    def list(self) -> tuple[ThreadSummary, ...]:
        """Every conversation that can be read, newest first; `problems` has the others."""
        return self._look(self._reader.summaries)

    def problems(self) -> tuple[ThreadProblem, ...]:
        """Files that could not be read: set aside, or in their place where that failed too."""
        return self._look(self._reader.problems)

    def path(self, conversation_id: str) -> Path:
        """The file of a conversation, whether or not it exists. Raises InvalidId.

        StoreError in a store without a directory.
        """
        if not self.enabled:
            raise StoreError("find", conversation_id, "this store has no directory")
        return self._folder.path(check_id(conversation_id))

    def read_file(self, conversation_id: str) -> tuple[bytes, Identity]:
        """A conversation's JSON, unparsed, and the identity of its file.

        Raises InvalidId, OSError (FileNotFoundError where there is none), NotAThread for a sealed
        file that was changed or cut, and EncryptionError.
        """
        self._folder.form.check()
        path = self._folder.path(check_id(conversation_id))
        opened, identity = read_bytes(path, conversation_id, self._folder.form)
        return opened.data, identity

    def files(self) -> Iterator[tuple[str, Path]]:
        """Every conversation's id and file, in no particular order."""
        return iter(self._look(lambda: tuple(self._folder.files())))

    def _extend(
        self, conversation_id: str, news: Sequence[NewTurn], turns: Sequence[Turn], title: str
    ) -> range:
        return self._attempt(
            "append to",
            conversation_id,
            range(0),
            lambda: self._writer.extend(conversation_id, news, turns, title),
        )

    def _thread(self, conversation_id: str, last: int | None) -> Thread | None:
        return self._attempt(
            "read", conversation_id, None, lambda: self._reader.thread(conversation_id, last)
        )

    def _delete(self, conversation_id: str) -> bool:
        return self._attempt(
            "delete", conversation_id, False, lambda: self._writer.delete(conversation_id)
        )

    def _redact(self, conversation_id: str, index: int) -> bool:
        return self._attempt(
            "redact", conversation_id, False, lambda: self._writer.redact(conversation_id, index)
        )

    def _set_title(self, conversation_id: str, title: str) -> bool:
        return self._attempt(
            "set the title of",
            conversation_id,
            False,
            lambda: self._writer.set_title(conversation_id, title),
        )

    def _look(self, look: Callable[[], tuple[ResultT, ...]]) -> tuple[ResultT, ...]:
        place = self.directory
        if place is None:
            return ()
        return self._attempt("list", "", (), lambda: look() if place.is_dir() else ())

    def _attempt(
        self,
        operation: str,
        conversation_id: str,
        otherwise: ResultT,
        action: Callable[[], ResultT],
    ) -> ResultT:
        """Do it; on failure raise in our words, or log, count and return `otherwise`."""
        failure: StoreError
        try:
            self._folder.form.check()
            return action()
        except OSError as error:
            place = self._folder.directory
            if conversation_id:
                place /= self._folder.form.file_name(conversation_id)
            failure = translate(error, operation, place)
            if self._strict:
                raise failure from error
        except StoreError as error:
            if self._strict:
                raise
            failure = error
        with self._counting:
            self._failures += 1
        _log.error("%s", failure)
        return otherwise
