"""The sources of extracted facts, and what is deleted together with something forgotten.

A fact that a model extracted from a conversation is bound to its turns or memories, and is
forgotten with any of them; it stays if another conversation or the user stated the same. With
forgotten memories, or text removed from a conversation, their answers, traces and gaps are deleted
too, in the same transaction if possible. It never touches a thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from anaphora.features.deep.evidence.questions import fold_for_erasure, question_form
from anaphora.features.deep.persisted.answers import drop_traces
from anaphora.store.codecs import DAMAGE, parsed
from anaphora.store.facts import MEMORY, OF_MEMORY
from anaphora.store.hashing import hash_text
from anaphora.store.threads.gojson import REDACTED
from anaphora.values.memories import SurvivingSource

if TYPE_CHECKING:
    from anaphora.recall.identifiers import Identifier
    from anaphora.store.namespace import Row
    from anaphora.store.records.forgetting import ForgottenRecords
    from anaphora.store.records.store import Records
    from anaphora.store.records.transaction import RecordTransaction
    from anaphora.store.table_rows import TableRows, TableTransaction, Where
    from anaphora.store.threads.conversations import Conversations


EXTRACTED: Final = "extract"
"""The `source` of a memory that was extracted from a conversation."""
DREAMT: Final = "dream"
"""The `source` of a memory that answers a gap: it is forgotten with any of its sources."""


def drop_lost_facts(
    work: TableTransaction,
    records: RecordTransaction,
    conversation_id: str,
    stands: Callable[[int, str], bool],
) -> list[str]:
    """The facts from a conversation that must be forgotten now.

    `stands` says whether the turn at an index still has the text of that digest. A fact that may
    stay is unbound from the lost turns.
    """
    rows = work.find("fact_turn", {"conversation_id": conversation_id})
    hit = {row["record_id"] for row in rows if not stands(row["position"], row["turn_hash"])}
    lost_ids: list[str] = []
    for record_id in sorted(hit):
        bound = work.find("fact_turn", {"record_id": record_id})
        dreamt = any(event.source == DREAMT for event in records.events(record_id))
        elsewhere = any(row["conversation_id"] != conversation_id for row in bound)
        if _is_users_own(records, record_id) or (elsewhere and not dreamt):
            key_columns = {"record_id": record_id, "conversation_id": conversation_id}
            work.drop("fact_turn", key_columns)
        else:
            lost_ids.append(record_id)
    return lost_ids


def _is_users_own(records: RecordTransaction, record_id: str) -> bool:
    return any(
        event.kind in {"added", "restated"} and event.source not in {EXTRACTED, DREAMT}
        for event in records.events(record_id)
    )


@dataclass(frozen=True, slots=True)
class DeepForgetting:
    """Forgets in one namespace.

    `conversations` returns the threads; `settle` removes the text from the index files too.
    """

    rows: TableRows
    records: Records
    conversations: Callable[[], Conversations]
    settle: Callable[[], object]

    def list_derived(self, work: RecordTransaction, record_ids: Sequence[str]) -> list[str]:
        """The facts from these memories, and the facts from those facts."""
        deep = self.rows.within(work.write)
        facts: dict[str, None] = {}
        waiting = deque(record_ids)
        while waiting:
            origin_key: Where = {
                "conversation_id": MEMORY + waiting.popleft(),
                "position": OF_MEMORY,
            }
            for row in deep.find("fact_turn", origin_key):
                fact = row["record_id"]
                if fact not in facts and not _is_users_own(work, fact):
                    facts[fact] = None
                    waiting.append(fact)
        return [record_id for record_id in facts if record_id not in set(record_ids)]

    def forget_memories(self, work: RecordTransaction, gone: ForgottenRecords, soft: bool) -> None:
        """Memories are forgotten in this change: delete the answers from them too."""
        if not gone.ids:
            return
        deep = self.rows.within(work.write)
        deep.drop("answer")
        if soft:
            return
        ids, texts = set(gone.ids), gone.texts
        drop_traces(deep, lambda seen: bool(seen.memories & ids))
        # Traces that repeat forgotten text all the same: a question may contain it.
        traces = deep.find("trace")
        words = [w for text in texts if len(w := fold_for_erasure(text)) >= 8] if traces else []
        for row in traces if words else ():
            body = fold_for_erasure(row["body"])
            if any(word in body for word in words):
                deep.drop("trace", {"trace_id": row["trace_id"]})
        sources = {MEMORY + record_id for record_id in ids}

        @cache
        def fold_texts() -> frozenset[str]:
            # Cached and lazy: most homes have no gap, and a text may have megabytes.
            return frozenset(map(fold_for_erasure, texts))

        _drop_gaps(
            deep,
            lambda row, by: (
                not sources.isdisjoint(by) or fold_for_erasure(row["question"]) in fold_texts()
            ),
        )

    def forget_derived(self, work: RecordTransaction, gone: ForgottenRecords, soft: bool) -> None:
        """Records are forgotten in this change: delete the answers from them, and their facts.

        The facts from memories are forgotten with them already (`list_derived`).
        """
        from anaphora.store.records.forgetting import forget_for_good
        from anaphora.store.records.rows import MEMORY as MEMORIES
        from anaphora.store.records.transaction import RecordTransaction

        self.forget_memories(work, gone, soft)
        if soft or work.kind == MEMORIES:
            return
        memories = RecordTransaction(work.write, self.records.sealer)
        facts = self.list_derived(memories, gone.ids)
        if facts:
            self.forget_memories(memories, forget_for_good(memories, facts), soft)
            memories.finish()

    def find_holding(self, identifiers: Sequence[Identifier]) -> Iterator[SurvivingSource]:
        """Gaps and traces that contain one of these identifiers."""
        for table, columns in (("gap", ("question", "details")), ("trace", ("question", "body"))):
            for row in self.rows.find(table):
                text = "\n".join(str(row[column]) for column in columns if row[column])
                if any(identifier.held_by(text) for identifier in identifiers):
                    yield SurvivingSource(table, row[f"{table}_id"])

    def forget_conversation(self, conversation_id: str) -> None:
        """A conversation was deleted, or text of it was redacted."""
        from anaphora.store.records.forgetting import forget_for_good

        # Most homes have no data of deep recall at all.
        tables = ("answer", "trace", "gap", "fact_turn", "session_job", "extraction")
        if not any(self.rows.find(table, limit=1) for table in tables):
            return
        thread = self.conversations().get(conversation_id)
        turns = thread.turns if thread is not None else ()

        forms = {question_form(turn.text) for turn in turns}
        is_redacted = any(REDACTED in form for form in forms)

        def stands(index: int, digest: str) -> bool:
            return index < len(turns) and hash_text(turns[index].text) == digest

        def is_gone(index: int) -> bool:
            return index >= len(turns) or REDACTED in turns[index].text

        def has_lost(gap: Row, closed_by: Sequence[str]) -> bool:
            """Whether the gap was asked, or is closed, by a turn that is gone."""
            is_lost = not turns or (is_redacted and question_form(gap["question"]) not in forms)
            if is_lost and gap["conversation_id"] == conversation_id:
                return True
            source_parts = (source.rpartition("#") for source in closed_by)
            indexes = (
                index
                for name, _, index in source_parts
                if name == conversation_id and index.isdecimal()
            )
            return any(is_gone(int(index)) for index in indexes)

        with self.records.change(scrub=True) as work:
            deep = self.rows.within(work.write)
            facts = drop_lost_facts(deep, work, conversation_id, stands)
            facts += self.list_derived(work, facts)
            self.forget_memories(work, forget_for_good(work, facts), False)
            deep.drop("answer")
            drop_traces(deep, lambda seen: any(map(is_gone, seen.turns.get(conversation_id, ()))))
            _drop_gaps(deep, has_lost)
            if thread is None:
                for table in ("extraction", "session_job"):
                    deep.drop(table, {"conversation_id": conversation_id})
        if facts:
            self.settle()


def _drop_gaps(deep: TableTransaction, is_gone: Callable[[Row, Sequence[str]], bool]) -> None:
    """Delete the gaps for which `is_gone` is true of the row and its closing sources."""
    for row in deep.find("gap"):
        try:
            is_affected = is_gone(row, parsed(row["closed_by"], list))
        except DAMAGE:
            # Its closing sources cannot be read: a forgotten one may be among them.
            is_affected = True
        if is_affected:
            deep.drop("gap", {"gap_id": row["gap_id"]})
