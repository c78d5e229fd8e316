"""The store of conversations: turns in, turns out, every word kept.

One JSON file per conversation, byte-compatible with Go's (see docs/decisions/0003-thread-files).
When a write returns it is on the disk; when it fails the file is as it was. Never changes what
it was not asked to change, and never overwrites a file that it cannot read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from anaphora.core.arguments import MOST, checked
from anaphora.errors import StoreError
from anaphora.store.crypto.threads import PLAIN, ThreadForm
from anaphora.store.disk import Identity, translate
from anaphora.store.threads.file import read_bytes
from anaphora.store.threads.folder import ThreadFolder
from anaphora.store.threads.ids import check_id
from anaphora.store.threads.locks import ThreadLocks
from anaphora.store.threads.new_turn import (
    check_number,
    check_title,
    check_turn,
    check_turns,
    is_blank,
)
from anaphora.store.threads.reader import ThreadReader
from anaphora.store.threads.writer import ThreadWriter
from anaphora.values.conversations import NewTurn, Thread, ThreadProblem, ThreadSummary, Turn

if TYPE_CHECKING:
    from anaphora.store.threads.sidecar import Sidecar

DEFAULT_RECENT = 16

_log = logging.getLogger("anaphora")
ResultT = TypeVar("ResultT")


def conversations_dir(override: str | Path | None, root: str | Path | None) -> Path | None:
    """Where conversations lie: the override, else "conversations" beside `root`, else nowhere.

    For programs that share a folder with Neo's daemon, whose `root` is its cortex.
    """
    if override is not None and str(override).strip():
        return Path(override)
    if root is not None and str(root).strip():
        return Path(root).parent / "conversations"
    return None


class ConversationStore:
    """Conversations in one directory; a blank directory gives a store that keeps nothing.

    A bare store logs what the disk refuses, counts it in `failures` and goes on; a `strict` one
    raises StoreError, ReadOnly, DiskFull or CorruptThread. Both raise InvalidId and InvalidTurn.
    `clock` gives the time of turns that come without one; `sidecar` keeps speakers and sources;
    `on_removed` is told the id of a conversation from which words were taken away; `form` says how
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
        blank = directory is None or not str(directory).strip()
        self.directory: Path | None = None if blank else Path(str(directory))
        self._clock = clock or _now
        self._strict = strict
        self._sidecar = sidecar
        self._on_removed = on_removed
        self._failures = 0
        self._counting = Lock()
        self._folder = ThreadFolder(self.directory or Path(), form)
        locks = ThreadLocks(self._folder.directory)
        self._reader = ThreadReader(self._folder, locks, sidecar)
        self._writer = ThreadWriter(self._folder, locks, self._reader, sidecar, strict=strict)

    @property
    def enabled(self) -> bool:
        """Whether there is a directory to keep conversations in."""
        return self.directory is not None

    @property
    def failures(self) -> int:
        """How often the disk refused something that a bare store only logged."""
        return self._failures

    def append(
        self,
        conversation_id: str,
        role: str,
        text: str,
        *,
        intent_id: str = "",
        ts: datetime | None = None,
        speaker: str | None = None,
    ) -> bool:
        """Keep one turn; whether it was kept. A blank text is not.

        Where the thread's file cannot be read it is set aside. A bare store then starts a new
        one; a strict store raises CorruptThread, and its next append starts the new one.
        """
        turn = NewTurn(role, text, intent_id=intent_id, ts=ts, speaker=speaker)
        return len(self.extend(conversation_id, (turn,))) == 1

    def append_user(self, conversation_id: str, text: str) -> bool:
        """Keep what the user said."""
        return self.append(conversation_id, "user", text)

    def append_assistant(self, conversation_id: str, text: str, *, intent_id: str = "") -> bool:
        """Keep what the assistant answered, and the intent that it answered."""
        return self.append(conversation_id, "assistant", text, intent_id=intent_id)

    def extend(self, conversation_id: str, turns: Sequence[NewTurn], *, title: str = "") -> range:
        """Keep several turns in one write, all or none; the places that they got.

        Blank ones are left out. The range is empty when nothing was kept. `title` is that of a
        conversation that begins with them, and nothing to one that is there.
        """
        if not self.enabled:
            return range(0)
        check_id(conversation_id)
        check_title(title)
        news = [turn for turn in check_turns(turns) if not is_blank(turn)]
        notes = self._sidecar is not None
        ready = [check_turn(turn, self._clock, notes=notes) for turn in news]
        if not ready:
            return range(0)
        return self._attempt(
            "append to",
            conversation_id,
            range(0),
            lambda: self._writer.extend(conversation_id, news, ready, title.strip()),
        )

    def recent(self, conversation_id: str, n: int = DEFAULT_RECENT) -> tuple[Turn, ...]:
        """The last `n` turns, oldest first; none when there is no such conversation."""
        thread = self._thread(conversation_id, min(max(0, check_number("n", n)), MOST))
        return thread.turns if thread else ()

    def get(self, conversation_id: str) -> Thread | None:
        """The whole conversation, or None. A strict store raises CorruptThread, once."""
        return self._thread(conversation_id, None)

    def list(self) -> tuple[ThreadSummary, ...]:
        """Every conversation that can be read, newest first; `problems` has the others."""
        return self._look(self._reader.summaries)

    def delete(self, conversation_id: str) -> bool:
        """Remove a conversation, its speakers and what was set aside of it; whether it was there.

        Import identities stay behind as forgotten: importing the chat again does not revive it.
        """
        return self._remove("delete", conversation_id, lambda: self._writer.delete(conversation_id))

    def redact(self, conversation_id: str, index: int) -> bool:
        """Replace the words of a turn by "[redacted]"; whether there is such a turn.

        Role and time stay. A text of eight characters or more is also replaced wherever else it
        stands word for word in this conversation: in other turns, the title, what was set aside.
        """
        check_number("index", index)
        return self._remove(
            "redact", conversation_id, lambda: self._writer.redact(conversation_id, index)
        )

    def set_title(self, conversation_id: str, title: str) -> bool:
        """Give a conversation a title of its own, or take it away with ""; whether it exists."""
        check_title(title)
        return self._change(
            "set the title of",
            conversation_id,
            lambda: self._writer.set_title(conversation_id, title.strip()),
        )

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

    @property
    def suffix(self) -> str:
        """What the names of thread files end in: ".json", or ".json.sealed"."""
        return self._folder.form.suffix

    def read_file(self, conversation_id: str) -> tuple[bytes, Identity]:
        """A conversation's JSON, unparsed, and which bytes its file has: for who follows files.

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

    def _thread(self, conversation_id: str, last: int | None) -> Thread | None:
        if not self.enabled:
            return None
        check_id(conversation_id)
        return self._attempt(
            "read", conversation_id, None, lambda: self._reader.thread(conversation_id, last)
        )

    def _change(self, operation: str, conversation_id: str, change: Callable[[], bool]) -> bool:
        if not self.enabled:
            return False
        check_id(conversation_id)
        return self._attempt(operation, conversation_id, False, change)

    def _remove(self, operation: str, conversation_id: str, change: Callable[[], bool]) -> bool:
        removed = self._change(operation, conversation_id, change)
        if removed and self._on_removed is not None:
            self._on_removed(conversation_id)
        return removed

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


def _now() -> datetime:
    return datetime.now(UTC)
