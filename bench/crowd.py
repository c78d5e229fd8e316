"""One home of 100,000 statements, asked questions that a few of them answer.

Stories of the corpus, stories of changes and (as turns) the chats of REALTALK, among sentences of
articles, scenarios and other chats. Questions of the corpus are asked in other words than the
answer's, those of changes and of REALTALK name things as the answers do. A fifth of the stories is
left out: their questions are asked of others.
"""

from __future__ import annotations

import json
import lzma
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from corpus.reading import Story, read_split, read_stories

from anaphora import Memory, NewMemory, NewTurn
from anaphora.rank.silence import LANES, Lane
from bench.changes import ABSENT, FITTED, holds_any, story_turns
from bench.changes import read_stories as read_changes
from bench.datasets import haystacks
from bench.homes import home_of, load_reader, tell_once
from bench.silence import ANSWERED, NEVER_SAID, OF_OTHERS, READ_FITTED, Asked, watched
from bench.told import Clock, find_hits, session_turns, spread_questions, turn_texts

__all__ = ["LARGE", "NAMED", "REWORDED", "ask_crowd", "read_statements"]

LARGE: Final = 100_000
NAMED: Final = "by name"
REWORDED: Final = "in other words"
LEFT_OUT: Final = 5
"""One story of so many is left out of the home."""
EVERY: Final = 2
"""Of a story's questions, one in so many is asked."""
CHATS, FILLING = "realtalk", "beam"
FITTED_CHATS: Final = 5
NOW: Final = datetime(2026, 11, 25, tzinfo=UTC)
A_MINUTE: Final = timedelta(minutes=1)
OF_CONVERSATION: Final = 100
SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")
LEAST_WORDS: Final = 4
"""A shorter sentence says too little to be a statement."""
SEED: Final = 11


Right: TypeAlias = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Probe:
    """One question: in which manner (`NAMED`, `REWORDED`), of which kind, by which author, whether
    weights may be fitted on it, when it is asked, and what answers it."""

    text: str
    manner: str
    kind: str
    author: str
    fitted: bool
    now: datetime
    right: Right


def ask_crowd(data: Path, homes: Path | None = None, read: int = 0) -> Iterator[Asked]:
    """The questions of both lanes; a reader reads the first `read` hits of each.

    With a reader nothing is asked that it was trained on. With `homes` the homes are kept there:
    each takes minutes to fill.
    """
    for lane in LANES:
        clock = Clock(NOW)
        with home_of(homes, f"crowd-{lane}") as home, Memory.open(home, clock=clock) as memory:
            tell_once(home, partial(_fill, memory, clock, lane, data))
            load_reader(memory, read)
            probes = [*_reworded(lane, read > 0), *_named_by_stories(lane, data, read > 0)]
            if lane == "turns":
                probes += _named_by_chats(data)
            for probe in probes:
                clock.now = probe.now
                with watched() as seen_of:
                    hits = find_hits(memory, lane, probe.text, read)
                    seen = seen_of((hit.text for hit in hits), probe.right)
                where = f"{LARGE:,} statements, {lane}, {probe.manner}"
                yield Asked(where, lane, probe.kind, probe.fitted, probe.author, seen)


def _parted() -> tuple[list[Story], list[Story]]:
    """The English stories of the corpus: those of the home, and those left out of it."""
    stories = [story for story in read_stories() if story.lang == "en"]
    left_out = stories[LEFT_OUT - 1 :: LEFT_OUT]
    return [story for story in stories if story not in left_out], left_out


def _reworded(lane: Lane, reading: bool) -> Iterator[Probe]:
    split = read_split()
    fitted = split.held_out[:READ_FITTED] if reading else split.train
    present, left_out = _parted()
    for story in (*present, *left_out):
        if reading and story.author in split.train:
            continue
        texts = story.texts(lane)
        for question in story.questions[::EVERY]:
            right = {texts[key] for key in question.answers(lane)}
            kind = ANSWERED if right else NEVER_SAID
            if story in left_out:
                kind, right = OF_OTHERS, set()
            yield Probe(
                question.text,
                REWORDED,
                kind,
                story.author,
                story.author in fitted,
                question.now,
                right.__contains__,
            )


def _named_by_stories(lane: Lane, data: Path, reading: bool) -> Iterator[Probe]:
    for part, stories in read_changes(data).items():
        if reading and part == FITTED:
            continue
        for story in stories:
            texts = list(_texts_of(story, lane))
            for question in story["questions"]:
                absent = question["kind"] == ABSENT
                strings = () if absent else tuple(question["answer"])
                right = {text for text in texts if holds_any(text, strings)}
                yield Probe(
                    question["q"],
                    NAMED,
                    NEVER_SAID if absent else ANSWERED,
                    "changes",
                    part == FITTED,
                    datetime.fromisoformat(question["now"]).astimezone(UTC),
                    right.__contains__,
                )


def _named_by_chats(data: Path) -> Iterator[Probe]:
    for _, chat in haystacks(data, CHATS):
        texts = turn_texts(chat)
        now = max(turn.ts for part in chat.conversations for turn in part.turns if turn.ts)
        for question in spread_questions(chat):
            right = {texts[key] for key in question.evidence if key in texts}
            yield Probe(
                question.text,
                NAMED,
                ANSWERED,
                f"{CHATS} {chat.number}",
                chat.number <= FITTED_CHATS,
                now,
                right.__contains__,
            )


def _texts_of(story: dict[str, Any], lane: Lane) -> Iterator[str]:
    if lane == "facts":
        yield from (fact["text"] for fact in story["facts"])
    else:
        yield from (turn["text"] for session in story["sessions"] for turn in session["turns"])


def _fill(memory: Memory, clock: Clock, lane: Lane, data: Path) -> None:
    tell = _tell_facts if lane == "facts" else _tell_turns
    number = LARGE - tell(memory, data)
    begun = NOW - number * A_MINUTE
    # As facts, the chats' sentences fill, too.
    statements = read_statements(data, number, FILLING if lane == "turns" else None)
    dated = [(text, begun + at * A_MINUTE) for at, text in enumerate(statements)]
    for at in range(0, len(dated), OF_CONVERSATION):
        group = dated[at : at + OF_CONVERSATION]
        if lane == "facts":
            memory.remember_many([NewMemory(text, created_at=when) for text, when in group])
        else:
            turns = [NewTurn("user", text, ts=when) for text, when in group]
            memory.conversations.extend(f"other {at}", turns)
    memory.ready(3600)


def _tell_facts(memory: Memory, data: Path) -> int:
    """Store the facts of all stories; their number."""
    facts = [
        NewMemory(fact.text, type=fact.type, created_at=fact.when)
        for story in _parted()[0]
        for fact in story.facts
    ]
    facts += [
        NewMemory(
            fact["text"],
            type=fact["type"],
            created_at=datetime.fromisoformat(fact["when"]).astimezone(UTC),
        )
        for stories in read_changes(data).values()
        for story in stories
        for fact in story["facts"]
    ]
    for at in range(0, len(facts), OF_CONVERSATION):
        memory.remember_many(facts[at : at + OF_CONVERSATION])
    return len(facts)


def _tell_turns(memory: Memory, data: Path) -> int:
    """Store the turns of all stories and chats; their number."""
    sessions: dict[str, list[NewTurn]] = {}
    for story in _parted()[0]:
        for session in story.sessions:
            sessions[f"{story.id} {session.id}"] = session_turns(session)
    for stories in read_changes(data).values():
        for changes in stories:
            for part in changes["sessions"]:
                sessions[f"{changes['id']} {part['id']}"] = list(story_turns(part))
    for _, chat in haystacks(data, CHATS):
        for conversation in chat.conversations:
            sessions[f"{chat.namespace} {conversation.conversation_id}"] = [
                NewTurn(turn.role, turn.text, ts=turn.ts, speaker=turn.speaker)
                for turn in conversation.turns
            ]
    for name, turns in sessions.items():
        memory.conversations.extend(name, turns)
    return sum(map(len, sessions.values()))


def read_statements(data: Path, number: int, chats: str | None = None) -> list[str]:
    """So many different sentences of articles, scenarios and chats, of one set or of all, mixed.

    Raises SystemExit where the data has fewer.
    """
    reading = data / "reading"
    texts = [
        *_strings(reading / "selqa_dev.json.xz", "candidates"),
        *_strings(reading / "selqa_test.json.xz", "candidates"),
        *_strings(reading / "memops.json.xz", "content"),
        *_strings(reading / "friendsqa_dev.json.xz", "utterance"),
        *(
            turn.text
            for _, chat in haystacks(data, chats)
            for conversation in chat.conversations
            for turn in conversation.turns
        ),
    ]
    sentences = list(
        dict.fromkeys(
            sentence.strip()
            for text in texts
            for sentence in SENTENCE.split(text)
            if len(sentence.split()) >= LEAST_WORDS
        )
    )
    if len(sentences) < number:
        raise SystemExit(f"only {len(sentences):,} of {number:,} statements in {data}")
    random.Random(SEED).shuffle(sentences)
    return sentences[:number]


def _strings(file: Path, key: str) -> Iterator[str]:
    """Every string, or list of strings, below `key` in a packed JSON file."""

    def walk(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for name, child in value.items():
                if name == key and isinstance(child, str):
                    yield child
                elif name == key and isinstance(child, list):
                    yield from (text for text in child if isinstance(text, str))
                else:
                    yield from walk(child)
        elif isinstance(value, list):
            for child in value:
                yield from walk(child)

    with lzma.open(file, "rt", encoding="utf-8") as packed:
        yield from walk(json.load(packed))
