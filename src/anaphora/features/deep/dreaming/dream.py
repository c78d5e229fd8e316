"""One cycle of dreaming: gaps explored again over the present memory, restatements linked.

Every gap is searched from several angles: the question, the question without its interrogative
words, its names and parts, its key terms, and with a model other wordings. Without a model a gap is
closed when a new hit has a calibrated confidence that is sure; with one, when the loop answers it
with sources that exist, and the answer is kept as a memory bound to them. It never deletes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from anaphora.errors import InvalidInput, ModelError, NotFound
from anaphora.features.deep.budget import Meter, OverBudget
from anaphora.features.deep.dreaming.extract import read_rewordings, rewording_prompt
from anaphora.features.deep.evidence.questions import asks_about_the_whole, seed_queries
from anaphora.features.deep.evidence.scope import ScopedEvidence
from anaphora.features.deep.evidence.snapshot import find_news, take_snapshot
from anaphora.features.deep.persisted.forgetting import DREAMT
from anaphora.features.deep.persisted.gaps import GapRecord, GapStore
from anaphora.features.deep.recall import SURE, DeepRecall
from anaphora.features.deep.tools import Models
from anaphora.features.deep.values import (
    Budget,
    CostSnapshot,
    DeepSource,
    DreamReport,
    Extracted,
    Gap,
    Link,
)
from anaphora.language.analyser import STOP_WORDS, query_terms
from anaphora.store.facts import MEMORY, OF_MEMORY, bind
from anaphora.values.conversations import Degraded
from anaphora.values.memories import NewMemory

if TYPE_CHECKING:
    from anaphora.ingest.linking import Relinker
    from anaphora.ingest.memories import MemoryWriter

BUDGET: Final = Budget(iterations=5, sub_calls=60, tokens=400_000, seconds=600.0, dollars=0.5)
"""For a whole cycle, but `iterations`, which is for each gap."""

WITH_MODEL: Final = 5
"""Gaps that a model explores in one cycle, the most asked first."""
WITHOUT_MODEL: Final = 50

_LEAST_TOKENS: Final = 2_000
_LEAST_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Dreamer:
    """Dreams in one namespace. `timer` gives seconds, monotonic."""

    recall: DeepRecall
    gaps: GapStore
    remember: MemoryWriter
    relink: Relinker
    fill_vectors: Callable[[], object]
    timer: Callable[[], float] = time.monotonic

    def cycle(
        self,
        models: Models | None = None,
        budget: Budget | None = None,
        extracted: Sequence[Extracted] = (),
    ) -> DreamReport:
        """One cycle within a budget. `extracted` are the extractions that ran before it."""
        began = self.timer()
        run = _Cycle(self, models, Meter(budget or BUDGET, self.timer))
        with self.recall.rows.change() as work:
            expired_gaps = self.gaps.expire(work)
        for gap in self.gaps.list_records()[: WITHOUT_MODEL if models is None else WITH_MODEL]:
            run.explore(gap)
        links = run.link()
        cost = sum((report.cost for report in extracted), run.spent())
        seconds = self.timer() - began
        return DreamReport(
            explored=tuple(run.explored),
            closed=tuple(run.closed),
            expired=expired_gaps,
            stored=tuple(run.stored),
            links=links,
            extracted=tuple(extracted),
            with_model=models is not None,
            seconds=seconds,
            cost=replace(cost, seconds=seconds),
            degraded=tuple(dict.fromkeys(run.degraded)),
        )


@dataclass(slots=True)
class _Cycle:
    """One cycle, and its results so far. `models` are None once they are used up or failed."""

    dreamer: Dreamer
    models: Models | None
    meter: Meter
    explored: list[Gap] = field(default_factory=list)
    closed: list[Gap] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    costs: list[CostSnapshot] = field(default_factory=list)
    degraded: list[Degraded] = field(default_factory=list)

    def explore(self, record: GapRecord) -> None:
        """Look for the answer of a gap, in the present memory and with the models."""
        self.explored.append(record.gap)
        try:
            scoped_evidence = self.dreamer.recall.scope_evidence(record.to_context())
        except (InvalidInput, NotFound):
            # The conversation in which it was asked is deleted.
            return
        if not self._close_by_confidence(record, scoped_evidence) and self.models is not None:
            try:
                self._answer_by_model(record, scoped_evidence, self.models)
            except OverBudget as over:
                self.degraded.append(Degraded("budget", over.detail))
                self.models = None
            except ModelError as error:
                self.degraded.append(Degraded("model", str(error)))
                self.models = None

    def link(self) -> tuple[Link, ...]:
        """Link memories with the same meaning, after computing missing vectors."""
        from anaphora.errors import EmbeddingError

        try:
            self.dreamer.fill_vectors()
        except EmbeddingError as error:
            self.degraded.append(Degraded("embeddings", str(error)))
        links = self.dreamer.relink.run()
        return tuple(
            Link(link.record_id, link.other_id, link.kind, link.strength) for link in links
        )

    def spent(self) -> CostSnapshot:
        """The cost of the cycle so far."""
        return sum(self.costs, self.meter.snapshot())

    def _close_by_confidence(self, record: GapRecord, scoped: ScopedEvidence) -> bool:
        """Close a gap by evidence that exists now, without a model."""
        question = record.gap.question
        if asks_about_the_whole(question) is not None:
            return False
        for query in list_angles(question, whole=True):
            sure = [hit for hit in scoped.weigh(query) if (hit.score or 0.0) >= SURE]
            if record.then is not None:
                new_ids = {hit.id for hit in self._find_news(record, scoped, query)}
                sure = [hit for hit in sure if hit.id in new_ids]
            if sure:
                self._close(record, [hit.id for hit in sure])
                return True
        return False

    def _answer_by_model(self, record: GapRecord, scoped: ScopedEvidence, models: Models) -> None:
        """Let the loop answer a gap that may have an answer now."""
        question, recall = record.gap.question, self.dreamer.recall
        self._remaining_budget()
        reply = self.meter.ask("sub", models.sub, rewording_prompt(question), 200)
        has_tried = record.then is not None and set(models.names) <= set(record.tried)
        queries = (*list_angles(question), *read_rewordings(reply.text))
        # These models have searched before: they search again if any angle finds something new.
        if has_tried and not any(self._find_news(record, scoped, query) for query in queries):
            return
        answer = recall.answer(record.to_context(models.names), models, self._remaining_budget())
        self.costs.append(answer.cost)
        model_failures = [part for part in answer.degraded if part.part == "model"]
        self.degraded += model_failures
        # A model that sent a last reply has searched, even if that reply is of no use.
        is_searched = not model_failures or answer.steps[-1].kind == "extraction"
        if answer.supported and answer.answer:
            # The answer is a memory bound to its sources: it is forgotten with them.
            first = next((source for source in answer.sources if source.kind == "turn"), None)
            memory = self.dreamer.remember.remember(
                NewMemory(
                    f"{question} {answer.answer}",
                    source=DREAMT,
                    conversation_id=first.conversation_id if first else None,
                    turn_index=first.index if first else None,
                )
            )
            self.stored.append(memory.id)
            bound = [
                (source.id, OF_MEMORY, source.text)
                if source.conversation_id is None or source.index is None
                else (source.conversation_id, source.index, source.text)
                for source in answer.sources
            ]
            with recall.rows.change() as work:
                bind(work, memory.id, bound)
            self._close(record, [*(source.id for source in answer.sources), MEMORY + memory.id])
        elif is_searched:
            snapshot = take_snapshot(recall.lane, scoped, question)
            with recall.rows.change() as work:
                self.dreamer.gaps.note_tried(work, record, snapshot, models.names)
        if not is_searched:
            self.models = None

    def _find_news(
        self, record: GapRecord, scoped: ScopedEvidence, query: str
    ) -> tuple[DeepSource, ...]:
        assert record.then is not None
        return find_news(self.dreamer.recall.lane, scoped, record.gap.question, record.then, query)

    def _close(self, record: GapRecord, by: Sequence[str]) -> None:
        with self.dreamer.recall.rows.change() as work:
            self.closed.append(self.dreamer.gaps.close(work, record, by))

    def _remaining_budget(self) -> Budget:
        """The rest of the cycle's budget. Raises `OverBudget` if that is too small."""
        spent, budget = self.spent(), self.meter.budget
        tokens = budget.tokens - spent.input_tokens - spent.output_tokens
        seconds = self.meter.seconds_left()
        dollars = budget.dollars
        if dollars is not None:
            dollars -= spent.estimated_dollars or 0.0
        used_up_by_limit = {
            "tokens": tokens < _LEAST_TOKENS,
            "seconds": seconds < _LEAST_SECONDS,
            "dollars": dollars is not None and dollars <= 0.0,
        }
        for limit, over in used_up_by_limit.items():
            if over:
                raise OverBudget(limit, f"the {limit} of this cycle are used up")
        sub_calls = max(0, budget.sub_calls - spent.sub_calls)
        return replace(budget, tokens=tokens, seconds=seconds, dollars=dollars, sub_calls=sub_calls)


def list_angles(question: str, *, whole: bool = False) -> tuple[str, ...]:
    """Different queries for the answer of a question, itself first.

    With `whole`, only those for the whole question: a hit for a part is no answer.
    """
    terms = query_terms(question)
    key_terms = " ".join(term for term in terms if term not in STOP_WORDS)
    queries = dict.fromkeys([*seed_queries(question), *([key_terms] if key_terms else [])])
    if not whole:
        return tuple(queries)
    return tuple(
        query for query in queries if set(terms) <= set(query_terms(query)) or query == key_terms
    )
