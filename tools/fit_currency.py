"""Fit the weights of `rank/currency`: `python -m tools.fit_currency DIR [STORIES …]`.

In: the folder of shared data (stories in which facts change, REALTALK, BEAM) and more files of
stories. Out: src/anaphora/rank/currency_weights.py. Every question is asked through the public API;
what is compared is what recall itself compares. Of the stories in `DIR` only every second one is
used, of REALTALK and BEAM only chats 1 to 5: what is reported is measured on the others.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from unittest import mock

import numpy as np
from bench.changes import ABSENT, holds_any, told_both_ways
from bench.conversations.run import parse_chats
from bench.datasets import Haystack, read_dataset
from bench.fitting import fit_logistic
from numpy.typing import NDArray

from anaphora import Memory
from anaphora.rank.currency import (
    FEATURES,
    CurrencyOrder,
    Statements,
    date_echoes,
    order_by_currency,
    pair_features,
    read_cues,
)
from anaphora.recall import currency

TARGET: Final = Path(__file__).parents[1] / "src" / "anaphora" / "rank" / "currency_weights.py"
CHATS: Final = (("realtalk", "realtalk"), ("beam", "beam-100k"))
FITTED: Final = "1-5"
# The strength of the ridge: a plateau from 1 to 30.
RIDGE: Final = 10.0
# What a pair counts that is only probably no change: evidence and something else that is newer.
PROBABLY: Final = 0.5

Rows = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Features of N pairs, whether the newer replaces the older, and what each counts."""

    features: list[Rows]
    replaced: list[int]
    counts: list[float]

    def add(self, features: Rows, replaced: int, counts: float) -> None:
        """One more pair."""
        self.features.append(features)
        self.replaced.append(replaced)
        self.counts.append(counts)


@contextmanager
def compared() -> Iterator[list[Statements]]:
    """The statements that recall compares from now on, question by question."""
    seen: list[Statements] = []

    def record(statements: Statements, *given: Any) -> CurrencyOrder:
        seen.append(statements)
        return order_by_currency(statements, *given)

    with mock.patch.object(currency, "order_by_currency", record):
        yield seen


def add_story(story: dict[str, Any], home: Path, pairs: Pairs) -> None:
    """The pairs of one story, told as chats and as facts."""
    with compared() as seen, told_both_ways(home, story) as ways:
        for question in story["questions"]:
            for ask in ways.values():
                seen.clear()
                ask(question)
                if seen and question["kind"] != ABSENT:
                    _add_pairs(seen[-1], question, pairs)


# (older, newer) is (1, answer), (-1, outdated) or (0, neither): (is it replaced?, what it counts).
_PRESENT: Final = {(-1, 1): (1, 1.0), (1, -1): (0, 1.0), (1, 0): (0, PROBABLY)}
_PAST: Final = {(1, -1): (1, 1.0), (-1, 1): (0, PROBABLY), (1, 0): (0, PROBABLY)}


def _add_pairs(statements: Statements, question: dict[str, Any], pairs: Pairs) -> None:
    labels = [
        1 if holds_any(text, question["answer"]) else -int(holds_any(text, question["stale"]))
        for text in statements.texts
    ]
    rule = _PAST if question["kind"] == "past" else _PRESENT
    _add(statements, question["q"], labels, rule, pairs)


def _add(
    statements: Statements,
    question: str,
    labels: Sequence[int],
    rule: dict[tuple[int, int], tuple[int, float]],
    pairs: Pairs,
) -> None:
    dated = replace(statements, at=date_echoes(statements))
    features = pair_features(dated, read_cues(question))
    with np.errstate(invalid="ignore"):
        later = dated.at[None, :] > dated.at[:, None]
    for older, newer in np.argwhere(later).tolist():
        known = rule.get((labels[older], labels[newer]))
        if known is not None:
            pairs.add(features[older, newer], *known)


def add_chats(haystack: Haystack, home: Path, pairs: Pairs) -> None:
    """The pairs of one chat: evidence of its questions, and what is newer and is none."""
    texts = {
        (one.conversation_id, turn.key): turn.text
        for one in haystack.conversations
        for turn in one.turns
    }
    times = [turn.ts for one in haystack.conversations for turn in one.turns if turn.ts]
    now = [max(times, default=datetime(2024, 1, 1, tzinfo=UTC))]
    with compared() as seen, Memory.open(home, clock=lambda: now[0]) as memory:
        memory.import_(haystack.conversations)
        memory.ready()
        latest = now[0]
        for question in haystack.questions:
            evidence = {texts[key] for key in question.evidence if key in texts}
            seen.clear()
            now[0] = question.now or latest
            memory.recall_conversation(question.conversation_id, question.text, top_k=20)
            if seen and evidence:
                labels = [int(text in evidence) for text in seen[-1].texts]
                _add(seen[-1], question.text, labels, {(1, 0): (0, PROBABLY)}, pairs)


def fit(pairs: Pairs) -> tuple[dict[str, float], float]:
    """A weight for each feature, and the constant."""
    weights, constant = fit_logistic(pairs.features, pairs.replaced, pairs.counts, RIDGE)
    return dict(zip(FEATURES, weights, strict=True)), constant


def write(weights: dict[str, float], constant: float, pairs: Pairs) -> None:
    """Write the module of weights."""
    lines = [
        '"""The weights of `rank/currency`, as `python -m tools.fit_currency` writes them.',
        "",
        f"Fitted on {len(pairs.replaced):,} pairs, of which {sum(pairs.replaced):,} are changes.",
        '"""',
        "",
        "from typing import Final",
        "",
        f"CONSTANT: Final = {constant:.4f}",
        "",
        "WEIGHTS: Final = {",
        *(f'    "{name}": {value:.4f},' for name, value in weights.items()),
        "}",
    ]
    TARGET.write_text("\n".join(lines) + "\n", "utf-8")


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.fit_currency", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("data", type=Path, help="the folder of shared data")
    parser.add_argument("stories", type=Path, nargs="*", help="more stories, all of them used")
    given = parser.parse_args()
    pairs = Pairs([], [], [])
    stories = json.loads((given.data / "changes" / "dev.json").read_text("utf-8"))[::2]
    for more in given.stories:
        stories += json.loads(more.read_text("utf-8"))
    for story in stories:
        with tempfile.TemporaryDirectory() as home:
            add_story(story, Path(home), pairs)
    for form, folder in CHATS:
        chosen = parse_chats(FITTED)
        for one in read_dataset(given.data / "conversations" / folder, form):
            if isinstance(one, Haystack) and chosen and one.number in chosen:
                with tempfile.TemporaryDirectory() as home:
                    add_chats(one, Path(home), pairs)
    write(*fit(pairs), pairs)
    print(f"{len(pairs.replaced)} pairs, {sum(pairs.replaced)} changes: {TARGET}")


if __name__ == "__main__":
    main()
