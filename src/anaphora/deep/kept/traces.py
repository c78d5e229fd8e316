"""Traces: how an answer was found, kept to be shown again.

In: answers with their steps, and what was seen on the way. Out: the same answers. The newest 100
of a namespace are kept, each bounded; a trace goes when something that it has seen is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from anaphora.deep.evidence.watched import Seen
from anaphora.deep.kept.saved import answer_from, as_json, from_json
from anaphora.deep.kept.secrets import NO_SECRETS, Secrets
from anaphora.errors import NotFound, Unreadable
from anaphora.store.codecs import DAMAGE, from_micros, to_micros
from anaphora.values.deep import DeepAnswer, DeepStep, SubCall, TraceSummary

if TYPE_CHECKING:
    from anaphora.store.deep_rows import DeepRows, DeepTransaction, Row

MOST: Final = 100
_TEXT: Final = 20_000
_WHOLE: Final = 400_000
_CUT: Final = 2_000


class Traces:
    """The traces of one namespace."""

    def __init__(self, rows: DeepRows, clock: Callable[[], datetime]) -> None:
        self._rows = rows
        self._clock = clock

    def list(self, limit: int = 20) -> tuple[TraceSummary, ...]:
        """The newest traces first."""
        columns = ("trace_id", "made_at", "question")
        rows = self._rows.find("trace", newest=True, limit=max(0, limit), only=columns)
        return tuple(
            TraceSummary(row["trace_id"], row["question"], _time(row["made_at"])) for row in rows
        )

    def get(self, trace_id: str) -> DeepAnswer:
        """The answer with its steps. Raises `NotFound`, `Unreadable`."""
        rows = self._rows.find("trace", {"trace_id": trace_id})
        if not rows:
            raise NotFound("trace", trace_id)
        try:
            return answer_from(rows[0]["body"])
        except DAMAGE as error:
            raise Unreadable("trace", trace_id, f"it makes no sense ({error})") from error

    def put(
        self, work: DeepTransaction, answer: DeepAnswer, seen: Seen, secrets: Secrets = NO_SECRETS
    ) -> None:
        """Keep the trace of an answer, which has its id, without the secrets of its question."""
        assert answer.trace_id is not None
        seen.add(answer.sources)
        if secrets:
            answer = _without(answer, secrets)
        body = as_json(_bounded(answer, _TEXT))
        if len(body) > _WHOLE:
            body = as_json(_bounded(answer, _CUT))
        work.put(
            "trace",
            [
                {
                    "trace_id": answer.trace_id,
                    "made_at": to_micros(self._clock()),
                    "question": answer.question,
                    "body": body,
                    "seen": as_json(seen.plain()),
                }
            ],
        )
        for old in work.find("trace", newest=True)[MOST:]:
            work.drop("trace", {"trace_id": old["trace_id"]})

    @staticmethod
    def drop(work: DeepTransaction, gone: Callable[[Seen], bool]) -> int:
        """Delete the traces that have seen what is gone; how many."""
        dropped = 0
        for row in work.find("trace"):
            if _has_seen(row, gone):
                dropped += work.drop("trace", {"trace_id": row["trace_id"]})
        return dropped


def _has_seen(row: Row, gone: Callable[[Seen], bool]) -> bool:
    try:
        seen = Seen.of(from_json(row["seen"]))
    except DAMAGE:
        # What it has seen cannot be told: it may be what is gone.
        return True
    return gone(seen)


def _bounded(answer: DeepAnswer, most: int) -> DeepAnswer:
    return _stepped(answer, lambda text: _cut(text, most))


def _without(answer: DeepAnswer, secrets: Secrets) -> DeepAnswer:
    clean = secrets.out_of
    return replace(
        _stepped(answer, clean),
        question=clean(answer.question),
        answer=clean(answer.answer),
        note=clean(answer.note),
        sources=tuple(replace(one, text=clean(one.text)) for one in answer.sources),
    )


def _stepped(answer: DeepAnswer, change: Callable[[str], str]) -> DeepAnswer:
    return replace(answer, steps=tuple(_step(one, change) for one in answer.steps))


def _step(step: DeepStep, change: Callable[[str], str]) -> DeepStep:
    return replace(
        step,
        thought=change(step.thought),
        code=change(step.code),
        output=change(step.output),
        error=None if step.error is None else change(step.error),
        sub_calls=tuple(_call(one, change) for one in step.sub_calls),
    )


def _call(call: SubCall, change: Callable[[str], str]) -> SubCall:
    error = None if call.error is None else change(call.error)
    return replace(call, prompt=change(call.prompt), answer=change(call.answer), error=error)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… [{len(text) - most} characters more]"


def _time(micros: int) -> datetime:
    time = from_micros(micros)
    assert time is not None
    return time
