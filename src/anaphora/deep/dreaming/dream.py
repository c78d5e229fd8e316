"""One cycle of dreaming: gaps explored again over what is known now, restatements linked.

Every gap is looked at from several angles: the question, its words without the asking, its names
and parts, its key terms, and with a model other words for it. Without a model a gap is closed when
something new is there that the calibrated confidence is sure of; with one, when the loop answers
it with sources that exist, and the answer is kept as a memory bound to them. It never deletes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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
from anaphora.errors import InvalidInput, ModelError, NotFound
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
        run = _Cycle(self, models, Meter(budget or BUDGET, self.timer))
        with self.recall.rows.change() as work:
            expired = self.gaps.expire(work)
        for known in self.gaps.known()[: WITHOUT_MODEL if models is None else WITH_MODEL]:
            run.explore(known)
        links = run.link()
        cost = sum((one.cost for one in extracted), run.spent())
        seconds = self.timer() - began
        return DreamReport(
            explored=tuple(run.explored),
            closed=tuple(run.closed),
            expired=expired,
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
    """One cycle, and what it has come to so far. `models` are None once they are done."""

    dreamer: Dreamer
    models: Models | None
    meter: Meter
    explored: list[Gap] = field(default_factory=list)
    closed: list[Gap] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    costs: list[CostSnapshot] = field(default_factory=list)
    degraded: list[Degraded] = field(default_factory=list)

    def explore(self, known: GapRecord) -> None:
        """Look for the answer of a gap, in what is there now and with the models."""
        self.explored.append(known.gap)
        try:
            scoped = self.dreamer.recall.scoped(known.asked())
        except (InvalidInput, NotFound):
            # The conversation in which it was asked is gone.
            return
        if not self._by_confidence(known, scoped) and self.models is not None:
            try:
                self._by_model(known, scoped, self.models)
            except OverBudget as over:
                self.degraded.append(Degraded("budget", over.detail))
                self.models = None
            except ModelError as error:
                self.degraded.append(Degraded("model", str(error)))
                self.models = None

    def link(self) -> tuple[Link, ...]:
        """Link memories that say the same, those without a vector yet included."""
        from anaphora.errors import EmbeddingError

        try:
            self.dreamer.fill_vectors()
        except EmbeddingError as error:
            self.degraded.append(Degraded("embeddings", str(error)))
        found = self.dreamer.relink.run()
        return tuple(Link(one.record_id, one.other_id, one.kind, one.strength) for one in found)

    def spent(self) -> CostSnapshot:
        """What the cycle has cost."""
        return sum(self.costs, self.meter.snapshot())

    def _by_confidence(self, known: GapRecord, scoped: ScopedEvidence) -> bool:
        """Close a gap whose evidence is there now, without asking anybody."""
        question = known.gap.question
        if asks_about_the_whole(question) is not None:
            return False
        for query in angles(question, whole=True):
            sure = [one for one in scoped.weighed(query) if (one.score or 0.0) >= SURE]
            if known.then is not None:
                new = {one.id for one in self._news(known, scoped, query)}
                sure = [one for one in sure if one.id in new]
            if sure:
                self._close(known, [one.id for one in sure])
                return True
        return False

    def _by_model(self, known: GapRecord, scoped: ScopedEvidence, models: Models) -> None:
        """Let the loop answer a gap that may have an answer now."""
        question, recall = known.gap.question, self.dreamer.recall
        self._left()
        reply = self.meter.ask("sub", models.sub, rewording_prompt(question), 200)
        tried = known.then is not None and set(models.names) <= set(known.tried)
        queries = (*angles(question), *reworded(reply.text))
        # These models have looked before: they look again where something is new by any angle.
        if tried and not any(self._news(known, scoped, query) for query in queries):
            return
        answer = recall.answer(known.asked(models.names), models, self._left())
        self.costs.append(answer.cost)
        failed = [part for part in answer.degraded if part.part == "model"]
        self.degraded += failed
        # One that was heard to the end has looked, even if what it said is of no use.
        looked = not failed or answer.steps[-1].kind == "extraction"
        if answer.supported and answer.answer:
            stored = self._store(known, answer)
            self._close(known, [*(one.id for one in answer.sources), MEMORY + stored])
        elif looked:
            then = snapshot(recall.lane, scoped, question)
            with recall.rows.change() as work:
                self.dreamer.gaps.tried(work, known, then, models.names)
        if not looked:
            self.models = None

    def _news(self, known: GapRecord, scoped: ScopedEvidence, query: str) -> tuple[DeepSource, ...]:
        assert known.then is not None
        return news(self.dreamer.recall.lane, scoped, known.gap.question, known.then, query)

    def _close(self, known: GapRecord, by: Sequence[str]) -> None:
        with self.dreamer.recall.rows.change() as work:
            self.closed.append(self.dreamer.gaps.close(work, known, by))

    def _store(self, known: GapRecord, answer: DeepAnswer) -> str:
        """Keep what a model has found, with what it stands on: it goes when that goes."""
        first = next((one for one in answer.sources if one.kind == "turn"), None)
        done = self.dreamer.remember.remember(
            NewMemory(
                f"{known.gap.question} {answer.answer}",
                source=DREAMT,
                conversation_id=first.conversation_id if first else None,
                turn_index=first.index if first else None,
            )
        )
        self.stored.append(done.id)
        with self.dreamer.recall.rows.change() as work:
            bind(work, done.id, map(_taken_from, answer.sources))
        return done.id

    def _left(self) -> Budget:
        """What the cycle may still spend. Raises `OverBudget`."""
        spent, whole = self.spent(), self.meter.budget
        tokens = whole.tokens - spent.input_tokens - spent.output_tokens
        seconds = self.meter.seconds_left()
        dollars = whole.dollars
        if dollars is not None:
            dollars -= spent.estimated_dollars or 0.0
        short = {
            "tokens": tokens < _LEAST_TOKENS,
            "seconds": seconds < _LEAST_SECONDS,
            "dollars": dollars is not None and dollars <= 0.0,
        }
        for limit, over in short.items():
            if over:
                raise OverBudget(limit, f"the {limit} of this cycle are used up")
        sub_calls = max(0, whole.sub_calls - spent.sub_calls)
        return replace(whole, tokens=tokens, seconds=seconds, dollars=dollars, sub_calls=sub_calls)


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
