"""What is kept of an agent's session beside its turns: where it took place, and its tool calls.

A call is a record of its own kind, one line without secrets, that no lane for what people said
reads. It stays as long as the turn that it came after: with that turn it is deleted or redacted,
and it does not come in where that turn was forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from anaphora.core.repositories import repository_of
from anaphora.ingest.secrets.redacting import redact
from anaphora.store.namespace import portions
from anaphora.store.records.rows import session_key
from anaphora.values.conversations import ImportedConversation
from anaphora.values.memories import MemoryRecord
from anaphora.values.sessions import SessionPlace

if TYPE_CHECKING:
    from anaphora.ingest.branching import ThreadPlan
    from anaphora.store.records.store import Records
    from anaphora.store.records.transaction import RecordTransaction
    from anaphora.store.threads.sidecar import Sidecar

_NO_TIME: Final = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class NotedCall:
    """A line about a call: `key` is its identity in its source, the turn is what it came after.

    A `final` one is told again where it is here already.
    """

    key: str
    name: str
    line: str
    ts: datetime
    conversation_id: str
    index: int
    final: bool = False


class SessionWriter:
    """Keeps places and tool calls of the sessions of one namespace. `ids` are new record ids."""

    def __init__(self, sidecar: Sidecar, calls: Records, ids: Callable[[], str]) -> None:
        self._sidecar = sidecar
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
        """Keep calls that are not here, without secrets; how many were new."""
        count = 0
        for some in portions(calls):
            with self._calls.change() as work:
                count += _put_all(work, some, self._ids)
        return count

    def note_place(self, conversation_ids: Iterable[str], place: SessionPlace) -> None:
        """Note where sessions took place; what is known and not told again stays."""
        wanted = list(conversation_ids)
        known = self._sidecar.places() if wanted else {}
        found = replace(place, repository=place.repository or repository_of(place.directory))
        for one in wanted:
            old = known.get(one, SessionPlace())
            new = SessionPlace(
                found.client or old.client,
                old.directory or found.directory,
                old.repository or found.repository,
                found.branch or old.branch,
            )
            if new != old:
                self._sidecar.note_place(one, new)

    def forget_removed(self, conversation_id: str, left: frozenset[int] | None) -> bool:
        """Drop what hangs on turns that are gone; whether there was any.

        `left` are the places of turns that still have their words, None where the conversation was
        deleted.
        """
        if left is None:
            self._sidecar.forget_place(conversation_id)
        with self._calls.change() as work:
            held = work.having(session_key(conversation_id))
            gone = [one.id for one in held if left is None or one.turn_index not in left]
            work.erase(gone)
        return bool(gone)


def _put_all(work: RecordTransaction, calls: Iterable[NotedCall], ids: Callable[[], str]) -> int:
    """Add the calls that are not there; one whose outcome is known by now is told again."""
    count = 0
    wanted = {call.key: call for call in calls}
    work.load(paths=wanted)
    for key, call in wanted.items():
        line = redact(call.line).text
        known = work.versions(key)
        if not known:
            record = MemoryRecord(
                ids(), line, "episodic", call.ts, call.ts, call.ts, 0,
                path=key, tags=(call.name,),
                conversation_id=call.conversation_id, turn_index=call.index,
            )  # fmt: skip
            work.add(record, session_key(call.conversation_id))
            count += 1
        elif known[0].text != line and call.final:
            work.change(known[0].id, text=line)
    return count
