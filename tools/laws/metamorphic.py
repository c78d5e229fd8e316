"""Homes out of stories and chats, with sentences of other sets: truth from labels alone.

The repository's own stories (`bench/stories`) are always there; those of `../shared/data`, and its
real chats, are used where they lie beside the checkout.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

from tools.laws.evidence import CUES, words_of
from tools.laws.facts import read_facts
from tools.laws.homes import BEGIN, NOW, Home, Lane, Question, Size, Statement

ROOT: Final = Path(__file__).resolve().parents[2]
SHARED: Final = ROOT.parent / "shared" / "data"
OWN: Final = ROOT / "bench" / "stories"


@dataclass(frozen=True, slots=True)
class Source:
    """A story or chat: what was said, lane by lane, and questions about it."""

    name: str
    turns: tuple[Statement, ...]
    facts: tuple[Statement, ...]
    questions: tuple[str, ...]


def metamorphic_home(number: int, random: Random, size: Size) -> Home:
    """A part of one story or chat, a few questions, and spare sentences of others."""
    sources = read_sources(size.shared and SHARED.is_dir())
    source = random.choice(sources)
    by_turns = not source.facts or random.random() < 0.5
    lane: Lane = "turns" if by_turns else "memories"
    statements = source.turns if by_turns else source.facts
    begin = random.randrange(max(1, len(statements) - size.story + 1))
    questions = random.sample(source.questions, min(6, len(source.questions)))
    return Home(
        f"{source.name}-{number}",
        "metamorphic",
        _retimed(statements[begin : begin + size.story]),
        tuple(Question(q, "", "unknown", bool(words_of(q) & CUES)) for q in questions),
        labelled=False,
        lanes=(lane,),
        spare=_spares(random, sources, source, size.spare),
    )


def _retimed(part: Sequence[Statement]) -> tuple[Statement, ...]:
    """The same distances, but so that the last one was told shortly before now."""
    ahead = NOW - timedelta(days=2) - max(statement.at for statement in part)
    return tuple(replace(statement, at=statement.at + ahead) for statement in part)


def _spares(
    random: Random, sources: Sequence[Source], source: Source, most: int
) -> tuple[Statement, ...]:
    texts = [fact.text for fact in read_facts()]
    others = [other for other in sources if other.name != source.name]
    for other in random.sample(others, min(3, len(others))):
        texts += [statement.text for statement in other.facts or other.turns[:30]]
    own = {statement.text for statement in (*source.facts, *source.turns)}
    chosen = [text for text in dict.fromkeys(random.sample(texts, len(texts))) if text not in own]
    early = BEGIN - timedelta(days=900)
    return tuple(
        Statement(text, early + timedelta(days=n), f"spare-{n}", act="foreign")
        for n, text in enumerate(chosen[:most])
    )


@cache
def read_sources(shared: bool) -> tuple[Source, ...]:
    """All stories and chats that may be used."""
    sources = [_story(story) for story in _json(OWN / "own.json")]
    for file in sorted((OWN / "languages").glob("*.json")):
        told = _json(file)
        sources += [_lines(f"{file.stem}-{n}", story) for n, story in enumerate(told["stories"])]
    if shared:
        for place in (SHARED / "stories" / "stories.json", SHARED / "changes" / "dev.json"):
            if place.exists():
                sources += [_story(story) for story in _json(place)]
        sources += [
            _chat(file) for file in sorted((SHARED / "conversations/realtalk").glob("*.json"))
        ]
    return tuple(sources)


def _json(file: Path) -> Any:
    return json.loads(file.read_text("utf-8"))


def _story(story: dict[str, Any]) -> Source:
    turns = tuple(
        Statement(
            turn["text"],
            datetime.fromisoformat(session["when"]) + timedelta(minutes=n),
            speaker=turn.get("speaker") or turn["role"],
            conversation=session["id"],
        )
        for session in story["sessions"]
        for n, turn in enumerate(session["turns"])
    )
    facts = tuple(
        Statement(fact["text"], datetime.fromisoformat(fact["when"]) + timedelta(seconds=n))
        for n, fact in enumerate(story["facts"])
    )
    return Source(story["id"], turns, facts, tuple(q["q"] for q in story["questions"]))


def _lines(name: str, story: dict[str, Any]) -> Source:
    """A story whose turns are lines "speaker: text"."""
    turns = []
    for number, session in enumerate(story["sessions"]):
        for at, line in enumerate(session["turns"]):
            speaker, _, text = line.partition(": ")
            when = datetime.fromisoformat(session["when"]) + timedelta(minutes=at)
            turns.append(Statement(text, when, speaker=speaker, conversation=f"s{number}"))
    return Source(name, tuple(turns), (), tuple(question[0] for question in story["questions"]))


def _chat(file: Path) -> Source:
    """A chat of real people."""
    chat, turns = _json(file), []
    for name in sorted((n for n in chat if re.fullmatch(r"session_\d+", n)), key=_number):
        when = BEGIN + timedelta(days=_number(name))
        turns += [
            Statement(
                turn["clean_text"],
                when + timedelta(minutes=at),
                speaker=turn["speaker"],
                conversation=name,
            )
            for at, turn in enumerate(chat[name])
            if turn.get("clean_text", "").strip()
        ]
    questions = tuple(question["question"] for question in chat["qa"])
    return Source(file.stem, tuple(turns), (), questions)


def _number(name: str) -> int:
    return int(name.rsplit("_", 1)[1])
