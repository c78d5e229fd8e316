"""The stored parts of an agent's session besides its turns: its location and its tool calls.

A call is a record of its own kind, one line without secrets, that no lane for what people said
reads. It stays as long as the turn that it came after: with that turn it is deleted or redacted,
and it does not come in where that turn was forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from anaphora.ingest.secrets.redacting import redact
from anaphora.store.namespace import portions
from anaphora.store.records.rows import (
    FOLDERS_KEY,
    INDEXED_FOLDER,
    MARKS_KEY,
    PAIRS_KEY,
    PROJECT_PAIR,
    SESSION_MARK,
    session_key,
)
from anaphora.system.repositories import checkout_of, real_folder
from anaphora.values.conversations import ImportedConversation
from anaphora.values.memories import MemoryRecord
from anaphora.values.sessions import SessionPlace

if TYPE_CHECKING:
    from anaphora.ingest.branching import ThreadPlan
    from anaphora.store.records.store import Records
    from anaphora.store.threads.sidecar import Sidecar

_NO_TIME: Final = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class NotedCall:
    """A line about a call: `key` is its identity in its source, the turn is what it came after.

    A `final` one replaces a line that is stored already.
    """

    key: str
    name: str
    line: str
    ts: datetime
    conversation_id: str
    index: int
    final: bool = False


class SessionWriter:
    """Keeps places and tool calls of the sessions of one namespace. `ids` are new record ids.

    `facts` are the records of what was said of two projects, of marks and of indexed folders.
    """

    def __init__(
        self, sidecar: Sidecar, calls: Records, ids: Callable[[], str], facts: Records
    ) -> None:
        self._sidecar = sidecar
        self._facts = facts
        self._calls = calls
        self._ids = ids

    def keep(self, item: ImportedConversation, plan: ThreadPlan) -> int:
        """Keep what an imported conversation tells beside its turns; how many calls were new."""
        if item.place is not None:
            self.note_place(plan.threads, item.place)
        return self.keep_calls(
            NotedCall(
                f"{item.source}/{item.key}/{call.key}",
                call.name,
                call.line,
                call.ts or _NO_TIME,
                *plan.places[call.after],
                final=bool(call.outcome),
            )
            for call in item.calls
            if call.after in plan.places
        )

    def keep_calls(self, calls: Iterable[NotedCall]) -> int:
        """Store new calls, without secrets; returns how many were new."""
        count = 0
        for portion in portions(calls):
            with self._calls.change() as work:
                # A call with an outcome by now is written again.
                added_count = 0
                calls_by_path = {call.key: call for call in portion}
                work.load(paths=calls_by_path)
                for key, call in calls_by_path.items():
                    line = redact(call.line).text
                    versions = work.versions(key)
                    if not versions:
                        record = MemoryRecord(
                            self._ids(), line, "episodic", call.ts, call.ts, call.ts, 0,
                            path=key, tags=(call.name,),
                            conversation_id=call.conversation_id, turn_index=call.index,
                        )  # fmt: skip
                        work.add(record, session_key(call.conversation_id))
                        added_count += 1
                    elif versions[0].text != line and call.final:
                        work.change(versions[0].id, text=line)
                count += added_count
        return count

    def note_place(
        self, conversation_ids: Iterable[str], place: SessionPlace, marks: str = ""
    ) -> None:
        """Note where sessions took place; what is known and not told again stays.

        Without `marks`, those of the repository that is there now.
        """
        ids = list(conversation_ids)
        known_sessions = self._sidecar.places() if ids else {}
        directory = place.directory and real_folder(place.directory)
        checkout = checkout_of(directory)
        here_marks = marks or " ".join(sorted(checkout.marks))
        for conversation_id in ids:
            old_place = known_sessions.get(conversation_id, SessionPlace())
            new_place = SessionPlace(
                place.client or old_place.client,
                old_place.directory or directory,
                old_place.repository or place.repository or checkout.name,
                place.branch or old_place.branch,
            )
            is_here = new_place.directory in {directory, place.directory}
            is_new = bool(is_here and here_marks) and not self._facts.history(conversation_id)
            if is_new:
                record = MemoryRecord(
                    self._ids(), here_marks, "semantic", _NO_TIME, _NO_TIME, _NO_TIME, 0,
                    path=conversation_id,
                )  # fmt: skip
                with self._facts.change(SESSION_MARK) as work:
                    work.add(record, MARKS_KEY)
            if is_new or new_place != old_place:
                self._sidecar.note_place(conversation_id, new_place)

    def note_folder(self, project_id: str, root: str) -> None:
        """Note where an indexed project lies, and in which repository, in place of what was known;
        for "" nothing is known any more."""
        stored_records = self._facts.history(project_id)
        checkout = checkout_of(root)
        payload = {
            "repository": checkout.name,
            "marks": " ".join(sorted(checkout.marks)),
            "within": checkout.within,
        }
        if [(record.text, record.payload) for record in stored_records] == [(root, payload)]:
            return
        with self._facts.change(INDEXED_FOLDER) as work:
            work.erase([record.id for record in stored_records])
            if root:
                record = MemoryRecord(
                    self._ids(), root, "semantic", _NO_TIME, _NO_TIME, _NO_TIME, 0,
                    path=project_id, payload=payload,
                )  # fmt: skip
                work.add(record, FOLDERS_KEY)

    def note_pair(self, one: str, other: str, at: datetime, *, same: bool) -> None:
        """Keep that two projects, by their keys, are one, or that they are not."""
        # With its time: what is said again later is another statement, on other devices as well.
        text, payload = "same" if same else "apart", {"one": one, "other": other, "at": str(at)}
        record = MemoryRecord(self._ids(), text, "semantic", at, at, at, 0, payload=payload)
        with self._facts.change(PROJECT_PAIR) as work:
            work.add(record, PAIRS_KEY)

    def forget_removed(self, conversation_id: str, left: frozenset[int] | None) -> bool:
        """Drop what hangs on turns that are gone; whether there was any.

        `left` are the places of turns that still have their words, None if the conversation was
        deleted.
        """
        if left is None:
            self._sidecar.forget_place(conversation_id)
            if marks := self._facts.history(conversation_id):
                with self._facts.change(SESSION_MARK) as work:
                    work.erase([record.id for record in marks])
        with self._calls.change() as work:
            calls = work.having(session_key(conversation_id))
            removed_ids = [call.id for call in calls if left is None or call.turn_index not in left]
            work.erase(removed_ids)
        return bool(removed_ids)
