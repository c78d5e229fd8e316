"""What a question could find at one moment, kept to tell later what is new since.

A row that merely moved up, since a new neighbour changed the statistics of words, is not new; nor
is the turn in which the question itself was stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from anaphora.deep.evidence.questions import question_form
from anaphora.deep.evidence.scope import NamespaceEvidence, ScopedEvidence
from anaphora.deep.evidence.sources import MEMORY
from anaphora.values.deep import DeepSource

TOP: Final = 20
"""How many of the best rows are compared."""

# Beyond so many conversations only the newest are counted; a row of another one counts as new.
_COUNTED = 2_000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The ids of the best rows, the number of turns of each conversation, the last change."""

    ids: tuple[str, ...]
    counts: Mapping[str, int]
    version: int


def snapshot(lane: NamespaceEvidence, scoped: ScopedEvidence, question: str) -> Snapshot:
    """What `question` finds now."""
    # Read first: what is written meanwhile may count as new later, never the other way round.
    version, counts = lane.records.version(), _counts(lane)
    return Snapshot(tuple(one.id for one in scoped.search(question, TOP)), counts, version)


def news(
    lane: NamespaceEvidence,
    scoped: ScopedEvidence,
    question: str,
    then: Snapshot,
    query: str | None = None,
) -> tuple[DeepSource, ...]:
    """What is among the best rows for `question` and was not there at the time of `then`.

    `query` is another way to ask for the same.
    """
    own, known = question_form(question), set(then.ids)
    best = [one for one in scoped.search(query or question, TOP) if one.id not in known]
    fresh = [one for one in best if question_form(one.text) != own]
    records = lane.kept(one.id.removeprefix(MEMORY) for one in fresh)

    def is_later(one: DeepSource) -> bool:
        if one.conversation_id is None or one.index is None:
            record = records.get(one.id.removeprefix(MEMORY))
            return record is not None and record.seq > then.version
        return one.index >= then.counts.get(one.conversation_id, 0)

    return tuple(one for one in fresh if is_later(one))


def all_current(lane: NamespaceEvidence, scoped: ScopedEvidence, ids: Iterable[str]) -> bool:
    """Whether all these turns and memories are still there, and no memory of them is past."""
    wanted = list(ids)
    names = [one.removeprefix(MEMORY) for one in wanted if one.startswith(MEMORY)]
    records, now = lane.kept(names), lane.clock()
    for name in names:
        record = records.get(name)
        if record is None or record.forgotten or record.valid_to is not None:
            return False
        if record.expires_at is not None and record.expires_at <= now:
            return False
    return all(scoped.exists(one) for one in wanted if not one.startswith(MEMORY))


def _counts(lane: NamespaceEvidence) -> dict[str, int]:
    table = lane.turns.synced_view()[1].table
    names, size = table.conversations, len(table.conversations)
    last = np.full(size, -1, np.int64)
    np.maximum.at(last, table.conversation, table.position)
    kept = range(size)
    if size > _COUNTED:
        times = np.full(size, -np.inf)
        np.maximum.at(times, table.conversation, np.nan_to_num(table.ts, nan=-np.inf))
        kept = np.argsort(-times, kind="stable")[:_COUNTED].tolist()
    return {names[code]: int(last[code]) + 1 for code in kept}
