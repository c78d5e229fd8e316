"""Conversations between a home and the changes that devices exchange.

Turns that were written since the last capture get a place and an identity; turns of other devices
are put among them. A conversation that is missing without a deletion is restored: a damaged file
comes back with the next sync.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import partial
from typing import Any, ClassVar, Final

from anaphora.errors import CorruptThread
from anaphora.features.sync.changes import ItemState, Patch, canonical
from anaphora.features.sync.codec import (
    NOTE,
    SESSION_PLACES,
    TURN,
    TURN_NOTES,
    BranchCodec,
    SharedTurn,
    TurnCodec,
)
from anaphora.features.sync.device import SyncedDevice
from anaphora.features.sync.items import THREAD, item_name, kind_and_key
from anaphora.features.sync.merge.turns import next_place, turns_of
from anaphora.features.sync.origins import Origins
from anaphora.store.disk import NO_FILE, Identity, identity_at
from anaphora.store.hashing import stored_turn_hash
from anaphora.store.threads.conversations import Replacement, replace_turns, thread_as_stored
from anaphora.store.threads.gojson import REDACTED, nanoseconds, read_time
from anaphora.store.threads.sidecar import ConversationNote, TurnNote
from anaphora.store.threads.sql_store import SqlConversationStore
from anaphora.values.conversations import Thread, Turn
from anaphora.values.sessions import SessionPlace

CLEARED: Final = ("title", "place")
"""Fields of a conversation that its deletion clears."""
_MICRO: Final = 1_000


@dataclass(slots=True)
class _News:
    """The differences between a conversation and the known changes."""

    set: dict[str, Any] = field(default_factory=dict)
    add: dict[str, Any] = field(default_factory=dict)
    drop: dict[str, Any] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    missing: bool = False


@dataclass(frozen=True, slots=True)
class ThreadSync:
    """Conversations of one namespace on a device."""

    _device: SyncedDevice

    kinds: ClassVar = (THREAD,)

    # The ids of turns.

    def name_of(self, conversation_id: str, index: int) -> str | None:
        """The id of the turn at a position, the same on all devices."""
        turns = self._applied_turns(conversation_id)
        return turns[index].id if 0 <= index < len(turns) else None

    def place_of(self, conversation_id: str, turn: str) -> int | None:
        """The position of a turn."""
        return next(
            (
                at
                for at, candidate in enumerate(self._applied_turns(conversation_id))
                if candidate.id == turn
            ),
            None,
        )

    @property
    def turns(self) -> TurnCodec:
        """Turns by their ids."""
        return TurnCodec(self.name_of, self.place_of)

    @property
    def origins(self) -> Origins:
        """The origins of facts."""
        return Origins(self._device.services.table_rows, self._applied_turns)

    def _applied_turns(self, conversation_id: str) -> list[SharedTurn]:
        item_id = item_name(THREAD, conversation_id)
        return turns_of(self._device.store.states([item_id], applied=True)[item_id])

    # From the home.

    def capture(self, since: int) -> Iterator[tuple[Patch, str]]:
        """The changes of conversations, each with the state that was compared.

        `since` is the number up to which notes and deletions are known.
        """
        return self._capture(since)

    def removals(self, since: int) -> Iterator[tuple[Patch, str]]:
        """The changes of conversations that were captured before."""
        return self._capture(since, known_only=True)

    def _capture(self, since: int, *, known_only: bool = False) -> Iterator[tuple[Patch, str]]:
        seen_states = {
            kind_and_key(item_id)[1]: state
            for item_id, state in self._device.store.seen_states(THREAD).items()
        }
        if known_only and not seen_states:
            return
        sidecar = self._device.services.conversation.sidecar
        changed_notes, deleted_keys = sidecar.changed_since(since), sidecar.deleted_since(since)
        session_places = sidecar.places()
        placed_ids = session_places.keys() if sidecar.places_version() > since else frozenset()
        origins = sidecar.conversation_notes()
        states = self._read_states()
        for conversation_id in sorted(seen_states if known_only else {*states, *seen_states}):
            state = states.get(conversation_id, "")
            is_deleted = sidecar.deletion_key(conversation_id) in deleted_keys
            last_seen = seen_states.get(conversation_id)
            if (
                state != last_seen
                or is_deleted
                or conversation_id in changed_notes
                or conversation_id in placed_ids
            ):
                origin, session_place = (
                    origins.get(conversation_id),
                    session_places.get(conversation_id),
                )
                yield (
                    self._capture_one(
                        conversation_id, origin, session_place, is_deleted=is_deleted
                    ),
                    state,
                )

    def _read_states(self, only: str | None = None) -> dict[str, str]:
        """A text for each conversation, or for `only` this one, that changes with it."""
        store = self._device.services.conversation.threads
        identities: Mapping[str, Identity | None]
        if not isinstance(store, SqlConversationStore):
            paths = store.files() if only is None else [(only, store.path(only))]
            identities = {key: identity_at(path) for key, path in paths}
        elif only is None:
            identities = store.changes_since(-1)
        else:
            stored_thread = store.stored(only)
            identities = {only: None if stored_thread is None else stored_thread.identity}
        missing = (None, NO_FILE)
        return {key: str(state) for key, state in identities.items() if state not in missing}

    def _read_state(self, conversation_id: str) -> str:
        return self._read_states(conversation_id).get(conversation_id, "")

    def _capture_one(
        self,
        conversation_id: str,
        origin: ConversationNote | None,
        session_place: SessionPlace | None,
        *,
        is_deleted: bool,
    ) -> Patch:
        item_id = item_name(THREAD, conversation_id)
        base = self._device.store.states([item_id], applied=True)[item_id]
        try:
            thread = thread_as_stored(self._device.services.conversation.threads, conversation_id)
        except CorruptThread:
            thread = None
        stamp = self._device.clock.next()
        turns = () if thread is None else thread.turns
        if base != (full_state := self._device.store.states([item_id])[item_id]) and _is_same(
            turns_of(full_state), turns
        ):
            # The changes of others were applied before; only the record of it is missing.
            return Patch(item_id, stamp)
        news = self._compare_turns(conversation_id, base, turns, is_deleted=is_deleted)
        if thread is not None:
            self._compare_rest(base, thread, origin, session_place, news)
        elif is_deleted:
            # The origin of the conversation stays, as for an import: it contains no text.
            news.set |= {
                name: None for name in CLEARED if name in base and base[name].value is not None
            }
        if news.missing:
            with self._device.store.change() as work:
                work.mark([item_id])
        return Patch(item_id, stamp, news.set, news.add, news.drop)

    def _compare_turns(
        self, conversation_id: str, base: ItemState, turns: Sequence[Turn], *, is_deleted: bool
    ) -> _News:
        news = _News()
        counts: Counter[tuple[str, ...]] = Counter()
        last_turn: SharedTurn | None = None
        for known_turn, turn in _align(turns_of(base), turns):
            if turn is None:
                # Only a deletion drops turns; turns that are missing without one are restored.
                if is_deleted and known_turn is not None:
                    news.drop |= {TURN + known_turn.id: None, NOTE + known_turn.id: None}
                else:
                    news.missing = True
                continue
            content = _stored_content(turn)
            if known_turn is None:
                last_turn = self._add_turn(
                    conversation_id, base, turn, counts[content], last_turn, news
                )
            else:
                last_turn = known_turn
                if known_turn.text != turn.text:
                    # A redaction: the rest of the turn, and the digests of all redactions.
                    change = base[TURN + known_turn.id]
                    cuts = change.value["by"] if change.action == "drop" else []
                    digest = hmac.new(
                        self._device.secret, turn.text.encode("utf-8", "surrogatepass"), "sha256"
                    )
                    news.drop[NOTE + known_turn.id] = None
                    cuts = {*cuts, digest.hexdigest()[:16] + self._device.clock.device}
                    news.drop[TURN + known_turn.id] = replace(known_turn, text=turn.text).line(cuts)
            counts[content] += 1
            news.names.append(last_turn.id)
        return news

    def _add_turn(
        self,
        conversation_id: str,
        base: ItemState,
        turn: Turn,
        number: int,
        last: SharedTurn | None,
        news: _News,
    ) -> SharedTurn:
        """Add a turn that was written here."""
        content = _stored_content(turn)
        key = canonical([conversation_id, *content, number]).encode()
        name = hmac.new(self._device.secret, key, "sha256").hexdigest()[:32]
        change = base.get(TURN + name)
        if change is not None and change.action == "drop":
            # It was forgotten, and was imported again: it is forgotten again.
            news.missing = True
        turn_place = next_place(
            last, nanoseconds(turn.ts_text) // _MICRO, self._device.clock.device
        )
        shared_turn = SharedTurn(name, turn_place, *content)
        news.add[TURN + name] = shared_turn.line()
        return shared_turn

    def _compare_rest(
        self,
        base: ItemState,
        thread: Thread,
        origin: ConversationNote | None,
        session_place: SessionPlace | None,
        news: _News,
    ) -> None:
        """Compare the title, the notes of turns, and the origin."""
        fields: dict[str, Any] = {"title": thread.title or None}
        if origin is not None:
            fields["origin"] = BranchCodec(self.turns).write(origin)
        if session_place is not None:
            fields["place"] = SESSION_PLACES.write(session_place)
        notes = self._device.services.conversation.sidecar.turn_notes(thread.conversation_id)
        for index, turn_note in notes.items():
            if index < len(news.names) and not turn_note.forgotten:
                turn = thread.turns[index]
                if turn_note.turn_hash == stored_turn_hash(turn.role, turn.text):
                    fields[NOTE + news.names[index]] = TURN_NOTES.write(turn_note)
        for name, content in fields.items():
            previous = base[name].value if name in base else None
            if content != previous and not (name.startswith(NOTE) and content is None):
                news.set[name] = content

    # Into the home.

    def apply(self, items: Iterable[str], captured: int) -> list[str]:
        """Apply all changes to conversations; those in which turns moved."""
        moved_items: list[str] = []
        item_ids = list(items)
        sidecar = self._device.services.conversation.sidecar
        origins, session_places = (
            (sidecar.conversation_notes(), sidecar.places()) if item_ids else ({}, {})
        )
        for item_id in item_ids:
            _, conversation_id = kind_and_key(item_id)
            state = self._device.store.states([item_id])[item_id]
            previous_turns = self._applied_turns(conversation_id)
            merged_turns = turns_of(state)
            thread = thread_as_stored(self._device.services.conversation.threads, conversation_id)
            stored_turns = () if thread is None else thread.turns
            turns = [
                Turn(turn.role, turn.text, read_time(turn.time), turn.time, turn.intent)
                for turn in merged_turns
            ]
            notes = list(_build_notes(conversation_id, merged_turns))
            title = (state["title"].value if "title" in state else None) or ""
            texts = {turn.text for turn in turns}
            lost_texts = [
                turn.text
                for turn in stored_turns
                if turn.text not in texts and turn.text != REDACTED
            ]
            replacement = Replacement(stored_turns, turns, notes, title, lost_texts)
            turns_by_id = {turn.id: (at, turn.text) for at, turn in enumerate(merged_turns)}
            moves = {
                at: turns_by_id[turn.id]
                for at, turn in enumerate(previous_turns)
                if turn.id in turns_by_id
            }
            if self._read_state(conversation_id) != self._device.store.last_seen_state(item_id):
                # A concurrent write must be captured first.
                continue
            follow = partial(self.origins.follow, conversation_id, moves)
            store = self._device.services.conversation.threads
            if not replace_turns(store, conversation_id, replacement, follow):
                continue
            self._note_rest(conversation_id, state, origins, session_places)
            if [turn.id for turn in merged_turns[: len(previous_turns)]] != [
                turn.id for turn in previous_turns
            ]:
                moved_items.append(item_id)
            with self._device.store.change() as work:
                work.clean([item_id], self._read_state(conversation_id))
        return moved_items

    def neighbours(self, items: Collection[str]) -> list[str]:
        """None: a conversation names no others by their positions."""
        return []

    def _note_rest(
        self,
        conversation_id: str,
        state: ItemState,
        origins: Mapping[str, ConversationNote],
        session_places: Mapping[str, SessionPlace],
    ) -> None:
        sidecar = self._device.services.conversation.sidecar
        if "origin" in state:
            note = BranchCodec(self.turns).read(conversation_id, state["origin"].value)
            if origins.get(conversation_id) != note:
                sidecar.note_conversation(note)
        if "place" in state and state["place"].value is None:
            sidecar.forget_place(conversation_id)
        elif "place" in state:
            session_place = SessionPlace(**SESSION_PLACES.read(state["place"].value))
            if session_places.get(conversation_id) != session_place:
                sidecar.note_place(conversation_id, session_place)


def _stored_content(turn: Turn) -> tuple[str, str, str, str]:
    return turn.role, turn.text, turn.ts_text, turn.intent_id


def _merged_content(turn: SharedTurn) -> tuple[str, str, str, str]:
    return turn.role, turn.text, turn.time, turn.intent


def _is_same(turns: Sequence[SharedTurn], stored: Sequence[Turn]) -> bool:
    return list(map(_merged_content, turns)) == list(map(_stored_content, stored))


def _align(
    merged: Sequence[SharedTurn], turns: Sequence[Turn]
) -> Iterator[tuple[SharedTurn | None, Turn | None]]:
    """Pairs of a known turn and the same turn here; None for a missing or new one."""
    count = len(merged)
    if _is_same(merged, turns[:count]):
        yield from zip(merged, turns, strict=False)
        yield from ((None, turn) for turn in turns[count:])
        return
    merged_contents, stored_contents = (
        list(map(_merged_content, merged)),
        list(map(_stored_content, turns)),
    )
    blocks = SequenceMatcher(None, merged_contents, stored_contents, autojunk=False).get_opcodes()
    for kind, start, end, turn_start, turn_end in blocks:
        if kind == "equal":
            yield from zip(merged[start:end], turns[turn_start:turn_end], strict=True)
            continue
        waiting = list(merged[start:end])
        for turn in turns[turn_start:turn_end]:
            at = next(
                (
                    at
                    for at, merged_turn in enumerate(waiting)
                    if _is_redaction_of(merged_turn, turn)
                ),
                None,
            )
            if at is None:
                yield None, turn
                continue
            yield from ((merged_turn, None) for merged_turn in waiting[:at])
            yield waiting[at], turn
            del waiting[: at + 1]
        yield from ((merged_turn, None) for merged_turn in waiting)


def _is_redaction_of(old: SharedTurn, turn: Turn) -> bool:
    """Whether it is the same turn after a redaction."""
    is_same = (old.role, old.time, old.intent) == (turn.role, turn.ts_text, turn.intent_id)
    return is_same and REDACTED in turn.text


def _build_notes(conversation_id: str, turns: Sequence[SharedTurn]) -> Iterator[TurnNote]:
    for index, turn in enumerate(turns):
        if turn.note is not None:
            turn_hash = stored_turn_hash(turn.role, turn.text)
            yield TurnNote(conversation_id, index, turn_hash, **TURN_NOTES.read(turn.note))
