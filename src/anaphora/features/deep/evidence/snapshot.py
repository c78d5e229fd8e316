"""The best rows of a question at one moment, stored to find later what is new since.

A row that merely moved up, since a new neighbour changed the word statistics, is not new; nor is
the turn that stores the question itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from anaphora.features.deep.evidence.questions import question_form
from anaphora.features.deep.evidence.scope import NamespaceEvidence, ScopedEvidence
from anaphora.features.deep.values import DeepSource
from anaphora.store.facts import MEMORY

TOP: Final = 20
"""How many of the best rows are compared."""

# Beyond so many conversations only the newest are counted; a row of another one counts as new.
_COUNTED = 2_000


@dataclass(frozen=True, slots=True)
class EvidenceSnapshot:
    """The ids of the best rows, the number of turns of each conversation, the last change."""

    ids: tuple[str, ...]
    counts: Mapping[str, int]
    version: int


def take_snapshot(
    lane: NamespaceEvidence, scoped: ScopedEvidence, question: str
) -> EvidenceSnapshot:
    """What `question` finds now."""
    # Read first: a row written meanwhile may count as new later, never the other way round.
    version = lane.records.version()
    table = lane.turns.synced_view()[1].table
    names, size = table.conversations, len(table.conversations)
    last = np.full(size, -1, np.int64)
    np.maximum.at(last, table.conversation, table.position)
    codes = range(size)
    if size > _COUNTED:
        times = np.full(size, -np.inf)
        np.maximum.at(times, table.conversation, np.nan_to_num(table.ts, nan=-np.inf))
        codes = np.argsort(-times, kind="stable")[:_COUNTED].tolist()
    counts = {names[code]: int(last[code]) + 1 for code in codes}
    return EvidenceSnapshot(
        tuple(source.id for source in scoped.search(question, TOP)), counts, version
    )


def find_news(
    lane: NamespaceEvidence,
    scoped: ScopedEvidence,
    question: str,
    then: EvidenceSnapshot,
    query: str | None = None,
) -> tuple[DeepSource, ...]:
    """The sources among the best rows for `question` that did not exist at the time of `then`.

    `query` is another wording of the same question.
    """
    form, known_ids = question_form(question), set(then.ids)
    best_hits = [
        source for source in scoped.search(query or question, TOP) if source.id not in known_ids
    ]
    new_sources = [source for source in best_hits if question_form(source.text) != form]
    records = lane.find_records(source.id.removeprefix(MEMORY) for source in new_sources)

    def is_later(source: DeepSource) -> bool:
        if source.conversation_id is None or source.index is None:
            record = records.get(source.id.removeprefix(MEMORY))
            return record is not None and record.seq > then.version
        return source.index >= then.counts.get(source.conversation_id, 0)

    return tuple(source for source in new_sources if is_later(source))


def all_current(lane: NamespaceEvidence, scoped: ScopedEvidence, ids: Iterable[str]) -> bool:
    """Whether all these turns and memories still exist, and no memory of them is past."""
    source_ids = list(ids)
    names = [
        source_id.removeprefix(MEMORY) for source_id in source_ids if source_id.startswith(MEMORY)
    ]
    records, now = lane.find_records(names), lane.clock()
    for name in names:
        record = records.get(name)
        if record is None or record.forgotten or record.valid_to is not None:
            return False
        if record.expires_at is not None and record.expires_at <= now:
            return False
    return all(
        scoped.exists(source_id) for source_id in source_ids if not source_id.startswith(MEMORY)
    )
