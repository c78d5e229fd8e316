"""What deep recall keeps for good, in an export and back: gaps, and what facts were taken from.

Answers and traces are made again, and are not exported. A gap that was forgotten here stays away:
one that was asked in, or closed by, what is deleted or redacted here. Of one gap at two moments
closed wins, then the later end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, get_args

from anaphora.deep.evidence.sources import MEMORY
from anaphora.deep.persisted.forgetting import OF_MEMORY
from anaphora.deep.persisted.gaps import GapRecord, gaps_in, put_gap, question_key
from anaphora.ops.transfer.lines import Line, LineFields, number_in, string, text_in
from anaphora.ops.transfer.reading import BatchReader, Outcome
from anaphora.store.hashing import hash_text
from anaphora.store.threads.gojson import REDACTED
from anaphora.store.threads.ids import check_id
from anaphora.values.deep import Gap, GapStatus, Scope

if TYPE_CHECKING:
    from datetime import datetime

    from anaphora.container.namespace import NamespaceServices
    from anaphora.values.conversations import Thread

_GAP: Final = LineFields(
    Gap,
    (
        "id", "question", "status", "priority", "asked", "created_at", "expires_at", "closed_at",
        "closed_by",
    ),
    left_out=("kind",),
    readers={"status": lambda line, name: line[name]},
)  # fmt: skip


def gap_lines(services: NamespaceServices, now: datetime) -> Iterator[Line]:
    """The questions that memory could not answer, the oldest change first."""
    for known in gaps_in(services.deep_rows, now):
        yield {
            "kind": "gap",
            **_GAP.write(known.gap),
            "scope": known.scope,
            "conversation_id": known.conversation_id,
            "without_memory": None if known.include_memory else True,
        }


def origin_lines(services: NamespaceServices) -> Iterator[Line]:
    """What facts were taken from: turns, or other memories."""
    for row in services.deep_rows.find("fact_turn"):
        turn = row["position"] != OF_MEMORY
        source = row["conversation_id"]
        yield {
            "kind": "taken_from",
            "memory": row["record_id"],
            "thread": source if turn else None,
            "index": row["position"] if turn else None,
            "from_memory": None if turn else source.removeprefix(MEMORY),
        }


class GapReader(BatchReader[GapRecord]):
    """Reads the gaps of one namespace, at most a few hundred, when all else is in."""

    last = True

    def parse(self, line: Line) -> GapRecord:
        """As `BatchReader.parse`."""
        given: dict[str, Any] = {"priority": 0.0} | _GAP.read(line)
        status: Any = line.get("status", "open")
        scope: Any = line.get("scope")
        if "created_at" not in given or "expires_at" not in given:
            raise ValueError("a gap has no times")
        if status not in get_args(GapStatus) or scope not in get_args(Scope):
            raise ValueError(f'"status" is {status!r}, "scope" is {scope!r}')
        if not given["question"].strip() or not 0.0 <= given["priority"] <= 1.0:
            raise ValueError("its question is empty, or its priority is not from 0 to 1")
        return GapRecord(
            Gap(**given | {"asked": given.get("asked") or 1}),
            scope=scope,
            conversation_id=text_in(line, "conversation_id"),
            include_memory=line.get("without_memory") is not True,
            then=None,
        )

    def write(self, batch: Sequence[tuple[int, GapRecord]]) -> None:
        """As `BatchReader.write`."""
        moved = [self._moved(one) for _, one in batch]
        # Looked up before the transaction begins: it must stay short.
        lost = [not self.target.again and self._is_forgotten(one) for one in moved]
        outcomes: list[Outcome] = []
        with self.target.services.deep_rows.change() as work:
            here = {one.gap.id: one for one in gaps_in(work)}
            asked = {question_key(k.gap.question): k for k in here.values() if _is_open(k)}
            for one, away in zip(moved, lost, strict=True):
                if away:
                    outcomes.append("forgotten")
                    continue
                key = question_key(one.gap.question)
                known = here.get(one.gap.id) or (asked.get(key) if _is_open(one) else None)
                merged = one if known is None else _merged(known, one)
                if merged != known:
                    put_gap(work, merged)
                    here[merged.gap.id] = merged
                    if _is_open(merged):
                        asked[key] = merged
                outcomes.append(
                    "added" if known is None else "known" if merged == known else "changed"
                )
        self.target.count(outcomes, "gaps ")

    def _moved(self, known: GapRecord) -> GapRecord:
        """With the ids that its conversation and its sources have here."""
        of = known.conversation_id
        return replace(
            known,
            conversation_id=None if of is None else self.target.thread_ids.get(of, of),
            gap=replace(known.gap, closed_by=tuple(map(self._source, known.gap.closed_by))),
        )

    def _source(self, source: str) -> str:
        if source.startswith(MEMORY):
            memory = source.removeprefix(MEMORY)
            return MEMORY + self.target.memory_ids.get(memory, memory)
        thread, mark, index = source.rpartition("#")
        return self.target.thread_ids.get(thread, thread) + mark + index

    def _is_forgotten(self, known: GapRecord) -> bool:
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
        if source.startswith(MEMORY):
            return source.removeprefix(MEMORY) in self.target.gone
        of, _, index = source.rpartition("#")
        if not of or not index.isdecimal():
            return False
        thread = self._thread(of)
        if thread is None:
            return self._was_known(of)
        at = int(index)
        return at < len(thread.turns) and REDACTED in thread.turns[at].text

    def _thread(self, conversation_id: str) -> Thread | None:
        return self.target.services.conversations.get(conversation_id)

    def _was_known(self, conversation_id: str) -> bool:
        """Whether a conversation that is not here was here, and was deleted."""
        return bool(self.target.services.sidecar.turn_notes(conversation_id))


class OriginReader(BatchReader[tuple[str, str, int]]):
    """Reads what facts were taken from, in one namespace, when memories and threads are in."""

    last = True

    def parse(self, line: Line) -> tuple[str, str, int]:
        """As `BatchReader.parse`: the fact, its source, and the place of it there."""
        memories, threads = self.target.memory_ids, self.target.thread_ids
        memory = string(line, "memory")
        fact = memories.get(memory, memory)
        if "from_memory" in line:
            source = string(line, "from_memory")
            return fact, MEMORY + memories.get(source, source), OF_MEMORY
        thread, index = check_id(string(line, "thread")), number_in(line, "index")
        if index is None:
            raise ValueError('"index" is missing')
        return fact, threads.get(thread, thread), index

    def write(self, batch: Sequence[tuple[int, tuple[str, str, int]]]) -> None:
        """Write what is not known, of facts and sources that are here."""
        services = self.target.services
        origins = [origin for _, origin in batch]
        facts = services.records.many(fact for fact, _, _ in origins)
        texts = {source: self._texts(source, at) for _, source, at in origins}
        with services.deep_rows.change() as work:
            for fact, source, at in origins:
                where: dict[str, str | int] = {
                    "record_id": fact,
                    "conversation_id": source,
                    "position": at,
                }
                said = texts[source].get(at)
                if fact in facts and said is not None and not work.find("fact_turn", where):
                    work.put("fact_turn", [{**where, "turn_hash": hash_text(said)}])

    def _texts(self, source: str, at: int) -> dict[int, str]:
        services = self.target.services
        if at == OF_MEMORY:
            memory = source.removeprefix(MEMORY)
            found = services.records.many([memory])
            return {OF_MEMORY: found[memory].text} if memory in found else {}
        thread = services.conversations.get(source)
        return {} if thread is None else {n: turn.text for n, turn in enumerate(thread.turns)}


def _merged(here: GapRecord, there: GapRecord) -> GapRecord:
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


def _is_open(known: GapRecord) -> bool:
    return known.gap.status == "open"
