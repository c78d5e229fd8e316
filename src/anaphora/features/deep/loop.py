"""The loop of deep recall: a model writes code, the sandbox runs it, the model sees the output.

It ends with a submission whose sources exist, with an answer from the outputs so far, or at a limit
with the best partial answer. It writes nothing, and never raises for the mistakes of a model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Final

from anaphora.errors import ModelError, ModelTimeout
from anaphora.features.deep import prompts
from anaphora.features.deep.budget import LEAST_SECONDS, Meter, OverBudget
from anaphora.features.deep.evidence.questions import first_hits, says_nothing
from anaphora.features.deep.evidence.scope import ScopedEvidence
from anaphora.features.deep.host import Host, SubCalls
from anaphora.features.deep.sandbox.base import Engine, SandboxLimits, SandboxSession
from anaphora.features.deep.values import Budget, CostSnapshot, DeepSource, DeepStep
from anaphora.features.deep.worker_threads import lasting_thread
from anaphora.settings import EXECUTION_SECONDS
from anaphora.values.conversations import Degraded
from anaphora.values.models import Message, ModelRole, Reply

OnStep = Callable[[DeepStep], None]

CODE_OUTPUT: Final = 4_000
EXTRACTION_OUTPUT: Final = 2_000
PARTIAL_CHARS: Final = 500
_LEAST_EXTRACTION: Final = 1_000


@dataclass(frozen=True, slots=True)
class LoopResult:
    """The outcome of a loop.

    `answer` is "" if the history does not contain one or the search found none. `source_ids` exist
    in the scope; `unknown_ids` were cited too, and do not. `complete` is False when a limit ended
    or hindered the search: `limit` names it ("iterations", "sub_calls", "tokens", "seconds",
    "dollars"). `answered` is False when `answer` is not the model's: it could not be reached or its
    reply could not be read (then `degraded` says so), or a limit came before the first output.
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

    `code` writes programs, `sub` answers `llm_query` (None: the same model). `timer` gives seconds,
    monotonic. `max_output` is the number of tokens of one program, the model's thinking included.
    `execution_seconds` bounds a run of code if the budget does not. Safe to use from several
    threads.
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
        return _DeepSearch(self, question, evidence, meter, on_step).run()


class _DeepSearch:
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
        self._session: SandboxSession | None = None
        self._starting: Future[SandboxSession] | None = None
        self._heard = False
        self._silent: ModelTimeout | None = None

    def run(self) -> LoopResult:
        """The loop, to its end."""
        self._history = self._evidence.history()
        # The sandbox starts now, so that it is ready when the first code comes.
        with lasting_thread(self._open, "anaphora-sandbox") as self._starting:
            try:
                self._seeds = first_hits(self._evidence, self._question)
                return self._iterate()
            except OverBudget as over:
                self._record_step("limit", error=over.detail)
                try:
                    return self._extract_answer(over.limit)
                except OverBudget:
                    # A model that never replied at all is unavailable: no limit was reached.
                    return self._partial(over.limit, self._silent)
                except ModelError as error:
                    return self._partial(over.limit, error)
            except ModelError as error:
                self._record_step("limit", error=str(error))
                return self._partial(None, error)
            finally:
                self._close()

    def _iterate(self) -> LoopResult:
        talk = prompts.first_prompt(
            self._question,
            now=self._evidence.clock(),
            sessions=self._evidence.sessions(prompts.LISTED_SESSIONS),
            session_count=self._evidence.session_count(),
            seeds=self._seeds,
            history=(len(self._history), len(self._evidence)),
            iterations=self._meter.budget.iterations,
        )
        while True:
            iterations_left = self._meter.begin_iteration()
            began = self._lane.timer()
            reply = self._ask(talk, self._lane.max_output)
            step, has_lost_variables = self._run_reply(reply, began)
            if (submission := self._host.accepted) is not None:
                # The refused calls are missing from the answer: it may not be the best one.
                limit = self._meter.refused[0] if self._meter.refused else None
                answer = _or_none(submission.answer)
                return self._result(answer, submission.sources, complete=limit is None, limit=limit)
            if not iterations_left:
                return self._extract_answer("iterations")
            if step.code:
                report = prompts.describe_run(step, iterations_left, lost=has_lost_variables)
            else:
                report = prompts.ask_for_code(iterations_left)
            talk += [Message("assistant", reply.text), Message("user", report)]

    def _ask(self, talk: Sequence[Message], output: int, *, last: bool = False) -> Reply:
        try:
            reply = self._meter.ask("code", self._lane.code, talk, output, last=last)
        except ModelTimeout as late:
            self._silent = None if self._heard else late
            # The call had all the remaining time: the limit of seconds ended it.
            raise self._meter.refuse_for_time() from None
        self._heard = True
        return reply

    def _run_reply(self, reply: Reply, began: float) -> tuple[DeepStep, bool]:
        """Run the code of a reply; returns also whether the sandbox lost its variables."""
        thought, code = prompts.split_code(reply.text)
        if not code:
            error = "the reply holds no block of code"
            return self._record_step("code", began, thought=thought, error=error), False
        seconds = self._meter.seconds_left()
        if seconds < LEAST_SECONDS:
            raise self._meter.refuse_for_time()
        if self._session is None:
            starting, self._starting = self._starting, None
            self._session = self._open() if starting is None else starting.result()
        session = self._session
        self._sub_calls.remaining = session.remaining
        run = session.run(code, seconds)
        if not run.alive:
            session.close()
            self._session = None
        errors = [run.error] if run.error else []
        if run.limit is not None and not run.error:
            errors.append(f"the code was stopped: its limit of {run.limit} is reached")
        errors += [f"{type(failure).__name__}: {failure}" for failure in run.failures]
        step = self._record_step(
            "submit" if self._host.accepted is not None else "code",
            began,
            thought=thought,
            code=code,
            output=run.output,
            error="\n".join(errors) or None,
            sub_calls=self._sub_calls.drain(),
        )
        return step, not run.alive

    def _open(self) -> SandboxSession:
        seconds = self._meter.budget.execution_seconds
        limits = SandboxLimits(seconds=self._lane.execution_seconds if seconds is None else seconds)
        inputs = {"history": self._history, "question": self._question}
        return self._lane.engine.open(inputs, self._host.list_functions(), limits)

    def _close(self) -> None:
        """End the sandbox, also one that never ran any code."""
        starting, self._starting = self._starting, None
        # A failure to open an unused sandbox is ignored.
        if starting is not None and not starting.cancel() and starting.exception() is None:
            starting.result().close()
        if self._session is not None:
            self._session.close()

    # The ends of a loop.

    def _extract_answer(self, limit: str) -> LoopResult:
        """Ask for an answer from the outputs so far. Raises `OverBudget` if that costs too much."""
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
        text = reply.text.strip()
        thought = "" if read.answer == text else text
        self._record_step("extraction", began, thought=thought, output=read.answer)
        # Free text counts only from a model that has run code before, unless it says that there is
        # no answer.
        has_run = any(step.code and not step.error for step in self._steps)
        if not read.formed and not (read.answer and (has_run or not _or_none(read.answer))):
            if self._host.refused is not None and self._host.refused.answer:
                return self._partial(limit)
            reason = "its last reply contained no answer"
            return self._partial(limit, ModelError(self._lane.code.name, reason))
        note = "answered from what was seen when the limit was reached"
        answer = _or_none(read.answer)
        return self._result(answer, read.sources, complete=False, limit=limit, note=note)

    def _partial(self, limit: str | None, failure: ModelError | None = None) -> LoopResult:
        """The best answer without another call: a refused one, or the last output.

        With `failure` the model gave no answer, and `degraded` says so.
        """
        answer, note = "", "nothing was found in time"
        source_ids: tuple[str, ...] = ()
        outputs = [step.output.strip() for step in self._steps if step.output.strip()]
        refused_answer = self._host.refused
        if refused_answer is not None and refused_answer.answer:
            answer, source_ids = refused_answer.answer, refused_answer.sources
            note = "an answer that was submitted and refused: " + "; ".join(refused_answer.mistakes)
        elif outputs:
            answer, note = outputs[-1][:PARTIAL_CHARS], "the last output of the search"
        is_answered = bool(answer) and failure is None
        outcome = self._result(
            answer, source_ids, complete=False, limit=limit, note=note, answered=is_answered
        )
        if failure is None:
            return outcome
        return replace(outcome, degraded=(*outcome.degraded, Degraded("model", str(failure))))

    def _result(self, answer: str, source_ids: Sequence[str], **more: Any) -> LoopResult:
        existing = tuple(source_id for source_id in source_ids if self._evidence.exists(source_id))
        return LoopResult(
            answer=answer,
            source_ids=existing,
            steps=tuple(self._steps),
            cost=self._meter.snapshot(),
            unknown_ids=tuple(source_id for source_id in source_ids if source_id not in existing),
            degraded=self._evidence.degraded,
            **more,
        )

    def _record_step(self, kind: str, began: float | None = None, **details: Any) -> DeepStep:
        """Record a step that has ended now, and report it to `on_step`."""
        seconds = 0.0 if began is None else self._lane.timer() - began
        cost = self._meter.snapshot()
        step = DeepStep(len(self._steps) + 1, kind, seconds=seconds, cost=cost, **details)
        self._steps.append(step)
        if self._on_step is not None:
            self._on_step(step)
        return step


def _or_none(answer: str) -> str:
    """The answer, or "" for one that says that there is none."""
    none = answer.strip(" .'\"`*").upper() == prompts.NOT_FOUND or says_nothing(answer)
    return "" if none else answer
