"""The permanent data of deep recall, in an export and back: gaps, and the sources of facts.

Answers and traces can be computed again, and are not exported. A gap that was forgotten here is not
imported: one that was asked in, or closed by, a turn or memory that is deleted or redacted here. Of
two versions of one gap, closed wins, then the later end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, get_args

from anaphora.container.feature import LineKind
from anaphora.features.deep.persisted.gaps import GapRecord, gaps_in, put_gap, question_key
from anaphora.features.deep.values import Gap, GapStatus, Scope
from anaphora.ops.transfer.reading import BatchReader, Outcome
from anaphora.store.facts import MEMORY, OF_MEMORY
from anaphora.store.hashing import hash_text
from anaphora.store.line_fields import LineFields, number_in, string, text_in
from anaphora.store.lines import Line
from anaphora.store.threads.gojson import REDACTED
from anaphora.store.threads.ids import check_id

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
    for record in gaps_in(services.table_rows, now):
        yield {
            "kind": "gap",
            **_GAP.write(record.gap),
            "scope": record.scope,
            "conversation_id": record.conversation_id,
            "without_memory": None if record.include_memory else True,
        }


def origin_lines(services: NamespaceServices) -> Iterator[Line]:
    """The sources of facts: turns, or other memories."""
    for row in services.table_rows.find("fact_turn"):
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
    """Reads the gaps of one namespace, at most a few hundred, after all other lines."""

    last = True

    def parse(self, line: Line) -> GapRecord:
        """As `BatchReader.parse`."""
        fields: dict[str, Any] = {"priority": 0.0} | _GAP.read(line)
        status: Any = line.get("status", "open")
        scope: Any = line.get("scope")
        if "created_at" not in fields or "expires_at" not in fields:
            raise ValueError("a gap has no times")
        if status not in get_args(GapStatus) or scope not in get_args(Scope):
            raise ValueError(f'"status" is {status!r}, "scope" is {scope!r}')
        if not fields["question"].strip() or not 0.0 <= fields["priority"] <= 1.0:
            raise ValueError("its question is empty, or its priority is not from 0 to 1")
        return GapRecord(
            Gap(**fields | {"asked": fields.get("asked") or 1}),
            scope=scope,
            conversation_id=text_in(line, "conversation_id"),
            include_memory=line.get("without_memory") is not True,
            then=None,
        )

    def write(self, batch: Sequence[tuple[int, GapRecord]]) -> None:
        """As `BatchReader.write`."""
        mapped_records = []
        for _, record in batch:
            # The ids that the conversation and the sources have here.
            conversation_id = record.conversation_id
            if conversation_id is not None:
                conversation_id = self.target.thread_ids.get(conversation_id, conversation_id)
            closed_by = tuple(map(self._source, record.gap.closed_by))
            gap = replace(record.gap, closed_by=closed_by)
            mapped_records.append(replace(record, conversation_id=conversation_id, gap=gap))
        # Looked up before the transaction begins: it must stay short.
        forgotten_flags = [
            not self.target.again and self._is_forgotten(record) for record in mapped_records
        ]
        outcomes: list[Outcome] = []
        with self.target.services.table_rows.change() as work:
            by_id = {record.gap.id: record for record in gaps_in(work)}
            open_by_key = {question_key(k.gap.question): k for k in by_id.values() if _is_open(k)}
            for record, is_forgotten in zip(mapped_records, forgotten_flags, strict=True):
                if is_forgotten:
                    outcomes.append("forgotten")
                    continue
                key = question_key(record.gap.question)
                current = by_id.get(record.gap.id) or (
                    open_by_key.get(key) if _is_open(record) else None
                )
                merged_record = record
                if current is not None:
                    ours, imported = current.gap, record.gap
                    gap = replace(
                        ours,
                        created_at=min(ours.created_at, imported.created_at),
                        expires_at=max(ours.expires_at, imported.expires_at),
                        asked=max(ours.asked, imported.asked),
                    )
                    if ours.status != "closed" and imported.status == "closed":
                        at, by = imported.closed_at, imported.closed_by
                        gap = replace(gap, status="closed", closed_at=at, closed_by=by)
                    elif ours.status == "expired" and imported.status == "open":
                        gap = replace(gap, status="open")
                    merged_record = replace(current, gap=gap)
                if merged_record != current:
                    put_gap(work, merged_record)
                    by_id[merged_record.gap.id] = merged_record
                    if _is_open(merged_record):
                        open_by_key[key] = merged_record
                outcomes.append(
                    "added"
                    if current is None
                    else "known"
                    if merged_record == current
                    else "changed"
                )
        self.target.count(outcomes, "gaps ")

    def _source(self, source: str) -> str:
        if source.startswith(MEMORY):
            memory = source.removeprefix(MEMORY)
            return MEMORY + self.target.memory_ids.get(memory, memory)
        thread, mark, index = source.rpartition("#")
        return self.target.thread_ids.get(thread, thread) + mark + index

    def _is_forgotten(self, record: GapRecord) -> bool:
        if any(self._source_is_gone(source) for source in record.gap.closed_by):
            return True
        conversation_id = record.conversation_id
        if conversation_id is None:
            return False
        thread = self._thread(conversation_id)
        if thread is None:
            return self._was_known(conversation_id)
        texts = {turn.text.strip() for turn in thread.turns}
        return REDACTED in texts and record.gap.question.strip() not in texts

    def _source_is_gone(self, source: str) -> bool:
        if source.startswith(MEMORY):
            return source.removeprefix(MEMORY) in self.target.gone
        conversation_id, _, index = source.rpartition("#")
        if not conversation_id or not index.isdecimal():
            return False
        thread = self._thread(conversation_id)
        if thread is None:
            return self._was_known(conversation_id)
        position = int(index)
        return position < len(thread.turns) and REDACTED in thread.turns[position].text

    def _thread(self, conversation_id: str) -> Thread | None:
        return self.target.services.conversation.threads.get(conversation_id)

    def _was_known(self, conversation_id: str) -> bool:
        """Whether a missing conversation existed here, and was deleted."""
        return bool(self.target.services.conversation.sidecar.turn_notes(conversation_id))


class OriginReader(BatchReader[tuple[str, str, int]]):
    """Reads the sources of facts, in one namespace, after memories and threads."""

    last = True

    def parse(self, line: Line) -> tuple[str, str, int]:
        """As `BatchReader.parse`: the fact, its source, and the position of it there."""
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
        """Write the unknown ones, of facts and sources that exist here."""
        services = self.target.services
        origins = [origin for _, origin in batch]
        facts = services.memory.records.many(fact for fact, _, _ in origins)
        texts: dict[str, dict[int, str]] = {}
        for _, source, position in origins:
            if position == OF_MEMORY:
                memory = source.removeprefix(MEMORY)
                memories = services.memory.records.many([memory])
                texts[source] = {OF_MEMORY: memories[memory].text} if memory in memories else {}
            else:
                thread = services.conversation.threads.get(source)
                turns = thread.turns if thread is not None else ()
                texts[source] = {index: turn.text for index, turn in enumerate(turns)}
        with services.table_rows.change() as work:
            for fact, source, position in origins:
                origin_key: dict[str, str | int] = {
                    "record_id": fact,
                    "conversation_id": source,
                    "position": position,
                }
                text = texts[source].get(position)
                if fact in facts and text is not None and not work.find("fact_turn", origin_key):
                    work.put("fact_turn", [{**origin_key, "turn_hash": hash_text(text)}])


def _is_open(record: GapRecord) -> bool:
    return record.gap.status == "open"


LINES: Final = (
    LineKind(("taken_from",), 40, lambda source: origin_lines(source.services), OriginReader),
    LineKind(("gap",), 70, lambda source: gap_lines(source.services, source.now), GapReader),
)
