"""The store of conversations in the database of a home: what `ConversationStore` is for files.

A write is one transaction, numbered in its namespace's sequence, the notes of speakers and sources
with it. A read is one plain statement, so that its answer is of one moment and needs no SQLAlchemy.
Any number of threads, processes and servers may use one database.
"""

from __future__ import annotations

import hashlib
import logging
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from anaphora.errors import InvalidId, StoreError, Tampered
from anaphora.store.crypto.columns import CLEAR, Sealer
from anaphora.store.db.locks import hold_server_lock
from anaphora.store.db.tables import THREAD, TURN, TURN_NOTE
from anaphora.store.disk import Identity, translate
from anaphora.store.hashing import stored_turn_hash
from anaphora.store.mapping import RowMapping
from anaphora.store.namespace import NamespaceReader, NamespaceTransaction, Row
from anaphora.store.threads.conversations import (
    Conversations,
    Replacement,
    said_in,
    summary_of,
)
from anaphora.store.threads.gojson import (
    ZERO_TIME,
    ThreadDocument,
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
    from anaphora.store.threads.sidecar import Sidecar


# The id, which comes first, is the same in all rows: it is not asked for again.
_HEAD_COLUMNS, _TURN_COLUMNS, _NOTE_COLUMNS = (
    table.names[1:] for table in (THREAD, TURN, TURN_NOTE)
)
_TURNS = f"""
SELECT {THREAD.listed("t", _HEAD_COLUMNS)}, {TURN.listed("u", _TURN_COLUMNS)},
       {TURN_NOTE.listed("n", _NOTE_COLUMNS)}
  FROM thread t
  LEFT JOIN turn u ON u.namespace = t.namespace AND u.conversation_id = t.conversation_id
       AND u.position >= {{start}}
  LEFT JOIN turn_note n ON n.namespace = u.namespace AND n.conversation_id = u.conversation_id
       AND n.position = u.position AND n.position >= {{start}}
 WHERE t.namespace = :namespace AND t.conversation_id = :conversation_id AND t.deleted = 0
 ORDER BY u.position
"""  # noqa: S608 - names of ours
_FROM = _TURNS.format(start=":number")
# Asked apart: compared with a column of the join, PostgreSQL does not search its index for it.
_LAST = _TURNS.format(
    start="""(SELECT turn_count FROM thread WHERE namespace = :namespace
                         AND conversation_id = :conversation_id) - :number"""
)
_CHANGED = """
SELECT conversation_id, stamp, turn_count, deleted, title FROM thread
 WHERE namespace = :namespace AND seq > :since
"""
# The newest number that was seen comes again, so that a database that was put back to an earlier
# moment is noticed: there no number is as high.
_LISTED = f"""
SELECT {THREAD.listed("t")}, f.text, l.text
  FROM thread t
  LEFT JOIN turn f ON f.namespace = t.namespace AND f.conversation_id = t.conversation_id
       AND f.position = t.opening
  LEFT JOIN turn l ON l.namespace = t.namespace AND l.conversation_id = t.conversation_id
       AND l.position = t.turn_count - 1
 WHERE t.namespace = :namespace AND t.seq >= :since
"""  # noqa: S608 - names of ours
_SEQ, _DELETED = THREAD.names.index("seq"), THREAD.names.index("deleted")
_TIMES = """
SELECT conversation_id, position, ts_text FROM turn
 WHERE namespace = :namespace
   AND (conversation_id > :after OR (conversation_id = :after AND position > :position))
 ORDER BY conversation_id, position LIMIT :limit
"""
_STEP = 4096
_PLACE, _STAMP = (len(_HEAD_COLUMNS) + _TURN_COLUMNS.index(name) for name in ("position", "stamp"))
_NOTED = len(_HEAD_COLUMNS) + len(_TURN_COLUMNS)
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

    @property
    def identity(self) -> Identity:
        """What tells this state of turns and title from every other."""
        return identity_of_state(self.stamp, self.turn_count, self.thread.title)


def identity_of_state(stamp: int, turn_count: int, title: str) -> Identity:
    """What tells a state of a conversation from every other one."""
    return stamp, turn_count, zlib.crc32(title.encode("utf-8", "surrogatepass")), 0


@dataclass(frozen=True, slots=True)
class ThreadHead:
    """What is known of a conversation beside its turns; see `db.tables.THREAD` for the fields."""

    turn_count: int
    opening: int | None
    title: str
    updated_text: str
    stamp: int
    deleted: bool = False


_HEADS = RowMapping(
    THREAD,
    ThreadHead,
    read={"updated_text": ("updated_text", sound_time)},
    written={"updated_text": lambda head: head.updated_text},
)
_TURN_MAPPING = RowMapping(TURN, Turn)


def _turn_of(
    role: str,
    text: str,
    ts_text: object,
    intent_id: str,
    speaker: str | None = None,
    source: str | None = None,
) -> Turn:
    # A time that makes no sense takes neither its words along nor those of others.
    sound = sound_time(ts_text)
    return Turn(role, text, read_time(sound), sound, intent_id, speaker, source)


class ThreadTransaction(NamespaceTransaction):
    """What one write transaction does to conversations."""

    def head(self, conversation_id: str) -> ThreadHead | None:
        """The head of a conversation that is there; None of one that was deleted or never was."""
        for head in map(_HEADS.value, self._found(THREAD, **self._here(conversation_id))):
            if not head.deleted:
                return head
        return None

    def put_head(self, conversation_id: str, head: ThreadHead) -> None:
        """Write a head, in place of the one that is there, with the next number."""
        self._replace(THREAD, [_HEADS.row(head, conversation_id=conversation_id)])

    def turns(self, conversation_id: str) -> list[Turn]:
        """All turns of a conversation, oldest first."""
        rows = self.find_rows(TURN, **self._here(conversation_id))
        rows.sort(key=lambda row: int(row["position"]))
        return [
            _turn_of(row["role"], row["text"], row["ts_text"], row["intent_id"]) for row in rows
        ]

    def add_turns(
        self, conversation_id: str, placed: Iterable[tuple[int, Turn]], stamp: int
    ) -> None:
        """Write turns at places that are free."""
        rows = [
            _TURN_MAPPING.row(
                turn,
                conversation_id=conversation_id,
                position=position,
                turn_hash=stored_turn_hash(turn.role, turn.text),
                stamp=stamp,
            )
            for position, turn in placed
        ]
        self._insert(TURN, rows)

    def change_turns(
        self, conversation_id: str, changed: Sequence[tuple[int, Turn]], stamp: int
    ) -> None:
        """Replace turns at places that are taken; all turns of the conversation get the stamp."""
        of_conversation = self._here(conversation_id)
        self._delete(TURN, **of_conversation, position=[position for position, _ in changed])
        self.add_turns(conversation_id, changed, stamp)
        self._set(TURN, {"stamp": stamp}, **of_conversation)

    def drop_turns(self, conversation_id: str) -> None:
        """Delete every turn of a conversation."""
        self._delete(TURN, **self._here(conversation_id))

    def _here(self, conversation_id: str) -> Row:
        return {"conversation_id": self._lookup("conversation_id", conversation_id)}


# PostgreSQL refuses index entries above 2.7 kB, and a sealed id is a third longer.
_MAX_ID_BYTES = 1_024

_log = logging.getLogger("anaphora")


class SqlConversationStore(NamespaceReader, Conversations):
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
        NamespaceReader.__init__(self, truth, namespace, sealer)
        Conversations.__init__(self, clock, sidecar, on_removed)
        self._random = random
        self._listing = Lock()
        self._listed: dict[str, tuple[int, ThreadSummary]] = {}
        self._upto = 0

    def list(self) -> tuple[ThreadSummary, ...]:
        """Every conversation, newest first; only those that changed are read again."""
        with self._listing:
            rows = self._rows(_LISTED, since=self._upto)
            if self._upto and not rows:
                self._listed, self._upto = {}, 0
                rows = self._rows(_LISTED, since=0)
            for row in rows:
                self._upto = max(self._upto, row[_SEQ])
                key = self._id_of(row[0])
                if row[_DELETED]:
                    self._listed.pop(key, None)
                else:
                    self._listed[key] = self._summary(key, row)
            ordered_threads = sorted(
                self._listed.values(), key=lambda f: (-f[0], f[1].conversation_id)
            )
        return tuple(summary for _, summary in ordered_threads)

    def _extend(
        self, conversation_id: str, news: Sequence[NewTurn], turns: Sequence[Turn], title: str
    ) -> range:
        with self._changing() as work:
            head = work.head(conversation_id)
            start = head.turn_count if head is not None else 0
            if head is None and title:
                head = ThreadHead(0, None, title, ZERO_TIME, 0)
            self._add(work, conversation_id, head, turns)
            if self._sidecar is not None:
                notes = notes_of(conversation_id, start, news, turns)
                self._sidecar.note_turns(notes, work.write)
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

        with self._changing() as work:
            head = work.head(conversation_id)
            if (head.turn_count if head is not None else 0) != at:
                return False
            if head is None:
                head = ThreadHead(0, None, title, updated_text, 0)
            self._add(work, conversation_id, head, turns)
        self._hooks.on_change("remembered", conversation_id, len(turns))
        return True

    def _stands(self, conversation_id: str) -> bool:
        return self._stored(_LAST, conversation_id, 0) is not None

    def _thread(self, conversation_id: str, last: int | None) -> Thread | None:
        statement, number = (_FROM, 0) if last is None else (_LAST, last)
        stored_thread = self._stored(statement, conversation_id, number)
        return stored_thread.thread if stored_thread else None

    def _delete(self, conversation_id: str) -> bool:
        with self._changing() as work:
            head = work.head(conversation_id)
            self._forget(work.write, conversation_id, None)
            if head is not None:
                if self._sidecar is not None:
                    self._sidecar.note_deletion(conversation_id, work.write)
                work.drop_turns(conversation_id)
                deleted_head = ThreadHead(0, None, "", ZERO_TIME, self._stamp(), deleted=True)
                work.put_head(conversation_id, deleted_head)
        return self._scrub_after(head is not None)

    def _redact(self, conversation_id: str, index: int) -> bool:
        with self._changing() as work:
            head = work.head(conversation_id)
            exists = head is not None and 0 <= index < head.turn_count
            if head is not None and exists:
                turns = work.turns(conversation_id)
                document = ThreadDocument(conversation_id, head.title, turns)
                document.raw_turns = [encode_turn(turn) for turn in turns]
                positions = redact_turn(document, index)
                for position in positions:
                    self._forget(work.write, conversation_id, position)
                stamp = self._stamp()
                changed_turns = [(position, document.turns[position]) for position in positions]
                work.change_turns(conversation_id, changed_turns, stamp)
                head = replace(head, title=document.title, stamp=stamp)
                work.put_head(conversation_id, head)
        return self._scrub_after(exists)

    def _replace_turns(self, conversation_id: str, new: Replacement) -> bool:
        with self._changing() as work:
            head = work.head(conversation_id)
            if said_in(work.turns(conversation_id)) != said_in(new.before):
                return False
            if self._sidecar is not None:
                self._sidecar.replace_notes(conversation_id, new.notes, work.write)
            work.drop_turns(conversation_id)
            if new.turns:
                new_head = ThreadHead(0, None, new.title, ZERO_TIME, self._stamp())
                self._add(work, conversation_id, new_head, new.turns)
            elif head is not None:
                deleted_head = ThreadHead(0, None, "", ZERO_TIME, self._stamp(), deleted=True)
                work.put_head(conversation_id, deleted_head)
        return self._scrub_after(True) if new.lost else True

    def _set_title(self, conversation_id: str, title: str) -> bool:
        with self._changing() as work:
            head = work.head(conversation_id)
            if head is None:
                return False
            work.put_head(conversation_id, replace(head, title=title))
            return True

    def problems(self) -> tuple[ThreadProblem, ...]:
        """Turns with invalid times, which are read as never set. Looks at every turn."""
        reason = "its time is invalid and is treated as missing; `doctor --repair` repairs it"
        return tuple(
            ThreadProblem(key, f"{self.truth.location}, turn {position}", reason)
            for key, positions in self._find_misdated().items()
            for position in positions
        )

    def mend_times(self) -> int:
        """Set times of turns that make no sense to the one that was never set; how many."""
        mended_count = 0
        for key, positions in self._find_misdated().items():
            with self._changing() as work:
                head = work.head(key)
                # Reading has put the time in order already.
                turns = work.turns(key)
                changed_turns = [(index, turns[index]) for index in positions if index < len(turns)]
                if head is not None and changed_turns:
                    stamp = self._stamp()
                    work.change_turns(key, changed_turns, stamp)
                    work.put_head(key, replace(head, stamp=stamp))
                    mended_count += len(changed_turns)
        return mended_count

    def path(self, conversation_id: str) -> Path:
        """Raises StoreError: there is no file. InvalidId for an id that no store would take."""
        reason = "this home keeps conversations in its database: use export to get files"
        raise StoreError("find a file of", self._check_id(conversation_id), reason)

    def read_file(self, conversation_id: str) -> tuple[bytes, Identity]:
        """A conversation as a Go file would have it, and what tells this state of it apart.

        FileNotFoundError where there is none, as from a store of files.
        """
        stored_thread = self.stored(conversation_id)
        if stored_thread is None:
            raise FileNotFoundError(conversation_id)
        return encode(stored_thread.thread), (stored_thread.stamp, stored_thread.turn_count, 0, 0)

    def files(self) -> Iterator[tuple[str, Path]]:
        """Every conversation's id and the name that its file would have, in no particular order."""
        ids = [self._id_of(row[0]) for row in self._rows(_IDS)]
        return ((key, Path(file_name(key))) for key in ids)

    # For the index, and imports.

    def version(self) -> int:
        """A number that grows with every write to the namespace; 0 before the first."""
        self.sealer.check()
        return super().version()

    def changes_since(self, seq: int) -> dict[str, Identity | None]:
        """What tells the state of each conversation written after `seq`; None for a deleted one.

        Equal identities mean equal turns and titles, also after the database was put back to an
        earlier moment.
        """
        identities: dict[str, Identity | None] = {}
        for stored_id, stamp, count, is_deleted, title in self._rows(_CHANGED, since=seq):
            identity = None
            if not is_deleted:
                opened_title = (
                    self._open_row("thread", stored_id, title=title)["title"] if title else ""
                )
                identity = identity_of_state(stamp, count, opened_title)
            identities[self._id_of(stored_id)] = identity
        return identities

    def stored(self, conversation_id: str, start: int = 0) -> StoredThread | None:
        """A conversation with its turns from `start` on, and the stamps of their writes."""
        return self._stored(_FROM, self._check_id(conversation_id), start)

    def importing(self, key: str) -> AbstractContextManager[None]:
        """Hold the right to import one chat, in all processes and servers. StoreError."""
        digest = hashlib.sha256(f"{self.namespace}\0{key}".encode("utf-8", "surrogatepass"))
        if self.truth.path is not None:
            return _lock_file(self.truth.path, digest.hexdigest()[:24])
        return hold_server_lock(self.truth, int.from_bytes(digest.digest()[:8], signed=True))

    def _find_misdated(self) -> dict[str, tuple[int, ...]]:
        """The positions of turns with invalid times, by conversation. Reads every time."""
        positions_by_id: dict[str, list[int]] = {}
        last_id, last_position = "", -1
        while rows := self._rows(_TIMES, after=last_id, position=last_position, limit=_STEP):
            for stored_id, position, ts_text in rows:
                opened_turn = self._open_row("turn", stored_id, position=position, ts_text=ts_text)
                if sound_time(opened_turn["ts_text"]) != opened_turn["ts_text"]:
                    positions_by_id.setdefault(self._id_of(stored_id), []).append(position)
            last_id, last_position = rows[-1][:2]
        return {key: tuple(positions) for key, positions in positions_by_id.items()}

    def _stored(self, statement: str, conversation_id: str, number: int) -> StoredThread | None:
        stored_id = self._lookup("conversation_id", conversation_id)
        rows = self._rows(statement, conversation_id=stored_id, number=number)
        if not rows:
            return None
        head = self._head((stored_id, *rows[0][: len(_HEAD_COLUMNS)]))
        count = head.turn_count
        rows = [row for row in rows if row[_PLACE] is not None]
        start = number if statement is _FROM else max(0, count - number)
        # The sealed head says how many turns there are.
        if self.sealer.sealed and [row[_PLACE] for row in rows] != list(range(start, count)):
            raise Tampered("conversation", "some of its turns are missing")
        return StoredThread(
            Thread(
                conversation_id=conversation_id,
                turns=tuple(self._turns(stored_id, rows)),
                updated=read_time(head.updated_text),
                updated_text=head.updated_text,
                title=head.title,
            ),
            start=rows[0][_PLACE] if rows else count,
            turn_count=count,
            stamp=head.stamp,
            stamps=tuple(row[_STAMP] for row in rows),
        )

    def _turns(self, stored_id: str, rows: Sequence[tuple[Any, ...]]) -> Iterator[Turn]:
        # Hash, speaker and source of each turn with a note, by its position.
        notes: dict[int, tuple[str, str | None, str | None]] = {}
        if self._sidecar is not None:
            stored_notes = [(stored_id, *row[_NOTED:]) for row in rows if row[_NOTED] is not None]
            notes = {
                position: (digest, speaker, source)
                for _, position, digest, speaker, source, *_ in self._opened(
                    TURN_NOTE, stored_notes
                )
            }
        stored_turns = [(stored_id, *row[len(_HEAD_COLUMNS) : _NOTED]) for row in rows]
        for turn in self._opened(TURN, stored_turns):
            _, position, _, _, role, text, ts_text, intent_id, digest = turn
            note = notes.get(position)
            # A note of another turn is void: its own turn is not here.
            speaker, source = note[1:] if note and note[0] == digest else (None, None)
            yield _turn_of(role, text, ts_text, intent_id, speaker, source)

    def _summary(self, conversation_id: str, row: tuple[Any, ...]) -> tuple[int, ThreadSummary]:
        *cells, first_text, last_text = row
        head = self._head(tuple(cells))
        updated_text, count = head.updated_text, head.turn_count
        document = ThreadDocument(conversation_id, head.title, updated=updated_text)
        for role, position, text in (
            ("user", head.opening, first_text),
            ("", count - 1, last_text),
        ):
            if text is not None:
                words = self._open_row("turn", row[0], position=position, text=text)["text"]
                document.turns.append(Turn(role, words, read_time(updated_text), updated_text))
        summary = replace(summary_of(conversation_id, document), turn_count=count)
        return nanoseconds(updated_text), summary

    def _head(self, row: tuple[Any, ...]) -> ThreadHead:
        return _HEADS.value(self._opened(THREAD, [row])[0])

    def _open_row(self, table: str, stored_id: str, **columns: Any) -> dict[str, Any]:
        row = {"namespace": self.namespace, "conversation_id": stored_id, **columns}
        return self.sealer.open_row(table, row)

    def _id_of(self, stored_id: str) -> str:
        return self.sealer.found("conversation_id", self.namespace, stored_id)

    def _check_id(self, conversation_id: str) -> str:
        check_id(conversation_id)
        if len(conversation_id.encode()) > _MAX_ID_BYTES:
            reason = f"must be at most {_MAX_ID_BYTES:,} bytes when threads are in a database"
            raise InvalidId("conversation id", conversation_id, reason)
        return conversation_id

    @contextmanager
    def _changing(self) -> Iterator[ThreadTransaction]:
        with self._write() as write:
            yield ThreadTransaction(write, self.sealer)

    def _add(
        self,
        work: ThreadTransaction,
        conversation_id: str,
        head: ThreadHead | None,
        turns: Sequence[Turn],
    ) -> None:
        head = head or ThreadHead(0, None, "", ZERO_TIME, 0)
        start, stamp = head.turn_count, self._stamp()
        numbered_turns = [*enumerate(turns, start)]
        opening = head.opening
        if opening is None:
            question_indexes = (
                index for index, t in numbered_turns if t.role == "user" and t.text.strip()
            )
            opening = next(question_indexes, None)
        work.add_turns(conversation_id, numbered_turns, stamp)
        head = replace(
            head,
            turn_count=start + len(turns),
            opening=opening,
            updated_text=latest(head.updated_text, turns),
            stamp=stamp,
        )
        work.put_head(conversation_id, head)

    def _forget(self, write: Write, conversation_id: str, index: int | None) -> None:
        if self._sidecar is not None:
            self._sidecar.forget(conversation_id, index, write)

    def _scrub_after(self, removed: bool) -> bool:
        """`removed` itself, once the words are out of the database's log."""
        if removed and not self.truth.scrub():
            location = self.truth.location
            _log.warning("%s: deleted words are in its log until readers let go of it", location)
        return removed

    def _stamp(self) -> int:
        return int.from_bytes(self._random(8)) >> 1


@contextmanager
def _lock_file(database: Path, key: str) -> Iterator[None]:
    from anaphora.store.threads.files import ThreadLocks

    try:
        with ThreadLocks(database.parent).hold(key):
            yield
    except OSError as error:
        raise translate(error, "lock", database) from error
