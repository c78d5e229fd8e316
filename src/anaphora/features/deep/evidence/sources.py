"""Turns and memories as sources: how they are cited and formatted, and scored on one scale.

The two lanes score on different scales; a source's `score` is the probability that it contains the
answer (`rank.confidence` says how it is calibrated). A merged list never contradicts the order in
which a lane has ranked its hits. Pure: no clock, disk or model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.calls.moments import from_epoch
from anaphora.features.deep.values import DeepSource, Scope
from anaphora.ingest.secrets.masking import mask_text
from anaphora.language.analyser import STOP_WORDS, analyse, fold, query_terms
from anaphora.rank.confidence import (
    COMPARED,
    MemoryMatch,
    TurnMatch,
    memory_confidence,
    turn_confidence,
)
from anaphora.store.facts import MEMORY
from anaphora.store.records.titles import is_part, part_title
from anaphora.text.display import one_line, visible
from anaphora.text.shown_times import in_shown_zone

if TYPE_CHECKING:
    from anaphora.index.turns.view import TurnView
    from anaphora.values.conversations import TurnHit
    from anaphora.values.memories import MemoryHit, MemoryRecord


def format_time(when: datetime | None) -> str:
    """A time for a model: "2026-03-12 09:30" in the user's zone; "no time" if unknown.

    The zone is not repeated in every line: the question names it once.
    """
    return "no time" if when is None else f"{in_shown_zone(when):%Y-%m-%d %H:%M}"


RECENT_SESSIONS: Final = 10
HISTORY_TURN_CHARS: Final = 2_000
SPEAKER_CHARS: Final = 80

NAMED: Final = 5
ID_CHARS: Final = 80

MEMORY_SHARE: Final = 4
"""At most one of four results is a memory: it is a digest, and the turns are its sources."""

_GAP: Final = " […] "

Rows = NDArray[np.intp]


def turn_id(conversation_id: str, index: int) -> str:
    """The id by which a turn is cited: "conversation#index"."""
    return f"{conversation_id}#{index}"


def quote_ids(ids: Sequence[str]) -> str:
    """Ids that a model wrote, for a message: quoted, escaped, and few and short enough."""
    id_list = ", ".join(repr(source_id[:ID_CHARS]) for source_id in ids[:NAMED])
    return id_list if len(ids) <= NAMED else f"{id_list} and {len(ids) - NAMED} more"


def select_rows(view: TurnView, scope: Scope) -> Rows:
    """Rows of the turns of a scope of several conversations."""
    rows = np.arange(len(view), dtype=np.intp)
    if scope == "all_sessions" or len(view.table.conversations) <= RECENT_SESSIONS:
        return rows
    newest = rank_newest(view, rows)[:RECENT_SESSIONS]
    return rows[np.isin(view.table.conversation, newest)]


def count_turns(view: TurnView) -> dict[str, int]:
    """How many turns each conversation has."""
    table = view.table
    counts = np.bincount(table.conversation, minlength=len(table.conversations)).tolist()
    return dict(zip(table.conversations, counts, strict=True))


def rank_newest(view: TurnView, rows: Rows) -> list[int]:
    """Codes of the conversations of these rows, the one with the newest turn first."""
    table = view.table
    last_times = np.full(len(table.conversations), -np.inf)
    times = np.nan_to_num(table.ts[rows], nan=-np.inf)
    np.maximum.at(last_times, table.conversation[rows], times)
    codes = np.unique(table.conversation[rows])
    # Ids break ties, so that the order does not depend on the order of indexing.
    return sorted((int(c) for c in codes), key=lambda c: (-last_times[c], table.conversations[c]))


def sort_by_time(view: TurnView, rows: Rows) -> Rows:
    """Rows in the order of their times; those without one come first."""
    table = view.table
    times = np.nan_to_num(table.ts[rows], nan=-np.inf)
    return rows[np.lexsort((table.position[rows], table.conversation[rows], times))]


def is_called(speaker: str, name: str) -> bool:
    """Whether a speaker goes by this folded name, or by it as a first name."""
    folded_name = fold(speaker)
    return folded_name == name or folded_name.split(" ")[0] == name


def hit_to_source(hit: TurnHit) -> DeepSource:
    """A recalled turn as a source, without a score."""
    return DeepSource(
        kind="turn",
        id=turn_id(hit.conversation_id, hit.index),
        text=hit.text,
        conversation_id=hit.conversation_id,
        index=hit.index,
        role=hit.speaker or hit.role,
        ts=hit.ts if hit.ts.year > 1 else None,
    )


def record_to_source(record: MemoryRecord) -> DeepSource:
    """A memory, or a section of a document with its title, as a source."""
    if not is_part(record):
        return DeepSource("memory", MEMORY + record.id, record.text, ts=record.created_at)
    title = part_title(record)
    return DeepSource("document", MEMORY + record.id, record.text, role=title, ts=record.created_at)


def format_turn(turn: DeepSource) -> str:
    """A turn as one entry of the history."""
    text = mask_text(turn.text).strip()
    if len(text) > HISTORY_TURN_CHARS:
        half = HISTORY_TURN_CHARS // 2
        text = text[:half] + _GAP + text[-half:]
    text = visible(" ⏎ ".join(part.strip() for part in text.splitlines()))
    who = one_line(turn.role or turn.kind, SPEAKER_CHARS)
    return f"{visible(turn.id)} [{format_time(turn.ts)}] {who}: {text}"


def epoch_to_time(epoch: float) -> datetime | None:
    """The time of an epoch, None for NaN."""
    return from_epoch(epoch) if np.isfinite(epoch) else None


TURNS: Final = COMPARED
"""The number of turns to score, however small the limit: each is compared with the others."""
REST: Final = 0.0
"""Turns outside the hits count as no match: right for a list to choose from. With None they are not
counted, which gives lower chances if there is little to compare with: right for an answer without a
model."""
MEMORIES: Final = COMPARED // 2


def score_turns(
    hits: Iterable[TurnHit], lengths: Mapping[str, int], rest: float | None = REST
) -> list[DeepSource]:
    """Turns as their lane ranks them, with the chance that the evidence is there or close by.

    Close by means within 5 turns. `lengths` is the number of turns of each conversation.
    """
    ranked_hits = list(hits)
    ordered_hits = sorted(ranked_hits, key=lambda hit: -hit.score)
    matches = [
        TurnMatch(hit.score, hit.conversation_id, hit.index, lengths.get(hit.conversation_id, 0))
        for hit in ordered_hits
    ]
    names = [(hit.conversation_id, hit.index) for hit in ordered_hits]
    chances = dict(zip(names, turn_confidence(matches, rest=rest), strict=True))
    return [
        replace(hit_to_source(hit), score=chances[hit.conversation_id, hit.index])
        for hit in ranked_hits
    ]


def score_memories(
    hits: Sequence[MemoryHit], query: str, rest: float | None = REST
) -> list[DeepSource]:
    """Memories as their lane ranks them, with the chance that each is the evidence.

    They have no neighbours.
    """
    ordered_hits = sorted(hits, key=lambda hit: -hit.similarity)
    terms = {*query_terms(query), *STOP_WORDS}
    matches = [
        MemoryMatch(hit.similarity, len(set(analyse(hit.text)) - terms), "?" in hit.text)
        for hit in ordered_hits
    ]
    names = [hit.id for hit in ordered_hits]
    chances = dict(zip(names, memory_confidence(matches, rest=rest), strict=True))
    return [
        DeepSource("memory", MEMORY + hit.id, hit.text, ts=hit.created_at, score=chances[hit.id])
        for hit in hits
    ]


def merge_sources(
    turns: Sequence[DeepSource], memories: Sequence[DeepSource], limit: int
) -> tuple[DeepSource, ...]:
    """The `limit` best of both by their chances.

    Each kind keeps the order of its lane, which discriminates better between its own hits: if a
    later one has the higher chance, since it has more hits around it, both get their mean.
    """
    merged_sources: list[DeepSource] = []
    for hits in (turns, memories):
        # The nearest values that never rise: pool adjacent violators (isotonic regression).
        pools: list[tuple[float, int]] = []
        for hit in hits:
            total, many = hit.score or 0.0, 1
            while pools and pools[-1][0] / pools[-1][1] < total / many:
                before, size = pools.pop()
                total, many = total + before, many + size
            pools.append((total, many))
        chances = [total / many for total, many in pools for _ in range(many)]
        merged_sources += [
            replace(source, score=chance) for source, chance in zip(hits, chances, strict=True)
        ]
    return tuple(sorted(merged_sources, key=lambda source: -(source.score or 0.0))[:limit])
