"""The held-out sets in a home of the engine: what is searched, what is asked, and how.

In: the folder of shared data. Out: `Scope`, one for each body of texts that questions are asked
of. Everything goes through `Memory`: `import_`, `conversations.extend`, `remember`, `recall` and
`recall_conversation`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from anaphora import Memory
from anaphora.errors import StoreError
from anaphora.values.conversations import NewTurn, RecallMode, TurnHit
from anaphora.values.memories import MemoryHit
from bench.changes import HELD_OUT, OWN, Story, holds_any, read_stories
from bench.conversations.places import Places
from bench.datasets import haystacks

__all__ = ["LANES", "SETS", "Clock", "Hit", "Lane", "Question", "Ranking", "Scope", "scopes"]

SETS: Final = ("realtalk", "beam", "changes", "own", "stories")
Lane = Literal["turns", "facts"]
LANES: Final[tuple[Lane, ...]] = ("turns", "facts")
CHATS_HELD_OUT: Final = range(6, 11)
# No answer is to fall out for its length.
_NO_BUDGET: Final = 10**9

Key: TypeAlias = tuple[str, int]
"""A turn by its conversation and its place there; a fact by "" and its place in the story."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its kind as its authors have it, when it is asked, and the texts that answer."""

    text: str
    category: str
    now: datetime
    answers: frozenset[Key]


@dataclass(frozen=True, slots=True)
class Hit:
    """A hit of the engine: the texts that it stands for, and the factors of its score."""

    keys: frozenset[Key]
    text: str
    score: float
    factors: Mapping[str, float]
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Hits, best first. `silent`: a user would not have got them, for want of confidence."""

    hits: tuple[Hit, ...]
    silent: bool
    confidence: float | None


Ask: TypeAlias = Callable[[Question, RecallMode, int], Ranking]
"""A question, the mode and how many hits, to what the engine finds."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Texts by their keys, and the questions that are asked of them."""

    set: str
    lane: Lane
    name: str
    texts: Mapping[Key, str]
    questions: Sequence[Question]
    ask: Ask


@dataclass(slots=True)
class Clock:
    """The time at which the next question is asked."""

    now: datetime = field(default=datetime(2024, 1, 1, tzinfo=UTC))

    def __call__(self) -> datetime:
        """What the engine takes for now."""
        return self.now


def scopes(data: Path, name: str, lane: Lane, memory: Memory, clock: Clock) -> Iterator[Scope]:
    """What one lane of one set holds; nothing for a lane that the set does not have."""
    if name in ("realtalk", "beam"):
        if lane == "turns":
            yield from _chats(data, name, memory, clock)
        return
    for story in _stories(data, name):
        tell = _told_as_turns if lane == "turns" else _told_as_facts
        yield tell(name, story, memory.scoped(f"{name}-{story['id']}-{lane}"), clock)


def _stories(data: Path, name: str) -> list[Story]:
    if name == "stories":
        stories: list[Story] = json.loads((data / "stories" / "stories.json").read_text("utf-8"))
        return stories
    return read_stories(data)[HELD_OUT if name == "changes" else OWN]


def _chats(data: Path, name: str, memory: Memory, clock: Clock) -> Iterator[Scope]:
    chats = [chat for _, chat in haystacks(data, name) if chat.number in CHATS_HELD_OUT]
    conversations = [own for chat in chats for own in chat.conversations]
    times = [turn.ts for own in conversations for turn in own.turns if turn.ts is not None]
    latest = clock.now = max(times)
    room = memory.scoped(name)
    room.import_(conversations)
    room.ready()
    places = Places()
    texts: dict[str, dict[Key, str]] = defaultdict(dict)
    for own in conversations:
        for index in range(places.add(room, own)):
            key = (own.conversation_id, index)
            texts[own.conversation_id][key] = places.text(key)
    for chat in chats:
        asked: dict[str, list[Question]] = defaultdict(list)
        for question in chat.questions:
            answers, _ = places.keys(question.evidence)
            if answers:
                assert question.conversation_id is not None
                asked[question.conversation_id].append(
                    Question(question.text, question.category, question.now or latest, answers)
                )
        for identity, questions in asked.items():
            ask = _asking_turns(room, clock, identity)
            yield Scope(name, "turns", identity, texts[identity], questions, ask)


def _told_as_turns(name: str, story: Story, room: Memory, clock: Clock) -> Scope:
    texts: dict[Key, str] = {}
    for session in story["sessions"]:
        begun = _moment(session["when"])
        turns = [
            NewTurn(
                turn["role"],
                turn["text"],
                ts=begun + timedelta(minutes=at),
                speaker=turn.get("speaker"),
            )
            for at, turn in enumerate(session["turns"])
        ]
        kept_at = room.conversations.extend(session["id"], turns)
        if kept_at != range(len(turns)):
            raise StoreError("measure", session["id"], f"turns {kept_at} were kept")
        texts |= {(session["id"], at): turn.text for at, turn in enumerate(turns)}
    room.ready()
    questions = list(_questions(story, texts, "turns"))
    return Scope(name, "turns", story["id"], texts, questions, _asking_turns(room, clock, None))


def _told_as_facts(name: str, story: Story, room: Memory, clock: Clock) -> Scope:
    keys: dict[str, set[Key]] = defaultdict(set)
    texts: dict[Key, str] = {("", at): fact["text"] for at, fact in enumerate(story["facts"])}
    for at, fact in sorted(enumerate(story["facts"]), key=lambda pair: str(pair[1]["when"])):
        clock.now = _moment(fact["when"])
        keys[room.remember(fact["text"], type=fact["type"]).id].add(("", at))
    room.ready()
    questions = list(_questions(story, texts, "facts"))
    return Scope(name, "facts", story["id"], texts, questions, _asking_facts(room, clock, keys))


def _questions(story: Story, texts: Mapping[Key, str], lane: Lane) -> Iterator[Question]:
    for asked in story["questions"]:
        answers = _answers(asked, texts, lane)
        if answers:
            yield Question(asked["q"], asked["kind"], _moment(asked["now"]), answers)


def _answers(asked: Mapping[str, Any], texts: Mapping[Key, str], lane: Lane) -> frozenset[Key]:
    """The evidence where the set names it, else the texts that hold a string of the answer."""
    if "evidence" not in asked:
        return frozenset(key for key, text in texts.items() if holds_any(text, asked["answer"]))
    if lane == "turns":
        return frozenset((str(session), int(at)) for session, at in asked["evidence"])
    return frozenset(("", int(at)) for at in asked["facts"])


def _asking_turns(room: Memory, clock: Clock, conversation_id: str | None) -> Ask:
    def ask(question: Question, mode: RecallMode, most: int) -> Ranking:
        clock.now = question.now
        recall = room.recall_conversation(
            conversation_id, question.text, top_k=most, budget=_NO_BUDGET, mode=mode
        )
        hits = tuple(map(_turn, recall.hits or recall.nearest))
        return Ranking(hits, not recall.hits and bool(recall.nearest), recall.confidence)

    return ask


def _turn(hit: TurnHit) -> Hit:
    again = ((turn.conversation_id, turn.index) for turn in hit.occurrences)
    keys = frozenset(((hit.conversation_id, hit.index), *again))
    return Hit(keys, hit.text, hit.score, hit.factors, hit.speaker or hit.role)


def _asking_facts(room: Memory, clock: Clock, keys: Mapping[str, set[Key]]) -> Ask:
    def ask(question: Question, mode: RecallMode, most: int) -> Ranking:
        clock.now = question.now
        recall = room.recall(question.text, top_k=most, mode=mode)
        hits = tuple(_memory(hit, keys) for hit in recall.hits or recall.nearest)
        return Ranking(hits, not recall.hits and bool(recall.nearest), recall.confidence)

    return ask


def _memory(hit: MemoryHit, keys: Mapping[str, set[Key]]) -> Hit:
    places = frozenset(key for record in (hit.id, *hit.same_as) for key in keys.get(record, ()))
    factors = {
        "similarity": hit.similarity,
        "decay": hit.decay,
        "reinforcement": hit.reinforcement,
        **hit.factors,
    }
    return Hit(places, hit.text, hit.score, factors)


def _moment(written: str) -> datetime:
    return datetime.fromisoformat(written)
