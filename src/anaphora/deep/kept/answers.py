"""Answers that may be given again: for an hour, as long as what they stand on has not changed.

In: a question, where it was asked and of which models; an answer. Out: that answer, or None. Kept
in truth, so that it survives a restart; never given in another namespace or for other models.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from anaphora.deep.evidence.scoped import NamespaceEvidence, ScopedEvidence
from anaphora.deep.evidence.snapshot import Snapshot, all_stand, news
from anaphora.deep.kept.saved import answer_from, as_json, from_json
from anaphora.deep.kept.secrets import NO_SECRETS, Secrets
from anaphora.deep.reading import question_form
from anaphora.store.codecs import DAMAGE, to_micros
from anaphora.values.deep import CostSnapshot, DeepAnswer, DeepStep

if TYPE_CHECKING:
    from anaphora.store.deep_rows import DeepRows, DeepTransaction

LIFE: Final = timedelta(hours=1)
MOST: Final = 50
"""Answers kept in a namespace: the oldest go first."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and where it is asked.

    `models` are the names of both roles; `secrets` are those in the words of the question.
    """

    question: str
    scope: str
    conversation_id: str | None
    include_memory: bool
    models: tuple[str, ...] = ()
    secrets: Secrets = NO_SECRETS

    @property
    def stored(self) -> str:
        """The question as it may be written down."""
        return self.secrets.out_of(self.question)


def answer_key(namespace: str, asked: Asked) -> str:
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


class AnswerCache:
    """The answers of one namespace. `clock` gives aware times."""

    def __init__(
        self, rows: DeepRows, lane: NamespaceEvidence, clock: Callable[[], datetime]
    ) -> None:
        self._rows = rows
        self._lane = lane
        self._clock = clock

    def get(self, asked: Asked, scoped: ScopedEvidence) -> DeepAnswer | None:
        """The kept answer, if it still stands: not past its hour, its evidence as it was.

        Its evidence has changed when a source is gone, superseded or expired, or when a row that
        is new, and not the question's own turn, is among the 20 best for the question.
        """
        if asked.secrets:
            return None
        key = answer_key(self._rows.namespace, asked)
        found = self._rows.find("answer", {"answer_key": key})
        now = to_micros(self._clock()) or 0
        # A clock that was put back must not make an answer live longer.
        if not found or not found[0]["made_at"] <= now < found[0]["expires_at"]:
            return None
        try:
            answer = answer_from(found[0]["body"])
            then = Snapshot.of(from_json(found[0]["evidence"]))
        except DAMAGE:
            # An answer that cannot be read is found anew, and takes this one's place.
            return None
        # Rows of an older program have keys that took several questions for one.
        if question_form(answer.question) != question_form(asked.question):
            return None
        ids = dict.fromkeys([*(one.id for one in answer.sources), *then.ids])
        if not all_stand(self._lane, scoped, ids):
            return None
        if news(self._lane, scoped, asked.question, then):
            return None
        step = DeepStep(0, "cache", output=answer.answer)
        return replace(
            answer, question=asked.question, cached=True, steps=(step,), cost=CostSnapshot()
        )

    def put(self, work: DeepTransaction, asked: Asked, answer: DeepAnswer, then: Snapshot) -> None:
        """Keep an answer; `then` is what its question found when it was made.

        One to a question with a secret in it is not kept: without the secret it is another
        question, and with it, or a digest of it, it must not be written.
        """
        if asked.secrets:
            return
        now = self._clock()
        work.put(
            "answer",
            [
                {
                    "answer_key": answer_key(self._rows.namespace, asked),
                    "made_at": to_micros(now),
                    "expires_at": to_micros(now + LIFE),
                    # The trace has the steps.
                    "body": as_json(replace(answer, steps=())),
                    "evidence": as_json(then),
                }
            ],
        )
        for old in work.find("answer", newest=True)[MOST:]:
            work.drop("answer", {"answer_key": old["answer_key"]})
