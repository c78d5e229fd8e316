"""What was kept by `remember`, as a new session needs it: rules, preferences, decisions, the rest.

What a memory is, its labels say (path, category, tags, type), else its words. What holds now alone
comes: neither what was replaced, nor what has expired; what stands in an open contradiction says
so. Of a kind, what was said most often comes first, then the newest. Rules that the user said in
the project's own sessions stand beside those that were remembered, until something later
contradicts them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import numpy as np

from anaphora.rank.house_rules import (
    drop_ended_parts,
    is_rule,
    repeats_rule,
    rule_of,
    sentences_of,
    tells_rule,
)
from anaphora.rank.pairs import JudgePairs
from anaphora.rank.statements import read_statement
from anaphora.recall.opposed import (
    OpposedPairs,
    find_opposed_turn,
    find_opposing,
    find_pairs,
    render_opposing,
)
from anaphora.recall.render import quoted_line
from anaphora.recall.session.belonging import EVERYTHING, Belonging
from anaphora.recall.session.session_lines import (
    LEAST,
    MOST,
    Newer,
    Replacing,
    Stated,
    choose_statements,
    find_newer,
    last_exchange,
    read_session,
)
from anaphora.text.display import cut
from anaphora.text.recalled import strip_recalled
from anaphora.text.shown_times import shown_day
from anaphora.values.context import ContextMemory
from anaphora.values.memories import LABELS, CoreKind, MemoryRecord

if TYPE_CHECKING:
    from anaphora.index.turns.view import TurnView
    from anaphora.store.records.store import Records
    from anaphora.store.threads.conversations import Conversations
    from anaphora.values.conversations import Thread
    from anaphora.values.sessions import ToolCallHit

LOOKED_AT: Final = 500
"""Memories, the last changed first, among which those of a warm-up are chosen."""
LATELY: Final = timedelta(days=14)
"""How long a new value counts as a change."""
SESSIONS: Final = 4
RULE_SESSIONS: Final = 40
"""Sessions of the project in which rules of the user are looked for."""
RULE_TURN: Final = 1_000
"""Characters of a turn in which one is: a longer one is pasted, or explains."""
MOST_RULES: Final = 8
"""Rules of these that are shown; what says that it is new gives way to what always held."""
_MOST_FILES: Final = 6
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
)
_PATTERNS: Final = tuple(
    (kind, re.compile(rf"\b(?:{words})\b", re.IGNORECASE)) for kind, words in _WORDS
)
_WRITING: Final = re.compile(r"edit|write|replace|patch|create|delete|notebook", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StandingContext:
    """Lasting memories and the last sessions of one namespace.

    `project` is the one that it is about; what belongs to others is left out. `judge` says what
    replaces a rule. `calls` gives the tool calls of a session, `replacing` what replaced turns,
    memories and notes, as recall says.
    """

    records: Records
    conversations: Conversations
    view: TurnView
    now: datetime
    judge: JudgePairs
    project: Belonging = EVERYTHING
    calls: Callable[[str], Iterable[ToolCallHit]] = lambda _: ()
    replacing: Replacing = lambda _: {}

    def mark_replaced(self, items: Sequence[ContextMemory]) -> list[ContextMemory]:
        """Memories and notes with what replaced them."""
        newer_by_id = self.replacing([item.id for item in items]) if items else {}
        lines = {
            record_id: quoted_line(cut(newer.text, TEXT), newer.at)
            for record_id, newer in newer_by_id.items()
        }
        return [
            replace(item, text=f"{item.text}\n(replaced {line})")
            if (line := lines.get(item.id)) and line not in item.text
            else item
            for item in items
        ]

    def memories(
        self, records: Sequence[MemoryRecord], shown_ids: Collection[str] = ()
    ) -> dict[str, list[ContextMemory]]:
        """Memories by the parts of a warm-up: those of notes, `changed` and `facts`.

        Of `held`, but for those that are `shown` already.
        """
        records = [record for record in records if record.id not in shown_ids]
        against = find_opposing(self.records, records, self.project.is_foreign)
        previous_by_id = self.records.many(
            record.supersedes
            for record in records
            if record.supersedes and self.now - record.valid_from <= LATELY
        )
        by_part: dict[str, list[ContextMemory]] = {}
        for record in records:
            previous_record = previous_by_id.get(record.supersedes or "")
            kind = kind_of(record)
            local = kind in _LOCAL and self.project.is_from_elsewhere(record)
            if local or self.project.is_foreign(record):
                continue
            part = (
                "changed" if previous_record is not None and not previous_record.forgotten else kind
            )
            was = render_opposing(against.get(record.id, ()), record.created_at)
            if previous_record is not None:
                was = (
                    f"\n(until {shown_day(record.valid_from)}: {cut(previous_record.text, TEXT)})"
                    + was
                )
            by_part.setdefault(part, []).append(
                ContextMemory(
                    id=record.id,
                    kind="memory" if part in ("fact", "changed") else part,
                    title=record.path or "",
                    text=cut(record.text, TEXT) + was,
                    score=float(record.reinforce_count),
                    created_at=record.created_at,
                )
            )
        return {_PARTS.get(part, part): items for part, items in by_part.items()}

    def rules_said(self, memories: Iterable[MemoryRecord]) -> list[ContextMemory]:
        """Rules that the user said in the last sessions of the project, the newest first.

        Of `memories`, which are current, none says it as a rule too, or contradicts it later; what
        the user took back is left out.
        """
        if self.project.own is None:
            return []
        statements = [
            (turn.ts, rule_of(sentence), conversation_id, index)
            for conversation_id, thread in islice(self._read_threads(), RULE_SESSIONS)
            for index, turn in enumerate(thread.turns)
            if turn.role == "user" and len(turn.text) <= RULE_TURN
            for sentence in sentences_of(strip_recalled(turn.text))
        ]
        statements.sort(key=lambda row: row[0])
        later = [(record.created_at, record.text) for record in memories]
        lasting = [record.text for record in memories if kind_of(record) in _RULES]
        rules: list[ContextMemory] = []
        for position, (ts, sentence, conversation_id, index) in enumerate(statements):
            if not is_rule(sentence):
                continue
            later_texts = [text for _, text, *_ in statements[position + 1 :]]
            ending = [*later_texts, *(text for when, text in later if when >= ts)]
            rule = drop_ended_parts(sentence, ending, self.judge)
            is_repeated = any(repeats_rule(text, sentence) for text in later_texts)
            if rule and not is_repeated and not any(repeats_rule(text, rule) for text in lasting):
                turn = f"{conversation_id}#{index}"
                kind = "decision" if read_statement(rule).decided else "constraint"
                rules.append(
                    ContextMemory(
                        conversation_id, kind, "", rule, 0.0, created_at=ts, turns=(turn,)
                    )
                )
        newest = rules[::-1]
        chosen_rules = sorted(newest, key=lambda rule: read_statement(rule.text).changes)[
            :MOST_RULES
        ]
        return [rule for rule in newest if rule in chosen_rules]

    def sessions(
        self, rules: Sequence[ContextMemory] = (), memories: Iterable[MemoryRecord] = ()
    ) -> Iterator[ContextMemory]:
        """The conversations that were last spoken in, the newest first.

        Of each what the user stated, unless `rules` say it, what was asked for last, and the files
        that were changed. Those in which nothing was stated are left out, but for the very last,
        of which the last exchange comes; greetings are none. What was replaced says so, by what a
        later turn or one of `memories` tells, or stays away where that stands in a later session.
        """
        count, shown_turns = 0, {turn for rule in rules for turn in rule.turns}
        rule_texts = [rule.text for rule in rules]
        against = tuple(find_pairs(self.records, [record.id for record in memories]))
        for conversation_id, thread in self._read_threads():
            statements = read_session(thread.turns, rule_texts)
            chosen = self._choose(conversation_id, thread, statements, shown_turns, against)
            turns = tuple(
                f"{conversation_id}#{index}" for stated in chosen for index in stated.whole
            )
            lines = [f"user: {'; '.join(stated.text for stated in chosen)}"] if chosen else []
            if not (lines or count):
                lines = list(last_exchange(thread, rule_texts))
            if not lines:
                continue
            files = list(dict.fromkeys(changed_files(self.calls(conversation_id))))[-_MOST_FILES:]
            if files:
                lines.append(f"(files changed: {', '.join(files)})")
            yield ContextMemory(
                id=conversation_id,
                kind=f"session of {len(thread.turns)} turns",
                title=thread.title,
                text="\n".join(lines),
                score=0.0,
                created_at=thread.turns[-1].ts,
                turns=turns,
            )
            count += 1
            if count == SESSIONS:
                return

    def _choose(
        self,
        conversation_id: str,
        thread: Thread,
        statements: Sequence[Stated],
        shown: set[str],
        against: OpposedPairs,
    ) -> list[Stated]:
        """The statements of a session to show; their turns are `shown` from now on."""
        keys = [(conversation_id, index) for index in range(len(thread.turns))]

        def newer_of(stated: Stated) -> Newer | None:
            if newer := find_newer(self.replacing, keys, stated):
                return newer
            turn = thread.turns[stated.turns[0]]
            for pair in against:
                if memory := find_opposed_turn(turn.text, turn.ts, pair):
                    mark = "replaced" if pair.ended else "contradicted, not settled:"
                    return Newer(memory.id, mark, memory.text, memory.created_at)
            return None

        weighty = [stated for stated in statements if stated.weight >= LEAST]
        return choose_statements(keys, weighty, newer_of, shown, count_up_to(MOST))

    def _read_threads(self) -> Iterator[tuple[str, Thread]]:
        """The conversations of the project that hold a turn, the one last spoken in first."""
        sessions = self.project.own
        table = self.view.table
        last_times = np.full(len(table.conversations), -np.inf)
        np.maximum.at(last_times, table.conversation, np.nan_to_num(table.ts, nan=-np.inf))
        order = np.argsort(-last_times, kind="stable")
        for code in order[np.isfinite(last_times[order])].tolist():
            conversation_id = table.conversations[code]
            if sessions is not None and conversation_id not in sessions:
                continue
            thread = self.conversations.get(conversation_id)
            if thread is not None and thread.turns:
                yield conversation_id, thread


def changed_files(calls: Iterable[ToolCallHit]) -> Iterator[str]:
    """The files that tool calls have changed, in the order of the calls."""
    for call in calls:
        name, _, line = call.text.partition(" ")
        if _WRITING.search(name) and (file := line.partition(":")[0]):
            yield file


def count_up_to(most: int) -> Callable[[Stated], bool]:
    """Whether another statement still has room among so many."""
    room = iter(range(most))
    return lambda _: next(room, None) is not None


_RULES: Final = ("constraint", "preference")
_LOCAL: Final = ("decision", "fact")
"""What belongs to the project that it was said in; rules and preferences are the user's."""

_PARTS: Final = {
    "constraint": "constraints",
    "preference": "preferences",
    "decision": "decisions",
    "fact": "facts",
}


def held_memories(records: Records, now: datetime) -> list[MemoryRecord]:
    """The memories that changed last and hold now, the weightiest first."""
    return weightiest(records.list(limit=LOOKED_AT, now=now).items)


def weightiest(records: Iterable[MemoryRecord]) -> list[MemoryRecord]:
    """What was said most often first, then the newest."""
    return sorted(records, key=lambda r: (-r.reinforce_count, -r.last_reinforced.timestamp(), r.id))


def kind_of(record: MemoryRecord) -> CoreKind:
    """Told by its labels, else by its words."""
    label_values = [getattr(record, name) or () for name in LABELS]
    labels = [(names,) if isinstance(names, str) else names for names in label_values]
    for label in chain(*labels, re.split(r"[./]", record.path or "")):
        if kind := _NAMES.get(label.casefold()):
            return kind
    if record.type == "procedural":
        return "constraint"
    for kind, words in _PATTERNS:
        if words.search(record.text) or (kind == "constraint" and tells_rule(record.text)):
            return kind
    return "decision" if read_statement(record.text).decided else "fact"
