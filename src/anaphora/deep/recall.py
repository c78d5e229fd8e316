"""Deep recall: from a question to an answer with sources that exist, at a known cost.

In: a question, a scope, a budget. Out: one `DeepAnswer`. The answer that is kept comes first, then
the shortcut, then the loop; without a model, and where it fails, the best evidence and a word that
says why. What could not be answered becomes a blind spot, and how an answer was found is kept as a
trace. It raises only for bad arguments and for truth that cannot be used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from anaphora.deep.budget import check_budget
from anaphora.deep.dreaming.gaps import Gaps
from anaphora.deep.evidence.rows import named
from anaphora.deep.evidence.scoped import NamespaceEvidence, ScopedEvidence
from anaphora.deep.evidence.snapshot import TOP, Snapshot, snapshot
from anaphora.deep.evidence.watched import Seen, WatchedEvidence
from anaphora.deep.kept.answers import AnswerCache, Asked
from anaphora.deep.kept.secrets import Secrets
from anaphora.deep.kept.traces import Traces
from anaphora.deep.reading import question_form, says_nothing
from anaphora.deep.shortcut import best_evidence, shortcut, shown
from anaphora.deep.tools import Models
from anaphora.errors import InvalidInput
from anaphora.values.conversations import Degraded
from anaphora.values.deep import Budget, DeepAnswer, DeepSource, DeepStep, Scope

if TYPE_CHECKING:
    from anaphora.deep.loop import LoopResult, OnStep
    from anaphora.deep.sandbox.base import Engine
    from anaphora.store.deep_rows import DeepRows

__all__ = ["NO_MODEL", "QUESTION_CHARS", "DeepRecall", "Models"]

QUESTION_CHARS: Final = 4_000
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

    `timer` gives seconds, monotonic; `ids` new ids of traces.
    """

    lane: NamespaceEvidence
    rows: DeepRows
    answers: AnswerCache
    gaps: Gaps
    traces: Traces
    models: Callable[[], Models | None]
    engine: Callable[[], Engine]
    ids: Callable[[], str]
    timer: Callable[[], float]

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
        question = _checked(question)
        check_budget(budget)
        models = self.models()
        lane = WatchedEvidence.over(self.lane)
        scoped = lane.within(scope, conversation_id, include_memory=include_memory)
        names = models.names if models else ()
        secrets = Secrets.of(question)
        asked = Asked(question, scope, conversation_id, include_memory, names, secrets)
        if models is not None:
            kept = self.answers.get(asked, scoped)
            if kept is not None:
                _tell(on_step, kept.steps)
                return kept
        found = shortcut(scoped, question)
        if found:
            return self._from_shortcut(asked, scoped, found, lane.seen, on_step)
        if models is None:
            return self._evidence(asked, scoped, lane.seen)
        return self._from_loop(asked, lane, scoped, models, budget, on_step)

    def answer(
        self, asked: Asked, models: Models, budget: Budget | None, on_step: OnStep | None = None
    ) -> DeepAnswer:
        """The loop's answer, without cache, shortcut, gap or trace: what a dream asks."""
        result = self._loop(self.lane, asked, models, budget, on_step)
        scoped = self.lane.within(
            _scope(asked), asked.conversation_id, include_memory=asked.include_memory
        )
        return _answer_of(asked.question, result, scoped)

    def _from_shortcut(
        self,
        asked: Asked,
        scoped: ScopedEvidence,
        found: Sequence[DeepSource],
        seen: Seen,
        on_step: OnStep | None,
    ) -> DeepAnswer:
        sources = best_evidence(scoped, found)
        said = ", ".join(f"{one.id} {one.score or 0.0:.2f}" for one in found)
        step = DeepStep(0, "shortcut", thought=f"sure hits: {said}", output=shown(sources))
        _tell(on_step, (step,))
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
            self.traces.put(work, answer, seen, asked.secrets)
        return answer

    def _evidence(
        self,
        asked: Asked,
        scoped: ScopedEvidence,
        seen: Seen,
        failed: LoopResult | None = None,
    ) -> DeepAnswer:
        """The best evidence: without a model, or where a loop gave no answer of the model's."""
        then = snapshot(self.lane, scoped, asked.question)
        weighed = scoped.weighed(asked.question)
        sources = best_evidence(scoped, weighed[:HITS])
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
            why = _why_failed(failed.degraded)
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
        return self._kept(asked, (answer, then), seen, blind=blind, reusable=False)

    def _from_loop(
        self,
        asked: Asked,
        lane: WatchedEvidence,
        scoped: ScopedEvidence,
        models: Models,
        budget: Budget | None,
        on_step: OnStep | None,
    ) -> DeepAnswer:
        # Before: what is written while the model works may be what it has missed.
        then = snapshot(self.lane, scoped, asked.question)
        result = self._loop(lane, asked, models, budget, on_step)
        if not result.answered:
            return self._evidence(asked, scoped, lane.seen, result)
        answer = replace(_answer_of(asked.question, result, scoped), trace_id=self.ids())
        blind = not (answer.answer and answer.supported)
        reusable = answer.complete and answer.supported and not answer.degraded
        return self._kept(asked, (answer, then), lane.seen, blind=blind, reusable=reusable)

    def _loop(
        self,
        lane: NamespaceEvidence,
        asked: Asked,
        models: Models,
        budget: Budget | None,
        on_step: OnStep | None,
    ) -> LoopResult:
        from anaphora.deep.loop import DeepLoop

        return DeepLoop(models.code, models.sub, self.engine(), lane, self.timer).run(
            asked.question,
            scope=_scope(asked),
            conversation_id=asked.conversation_id,
            include_memory=asked.include_memory,
            budget=budget,
            on_step=on_step,
        )

    def _kept(
        self,
        asked: Asked,
        found: tuple[DeepAnswer, Snapshot],
        seen: Seen,
        *,
        blind: bool,
        reusable: bool,
    ) -> DeepAnswer:
        """The answer, with its gap, its trace and its place in the cache written at once."""
        answer, then = found
        asked_in = self._placed(asked) if blind else asked
        with self.rows.change() as work:
            if blind:
                gap = self.gaps.register(work, asked_in, then)
                answer = replace(answer, gap_id=gap.id)
            elif answer.supported and answer.answer:
                self.gaps.close_question(work, asked, [s.id for s in answer.sources])
            if reusable and answer.answer:
                self.answers.put(work, asked, answer, then)
            self.traces.put(work, answer, seen, asked.secrets)
        return answer

    def _placed(self, asked: Asked) -> Asked:
        """The question with the conversation in which it was stored: it goes when that goes."""
        if asked.conversation_id is not None:
            return asked
        own = question_form(asked.question)
        scoped = self.lane.within(_scope(asked), include_memory=False)
        found = scoped.search(asked.question, TOP)
        said = (one for one in found if question_form(one.text) == own)
        return replace(asked, conversation_id=next((one.conversation_id for one in said), None))


def _answer_of(question: str, result: LoopResult, scoped: ScopedEvidence) -> DeepAnswer:
    """What a loop came to, its sources looked up: what is not there supports nothing."""
    looked_up = {one: scoped.source(one) for one in result.source_ids}
    sources = tuple(one for one in looked_up.values() if one is not None)
    unknown = [*result.unknown_ids, *(name for name, one in looked_up.items() if one is None)]
    useful = result.found and not says_nothing(result.answer)
    note = result.note
    if unknown:
        said = f"it cites what does not exist: {named(unknown)}"
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


def _why_failed(degraded: Sequence[Degraded]) -> str | None:
    """Why a model gave nothing, in words; None where it is not the model that failed."""
    return next((one.reason for one in degraded if one.part == "model"), None)


def _scope(asked: Asked) -> Scope:
    return asked.scope  # type: ignore[return-value]  # checked by `within`


def _tell(on_step: OnStep | None, steps: Sequence[DeepStep]) -> None:
    for step in steps if on_step is not None else ():
        on_step(step)  # type: ignore[misc]


def _checked(question: object) -> str:
    if not isinstance(question, str) or not question.strip():
        raise InvalidInput("question", question, "expected a text that is not empty")
    if len(question) > QUESTION_CHARS:
        raise InvalidInput("question", question, f"expected at most {QUESTION_CHARS} characters")
    return question.strip()
