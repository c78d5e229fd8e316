"""Following conversations in a database: which have changed, and what of them is new.

In: the marks of what is indexed, and the store. Out: one `Change` a thread that differs. Where
nothing was written to the namespace, one number is read; of a conversation that only grew, only
its new turns. Never writes anything, and trusts no clock: a state of a conversation has a stamp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from anaphora.index.turns.records import (
    Change,
    Identity,
    Indexed,
    Mark,
    chain_of,
    digest_of,
    first_difference,
    record_of,
)
from anaphora.store.crypto.index import CLEAR_INDEX, IndexSealer
from anaphora.values.conversations import Degraded, Turn

if TYPE_CHECKING:
    from anaphora.store.threads.sidecar import Sidecar
    from anaphora.store.threads.sql_store import SqlConversationStore, StoredThread


class RowFollower:
    """Follows the conversations of one `SqlConversationStore`."""

    def __init__(
        self,
        store: SqlConversationStore,
        sidecar: Sidecar | None,
        sealer: IndexSealer = CLEAR_INDEX,
    ) -> None:
        self._store = store
        self._sidecar = sidecar
        self._sealer = sealer
        self._states: dict[str, Identity] = {}
        self._seen = -1
        self._just_read: int | None = None
        self._noted_from: dict[str, int] = {}
        self.problems: list[Degraded] = []

    def notes_version(self) -> int:
        """The namespace's version, -1 without a sidecar."""
        # Notes and turns share one sequence: `differing` need not ask the server again.
        self._just_read = self._store.version()
        return -1 if self._sidecar is None else self._just_read

    def noted_since(self, version: int) -> frozenset[str]:
        """Conversations whose notes changed after that version."""
        if self._sidecar is None:
            return frozenset()
        places = self._sidecar.places_since(version)
        for key, place in places.items():
            self._noted_from[key] = min(place, self._noted_from.get(key, place))
        return frozenset(places)

    def differing(self, marks: Mapping[str, Mark], only: str | None) -> list[str]:
        """Conversations whose turns are not the ones that were marked."""
        self._catch_up()
        states = self._states
        if only is not None:
            return [only] if _differs(marks.get(only), states.get(only)) else []
        changed = [key for key, state in states.items() if _differs(marks.get(key), state)]
        return changed + [key for key in marks if key not in states]

    def change(
        self, conversation_id: str, mark: Mark | None, indexed: Indexed, *, noted: bool = False
    ) -> Change | None:
        """What brings the index from `mark` to the conversation as it is now; None for nothing.

        `noted` asks to compare the speakers of turns that are indexed already.
        """
        place = self._noted_from.pop(conversation_id, 0)
        noted_from = place if noted else None
        known = _known(mark, indexed)
        # One turn more than is new: it tells whether those before it are still the same.
        start = max(0, len(known) - 1)
        if noted_from is not None and noted_from < len(known):
            start = 0
        found = self._store.stored(conversation_id, start)
        if found is None:
            return None if mark is None else Change(conversation_id, mark, 0, (), None)
        if found.start and not _continues(found, known, mark):
            found = self._store.stored(conversation_id)
            if found is None:
                return Change(conversation_id, mark, 0, (), None)
        digests = known[: found.start] + [
            digest_of(turn, self._sealer.hash_key) for turn in found.thread.turns
        ]
        first = first_difference(mark, digests, indexed)
        if noted_from is not None and mark is not None:
            first = min(first, _first_new_speaker(found, noted_from, indexed.speakers(mark)))
        identity = (found.stamp, found.turn_count, 0, 0)
        new_mark = Mark(identity, 0, len(digests), chain_of(digests))
        if mark is not None and new_mark.same_content(mark) and first == mark.count:
            return None
        records = tuple(
            record_of(turn, place, turn.speaker, digests[place], self._sealer)
            for place, turn in enumerate(found.thread.turns, found.start)
            if place >= first
        )
        return Change(conversation_id, mark, first, records, new_mark)

    def _catch_up(self) -> None:
        version, self._just_read = self._just_read, None
        if version is None:
            version = self._store.version()
        if version < self._seen:
            # Truth was put back to an earlier moment (a backup was restored).
            self._states, self._seen = {}, -1
        if version == self._seen:
            return
        for key, state in self._store.changes_since(self._seen).items():
            if state is None:
                self._states.pop(key, None)
            else:
                self._states[key] = state
        self._seen = version


def _differs(mark: Mark | None, state: Identity | None) -> bool:
    return (mark.identity if mark is not None else None) != state


def _known(mark: Mark | None, indexed: Indexed) -> list[bytes]:
    """Digests of the indexed turns, if they are those that were marked."""
    if mark is None:
        return []
    digests = list(indexed.digests(mark))
    return digests if chain_of(digests) == mark.chain else []


def _continues(found: StoredThread, known: Sequence[bytes], mark: Mark | None) -> bool:
    """Whether the turns before those that were read are the ones that were marked."""
    last = len(known) - 1 - found.start
    return mark is not None and last < len(found.stamps) and found.stamps[last] == mark.identity[0]


def _first_new_speaker(found: StoredThread, start: int, old: Sequence[str | None]) -> int:
    turns: tuple[Turn, ...] = found.thread.turns
    for place, turn in enumerate(turns, found.start):
        if start <= place < len(old) and old[place] != turn.speaker:
            return place
    return len(old)
