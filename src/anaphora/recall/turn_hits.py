"""The hits of one question to turns: what is shown of them, and with what beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta, timezone
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from anaphora.calls.moments import EARLIEST, from_epoch
from anaphora.rank.budget import LONG, fill, token_cost
from anaphora.rank.turn_table import ROLE_ASSISTANT, ROLE_USER, TurnTable
from anaphora.recall.candidates import Placed
from anaphora.recall.turn_candidates import FoundTurns
from anaphora.text.recalled import quotes_recalled
from anaphora.values.conversations import RelatedTurn, TurnHit

if TYPE_CHECKING:
    from anaphora.store.threads.conversations import Conversations

_ROLES: Final = {ROLE_USER: "user", ROLE_ASSISTANT: "assistant"}


@dataclass(frozen=True, slots=True)
class TurnHitMaker:
    """Makes the hits of what was found; `store` says which roles have no code of their own."""

    store: Conversations
    found: FoundTurns

    def best(self, placed: Iterable[Placed]) -> tuple[TurnHit, ...]:
        """The first that are `placed` and fit the limits."""
        limits, scores, finder = self.found.limits, self.found.scores, self.found.finder
        picks = fill(
            placed,
            lambda turn: token_cost(turn.candidate.text),
            top_k=limits.top_k,
            budget=limits.budget,
            whole=limits.whole,
        )
        related_turns = self._read_related([pick.hit for pick in picks])
        return tuple(
            finder.shortened(
                self._make_hit(pick.hit, related_turns), int(scores.rows[pick.hit.index]), pick.room
            )
            for pick in picks
        )

    def _read_related(self, hits: Sequence[Placed]) -> Mapping[int, RelatedTurn]:
        """The turns that the hits are about, by their places; without those forgotten since.

        They stand beside what the budget counts: of one longer than that, a passage comes.
        """
        scored_turns = self.found
        related_indexes = {
            index for placed in hits for index in (*placed.candidate.copies, *placed.previous)
        }
        related_indexes |= {placed.older_than for placed in hits if placed.older_than is not None}
        indexes = sorted(related_indexes)
        texts = scored_turns.texts_of(scored_turns.scores.rows[indexes].tolist()) if indexes else ()
        turns = {}
        for index, text in zip(indexes, texts, strict=True):
            row = int(scored_turns.scores.rows[index])
            room = LONG if token_cost(text) > max(scored_turns.limits.budget, LONG) else None
            if text:
                turn = RelatedTurn(**self._describe(row), text=text)
                turns[index] = scored_turns.finder.shortened(turn, row, room)
        return turns

    def _make_hit(self, placed: Placed, related: Mapping[int, RelatedTurn]) -> TurnHit:
        candidate, scores = placed.candidate, self.found.scores
        replacing = None if placed.older_than is None else related.get(placed.older_than)
        return TurnHit(
            **self._describe(int(scores.rows[candidate.index])),
            text=candidate.text,
            score=candidate.score,
            answers=placed.answers,
            read=candidate.read_probability,
            factors={**scores.explain(candidate.index), **candidate.changes},
            current=replacing is None,
            older_than=replacing,
            reason=placed.reason if replacing is not None else "",
            previous=tuple(related[index] for index in placed.previous if index in related),
            quotes_recalled=quotes_recalled(candidate.text),
            occurrences=tuple(related[index] for index in candidate.copies if index in related),
        )

    def _describe(self, row: int) -> dict[str, Any]:
        return describe_turn(self.store, self.found.run.view.table, row)


def describe_turn(store: Conversations, table: TurnTable, row: int) -> dict[str, Any]:
    """What a table says of a turn: the fields of a hit, but for its text."""
    speaker = int(table.speaker[row])
    conversation_id = table.conversations[int(table.conversation[row])]
    position, ts = int(table.position[row]), float(table.ts[row])
    offset = 0 if table.offset is None else int(table.offset[row])
    # A turn without a known time keeps Go's zero time, as its file has it.
    said_at = from_epoch(ts) if np.isfinite(ts) else EARLIEST
    if offset and np.isfinite(ts):
        # With the offset at which it was said, in minutes east of UTC.
        with suppress(OverflowError):
            said_at = said_at.astimezone(timezone(timedelta(minutes=offset)))
    role = _ROLES.get(int(table.role[row]), "")
    if not role:
        # Roles beside the usual two are rare and have no code: the thread itself says which.
        thread = store.get(conversation_id)
        in_thread = thread is not None and position < len(thread.turns)
        role = thread.turns[position].role if thread is not None and in_thread else "other"
    return {
        "conversation_id": conversation_id,
        "index": position,
        "role": role,
        "ts": said_at,
        "speaker": table.speakers[speaker] if speaker >= 0 else None,
    }
