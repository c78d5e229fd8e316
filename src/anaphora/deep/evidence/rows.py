"""Rows of turns for deep recall: which belong to a scope, in which order, and how they are cited.

In: a view of the index, hits. Out: rows, ids and sources. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.core.analyser import fold
from anaphora.core.arguments import from_epoch
from anaphora.core.display import one_line, visible
from anaphora.deep.moments import shown
from anaphora.values.deep import DeepSource

if TYPE_CHECKING:
    from anaphora.index.turns.view import TurnView
    from anaphora.values.conversations import TurnHit

MEMORY: Final = "memory:"
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


def memory_id(record_id: str) -> str:
    """The id by which a memory is cited: "memory:<id>"."""
    return MEMORY + record_id


def named(ids: Sequence[str]) -> str:
    """Ids that a model wrote, in a sentence of ours: quoted, escaped, and few and short enough."""
    shown = ", ".join(repr(one[:ID_CHARS]) for one in ids[:NAMED])
    return shown if len(ids) <= NAMED else f"{shown} and {len(ids) - NAMED} more"


def rows_in_scope(view: TurnView, scope: str, conversation_id: str | None) -> Rows:
    """Rows of the turns of a scope."""
    if scope == "current_session":
        assert conversation_id is not None
        return view.rows(conversation_id).astype(np.intp)
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


def line_of(turn: DeepSource) -> str:
    """A turn as one entry of the history."""
    text = turn.text.strip()
    if len(text) > HISTORY_TURN_CHARS:
        half = HISTORY_TURN_CHARS // 2
        text = text[:half] + _GAP + text[-half:]
    text = visible(" ⏎ ".join(part.strip() for part in text.splitlines()))
    who = one_line(turn.role or turn.kind, SPEAKER_CHARS)
    return f"{visible(turn.id)} [{shown(turn.ts)}] {who}: {text}"


def when_of(epoch: float) -> datetime | None:
    """The time of an epoch, None where there is none."""
    return from_epoch(epoch) if np.isfinite(epoch) else None
