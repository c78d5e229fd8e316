"""Measure the judges: `python -m tools.judge evaluate --run FOLDER`.

In: the trees of the run's `product` and, where it has them, the model and the stack; the stories
and groups of authors and hands that are held out, and everyday changes, pairs that both hold and
unrelated statements. Printed: average precision of "replaces" and how much is found at 90 %
precision; in homes of many stories how many links are right, and how many replacements are found,
at some thresholds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from bench.embedder import KeptEmbedder
from corpus.textbook import ROOT as TEXTBOOK
from corpus.textbook import Pair, Unrelated, read_rows
from tools.judge.folders import PRODUCT, RUN, read_stack, read_trees
from tools.judge.homes import (
    BOTH,
    HELD_OUT,
    OTHER,
    REPLACES,
    Labelled,
    embed,
    group_pairs,
    kept_vectors,
    nearest_earlier,
    read_homes,
)
from tools.judge.prepare import is_read, model_odds
from tools.judge.trees import feature_rows
from tools.reader.scores import average_precision, recall_at

from anaphora.ingest.judging import STACK_FILE
from anaphora.rank.pairs import (
    Statement,
    StatementPair,
    beside_rivals,
    can_replace,
    probabilities,
    statement_of,
    verdicts_of,
)
from anaphora.reading.model import MODEL_FILE

THRESHOLDS: Final = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_DAY: Final = 86_400.0
Chances: TypeAlias = Any
"""The probability of a replacement, (pairs,)."""


def main(words: list[str]) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tools.judge evaluate", description=__doc__)
    parser.add_argument("--run", type=Path, default=RUN, help="folder of the run")
    parser.add_argument("--vectors", type=Path, help="folder that keeps vectors")
    parser.add_argument(
        "--textbook",
        type=Path,
        nargs="*",
        default=sorted(TEXTBOOK.glob("*.jsonl")),
        metavar="FILE",
        help="JSON lines of everyday pairs, by default those of corpus/textbook",
    )
    chosen = parser.parse_args(words)
    vectors = kept_vectors(chosen.vectors)
    judged = partial(judge_all, chosen.run)
    homes = [home for home in read_homes((HELD_OUT,), vectors) if home]
    english = [home for home in homes if _is_english(home)]
    foreign = [home for home in homes if not _is_english(home)]
    for name, language_homes in (("English", english), ("other", foreign)):
        for lane in ("facts", "turns"):
            pairs = [pair for home in language_homes for pair in home if pair.lane == lane]
            print_home(f"held-out authors, {name}, {lane}", pairs, judged(pairs))
    groups = [pair for pair in group_pairs(vectors) if pair.part == HELD_OUT]
    print_groups(groups, judged(groups))
    if chosen.textbook:
        book = read_rows(chosen.textbook)
        for name, is_english in (("English", True), ("other", False)):
            kinds = textbook_pairs(
                [row for row in book if (row.language == "en") is is_english], vectors
            )
            if kinds["change"] and kinds["both"]:
                print_textbook(name, kinds, judged)


def judge_all(run: Path, pairs: Sequence[Labelled]) -> Mapping[str, Chances]:
    """The probability of a replacement by each judge; `mean` is that of trees and model.

    All but `beside rivals`, which are what links have, judge each pair alone.
    """
    rows = feature_rows(pairs)
    odds = read_trees(run).log_odds(rows)
    able = np.array([can_replace(pair.pair) for pair in pairs], bool)
    features = probabilities(odds)[:, REPLACES] * able
    judges = {
        "features": features,
    }
    if not (run / PRODUCT / MODEL_FILE).is_file():
        return judges
    doubts = [number for number, pair in enumerate(pairs) if is_read(pair, odds[number])]
    read = model_odds(run / PRODUCT, [pairs[number] for number in doubts])
    judges["model"] = np.zeros(len(pairs))
    judges["model"][doubts] = probabilities(read)[:, REPLACES]
    judges["mean"] = features.copy()
    judges["mean"][doubts] = _mean_chances(features[doubts], judges["model"][doubts])
    if (run / PRODUCT / STACK_FILE).is_file():
        stacked = read_stack(run).log_odds(rows[doubts], odds[doubts], read)
        judges["stacked"] = features.copy()
        judges["stacked"][doubts] = probabilities(stacked)[:, REPLACES]
        odds[doubts] = stacked
        judges["beside rivals"] = _chances_beside_rivals(pairs, odds)
    return judges


def _chances_beside_rivals(pairs: Sequence[Labelled], odds: Any) -> Chances:
    """The probabilities of links, as `ingest.links` makes them of log-odds, (pairs, classes)."""
    statements = [pair.pair for pair in pairs]
    ends = [(_name_of(one.older), _name_of(one.newer)) for one in statements]
    judged = zip(ends, verdicts_of(statements, odds), strict=True)
    beside = beside_rivals(dict(sorted(judged, key=lambda one: one[0][1])))
    return np.array([beside[pair_ends].replaces for pair_ends in ends])


def _name_of(statement: Statement) -> str:
    """One for each statement of a home; by it they stand in the order of time."""
    return f"{statement.at:020.3f} {statement.text}"


def _mean_chances(*chances: Chances) -> Chances:
    """The probability of the mean of log-odds."""
    odds = [np.log(share / (1 - share)) for share in np.clip(chances, 1e-6, 1 - 1e-6)]
    return 1 / (1 + np.exp(-np.mean(odds, axis=0)))


def _is_english(home: Sequence[Labelled]) -> bool:
    return sum(pair.pair.newer.reading.code == "en" for pair in home) * 2 > len(home)


# -- figures


def print_home(name: str, pairs: Sequence[Labelled], judged: Mapping[str, Chances]) -> None:
    """The links of a home of many stories; `found` is a share of all that are labelled."""
    right = np.array([pair.label == REPLACES for pair in pairs])
    near = np.array([pair.source == "stories" for pair in pairs])
    across = np.array([pair.across for pair in pairs])
    holding = np.array([pair.label == BOTH for pair in pairs])
    statements = len({pair.newer for pair in pairs})
    print(f"\n## {name}: {statements} later statements, {right.sum()} replaced")
    print("judge | AP within stories | AP | found at .9 | links/across/both/right/found at …")
    for judge, chances in judged.items():
        within = near & ~across
        cells = [
            f"{average_precision(chances[within], right[within]):.3f}",
            f"{average_precision(chances[near], right[near]):.3f}",
            f"{recall_at(chances[near], right[near], 0.9)[0]:.2f}",
        ]
        for threshold in THRESHOLDS:
            linked = near & (chances >= threshold)
            counts = [int((linked & kind).sum()) for kind in (linked, across, holding, right)]
            share, recall = counts[3] / max(1, counts[0]), counts[3] / right.sum()
            links = "/".join(map(str, counts[:3]))
            cells.append(f"{threshold}: {links}/{share:.2f}/{recall:.2f}")
        print(" | ".join((judge, *cells)))


def print_groups(pairs: Sequence[Labelled], judged: Mapping[str, Chances]) -> None:
    """What is found and wrongly found in the groups of held-out hands."""
    labels = np.array([pair.label for pair in pairs])
    within = np.array([not pair.across for pair in pairs])
    print(
        f"\n## groups of held-out hands: {within.sum()} pairs, and {(~within).sum()} of two groups"
    )
    print("judge | AP | found at .9 | replaces/both/repeats/other found, of two groups, at …")
    for judge, chances in judged.items():
        right = labels[within] == REPLACES
        cells = [
            f"{average_precision(chances[within], right):.3f}",
            f"{recall_at(chances[within], right, 0.9)[0]:.2f}",
        ]
        for threshold in (0.3, 0.5, 0.7):
            linked = chances >= threshold
            shares = [linked[within & (labels == label)].mean() for label in range(OTHER + 1)]
            links = "/".join(f"{share:.2f}" for share in shares)
            cells.append(f"{threshold}: {links}, {linked[~within].sum()}")
        print(" | ".join((judge, *cells)))


# -- the textbook set


def textbook_pairs(
    book: Sequence[Pair | Unrelated], vectors: KeptEmbedder
) -> dict[str, list[Labelled]]:
    """The pairs by kind, twenty days apart; each statement's nearest of others are unrelated."""
    kinds: dict[str, list[Labelled]] = {"change": [], "both": [], "unrelated": []}
    told = [(text, number) for number, row in enumerate(book) for text in row.texts]
    if not told:
        return kinds
    rows = embed([text for text, _ in told], vectors)
    statements = [statement_of(text, number % 997 * _DAY) for number, (text, _) in enumerate(told)]
    near = nearest_earlier(statements, rows)
    for new, (text, number) in enumerate(told):
        for old in {new - 1, *near[new]} if new else near[new]:
            older_text, older_number = told[old]
            row = book[number]
            is_pair = older_number == number
            kind, label = "unrelated", OTHER
            if is_pair and isinstance(row, Pair):
                kind, label = ("change", REPLACES) if row.changes else ("both", BOTH)
            pair = StatementPair(
                statement_of(older_text, 0.0),
                statement_of(text, 20 * _DAY),
                float(rows[old] @ rows[new]),
            )
            kinds[kind].append(
                Labelled(pair, label, HELD_OUT, "textbook", "", "facts", "", f"{new}")
            )
    return kinds


def print_textbook(
    name: str,
    book: Mapping[str, Sequence[Labelled]],
    judged: Callable[[Sequence[Labelled]], Mapping[str, Chances]],
) -> None:
    """The share of each kind that is linked, and how many links of what is unrelated."""
    judges = {kind: judged(pairs) for kind, pairs in book.items()}
    sizes = {kind: len(pairs) for kind, pairs in book.items()}
    print(f"\n## textbook, {name}: {sizes}")
    print("judge | AP of changes against both | among all | changes/both/unrelated links at …")
    for judge in judges["change"]:
        chances = np.concatenate([judges[kind][judge] for kind in sizes])
        right = np.repeat([kind == "change" for kind in sizes], list(sizes.values()))
        related = sizes["change"] + sizes["both"]
        cells = [
            f"{average_precision(chances[:related], right[:related]):.3f}",
            f"{average_precision(chances, right):.3f}",
        ]
        for threshold in THRESHOLDS:
            linked = [(judges[kind][judge] >= threshold) for kind in sizes]
            shares = f"{linked[0].mean():.2f}/{linked[1].mean():.3f}/{linked[2].sum()}"
            cells.append(f"{threshold}: {shares}")
        print(" | ".join((judge, *cells)))
