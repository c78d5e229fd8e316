"""The thread of each message of an imported conversation: a plan, nothing is written.

A conversation is a tree of messages. One that answers the last turn of a thread goes on there; one
that answers an earlier turn starts a branch, a thread of its own that holds only what differs. So
every message is kept once, and each thread is a path of the tree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from anaphora.ingest.copies import is_stand_in
from anaphora.store.hashing import stored_turn_hash
from anaphora.store.threads.gojson import REDACTED
from anaphora.store.threads.ids import MAX_ID_CHARACTERS
from anaphora.store.threads.sidecar import ConversationNote, TurnNote
from anaphora.text.synthetic import typed_in_codex
from anaphora.values.conversations import ImportedConversation, ImportedTurn, Thread

Place = tuple[str, int]
"""A thread and an index in it."""


@dataclass(slots=True)
class ThreadPlan:
    """The plan of an import: `appends` by thread, oldest first, parents' threads first.

    `started` has a note for each thread that begins here; `adopted` are notes for turns that are
    in a thread already, without an identity or with that of a fork which repeated them; `times` are
    the times that these have, `titles` those of threads that were there. `threads` are all that
    hold a turn of this conversation, `places` where each message stands that was not forgotten.
    """

    appends: dict[str, list[ImportedTurn]] = field(default_factory=dict)
    started: dict[str, ConversationNote] = field(default_factory=dict)
    adopted: list[TurnNote] = field(default_factory=list)
    times: dict[Place, datetime] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    threads: dict[str, None] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    known: int = 0
    forgotten: int = 0


def plan_threads(
    conversation: ImportedConversation,
    known: Mapping[str, TurnNote],
    get: Callable[[str], Thread | None],
    notes_of: Callable[[str], Mapping[int, TurnNote]],
    *,
    again: bool = False,
) -> ThreadPlan:
    """Find the place of every turn. `known` is by message key, `notes_of` by index of a thread.

    A known message is believed only if the turn at its place has the hash that was noted. With
    `again`, turns that were forgotten here come in like new ones.
    """
    planner = _Planner(conversation, known, get, notes_of, again)
    for turn in conversation.turns:
        planner.place(turn)
    planner.plan.places.update(
        (key, position)
        for key, position in planner.places.items()
        if position is not None and key not in planner.gone
    )
    return planner.plan


@dataclass(slots=True)
class _ThreadState:
    """A thread as it is and will be: a hash for each turn, and which turns were redacted."""

    hashes: list[str]
    redacted: frozenset[int]


@dataclass(slots=True)
class _Planner:
    conversation: ImportedConversation
    known: Mapping[str, TurnNote]
    get: Callable[[str], Thread | None]
    notes_of: Callable[[str], Mapping[int, TurnNote]]
    again: bool
    plan: ThreadPlan = field(default_factory=ThreadPlan)
    states: dict[str, _ThreadState] = field(default_factory=dict)
    places: dict[str, Place | None] = field(default_factory=dict)
    taken: set[Place] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    branches: int = 0

    def place(self, turn: ImportedTurn) -> None:
        """Give one message its position; its parent has one already."""
        content = stored_turn_hash(turn.role, turn.text)
        note = self.known.get(turn.key)
        if note is not None and self._is_current(note) and note.turn_hash != content:
            # A program may have put something around the words that are there already.
            thread = self.get(note.conversation_id) if turn.role == "user" else None
            if thread is not None and typed_in_codex(thread.turns[note.index].text) == turn.text:
                self.plan.known += 1
                self._settle(turn.key, (note.conversation_id, note.index))
                return
            # The source changed the words under the same id: both versions are kept.
            key = f"{turn.key}~{content[:12]}"
            self._place_turn(replace(turn, key=key), content)
            self.places[turn.key] = self.places[key]
        else:
            self._place_turn(turn, content)

    def _place_turn(self, turn: ImportedTurn, content: str) -> None:
        note = self.known.get(turn.key)
        if note is not None and note.forgotten and not self.again:
            self.plan.forgotten += 1
            self.gone.add(turn.key)
            # The turn itself if it was redacted in place, else its parent.
            if note.index in self._load_state(note.conversation_id).redacted:
                self.places[turn.key] = (note.conversation_id, note.index)
            else:
                self.places[turn.key] = self._find_position(turn.parent)
            return
        if note is not None and self._is_current(note):
            self.plan.known += 1
            self._settle(turn.key, (note.conversation_id, note.index))
            return
        parent_position = self._find_position(turn.parent)
        thread_id, index = parent_position or (self.conversation.conversation_id, -1)
        state = self._load_state(thread_id)
        following = index + 1
        if following < len(state.hashes):
            if self._adopt(turn, content, (thread_id, following)):
                return
            if self._branch(turn, content, parent_position):
                return
            thread_id = next(reversed(self.plan.started))
            state = self._load_state(thread_id)
        elif not state.hashes:
            self._start(thread_id, None)
        state.hashes.append(content)
        self.plan.appends.setdefault(thread_id, []).append(turn)
        self._settle(turn.key, (thread_id, len(state.hashes) - 1))

    def _is_current(self, note: TurnNote) -> bool:
        if note.forgotten:
            return False
        hashes = self._load_state(note.conversation_id).hashes
        return note.index < len(hashes) and hashes[note.index] == note.turn_hash

    def _find_position(self, key: str | None) -> Place | None:
        if key is None:
            return None
        if key in self.places:
            return self.places[key]
        # A parent from an earlier import that is not part of this one.
        note = self.known.get(key)
        return (note.conversation_id, note.index) if note and self._is_current(note) else None

    def _settle(self, key: str, place: Place) -> None:
        self.places[key] = place
        self.taken.add(place)
        self.plan.threads[place[0]] = None

    def _adopt(self, turn: ImportedTurn, content: str, place: Place) -> bool:
        """Adopt a stored turn with the same words, and no identity of its own, as this one.

        So it is when Neo's threads are imported where they lie, the sidecar was lost, or a fork of
        the session came in first.
        """
        thread_id, index = place
        if self._load_state(thread_id).hashes[index] != content or place in self.taken:
            return False
        note = self.notes_of(thread_id).get(index)
        is_current = note is not None and bool(note.source) and note.turn_hash == content
        if note is not None and (note.forgotten or (is_current and not is_stand_in(note))):
            return False
        if is_current and turn.ts is not None:
            self.plan.times[place] = turn.ts
        source, key = self.conversation.source, self.conversation.key
        self.plan.adopted.append(
            TurnNote(thread_id, index, content, turn.speaker, source, key, turn.key)
        )
        self.plan.known += 1
        self._settle(turn.key, place)
        return True

    def _branch(self, turn: ImportedTurn, content: str, at: Place | None) -> bool:
        """Start a branch under the next free id; or adopt one that begins with this turn."""
        base = self.conversation.conversation_id
        if len(base) + 12 > MAX_ID_CHARACTERS:
            base = f"{base[:900]}-{hashlib.sha256(base.encode()).hexdigest()[:12]}"
        while True:
            self.branches += 1
            thread_id = f"{base}~{self.branches}"
            if not self._load_state(thread_id).hashes:
                self._start(thread_id, at)
                return False
            if thread_id not in self.plan.started and self._adopt(turn, content, (thread_id, 0)):
                return True

    def _start(self, thread_id: str, at: Place | None) -> None:
        main = self.conversation.conversation_id
        branch_of = (at[0] if at else main) if thread_id != main else None
        self.plan.started[thread_id] = ConversationNote(
            thread_id,
            self.conversation.source,
            self.conversation.key,
            branch_of,
            at[1] if at else None,
        )

    def _load_state(self, thread_id: str) -> _ThreadState:
        state = self.states.get(thread_id)
        if state is None:
            thread = self.get(thread_id)
            turns = thread.turns if thread else ()
            if thread is not None:
                self.plan.titles[thread_id] = thread.title
            state = _ThreadState(
                [stored_turn_hash(turn.role, turn.text) for turn in turns],
                frozenset(i for i, turn in enumerate(turns) if turn.text == REDACTED),
            )
            self.states[thread_id] = state
        return state
