"""What deep recall keeps for good, in an export: open questions, and what facts were taken from.

In: gaps and origins of facts, or their lines. Out: lines, or rows in truth. Answers and traces are
made again, and are not exported. A gap that was forgotten here stays away: one that was asked in,
or closed by, what is deleted or redacted here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args

from anaphora.container.namespace import NamespaceServices
from anaphora.ops.lines import (
    id_in,
    number_in,
    string,
    text_in,
    texts_in,
    time_in,
    time_text,
    to_line,
)
from anaphora.store.threads.files import REDACTED
from anaphora.store.threads.ids import check_id
from anaphora.values.deep import Gap, GapStatus, Scope

if TYPE_CHECKING:
    from anaphora.deep.persisted.gaps import Gaps, KnownGap
    from anaphora.values.conversations import Thread

_MEMORY = "memory:"
_NO_TURN = -1
_MOST_PRIORITY = 1.0


def gap_lines(lane: NamespaceServices, now: datetime) -> Iterator[bytes]:
    """The questions that memory could not answer, the oldest change first."""
    for known in _gaps(lane, lambda: now).known():
        gap = known.gap
        yield to_line(
            {
                "kind": "gap",
                "namespace": lane.namespace,
                "id": gap.id,
                "question": gap.question,
                "status": gap.status,
                "priority": gap.priority,
                "asked": gap.asked,
                "created_at": time_text(gap.created_at),
                "expires_at": time_text(gap.expires_at),
                "closed_at": time_text(gap.closed_at),
                "closed_by": list(gap.closed_by) or None,
                "scope": known.scope,
                "conversation_id": known.conversation_id,
                "without_memory": None if known.include_memory else True,
            }
        )


def origin_lines(lane: NamespaceServices) -> Iterator[bytes]:
    """What facts were taken from: turns, or other memories."""
    for row in lane.deep_rows.find("fact_turn"):
        turn = row["position"] != _NO_TURN
        source = row["conversation_id"]
        yield to_line(
            {
                "kind": "taken_from",
                "namespace": lane.namespace,
                "memory": row["record_id"],
                "thread": source if turn else None,
                "index": row["position"] if turn else None,
                "from_memory": None if turn else source.removeprefix(_MEMORY),
            }
        )


@dataclass(slots=True)
class GapsIn:
    """Takes the gaps of one namespace, at most a few hundred.

    `gone` are memories that were forgotten here, `ids` under which ids others are here, `threads`
    the same of conversations. `again`: what was forgotten here comes back, too.
    """

    lane: NamespaceServices
    again: bool
    gone: frozenset[str]
    ids: Mapping[str, str]
    threads: Mapping[str, str]
    _waiting: list[KnownGap] = field(default_factory=list)

    def take(self, found: Mapping[str, Any]) -> None:
        """Take a line. ValueError for one that cannot be read."""
        self._waiting.append(_gap_from(found))

    def flush(self) -> list[str]:
        """Bring in what waits; what became of each: added, changed, known or forgotten."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return []
        from anaphora.deep.persisted.gaps import question_key

        moved = [self._moved(one) for one in waiting]
        # Looked up before the transaction begins: it must stay short.
        lost = [not self.again and self._is_forgotten(one) for one in moved]
        gaps = _gaps(self.lane, _no_time)
        became: list[str] = []
        with self.lane.deep_rows.change() as work:
            here = {one.gap.id: one for one in gaps.stored(work)}
            asked = {question_key(k.gap.question): k for k in here.values() if _is_open(k)}
            for one, away in zip(moved, lost, strict=True):
                if away:
                    became.append("forgotten")
                    continue
                key = question_key(one.gap.question)
                stands = here.get(one.gap.id) or (asked.get(key) if _is_open(one) else None)
                merged = one if stands is None else _merged(stands, one)
                if merged != stands:
                    gaps.put(work, merged)
                    here[merged.gap.id] = merged
                    if _is_open(merged):
                        asked[key] = merged
                became.append(
                    "added" if stands is None else "known" if merged == stands else "changed"
                )
        return became

    def _moved(self, known: KnownGap) -> KnownGap:
        """With the ids that its conversation and its sources have here."""
        of = known.conversation_id
        return replace(
            known,
            conversation_id=None if of is None else self.threads.get(of, of),
            gap=replace(known.gap, closed_by=tuple(map(self._source, known.gap.closed_by))),
        )

    def _source(self, source: str) -> str:
        if source.startswith(_MEMORY):
            memory = source.removeprefix(_MEMORY)
            return _MEMORY + self.ids.get(memory, memory)
        thread, mark, index = source.rpartition("#")
        return self.threads.get(thread, thread) + mark + index

    def _is_forgotten(self, known: KnownGap) -> bool:
        if any(self._source_is_gone(one) for one in known.gap.closed_by):
            return True
        of = known.conversation_id
        if of is None:
            return False
        thread = self._thread(of)
        if thread is None:
            return self._was_known(of)
        texts = {turn.text.strip() for turn in thread.turns}
        return REDACTED in texts and known.gap.question.strip() not in texts

    def _source_is_gone(self, source: str) -> bool:
        if source.startswith(_MEMORY):
            return source.removeprefix(_MEMORY) in self.gone
        of, _, index = source.rpartition("#")
        if not of or not index.isdecimal():
            return False
        thread = self._thread(of)
        if thread is None:
            return self._was_known(of)
        at = int(index)
        return at < len(thread.turns) and REDACTED in thread.turns[at].text

    def _thread(self, conversation_id: str) -> Thread | None:
        return self.lane.conversations.get(conversation_id)

    def _was_known(self, conversation_id: str) -> bool:
        """Whether a conversation that is not here was here, and was deleted."""
        return bool(self.lane.sidecar.turn_notes(conversation_id))


@dataclass(slots=True)
class OriginsIn:
    """Takes what facts were taken from, in one namespace, after memories and threads are in."""

    lane: NamespaceServices
    ids: Mapping[str, str]
    threads: Mapping[str, str]
    _waiting: list[tuple[str, str, int]] = field(default_factory=list)

    def take(self, found: Mapping[str, Any]) -> None:
        """Take a line. ValueError for one that cannot be read."""
        memory = string(found, "memory")
        if "from_memory" in found:
            source = string(found, "from_memory")
            whole = _MEMORY + self.ids.get(source, source), _NO_TURN
        else:
            thread, index = check_id(string(found, "thread")), number_in(found, "index")
            if index is None:
                raise ValueError('"index" is missing')
            whole = self.threads.get(thread, thread), index
        self._waiting.append((self.ids.get(memory, memory), *whole))

    def flush(self) -> None:
        """Write what waits and is not known, of facts and sources that are here."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        from anaphora.deep.persisted.forgetting import turn_hash

        facts = self.lane.records.many(one for one, _, _ in waiting)
        texts = {source: self._texts(source, at) for _, source, at in waiting}
        with self.lane.deep_rows.change() as work:
            for fact, source, at in waiting:
                where: dict[str, str | int] = {
                    "record_id": fact,
                    "conversation_id": source,
                    "position": at,
                }
                said = texts[source].get(at)
                if fact not in facts or said is None or work.find("fact_turn", where):
                    continue
                work.put("fact_turn", [{**where, "turn_hash": turn_hash(said)}])

    def _texts(self, source: str, at: int) -> dict[int, str]:
        if at == _NO_TURN:
            memory = source.removeprefix(_MEMORY)
            found = self.lane.records.many([memory])
            return {_NO_TURN: found[memory].text} if memory in found else {}
        thread = self.lane.conversations.get(source)
        return {} if thread is None else {n: turn.text for n, turn in enumerate(thread.turns)}


def _gap_from(found: Mapping[str, Any]) -> KnownGap:
    from anaphora.deep.persisted.gaps import KnownGap

    created, expires = time_in(found, "created_at"), time_in(found, "expires_at")
    status: Any = found.get("status", "open")
    scope: Any = found.get("scope")
    priority = found.get("priority", 0.0)
    question, gap_id = string(found, "question"), id_in(found)
    if created is None or expires is None:
        raise ValueError("a gap has no times")
    if status not in get_args(GapStatus) or scope not in get_args(Scope):
        raise ValueError(f'"status" is {status!r}, "scope" is {scope!r}')
    if isinstance(priority, bool) or not isinstance(priority, (int, float)):
        raise ValueError('"priority" is no number')
    if not question.strip() or not 0.0 <= priority <= _MOST_PRIORITY:
        raise ValueError("its question is empty, or its priority is not from 0 to 1")
    gap = Gap(
        id=gap_id,
        question=question,
        created_at=created,
        expires_at=expires,
        priority=float(priority),
        status=status,
        asked=max(1, number_in(found, "asked") or 1),
        closed_at=time_in(found, "closed_at"),
        closed_by=texts_in(found, "closed_by"),
    )
    return KnownGap(
        gap,
        scope=scope,
        conversation_id=text_in(found, "conversation_id"),
        include_memory=found.get("without_memory") is not True,
        then=None,
    )


def _merged(here: KnownGap, there: KnownGap) -> KnownGap:
    """One gap at two moments, or of two homes: closed wins, then the later end."""
    one, other = here.gap, there.gap
    gap = replace(
        one,
        created_at=min(one.created_at, other.created_at),
        expires_at=max(one.expires_at, other.expires_at),
        asked=max(one.asked, other.asked),
    )
    if one.status != "closed" and other.status == "closed":
        gap = replace(gap, status="closed", closed_at=other.closed_at, closed_by=other.closed_by)
    elif one.status == "expired" and other.status == "open":
        gap = replace(gap, status="open")
    return replace(here, gap=gap)


def _is_open(known: KnownGap) -> bool:
    return known.gap.status == "open"


def _gaps(lane: NamespaceServices, clock: Callable[[], datetime]) -> Gaps:
    from anaphora.deep.persisted.gaps import Gaps

    return Gaps(lane.deep_rows, clock=clock, ids=_no_id)


def _no_time() -> datetime:
    raise AssertionError("bringing gaps in needs no clock")


def _no_id() -> str:
    raise AssertionError("bringing gaps in makes no ids")
