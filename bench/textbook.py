"""Is an everyday change known as one? `python -m bench.textbook [--only small] [--most 50]`.

Changes and pairs that both hold, by hands that nothing is trained on (`corpus/textbook`). Each pair
is told among forty unrelated statements, and all of them together in one home, as facts and as
turns; its question is asked through the public API, with the defaults. Per lane and home: how often
the newer of a change comes first of all and before the older one, how often the older one is
marked, and how often one of two that both hold is. Written to bench/results/textbook.json and .md.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from corpus.textbook import Pair, read_textbook

from anaphora import Memory, MemoryHit, NewTurn, Recall, TurnHit
from bench.figures import Figure, keep

__all__ = ["main"]

AROUND: Final = 40
"""Unrelated statements around a pair in a small home."""
FACTS, TURNS = "facts", "turns"
_BEGIN: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
_SEED: Final = 59


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the question of one pair got."""

    pair: Pair
    home: str
    lane: str
    first: bool
    before: bool
    marked: bool
    silent: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and keep the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.textbook", description=__doc__)
    parser.add_argument("--only", choices=("small", "large"), help="one kind of home")
    parser.add_argument("--most", type=int, help="so many pairs at most")
    parser.add_argument("--list", action="store_true", help="show what was missed")
    given = parser.parse_args(argv)
    pairs, unrelated = read_textbook()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="anaphora-textbook-") as folder:
        if given.only != "large":
            outcomes += _ask_small(Path(folder) / "small", pairs[: given.most], unrelated)
        if given.only != "small":
            outcomes += _ask_large(Path(folder) / "large", pairs, unrelated)
    if given.list:
        for outcome in outcomes:
            if (outcome.pair.changes and not outcome.first) or (
                not outcome.pair.changes and outcome.marked
            ):
                print(outcome.home, outcome.lane, outcome.pair, outcome)
    figures = list(_figures(outcomes))
    if given.only is None and given.most is None:
        keep("textbook", "Everyday changes", figures)
    else:
        for figure in figures:
            print(f"{figure.name}: {figure.value:.3f}")
    return 0


def _ask_small(home: Path, pairs: Sequence[Pair], unrelated: Sequence[str]) -> Iterator[Outcome]:
    dice = random.Random(_SEED)
    for number, pair in enumerate(pairs):
        around = dice.sample(unrelated, AROUND)
        for lane in (FACTS, TURNS):
            yield from _tell_and_ask(home / f"{number}-{lane}", "small", lane, [pair], around)


def _ask_large(home: Path, pairs: Sequence[Pair], unrelated: Sequence[str]) -> Iterator[Outcome]:
    for lane in (FACTS, TURNS):
        yield from _tell_and_ask(home / lane, "large", lane, pairs, unrelated)


def _tell_and_ask(
    home: Path, name: str, lane: str, pairs: Sequence[Pair], unrelated: Sequence[str]
) -> Iterator[Outcome]:
    """A home in which the older ones were told first, then what is unrelated, then the newer."""
    now = [_BEGIN]
    dice = random.Random(_SEED)
    half = len(unrelated) // 2
    parts = [
        [*(pair.older for pair in pairs), *unrelated[:half]],
        [*(pair.newer for pair in pairs), *unrelated[half:]],
    ]
    with Memory.open(home, clock=lambda: now[0]) as memory:
        for part, texts in enumerate(parts):
            dice.shuffle(texts)
            now[0] = _BEGIN + part * timedelta(days=30)
            if lane == FACTS:
                for text in texts:
                    now[0] += timedelta(minutes=7)
                    memory.remember(text)
            else:
                turns = [
                    NewTurn("user", text, ts=now[0] + at * timedelta(minutes=7))
                    for at, text in enumerate(texts)
                ]
                memory.conversations.extend(f"part-{part}", turns)
        now[0] += timedelta(days=20)
        memory.ready()
        for pair in pairs:
            yield _ask(memory, pair, name, lane)


def _ask(memory: Memory, pair: Pair, home: str, lane: str) -> Outcome:
    found: Recall[MemoryHit] | Recall[TurnHit]
    if lane == FACTS:
        found = memory.recall(pair.question, top_k=10)
    else:
        found = memory.recall_conversation(None, pair.question, top_k=10, budget=100_000)
    texts = [hit.text for hit in found]
    current = {hit.text: hit.current for hit in found}
    newer, older = (
        texts.index(text) if text in texts else len(texts) for text in (pair.newer, pair.older)
    )
    marked = not current.get(pair.older, True)
    if not pair.changes:
        marked = marked or not current.get(pair.newer, True)
    return Outcome(pair, home, lane, newer == 0 and bool(texts), newer < older, marked, not texts)


def _figures(outcomes: Sequence[Outcome]) -> Iterator[Figure]:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        english = "English" if outcome.pair.language == "en" else "other languages"
        groups[f"{outcome.home} homes, {outcome.lane}, {english}"].append(outcome)
    for name, own in groups.items():
        changes = [outcome for outcome in own if outcome.pair.changes]
        both = [outcome for outcome in own if not outcome.pair.changes]
        yield Figure(f"{name}: changes", len(changes))
        for share in ("first", "before", "marked", "silent"):
            value = sum(getattr(outcome, share) for outcome in changes) / max(1, len(changes))
            yield Figure(f"{name}: {_NAMES[share]}", value)
        wrong = sum(outcome.marked for outcome in both) / max(1, len(both))
        yield Figure(f"{name}: pairs that both hold", len(both))
        yield Figure(f"{name}: one of two that both hold marked", wrong)
        # The older one is what is asked for.
        right = sum(not outcome.before and not outcome.silent for outcome in both) / max(
            1, len(both)
        )
        yield Figure(f"{name}: of two that both hold the one asked for before the other", right)


_NAMES: Final = {
    "first": "newer first of all",
    "before": "newer before the older",
    "marked": "older marked",
    "silent": "nothing came",
}

if __name__ == "__main__":
    raise SystemExit(main())
