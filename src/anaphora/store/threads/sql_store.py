"""The store of conversations in the database of a home: what `ConversationStore` is for files.

In: turns. Out: turns, every word kept, to the nanosecond. A write is one transaction, numbered in
its namespace's sequence, the notes of speakers and sources with it; when it returns, the database
has it for good. Any number of threads, processes and servers may use one database. It keeps no
file; `thread_bytes` gives a conversation as the bytes of the file that Go would write.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.core.arguments import MOST
from anaphora.errors import InvalidId, StoreError
from anaphora.store.crypto.columns import CLEAR, Sealer
from anaphora.store.disk import Identity, translate
from anaphora.store.threads.conversations import DEFAULT_RECENT
from anaphora.store.threads.file import latest
from anaphora.store.threads.gojson import Document, encode, encode_turn
from anaphora.store.threads.gotime import ZERO_TIME
from anaphora.store.threads.ids import check_id, file_name
from anaphora.store.threads.new_turn import (
    check_number,
    check_title,
    check_turn,
    check_turns,
    is_blank,
)
from anaphora.store.threads.sidecar import notes_of
from anaphora.store.threads.sql_reader import SqlThreadReader, StoredThread
from anaphora.store.threads.writer import redact_turn
from anaphora.values.conversations import NewTurn, Thread, ThreadProblem, ThreadSummary, Turn

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database, Write
    from anaphora.store.db.thread_rows import ThreadHead
    from anaphora.store.threads.sidecar import Sidecar

# PostgreSQL refuses index entries above 2.7 kB, and a sealed id is a third longer.
_MAX_ID_BYTES = 1_024
_SUFFIX = ".json"

_log = logging.getLogger("anaphora")


class SqlConversationStore:
    """Conversations of one namespace in one database. Always strict: what is not kept raises.

    The methods are those of `ConversationStore` and raise what its strict form raises: InvalidId
    (also for an id of more than 1,024 bytes in UTF-8), InvalidTurn, StoreError and its kinds,
    EncryptionError and its kinds. `clock` gives the time of turns that come without one; `sidecar`
    keeps speakers and sources and must be of the same truth and namespace; `on_removed` is told
    the id of a conversation from which words were taken away; `sealer` encrypts the rows of a
    sealed home; `random` gives the stamps that tell two states of a conversation apart.
    """

    directory: Path | None = None
    enabled = True
    failures = 0
    suffix = _SUFFIX

    def __init__(
        self,
        truth: Database,
        namespace: str,
        *,
        clock: Callable[[], datetime] | None = None,
        sidecar: Sidecar | None = None,
        on_removed: Callable[[str], object] | None = None,
        sealer: Sealer = CLEAR,
        random: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.namespace = namespace
        self._truth = truth
        self._clock = clock or _now
        self._sidecar = sidecar
        self._on_removed = on_removed
        self._sealer = sealer
        self._random = random
        self._reader = SqlThreadReader(truth, namespace, sealer, notes=sidecar is not None)

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
        """Keep one turn; whether it was kept. A blank text is not."""
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
        _checked(conversation_id)
        check_title(title)
        news = [turn for turn in check_turns(turns) if not is_blank(turn)]
        ready = [check_turn(turn, self._clock, notes=self._sidecar is not None) for turn in news]
        if not ready:
            return range(0)
        with self._write() as write:
            head = self._head(write, conversation_id)
            start = head.turn_count if head is not None else 0
            if head is None and title.strip():
                from anaphora.store.db.thread_rows import ThreadHead

                head = ThreadHead(0, None, title.strip(), ZERO_TIME, 0)
            self._add(write, conversation_id, head, ready)
            if self._sidecar is not None:
                notes = notes_of(conversation_id, start, news, ready)
                self._sidecar.note_turns_within(write, notes)
        return range(start, start + len(ready))

    def add_exact(
        self,
        conversation_id: str,
        turns: Sequence[Turn],
        at: int,
        *,
        title: str = "",
        updated_text: str = ZERO_TIME,
    ) -> bool:
        """Keep turns to the letter, blank ones too, if the conversation has `at` turns now.

        For an import of thread files: times keep nanoseconds and offset. Speakers are not kept;
        `title` and `updated_text` are those of a conversation that begins here. False where the
        conversation has another number of turns: nothing was written.
        """
        _checked(conversation_id)
        from anaphora.store.db.thread_rows import ThreadHead

        with self._write() as write:
            head = self._head(write, conversation_id)
            if (head.turn_count if head is not None else 0) != at:
                return False
            if head is None:
                head = ThreadHead(0, None, title, updated_text, 0)
            self._add(write, conversation_id, head, turns)
            return True

    def recent(self, conversation_id: str, n: int = DEFAULT_RECENT) -> tuple[Turn, ...]:
        """The last `n` turns, oldest first; none when there is no such conversation."""
        found = self._reader.last(
            _checked(conversation_id), min(max(0, check_number("n", n)), MOST)
        )
        return found.thread.turns if found else ()

    def get(self, conversation_id: str) -> Thread | None:
        """The whole conversation, or None."""
        found = self._reader.thread(_checked(conversation_id))
        return found.thread if found else None

    def list(self) -> tuple[ThreadSummary, ...]:
        """Every conversation, newest first."""
        return self._reader.summaries()

    def delete(self, conversation_id: str) -> bool:
        """Remove a conversation and its speakers; whether it was there.

        Import identities stay behind as forgotten: importing the chat again does not revive it.
        """
        _checked(conversation_id)
        from anaphora.store.db import thread_rows as table

        with self._write() as write:
            head = self._head(write, conversation_id)
            self._forget(write, conversation_id, None)
            if head is not None:
                table.drop_turns(write, self._sealer, conversation_id)
                gone = table.ThreadHead(0, None, "", ZERO_TIME, self._stamp(), deleted=True)
                table.put_head(write, self._sealer, conversation_id, gone)
        return self._removed(conversation_id, head is not None)

    def redact(self, conversation_id: str, index: int) -> bool:
        """Replace the words of a turn by "[redacted]"; whether there is such a turn.

        Role and time stay. A text of eight characters or more is also replaced wherever else it
        stands word for word in this conversation: in other turns, and in the title.
        """
        _checked(conversation_id)
        check_number("index", index)
        from anaphora.store.db import thread_rows as table

        with self._write() as write:
            head = self._head(write, conversation_id)
            there = head is not None and 0 <= index < head.turn_count
            if head is not None and there:
                turns = table.turns_of(write, self._sealer, conversation_id)
                document = Document(conversation_id, head.title, turns)
                document.raw_turns = [encode_turn(turn) for turn in turns]
                places = redact_turn(document, index)
                for place in places:
                    self._forget(write, conversation_id, place)
                stamp = self._stamp()
                changed = [(place, document.turns[place]) for place in places]
                table.change_turns(write, self._sealer, conversation_id, changed, stamp)
                head = replace(head, title=document.title, stamp=stamp)
                table.put_head(write, self._sealer, conversation_id, head)
        return self._removed(conversation_id, there)

    def set_title(self, conversation_id: str, title: str) -> bool:
        """Give a conversation a title of its own, or take it away with ""; whether it exists."""
        check_title(title)
        _checked(conversation_id)
        from anaphora.store.db.thread_rows import put_head

        with self._write() as write:
            head = self._head(write, conversation_id)
            if head is None:
                return False
            put_head(write, self._sealer, conversation_id, replace(head, title=title.strip()))
            return True

    def problems(self) -> tuple[ThreadProblem, ...]:
        """Turns whose times make no sense: they are read as never set. Looks at every turn."""
        reason = "its time makes no sense and is read as never set; doctor --repair mends it"
        return tuple(
            ThreadProblem(key, f"{self._truth.location}, turn {place}", reason)
            for key, places in self._reader.misdated().items()
            for place in places
        )

    def mend_times(self) -> int:
        """Set times of turns that make no sense to the one that was never set; how many."""
        from anaphora.store.db import thread_rows as table

        done = 0
        for key, places in self._reader.misdated().items():
            with self._write() as write:
                head = self._head(write, key)
                # Reading has put the time in order already.
                turns = table.turns_of(write, self._sealer, key)
                changed = [(place, turns[place]) for place in places if place < len(turns)]
                if head is not None and changed:
                    stamp = self._stamp()
                    table.change_turns(write, self._sealer, key, changed, stamp)
                    table.put_head(write, self._sealer, key, replace(head, stamp=stamp))
                    done += len(changed)
        return done

    def path(self, conversation_id: str) -> Path:
        """Raises StoreError: there is no file. InvalidId for an id that no store would take."""
        reason = "the conversations of this home are in its database; export writes their files"
        raise StoreError("find a file of", _checked(conversation_id), reason)

    def read_file(self, conversation_id: str) -> tuple[bytes, Identity]:
        """A conversation as a Go file would have it, and what tells this state of it apart.

        FileNotFoundError where there is none, as from a store of files.
        """
        found = self.stored(conversation_id)
        if found is None:
            raise FileNotFoundError(conversation_id)
        return encode(found.thread), (found.stamp, found.turn_count, 0, 0)

    def thread_bytes(self, conversation_id: str) -> bytes | None:
        """A conversation as the bytes of the file that Go would write; None where there is none."""
        found = self.stored(conversation_id)
        return None if found is None else encode(found.thread)

    def files(self) -> Iterator[tuple[str, Path]]:
        """Every conversation's id and the name that its file would have, in no particular order."""
        return ((key, Path(file_name(key))) for key in self._reader.ids())

    # For who follows: the index, and imports.

    def version(self) -> int:
        """A number that grows with every write to the namespace; 0 before the first."""
        self._sealer.check()
        return self._truth.version(self.namespace)

    def changes_since(self, seq: int) -> dict[str, Identity | None]:
        """What tells the state of each conversation written after `seq`; None for a deleted one.

        Equal identities mean equal turns, also after truth was put back to an earlier moment.
        """
        found = self._reader.changed_since(seq)
        return {key: state and (*state, 0, 0) for key, state in found.items()}

    def stored(self, conversation_id: str, start: int = 0) -> StoredThread | None:
        """A conversation with its turns from `start` on, and the stamps of their writes."""
        return self._reader.thread(_checked(conversation_id), start)

    def importing(self, key: str) -> AbstractContextManager[None]:
        """Hold the right to import one chat, in all processes and servers. StoreError."""
        digest = hashlib.sha256(f"{self.namespace}\0{key}".encode("utf-8", "surrogatepass"))
        if self._truth.path is not None:
            return _locked_file(self._truth.path, digest.hexdigest()[:24])
        return _locked_server(self._truth, int.from_bytes(digest.digest()[:8], signed=True))

    @contextmanager
    def _write(self) -> Iterator[Write]:
        with self._truth.write(self.namespace) as write:
            # Under the database's lock: whoever seals the home waits for it after having said so.
            self._sealer.check()
            yield write

    def _head(self, write: Write, conversation_id: str) -> ThreadHead | None:
        from anaphora.store.db.thread_rows import head_of

        return head_of(write, self._sealer, conversation_id)

    def _add(
        self, write: Write, conversation_id: str, head: ThreadHead | None, turns: Sequence[Turn]
    ) -> None:
        from anaphora.store.db import thread_rows as table

        head = head or table.ThreadHead(0, None, "", ZERO_TIME, 0)
        start, stamp = head.turn_count, self._stamp()
        placed = [*enumerate(turns, start)]
        opening = head.opening
        if opening is None:
            asked = (place for place, t in placed if t.role == "user" and t.text.strip())
            opening = next(asked, None)
        table.add_turns(write, self._sealer, conversation_id, placed, stamp)
        head = replace(
            head,
            turn_count=start + len(turns),
            opening=opening,
            updated_text=latest(head.updated_text, turns),
            stamp=stamp,
        )
        table.put_head(write, self._sealer, conversation_id, head)

    def _forget(self, write: Write, conversation_id: str, index: int | None) -> None:
        if self._sidecar is not None:
            self._sidecar.forget_within(write, conversation_id, index)

    def _removed(self, conversation_id: str, removed: bool) -> bool:
        if removed:
            from anaphora.store.db.scrub import scrub

            if not scrub(self._truth):
                _log.warning("%s: deleted words are in its log until readers let go of it",
                             self._truth.location)  # fmt: skip
            if self._on_removed is not None:
                self._on_removed(conversation_id)
        return removed

    def _stamp(self) -> int:
        return int.from_bytes(self._random(8)) >> 1


def _checked(conversation_id: str) -> str:
    check_id(conversation_id)
    if len(conversation_id.encode()) > _MAX_ID_BYTES:
        reason = f"must take at most {_MAX_ID_BYTES:,} bytes where threads live in a database"
        raise InvalidId("conversation id", conversation_id, reason)
    return conversation_id


@contextmanager
def _locked_file(database: Path, key: str) -> Iterator[None]:
    from anaphora.store.threads.locks import ThreadLocks

    try:
        with ThreadLocks(database.parent).hold(key):
            yield
    except OSError as error:
        raise translate(error, "lock", database) from error


@contextmanager
def _locked_server(truth: Database, key: int) -> Iterator[None]:
    from sqlalchemy import text

    # The lock goes with the transaction, however the process ends.
    with truth.read() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})
        yield


def _now() -> datetime:
    return datetime.now(UTC)
