"""Answers in truth: to be given again for an hour, and, with every step, to be shown again.

An answer comes again while what it stands on has not changed, also after a restart; never in
another namespace or for other models. A trace has its answer's steps; the newest 100 of a
namespace are kept, each bounded, and one goes when something that it has shown is forgotten.
Secrets in a question are taken out of everything that is written down.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from anaphora.core.json_codec import as_json, from_plain
from anaphora.deep.evidence.questions import question_form
from anaphora.deep.evidence.scope import NamespaceEvidence, ScopedEvidence, ShownSources
from anaphora.deep.evidence.snapshot import Snapshot, all_current, news
from anaphora.errors import NotFound, Unreadable
from anaphora.ingest.secrets.redacting import redact, secrets_in
from anaphora.store.codecs import DAMAGE, moment, to_micros
from anaphora.values.deep import CostSnapshot, DeepAnswer, DeepStep, Scope, TraceSummary

if TYPE_CHECKING:
    from anaphora.store.namespace import Row
    from anaphora.store.table_rows import TableRows, TableTransaction

LIFE: Final = timedelta(hours=1)
MOST_ANSWERS: Final = 50
"""Answers kept in a namespace: the oldest go first."""
MOST_TRACES: Final = 100
_TEXT: Final = 20_000
_WHOLE: Final = 400_000
_CUT: Final = 2_000
_LEAST: Final = 4
"""Characters: what is shorter stands in many words, and is taken out only where it is known."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """Texts to take out, each with the mark that stands for it. True when there are any."""

    marks: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, question: str) -> Secrets:
        """The secrets in a question."""
        found = secrets_in(question)
        # The longest first: one may be a part of another.
        longest = sorted(found, key=len, reverse=True)
        return cls({one: f"[redacted:{found[one]}]" for one in longest})

    def __bool__(self) -> bool:
        return bool(self.marks)

    def out_of(self, text: str) -> str:
        """`text` without them; of a question that has none, as it is."""
        if not self.marks:
            return text
        text = redact(text).text
        for secret, mark in self.marks.items():
            if len(secret) >= _LEAST:
                text = text.replace(secret, mark)
        return text


NO_SECRETS: Final = Secrets()


@dataclass(frozen=True, slots=True)
class QuestionContext:
    """A question and where it is asked.

    `models` are the names of both roles; `secrets` are those in the words of the question.
    """

    question: str
    scope: Scope
    conversation_id: str | None
    include_memory: bool
    models: tuple[str, ...] = ()
    secrets: Secrets = NO_SECRETS

    @property
    def stored(self) -> str:
        """The question as it may be written down."""
        return self.secrets.out_of(self.question)


def answer_key(namespace: str, asked: QuestionContext) -> str:
    """SHA-256, in hex, of everything that tells questions apart: all but case and space."""
    parts = [
        namespace,
        asked.scope,
        asked.conversation_id,
        asked.include_memory,
        list(asked.models),
        question_form(asked.question),
    ]
    return hashlib.sha256(as_json(parts).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class AnswerCache:
    """The answers of one namespace. `clock` gives aware times."""

    rows: TableRows
    lane: NamespaceEvidence
    clock: Callable[[], datetime]

    def find_answer(self, asked: QuestionContext, scoped: ScopedEvidence) -> DeepAnswer | None:
        """The kept answer, if it still stands: not past its hour, its evidence as it was.

        Its evidence has changed when a source is gone, superseded or expired, or when a row that
        is new, and not the question's own turn, is among the 20 best for the question.
        """
        if asked.secrets:
            return None
        key = answer_key(self.rows.namespace, asked)
        found = self.rows.find("answer", {"answer_key": key})
        now = to_micros(self.clock())
        # A clock that was put back must not make an answer live longer.
        if not found or not found[0]["made_at"] <= now < found[0]["expires_at"]:
            return None
        try:
            answer: DeepAnswer = from_plain(DeepAnswer, json.loads(found[0]["body"]))
            then: Snapshot = from_plain(Snapshot, json.loads(found[0]["evidence"]))
        except DAMAGE:
            # An answer that cannot be read is found anew, and takes this one's place.
            return None
        ids = dict.fromkeys([*(one.id for one in answer.sources), *then.ids])
        if not all_current(self.lane, scoped, ids):
            return None
        if news(self.lane, scoped, asked.question, then):
            return None
        step = DeepStep(0, "cache", output=answer.answer)
        return replace(
            answer, question=asked.question, cached=True, steps=(step,), cost=CostSnapshot()
        )

    def put_answer(
        self, work: TableTransaction, asked: QuestionContext, answer: DeepAnswer, then: Snapshot
    ) -> None:
        """Keep an answer; `then` is what its question found when it was made.

        One to a question with a secret in it is not kept: without the secret it is another
        question, and with it, or a digest of it, it must not be written.
        """
        if asked.secrets:
            return
        now = self.clock()
        row: Row = {
            "answer_key": answer_key(self.rows.namespace, asked),
            "made_at": to_micros(now),
            "expires_at": to_micros(now + LIFE),
            # The trace has the steps.
            "body": as_json(replace(answer, steps=())),
            "evidence": as_json(then),
        }
        work.put("answer", [row])
        for old in work.find("answer", newest=True)[MOST_ANSWERS:]:
            work.drop("answer", {"answer_key": old["answer_key"]})


@dataclass(frozen=True, slots=True)
class TraceStore:
    """The traces of one namespace."""

    rows: TableRows
    clock: Callable[[], datetime]

    def list(self, limit: int = 20) -> tuple[TraceSummary, ...]:
        """The newest traces first."""
        columns = ("trace_id", "made_at", "question")
        rows = self.rows.find("trace", newest=True, limit=max(0, limit), only=columns)
        return tuple(
            TraceSummary(row["trace_id"], row["question"], moment(row["made_at"])) for row in rows
        )

    def get(self, trace_id: str) -> DeepAnswer:
        """The answer with its steps. Raises `NotFound`, `Unreadable`."""
        rows = self.rows.find("trace", {"trace_id": trace_id})
        if not rows:
            raise NotFound("trace", trace_id)
        try:
            answer: DeepAnswer = from_plain(DeepAnswer, json.loads(rows[0]["body"]))
        except DAMAGE as error:
            raise Unreadable("trace", trace_id, f"it is invalid ({error})") from error
        return answer

    def put_trace(
        self,
        work: TableTransaction,
        answer: DeepAnswer,
        seen: ShownSources,
        secrets: Secrets = NO_SECRETS,
    ) -> None:
        """Keep the trace of an answer, which has its id, without the secrets of its question."""
        assert answer.trace_id is not None
        seen.add(answer.sources)
        if secrets:
            answer = _without(answer, secrets)
        body = as_json(_bounded(answer, _TEXT))
        if len(body) > _WHOLE:
            body = as_json(_bounded(answer, _CUT))
        row: Row = {
            "trace_id": answer.trace_id,
            "made_at": to_micros(self.clock()),
            "question": answer.question,
            "body": body,
            "seen": as_json(seen.plain()),
        }
        work.put("trace", [row])
        for old in work.find("trace", newest=True)[MOST_TRACES:]:
            work.drop("trace", {"trace_id": old["trace_id"]})


def drop_traces(work: TableTransaction, is_gone: Callable[[ShownSources], bool]) -> None:
    """Delete the traces that have seen what is gone."""
    for row in work.find("trace"):
        try:
            gone = is_gone(ShownSources.of(json.loads(row["seen"])))
        except DAMAGE:
            # What it has seen cannot be told: it may be what is gone.
            gone = True
        if gone:
            work.drop("trace", {"trace_id": row["trace_id"]})


def _bounded(answer: DeepAnswer, most: int) -> DeepAnswer:
    def cut(text: str) -> str:
        return text if len(text) <= most else f"{text[:most]}… [{len(text) - most} characters more]"

    return replace(answer, steps=_steps(answer, cut))


def _without(answer: DeepAnswer, secrets: Secrets) -> DeepAnswer:
    clean = secrets.out_of
    return replace(
        answer,
        steps=_steps(answer, clean),
        question=clean(answer.question),
        answer=clean(answer.answer),
        note=clean(answer.note),
        sources=tuple(replace(one, text=clean(one.text)) for one in answer.sources),
    )


def _steps(answer: DeepAnswer, change: Callable[[str], str]) -> tuple[DeepStep, ...]:
    """The steps with each of their texts changed."""

    def changed(value: Any, *names: str) -> Any:
        texts = {name: getattr(value, name) for name in names}
        given = {name: change(text) for name, text in texts.items() if text is not None}
        return replace(value, **given)

    return tuple(
        replace(
            changed(step, "thought", "code", "output", "error"),
            sub_calls=tuple(changed(one, "prompt", "answer", "error") for one in step.sub_calls),
        )
        for step in answer.steps
    )
