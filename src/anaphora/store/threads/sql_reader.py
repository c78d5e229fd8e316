"""Conversations out of the database, with the speakers that the sidecar knows.

In come ids; out come threads, summaries, and what has changed since a sequence number. Every
question is one plain statement, so that its answer is of one moment and needs no SQLAlchemy.
Nothing is ever written here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from anaphora.errors import Tampered
from anaphora.store.crypto.columns import Sealer, open_rows
from anaphora.store.threads.gojson import Document
from anaphora.store.threads.gotime import nanoseconds, read_time, sound_time
from anaphora.store.threads.new_turn import summary_of
from anaphora.values.conversations import Thread, ThreadSummary, Turn

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database

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
