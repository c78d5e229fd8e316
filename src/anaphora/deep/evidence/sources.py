"""Turns and memories as sources: how they are cited and shown, and weighed on one scale.

The scores of the two lanes are not of one scale; a source's `score` is the probability that the
answer is there (`rank.confidence` says how it is calibrated). As a list to choose from it never
contradicts the order in which a lane has ranked its hits. Pure: no clock, disk or model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.core.analyser import STOP_WORDS, analyse, fold, query_terms
from anaphora.core.arguments import from_epoch
from anaphora.core.display import one_line, visible
from anaphora.core.shown_times import in_shown_zone
from anaphora.ingest.secrets.masking import mask_text
from anaphora.rank.confidence import (
    COMPARED,
    MemoryMatch,
    TurnMatch,
    memory_confidence,
    turn_confidence,
)
from anaphora.store.documents import is_section, section_title
from anaphora.values.deep import DeepSource, Scope

if TYPE_CHECKING:
    from anaphora.index.turns.view import TurnView
    from anaphora.values.conversations import TurnHit
    from anaphora.values.memories import MemoryHit, MemoryRecord


def shown(when: datetime | None) -> str:
    """A time for a model: "2026-03-12 09:30", the user's; "no time" where it is not known.

    The question says the zone, once: these stand in every line.
    """
    return "no time" if when is None else f"{in_shown_zone(when):%Y-%m-%d %H:%M}"


MEMORY: Final = "memory:"
"""What the id of a memory has before it where it is cited."""
RECENT_SESSIONS: Final = 10
HISTORY_TURN_CHARS: Final = 2_000
SPEAKER_CHARS: Final = 80

NAMED: Final = 5
ID_CHARS: Final = 80

MEMORY_SHARE: Final = 4
"""Of so many results, one at most is a memory: it is a digest, and turns are what it stands on."""

_GAP: Final = " […] "

Rows = NDArray[np.intp]


def turn_id(conversation_id: str, index: int) -> str:
    """The id by which a turn is cited: "conversation#index"."""
    return f"{conversation_id}#{index}"


def named(ids: Sequence[str]) -> str:
    """Ids that a model wrote, in a sentence of ours: quoted, escaped, and few and short enough."""
    shown = ", ".join(repr(one[:ID_CHARS]) for one in ids[:NAMED])
    return shown if len(ids) <= NAMED else f"{shown} and {len(ids) - NAMED} more"


def rows_in_scope(view: TurnView, scope: Scope) -> Rows:
    """Rows of the turns of a scope of several conversations."""
    rows = np.arange(len(view), dtype=np.intp)
    if scope == "all_sessions" or len(view.table.conversations) <= RECENT_SESSIONS:
        return rows
    newest = newest_first(view, rows)[:RECENT_SESSIONS]
    return rows[np.isin(view.table.conversation, newest)]


def lengths_of(view: TurnView) -> dict[str, int]:
    """How many turns each conversation has."""
    table = view.table
    counts = np.bincount(table.conversation, minlength=len(table.conversations)).tolist()
    return dict(zip(table.conversations, counts, strict=True))


def newest_first(view: TurnView, rows: Rows) -> list[int]:
    """Codes of the conversations of these rows, the one with the newest turn first."""
    table = view.table
    last = np.full(len(table.conversations), -np.inf)
    times = np.nan_to_num(table.ts[rows], nan=-np.inf)
    np.maximum.at(last, table.conversation[rows], times)
    codes = np.unique(table.conversation[rows])
    # Ids last, so that the order is the same whatever was indexed first.
    return sorted((int(c) for c in codes), key=lambda c: (-last[c], table.conversations[c]))


def by_time(view: TurnView, rows: Rows) -> Rows:
    """Rows in the order of their times; those without one come first."""
    table = view.table
    times = np.nan_to_num(table.ts[rows], nan=-np.inf)
    return rows[np.lexsort((table.position[rows], table.conversation[rows], times))]


def is_called(known: str, name: str) -> bool:
    """Whether a speaker goes by this folded name, or by it as a first name."""
    folded = fold(known)
    return folded == name or folded.split(" ")[0] == name


def of_hit(hit: TurnHit) -> DeepSource:
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


def of_record(record: MemoryRecord) -> DeepSource:
    """A memory, or a section of a document, which says where it stands, as a source."""
    if not is_section(record):
        return DeepSource("memory", MEMORY + record.id, record.text, ts=record.created_at)
    where = section_title(record)
    return DeepSource("document", MEMORY + record.id, record.text, role=where, ts=record.created_at)


def line_of(turn: DeepSource) -> str:
    """A turn as one entry of the history."""
    text = mask_text(turn.text).strip()
    if len(text) > HISTORY_TURN_CHARS:
        half = HISTORY_TURN_CHARS // 2
        text = text[:half] + _GAP + text[-half:]
    text = visible(" ⏎ ".join(part.strip() for part in text.splitlines()))
    who = one_line(turn.role or turn.kind, SPEAKER_CHARS)
    return f"{visible(turn.id)} [{shown(turn.ts)}] {who}: {text}"


def when_of(epoch: float) -> datetime | None:
    """The time of an epoch, None where there is none."""
    return from_epoch(epoch) if np.isfinite(epoch) else None


TURNS: Final = COMPARED
"""So many turns are looked at, however few are wanted: each is weighed against the others."""
REST: Final = 0.0
"""What a search has not found matches nothing. To choose from a list that is what its hits stand
out from; an answer without a model (None) must rather be too rare where there is little to compare
with."""
MEMORIES: Final = COMPARED // 2


def weighed_turns(
    hits: Iterable[TurnHit], lengths: Mapping[str, int], rest: float | None = REST
) -> list[DeepSource]:
    """Turns as their lane ranks them, with the chance that the evidence is there or close by.

    Close by are 5 turns. `lengths` says how many turns each conversation has.
    """
    ranked = list(hits)
    ordered = sorted(ranked, key=lambda hit: -hit.score)
    placed = [
        TurnMatch(hit.score, hit.conversation_id, hit.index, lengths.get(hit.conversation_id, 0))
        for hit in ordered
    ]
    names = [(hit.conversation_id, hit.index) for hit in ordered]
    chances = dict(zip(names, turn_confidence(placed, rest=rest), strict=True))
    return [replace(of_hit(hit), score=chances[hit.conversation_id, hit.index]) for hit in ranked]


def weighed_memories(
    hits: Sequence[MemoryHit], query: str, rest: float | None = REST
) -> list[DeepSource]:
    """Memories as their lane ranks them, with the chance that each is the evidence.

    They have no neighbours.
    """
    ordered = sorted(hits, key=lambda hit: -hit.similarity)
    terms = {*query_terms(query), *STOP_WORDS}
    told = [
        MemoryMatch(hit.similarity, len(set(analyse(hit.text)) - terms), "?" in hit.text)
        for hit in ordered
    ]
    names = [hit.id for hit in ordered]
    chances = dict(zip(names, memory_confidence(told, rest=rest), strict=True))
    return [
        DeepSource("memory", MEMORY + hit.id, hit.text, ts=hit.created_at, score=chances[hit.id])
        for hit in hits
    ]


def one_list(
    turns: Sequence[DeepSource], memories: Sequence[DeepSource], limit: int
) -> tuple[DeepSource, ...]:
    """The `limit` best of both by their chances.

    Each kind keeps the order of its lane, which is better at telling its hits apart: where a later
    one has the higher chance, since more hits stand around it, both get the mean of theirs.
    """
    mixed = [
        replace(one, score=chance)
        for hits in (turns, memories)
        for one, chance in zip(hits, _falling([hit.score or 0.0 for hit in hits]), strict=True)
    ]
    return tuple(sorted(mixed, key=lambda one: -(one.score or 0.0))[:limit])


def _falling(chances: Sequence[float]) -> list[float]:
    """The nearest values that never rise: pool adjacent violators (isotonic regression)."""
    pools: list[tuple[float, int]] = []
    for chance in chances:
        total, many = chance, 1
        while pools and pools[-1][0] / pools[-1][1] < total / many:
            before, size = pools.pop()
            total, many = total + before, many + size
        pools.append((total, many))
    return [total / many for total, many in pools for _ in range(many)]
