"""Where facts were taken from, and what goes with something that is forgotten.

A fact that a model took out of a conversation is bound to its turns or memories, and goes with any
of them; it stays where another conversation, or somebody by hand, said the same. With forgotten
memories, or words taken from a conversation, their answers, traces and gaps go too, in the same
transaction where that is possible. It never touches a thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from anaphora.deep.evidence.questions import folded, question_form
from anaphora.deep.evidence.sources import MEMORY
from anaphora.deep.persisted.answers import drop_traces
from anaphora.store.codecs import DAMAGE, parsed
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
"""The `source` of a memory that was taken out of a conversation."""
DREAMT: Final = "dream"
"""The `source` of a memory that answers a gap: it goes with any of its sources."""

OF_MEMORY: Final = -1
"""The position of a source that is a memory, and no turn."""


def bind(work: TableTransaction, record_id: str, sources: Iterable[tuple[str, int, str]]) -> None:
    """Note what a fact was taken from: a conversation or memory, the index of a turn, its text."""
    for source, index, text in sources:
        row: Row = {
            "record_id": record_id,
            "conversation_id": source,
            "position": index,
            "turn_hash": hash_text(text),
        }
        work.put("fact_turn", [row])


def from_turns(
    work: TableTransaction,
    records: RecordTransaction,
    conversation_id: str,
    stands: Callable[[int, str], bool],
) -> list[str]:
    """The facts that must go now, of those taken from a conversation.

    `stands` says whether the turn at an index still has the text of that digest. What binds a fact
    that may stay to turns that are gone is deleted.
    """
    rows = work.find("fact_turn", {"conversation_id": conversation_id})
    hit = {row["record_id"] for row in rows if not stands(row["position"], row["turn_hash"])}
    gone: list[str] = []
    for record_id in sorted(hit):
        bound = work.find("fact_turn", {"record_id": record_id})
        if _stays(records, record_id, bound, conversation_id):
            where = {"record_id": record_id, "conversation_id": conversation_id}
            work.drop("fact_turn", where)
        else:
            gone.append(record_id)
    return gone


def _stays(
    records: RecordTransaction, record_id: str, bound: Sequence[Row], conversation_id: str
) -> bool:
    if _said_by_hand(records, record_id):
        return True
    if any(event.source == DREAMT for event in records.events(record_id)):
        return False
    return any(row["conversation_id"] != conversation_id for row in bound)


def _said_by_hand(records: RecordTransaction, record_id: str) -> bool:
    return any(
        event.kind in {"added", "restated"} and event.source not in {EXTRACTED, DREAMT}
        for event in records.events(record_id)
    )


@dataclass(frozen=True, slots=True)
class DeepForgetting:
    """Forgets in one namespace.

    `conversations` gives the threads; `settle` lets the words leave the index's files too.
    """

    rows: TableRows
    records: Records
    conversations: Callable[[], Conversations]
    settle: Callable[[], object]

    def derived(self, work: RecordTransaction, record_ids: Sequence[str]) -> list[str]:
        """The facts that were taken from these memories, those taken from them again included."""
        deep = self.rows.within(work.write)
        found: dict[str, None] = {}
        waiting = deque(record_ids)
        while waiting:
            where: Where = {"conversation_id": MEMORY + waiting.popleft(), "position": OF_MEMORY}
            for row in deep.find("fact_turn", where):
                fact = row["record_id"]
                if fact not in found and not _said_by_hand(work, fact):
                    found[fact] = None
                    waiting.append(fact)
        return [one for one in found if one not in set(record_ids)]

    def memories_gone(self, work: RecordTransaction, gone: ForgottenRecords, soft: bool) -> None:
        """Memories are forgotten in this change: so is what was answered from them."""
        if not gone.ids:
            return
        deep = self.rows.within(work.write)
        deep.drop("answer")
        if soft:
            return
        ids, texts = set(gone.ids), gone.texts
        drop_traces(deep, lambda seen: bool(seen.memories & ids))
        _drop_bodies(deep, texts)
        sources = {MEMORY + one for one in ids}

        @cache
        def words() -> frozenset[str]:
            # Most homes have no gap: a text of megabytes is not folded for none.
            return frozenset(map(folded, texts))

        _drop_gaps(
            deep, lambda row, by: not sources.isdisjoint(by) or folded(row["question"]) in words()
        )

    def documents_gone(self, work: RecordTransaction, gone: ForgottenRecords, soft: bool) -> None:
        """The same of documents, with the facts that were taken from them."""
        from anaphora.store.records.forgetting import forget_for_good
        from anaphora.store.records.transaction import RecordTransaction

        self.memories_gone(work, gone, soft)
        if soft:
            return
        memories = RecordTransaction(work.write, self.records.sealer)
        facts = self.derived(memories, gone.ids)
        if facts:
            self.memories_gone(memories, forget_for_good(memories, facts), soft)
            memories.finish()

    def holding(self, identifiers: Sequence[Identifier]) -> Iterator[SurvivingSource]:
        """Open questions and traces that hold one of these identifiers."""
        for table, columns in (("gap", ("question", "details")), ("trace", ("question", "body"))):
            for row in self.rows.find(table):
                said = "\n".join(str(row[column]) for column in columns if row[column])
                if any(identifier.held_by(said) for identifier in identifiers):
                    yield SurvivingSource(table, row[f"{table}_id"])

    def words_gone(self, conversation_id: str) -> None:
        """A conversation was deleted, or words of it were redacted."""
        from anaphora.store.records.forgetting import forget_for_good

        if not self._concerned(conversation_id):
            return
        thread = self.conversations().get(conversation_id)
        turns = thread.turns if thread is not None else ()

        said = {question_form(turn.text) for turn in turns}
        redacted = any(REDACTED in one for one in said)

        def stands(index: int, digest: str) -> bool:
            return index < len(turns) and hash_text(turns[index].text) == digest

        def is_gone(index: int) -> bool:
            return index >= len(turns) or REDACTED in turns[index].text

        def has_lost(gap: Row, closed_by: Sequence[str]) -> bool:
            """Whether the gap was asked in words that are gone, or closed by them."""
            lost = not turns or (redacted and question_form(gap["question"]) not in said)
            if lost and gap["conversation_id"] == conversation_id:
                return True
            named = (one.rpartition("#") for one in closed_by)
            own = (at for name, _, at in named if name == conversation_id and at.isdecimal())
            return any(is_gone(int(at)) for at in own)

        with self.records.change() as work:
            deep = self.rows.within(work.write)
            facts = from_turns(deep, work, conversation_id, stands)
            facts += self.derived(work, facts)
            self.memories_gone(work, forget_for_good(work, facts), False)
            deep.drop("answer")
            drop_traces(deep, lambda seen: any(map(is_gone, seen.turns.get(conversation_id, ()))))
            _drop_gaps(deep, has_lost)
            if thread is None:
                for table in ("extraction", "session_job"):
                    deep.drop(table, {"conversation_id": conversation_id})
        self.rows.truth.scrub()
        if facts:
            self.settle()

    def _concerned(self, conversation_id: str) -> bool:
        """Whether there is anything of deep recall at all: most homes have none."""
        return any(
            self.rows.find(table, limit=1)
            for table in ("answer", "trace", "gap", "fact_turn", "session_job", "extraction")
        )


def _drop_bodies(deep: TableTransaction, texts: Iterable[str]) -> None:
    """Traces that repeat forgotten words all the same: a question may have held them."""
    traces = deep.find("trace")
    words = [one for text in texts if len(one := folded(text)) >= 8] if traces else []
    for row in traces if words else ():
        body = folded(row["body"])
        if any(one in body for one in words):
            deep.drop("trace", {"trace_id": row["trace_id"]})


def _drop_gaps(deep: TableTransaction, is_gone: Callable[[Row, Sequence[str]], bool]) -> None:
    """The gaps of which this holds, given what closed each."""
    for row in deep.find("gap"):
        try:
            gone = is_gone(row, parsed(row["closed_by"], list))
        except DAMAGE:
            # What closed it cannot be told: it may be what is forgotten.
            gone = True
        if gone:
            deep.drop("gap", {"gap_id": row["gap_id"]})
