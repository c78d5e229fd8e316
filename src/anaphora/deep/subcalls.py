"""The questions that a program asks the model that reads: counted, bounded, never asked twice.

In: prompts of one program. Out: answers in their order. The same prompt is one call, however often
it is asked; a call that the budget does not allow is refused before it is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from anaphora.deep.budget import Claim, Meter, OverBudget
from anaphora.deep.models.base import Message, ModelRole
from anaphora.deep.prompts import sub_prompt
from anaphora.deep.sandbox.base import HostRefusal
from anaphora.deep.threads import call_each
from anaphora.errors import ModelError
from anaphora.values.deep import SubCall

MAX_OUTPUT: Final = 2_000
AT_ONCE: Final = 4
_LEAST_SECONDS: Final = 0.05


class SubCalls:
    """The sub-calls of one question. `remaining` gives the seconds left to the present run."""

    def __init__(self, model: ModelRole, meter: Meter) -> None:
        self.remaining: Callable[[], float] = lambda: math.inf
        self._model = model
        self._meter = meter
        self._answers: dict[str, str] = {}
        self._made: list[SubCall] = []

    def ask(self, prompts: Sequence[str]) -> tuple[str, ...]:
        """The answers to `prompts`, in order. Raises `HostRefusal` when not all may be asked.

        In a batch, a prompt whose call failed is answered with "[no answer: …]"; alone, it raises.
        """
        new = [prompt for prompt in dict.fromkeys(prompts) if prompt not in self._answers]
        deadline = self._meter.timer() + self.remaining()
        try:
            self._meter.need_sub_calls(len(new))
            claims = self._claims(new, deadline)
        except OverBudget as over:
            raise HostRefusal(f"{over.detail}; go on with what you have") from None
        failed = self._answer(claims, deadline)
        self._note_known(prompts, new)
        if failed and len(prompts) == 1:
            raise HostRefusal(failed[prompts[0]])
        return tuple(self._answers.get(p) or f"[no answer: {failed.get(p, '')}]" for p in prompts)

    def _note_known(self, prompts: Sequence[str], new: Sequence[str]) -> None:
        """What was asked before is shown in the trace too, at no cost."""
        fresh = set(new)
        for prompt in prompts:
            if prompt in fresh:
                fresh.discard(prompt)
            elif prompt in self._answers:
                self._made.append(SubCall(prompt, self._answers[prompt], cached=True))

    def taken(self) -> tuple[SubCall, ...]:
        """The sub-calls since this was last asked for."""
        made, self._made = tuple(self._made), []
        return made

    def _claims(self, prompts: Sequence[str], deadline: float) -> list[tuple[str, Claim]]:
        """Leave for all of them, or for none."""
        claims: list[tuple[str, Claim]] = []
        left = deadline - self._meter.timer()
        if prompts and left < _LEAST_SECONDS:
            raise HostRefusal("the time for this block of code is used up")
        try:
            for prompt in prompts:
                messages = _messages(prompt)
                claim = self._meter.claim("sub", self._model, messages, MAX_OUTPUT, seconds=left)
                claims.append((prompt, claim))
        except OverBudget:
            for _, claim in claims:
                self._meter.withdraw(claim)
            raise
        return claims

    def _answer(self, claims: Sequence[tuple[str, Claim]], deadline: float) -> dict[str, str]:
        """Make the calls, several at once; why those failed that did."""
        if not claims:
            return {}
        if len(claims) == 1:
            calls = [self._one(*claims[0], deadline)]
        else:
            calls = call_each(
                lambda made: self._one(made[0], made[1], deadline),
                claims,
                AT_ONCE,
                "anaphora-sub-call",
            )
        self._made.extend(calls)
        self._answers.update({call.prompt: call.answer for call in calls if call.error is None})
        return {call.prompt: call.error for call in calls if call.error is not None}

    def _one(self, prompt: str, claim: Claim, deadline: float) -> SubCall:
        # Calls of a batch wait for each other: what was left at the claim may be gone by now.
        seconds = min(claim.seconds, deadline - self._meter.timer(), self._meter.seconds_left())
        if seconds < _LEAST_SECONDS:
            self._meter.withdraw(claim)
            return SubCall(prompt, "", error="the time for this block of code is used up")
        try:
            reply = self._model.ask(_messages(prompt), max_output=claim.max_output, timeout=seconds)
        except ModelError as failure:
            self._meter.release(claim)
            return SubCall(prompt, "", error=failure.reason)
        except BaseException:
            self._meter.release(claim)
            raise
        self._meter.settle(claim, reply)
        tokens = reply.input_tokens + reply.output_tokens
        answer = reply.text.strip()
        error = None if answer else "the model said nothing"
        return SubCall(prompt, answer, tokens=tokens, error=error)


def _messages(prompt: str) -> tuple[Message, ...]:
    return (Message("system", sub_prompt()), Message("user", prompt))
