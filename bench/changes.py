"""Does recall say what holds now? `python -m bench.changes --data DIR`.

Stories in which facts change, are contradicted, repeated and asked about again (`DIR/changes`),
told once as chat turns and once as lasting facts; each way is a namespace of its own, asked through
the public API when the story is over. Per kind of question: how often the first hit that holds an
answer or an outdated value holds the answer ("right first"), how often the first hit of all and one
of the first three does, and how often nothing came at all. Written to bench/results/changes.json
and .md: the stories of `DIR` by halves, since weights are fitted on the first one, and those of
bench/stories, on which nothing is fitted.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

from anaphora import Memory, NewTurn
from bench.figures import Figure, keep, run_alone
from bench.homes import load_reader, tell_once

ABSENT: Final = "absent"
ALL: Final = "all that can be answered"
MANY, FIRST = 10, 3
# The parts of the report.
FITTED: Final = "first half: weights were fitted on it"
HELD_OUT: Final = "second half: held out"
OWN: Final = "stories of our own: held out"
STORIES: Final = Path(__file__).parent / "stories" / "own.json"
# The namespaces of a story.
CHATS, FACTS = "chats", "facts"


Story: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one question got: whether the first hit that holds an answer or an outdated value holds
    the answer, whether the first of all and one of the first three do, and whether none came."""

    part: str
    told: str
    kind: str
    shares: Mapping[str, bool]


def run(data: Path) -> list[Figure]:
    """Tell every story both ways, ask; print and keep the figures."""
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="anaphora-changes-") as home:
        for part, stories in read_stories(data).items():
            for story in stories:
                outcomes += _asked(Path(home) / story["id"], part, story)
    figures = list(_figures(outcomes))
    keep("changes", "What holds now", figures)
    return figures


def read_stories(data: Path) -> dict[str, list[Story]]:
    """The stories by their part: `FITTED`, `HELD_OUT` and `OWN`."""
    shared = json.loads((data / "changes" / "dev.json").read_text("utf-8"))
    own = json.loads(STORIES.read_text("utf-8"))
    return {HELD_OUT: shared[1::2], OWN: own, FITTED: shared[::2]}


Found: TypeAlias = list[tuple[str, bool]]
"""The text of each hit, best first, and whether it holds now as far as recall can tell."""

Ask: TypeAlias = Callable[[dict[str, Any]], Found]
"""A question as it stands in a story to what was found."""


@contextmanager
def told_both_ways(
    home: Path, story: dict[str, Any], read: int = 0, min_confidence: float | None = None
) -> Iterator[dict[str, Ask]]:
    """A story told as chats and as facts: for each, how to ask. A home is told but once.

    A reader reads the first `read` hits of each question; `min_confidence` is that of recall.
    """
    now = [datetime.now(UTC)]
    with (
        Memory.open(home, namespace=CHATS, clock=lambda: now[0]) as chats,
        Memory.open(home, namespace=FACTS, clock=lambda: now[0]) as facts,
    ):

        def tell() -> None:
            for session in story["sessions"]:
                chats.conversations.extend(session["id"], list(story_turns(session)))
            for fact in sorted(story["facts"], key=lambda one: str(one["when"])):
                now[0] = _moment(fact["when"])
                facts.remember(fact["text"], type=fact["type"])
            chats.ready()
            facts.ready()

        tell_once(home, tell)
        load_reader(chats, read)

        def of_chats(question: dict[str, Any]) -> Found:
            now[0] = _moment(question["now"])
            found = chats.recall_conversation(
                None,
                question["q"],
                top_k=MANY,
                budget=100_000,
                read=read,
                min_confidence=min_confidence,
            )
            return [(hit.text, hit.current) for hit in found]

        def of_facts(question: dict[str, Any]) -> Found:
            now[0] = _moment(question["now"])
            found = facts.recall(
                question["q"], top_k=MANY, read=read, min_confidence=min_confidence
            )
            return [(hit.text, hit.current) for hit in found]

        yield {CHATS: of_chats, FACTS: of_facts}


def _asked(home: Path, part: str, story: Story) -> Iterator[Outcome]:
    with told_both_ways(home, story) as ways:
        for question in story["questions"]:
            for told, ask in ways.items():
                texts = [text for text, _ in ask(question)]
                yield Outcome(part, told, question["kind"], _shares(question, texts))


def story_turns(
    session: dict[str, Any], apart: timedelta = timedelta(seconds=1)
) -> Iterator[NewTurn]:
    """The turns of a session of a story, so far apart."""
    begun = _moment(session["when"])
    for place, turn in enumerate(session["turns"]):
        ts = begun + place * apart
        yield NewTurn(turn["role"], turn["text"], ts=ts, speaker=turn.get("speaker"))


def _shares(question: Story, texts: Sequence[str]) -> dict[str, bool]:
    right = [holds_any(text, question["answer"]) for text in texts]
    telling = [own for own, text in zip(right, texts, strict=True)
               if own or holds_any(text, question["stale"])]  # fmt: skip
    return {
        "right first": any(telling[:1]),
        "first of all": any(right[:1]),
        f"among {FIRST}": any(right[:FIRST]),
        "silent": not texts,
    }


def holds_any(text: str, strings: Iterable[str]) -> bool:
    """Whether `text` holds one of `strings`, whatever the case."""
    folded = text.casefold()
    return any(string.casefold() in folded for string in strings)


def _moment(written: str) -> datetime:
    return datetime.fromisoformat(written)


def _figures(outcomes: Sequence[Outcome]) -> Iterator[Figure]:
    """The shares by part, way of telling and kind; then those of all that was held out."""
    groups: dict[str, list[Outcome]] = {}
    for one in outcomes:
        where = f"{one.part.partition(':')[0]}, {one.told}"
        kinds = (one.kind,) if one.kind == ABSENT else (one.kind, ALL)
        for kind in kinds:
            groups.setdefault(f"{where}, {kind}", []).append(one)
            if one.part != FITTED:
                groups.setdefault(f"held out, {one.told}, {kind}", []).append(one)
                groups.setdefault(f"held out, {kind}", []).append(one)
    for name, own in groups.items():
        yield Figure(f"{name}: questions", len(own))
        for share in own[0].shares:
            yield Figure(f"{name}: {share}", sum(one.shares[share] for one in own) / len(own))


if __name__ == "__main__":
    run_alone("bench.changes", __doc__, run)
