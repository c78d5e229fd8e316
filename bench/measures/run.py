"""Asks the questions of a data set and counts what comes, message by message.

In: a data set as `bench.datasets` reads it. Out: `Asked`, one a ranking: for every question the
messages in the order in which they came. Everything goes through `Memory`: `import_`, `ready`,
`recall_conversation`. Each ranking is asked for `DEPTH` turns without a budget, at the time the
question was asked, and never stays silent.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from anaphora.api.memory import Memory
from anaphora.core.progress import Progress
from anaphora.errors import UnknownFormat
from anaphora.rank.budget import token_cost
from anaphora.values.conversations import ImportProblem, RecallMode
from bench.conversations.places import Places
from bench.conversations.report import Key
from bench.datasets import Haystack, Question
from bench.measures.definitions import Ranking

ROWS: tuple[tuple[str, RecallMode], ...] = (
    ("BM25", "words"),
    ("cosine", "vector"),
    ("Anaphora", "hybrid"),
)
"""The rankings compared: how they are called, and the `mode` of recall that gives them."""

DEPTH = 100
"""Turns asked for: enough for twenty rounds or sessions of most sets."""

_START = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Asked:
    """What came of one chat's or of several chats' questions.

    `rankings` has each row's answers, in the order of the questions. `rounds` and `sessions` name
    the unit of each message, `scopes` what a question about it is asked of. `roles` and `tokens`
    are those of each message; `empty` counts the questions without evidence, by reason.
    """

    rankings: dict[str, list[Ranking[Key]]] = field(default_factory=dict)
    rounds: dict[Key, str] = field(default_factory=dict)
    sessions: dict[Key, str] = field(default_factory=dict)
    scopes: dict[Key, str] = field(default_factory=dict)
    roles: dict[Key, str] = field(default_factory=dict)
    tokens: dict[Key, int] = field(default_factory=dict)
    empty: Counter[str] = field(default_factory=Counter)
    empty_by_category: Counter[str] = field(default_factory=Counter)
    chats: int = 0
    degraded: Counter[str] = field(default_factory=Counter)

    def members(self, unit_of: Mapping[Key, str]) -> dict[str, list[Key]]:
        """The messages of each unit."""
        found: dict[str, list[Key]] = {}
        for key, unit in unit_of.items():
            found.setdefault(unit, []).append(key)
        return found

    @classmethod
    def joined(cls, several: Iterable[Asked]) -> Asked:
        """What came of several chats together."""
        whole = cls()
        for one in several:
            for name, rankings in one.rankings.items():
                whole.rankings.setdefault(name, []).extend(rankings)
            whole.rounds |= one.rounds
            whole.sessions |= one.sessions
            whole.scopes |= one.scopes
            whole.roles |= one.roles
            whole.tokens |= one.tokens
            whole.empty += one.empty
            whole.empty_by_category += one.empty_by_category
            whole.degraded += one.degraded
            whole.chats += one.chats
        return whole


class _Clock:
    def __init__(self) -> None:
        self.now = _START

    def __call__(self) -> datetime:
        return self.now


def ask_all(
    found: Iterable[Haystack | ImportProblem],
    *,
    embedder: str = "minilm",
    home: Path | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> tuple[dict[int, Asked], list[ImportProblem]]:
    """What came of each chat's questions, by its number, and what could not be read.

    `home` keeps the import for the next run (default: a temporary place); `limit` is how many
    questions of each category are asked. Raises `UnknownFormat` where nothing could be read.
    """
    problems: list[ImportProblem] = []
    left: Counter[str] = Counter()
    asked: dict[int, Asked] = {}
    clock = _Clock()
    with (
        tempfile.TemporaryDirectory(prefix="anaphora-measures-") as aside,
        Memory.open(home or Path(aside), embedder=embedder, clock=clock) as memory,
    ):
        for namespace, group in groupby(_good(found, problems), key=lambda one: one.namespace):
            chosen = [(one, list(_within(one.questions, left, limit))) for one in group]
            wanted = [(one, questions) for one, questions in chosen if questions]
            if not wanted:
                continue
            own = memory if namespace == "default" else memory.scoped(namespace)
            _import(own, [one for one, _ in wanted], clock)
            for number, (one, questions) in enumerate(wanted, start=1):
                came = _Chat(own, clock, one).asked(questions)
                asked[one.number] = Asked.joined([asked.get(one.number, Asked()), came])
                if progress is not None:
                    progress("chats", number, len(wanted))
    if not asked:
        why = problems[0].reason if problems else "no chat with questions in it"
        raise UnknownFormat("path", problems[0].path if problems else "", why)
    return asked, problems


def _good(
    found: Iterable[Haystack | ImportProblem], problems: list[ImportProblem]
) -> Iterator[Haystack]:
    for one in found:
        if isinstance(one, ImportProblem):
            problems.append(one)
        else:
            yield one


def _within(
    questions: Sequence[Question], left: Counter[str], limit: int | None
) -> Iterator[Question]:
    """The questions, at most `limit` of each category over the whole set."""
    for question in questions:
        if limit is None or left[question.category] < limit:
            left[question.category] += 1
            yield question


def _import(memory: Memory, haystacks: Sequence[Haystack], clock: _Clock) -> None:
    several = {c.conversation_id: c for one in haystacks for c in one.conversations}
    times = [turn.ts for c in several.values() for turn in c.turns if turn.ts is not None]
    clock.now = max(times, default=_START)
    memory.import_(list(several.values()))
    memory.ready()


class _Chat:
    """Asks one haystack's questions of a memory that has its conversations."""

    def __init__(self, memory: Memory, clock: _Clock, haystack: Haystack) -> None:
        self._memory, self._clock, self._haystack = memory, clock, haystack
        self._latest = clock.now
        self._places = Places()
        self._found = Asked(chats=1)
        for conversation in haystack.conversations:
            self._places.add(memory, conversation)
            self._number(conversation.conversation_id)
        for key, session in haystack.sessions.items():
            for place in self._places.keys([key])[0]:
                self._found.sessions[self._key(*place)] = session

    def _key(self, identity: str, index: int) -> Key:
        """A message among those of all namespaces: each has conversations of the same names."""
        return f"{self._haystack.namespace} {identity}", index

    def _number(self, identity: str) -> None:
        """Take in roles, sizes, rounds and (until something else is known) the session."""
        thread = self._memory.conversations.get(identity)
        found, rounds = self._found, 0
        for index, turn in enumerate(thread.turns if thread is not None else ()):
            key = self._key(identity, index)
            # Ogham: a new round begins with each message of the user.
            rounds += turn.role == "user" and index > 0
            found.rounds[key] = f"{key[0]} round {rounds}"
            found.sessions[key] = key[0]
            # Where a set has one namespace, a question is asked of its own chat.
            own = self._haystack.namespace
            found.scopes[key] = key[0] if own == "default" else own
            found.roles[key] = turn.role
            found.tokens[key] = token_cost(turn.text)

    def asked(self, questions: Sequence[Question]) -> Asked:
        """Ask them all."""
        for question in questions:
            places, _ = self._places.keys(question.evidence)
            relevant = frozenset(self._key(*place) for place in places)
            if question.left_out or not relevant:
                self._found.empty[question.left_out or "evidence not in the data"] += 1
                self._found.empty_by_category[question.category] += 1
                continue
            self._clock.now = question.now or self._latest
            wanted = self._messages(relevant)
            for name, mode in ROWS:
                ranking = Ranking(question.category, self._recalled(question, mode), wanted)
                self._found.rankings.setdefault(name, []).append(ranking)
        return self._found

    def _messages(self, relevant: frozenset[Key]) -> frozenset[Key]:
        """The evidence as messages: a whole conversation is all of its messages."""
        whole = {identity for identity, index in relevant if index < 0}
        inside = {key for key in self._found.tokens if key[0] in whole}
        return frozenset({key for key in relevant if key[1] >= 0} | inside)

    def _recalled(self, question: Question, mode: RecallMode) -> tuple[Key, ...]:
        found = self._memory.recall_conversation(
            question.conversation_id,
            question.text,
            top_k=DEPTH,
            budget=1 << 40,
            mode=mode,
            min_confidence=0.0,
        )
        self._places.check(found)
        for part in found.degraded:
            self._found.degraded[part.part] += 1
        return tuple(self._key(hit.conversation_id, hit.index) for hit in found)
