"""How notes of an export meet those that are there: speakers, sources, what was forgotten.

In: lines about conversations and turns, after the threads that they speak of. Out: notes in the
sidecar, for turns that stand here with the very words that stood in the export. What is known here
stays, and what was forgotten here stays forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from anaphora.container.namespace import NamespaceServices
from anaphora.ops.lines import string
from anaphora.store.hashing import stored_turn_hash
from anaphora.store.threads.ids import check_id
from anaphora.store.threads.sidecar import ConversationNote, TurnNote
from anaphora.values.conversations import Thread

_BATCH = 256


@dataclass(slots=True)
class NotesIn:
    """Takes the notes of one namespace. `again`: what was forgotten here comes back, too.

    `ids` tells under which id a thread of the export is here.
    """

    lane: NamespaceServices
    again: bool = False
    ids: dict[str, str] = field(default_factory=dict)
    _left_out: set[str] = field(default_factory=set)
    _hashes: dict[str, list[str]] = field(default_factory=dict)
    _waiting: list[TurnNote] = field(default_factory=list)
    _here: dict[str, Mapping[int, TurnNote]] = field(default_factory=dict)
    _conversations: dict[str, ConversationNote] | None = None

    def came(self, thread: Thread, conversation_id: str) -> None:
        """Learn of a thread that came in, and under which id."""
        self.ids[thread.conversation_id] = conversation_id
        self._hashes[conversation_id] = [stored_turn_hash(t.role, t.text) for t in thread.turns]

    def left_out(self, conversation_id: str) -> None:
        """Learn of a thread that stays away, since it was deleted here."""
        self._left_out.add(conversation_id)

    def take(self, found: Mapping[str, Any]) -> None:
        """Take a line. ValueError for one that cannot be read."""
        named = check_id(string(found, "thread"))
        if named in self._left_out:
            return
        conversation_id = self.ids.get(named, named)
        if found["kind"] == "conversation_note":
            self._conversation(conversation_id, found)
            return
        index = found.get("index")
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise ValueError('"index" is no number from 0 on')
        note = TurnNote(
            conversation_id,
            index,
            "",
            _text(found, "speaker"),
            _text(found, "source"),
            _text(found, "source_key"),
            _text(found, "message_key"),
            forgotten=found["kind"] == "forgotten_turn",
        )
        if note.forgotten:
            self._forgotten(note)
        else:
            self._turn(note)

    def flush(self) -> None:
        """Write what waits."""
        waiting, self._waiting = self._waiting, []
        self.lane.sidecar.note_turns(waiting)
        self._here = {}

    def _turn(self, note: TurnNote) -> None:
        hashes = self._hashes.get(note.conversation_id, [])
        if note.index >= len(hashes):
            raise ValueError("a note about a turn that did not come")
        whole = TurnNote(
            note.conversation_id,
            note.index,
            hashes[note.index],
            note.speaker,
            note.source,
            note.source_key,
            note.message_key,
        )
        here = self._notes_here(note.conversation_id).get(note.index)
        if here == whole or (here is not None and here.turn_hash == whole.turn_hash):
            return
        if here is not None and here.forgotten and not self.again:
            return
        self._wait(whole)

    def _forgotten(self, note: TurnNote) -> None:
        """Let a message that was forgotten there stay away here, unless it lives here."""
        if note.source is None or note.source_key is None or note.message_key is None:
            return
        if note.message_key in self.lane.sidecar.known(note.source, note.source_key):
            return
        if self._notes_here(note.conversation_id).get(note.index) is not None:
            # Its place has a note of its own here, which must not go.
            return
        self.flush()
        self.lane.sidecar.note_turns([note])
        self.lane.sidecar.forget(note.conversation_id, note.index)

    def _conversation(self, conversation_id: str, found: Mapping[str, Any]) -> None:
        branch_of = _text(found, "branch_of")
        if self._conversations is None:
            self._conversations = self.lane.sidecar.conversation_notes()
        if conversation_id in self._conversations:
            return
        note = ConversationNote(
            conversation_id,
            _text(found, "source"),
            _text(found, "source_key"),
            None if branch_of is None else self.ids.get(branch_of, branch_of),
            found.get("branch_at"),
        )
        self._conversations[conversation_id] = note
        self.lane.sidecar.note_conversation(note)

    def _notes_here(self, conversation_id: str) -> Mapping[int, TurnNote]:
        if conversation_id not in self._here:
            if len(self._here) >= _BATCH:
                self._here = {}
            self._here[conversation_id] = self.lane.sidecar.turn_notes(conversation_id)
        return self._here[conversation_id]

    def _wait(self, note: TurnNote) -> None:
        self._waiting.append(note)
        if len(self._waiting) >= _BATCH:
            self.flush()


def _text(found: Mapping[str, Any], name: str) -> str | None:
    return None if found.get(name) is None else string(found, name)
