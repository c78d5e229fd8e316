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

from anaphora.calls.arguments import checked
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
from anaphora.store.threads.conversations import (
    Conversations,
    Replacement,
    said_in,
    summary_of,
)
from anaphora.store.threads.files import Tail, ThreadFile, ThreadFolder
from anaphora.store.threads.forms import PLAIN, ThreadForm
from anaphora.store.threads.gojson import (
    ZERO_TIME,
    NotAThread,
    ThreadDocument,
    encode_turn,
    latest,
    nanoseconds,
    redact_turn,
)
from anaphora.store.threads.ids import check_id
from anaphora.store.threads.sidecar import Sidecar, TurnNote, notes_of
from anaphora.values.conversations import NewTurn, Thread, ThreadProblem, ThreadSummary, Turn

_log = logging.getLogger("anaphora")
ResultT = TypeVar("ResultT")
# A tail is some hundred bytes; few processes write more threads than this.
_TAILS = 1024
# Another program may replace a file between our read and our write; each try takes an fsync.
_TRIES = 50


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
        self._enabled, self._suffix = not blank, form.suffix
        self._folder = ThreadFolder(self._directory or Path(), form)
        self._strict = strict
        self._mutex = Lock()
        self._swept = False
        self._tails: OrderedDict[str, Tail] = OrderedDict()
        self._summaries: dict[str, tuple[Identity, int, ThreadSummary]] = {}
        self._stuck: dict[Path, ThreadProblem] = {}

    def list(self) -> tuple[ThreadSummary, ...]:
        """Every conversation that can be read, newest first; `problems` has the others."""
        return self._look(self._list_summaries)

    def problems(self) -> tuple[ThreadProblem, ...]:
        """Files that could not be read: set aside, or in their place where that failed too."""
        return self._look(
            lambda: (
                *(problem for path, problem in self._stuck.items() if path.exists()),
                *self._folder.problems(),
            )
        )

    def path(self, conversation_id: str) -> Path:
        """The file of a conversation, whether or not it exists. Raises InvalidId.

        StoreError in a store without a directory.
        """
        if not self.enabled:
            raise StoreError("find", conversation_id, "this store has no directory")
        return self._folder.file(check_id(conversation_id)).path

    def read_file(self, conversation_id: str) -> tuple[bytes, Identity]:
        """A conversation's JSON, unparsed, and the identity of its file.

        Raises InvalidId, OSError (FileNotFoundError where there is none), NotAThread for a sealed
        file that was changed or cut, and EncryptionError.
        """
        self._folder.form.check()
        decoded_thread, identity = self._folder.file(check_id(conversation_id)).read()
        return decoded_thread.data, identity

    def files(self) -> Iterator[tuple[str, Path]]:
        """Every conversation's id and file, in no particular order."""
        thread_files = self._look(lambda: tuple(self._folder.files()))
        return ((file.conversation_id, file.path) for file in thread_files)

    def _look(self, look: Callable[[], tuple[ResultT, ...]]) -> tuple[ResultT, ...]:
        directory = self.directory
        if directory is None:
            return ()
        return self._attempt("list", "", (), lambda: look() if directory.is_dir() else ())

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
            path = self._folder.directory
            if conversation_id:
                path /= self._folder.form.file_name(conversation_id)
            failure = translate(error, operation, path)
            if self._strict:
                raise failure from error
        except StoreError as error:
            if self._strict:
                raise
            failure = error
        with self._mutex:
            self._failures += 1
        _log.error("%s", failure)
        return otherwise

    # Reading.

    def _stands(self, conversation_id: str) -> bool:
        return self._folder.holds(conversation_id)

    def _thread(self, conversation_id: str, last: int | None) -> Thread | None:
        document = self._document(self._folder.file(conversation_id))
        if document is None:
            return None
        start = 0 if last is None else max(0, len(document.turns) - last)
        turns: Sequence[Turn] = document.turns[start:]
        if self._sidecar is not None:
            notes = self._sidecar.turn_notes(conversation_id, start)
            turns = [_with_note(turn, notes.get(index)) for index, turn in enumerate(turns, start)]
        return document.thread(conversation_id, turns)

    def _list_summaries(self) -> tuple[ThreadSummary, ...]:
        new_summaries: dict[str, tuple[Identity, int, ThreadSummary]] = {}
        for file in self._folder.files():
            try:
                cached_summary = self._summary(file)
            except CorruptThread:
                continue
            except OSError as error:
                # One file that cannot be opened must not hide the others.
                self._keep_problem(file, error.strerror or str(error))
                continue
            if cached_summary is not None:
                new_summaries[file.conversation_id] = cached_summary
        self._summaries = new_summaries
        ordered_summaries = sorted(
            new_summaries.values(), key=lambda f: (-f[1], f[2].conversation_id)
        )
        return tuple(summary for _, _, summary in ordered_summaries)

    def _document(self, file: ThreadFile) -> ThreadDocument | None:
        try:
            return self._read_document(file)
        except NotAThread as error:
            reason = str(error)
        try:
            with self._folder.locks.hold(file.key):
                # Another process may have set it aside meanwhile, or put a good one in its place.
                try:
                    return self._read_document(file)
                except NotAThread as error:
                    raise self._set_aside(file, str(error)) from error
        except OSError as error:
            why = f"{reason}; it could not be moved to .corrupt: {error.strerror or error}"
            self._keep_problem(file, why)
            raise CorruptThread(file.path, why) from error

    def _read_document(self, file: ThreadFile) -> ThreadDocument | None:
        try:
            document, _ = file.document()
        except FileNotFoundError:
            # It may be gone because the home was sealed a moment ago.
            file.form.check()
            return None
        self._stuck.pop(file.path, None)
        return document

    def _summary(self, file: ThreadFile) -> tuple[Identity, int, ThreadSummary] | None:
        cached_summary = self._summaries.get(file.conversation_id)
        try:
            identity = identity_of(file.path.stat())
        except FileNotFoundError:
            return None
        if cached_summary is not None and cached_summary[0] == identity:
            return cached_summary
        document = self._document(file)
        if document is None:
            return None
        # The identity is older than the bytes, never newer: at worst it is read once more.
        return identity, nanoseconds(document.updated), summary_of(file.conversation_id, document)

    def _set_aside(self, file: ThreadFile, reason: str) -> CorruptThread:
        """Move an unreadable file out of the way; the error that says so.

        The caller holds the lock of the thread. Where the file cannot be moved it stays.
        """
        try:
            moved_to = self._folder.set_aside(file.path)
        except OSError as error:
            why = f"{reason}; it could not be moved to .corrupt: {error.strerror or error}"
            self._keep_problem(file, why)
            return CorruptThread(file.path, why)
        corrupt = CorruptThread(file.path, reason, moved_to)
        _log.warning("%s", corrupt)
        return corrupt

    def _keep_problem(self, file: ThreadFile, reason: str) -> None:
        if file.path not in self._stuck:
            _log.warning("cannot read %s: %s", file.path, reason)
        self._stuck[file.path] = ThreadProblem(file.conversation_id, str(file.path), reason)

    # Writing.

    def _extend(
        self, conversation_id: str, news: Sequence[NewTurn], turns: Sequence[Turn], title: str
    ) -> range:
        def add() -> range:
            file = self._folder.settle(conversation_id)
            tail = self._tail(file)
            if self._sidecar is not None:
                # First: a note without its turn is seen to be void by its hash.
                self._sidecar.note_turns(notes_of(conversation_id, tail.count, news, turns))
            if tail.identity == NO_FILE and tail.document is not None:
                tail.document.title = title
            start = tail.count
            tail = file.append(tail, turns)
            if tail.identity == NO_FILE:
                # Another program wrote at this moment: both are joined, our turns where they are.
                self._folder.settle(conversation_id)
            else:
                self._remember(conversation_id, tail)
            return range(start, start + len(turns))

        with self._writing(conversation_id):
            return _until_unchanged(add)

    def _delete(self, conversation_id: str) -> bool:
        if not self._folder.directory.is_dir():
            return False
        with self._writing(conversation_id):
            # First: on a disk that confuses two ids the other one's file is not this one's.
            file = self._folder.settle(conversation_id)
            if self._sidecar is not None and file.path.exists():
                self._sidecar.note_deletion(conversation_id)
            self._forget(conversation_id, None)
            return self._folder.remove(conversation_id)

    def _replace_turns(self, conversation_id: str, new: Replacement) -> bool:
        def attempt() -> bool:
            file = self._folder.settle(conversation_id)
            try:
                document, identity = file.document()
            except FileNotFoundError:
                document, identity = ThreadDocument(conversation_id), NO_FILE
            except NotAThread as error:
                raise self._set_aside(file, str(error)) from error
            if said_in(document.turns) != said_in(new.before):
                return False
            if self._sidecar is not None:
                # First: a note without its turn is seen to be void by its hash.
                self._sidecar.replace_notes(conversation_id, new.notes)
            if not new.turns:
                self._folder.remove(conversation_id)
                return True
            document.turns, document.title = list(new.turns), new.title
            document.raw_turns = [encode_turn(turn) for turn in new.turns]
            document.updated = latest(ZERO_TIME, new.turns)
            self._remember(conversation_id, file.rewrite(document, identity))
            return True

        with self._writing(conversation_id):
            if not _until_unchanged(attempt):
                return False
            if new.lost:
                self._folder.remove_temporaries(conversation_id)
            for text in new.lost:
                self._folder.scrub(conversation_id, text)
            return True

    def _set_title(self, conversation_id: str, title: str) -> bool:
        def change(document: ThreadDocument) -> bool:
            document.title = title
            return True

        with self._writing(conversation_id):
            return self._rewrite(conversation_id, change)

    def _redact(self, conversation_id: str, index: int) -> bool:
        words: list[str] = []

        def change(document: ThreadDocument) -> bool:
            if not 0 <= index < len(document.turns):
                return False
            words[:] = [document.turns[index].text]
            for position in redact_turn(document, index):
                self._forget(conversation_id, position)
            return True

        with self._writing(conversation_id):
            if not self._rewrite(conversation_id, change):
                return False
            self._folder.remove_temporaries(conversation_id)
            self._folder.scrub(conversation_id, words[0])
            return True

    @contextmanager
    def _writing(self, conversation_id: str) -> Iterator[None]:
        folder = self._folder
        make_directory(folder.directory)
        if not self._swept:
            self._swept = True
            folder.sweep()
        with folder.locks.hold(folder.key(conversation_id)):
            # Under the lock: a conversion writes the marker, then waits for this lock.
            folder.form.check()
            yield

    def _rewrite(self, conversation_id: str, change: Callable[[ThreadDocument], bool]) -> bool:
        """Write the thread as `change` makes it, if there is one; whether it changed."""

        def attempt() -> bool:
            file = self._folder.settle(conversation_id)
            try:
                document, identity = file.document()
            except FileNotFoundError:
                return False
            except NotAThread as error:
                raise self._set_aside(file, str(error)) from error
            if not change(document):
                return False
            self._remember(conversation_id, file.rewrite(document, identity))
            return True

        return _until_unchanged(attempt)

    def _tail(self, file: ThreadFile) -> Tail:
        """The end of the file, read from it unless this process left it that way."""
        with self._mutex:
            # After a write that fails it must not be found again.
            tail = self._tails.pop(file.conversation_id, None)
        if tail is not None and tail.identity == identity_at(file.path):
            return tail
        try:
            return file.tail()
        except NotAThread as error:
            corrupt = self._set_aside(file, str(error))
            if self._strict or corrupt.set_aside is None:
                raise corrupt from error
        return file.tail()

    def _remember(self, conversation_id: str, tail: Tail) -> None:
        with self._mutex:
            self._tails[conversation_id] = tail
            while len(self._tails) > _TAILS:
                self._tails.popitem(last=False)

    def _forget(self, conversation_id: str, index: int | None) -> None:
        if self._sidecar is not None:
            self._sidecar.forget(conversation_id, index)


def _with_note(turn: Turn, note: TurnNote | None) -> Turn:
    """The turn with its note; a note with the hash of another turn is void."""
    if note is None or note.forgotten or note.turn_hash != stored_turn_hash(turn.role, turn.text):
        return turn
    return replace(turn, speaker=note.speaker, source=note.source)


def _until_unchanged(action: Callable[[], ResultT]) -> ResultT:
    """Do it again where another program, which knows no lock, came in between."""
    for _ in range(_TRIES - 1):
        try:
            return action()
        except FileChanged:
            continue
    return action()
