"""The functions that code written by a model may call, and the questions it asks another model.

Every argument is checked and every result bounded; a mistake is a `HostRefusal` whose message is
for the model. Nothing here writes, and no message reveals more of the host than its own rules.
Sub-calls are counted against the budget; the same prompt is one call, however often it is asked.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from anaphora.errors import InvalidInput, ModelError, NotFound
from anaphora.features.deep.budget import Claim, Meter, OverBudget
from anaphora.features.deep.evidence.scope import ScopedEvidence
from anaphora.features.deep.evidence.sources import quote_ids
from anaphora.features.deep.prompts import NOT_FOUND, sub_prompt
from anaphora.features.deep.sandbox.base import HostFunction, HostRefusal, JsonValue
from anaphora.features.deep.values import DeepSource, SubCall
from anaphora.features.deep.worker_threads import call_each
from anaphora.ingest.secrets.masking import mask_text
from anaphora.values.models import ModelRole

MAX_OUTPUT: Final = 2_000
AT_ONCE: Final = 4
_LEAST_SECONDS: Final = 0.05


class SubCalls:
    """The sub-calls of one question. `remaining` gives the seconds left to the current run."""

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
        new_prompts = [prompt for prompt in dict.fromkeys(prompts) if prompt not in self._answers]
        deadline = self._meter.timer() + self.remaining()
        try:
            self._meter.need_sub_calls(len(new_prompts))
            claims = self._claim(new_prompts, deadline)
        except OverBudget as over:
            raise HostRefusal(f"{over.detail}; continue with what you have") from None
        if len(claims) == 1:
            calls = [self._call_one(claims[0], deadline)]
        else:
            call_one = partial(self._call_one, deadline=deadline)
            calls = call_each(call_one, claims, AT_ONCE, "anaphora-sub-call")
        self._made.extend(calls)
        self._answers.update({call.prompt: call.answer for call in calls if call.error is None})
        error_by_prompt = {call.prompt: call.error for call in calls if call.error is not None}
        # A cached answer is in the trace too, at no cost.
        pending = set(new_prompts)
        for prompt in prompts:
            if prompt in pending:
                pending.discard(prompt)
            elif prompt in self._answers:
                self._made.append(SubCall(prompt, self._answers[prompt], cached=True))
        if error_by_prompt and len(prompts) == 1:
            raise HostRefusal(error_by_prompt[prompts[0]])
        return tuple(
            self._answers.get(p) or f"[no answer: {error_by_prompt.get(p, '')}]" for p in prompts
        )

    def drain(self) -> tuple[SubCall, ...]:
        """The sub-calls since the last `drain`."""
        calls, self._made = tuple(self._made), []
        return calls

    def _claim(self, prompts: Sequence[str], deadline: float) -> list[tuple[str, Claim]]:
        """Claim a call for every prompt, or for none."""
        claims: list[tuple[str, Claim]] = []
        seconds = deadline - self._meter.timer()
        if prompts and seconds < _LEAST_SECONDS:
            raise HostRefusal("the time for this block of code is used up")
        try:
            for prompt in prompts:
                talk = sub_prompt(prompt)
                claim = self._meter.claim("sub", self._model, talk, MAX_OUTPUT, seconds=seconds)
                claims.append((prompt, claim))
        except OverBudget:
            for _, claim in claims:
                self._meter.withdraw(claim)
            raise
        return claims

    def _call_one(self, claimed: tuple[str, Claim], deadline: float) -> SubCall:
        prompt, claim = claimed
        # Calls of a batch wait for each other: the time left at the claim may be used up by now.
        seconds = min(claim.seconds, deadline - self._meter.timer(), self._meter.seconds_left())
        if seconds < _LEAST_SECONDS:
            self._meter.withdraw(claim)
            return SubCall(prompt, "", error="the time for this block of code is used up")
        try:
            reply = self._meter.call(claim, self._model, sub_prompt(prompt), seconds)
        except ModelError as failure:
            return SubCall(prompt, "", error=failure.reason)
        tokens = reply.input_tokens + reply.output_tokens
        answer = reply.text.strip()
        error = None if answer else "the model said nothing"
        return SubCall(prompt, answer, tokens=tokens, error=error)


SEARCH_LIMIT: Final = 100
QUERY_CHARS: Final = 2_000
TURN_CHARS: Final = 3_000
TRANSCRIPT_TURNS: Final = 500
TRANSCRIPT_CHARS: Final = 600_000
SESSIONS_LIMIT: Final = 500
SITTINGS: Final = 200
PROMPT_CHARS: Final = 100_000
PROMPTS: Final = 64
ANSWER_CHARS: Final = 4_000
SOURCES: Final = 200
_CUT: Final = " […] "


@dataclass(frozen=True, slots=True)
class Submission:
    """A submitted answer with its ids, unchanged; `mistakes` are the reasons for its refusal."""

    answer: str
    sources: tuple[str, ...]
    mistakes: tuple[str, ...] = ()


class Host:
    """The functions of one question. `accepted` is the accepted submission, if any."""

    def __init__(self, evidence: ScopedEvidence, sub_calls: SubCalls) -> None:
        self._evidence = evidence
        self._sub = sub_calls
        self.accepted: Submission | None = None
        self.refused: Submission | None = None

    def list_functions(self) -> dict[str, HostFunction]:
        """The functions that the sandbox may call, by name."""
        functions: Sequence[Callable[..., JsonValue]] = (
            self.search,
            self.load_transcript,
            self.list_sessions,
            self.llm_query,
            self.llm_query_batched,
            self.submit,
        )
        return {function.__name__: _guard(function) for function in functions}

    def search(
        self,
        query: Any,
        limit: Any = 20,
        since: Any = None,
        until: Any = None,
        speaker: Any = None,
    ) -> JsonValue:
        """The best turns and memories for a query."""
        hits = self._evidence.search(
            _read_text("query", query, QUERY_CHARS),
            _read_number("limit", limit, 1, SEARCH_LIMIT),
            since=_read_optional("since", since),
            until=_read_optional("until", until),
            speaker=_read_optional("speaker", speaker),
        )
        return [_to_row(hit, TURN_CHARS) for hit in hits]

    def load_transcript(self, id: Any, start: Any = 0, end: Any = None) -> JsonValue:  # noqa: A002
        """Turns of a session, in order."""
        name = _read_text("id", id, QUERY_CHARS)
        first_index = _read_number("start", start, 0, 1 << 31)
        upto = (
            first_index + TRANSCRIPT_TURNS if end is None else _read_number("end", end, 0, 1 << 31)
        )
        if upto - first_index > TRANSCRIPT_TURNS:
            raise HostRefusal(f"at most {TRANSCRIPT_TURNS} turns in one call: read on from there")
        turns = self._evidence.transcript(name, first_index, upto)
        room = min(TURN_CHARS, TRANSCRIPT_CHARS // max(1, len(turns)))
        return [_to_row(turn, room) for turn in turns]

    def list_sessions(self, limit: Any = 200, offset: Any = 0) -> JsonValue:
        """Sessions of the scope, newest first."""
        sessions = self._evidence.sessions(
            _read_number("limit", limit, 1, SESSIONS_LIMIT),
            _read_number("offset", offset, 0, 1 << 31),
        )
        return [
            {
                "id": session.id,
                "title": mask_text(session.title)[:200],
                "turns": session.turns,
                "first": session.first.isoformat() if session.first else "",
                "last": session.last.isoformat() if session.last else "",
                "sittings": [
                    {"start": start, "ts": ts.isoformat() if ts else ""}
                    for start, ts in session.sittings[-SITTINGS:]
                ],
            }
            for session in sessions
        ]

    def llm_query(self, prompt: Any) -> JsonValue:
        """The answer of the reading model."""
        return self._sub.ask([_read_text("prompt", prompt, PROMPT_CHARS)])[0]

    def llm_query_batched(self, prompts: Any) -> JsonValue:
        """The answers of the reading model, in the order of the prompts."""
        if not isinstance(prompts, list | tuple):
            raise HostRefusal(f"prompts must be a list of strings (given {_describe(prompts)})")
        if len(prompts) > PROMPTS:
            raise HostRefusal(f"at most {PROMPTS} prompts in one call (given {len(prompts)})")
        texts = [
            _read_text(f"prompts[{index}]", prompt, PROMPT_CHARS)
            for index, prompt in enumerate(prompts)
        ]
        return list(self._sub.ask(texts))

    def submit(self, answer: Any, sources: Any = ()) -> JsonValue:
        """Accept the final answer, or raise what is wrong with it."""
        mistakes: list[str] = []
        if isinstance(answer, int | float) and not isinstance(answer, bool):
            answer = str(answer)
        if not isinstance(answer, str) or not answer.strip():
            mistakes.append(f"answer must be a non-empty string (given {_describe(answer)})")
            answer = ""
        elif len(answer) > ANSWER_CHARS:
            mistakes.append(
                f"answer may have at most {ANSWER_CHARS} characters (given {len(answer)})"
            )
        ids = _parse_ids(sources)
        if ids is None:
            mistakes.append(
                f"sources must be a list of ids such as 'conversation#12' "
                f"(given {_describe(sources)})"
            )
        elif len(ids) > SOURCES:
            mistakes.append(f"at most {SOURCES} sources: give those that prove it best")
        elif not ids and answer.strip() != NOT_FOUND:
            mistakes.append(
                "sources is empty: cite the ids that prove the answer, "
                f'or submit("{NOT_FOUND}", []) if nothing does'
            )
        elif unknown := [source_id for source_id in ids if not self._evidence.exists(source_id)]:
            mistakes.append(
                f"these sources do not exist: {quote_ids(unknown)}; "
                "cite ids exactly as search gives them"
            )
        submission = Submission(answer.strip()[:ANSWER_CHARS], ids or (), tuple(mistakes))
        if mistakes:
            self.refused = submission
            raise HostRefusal("not accepted: " + "; ".join(mistakes))
        self.accepted = submission
        return "accepted"


def _guard(function: Callable[..., JsonValue]) -> HostFunction:
    """The function, with its mistakes as messages that a model can act on."""
    signature = inspect.signature(function)
    name = function.__name__

    def guarded(*args: Any, **kwargs: Any) -> JsonValue:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            plain = [
                parameter.replace(annotation=inspect.Parameter.empty)
                for parameter in signature.parameters.values()
            ]
            usage = f"{name}{inspect.Signature(plain)}"
            raise HostRefusal(f"{name}: {error}; it is {usage}") from None
        try:
            return function(*bound.args, **bound.kwargs)
        except HostRefusal as refusal:
            raise HostRefusal(f"{name}: {refusal}") from None
        except (InvalidInput, NotFound) as error:
            raise HostRefusal(f"{name}: {error}") from None

    return guarded


def _to_row(source: DeepSource, room: int) -> Mapping[str, JsonValue]:
    # Masked here: a program of the model's own may print any part of it.
    text = mask_text(source.text)
    is_cut = len(text) > room
    if is_cut:
        half = (room - len(_CUT)) // 2
        text = text[:half] + _CUT + text[-half:]
    time = source.ts.isoformat() if source.ts is not None else ""
    row: dict[str, JsonValue] = {
        "id": source.id,
        "kind": source.kind,
        "text": text,
        "speaker": source.role or "",
        "ts": time,
        "created_at": time,
        "conversation": source.conversation_id or "",
        "index": source.index if source.index is not None else -1,
        "score": round(source.score, 4) if source.score is not None else 0.0,
    }
    if is_cut:
        row["cut"] = True
    return row


def _read_text(what: str, value: object, most: int) -> str:
    if not isinstance(value, str) or not value.strip():
        raise HostRefusal(f"{what} must be a non-empty string (given {_describe(value)})")
    if len(value) > most:
        raise HostRefusal(f"{what} may have at most {most} characters (given {len(value)})")
    return value


def _read_optional(what: str, value: object) -> str | None:
    return None if value is None or value == "" else _read_text(what, value, QUERY_CHARS)


def _read_number(what: str, value: object, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise HostRefusal(
            f"{what} must be a whole number from {least} to {most} (given {_describe(value)})"
        )
    return value


def _describe(value: object) -> str:
    """A value in a few words, without walking a possible bomb of shared references."""
    if value is None or isinstance(value, bool | float):
        return repr(value)
    if isinstance(value, int):
        return repr(value) if abs(value) < 1 << 64 else "a very large number"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:60] + "…")
    if isinstance(value, list | tuple | dict):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def _parse_ids(sources: object) -> tuple[str, ...] | None:
    """Ids of a list of ids, or of results of `search`; None for anything else."""
    if not isinstance(sources, list | tuple) or len(sources) > 10 * SOURCES:
        return None
    ids: list[str] = []
    for source in sources:
        source_id = source.get("id") if isinstance(source, dict) else source
        if not isinstance(source_id, str):
            return None
        ids.append(source_id.strip())
    return tuple(dict.fromkeys(ids))
