"""The sets of the quality measurement in a home: what is searched, what is asked, and how.

In: data sets of conversations, and stories told as turns and as facts. Out: `Scope`, one for each
body of texts that questions are asked of. Everything goes through `Memory`: `import_`,
`conversations.extend`, `remember`, `recall` and `recall_conversation`.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeAlias

from anaphora import Memory
from anaphora.errors import StoreError
from anaphora.values.conversations import ImportedConversation, TurnHit
from bench.changes import HELD_OUT, Story, holds_any, read_stories, story_turns
from bench.datasets import Haystack, MessageKey
from bench.told import Clock

__all__ = ["DEPTH", "Key", "Question", "Scope", "chat_scopes", "story_scopes"]

DEPTH: Final = 100
"""Hits asked for: enough for twenty rounds of most sets."""
# No answer is to fall out for its length.
_NO_BUDGET: Final = 10**9
_WHOLE: Final = -1
_EVERYDAY: Final = tuple((Path(__file__).parent / "stories" / "everyday").glob("*.json"))
_START: Final = datetime(2024, 1, 1, tzinfo=UTC)

Key: TypeAlias = tuple[str, int]
"""A turn by its conversation and its place there; a fact by "" and its place in the story."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its kind as its authors have it, when it is asked, and the texts that answer."""

    text: str
    category: str
    now: datetime
    answers: frozenset[Key]


Ask: TypeAlias = Callable[[Question], list[frozenset[Key]]]
"""A question to what the engine finds, best first: the texts that each hit stands for."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Texts by their keys, the questions that are asked of them, and those that nothing answers, by
    category. `number` is that of the chat; `rounds` names the round of each turn."""

    number: int
    texts: Mapping[Key, str]
    questions: Sequence[Question]
    ask: Ask
    unanswered: Mapping[str, int] = field(default_factory=dict)
    rounds: Mapping[Key, str] = field(default_factory=dict)


def chat_scopes(chats: Iterable[Haystack], memory: Memory, clock: Clock) -> Iterator[Scope]:
    """The chats of a data set, each with the questions that are asked of it."""
    for namespace, group in groupby(chats, key=lambda chat: chat.namespace):
        members = list(group)
        room = memory if namespace == "default" else memory.scoped(namespace)
        # Chats of one namespace hold either different conversations or the very same ones.
        own = {one.conversation_id: one for chat in members for one in chat.conversations}
        times = [turn.ts for one in own.values() for turn in one.turns if turn.ts is not None]
        clock.now = latest = max(times, default=_START)
        room.import_(list(own.values()))
        room.ready()
        places = {name: _places(room, conversation) for name, conversation in own.items()}
        for chat in members:
            yield from _chat(chat, room, clock, latest, places)


def _chat(
    chat: Haystack,
    room: Memory,
    clock: Clock,
    latest: datetime,
    places: Mapping[str, Mapping[MessageKey, Key]],
) -> Iterator[Scope]:
    asked: dict[str | None, list[Question]] = defaultdict(list)
    unanswered: Counter[str] = Counter()
    names = [one.conversation_id for one in chat.conversations]
    known = {key: place for name in names for key, place in places[name].items()}
    texts, rounds = _turns(room, names)
    for question in chat.questions:
        pieces = {known[key] for key in question.evidence if key in known}
        whole = {name for name, at in pieces if at == _WHOLE}
        answers = {key for key in texts if key in pieces or key[0] in whole}
        if not answers:
            unanswered[question.category] += 1
            continue
        moment = question.now or latest
        asked[question.conversation_id].append(
            Question(question.text, question.category, moment, frozenset(answers))
        )
    for name, questions in asked.items() or [(None, list[Question]())]:
        searched = {key: text for key, text in texts.items() if name in (None, key[0])}
        ask = _asking_turns(room, clock, name, repeated=False)
        yield Scope(chat.number, searched, questions, ask, unanswered, rounds)
        unanswered = Counter()


def _places(room: Memory, conversation: ImportedConversation) -> dict[MessageKey, Key]:
    """Where the messages lie. Threads keep the order of the source and may leave messages out,
    never change one: the two are laid side by side by their texts."""
    name = conversation.conversation_id
    thread = room.conversations.get(name)
    kept = thread.turns if thread is not None else ()
    places: dict[MessageKey, Key] = {(name, ""): (name, _WHOLE)}
    index = 0
    for turn in conversation.turns:
        if index < len(kept) and kept[index].text == turn.text:
            places[(name, turn.key)] = (name, index)
            index += 1
    if index != len(kept):
        raise StoreError("measure", name, f"turn {index} is not what was imported")
    return places


def _turns(room: Memory, names: Iterable[str]) -> tuple[dict[Key, str], dict[Key, str]]:
    """The text and the round of each turn; a round begins with each message of the user."""
    texts: dict[Key, str] = {}
    rounds: dict[Key, str] = {}
    for name in names:
        thread, number = room.conversations.get(name), 0
        for index, turn in enumerate(thread.turns if thread is not None else ()):
            number += turn.role == "user" and index > 0
            texts[(name, index)] = turn.text
            rounds[(name, index)] = f"{name} round {number}"
    return texts, rounds


def story_scopes(data: Path, name: str, lane: str, memory: Memory, clock: Clock) -> Iterator[Scope]:
    """The stories of "changes" (the half that is held out), of "stories" or of "everyday", in one
    lane."""
    for story in _stories(data, name):
        room = memory.scoped(f"{name}-{story['id']}-{lane}")
        tell = _told_as_turns if lane == "turns" else _told_as_facts
        texts, ask = tell(story, room, clock)
        room.ready()
        questions = [
            Question(asked["q"], asked["kind"], datetime.fromisoformat(asked["now"]), answers)
            for asked in story["questions"]
            if (answers := _answers(asked, texts, lane))
        ]
        yield Scope(0, texts, questions, ask)


def _stories(data: Path, name: str) -> list[Story]:
    if name == "changes":
        return read_stories(data)[HELD_OUT]
    if name == "everyday":
        return [_everyday(json.loads(file.read_text("utf-8"))) for file in sorted(_EVERYDAY)]
    stories: list[Story] = json.loads((data / "stories" / "stories.json").read_text("utf-8"))
    return stories


def _everyday(written: Mapping[str, Any]) -> Story:
    """Unrelated facts of a household, asked by name and in other words, in the form of a story."""
    language, days = written["language"], [_START + timedelta(days=4 * n) for n in range(100)]
    facts = [text for text, *_ in written["facts"]]
    return {
        "id": language,
        "facts": [
            {"text": text, "when": f"{days[at]}", "type": "semantic"}
            for at, text in enumerate(facts)
        ],
        "sessions": [
            {"id": f"{at}", "when": f"{days[at]}", "turns": [{"role": "user", "text": text}]}
            for at, text in enumerate(facts)
        ],
        "questions": [
            {
                "q": question,
                "kind": f"{language}, {way}",
                "now": f"{days[-1]}",
                "evidence": [[f"{at}", 0]],
                "facts": [at],
            }
            for at, (_, *questions) in enumerate(written["facts"])
            for way, question in zip(("named", "in other words"), questions, strict=True)
        ],
    }


def _told_as_turns(story: Story, room: Memory, clock: Clock) -> tuple[dict[Key, str], Ask]:
    texts: dict[Key, str] = {}
    for session in story["sessions"]:
        turns = list(story_turns(session, timedelta(minutes=1)))
        room.conversations.extend(session["id"], turns)
        texts |= {(session["id"], at): turn.text for at, turn in enumerate(turns)}
    return texts, _asking_turns(room, clock, None, repeated=True)


def _told_as_facts(story: Story, room: Memory, clock: Clock) -> tuple[dict[Key, str], Ask]:
    keys: dict[str, set[Key]] = defaultdict(set)
    texts: dict[Key, str] = {("", at): fact["text"] for at, fact in enumerate(story["facts"])}
    for at, fact in sorted(enumerate(story["facts"]), key=lambda pair: str(pair[1]["when"])):
        clock.now = datetime.fromisoformat(fact["when"])
        keys[room.remember(fact["text"], type=fact["type"]).id].add(("", at))

    def ask(question: Question) -> list[frozenset[Key]]:
        clock.now = question.now
        return [
            frozenset(key for record in (hit.id, *hit.same_as) for key in keys.get(record, ()))
            for hit in room.recall(question.text, top_k=DEPTH, min_confidence=0.0)
        ]

    return texts, ask


def _answers(asked: Mapping[str, Any], texts: Mapping[Key, str], lane: str) -> frozenset[Key]:
    """The evidence where the set names it, else the texts that hold a string of the answer."""
    if "evidence" not in asked:
        return frozenset(key for key, text in texts.items() if holds_any(text, asked["answer"]))
    if lane == "turns":
        return frozenset((str(session), int(at)) for session, at in asked["evidence"])
    return frozenset(("", int(at)) for at in asked["facts"])


def _asking_turns(room: Memory, clock: Clock, name: str | None, *, repeated: bool) -> Ask:
    """Asks recall of turns; with `repeated` a hit stands for every turn that says the same."""

    def ask(question: Question) -> list[frozenset[Key]]:
        clock.now = question.now
        hits = room.recall_conversation(
            name, question.text, top_k=DEPTH, budget=_NO_BUDGET, min_confidence=0.0
        )
        return [_keys(hit, repeated) for hit in hits]

    return ask


def _keys(hit: TurnHit, repeated: bool) -> frozenset[Key]:
    again = hit.occurrences if repeated else ()
    keys = ((turn.conversation_id, turn.index) for turn in again)
    return frozenset(((hit.conversation_id, hit.index), *keys))
