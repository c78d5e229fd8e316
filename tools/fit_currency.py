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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias
from unittest import mock

import numpy as np
from bench.changes import ABSENT, FITTED, holds_any, read_stories, told_both_ways
from bench.datasets import Haystack, haystacks
from bench.fitting import fit_logistic
from numpy.typing import NDArray

from anaphora import Memory
from anaphora.rank.currency import (
    FEATURES,
    CurrencyOrder,
    Statements,
    comparable_pairs,
    date_echoes,
    order_by_currency,
    pair_features,
)
from anaphora.rank.currency_weights import CONSTANT
from anaphora.rank.statements import read_cues
from anaphora.recall import currency

TARGET: Final = Path(__file__).parents[1] / "src" / "anaphora" / "rank" / "currency_weights.py"
# Chats up to this number.
CHATS: Final = 5
# Pairs are taken from more candidates than recall compares: there are few stories.
FROM: Final = 14
# The strength of the ridge: a plateau from 1 to 30.
RIDGE: Final = 3.0
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


@dataclass(frozen=True, slots=True)
class BothPairs:
    """The pairs that the two regressions are fitted on."""

    before: Pairs
    replaces: Pairs


@contextmanager
def compared() -> Iterator[list[Statements]]:
    """The statements that recall compares from now on, question by question."""
    seen: list[Statements] = []

    def record(statements: Statements, *given: Any) -> CurrencyOrder:
        seen.append(statements)
        return order_by_currency(statements, *given)

    with (
        mock.patch.object(currency, "order_by_currency", record),
        mock.patch.object(currency, "WINDOW", FROM),
        mock.patch.object(currency, "READ", 2 * FROM),
    ):
        yield seen


def add_story(story: dict[str, Any], home: Path, pairs: BothPairs) -> None:
    """The pairs of one story, told as chats and as facts."""
    with compared() as seen, told_both_ways(home, story) as ways:
        for question in story["questions"]:
            for ask in ways.values():
                seen.clear()
                ask(question)
                if seen and question["kind"] != ABSENT:
                    _add_pairs(seen[-1], question, pairs)


# (older, newer), each 1 (answer), -1 (outdated) or 0 (neither): whether it is so, and what the pair
# counts. Which of two stands before is told by pairs of which one is right alone; what is neither
# counts half beside an answer.
_Rule: TypeAlias = Mapping[tuple[int, int], tuple[int, float]]
_BEFORE: Final[_Rule] = {(-1, 1): (1, 1.0), (1, -1): (0, 1.0), (1, 0): (0, 0.5)}
_BEFORE_IN_PAST: Final[_Rule] = {(1, -1): (1, 1.0), (-1, 1): (0, 0.5), (1, 0): (0, 0.5)}
_NO_CHANGE: Final[_Rule] = dict.fromkeys(((1, 0), (-1, 0), (0, 1), (0, -1), (0, 0)), (0, 1.0))
_REPLACES: Final[_Rule] = {**_NO_CHANGE, (-1, 1): (1, 1.0), (1, -1): (0, 1.0)}
_REPLACES_IN_PAST: Final[_Rule] = {**_NO_CHANGE, (1, -1): (1, 1.0)}


def _add_pairs(statements: Statements, question: dict[str, Any], pairs: BothPairs) -> None:
    labels = [
        1 if holds_any(text, question["answer"]) else -int(holds_any(text, question["stale"]))
        for text in statements.texts
    ]
    past = question["kind"] == "past"
    _add(statements, question["q"], labels, _BEFORE_IN_PAST if past else _BEFORE, pairs.before)
    rule = _REPLACES_IN_PAST if past else _REPLACES
    _add(statements, question["q"], labels, rule, pairs.replaces)


def _add(
    statements: Statements,
    question: str,
    labels: Sequence[int],
    rule: _Rule,
    pairs: Pairs,
) -> None:
    dated = replace(statements, at=date_echoes(statements))
    cues = read_cues(question)
    features = pair_features(dated, cues)
    # Only what recall compares: other pairs would teach what is known without weights.
    for older, newer in np.argwhere(comparable_pairs(dated, cues)).tolist():
        known = rule.get((labels[older], labels[newer]))
        if known is not None:
            pairs.add(features[older, newer], *known)


def add_chats(haystack: Haystack, home: Path, pairs: BothPairs) -> None:
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
                _add(seen[-1], question.text, labels, {(1, 0): (0, 0.5)}, pairs.before)
                _add(seen[-1], question.text, labels, {(1, 0): (0, 1.0)}, pairs.replaces)


def fit(pairs: Pairs) -> dict[str, float]:
    """A weight for each feature, and the constant."""
    weights, constant = fit_logistic(pairs.features, pairs.replaced, pairs.counts, RIDGE)
    return {CONSTANT: constant, **dict(zip(FEATURES, weights, strict=True))}


def write(pairs: BothPairs) -> None:
    """Write the module of weights."""
    lines = [
        '"""The weights of `rank/currency`, as `python -m tools.fit_currency` writes them."""',
        "",
        "from typing import Final",
        "",
        f'CONSTANT: Final = "{CONSTANT}"',
    ]
    for name, of, what in (
        ("BEFORE", pairs.before, "a newer one that is right and an older one that is not"),
        ("REPLACES", pairs.replaces, "one value that changed"),
    ):
        sure = sum(of.replaced)
        lines += ["", f"# Fitted on {len(of.replaced):,} pairs, of which {sure:,} are {what}."]
        lines += [f"{name}: Final = {{"]
        lines += [f'    "{feature}": {value:.4f},' for feature, value in fit(of).items()]
        lines += ["}"]
    TARGET.write_text("\n".join(lines) + "\n", "utf-8")


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.fit_currency", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("data", type=Path, help="the folder of shared data")
    parser.add_argument("stories", type=Path, nargs="*", help="more stories, all of them used")
    given = parser.parse_args()
    pairs = BothPairs(Pairs([], [], []), Pairs([], [], []))
    stories = read_stories(given.data)[FITTED]
    for more in given.stories:
        stories += json.loads(more.read_text("utf-8"))
    for story in stories:
        with tempfile.TemporaryDirectory() as home:
            add_story(story, Path(home), pairs)
    for _, chat in haystacks(given.data):
        if chat.number <= CHATS:
            with tempfile.TemporaryDirectory() as home:
                add_chats(chat, Path(home), pairs)
    write(pairs)
    print(TARGET)


if __name__ == "__main__":
    main()
