"""Homes of stories and of the chats, told once and asked again and again."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from corpus.reading import Key, Lane, Question, Session, Story, parse_story

from anaphora import Embedder, Memory, NewTurn
from bench.datasets import Haystack
from bench.datasets.common import MessageKey
from bench.datasets.common import Question as ChatQuestion
from bench.homes import home_of, load_reader, tell_once

__all__ = [
    "Ask",
    "Clock",
    "asked_chat",
    "asked_story",
    "find_hits",
    "read_everyday_stories",
    "session_turns",
    "spread_questions",
    "turn_texts",
]

Ask: TypeAlias = Callable[[Question], list[Any]]
"""A question of a story to its hits, whatever their probability."""

MANY = 10
OF_CHAT = 40
_BUDGET = 100_000
_A_TURN = timedelta(minutes=1)


@dataclass(slots=True)
class Clock:
    """A clock that is set."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __call__(self) -> datetime:
        """The time."""
        return self.now


def read_everyday_stories(data: Path) -> list[Story]:
    """The stories of the shared data whose questions are asked in other words."""
    file = data / "stories" / "stories.json"
    return [
        parse_story({"register": "chat", "changes": [], **value}, file, "stories")
        for value in json.loads(file.read_text("utf-8"))
    ]


def find_hits(memory: Memory, lane: Lane, question: str, read: int = 0) -> list[Any]:
    """The first hits of one lane, whatever their probability; a reader reads `read` of them."""
    if lane == "facts":
        return list(memory.recall(question, top_k=MANY, min_confidence=0.0, read=read))
    return list(
        memory.recall_conversation(
            None, question, top_k=MANY, budget=_BUDGET, min_confidence=0.0, read=read
        )
    )


@contextmanager
def asked_story(
    homes: Path | None,
    story: Story,
    lane: Lane,
    read: int = 0,
    embedder: Embedder | None = None,
    only: Collection[Key] | None = None,
) -> Iterator[Ask]:
    """One lane of a story of the corpus, and how to ask it; a reader reads `read` hits.

    `only` some statements of it. Homes that are kept are those of one embedder and of all.
    """
    clock = Clock()
    with (
        home_of(homes, f"corpus-{story.id}-{lane}") as home,
        Memory.open(home, clock=clock, embedder=embedder) as memory,
    ):
        tell_once(home, lambda: _tell(memory, clock, story, lane, only))
        load_reader(memory, read)

        def ask(question: Question) -> list[Any]:
            clock.now = question.now
            return find_hits(memory, lane, question.text, read)

        yield ask


def _tell(
    memory: Memory, clock: Clock, story: Story, lane: Lane, only: Collection[Key] | None
) -> None:
    if lane == "facts":
        for at, fact in enumerate(story.facts):
            if only is None or ("", at) in only:
                clock.now = fact.when
                memory.remember(fact.text, type=fact.type)
    else:
        for session in story.sessions:
            if turns := session_turns(session, only):
                memory.conversations.extend(session.id, turns)
    memory.ready(600)


def session_turns(session: Session, only: Collection[Key] | None = None) -> list[NewTurn]:
    """The turns of a session of a story, a minute apart; `only` some of them."""
    return [
        NewTurn(turn.role, turn.text, ts=session.when + at * _A_TURN, speaker=turn.speaker)
        for at, turn in enumerate(session.turns)
        if only is None or (session.id, at) in only
    ]


def turn_texts(chat: Haystack) -> dict[MessageKey, str]:
    """The text of every turn of a chat, by its conversation's id and its key there."""
    return {
        (conversation.conversation_id, turn.key): turn.text
        for conversation in chat.conversations
        for turn in conversation.turns
    }


def spread_questions(chat: Haystack) -> list[ChatQuestion]:
    """At most `OF_CHAT` questions of a chat that can be scored, evenly spread."""
    questions = [q for q in chat.questions if q.evidence]
    return questions[:: max(1, len(questions) // OF_CHAT)][:OF_CHAT]


@contextmanager
def asked_chat(homes: Path | None, form: str, chat: Haystack) -> Iterator[tuple[Memory, Clock]]:
    """A chat of a data set, at the time of its last turn."""
    times = [turn.ts for one in chat.conversations for turn in one.turns if turn.ts]
    clock = Clock(max(times, default=datetime(2024, 1, 1, tzinfo=UTC)))
    with home_of(homes, f"{form}-{chat.number}") as home, Memory.open(home, clock=clock) as memory:
        tell_once(home, lambda: (memory.import_(chat.conversations), memory.ready(600)))
        yield memory, clock
