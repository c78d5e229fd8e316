"""The budget of a deep question: its limits, and what it has spent.

Each call is claimed before it is made, with the tokens and seconds it may take; a call that would
break a limit is refused before it is paid for (`OverBudget`), by an estimate of the prompt and the
largest answer allowed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from anaphora.errors import InvalidInput, ModelError
from anaphora.features.deep.models.base import prompt_tokens
from anaphora.features.deep.values import Budget, CostSnapshot, TokenCount
from anaphora.ingest.secrets.masking import mask_text
from anaphora.recall.query import BLANK, is_empty
from anaphora.values.models import Message, ModelRole, Reply

QUESTION_CHARS: Final = 4_000

Role = Literal["code", "sub"]

RESERVE: Final = 0.1
"""The share of tokens, seconds and dollars reserved for the last step: the answer from what was
seen. Without it a limit would take the answer along with the search."""

LEAST_OUTPUT: Final = 64
"""Tokens: an answer that may hold fewer is not worth asking for."""

LEAST_SECONDS: Final = 0.1


class OverBudget(Exception):
    """The next call would break this limit. `detail` describes it, for a model to read."""

    def __init__(self, limit: str, detail: str) -> None:
        self.limit = limit
        self.detail = detail
        super().__init__(detail)


@dataclass(frozen=True, slots=True)
class Claim:
    """Permission for one call: at most `max_output` tokens of answer within `seconds`."""

    role: Role
    max_output: int
    seconds: float
    tokens: int
    dollars: float | None


@dataclass(slots=True)
class Meter:
    """Counts one question. Safe to use from several threads. `timer` gives seconds, monotonic."""

    budget: Budget
    timer: Callable[[], float]
    iterations: int = 0
    refused: list[str] = field(default_factory=list)
    _sub_calls: int = 0
    _spent: dict[Role, TokenCount] = field(
        default_factory=lambda: {"code": TokenCount(), "sub": TokenCount()}
    )
    _open: list[Claim] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.timer()

    def begin_iteration(self) -> int:
        """Count one more iteration; returns how many are left after it."""
        self.iterations += 1
        return self.budget.iterations - self.iterations

    def seconds_left(self, *, to_the_end: bool = False) -> float:
        """Seconds until the limit; the reserve for the last step counts only with `to_the_end`."""
        share = 1.0 if to_the_end else 1.0 - RESERVE
        return self.budget.seconds * share - (self.timer() - self._began)

    def refuse_for_time(self) -> OverBudget:
        """The error for a call that used all the time it had."""
        return self._refuse("seconds", f"the {self.budget.seconds:g} seconds are used up")

    def need_sub_calls(self, count: int) -> None:
        """Raise `OverBudget` unless `count` more sub-calls may be made."""
        remaining = self.budget.sub_calls - self._sub_calls
        if count > remaining:
            detail = (
                f"the limit of {self.budget.sub_calls} sub-calls is reached: {remaining} are left"
            )
            raise self._refuse("sub_calls", detail)

    def claim(
        self,
        role: Role,
        model: ModelRole,
        messages: Sequence[Message],
        max_output: int,
        *,
        seconds: float = math.inf,
        last: bool = False,
    ) -> Claim:
        """Permission for a call, ended by `settle` or `release`. Raises `OverBudget`.

        `seconds` is the caller's own time limit; `last` lets the call use the reserve for the last
        step. The answer is shortened to what fits, if that is worth asking for.
        """
        with self._lock:
            if role == "sub":
                self.need_sub_calls(1)
            share = 1.0 if last else 1.0 - RESERVE
            seconds_left = self.seconds_left(to_the_end=last)
            if seconds_left < LEAST_SECONDS:
                raise self.refuse_for_time()
            tokens_in = prompt_tokens(messages)
            used_tokens = sum(count.input + count.output for count in self._spent.values())
            promised_tokens = sum(claim.tokens for claim in self._open)
            tokens_left = (
                int(self.budget.tokens * share) - used_tokens - promised_tokens - tokens_in
            )
            if tokens_left < min(LEAST_OUTPUT, max_output):
                detail = (
                    f"the limit of {self.budget.tokens} tokens is reached: {used_tokens} are used"
                )
                raise self._refuse("tokens", detail)
            output = min(max_output, tokens_left)
            output, dollars = self._limit_price(share, model, tokens_in, output)
            new_claim = Claim(role, output, min(seconds_left, seconds), tokens_in + output, dollars)
            self._open.append(new_claim)
            self._spent[role] += TokenCount(calls=1)
            self._sub_calls += role == "sub"
            return new_claim

    def ask(
        self,
        role: Role,
        model: ModelRole,
        messages: Sequence[Message],
        max_output: int,
        *,
        last: bool = False,
    ) -> Reply:
        """Claim a call, make it, and count it. Raises `OverBudget` and the model's errors."""
        claim = self.claim(role, model, messages, max_output, last=last)
        return self.call(claim, model, messages, claim.seconds)

    def call(
        self, claim: Claim, model: ModelRole, messages: Sequence[Message], seconds: float
    ) -> Reply:
        """Make a claimed call within `seconds`, and count it. Raises the model's errors.

        Turns are stored verbatim; the secrets in them do not go to a model.
        """
        try:
            safe = [replace(message, text=mask_text(message.text)) for message in messages]
            reply = model.ask(safe, max_output=claim.max_output, timeout=seconds)
        except BaseException as error:
            self.release(claim)
            if isinstance(error, ModelError):
                # Whatever model it is: its server may quote a key, or what was sent to it.
                error.args = (mask_text(str(error)),)
            raise
        self.settle(claim, reply)
        return reply

    def settle(self, claim: Claim, reply: Reply) -> None:
        """The call was answered: count its real usage."""
        with self._lock:
            self._open.remove(claim)
            # One call of unknown price makes the total unknown.
            self._spent[claim.role] += TokenCount(
                reply.input_tokens, reply.output_tokens, 0, reply.dollars
            )

    def release(self, claim: Claim) -> None:
        """The call failed: no usage was reported."""
        with self._lock:
            self._open.remove(claim)

    def withdraw(self, claim: Claim) -> None:
        """The call was never made: it is not counted."""
        with self._lock:
            self._open.remove(claim)
            self._spent[claim.role] += TokenCount(calls=-1)
            self._sub_calls -= claim.role == "sub"

    def snapshot(self) -> CostSnapshot:
        """What was spent so far."""
        with self._lock:
            code, sub = self._spent["code"], self._spent["sub"]
            total = code + sub
            return CostSnapshot(
                input_tokens=total.input,
                output_tokens=total.output,
                estimated_dollars=total.dollars,
                iterations=self.iterations,
                sub_calls=self._sub_calls,
                seconds=self.timer() - self._began,
                code=code,
                sub=sub,
            )

    def _limit_price(
        self, share: float, model: ModelRole, tokens_in: int, output: int
    ) -> tuple[int, float | None]:
        """Halve the answer until the dollars suffice; an unknown price sets no limit."""
        if self.budget.dollars is None:
            return output, None
        spent = sum(count.dollars or 0.0 for count in self._spent.values())
        promised_dollars = sum(claim.dollars or 0.0 for claim in self._open)
        remaining = self.budget.dollars * share - spent - promised_dollars
        least_output = min(LEAST_OUTPUT, output)
        while (dollars := model.price(tokens_in, output)) is not None and dollars > remaining:
            output //= 2
            if output < least_output:
                detail = f"the limit of ${self.budget.dollars:g} is reached: ${spent:.4f} are spent"
                raise self._refuse("dollars", detail)
        return output, dollars

    def _refuse(self, limit: str, detail: str) -> OverBudget:
        self.refused.append(limit)
        return OverBudget(limit, detail)


def check_question(question: str) -> str:
    """The question, stripped. Raises `InvalidInput` for an empty or an over-long one."""
    if is_empty(question):
        raise InvalidInput("question", question, BLANK.reason)
    if len(question) > QUESTION_CHARS:
        raise InvalidInput("question", question, f"is longer than {QUESTION_CHARS} characters")
    return question.strip()
