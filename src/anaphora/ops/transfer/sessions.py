"""The places of agents' sessions, what was said of them, and calls of tools, in an export and back.

Both are imported for imported threads, a call for a turn that exists here with the same text;
existing data stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from anaphora.ingest.sessions import NotedCall
from anaphora.ops.transfer.reading import BatchReader
from anaphora.store.line_fields import LineFields, string, text_in, time_in
from anaphora.store.lines import Line, present
from anaphora.store.namespace import STEP
from anaphora.store.records.rows import PAIRS_KEY, PROJECT_PAIR
from anaphora.store.threads.ids import check_id
from anaphora.values.sessions import SessionPlace

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_PLACE: Final = LineFields(SessionPlace, ("client", "directory", "repository", "branch"))


def session_lines(
    services: NamespaceServices, hashes: Mapping[str, Sequence[str]]
) -> Iterator[Line]:
    """The places of exported sessions, and the calls after their turns."""
    marks = services.conversation.session_places.marks()
    for conversation_id, session_place in sorted(services.conversation.sidecar.places().items()):
        if conversation_id in hashes:
            members = {
                name: member for name, member in _PLACE.write(session_place).items() if member
            }
            yield {"kind": "session_place", "thread": conversation_id, **members} | present(
                {"marks": marks.get(conversation_id)}
            )
    for pair in services.conversation.project_facts.with_same_key(PAIRS_KEY):
        payload = pair.payload or {}
        yield {
            "kind": PROJECT_PAIR,
            "one": payload.get("one"),
            "other": payload.get("other"),
            "said": pair.text,
            **present({"ts": pair.created_at}),
        }
    since = -1
    while calls := services.conversation.tool_calls.changed_since(since, STEP):
        for record in calls:
            turns = hashes.get(record.conversation_id or "", ())
            if record.path and record.turn_index is not None and record.turn_index < len(turns):
                yield {
                    "kind": "tool_call",
                    "thread": record.conversation_id,
                    "index": record.turn_index,
                    "key": record.path,
                    "name": next(iter(record.tags), ""),
                    "text": record.text,
                    **present({"ts": record.created_at}),
                }
        since = calls[-1].seq


class SessionReader(BatchReader[NotedCall]):
    """Reads the lines about sessions of one namespace, after its threads and their notes."""

    def parse(self, line: Line) -> NotedCall | None:
        """A call, if it is imported; places and pairs are written at once. ValueError."""
        target = self.target
        if line["kind"] == PROJECT_PAIR:
            self._read_pair(line)
            return None
        exported_id = check_id(string(line, "thread"))
        if exported_id in target.deleted_threads:
            return None
        conversation_id = target.thread_ids.get(exported_id, exported_id)
        if line["kind"] == "session_place":
            if conversation_id in target.turn_hashes:
                session_place = SessionPlace(**_PLACE.read(line))
                sessions, marks = target.services.conversation.sessions, text_in(line, "marks")
                sessions.note_place([conversation_id], session_place, marks or "")
            return None
        index, when = line.get("index"), time_in(line, "ts")
        if isinstance(index, bool) or not isinstance(index, int) or when is None:
            raise ValueError("a tool call without its turn or its time")
        if not 0 <= index < len(target.turn_hashes.get(conversation_id, ())):
            raise ValueError("a tool call after a turn that is not in the file")
        note = target.services.conversation.sidecar.turn_notes(conversation_id, index).get(index)
        if note is not None and note.forgotten and not target.again:
            return None
        key, name, text = (string(line, part) for part in ("key", "name", "text"))
        return NotedCall(key, name, text, when, conversation_id, index)

    def _read_pair(self, line: Line) -> None:
        conversation = self.target.services.conversation
        first, second, verdict = (string(line, part) for part in ("one", "other", "said"))
        when = time_in(line, "ts")
        if when is None or verdict not in {"same", "apart"}:
            raise ValueError("a pair of projects without what was said, or when")
        stored_pairs = conversation.project_facts.with_same_key(PAIRS_KEY)
        payloads = ((pair.created_at, pair.payload or {}) for pair in stored_pairs)
        stored_keys = {(at, payload.get("one"), payload.get("other")) for at, payload in payloads}
        if (when, first, second) not in stored_keys:
            conversation.sessions.note_pair(first, second, when, same=verdict == "same")

    def write(self, batch: Sequence[tuple[int, NotedCall]]) -> None:
        """As `BatchReader.write`."""
        calls = [call for _, call in batch]
        self.target.counts["tool calls added"] += (
            self.target.services.conversation.sessions.keep_calls(calls)
        )
