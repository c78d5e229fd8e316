"""Measure readers: `python -m tools.reader evaluate RUN_OR_ONNX … --data FOLDER`.

A reader is a run's folder (its `float/` is taken), a folder that `build` wrote or an ONNX file. The
first statements by the embedder's cosine are put in the order of the reader's log-odds of
answering, alone and added to the cosine by each weight; the others stay behind them. Out: tables,
and all of it in `measured.json` of the run. Every set is one that `prepare` never reads.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from bench.embedder import KeptEmbedder
from tools.models.evaluate import markdown
from tools.models.negatives import nearest_part
from tools.models.prepare import CORPUS
from tools.models.stories import raw_stories
from tools.reader.examples import CHANGE_CLASSES, ChangeExample
from tools.reader.measured import JudgedSet, held_out_authors, judged_sets
from tools.reader.pairs import story_pairs
from tools.reader.reading import OnnxReader, model_of
from tools.reader.scores import (
    average_precision,
    order_of,
    recall_at,
    reliability,
    silent_share,
    told_apart,
)
from tools.reader.statements import cut_statement

from anaphora.embed.minilm import MiniLM
from anaphora.reading.model import log_odds, probability

PRECISION = 0.9
WINDOW = 32
"""So many of the nearest statements are read."""
_BY = " by "
_ORDERS = {
    **{name: f"{{{name}}}" for name in ("set", "lane", "order", "questions")},
    "first": "{first:.3f}",
    "first 3": "{three:.3f}",
    "first 10": "{ten:.3f}",
    "MRR": "{mrr:.3f}",
    "never said": "{never_said}",
    "AUC": "{auc:.3f}",
    "silent at 3 % lost": "{silent:.3f}",
}
_PAIRS = {
    "pairs": "{source}",
    "question": "{way}",
    "count": "{pairs}",
    **{str(name): f"{{accuracy[{name}]:.3f}}" for name in CHANGE_CLASSES},
    "all": "{all:.3f}",
    "AP of replaces": "{ap:.3f}",
    f"found at precision {PRECISION:g}": "{recall_at_precision:.3f}",
    "threshold": "{threshold}",
}
_DECILES = {
    "up to": "{upto:.1f}",
    "judged": "{count}",
    "said": "{said:.3f}",
    "right": "{right:.3f}",
}


@dataclass(slots=True)
class Judgements:
    """What was judged of one set in one lane, question by question.

    `places` are those of the best answer by each order, `asked` the highest score of each question
    with an answer and `silent` of each without, by what scored it.
    """

    places: dict[str, list[int]] = field(default_factory=dict)
    asked: dict[str, list[float]] = field(default_factory=dict)
    silent: dict[str, list[float]] = field(default_factory=dict)
    probabilities: list[float] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)


def main(words: list[str]) -> None:
    """Measure, print and write."""
    chosen = _arguments().parse_args(words)
    embedder = MiniLM()
    for place in chosen.readers:
        reader = OnnxReader(place)
        found: dict[str, Any] = {"reader": reader.name, "embedder": embedder.name, "rows": []}
        judged: dict[tuple[str, str], Judgements] = {}
        vectors = KeptEmbedder(embedder)
        for one in judged_sets(chosen.data, chosen.corpus, dated=chosen.dated):
            began = time.perf_counter()
            own = judge_set(one, reader, vectors, chosen)
            judged.update(own)
            print(f"{reader.name}: {one.name}, {time.perf_counter() - began:.0f} s", flush=True)
        for (name, lane), own_lane in judged.items():
            found["rows"] += answer_rows(name, lane, own_lane)
        whole = [own for (name, _), own in judged.items() if _BY not in name]
        found["pairs"], of_changes = change_rows(reader, _pairs(chosen, vectors))
        found["calibration"] = {"answers": _calibration(whole), **of_changes}
        out = model_of(place).parent / "measured.json"
        out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        print(f"\n{reader.name}\n{tables(found)}\n{out}")


def judge_set(
    one: JudgedSet, reader: OnnxReader, vectors: KeptEmbedder, chosen: argparse.Namespace
) -> dict[tuple[str, str], Judgements]:
    """The judgements of a set, by name and lane; also by author where there are some."""
    found: dict[tuple[str, str], Judgements] = {}
    count = 0
    for pool in one.read():
        parts = vectors.embed(pool.words)
        names = [one.name, *([f"{one.name}{_BY}{pool.author}"] if pool.author else [])]
        noted = [found.setdefault((name, pool.lane), Judgements()) for name in names]
        for question in pool.asked:
            if chosen.limit and count == chosen.limit:
                return found
            count += 1
            cosines = nearest_part(vectors.embed_query(question.query), parts)
            order = np.argsort(-cosines, kind="stable")
            window = order[:WINDOW]
            told = [cut_statement(question.query, pool.told[at]) for at in window]
            odds = log_odds(reader.answers(question.query, told))
            scores = {"cosine": cosines[window].astype(float), "reader": odds}
            for weight in chosen.weight:
                scores[f"cosine + {weight:g}"] = cosines[window] + weight * odds
            for own in noted:
                _note(own, scores, window.tolist(), order.tolist(), question.answers)
                own.probabilities += probability(odds).tolist()
                own.right += [at in question.answers for at in window.tolist()]
    return found


def _note(
    own: Judgements,
    scores: Mapping[str, np.ndarray],
    window: Sequence[int],
    order: Sequence[int],
    answers: frozenset[int],
) -> None:
    rest = order[len(window) :]
    for name, of_window in scores.items():
        best = own.asked if answers else own.silent
        best.setdefault(name, []).append(float(of_window.max()))
        if not answers:
            continue
        ranked = [window[at] for at in np.argsort(-of_window, kind="stable").tolist()] + list(rest)
        place = next(place for place, at in enumerate(ranked, 1) if at in answers)
        own.places.setdefault(name, []).append(place)


def answer_rows(name: str, lane: str, own: Judgements) -> list[dict[str, Any]]:
    """A row for each way to order a set's lane."""
    rows = []
    for order, places in own.places.items():
        asked = np.array(own.asked[order])
        silent = np.array(own.silent.get(order, []))
        rows.append(
            {
                "set": name,
                "lane": lane,
                "order": order,
                "questions": len(places),
                **asdict(order_of(places)),
                "never_said": len(silent),
                "auc": told_apart(asked, silent),
                "silent": silent_share(asked, silent),
            }
        )
    return rows


def change_rows(
    reader: OnnxReader, pairs: Sequence[ChangeExample]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """By source, with a question (the first of each pair) and without; and the calibration."""
    rows = []
    calibration: dict[str, Any] = {}
    for source in dict.fromkeys(pair.source for pair in pairs):
        own = [pair for pair in pairs if pair.source == source]
        labels = np.array([CHANGE_CLASSES.index(pair.verdict) for pair in own])
        for way in ("asked", "not asked"):
            asked = way == "asked"
            texts = [
                (pair.questions[0] if asked and pair.questions else "", pair.older, pair.newer)
                for pair in own
            ]
            logits = reader.changes(texts)
            said, replaces = logits.argmax(axis=1), labels == 0
            scores = probability(log_odds(logits))
            recall, threshold = recall_at(scores, replaces, PRECISION)
            rows.append(
                {
                    "source": source,
                    "way": way,
                    "pairs": len(own),
                    "accuracy": {
                        name: _share(said[labels == at] == at)
                        for at, name in enumerate(CHANGE_CLASSES)
                    },
                    "all": _share(said == labels),
                    "ap": average_precision(scores, replaces),
                    "recall_at_precision": recall,
                    "threshold": None if threshold == float("inf") else threshold,
                }
            )
            deciles, error = reliability(scores, replaces)
            calibration[f"changes of {source}, {way}"] = {
                "error": error,
                "deciles": [asdict(one) for one in deciles],
            }
    return rows, calibration


def tables(measured: Mapping[str, Any]) -> str:
    """The rows as tables in Markdown."""
    parts = [markdown(_ORDERS, measured["rows"]), markdown(_PAIRS, measured["pairs"])]
    for name, own in measured["calibration"].items():
        parts.append(f"calibration of {name}: error {own['error']:.3f}")
        parts.append(markdown(_DECILES, own["deciles"]))
    return "\n\n".join(parts)


def _calibration(lanes: Sequence[Judgements]) -> dict[str, Any]:
    probabilities = np.array([p for own in lanes for p in own.probabilities])
    right = np.array([r for own in lanes for r in own.right], bool)
    deciles, error = reliability(probabilities, right)
    return {"error": error, "deciles": [asdict(one) for one in deciles]}


def _pairs(chosen: argparse.Namespace, vectors: KeptEmbedder) -> list[ChangeExample]:
    pairs: list[ChangeExample] = []
    for author, story in raw_stories(chosen.corpus, held_out_authors(chosen.corpus)):
        pairs += story_pairs(story, "corpus", author, vectors, dated=chosen.dated)
        if chosen.limit and len(pairs) >= chosen.limit:
            break
    return pairs[: chosen.limit] if chosen.limit else pairs


def _share(right: np.ndarray) -> float:
    return float(right.mean()) if len(right) else float("nan")


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.reader evaluate", description=__doc__)
    add = parser.add_argument
    add("readers", type=Path, nargs="+", help="runs, folders that `build` wrote, ONNX files")
    add("--data", type=Path, help="folder of the public sets, by default none")
    add("--corpus", type=Path, default=CORPUS, help="folder of the corpus")
    add("--weight", type=float, nargs="*", default=[0.02], help="of the log-odds in the sum")
    add("--dated", action="store_true", help="as in `prepare`")
    add("--limit", type=int, default=0, help="questions a set at most, to try it")
    return parser
