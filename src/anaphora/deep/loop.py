"""The loop of deep recall: a model writes code, the sandbox runs it, the model sees the output.

It ends with a submission whose sources exist, with an answer from what was seen, or at a limit with
the best there is so far. It writes nothing, and never raises for what a model does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Final

from anaphora.core.config import EXECUTION_SECONDS
from anaphora.deep import prompts
from anaphora.deep.budget import LEAST_SECONDS, Meter, OverBudget
from anaphora.deep.evidence.questions import first_hits, says_nothing
from anaphora.deep.evidence.scope import ScopedEvidence
from anaphora.deep.host import Host, SubCalls, Submission
from anaphora.deep.models.base import Message, ModelRole, Reply
from anaphora.deep.sandbox.base import Engine, Limits, Run, Session
from anaphora.deep.worker_threads import lasting_thread
from anaphora.errors import ModelError, ModelTimeout
from anaphora.values.conversations import Degraded
from anaphora.values.deep import Budget, CostSnapshot, DeepSource, DeepStep

OnStep = Callable[[DeepStep], None]

CODE_OUTPUT: Final = 4_000
EXTRACTION_OUTPUT: Final = 2_000
PARTIAL_CHARS: Final = 500
_LEAST_EXTRACTION: Final = 1_000


@dataclass(frozen=True, slots=True)
class LoopResult:
    """What a loop came to.

    `answer` is "" where the history does not hold one or nothing came of it. `source_ids` exist in
    the scope; `unknown_ids` were cited too, and do not. `complete` is False when a limit ended the
    search or stood in its way: `limit` names it ("iterations", "sub_calls", "tokens", "seconds",
    "dollars"). `answered` is False when `answer` is not the model's: it could not be reached or
    said nothing that can be read (then `degraded` says so), or a limit came before anything was
    seen.
    """

    answer: str
    source_ids: tuple[str, ...] = ()
    complete: bool = True
    limit: str | None = None
    steps: tuple[DeepStep, ...] = ()
    cost: CostSnapshot = field(default_factory=CostSnapshot)
    note: str = ""
    answered: bool = True
    unknown_ids: tuple[str, ...] = ()
    degraded: tuple[Degraded, ...] = ()


@dataclass(frozen=True, slots=True)
class DeepLoop:
    """Answers questions with a model that writes its own search.

    `code` writes programs, `sub` answers `llm_query` (the same model where it is None). `timer`
    gives seconds, monotonic. `max_output` is how many tokens one program may take, thinking of the
    model included. `execution_seconds` bounds a run of code where the budget does not say. Safe to
    use from several threads.
    """

    code: ModelRole
    sub: ModelRole | None
    engine: Engine
    timer: Callable[[], float] = time.monotonic
    max_output: int = CODE_OUTPUT
    execution_seconds: float = EXECUTION_SECONDS

    def run(
        self,
        question: str,
        evidence: ScopedEvidence,
        budget: Budget | None = None,
        on_step: OnStep | None = None,
    ) -> LoopResult:
        """Answer `question`. `on_step` is called with every step when it has ended."""
        meter = Meter(budget or Budget(), self.timer)
        return _Search(self, question, evidence, meter, on_step).run()


class _Search:
    """One question in the making."""

    def __init__(
        self,
        lane: DeepLoop,
        question: str,
        evidence: ScopedEvidence,
        meter: Meter,
        on_step: OnStep | None,
    ) -> None:
        self._lane = lane
        self._question = question
        self._evidence = evidence
        self._meter = meter
        self._on_step = on_step
        self._sub_calls = SubCalls(lane.sub or lane.code, meter)
        self._host = Host(evidence, self._sub_calls)
        self._steps: list[DeepStep] = []
        self._seeds: tuple[DeepSource, ...] = ()
        self._history = ""
        self._session: Session | None = None
        self._coming: Future[Session] | None = None
        self._heard = False
        self._silent: ModelTimeout | None = None

    def run(self) -> LoopResult:
        """The loop, to its end."""
        self._history = self._evidence.history()
        # The sandbox is ready when the first code comes, and not only then begun.
        with lasting_thread(self._open, "anaphora-sandbox") as self._coming:
            try:
                self._seeds = first_hits(self._evidence, self._question)
                return self._iterate()
            except OverBudget as over:
                return self._at_limit(over)
            except ModelError as error:
                self._done("limit", error=str(error))
                return self._partial(None, error)
            finally:
                self._close()

    def _iterate(self) -> LoopResult:
        talk = self._opening()
        while True:
            left = self._meter.begin_iteration()
            began = self._lane.timer()
            reply = self._ask(talk, self._lane.max_output)
            step, lost = self._step(reply, began)
            if self._host.accepted is not None:
                return self._submitted(self._host.accepted)
            if not left:
                return self._extracted("iterations")
            told = prompts.after_run(step, left, lost=lost) if step.code else prompts.no_code(left)
            talk += [Message("assistant", reply.text), Message("user", told)]

    def _opening(self) -> list[Message]:
        return prompts.first_prompt(
            self._question,
            now=self._evidence.clock(),
            sessions=self._evidence.sessions(prompts.LISTED_SESSIONS),
            session_count=self._evidence.session_count(),
            seeds=self._seeds,
            history=(len(self._history), len(self._evidence)),
            iterations=self._meter.budget.iterations,
        )

    def _ask(self, talk: Sequence[Message], output: int, *, last: bool = False) -> Reply:
        try:
            reply = self._meter.ask("code", self._lane.code, talk, output, last=last)
        except ModelTimeout as late:
            self._silent = None if self._heard else late
            # The call was given all the time there is: it is the limit that ended it.
            raise self._meter.over_time() from None
        self._heard = True
        return reply

    def _step(self, reply: Reply, began: float) -> tuple[DeepStep, bool]:
        """Run what the reply holds; whether the sandbox lost its variables."""
        thought, code = prompts.code_of(reply.text)
        if not code:
            error = "the reply holds no block of code"
            return self._done("code", began, thought=thought, error=error), False
        run = self._run(code)
        step = self._done(
            "submit" if self._host.accepted is not None else "code",
            began,
            thought=thought,
            code=code,
            output=run.output,
            error=_error(run),
            sub_calls=self._sub_calls.taken(),
        )
        return step, not run.alive

    def _run(self, code: str) -> Run:
        left = self._meter.seconds_left()
        if left < LEAST_SECONDS:
            raise self._meter.over_time()
        session = self._opened()
        self._sub_calls.remaining = session.remaining
        run = session.run(code, left)
        if not run.alive:
            session.close()
            self._session = None
        return run

    def _opened(self) -> Session:
        if self._session is None:
            coming, self._coming = self._coming, None
            self._session = self._open() if coming is None else coming.result()
        return self._session

    def _open(self) -> Session:
        seconds = self._meter.budget.execution_seconds
        limits = Limits(seconds=self._lane.execution_seconds if seconds is None else seconds)
        inputs = {"history": self._history, "question": self._question}
        return self._lane.engine.open(inputs, self._host.functions(), limits)

    def _close(self) -> None:
        """End the sandbox, that which no code came for too."""
        coming, self._coming = self._coming, None
        # Why one could not be opened that nobody wanted is nobody's concern.
        if coming is not None and not coming.cancel() and coming.exception() is None:
            coming.result().close()
        if self._session is not None:
            self._session.close()

    # The ends of a loop.

    def _submitted(self, submission: Submission) -> LoopResult:
        # The answer was made without the calls that were refused: it may be less than the best.
        limit = self._meter.refused[0] if self._meter.refused else None
        answer = _or_none(submission.answer)
        return self._result(answer, submission.sources, complete=limit is None, limit=limit)

    def _extracted(self, limit: str) -> LoopResult:
        """Ask for an answer from what was seen. Raises `OverBudget` when that is not to be had."""
        began = self._lane.timer()
        chars = prompts.EXTRACTION_CHARS
        while True:
            talk = prompts.extraction_prompt(
                self._question, self._evidence.clock(), self._seeds, self._steps, chars
            )
            try:
                reply = self._ask(talk, min(EXTRACTION_OUTPUT, self._lane.max_output), last=True)
                break
            except OverBudget as over:
                # A shorter prompt may still fit, but time does not come back.
                if over.limit == "seconds" or chars <= _LEAST_EXTRACTION:
                    raise
                chars //= 2
        read = prompts.read_extraction(reply.text)
        said = reply.text.strip()
        thought = "" if read.answer == said else said
        self._done("extraction", began, thought=thought, output=read.answer)
        if not self._is_said(read):
            if self._host.refused is not None and self._host.refused.answer:
                return self._partial(limit)
            reason = "its last reply contained no answer"
            return self._partial(limit, ModelError(self._lane.code.name, reason))
        note = "answered from what was seen when the limit was reached"
        answer = _or_none(read.answer)
        return self._result(answer, read.sources, complete=False, limit=limit, note=note)

    def _is_said(self, read: prompts.Extraction) -> bool:
        """Whether a reply is an answer at all, if only that there is none.

        Words in no form are taken from a model that has done some work before.
        """
        if read.formed or (read.answer and not _or_none(read.answer)):
            return True
        return bool(read.answer) and any(step.code and not step.error for step in self._steps)

    def _at_limit(self, over: OverBudget) -> LoopResult:
        self._done("limit", error=over.detail)
        try:
            return self._extracted(over.limit)
        except OverBudget:
            # A model from which nothing ever came did not meet a limit: it is not there.
            return self._partial(over.limit, self._silent)
        except ModelError as error:
            return self._partial(over.limit, error)

    def _partial(self, limit: str | None, failure: ModelError | None = None) -> LoopResult:
        """The best there is without another call: a refused answer, or the last output.

        With `failure` the model gave nothing, and it is said that it did not.
        """
        answer, note = "", "nothing was found in time"
        ids: tuple[str, ...] = ()
        printed = [step.output.strip() for step in self._steps if step.output.strip()]
        refused = self._host.refused
        if refused is not None and refused.answer:
            answer, ids = refused.answer, refused.sources
            note = "an answer that was submitted and refused: " + "; ".join(refused.mistakes)
        elif printed:
            answer, note = printed[-1][:PARTIAL_CHARS], "the last output of the search"
        answered = bool(answer) and failure is None
        result = self._result(
            answer, ids, complete=False, limit=limit, note=note, answered=answered
        )
        if failure is None:
            return result
        return replace(result, degraded=(*result.degraded, Degraded("model", str(failure))))

    def _result(self, answer: str, ids: Sequence[str], **more: Any) -> LoopResult:
        known = tuple(one for one in ids if self._evidence.exists(one))
        return LoopResult(
            answer=answer,
            source_ids=known,
            steps=tuple(self._steps),
            cost=self._meter.snapshot(),
            unknown_ids=tuple(one for one in ids if one not in known),
            degraded=self._evidence.degraded,
            **more,
        )

    def _done(self, kind: str, began: float | None = None, **what: Any) -> DeepStep:
        """A step that has ended now, and who is told of it."""
        seconds = 0.0 if began is None else self._lane.timer() - began
        cost = self._meter.snapshot()
        step = DeepStep(len(self._steps) + 1, kind, seconds=seconds, cost=cost, **what)
        self._steps.append(step)
        if self._on_step is not None:
            self._on_step(step)
        return step


def _or_none(answer: str) -> str:
    """An answer, or "" for one that says that there is none."""
    none = answer.strip(" .'\"`*").upper() == prompts.NOT_FOUND or says_nothing(answer)
    return "" if none else answer


def _error(run: Run) -> str | None:
    parts = [run.error] if run.error else []
    if run.limit is not None and not run.error:
        parts.append(f"the code was stopped: its limit of {run.limit} is reached")
    parts += [f"{type(failure).__name__}: {failure}" for failure in run.failures]
    return "\n".join(parts) or None
