"""The functions that code written by a model may call, and the questions it asks another model.

Every argument is checked and every result bounded; a mistake is a `HostRefusal` whose words are for
the model. Nothing here writes, and nothing says more of the host than its own rules. Sub-calls are
counted against the budget; the same prompt is one call, however often it is asked.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from anaphora.deep.budget import Claim, Meter, OverBudget
from anaphora.deep.evidence.scope import ScopedEvidence, Session
from anaphora.deep.evidence.sources import named
from anaphora.deep.models.base import ModelRole
from anaphora.deep.prompts import NOT_FOUND, sub_prompt
from anaphora.deep.sandbox.base import HostFunction, HostRefusal, JsonValue
from anaphora.deep.worker_threads import call_each
from anaphora.errors import InvalidInput, ModelError, NotFound
from anaphora.ingest.secrets.masking import mask_text
from anaphora.values.deep import DeepSource, SubCall

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
            raise HostRefusal(f"{over.detail}; continue with what you have") from None
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
                talk = sub_prompt(prompt)
                claim = self._meter.claim("sub", self._model, talk, MAX_OUTPUT, seconds=left)
                claims.append((prompt, claim))
        except OverBudget:
            for _, claim in claims:
                self._meter.withdraw(claim)
            raise
        return claims

    def _answer(self, claims: Sequence[tuple[str, Claim]], deadline: float) -> dict[str, str]:
        """Make the calls, several at once; why those failed that did."""
        if len(claims) == 1:
            calls = [self._one(claims[0], deadline)]
        else:
            ask = partial(self._one, deadline=deadline)
            calls = call_each(ask, claims, AT_ONCE, "anaphora-sub-call")
        self._made.extend(calls)
        self._answers.update({call.prompt: call.answer for call in calls if call.error is None})
        return {call.prompt: call.error for call in calls if call.error is not None}

    def _one(self, claimed: tuple[str, Claim], deadline: float) -> SubCall:
        prompt, claim = claimed
        # Calls of a batch wait for each other: what was left at the claim may be gone by now.
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
    """An answer that code submitted, ids as it gave them; `mistakes` are why it was refused."""

    answer: str
    sources: tuple[str, ...]
    mistakes: tuple[str, ...] = ()


class Host:
    """The functions of one question. `accepted` is the submission that stands, if any."""

    def __init__(self, evidence: ScopedEvidence, sub_calls: SubCalls) -> None:
        self._evidence = evidence
        self._sub = sub_calls
        self.accepted: Submission | None = None
        self.refused: Submission | None = None

    def functions(self) -> dict[str, HostFunction]:
        """What the sandbox gets, by name."""
        plain: Sequence[Callable[..., JsonValue]] = (
            self.search,
            self.load_transcript,
            self.list_sessions,
            self.llm_query,
            self.llm_query_batched,
            self.submit,
        )
        return {one.__name__: _guarded(one) for one in plain}

    def search(
        self,
        query: Any,
        limit: Any = 20,
        since: Any = None,
        until: Any = None,
        speaker: Any = None,
    ) -> JsonValue:
        """The best turns and memories for a query."""
        found = self._evidence.search(
            _text("query", query, QUERY_CHARS),
            _number("limit", limit, 1, SEARCH_LIMIT),
            since=_optional("since", since),
            until=_optional("until", until),
            speaker=_optional("speaker", speaker),
        )
        return [_row(one, TURN_CHARS) for one in found]

    def load_transcript(self, id: Any, start: Any = 0, end: Any = None) -> JsonValue:  # noqa: A002
        """Turns of a session, in order."""
        name = _text("id", id, QUERY_CHARS)
        first = _number("start", start, 0, 1 << 31)
        upto = first + TRANSCRIPT_TURNS if end is None else _number("end", end, 0, 1 << 31)
        if upto - first > TRANSCRIPT_TURNS:
            raise HostRefusal(f"at most {TRANSCRIPT_TURNS} turns in one call: read on from there")
        turns = self._evidence.transcript(name, first, upto)
        room = min(TURN_CHARS, TRANSCRIPT_CHARS // max(1, len(turns)))
        return [_row(one, room) for one in turns]

    def list_sessions(self, limit: Any = 200, offset: Any = 0) -> JsonValue:
        """Sessions of the scope, newest first."""
        found = self._evidence.sessions(
            _number("limit", limit, 1, SESSIONS_LIMIT), _number("offset", offset, 0, 1 << 31)
        )
        return [_session(one) for one in found]

    def llm_query(self, prompt: Any) -> JsonValue:
        """The answer of the model that reads."""
        return self._sub.ask([_text("prompt", prompt, PROMPT_CHARS)])[0]

    def llm_query_batched(self, prompts: Any) -> JsonValue:
        """The answers of the model that reads, in the order of the prompts."""
        if not isinstance(prompts, list | tuple):
            raise HostRefusal(f"prompts must be a list of strings (given {_shown(prompts)})")
        if len(prompts) > PROMPTS:
            raise HostRefusal(f"at most {PROMPTS} prompts in one call (given {len(prompts)})")
        texts = [
            _text(f"prompts[{place}]", prompt, PROMPT_CHARS) for place, prompt in enumerate(prompts)
        ]
        return list(self._sub.ask(texts))

    def submit(self, answer: Any, sources: Any = ()) -> JsonValue:
        """Take the final answer, or say what is wrong with it."""
        submission = self._checked(answer, sources)
        if submission.mistakes:
            self.refused = submission
            raise HostRefusal("not accepted: " + "; ".join(submission.mistakes))
        self.accepted = submission
        return "accepted"

    def _checked(self, answer: object, sources: object) -> Submission:
        mistakes: list[str] = []
        if isinstance(answer, int | float) and not isinstance(answer, bool):
            answer = str(answer)
        if not isinstance(answer, str) or not answer.strip():
            mistakes.append(f"answer must be a non-empty string (given {_shown(answer)})")
            answer = ""
        elif len(answer) > ANSWER_CHARS:
            mistakes.append(
                f"answer may have at most {ANSWER_CHARS} characters (given {len(answer)})"
            )
        ids = _ids(sources)
        if ids is None:
            shown = _shown(sources)
            mistakes.append(
                f"sources must be a list of ids such as 'conversation#12' (given {shown})"
            )
        elif len(ids) > SOURCES:
            mistakes.append(f"at most {SOURCES} sources: give those that prove it best")
        else:
            mistakes += self._source_mistakes(answer.strip(), ids)
        return Submission(answer.strip()[:ANSWER_CHARS], ids or (), tuple(mistakes))

    def _source_mistakes(self, answer: str, ids: tuple[str, ...]) -> list[str]:
        if not ids and answer != NOT_FOUND:
            return [
                "sources is empty: cite the ids that prove the answer, "
                f'or submit("{NOT_FOUND}", []) if nothing does'
            ]
        unknown = [one for one in ids if not self._evidence.exists(one)]
        if not unknown:
            return []
        return [
            f"these sources do not exist: {named(unknown)}; cite ids exactly as search gives them"
        ]


def _guarded(function: Callable[..., JsonValue]) -> HostFunction:
    """The function with its mistakes told in words that a model can act on."""
    signature = inspect.signature(function)
    name = function.__name__

    def guarded(*args: Any, **kwargs: Any) -> JsonValue:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise HostRefusal(f"{name}: {error}; it is {name}{_plainly(signature)}") from None
        try:
            return function(*bound.args, **bound.kwargs)
        except HostRefusal as refusal:
            raise HostRefusal(f"{name}: {refusal}") from None
        except (InvalidInput, NotFound) as error:
            raise HostRefusal(f"{name}: {error}") from None

    return guarded


def _plainly(signature: inspect.Signature) -> str:
    plain = [
        one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()
    ]
    return str(inspect.Signature(plain))


def _row(source: DeepSource, room: int) -> Mapping[str, JsonValue]:
    # Masked here: a program of the model's own may print any part of it.
    text, cut = _bounded(mask_text(source.text), room)
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
    if cut:
        row["cut"] = True
    return row


def _session(session: Session) -> Mapping[str, JsonValue]:
    return {
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


def _bounded(text: str, room: int) -> tuple[str, bool]:
    if len(text) <= room:
        return text, False
    half = (room - len(_CUT)) // 2
    return text[:half] + _CUT + text[-half:], True


def _text(what: str, value: object, most: int) -> str:
    if not isinstance(value, str) or not value.strip():
        raise HostRefusal(f"{what} must be a non-empty string (given {_shown(value)})")
    if len(value) > most:
        raise HostRefusal(f"{what} may have at most {most} characters (given {len(value)})")
    return value


def _optional(what: str, value: object) -> str | None:
    return None if value is None or value == "" else _text(what, value, QUERY_CHARS)


def _number(what: str, value: object, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        shown = _shown(value)
        raise HostRefusal(f"{what} must be a whole number from {least} to {most} (given {shown})")
    return value


def _shown(value: object) -> str:
    """A value in a few words, without walking what may be a bomb of shared references."""
    if value is None or isinstance(value, bool | float):
        return repr(value)
    if isinstance(value, int):
        return repr(value) if abs(value) < 1 << 64 else "a very large number"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:60] + "…")
    if isinstance(value, list | tuple | dict):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def _ids(sources: object) -> tuple[str, ...] | None:
    """Ids of a list of ids, or of what `search` gave; None for anything else."""
    if not isinstance(sources, list | tuple) or len(sources) > 10 * SOURCES:
        return None
    ids: list[str] = []
    for one in sources:
        found = one.get("id") if isinstance(one, dict) else one
        if not isinstance(found, str):
            return None
        ids.append(found.strip())
    return tuple(dict.fromkeys(ids))
