"""Stored answers: a cache for an hour, and traces with every step.

An answer is reused while its evidence has not changed, also after a restart; never in another
namespace or for other models. A trace has its answer's steps; the newest 100 of a namespace are
kept, each bounded, and one is deleted when a source that it has shown is forgotten. Secrets in a
question are redacted in everything that is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from anaphora.errors import NotFound, Unreadable
from anaphora.features.deep.evidence.questions import question_form
from anaphora.features.deep.evidence.scope import NamespaceEvidence, ScopedEvidence, ShownSources
from anaphora.features.deep.evidence.snapshot import EvidenceSnapshot, all_current, find_news
from anaphora.features.deep.values import CostSnapshot, DeepAnswer, DeepStep, Scope, TraceSummary
from anaphora.ingest.secrets.redacting import redact, secrets_in
from anaphora.store.codecs import DAMAGE, moment, to_micros
from anaphora.values.json_codec import as_json, from_plain

if TYPE_CHECKING:
    from anaphora.store.namespace import Row
    from anaphora.store.table_rows import TableRows, TableTransaction

LIFE: Final = timedelta(hours=1)
MOST_ANSWERS: Final = 50
"""Answers kept in a namespace: the oldest are deleted first."""
MOST_TRACES: Final = 100
_TEXT: Final = 20_000
_WHOLE: Final = 400_000
_CUT: Final = 2_000
_LEAST: Final = 4
"""Characters: a shorter secret occurs in many words, and is redacted only by its pattern."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """Texts to redact, each with the mark that replaces it. True when there are any."""

    marks: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, question: str) -> Secrets:
        """The secrets in a question."""
        kinds = secrets_in(question)
        # The longest first: one may be a part of another.
        longest_first = sorted(kinds, key=len, reverse=True)
        return cls({secret: f"[redacted:{kinds[secret]}]" for secret in longest_first})

    def __bool__(self) -> bool:
        return bool(self.marks)

    def redact(self, text: str) -> str:
        """`text` without the secrets; unchanged if the question has none."""
        if not self.marks:
            return text
        text = redact(text).text
        for secret, mark in self.marks.items():
            if len(secret) >= _LEAST:
                text = text.replace(secret, mark)
        return text


NO_SECRETS: Final = Secrets()


@dataclass(frozen=True, slots=True)
class QuestionScope:
    """A question and where it is asked.

    `models` are the names of both roles; `secrets` are those in the text of the question.
    """

    question: str
    scope: Scope
    conversation_id: str | None
    include_memory: bool
    models: tuple[str, ...] = ()
    secrets: Secrets = NO_SECRETS

    @property
    def stored(self) -> str:
        """The question as it may be stored."""
        return self.secrets.redact(self.question)


def answer_key(namespace: str, context: QuestionScope) -> str:
    """SHA-256, in hex, of everything that distinguishes questions: not case and space."""
    parts = [
        namespace,
        context.scope,
        context.conversation_id,
        context.include_memory,
        list(context.models),
        question_form(context.question),
    ]
    return hashlib.sha256(as_json(parts).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class AnswerCache:
    """The answers of one namespace. `clock` gives aware times."""

    rows: TableRows
    lane: NamespaceEvidence
    clock: Callable[[], datetime]

    def find_answer(self, context: QuestionScope, scoped: ScopedEvidence) -> DeepAnswer | None:
        """The cached answer, if it is still valid: within its hour, its evidence unchanged.

        Its evidence has changed when a source is deleted, superseded or expired, or when a new row
        other than the question's own turn is among the 20 best for the question.
        """
        if context.secrets:
            return None
        key = answer_key(self.rows.namespace, context)
        rows = self.rows.find("answer", {"answer_key": key})
        now = to_micros(self.clock())
        # A clock that was set back must not make an answer live longer.
        if not rows or not rows[0]["made_at"] <= now < rows[0]["expires_at"]:
            return None
        try:
            answer: DeepAnswer = from_plain(DeepAnswer, json.loads(rows[0]["body"]))
            snapshot: EvidenceSnapshot = from_plain(
                EvidenceSnapshot, json.loads(rows[0]["evidence"])
            )
        except DAMAGE:
            # A damaged answer is computed again, and replaced.
            return None
        ids = dict.fromkeys([*(source.id for source in answer.sources), *snapshot.ids])
        if not all_current(self.lane, scoped, ids):
            return None
        if find_news(self.lane, scoped, context.question, snapshot):
            return None
        step = DeepStep(0, "cache", output=answer.answer)
        return replace(
            answer, question=context.question, cached=True, steps=(step,), cost=CostSnapshot()
        )

    def put_answer(
        self,
        work: TableTransaction,
        context: QuestionScope,
        answer: DeepAnswer,
        then: EvidenceSnapshot,
    ) -> None:
        """Store an answer; `then` is the snapshot of its question from before the answer.

        The answer to a question with a secret is not stored: without the secret it is another
        question, and neither the secret nor a digest of it may be written.
        """
        if context.secrets:
            return
        now = self.clock()
        row: Row = {
            "answer_key": answer_key(self.rows.namespace, context),
            "made_at": to_micros(now),
            "expires_at": to_micros(now + LIFE),
            # The steps are in the trace.
            "body": as_json(replace(answer, steps=())),
            "evidence": as_json(then),
        }
        work.put("answer", [row])
        for surplus in work.find("answer", newest=True)[MOST_ANSWERS:]:
            work.drop("answer", {"answer_key": surplus["answer_key"]})


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
        """Store the trace of an answer under its `trace_id`, without the question's secrets."""
        assert answer.trace_id is not None
        seen.add(answer.sources)
        if secrets:
            clean = secrets.redact
            answer = replace(
                answer,
                steps=_change_steps(answer, clean),
                question=clean(answer.question),
                answer=clean(answer.answer),
                note=clean(answer.note),
                sources=tuple(
                    replace(source, text=clean(source.text)) for source in answer.sources
                ),
            )
        body = as_json(_cut_steps(answer, _TEXT))
        if len(body) > _WHOLE:
            body = as_json(_cut_steps(answer, _CUT))
        row: Row = {
            "trace_id": answer.trace_id,
            "made_at": to_micros(self.clock()),
            "question": answer.question,
            "body": body,
            "seen": as_json(seen.to_plain()),
        }
        work.put("trace", [row])
        for surplus in work.find("trace", newest=True)[MOST_TRACES:]:
            work.drop("trace", {"trace_id": surplus["trace_id"]})


def drop_traces(work: TableTransaction, is_gone: Callable[[ShownSources], bool]) -> None:
    """Delete the traces that have shown a forgotten source."""
    for row in work.find("trace"):
        try:
            is_affected = is_gone(ShownSources.read(json.loads(row["seen"])))
        except DAMAGE:
            # Its sources cannot be read: a forgotten one may be among them.
            is_affected = True
        if is_affected:
            work.drop("trace", {"trace_id": row["trace_id"]})


def _cut_steps(answer: DeepAnswer, most: int) -> DeepAnswer:
    def cut(text: str) -> str:
        return text if len(text) <= most else f"{text[:most]}… [{len(text) - most} characters more]"

    return replace(answer, steps=_change_steps(answer, cut))


def _change_steps(answer: DeepAnswer, change: Callable[[str], str]) -> tuple[DeepStep, ...]:
    """The steps with each of their texts changed."""

    def change_texts(record: Any, *names: str) -> Any:
        texts = {name: getattr(record, name) for name in names}
        return replace(
            record, **{name: change(text) for name, text in texts.items() if text is not None}
        )

    return tuple(
        replace(
            change_texts(step, "thought", "code", "output", "error"),
            sub_calls=tuple(
                change_texts(call, "prompt", "answer", "error") for call in step.sub_calls
            ),
        )
        for step in answer.steps
    )
