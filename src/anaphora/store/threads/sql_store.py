"""The store of conversations in the database of a home: what `ConversationStore` is for files.

A write is one transaction, numbered in its namespace's sequence, the notes of speakers and sources
with it. A read is one plain statement, so that its answer is of one moment and needs no SQLAlchemy.
Any number of threads, processes and servers may use one database.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from anaphora.errors import InvalidId, StoreError, Tampered
from anaphora.store.crypto.columns import CLEAR, Sealer, open_rows
from anaphora.store.disk import Identity, translate
from anaphora.store.threads.conversations import Conversations, summary_of
from anaphora.store.threads.gojson import (
    ZERO_TIME,
    Document,
    encode,
    encode_turn,
    latest,
    nanoseconds,
    read_time,
    redact_turn,
    sound_time,
)
from anaphora.store.threads.ids import check_id, file_name
from anaphora.store.threads.sidecar import notes_of
from anaphora.values.conversations import NewTurn, Thread, ThreadProblem, ThreadSummary, Turn

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database, Write
    from anaphora.store.db.thread_rows import ThreadHead
    from anaphora.store.threads.sidecar import Sidecar


_TURNS = """
SELECT t.stamp, t.turn_count, t.title, t.updated_text,
       u.position, u.role, u.text, u.ts_text, u.intent_id, u.turn_hash, u.stamp,
       n.turn_hash, n.speaker, n.source, n.source_key, n.message_key, n.chat_key,
       t.opening, t.deleted
  FROM thread t
  LEFT JOIN turn u ON u.namespace = t.namespace AND u.conversation_id = t.conversation_id
       AND u.position >= {start}
  LEFT JOIN turn_note n ON n.namespace = u.namespace AND n.conversation_id = u.conversation_id
       AND n.position = u.position AND n.position >= {start}
 WHERE t.namespace = :namespace AND t.conversation_id = :conversation_id AND t.deleted = 0
 ORDER BY u.position
"""
_FROM = _TURNS.format(start=":number")
# Asked apart: compared with a column of the join, PostgreSQL does not search its index for it.
_LAST = _TURNS.format(
    start="""(SELECT turn_count FROM thread WHERE namespace = :namespace
                         AND conversation_id = :conversation_id) - :number"""
)
_CHANGED = """
SELECT conversation_id, stamp, turn_count, deleted FROM thread
 WHERE namespace = :namespace AND seq > :since
"""
# The newest number that was seen comes again, so that truth that was put back to an earlier moment
# is noticed: there no number is as high.
_LISTED = """
SELECT t.conversation_id, t.seq, t.deleted, t.turn_count, t.title, t.updated_text, t.opening,
       f.text, l.text, t.stamp
  FROM thread t
  LEFT JOIN turn f ON f.namespace = t.namespace AND f.conversation_id = t.conversation_id
       AND f.position = t.opening
  LEFT JOIN turn l ON l.namespace = t.namespace AND l.conversation_id = t.conversation_id
       AND l.position = t.turn_count - 1
 WHERE t.namespace = :namespace AND t.seq >= :since
"""
_TIMES = """
SELECT conversation_id, position, ts_text FROM turn
 WHERE namespace = :namespace
   AND (conversation_id > :after OR (conversation_id = :after AND position > :place))
 ORDER BY conversation_id, position LIMIT :limit
"""
_STEP = 4096
_TURN = ("conversation_id", "position", "role", "text", "ts_text", "intent_id", "turn_hash")
_HEAD = ("stamp", "turn_count", "title", "updated_text", "opening", "deleted")
_NOTE = (
    "conversation_id", "position", "turn_hash", "speaker", "source", "source_key", "message_key",
    "chat_key",
)  # fmt: skip
_IDS = "SELECT conversation_id FROM thread WHERE namespace = :namespace AND deleted = 0"


@dataclass(frozen=True, slots=True)
class StoredThread:
    """A conversation as the database has it, or its end: turns from `start` on.

    `stamp` tells this state of its turns from every other; `stamps` are those of the turns that
    came: while a turn has the stamp of an earlier state, that state's turns are unchanged.
    """

    thread: Thread
    start: int
    turn_count: int
    stamp: int
    stamps: tuple[int, ...]


class SqlThreadReader:
    """Reads the threads of one namespace. `notes` says whether speakers are wanted."""

    def __init__(self, truth: Database, namespace: str, sealer: Sealer, *, notes: bool) -> None:
        self._truth = truth
        self._namespace = namespace
        self._sealer = sealer
        self._notes = notes
        self._listing = Lock()
        self._listed: dict[str, tuple[int, ThreadSummary]] = {}
        self._upto = 0

    def thread(self, conversation_id: str, start: int = 0) -> StoredThread | None:
        """A conversation with its turns from `start` on."""
        return self._read(_FROM, conversation_id, start)

    def last(self, conversation_id: str, count: int) -> StoredThread | None:
        """A conversation with its last `count` turns."""
        return self._read(_LAST, conversation_id, count)

    def ids(self) -> list[str]:
        """Every conversation, in no particular order."""
        return [self._found(row[0]) for row in self._rows(_IDS)]

    def changed_since(self, seq: int) -> dict[str, tuple[int, int] | None]:
        """Conversations with a number above `seq`: stamp and count of turns, None where deleted."""
        rows = self._rows(_CHANGED, since=seq)
        return {self._found(row[0]): None if row[3] else (row[1], row[2]) for row in rows}

    def summaries(self) -> tuple[ThreadSummary, ...]:
        """Every conversation, newest first; only those that changed are read again."""
        with self._listing:
            rows = self._rows(_LISTED, since=self._upto)
            if self._upto and not rows:
                self._listed, self._upto = {}, 0
                rows = self._rows(_LISTED, since=0)
            for row in rows:
                self._upto = max(self._upto, row[1])
                key = self._found(row[0])
                if row[2]:
                    self._listed.pop(key, None)
                else:
                    self._listed[key] = self._summary(key, row)
            ordered = sorted(self._listed.values(), key=lambda f: (-f[0], f[1].conversation_id))
        return tuple(summary for _, summary in ordered)

    def misdated(self) -> dict[str, tuple[int, ...]]:
        """The places of turns whose times make no sense, by conversation. Reads every time."""
        found: dict[str, list[int]] = {}
        after, place = "", -1
        while rows := self._rows(_TIMES, after=after, place=place, limit=_STEP):
            for stored_id, position, ts_text in rows:
                opened = self._opened("turn", stored_id, position=position, ts_text=ts_text)
                if sound_time(opened["ts_text"]) != opened["ts_text"]:
                    found.setdefault(self._found(stored_id), []).append(position)
            after, place = rows[-1][:2]
        return {key: tuple(places) for key, places in found.items()}

    def _read(self, statement: str, conversation_id: str, number: int) -> StoredThread | None:
        stored_id = self._sealer.lookup("conversation_id", self._namespace, conversation_id)
        rows = self._rows(statement, conversation_id=stored_id, number=number)
        if not rows:
            return None
        given = dict(zip(_HEAD, (*rows[0][:4], *rows[0][-2:]), strict=True))
        head, stamp, count = self._opened("thread", stored_id, **given), *rows[0][:2]
        updated_text = sound_time(head["updated_text"])
        rows = [row for row in rows if row[4] is not None]
        self._refuse_gaps(rows, number if statement is _FROM else max(0, count - number), count)
        return StoredThread(
            Thread(
                conversation_id=conversation_id,
                turns=tuple(self._turns(stored_id, rows)),
                updated=read_time(updated_text),
                updated_text=updated_text,
                title=head["title"],
            ),
            start=rows[0][4] if rows else count,
            turn_count=count,
            stamp=stamp,
            stamps=tuple(row[10] for row in rows),
        )

    def _refuse_gaps(self, rows: Sequence[tuple[Any, ...]], start: int, count: int) -> None:
        """`Tampered` where a sealed conversation lacks turns: its head says how many there are."""
        if self._sealer.sealed and [row[4] for row in rows] != list(range(start, count)):
            raise Tampered("conversation", "turns of it are missing")

    def _turns(self, stored_id: str, rows: Sequence[tuple[Any, ...]]) -> Iterator[Turn]:
        told = self._speakers(stored_id, rows) if self._notes else {}
        given = [(stored_id, *row[4:10]) for row in rows]
        for turn in open_rows(self._sealer, "turn", _TURN, self._namespace, given):
            _, place, role, text, ts_text, intent_id, digest = turn
            note = told.get(place)
            # A note of another turn is void: its own turn is not here.
            speaker, source = note[1:] if note and note[0] == digest else (None, None)
            # A time that makes no sense takes neither its words along nor those of others.
            ts_text = sound_time(ts_text)
            yield Turn(role, text, read_time(ts_text), ts_text, intent_id, speaker, source)

    def _speakers(
        self, stored_id: str, rows: Sequence[tuple[Any, ...]]
    ) -> dict[int, tuple[str, str | None, str | None]]:
        """Hash, speaker and source of each noted turn, by its place."""
        given = [(stored_id, row[4], *row[11:17]) for row in rows if row[11] is not None]
        notes = open_rows(self._sealer, "turn_note", _NOTE, self._namespace, given)
        return {place: (digest, speaker, source) for _, place, digest, speaker, source, *_ in notes}

    def _summary(self, conversation_id: str, row: tuple[Any, ...]) -> tuple[int, ThreadSummary]:
        _, _, deleted, count, title, updated, opening, first, last, stamp = row
        stored_id = row[0]
        given = dict(zip(_HEAD, (stamp, count, title, updated, opening, deleted), strict=True))
        head = self._opened("thread", stored_id, **given)
        updated_text = sound_time(head["updated_text"])
        when = read_time(updated_text)
        document = Document(conversation_id, head["title"], updated=updated_text)
        for role, place, text in (("user", opening, first), ("", count - 1, last)):
            if text is not None:
                words = self._opened("turn", stored_id, position=place, text=text)["text"]
                document.turns.append(Turn(role, words, when, updated_text))
        summary = replace(summary_of(conversation_id, document), turn_count=count)
        return nanoseconds(updated_text), summary

    def _opened(self, table: str, stored_id: str, **columns: Any) -> dict[str, Any]:
        row = {"namespace": self._namespace, "conversation_id": stored_id, **columns}
        return self._sealer.open_row(table, row)

    def _found(self, stored_id: str) -> str:
        return self._sealer.found("conversation_id", self._namespace, stored_id)

    def _rows(self, statement: str, **parameters: str | int) -> list[tuple[Any, ...]]:
        self._sealer.check()
        return self._truth.rows(statement, {"namespace": self._namespace, **parameters})


# PostgreSQL refuses index entries above 2.7 kB, and a sealed id is a third longer.
_MAX_ID_BYTES = 1_024

_log = logging.getLogger("anaphora")


class SqlConversationStore(Conversations):
    """Conversations of one namespace in one database. Always strict: what is not kept raises.

    The methods are those of `ConversationStore` and raise what its strict form raises: InvalidId
    (also for an id of more than 1,024 bytes in UTF-8), InvalidTurn, StoreError and its kinds,
    EncryptionError and its kinds. `clock` gives the time of turns that come without one; `sidecar`
    keeps speakers and sources and must be of the same database and namespace; `on_removed` is
    called with the id of a conversation that lost words; `sealer` encrypts the rows of a
    sealed home; `random` gives the stamps that tell two states of a conversation apart.
    """

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
        super().__init__(clock, sidecar, on_removed)
        self.namespace = namespace
        self._truth = truth
        self._sealer = sealer
        self._random = random
        self._reader = SqlThreadReader(truth, namespace, sealer, notes=sidecar is not None)

    def _extend(
        self, conversation_id: str, news: Sequence[NewTurn], turns: Sequence[Turn], title: str
    ) -> range:
        with self._write() as write:
            head = self._head(write, conversation_id)
            start = head.turn_count if head is not None else 0
            if head is None and title:
                from anaphora.store.db.thread_rows import ThreadHead

                head = ThreadHead(0, None, title, ZERO_TIME, 0)
            self._add(write, conversation_id, head, turns)
            if self._sidecar is not None:
                notes = notes_of(conversation_id, start, news, turns)
                self._sidecar.note_turns_within(write, notes)
        return range(start, start + len(turns))

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
        self._check_id(conversation_id)
        from anaphora.store.db.thread_rows import ThreadHead

        with self._write() as write:
            head = self._head(write, conversation_id)
            if (head.turn_count if head is not None else 0) != at:
                return False
            if head is None:
                head = ThreadHead(0, None, title, updated_text, 0)
            self._add(write, conversation_id, head, turns)
            return True

    def _thread(self, conversation_id: str, last: int | None) -> Thread | None:
        if last is None:
            found = self._reader.thread(conversation_id)
        else:
            found = self._reader.last(conversation_id, last)
        return found.thread if found else None

    def list(self) -> tuple[ThreadSummary, ...]:
        """Every conversation, newest first."""
        return self._reader.summaries()

    def _delete(self, conversation_id: str) -> bool:
        from anaphora.store.db import thread_rows as table

        with self._write() as write:
            head = self._head(write, conversation_id)
            self._forget(write, conversation_id, None)
            if head is not None:
                table.drop_turns(write, self._sealer, conversation_id)
                gone = table.ThreadHead(0, None, "", ZERO_TIME, self._stamp(), deleted=True)
                table.put_head(write, self._sealer, conversation_id, gone)
        return self._scrubbed(head is not None)

    def _redact(self, conversation_id: str, index: int) -> bool:
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
        return self._scrubbed(there)

    def _set_title(self, conversation_id: str, title: str) -> bool:
        from anaphora.store.db.thread_rows import put_head

        with self._write() as write:
            head = self._head(write, conversation_id)
            if head is None:
                return False
            put_head(write, self._sealer, conversation_id, replace(head, title=title))
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
        raise StoreError("find a file of", self._check_id(conversation_id), reason)

    def read_file(self, conversation_id: str) -> tuple[bytes, Identity]:
        """A conversation as a Go file would have it, and what tells this state of it apart.

        FileNotFoundError where there is none, as from a store of files.
        """
        found = self.stored(conversation_id)
        if found is None:
            raise FileNotFoundError(conversation_id)
        return encode(found.thread), (found.stamp, found.turn_count, 0, 0)

    def files(self) -> Iterator[tuple[str, Path]]:
        """Every conversation's id and the name that its file would have, in no particular order."""
        return ((key, Path(file_name(key))) for key in self._reader.ids())

    # For the index, and imports.

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
        return self._reader.thread(self._check_id(conversation_id), start)

    def importing(self, key: str) -> AbstractContextManager[None]:
        """Hold the right to import one chat, in all processes and servers. StoreError."""
        digest = hashlib.sha256(f"{self.namespace}\0{key}".encode("utf-8", "surrogatepass"))
        if self._truth.path is not None:
            return _locked_file(self._truth.path, digest.hexdigest()[:24])
        return _locked_server(self._truth, int.from_bytes(digest.digest()[:8], signed=True))

    def _check_id(self, conversation_id: str) -> str:
        check_id(conversation_id)
        if len(conversation_id.encode()) > _MAX_ID_BYTES:
            reason = f"must take at most {_MAX_ID_BYTES:,} bytes where threads live in a database"
            raise InvalidId("conversation id", conversation_id, reason)
        return conversation_id

    @contextmanager
    def _write(self) -> Iterator[Write]:
        with self._truth.write(self.namespace) as write:
            # Under the database's lock: a conversion writes the marker, then waits for this lock.
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

    def _scrubbed(self, removed: bool) -> bool:
        """`removed` itself, once the words are out of the database's log."""
        if removed:
            from anaphora.store.db.scrub import scrub

            if not scrub(self._truth):
                where = self._truth.location
                _log.warning("%s: deleted words are in its log until readers let go of it", where)
        return removed

    def _stamp(self) -> int:
        return int.from_bytes(self._random(8)) >> 1


@contextmanager
def _locked_file(database: Path, key: str) -> Iterator[None]:
    from anaphora.store.threads.files import ThreadLocks

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
