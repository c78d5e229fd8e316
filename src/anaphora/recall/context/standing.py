"""What was kept by `remember`, as a new session needs it: rules, preferences, decisions, the rest.

What a memory is, its labels say (path, category, tags, type), else its words. What holds now alone
comes: neither what was replaced, nor what has expired. Of a kind, what was said most often comes
first, then the newest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from anaphora.core.display import cut
from anaphora.core.recalled import strip_recalled
from anaphora.core.shown_times import shown_day
from anaphora.values.memories import LABELS, CoreKind, MemoryRecord
from anaphora.values.projects import ContextMemory

if TYPE_CHECKING:
    from anaphora.index.turns.view import TurnView
    from anaphora.store.records.store import Records
    from anaphora.store.threads.conversations import Conversations

LOOKED_AT: Final = 500
"""Memories, the last changed first, among which those of a warm-up are chosen."""
LATELY: Final = timedelta(days=14)
"""How long a new value counts as a change."""
SESSIONS: Final = 3
TEXT: Final = 300
"""Characters of a memory, or of a turn, that are shown."""

_NAMES: Final[Mapping[str, CoreKind]] = {
    "constraint": "constraint",
    "constraints": "constraint",
    "rule": "constraint",
    "rules": "constraint",
    "instruction": "constraint",
    "instructions": "constraint",
    "style": "constraint",
    "preference": "preference",
    "preferences": "preference",
    "decision": "decision",
    "decisions": "decision",
}
_WORDS: Final[tuple[tuple[CoreKind, str], ...]] = (
    ("preference", r"prefer\w*|likes?|loves?|hates?|dislikes?|favou?rites?|rather than|bevorzugt"),
    (
        "constraint",
        r"always|never|must(?:n['’]t)?|do(?:n['’]t| not)|should(?:n['’]t)?|only ever|avoid"
        r"|make sure|answers? (?:in|with|short)|no more than|immer|niemals|siempre|nunca",
    ),
    (
        "decision",
        r"decided|decision|agreed|chose|chosen|settled on|switched|moved (?:to|from)|migrated|"
        r"we (?:will )?use|instead of|entschieden|decidimos|decidió",
    ),
)
_PATTERNS: Final = tuple(
    (kind, re.compile(rf"\b(?:{words})\b", re.IGNORECASE)) for kind, words in _WORDS
)


@dataclass(frozen=True, slots=True)
class Standing:
    """Lasting memories and the last sessions of one namespace.

    `own` are the sessions of the project that it is about, None for all; `foreign` are sessions and
    repositories of other projects, whose decisions and facts are left out.
    """

    records: Records
    conversations: Conversations
    view: TurnView
    now: datetime
    own: frozenset[str] | None = None
    foreign: frozenset[str] = frozenset()

    def memories(
        self, held: Sequence[MemoryRecord], shown: Collection[str] = ()
    ) -> dict[str, list[ContextMemory]]:
        """Memories by the parts of a warm-up: those of notes, `changed` and `facts`.

        Of `held`, but for those that are `shown` already.
        """
        held = [record for record in held if record.id not in shown]
        before = self.records.many(
            record.supersedes
            for record in held
            if record.supersedes and self.now - record.valid_from <= LATELY
        )
        found: dict[str, list[ContextMemory]] = {}
        for record in held:
            old = before.get(record.supersedes or "")
            kind = kind_of(record)
            if kind in _LOCAL and self.foreign & {record.conversation_id or "", *record.sources}:
                continue
            part = "changed" if old is not None and not old.forgotten else kind
            found.setdefault(part, []).append(_memory(record, part, old))
        return {_PARTS.get(part, part): items for part, items in found.items()}

    def sessions(self) -> Iterator[ContextMemory]:
        """The conversations that were last spoken in, the newest first."""
        told = 0
        for conversation_id in _newest(self.view):
            if told == SESSIONS:
                return
            if self.own is not None and conversation_id not in self.own:
                continue
            thread = self.conversations.get(conversation_id)
            if thread is None or not thread.turns:
                continue
            told += 1
            last: Mapping[str, str] = {turn.role: turn.text for turn in thread.turns[-4:]}
            first = next((turn.text for turn in thread.turns if turn.role == "user"), "")
            begun = "" if first == last.get("user") else cut(strip_recalled(first), TEXT)
            said = [
                f"{role}: {cut(strip_recalled(last[role]), TEXT)}"
                for role in ("user", "assistant")
                if role in last
            ]
            yield ContextMemory(
                id=conversation_id,
                kind=f"session of {len(thread.turns)} turns",
                title=thread.title or begun or conversation_id,
                text="\n".join(said),
                score=0.0,
                created_at=thread.turns[-1].ts,
            )


_LOCAL: Final = ("decision", "fact")
"""What belongs to the project that it was said in; rules and preferences are the user's."""

_PARTS: Final = {
    "constraint": "constraints",
    "preference": "preferences",
    "decision": "decisions",
    "fact": "facts",
}


def weightiest(records: Iterable[MemoryRecord]) -> list[MemoryRecord]:
    """What was said most often first, then the newest."""
    return sorted(records, key=lambda r: (-r.reinforce_count, -r.last_reinforced.timestamp(), r.id))


def kind_of(record: MemoryRecord) -> CoreKind:
    """Told by its labels, else by its words."""
    given = [getattr(record, name) or () for name in LABELS]
    labels = [(one,) if isinstance(one, str) else one for one in given]
    for label in chain(*labels, re.split(r"[./]", record.path or "")):
        if kind := _NAMES.get(label.casefold()):
            return kind
    if record.type == "procedural":
        return "constraint"
    return next((kind for kind, words in _PATTERNS if words.search(record.text)), "fact")


def _memory(record: MemoryRecord, part: str, old: MemoryRecord | None) -> ContextMemory:
    was = "" if old is None else f"\n(until {shown_day(record.valid_from)}: {cut(old.text, TEXT)})"
    return ContextMemory(
        id=record.id,
        kind="memory" if part in ("fact", "changed") else part,
        title=record.path or "",
        text=cut(record.text, TEXT) + was,
        score=float(record.reinforce_count),
        created_at=record.created_at,
    )


def _newest(view: TurnView) -> Iterable[str]:
    table = view.table
    last = np.full(len(table.conversations), -np.inf)
    np.maximum.at(last, table.conversation, np.nan_to_num(table.ts, nan=-np.inf))
    order = np.argsort(-last, kind="stable")
    return (table.conversations[code] for code in order.tolist() if np.isfinite(last[code]))
