"""One cycle of dreaming: gaps explored again over what is known now, restatements linked.

Every gap is looked at from several angles: the question, its words without the asking, its names
and parts, its key terms, and with a model other words for it. Without a model a gap is closed when
something new is there that the calibrated confidence is sure of; with one, when the loop answers
it with sources that exist, and the answer is kept as a memory bound to them. It never deletes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from anaphora.core.analyser import STOP_WORDS, query_terms
from anaphora.deep.budget import Meter, OverBudget
from anaphora.deep.dreaming.extract import reworded, rewording_prompt
from anaphora.deep.evidence.questions import asks_about_the_whole, seed_queries
from anaphora.deep.evidence.scope import ScopedEvidence
from anaphora.deep.evidence.snapshot import news, snapshot
from anaphora.deep.evidence.sources import MEMORY
from anaphora.deep.persisted.forgetting import DREAMT, OF_MEMORY, bind
from anaphora.deep.persisted.gaps import GapRecord, GapStore
from anaphora.deep.recall import SURE, DeepRecall
from anaphora.deep.tools import Models
from anaphora.errors import InvalidInput, ModelError
from anaphora.values.conversations import Degraded
from anaphora.values.deep import (
    Budget,
    CostSnapshot,
    DeepAnswer,
    DeepSource,
    DreamReport,
    Extracted,
    Gap,
    Link,
)
from anaphora.values.memories import NewMemory

if TYPE_CHECKING:
    from anaphora.ingest.linking import Relinker
    from anaphora.ingest.memories import MemoryWriter

BUDGET: Final = Budget(iterations=5, sub_calls=60, tokens=400_000, seconds=600.0, dollars=0.5)
"""For a whole cycle, but `iterations`, which is for each gap."""

WITH_MODEL: Final = 5
"""Gaps that a model is asked about in one cycle, the most asked first."""
WITHOUT_MODEL: Final = 50

_LEAST_TOKENS: Final = 2_000
_LEAST_SECONDS: Final = 1.0


@dataclass(slots=True)
class _CycleResults:
    """What a cycle has come to so far."""

    explored: list[Gap] = field(default_factory=list)
    closed: list[Gap] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    costs: list[CostSnapshot] = field(default_factory=list)
    degraded: list[Degraded] = field(default_factory=list)


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
        """One cycle within a budget. `extracted` is what was taken out of sessions before it."""
        began = self.timer()
        meter = Meter(budget or BUDGET, self.timer)
        rows = self.recall.rows
        results = _CycleResults()
        with rows.change() as work:
            expired = self.gaps.expire(work)
        asking = models
        for known in self.gaps.known()[: WITHOUT_MODEL if models is None else WITH_MODEL]:
            results.explored.append(known.gap)
            if self._by_confidence(known, results):
                continue
            if asking is not None and not self._by_model(known, asking, meter, results):
                asking = None
        links = self._link(results)
        costs = (*results.costs, *(one.cost for one in extracted))
        cost = sum(costs, meter.snapshot())
        seconds = self.timer() - began
        return DreamReport(
            explored=tuple(results.explored),
            closed=tuple(results.closed),
            expired=expired,
            stored=tuple(results.stored),
            links=links,
            extracted=tuple(extracted),
            with_model=models is not None,
            seconds=seconds,
            cost=replace(cost, seconds=seconds),
            degraded=tuple(dict.fromkeys(results.degraded)),
        )

    def _scoped(self, known: GapRecord) -> ScopedEvidence | None:
        """The evidence where the question was asked; None where that conversation is gone."""
        try:
            return self.recall.scoped(known.asked())
        except InvalidInput:
            return None

    def _by_confidence(self, known: GapRecord, results: _CycleResults) -> bool:
        """Close a gap whose evidence is there now, without asking anybody."""
        question = known.gap.question
        scoped = self._scoped(known)
        if scoped is None or asks_about_the_whole(question) is not None:
            return False
        lane, then = self.recall.lane, known.then
        for query in angles(question, whole=True):
            new = None
            if then is not None:
                new = {one.id for one in news(lane, scoped, question, then, query)}
            sure = [
                one
                for one in scoped.weighed(query)
                if (one.score or 0.0) >= SURE and (new is None or one.id in new)
            ]
            if sure:
                self._close(known, sure, results)
                return True
        return False

    def _by_model(
        self, known: GapRecord, models: Models, meter: Meter, results: _CycleResults
    ) -> bool:
        """Let the loop answer a gap that may have an answer now; False when models are done."""
        scoped = self._scoped(known)
        if scoped is None:
            return True
        question = known.gap.question
        try:
            _left(meter, results)
            queries = [*angles(question), *self._reworded(question, models, meter)]
            if not self._worth_asking(known, scoped, queries, models):
                return True
            asked = known.asked(models.names)
            answer = self.recall.answer(asked, models, _left(meter, results))
        except OverBudget as over:
            results.degraded.append(Degraded("budget", over.detail))
            return False
        except ModelError as error:
            results.degraded.append(Degraded("model", str(error)))
            return False
        results.costs.append(answer.cost)
        failed = [part for part in answer.degraded if part.part == "model"]
        results.degraded += failed
        # One that was heard to the end has looked, even if what it said is of no use.
        looked = not failed or answer.steps[-1].kind == "extraction"
        if answer.supported and answer.answer:
            self._close(known, answer.sources, results, answer)
        elif looked:
            then = snapshot(self.recall.lane, scoped, question)
            with self.recall.rows.change() as work:
                self.gaps.tried(work, known, then, models.names)
        return looked

    def _worth_asking(
        self, known: GapRecord, scoped: ScopedEvidence, queries: Iterable[str], models: Models
    ) -> bool:
        """Whether these models have not looked yet, or something is new by any angle."""
        if known.then is None or not set(models.names) <= set(known.tried):
            return True
        lane, then, question = self.recall.lane, known.then, known.gap.question
        return any(news(lane, scoped, question, then, query) for query in queries)

    @staticmethod
    def _reworded(question: str, models: Models, meter: Meter) -> tuple[str, ...]:
        return reworded(meter.ask("sub", models.sub, rewording_prompt(question), 200).text)

    def _close(
        self,
        known: GapRecord,
        sources: Sequence[DeepSource],
        results: _CycleResults,
        answer: DeepAnswer | None = None,
    ) -> None:
        by = [one.id for one in sources]
        if answer is not None:
            stored = self._store(known, answer)
            results.stored.append(stored)
            by.append(MEMORY + stored)
        with self.recall.rows.change() as work:
            results.closed.append(self.gaps.close(work, known, by))

    def _store(self, known: GapRecord, answer: DeepAnswer) -> str:
        """Keep what a model has found, with what it stands on: it goes when that goes."""
        first = next((one for one in answer.sources if one.kind == "turn"), None)
        done = self.remember.remember(
            NewMemory(
                f"{known.gap.question} {answer.answer}",
                source=DREAMT,
                conversation_id=first.conversation_id if first else None,
                turn_index=first.index if first else None,
            )
        )
        with self.recall.rows.change() as work:
            bind(work, done.id, map(_taken_from, answer.sources))
        return done.id

    def _link(self, results: _CycleResults) -> tuple[Link, ...]:
        from anaphora.errors import EmbeddingError

        try:
            self.fill_vectors()
        except EmbeddingError as error:
            results.degraded.append(Degraded("embeddings", str(error)))
        return tuple(
            Link(one.record_id, one.other_id, one.kind, one.strength) for one in self.relink.run()
        )


def angles(question: str, *, whole: bool = False) -> tuple[str, ...]:
    """Different ways to look for the answer of a question, itself first.

    With `whole`, only those that ask for all of it: a hit for a part is no answer.
    """
    terms = query_terms(question)
    key = " ".join(term for term in terms if term not in STOP_WORDS)
    found = dict.fromkeys([*seed_queries(question), *([key] if key else [])])
    if not whole:
        return tuple(found)
    return tuple(one for one in found if set(terms) <= set(query_terms(one)) or one == key)


def _taken_from(source: DeepSource) -> tuple[str, int, str]:
    if source.conversation_id is None or source.index is None:
        return source.id, OF_MEMORY, source.text
    return source.conversation_id, source.index, source.text


def _left(meter: Meter, results: _CycleResults) -> Budget:
    """What the cycle may still spend. Raises `OverBudget`."""
    spent, whole = sum(results.costs, meter.snapshot()), meter.budget
    tokens = whole.tokens - spent.input_tokens - spent.output_tokens
    seconds = meter.seconds_left()
    dollars = whole.dollars
    if dollars is not None:
        dollars -= spent.estimated_dollars or 0.0
    short = {"tokens": tokens < _LEAST_TOKENS, "seconds": seconds < _LEAST_SECONDS}
    short["dollars"] = dollars is not None and dollars <= 0.0
    for limit, over in short.items():
        if over:
            raise OverBudget(limit, f"the {limit} of this cycle are used up")
    sub_calls = max(0, whole.sub_calls - spent.sub_calls)
    return replace(whole, tokens=tokens, seconds=seconds, dollars=dollars, sub_calls=sub_calls)
