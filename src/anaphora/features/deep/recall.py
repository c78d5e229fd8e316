"""Deep recall: from a question to an answer with sources that exist, at a known cost.

A cached answer comes first, then the shortcut (hits that are so sure that no model is asked), then
the loop; without a model, and if it fails, the best evidence and the reason. A question without an
answer becomes a gap, and the steps to every answer are stored as a trace. It raises only for bad
arguments and for a database that cannot be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from anaphora.errors import NotFound
from anaphora.features.deep.budget import check_question
from anaphora.features.deep.evidence.counting import COUNTED, count_mentions
from anaphora.features.deep.evidence.questions import (
    asks_about_the_whole,
    question_form,
    says_nothing,
)
from anaphora.features.deep.evidence.scope import NamespaceEvidence, ScopedEvidence, ShownSources
from anaphora.features.deep.evidence.snapshot import TOP, EvidenceSnapshot, take_snapshot
from anaphora.features.deep.evidence.sources import quote_ids
from anaphora.features.deep.persisted.answers import AnswerCache, QuestionScope, Secrets, TraceStore
from anaphora.features.deep.persisted.gaps import GapStore
from anaphora.features.deep.tools import Models
from anaphora.features.deep.values import Budget, DeepAnswer, DeepSource, DeepStep, Scope
from anaphora.ingest.secrets.masking import cut_between_secrets
from anaphora.language.analyser import query_terms
from anaphora.rank.budget import fill, token_cost
from anaphora.rank.confidence import REACH
from anaphora.recall.snippets import passage
from anaphora.store.facts import MEMORY
from anaphora.text.shown_times import in_shown_zone
from anaphora.values.conversations import Excerpt

if TYPE_CHECKING:
    from anaphora.features.deep.loop import LoopResult, OnStep
    from anaphora.features.deep.sandbox.base import Engine
    from anaphora.store.table_rows import TableRows


SURE: Final = 0.8
NEEDED: Final = 3
BUDGET: Final = 2_500
"""Tokens of the returned evidence: hits first, then their neighbours, nearest first."""


def shortcut(scoped: ScopedEvidence, question: str) -> tuple[DeepSource, ...]:
    """The sure hits, if there are at least three; empty if a model must look."""
    if asks_about_the_whole(question) is not None:
        return ()
    sure = tuple(hit for hit in scoped.weigh(question) if (hit.score or 0.0) >= SURE)
    return sure if len(sure) >= NEEDED else ()


def best_evidence(
    scoped: ScopedEvidence, hits: Iterable[DeepSource], question: str, budget: int = BUDGET
) -> tuple[DeepSource, ...]:
    """The hits and their neighbourhoods within a budget of tokens, each conversation in its order.

    Hits come before neighbours, near neighbours before far ones; at least one hit. A long text that
    does not fit is cut to the passage that is relevant to the question.
    """
    ranked_hits = list(dict.fromkeys(hits))
    around: list[tuple[int, int, DeepSource]] = []
    for rank, hit in enumerate(ranked_hits):
        if hit.conversation_id is None or hit.index is None:
            continue
        first = max(0, hit.index - REACH)
        try:
            near = scoped.transcript(hit.conversation_id, first, hit.index + REACH + 1)
        except NotFound:
            continue  # It was deleted while the question was being answered.
        around += [
            (abs((turn.index or 0) - hit.index), rank, turn) for turn in near if turn.id != hit.id
        ]
    around.sort(key=lambda entry: entry[:2])
    sources: dict[str, DeepSource] = {}
    for source in (*ranked_hits, *(turn for _, _, turn in around)):
        sources.setdefault(source.id, source)
    chosen_hits = fill(
        sources.values(), lambda source: token_cost(source.text), top_k=len(sources), budget=budget
    )
    excerpts: list[DeepSource] = []
    for choice in chosen_hits:
        source = choice.hit
        if choice.room is not None:
            span = passage(source.text, query_terms(question), 4 * choice.room)
            start, end = cut_between_secrets(source.text, *span)
            excerpt = Excerpt(start, end, len(source.text))
            source = replace(source, text=source.text[start:end], excerpt=excerpt)
        excerpts.append(source)
    positions = {
        name: position
        for position, name in enumerate(
            dict.fromkeys(_conversation_of(source) for source in ranked_hits)
        )
    }
    return tuple(
        sorted(
            excerpts, key=lambda source: (positions[_conversation_of(source)], source.index or 0)
        )
    )


def format_sources(sources: Sequence[DeepSource]) -> str:
    """Evidence as text for an agent: one line per turn, with its id, time and speaker."""
    lines = []
    for source in sources:
        when = (
            f" {in_shown_zone(source.ts):%Y-%m-%d %H:%M}"
            if source.ts is not None and source.ts.year > 1
            else ""
        )
        who = source.role or "memory"
        lines.append(f"[{source.id}{when}] {who}: {' '.join(source.text.split())}")
    return "\n".join(lines)


def _conversation_of(source: DeepSource) -> str:
    return source.conversation_id or MEMORY


EVIDENCE: Final = "this is the best evidence, not an answer"
NO_MODEL: Final = (
    f"no model is configured: {EVIDENCE}. Set ANAPHORA_MODEL (for "
    "example openai:gpt-4o-mini) and its key, or ANAPHORA_MODEL_URL for a server of your own, or "
    "open the memory with model=…"
)
HITS: Final = 6
"""Hits that are shown if no model could read them."""
UNLIKELY: Final = 0.5
"""Without a model, a question whose surest hit is below this is a blind spot."""


@dataclass(frozen=True, slots=True)
class DeepRecall:
    """Answers questions in one namespace. `models` and `engine` are called when needed.

    `timer` gives seconds, monotonic; `ids` new ids of traces. `execution_seconds` bounds a run of
    a model's code if the budget of a question does not.
    """

    lane: NamespaceEvidence
    rows: TableRows
    answers: AnswerCache
    gaps: GapStore
    traces: TraceStore
    models: Callable[[], Models | None]
    engine: Callable[[], Engine]
    ids: Callable[[], str]
    timer: Callable[[], float]
    execution_seconds: float

    def recall(
        self,
        question: str,
        *,
        scope: Scope = "recent_sessions",
        conversation_id: str | None = None,
        include_memory: bool = True,
        budget: Budget | None = None,
        on_step: OnStep | None = None,
    ) -> DeepAnswer:
        """Answer `question`; see `Memory.deep_recall`."""
        question = check_question(question)
        models = self.models()
        if models is not None:
            models.begin()
        names = models.names if models else ()
        secrets = Secrets.of(question)
        context = QuestionScope(question, scope, conversation_id, include_memory, names, secrets)
        scoped_evidence = self.scope_evidence(context)
        if models is not None:
            cached_answer = self.answers.find_answer(context, scoped_evidence)
            if cached_answer is not None:
                if on_step is not None:
                    for step in cached_answer.steps:
                        on_step(step)
                return cached_answer
        hits = shortcut(scoped_evidence, question)
        if hits:
            return self._answer_from_hits(context, scoped_evidence, hits, on_step)
        if models is None:
            count_answer = count_mentions(scoped_evidence, question)
            if count_answer is None:
                return self._answer_with_evidence(context, scoped_evidence)
            # A count is no gap, and not worth caching.
            answer = DeepAnswer(
                question,
                count_answer.text,
                count_answer.sources,
                supported=True,
                trace_id=self.ids(),
                note=COUNTED,
                degraded=scoped_evidence.degraded,
            )
            with self.rows.change() as work:
                self.traces.put_trace(work, answer, scoped_evidence.seen, secrets)
            return answer
        return self._answer_from_loop(context, scoped_evidence, models, budget, on_step)

    def scope_evidence(
        self, context: QuestionScope, seen: ShownSources | None = None
    ) -> ScopedEvidence:
        """The evidence that a question may see now; `seen` as in `NamespaceEvidence.within`."""
        return self.lane.within(
            context.scope, context.conversation_id, include_memory=context.include_memory, seen=seen
        )

    def answer(self, context: QuestionScope, models: Models, budget: Budget) -> DeepAnswer:
        """The loop's answer, without cache, shortcut, gap or trace: for a dream."""
        outcome = self._run_loop(context, self.scope_evidence(context), models, budget)
        return _to_answer(context.question, outcome, self.scope_evidence(context))

    def _answer_from_hits(
        self,
        context: QuestionScope,
        scoped: ScopedEvidence,
        hits: Sequence[DeepSource],
        on_step: OnStep | None,
    ) -> DeepAnswer:
        sources = best_evidence(scoped, hits, context.question)
        sure_hits = ", ".join(f"{hit.id} {hit.score or 0.0:.2f}" for hit in hits)
        text = format_sources(sources)
        step = DeepStep(0, "shortcut", thought=f"sure hits: {sure_hits}", output=text)
        if on_step is not None:
            on_step(step)
        answer = DeepAnswer(
            context.question,
            text,
            sources,
            shortcut=True,
            supported=True,
            steps=(step,),
            trace_id=self.ids(),
            note="the evidence itself: the search is sure of it, and no model was asked",
            degraded=scoped.degraded,
        )
        with self.rows.change() as work:
            self.gaps.close_question(work, context, [hit.id for hit in hits])
            self.traces.put_trace(work, answer, scoped.seen, context.secrets)
        return answer

    def _answer_with_evidence(
        self, context: QuestionScope, scoped: ScopedEvidence, failed: LoopResult | None = None
    ) -> DeepAnswer:
        """The best evidence: without a model, or if a loop has ended without the model's answer."""
        snapshot = take_snapshot(self.lane, scoped, context.question)
        weighed_sources = scoped.weigh(context.question)
        sources = best_evidence(scoped, weighed_sources[:HITS], context.question)
        answer = DeepAnswer(
            context.question,
            "",
            sources,
            complete=False,
            trace_id=self.ids(),
            note=NO_MODEL,
            degraded=scoped.degraded,
        )
        blind = not weighed_sources or (weighed_sources[0].score or 0.0) < UNLIKELY
        if failed is not None:
            why = next(
                (
                    degradation.reason
                    for degradation in failed.degraded
                    if degradation.part == "model"
                ),
                None,
            )
            # A model that could not be reached has not searched: that is no gap of the memory.
            blind = why is None
            answer = replace(
                answer,
                steps=failed.steps,
                cost=failed.cost,
                limit=failed.limit,
                note=f"{(why or failed.note).rstrip('.')}; {EVIDENCE}",
                degraded=tuple(dict.fromkeys((*failed.degraded, *scoped.degraded))),
            )
        return self._store_answer(context, answer, snapshot, scoped.seen, blind=blind)

    def _answer_from_loop(
        self,
        context: QuestionScope,
        scoped: ScopedEvidence,
        models: Models,
        budget: Budget | None,
        on_step: OnStep | None,
    ) -> DeepAnswer:
        # Taken before: the model may miss the answer in a row written while it works.
        snapshot = take_snapshot(self.lane, scoped, context.question)
        evidence = self.scope_evidence(context, scoped.seen)
        outcome = self._run_loop(context, evidence, models, budget, on_step)
        if not outcome.answered:
            return self._answer_with_evidence(context, scoped, outcome)
        answer = replace(_to_answer(context.question, outcome, scoped), trace_id=self.ids())
        blind = not (answer.answer and answer.supported)
        reusable = answer.complete and answer.supported and not answer.degraded
        return self._store_answer(
            context, answer, snapshot, scoped.seen, blind=blind, reusable=reusable
        )

    def _run_loop(
        self,
        context: QuestionScope,
        scoped: ScopedEvidence,
        models: Models,
        budget: Budget | None,
        on_step: OnStep | None = None,
    ) -> LoopResult:
        from anaphora.features.deep.loop import DeepLoop

        loop = DeepLoop(
            models.code,
            models.sub,
            self.engine(),
            self.timer,
            execution_seconds=self.execution_seconds,
        )
        return loop.run(context.question, scoped, budget, on_step)

    def _store_answer(
        self,
        context: QuestionScope,
        answer: DeepAnswer,
        then: EvidenceSnapshot,
        seen: ShownSources,
        *,
        blind: bool,
        reusable: bool = False,
    ) -> DeepAnswer:
        """Write an answer's gap, trace and cache entry in one change; returns the answer."""
        located_scope = context
        if blind and context.conversation_id is None:
            # With the conversation that stores the question: the gap is deleted with that one.
            form = question_form(context.question)
            scoped_evidence = self.lane.within(context.scope, include_memory=False)
            conversation_ids = (
                hit.conversation_id
                for hit in scoped_evidence.search(context.question, TOP)
                if question_form(hit.text) == form
            )
            located_scope = replace(context, conversation_id=next(conversation_ids, None))
        with self.rows.change() as work:
            if blind:
                gap = self.gaps.register(work, located_scope, then)
                answer = replace(answer, gap_id=gap.id)
            elif answer.supported and answer.answer:
                self.gaps.close_question(work, context, [s.id for s in answer.sources])
            if reusable and answer.answer:
                self.answers.put_answer(work, context, answer, then)
            self.traces.put_trace(work, answer, seen, context.secrets)
        return answer


def _to_answer(question: str, outcome: LoopResult, scoped: ScopedEvidence) -> DeepAnswer:
    """The answer of a loop, its sources looked up: an unknown source supports nothing."""
    looked_up = {source_id: scoped.source(source_id) for source_id in outcome.source_ids}
    sources = tuple(source for source in looked_up.values() if source is not None)
    unknown = [
        *outcome.unknown_ids,
        *(name for name, source in looked_up.items() if source is None),
    ]
    useful = not says_nothing(outcome.answer)
    note = outcome.note
    if unknown:
        problem = f"it cites sources that do not exist: {quote_ids(unknown)}"
        note = f"{note}; {problem}" if note else problem
    return DeepAnswer(
        question,
        outcome.answer if useful else "",
        sources if useful else (),
        complete=outcome.complete,
        supported=useful and bool(sources) and not unknown,
        steps=outcome.steps,
        cost=outcome.cost,
        limit=outcome.limit,
        note=note,
        degraded=outcome.degraded,
    )
