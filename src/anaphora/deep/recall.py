"""Deep recall: from a question to an answer with sources that exist, at a known cost.

A cached answer comes first, then the shortcut (hits that are so sure that no model is asked), then
the loop; without a model, and where it fails, the best evidence and the reason. A question without
an answer becomes a gap, and how an answer was found is kept as a trace. It raises only for bad
arguments and for truth that cannot be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from anaphora.core.analyser import query_terms
from anaphora.core.shown_times import in_shown_zone
from anaphora.deep.budget import checked_question
from anaphora.deep.evidence.counting import COUNTED, Counted, count_mentions
from anaphora.deep.evidence.questions import asks_about_the_whole, question_form, says_nothing
from anaphora.deep.evidence.scope import NamespaceEvidence, ScopedEvidence, ShownSources
from anaphora.deep.evidence.snapshot import TOP, Snapshot, snapshot
from anaphora.deep.evidence.sources import MEMORY, named
from anaphora.deep.persisted.answers import AnswerCache, QuestionContext, Secrets, TraceStore
from anaphora.deep.persisted.gaps import GapStore
from anaphora.deep.tools import Models
from anaphora.errors import NotFound
from anaphora.ingest.secrets.masking import cut_between_secrets
from anaphora.rank.budget import fill, token_cost
from anaphora.rank.confidence import REACH
from anaphora.recall.snippets import passage
from anaphora.values.conversations import Excerpt
from anaphora.values.deep import Budget, DeepAnswer, DeepSource, DeepStep, Scope

if TYPE_CHECKING:
    from anaphora.deep.loop import LoopResult, OnStep
    from anaphora.deep.sandbox.base import Engine
    from anaphora.store.table_rows import TableRows


SURE: Final = 0.8
NEEDED: Final = 3
BUDGET: Final = 2_500
"""Tokens of the evidence that is given back: hits first, then their neighbours, nearest first."""


def shortcut(scoped: ScopedEvidence, question: str) -> tuple[DeepSource, ...]:
    """The hits of which at least three are sure; empty where a model must look."""
    if asks_about_the_whole(question) is not None:
        return ()
    sure = tuple(one for one in scoped.weighed(question) if (one.score or 0.0) >= SURE)
    return sure if len(sure) >= NEEDED else ()


def best_evidence(
    scoped: ScopedEvidence, hits: Iterable[DeepSource], question: str, budget: int = BUDGET
) -> tuple[DeepSource, ...]:
    """The hits and their neighbourhoods within a budget of tokens, each conversation in its order.

    Hits come before neighbours, near neighbours before far ones; one hit at least. Of a long text
    that does not fit the passage that bears on the question comes.
    """
    wanted = list(dict.fromkeys(hits))
    found: dict[str, DeepSource] = {}
    for one in (*wanted, *_neighbours(scoped, wanted)):
        found.setdefault(one.id, one)
    taken = fill(found.values(), lambda one: token_cost(one.text), top_k=len(found), budget=budget)
    shown_of = [_shortened(one.hit, one.room, question) for one in taken]
    order = {name: at for at, name in enumerate(dict.fromkeys(_place(one) for one in wanted))}
    return tuple(sorted(shown_of, key=lambda one: (order[_place(one)], one.index or 0)))


def _shortened(source: DeepSource, room: int | None, question: str) -> DeepSource:
    if room is None:
        return source
    wanted = passage(source.text, query_terms(question), 4 * room)
    start, end = cut_between_secrets(source.text, *wanted)
    place = Excerpt(start, end, len(source.text))
    return replace(source, text=source.text[start:end], excerpt=place)


def shown(sources: Sequence[DeepSource]) -> str:
    """Evidence as text for an agent: one line a turn, with who said it, when, and its id."""
    lines = []
    for one in sources:
        when = (
            f" {in_shown_zone(one.ts):%Y-%m-%d %H:%M}"
            if one.ts is not None and one.ts.year > 1
            else ""
        )
        who = one.role or "memory"
        lines.append(f"[{one.id}{when}] {who}: {' '.join(one.text.split())}")
    return "\n".join(lines)


def _place(one: DeepSource) -> str:
    return one.conversation_id or MEMORY


def _neighbours(scoped: ScopedEvidence, hits: Sequence[DeepSource]) -> list[DeepSource]:
    around: list[tuple[int, int, DeepSource]] = []
    for rank, hit in enumerate(hits):
        if hit.conversation_id is None or hit.index is None:
            continue
        first = max(0, hit.index - REACH)
        try:
            near = scoped.transcript(hit.conversation_id, first, hit.index + REACH + 1)
        except NotFound:
            continue  # It went while the question was under way.
        around += [
            (abs((one.index or 0) - hit.index), rank, one) for one in near if one.id != hit.id
        ]
    return [one for _, _, one in sorted(around, key=lambda item: item[:2])]


EVIDENCE: Final = "this is the best evidence, not an answer"
NO_MODEL: Final = (
    f"no model is configured: {EVIDENCE}. Set ANAPHORA_MODEL (for "
    "example openai:gpt-4o-mini) and its key, or ANAPHORA_MODEL_URL for a server of your own, or "
    "open the memory with model=…"
)
HITS: Final = 6
"""Hits that are shown where no model could read them."""
UNLIKELY: Final = 0.5
"""Without a model, a question whose surest hit is below this is a blind spot."""


@dataclass(frozen=True, slots=True)
class DeepRecall:
    """Answers questions in one namespace. `models` and `engine` are asked for when needed.

    `timer` gives seconds, monotonic; `ids` new ids of traces. `execution_seconds` bounds a run of
    a model's code where the budget of a question does not say.
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
        question = checked_question(question)
        models = self.models()
        names = models.names if models else ()
        secrets = Secrets.of(question)
        asked = QuestionContext(question, scope, conversation_id, include_memory, names, secrets)
        scoped = self.scoped(asked)
        if models is not None:
            kept = self.answers.find_answer(asked, scoped)
            if kept is not None:
                if on_step is not None:
                    for step in kept.steps:
                        on_step(step)
                return kept
        found = shortcut(scoped, question)
        if found:
            return self._from_shortcut(asked, scoped, found, on_step)
        if models is None:
            counted = count_mentions(scoped, question)
            return (
                self._counted(asked, scoped, counted) if counted else self._evidence(asked, scoped)
            )
        return self._from_loop(asked, scoped, models, budget, on_step)

    def scoped(self, asked: QuestionContext, seen: ShownSources | None = None) -> ScopedEvidence:
        """What a question may see now; `seen` as `NamespaceEvidence.within` has it."""
        return self.lane.within(
            asked.scope, asked.conversation_id, include_memory=asked.include_memory, seen=seen
        )

    def answer(self, asked: QuestionContext, models: Models, budget: Budget) -> DeepAnswer:
        """The loop's answer, without cache, shortcut, gap or trace: what a dream asks."""
        result = self._loop(asked, self.scoped(asked), models, budget)
        return _answer_of(asked.question, result, self.scoped(asked))

    def _from_shortcut(
        self,
        asked: QuestionContext,
        scoped: ScopedEvidence,
        found: Sequence[DeepSource],
        on_step: OnStep | None,
    ) -> DeepAnswer:
        sources = best_evidence(scoped, found, asked.question)
        said = ", ".join(f"{one.id} {one.score or 0.0:.2f}" for one in found)
        step = DeepStep(0, "shortcut", thought=f"sure hits: {said}", output=shown(sources))
        if on_step is not None:
            on_step(step)
        answer = DeepAnswer(
            asked.question,
            shown(sources),
            sources,
            shortcut=True,
            supported=True,
            steps=(step,),
            trace_id=self.ids(),
            note="the evidence itself: the search is sure of it, and no model was asked",
            degraded=scoped.degraded,
        )
        with self.rows.change() as work:
            self.gaps.close_question(work, asked, [one.id for one in found])
            self.traces.put_trace(work, answer, scoped.seen, asked.secrets)
        return answer

    def _counted(
        self, asked: QuestionContext, scoped: ScopedEvidence, counted: Counted
    ) -> DeepAnswer:
        """What could be counted without a model: no gap, and nothing to keep."""
        answer = DeepAnswer(
            asked.question,
            counted.text,
            counted.sources,
            supported=True,
            trace_id=self.ids(),
            note=COUNTED,
            degraded=scoped.degraded,
        )
        with self.rows.change() as work:
            self.traces.put_trace(work, answer, scoped.seen, asked.secrets)
        return answer

    def _evidence(
        self, asked: QuestionContext, scoped: ScopedEvidence, failed: LoopResult | None = None
    ) -> DeepAnswer:
        """The best evidence: without a model, or where a loop gave no answer of the model's."""
        then = snapshot(self.lane, scoped, asked.question)
        weighed = scoped.weighed(asked.question)
        sources = best_evidence(scoped, weighed[:HITS], asked.question)
        answer = DeepAnswer(
            asked.question,
            "",
            sources,
            complete=False,
            trace_id=self.ids(),
            note=NO_MODEL,
            degraded=scoped.degraded,
        )
        blind = not weighed or (weighed[0].score or 0.0) < UNLIKELY
        if failed is not None:
            why = next((one.reason for one in failed.degraded if one.part == "model"), None)
            # A model that could not be reached has not looked: that is no gap of the memory's.
            blind = why is None
            answer = replace(
                answer,
                steps=failed.steps,
                cost=failed.cost,
                limit=failed.limit,
                note=f"{(why or failed.note).rstrip('.')}; {EVIDENCE}",
                degraded=tuple(dict.fromkeys((*failed.degraded, *scoped.degraded))),
            )
        return self._kept(asked, answer, then, scoped.seen, blind=blind)

    def _from_loop(
        self,
        asked: QuestionContext,
        scoped: ScopedEvidence,
        models: Models,
        budget: Budget | None,
        on_step: OnStep | None,
    ) -> DeepAnswer:
        # Before: what is written while the model works may be what it has missed.
        then = snapshot(self.lane, scoped, asked.question)
        result = self._loop(asked, self.scoped(asked, scoped.seen), models, budget, on_step)
        if not result.answered:
            return self._evidence(asked, scoped, result)
        answer = replace(_answer_of(asked.question, result, scoped), trace_id=self.ids())
        blind = not (answer.answer and answer.supported)
        reusable = answer.complete and answer.supported and not answer.degraded
        return self._kept(asked, answer, then, scoped.seen, blind=blind, reusable=reusable)

    def _loop(
        self,
        asked: QuestionContext,
        scoped: ScopedEvidence,
        models: Models,
        budget: Budget | None,
        on_step: OnStep | None = None,
    ) -> LoopResult:
        from anaphora.deep.loop import DeepLoop

        loop = DeepLoop(
            models.code,
            models.sub,
            self.engine(),
            self.timer,
            execution_seconds=self.execution_seconds,
        )
        return loop.run(asked.question, scoped, budget, on_step)

    def _kept(
        self,
        asked: QuestionContext,
        answer: DeepAnswer,
        then: Snapshot,
        seen: ShownSources,
        *,
        blind: bool,
        reusable: bool = False,
    ) -> DeepAnswer:
        """The answer, with its gap, its trace and its place in the cache written at once."""
        asked_in = self._placed(asked) if blind else asked
        with self.rows.change() as work:
            if blind:
                gap = self.gaps.register(work, asked_in, then)
                answer = replace(answer, gap_id=gap.id)
            elif answer.supported and answer.answer:
                self.gaps.close_question(work, asked, [s.id for s in answer.sources])
            if reusable and answer.answer:
                self.answers.put_answer(work, asked, answer, then)
            self.traces.put_trace(work, answer, seen, asked.secrets)
        return answer

    def _placed(self, asked: QuestionContext) -> QuestionContext:
        """The question with the conversation in which it was stored: it goes when that goes."""
        if asked.conversation_id is not None:
            return asked
        own = question_form(asked.question)
        scoped = self.lane.within(asked.scope, include_memory=False)
        found = scoped.search(asked.question, TOP)
        said = (one for one in found if question_form(one.text) == own)
        return replace(asked, conversation_id=next((one.conversation_id for one in said), None))


def _answer_of(question: str, result: LoopResult, scoped: ScopedEvidence) -> DeepAnswer:
    """What a loop came to, its sources looked up: what is not there supports nothing."""
    looked_up = {one: scoped.source(one) for one in result.source_ids}
    sources = tuple(one for one in looked_up.values() if one is not None)
    unknown = [*result.unknown_ids, *(name for name, one in looked_up.items() if one is None)]
    useful = not says_nothing(result.answer)
    note = result.note
    if unknown:
        said = f"it cites sources that do not exist: {named(unknown)}"
        note = f"{note}; {said}" if note else said
    return DeepAnswer(
        question,
        result.answer if useful else "",
        sources if useful else (),
        complete=result.complete,
        supported=useful and bool(sources) and not unknown,
        steps=result.steps,
        cost=result.cost,
        limit=result.limit,
        note=note,
        degraded=result.degraded,
    )
