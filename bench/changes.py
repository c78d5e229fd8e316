"""Does recall say what holds now? `python -m bench.changes --data DIR [--details FILE]`.

Stories in which facts change, are contradicted, repeated and asked about again (`DIR/changes`),
told once as chat turns and once as lasting facts; each way is a namespace of its own, asked through
the public API when the story is over. Per kind of question: how often the first hit that holds an
answer or an outdated value holds the answer ("right first"), how often the first hit of all and one
of the first three does, and how often nothing came at all. Written to bench/results/changes.json
and .md: the stories of `DIR` by halves, since weights are fitted on the first one, and those of
bench/stories, on which nothing is fitted.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

from anaphora import Memory
from anaphora.values import NewTurn
from bench.figures import machine_and_day, write
from bench.homes import load_reader, tell_once

KINDS: Final = (
    "current",
    "current-explicit",
    "past",
    "stable",
    "echo",
    "negation",
    "person",
    "number",
    "implicit",
)
ABSENT: Final = "absent"
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
    """What one question got: `right` is None where no hit holds an answer or an outdated value.

    `outdated` and `answers` are (how many hits hold one and no answer, how many say that they were
    replaced).
    """

    story: str
    part: str
    told: str
    kind: str
    question: str
    right: bool | None
    first: bool
    among: bool
    silent: bool
    outdated: tuple[int, int]
    answers: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: shares of `asked` questions of one kind, told one way."""

    told: str
    kind: str
    part: str
    asked: int
    right_first: float
    first_of_all: float
    among_first: float
    silent: float


def run(data: Path, details: Path | None = None) -> list[Row]:
    """Tell every story both ways, ask, keep the figures."""
    parts = read_stories(data)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="anaphora-changes-") as home:
        for part, stories in parts.items():
            for story in stories:
                outcomes += _asked(Path(home) / story["id"], part, story)
    rows = [
        row
        for part in parts
        for told in (CHATS, FACTS)
        for row in _rows(told, part, [o for o in outcomes if (o.part, o.told) == (part, told)])
    ]
    marks = [_mark(part, told, outcomes) for part in parts for told in (CHATS, FACTS)]
    if details is not None:
        details.write_text(json.dumps([asdict(one) for one in outcomes], indent=1), "utf-8")
    _keep(rows, parts, marks)
    return rows


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
                yield _outcome((story["id"], part, told), question, ask(question))


def story_turns(session: dict[str, Any]) -> Iterator[NewTurn]:
    """The turns of a session of a story, a second apart."""
    begun = _moment(session["when"])
    for place, turn in enumerate(session["turns"]):
        ts = begun + timedelta(seconds=place)
        yield NewTurn(turn["role"], turn["text"], ts=ts, speaker=turn.get("speaker"))


def _outcome(place: tuple[str, str, str], question: dict[str, Any], found: Found) -> Outcome:
    right = None
    texts = [text for text, _ in found]
    answers = [now for text, now in found if holds_any(text, question["answer"])]
    outdated = [
        now
        for text, now in found
        if holds_any(text, question["stale"]) and not holds_any(text, question["answer"])
    ]
    for text in texts:
        if holds_any(text, question["answer"]) or holds_any(text, question["stale"]):
            right = holds_any(text, question["answer"])
            break
    return Outcome(
        *place,
        question["kind"],
        question["q"],
        right,
        bool(texts) and holds_any(texts[0], question["answer"]),
        any(holds_any(text, question["answer"]) for text in texts[:FIRST]),
        not texts,
        (len(outdated), outdated.count(False)),
        (len(answers), answers.count(False)),
    )


def holds_any(text: str, strings: Iterable[str]) -> bool:
    """Whether `text` holds one of `strings`, whatever the case."""
    folded = text.casefold()
    return any(string.casefold() in folded for string in strings)


def _moment(written: str) -> datetime:
    return datetime.fromisoformat(written)


def _rows(told: str, part: str, outcomes: Sequence[Outcome]) -> Iterator[Row]:
    answerable = [one for one in outcomes if one.kind != ABSENT]
    groups = [(kind, [one for one in answerable if one.kind == kind]) for kind in KINDS]
    absent = [one for one in outcomes if one.kind == ABSENT]
    for kind, group in (*groups, ("all that can be answered", answerable), (ABSENT, absent)):
        yield Row(
            told,
            kind,
            part,
            len(group),
            sum(one.right is True for one in group) / len(group),
            sum(one.first for one in group) / len(group),
            sum(one.among for one in group) / len(group),
            sum(one.silent for one in group) / len(group),
        )


def _mark(part: str, told: str, outcomes: Sequence[Outcome]) -> str:
    """A line on what is marked as replaced, of the questions about the present."""
    asked = [
        o for o in outcomes if (o.part, o.told) == (part, told) and o.kind not in ("past", ABSENT)
    ]
    cells = [
        f"{sum(marked for _, marked in pairs)} of {sum(many for many, _ in pairs)}"
        for pairs in ([o.outdated for o in asked], [o.answers for o in asked])
    ]
    return f"| {part.partition(':')[0]} | {told} | {' | '.join(cells)} |"


def _keep(rows: Sequence[Row], parts: Mapping[str, Sequence[Story]], marks: Sequence[str]) -> None:
    lines = [
        "# What holds now",
        "",
        f"{machine_and_day()}.",
        "`python -m bench.changes`: stories in which facts change, told as chats "
        "(`recall_conversation`, ten turns) and as lasting facts without a path (`recall`, ten "
        "memories), asked when all is told. *Right first*: the first hit that holds the answer or "
        "an outdated value holds the answer, as a share of all questions of the kind. *First of "
        "all*: the first hit, whatever it is, holds the answer. *Among 3*: "
        "the answer is in one of the first three hits. *Silent*: no hit, which is right for "
        f"`{ABSENT}` alone.",
    ]
    for part, stories in parts.items():
        lines += ["", f"## {part.capitalize()} ({len(stories)} stories)", ""]
        lines += ["| told as | kind | questions | right first | first of all | among 3 | silent |"]
        lines += ["|---|---|---:|---:|---:|---:|---:|"]
        for row in (one for one in rows if one.part == part):
            shares = (row.right_first, row.first_of_all, row.among_first)
            shown = " | ".join("–" if row.kind == ABSENT else f"{one:.2f}" for one in shares)
            lines += [f"| {row.told} | {row.kind} | {row.asked} | {shown} | {row.silent:.2f} |"]
    lines += ["", "## What is marked as replaced", ""]
    lines += ["Of the hits for questions about the present (`current` is false):", ""]
    lines += ["| stories | told as | that hold an outdated value | that hold an answer |"]
    lines += ["|---|---|---:|---:|", *marks]
    write("changes", json.dumps({"rows": [asdict(row) for row in rows]}), "\n".join(lines))
    print("\n".join(lines))


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.changes", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    parser.add_argument("--details", type=Path, help="a file for the outcome of every question")
    given = parser.parse_args()
    run(given.data, given.details)


if __name__ == "__main__":
    main()
