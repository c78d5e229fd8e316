"""Puts every question of the sets to the engine and to its parts.

In: the folder of shared data, which sets and lanes. Out: `Outcome`, one a question: its kind and
the figures of every method; with a file, a JSON line a question to read by eye.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from anaphora import Memory
from anaphora.values.conversations import RecallMode
from bench.parts.lost import DEPTHS, Lost, causes
from bench.parts.plain import Bm25, cosines, ranked
from bench.parts.sets import Clock, Hit, Key, Lane, Question, Ranking, Scope, scopes
from bench.parts.vectors import CachedEmbedder
from bench.parts.verdicts import Rarity, figures_of

__all__ = ["BM25", "COSINE", "HYBRID", "METHODS", "Outcome", "ask_sets"]

BM25, COSINE, HYBRID = "BM25", "cosine", "hybrid"
MODES: Final[tuple[RecallMode, ...]] = ("hybrid", "words", "vector")
METHODS: Final = (BM25, COSINE, "words", "vector", HYBRID)
"""The plain parts, the engine's two modes of one part, and all that it does by default."""

FIRST_TEN: Final = 10
DEEP: Final = 100
"""Hits asked for where the places of all answers are written down."""
_SHOWN: Final = 400


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one question got. `figures` has those of each method; `silent`: the default call of the
    engine gave nothing, for want of confidence, and `figures` are of what it held back."""

    set: str
    lane: Lane
    kind: str
    category: str
    silent: bool
    figures: Mapping[str, tuple[float, ...]]
    lost: tuple[Lost, ...] = ()


def ask_sets(
    data: Path,
    chosen: Sequence[tuple[str, Lane]],
    *,
    cache: Path | None = None,
    limit: int | None = None,
    details: IO[str] | None = None,
) -> Iterator[Outcome]:
    """Ask all questions of each (set, lane), or the first `limit` of each."""
    embedder, clock = CachedEmbedder(cache), Clock()
    with (
        tempfile.TemporaryDirectory(prefix="anaphora-parts-") as home,
        Memory.open(Path(home), embedder=embedder, clock=clock) as memory,
    ):
        for name, lane in chosen:
            bodies = list(scopes(data, name, lane, memory, clock))
            rarity = Rarity(text for scope in bodies for text in scope.texts.values())
            left = limit
            for scope in bodies:
                questions = scope.questions if left is None else scope.questions[:left]
                left = None if left is None else left - len(questions)
                yield from _ask_scope(scope, questions, rarity, embedder, details)
    embedder.close()


def _ask_scope(
    scope: Scope,
    questions: Sequence[Question],
    rarity: Rarity,
    embedder: CachedEmbedder,
    details: IO[str] | None,
) -> Iterator[Outcome]:
    if not questions:
        return
    keys, texts = list(scope.texts), list(scope.texts.values())
    words, parts = Bm25(texts), embedder.embed(texts)
    for question in questions:
        plain = {
            BM25: words.scores(question.text),
            COSINE: cosines(parts, embedder.embed_query(question.text)),
        }
        hits = {
            name: [
                Hit(frozenset((keys[at],)), texts[at], float(scores[at]), {})
                for at in ranked(scores, 0.0 if name == BM25 else -1.0)
            ]
            for name, scores in plain.items()
        }
        engine = {mode: scope.ask(question, mode, FIRST_TEN) for mode in MODES}
        hits |= {str(mode): list(engine[mode].hits) for mode in MODES}
        kind = rarity.kind(question.text, [scope.texts[key] for key in sorted(question.answers)])
        outcome = Outcome(
            scope.set,
            scope.lane,
            kind,
            question.category,
            engine["hybrid"].silent,
            {name: figures_of(_places(hits[name]), question.answers) for name in METHODS},
            tuple(_lost(scope, question, hits)),
        )
        yield outcome
        if details is not None:
            hits |= {str(mode): list(scope.ask(question, mode, DEEP).hits) for mode in MODES}
            line = _described(scope, question, outcome, engine["hybrid"])
            line["shared"] = sorted(rarity.shared(question.text, (t for _, t in line["answers"])))
            line["methods"] = {name: _ranked_hits(hits[name], question) for name in METHODS}
            details.write(json.dumps(line) + "\n")


def _places(hits: Sequence[Hit]) -> list[frozenset[Key]]:
    return [hit.keys for hit in hits]


def _lost(scope: Scope, question: Question, hits: Mapping[str, Sequence[Hit]]) -> Iterator[Lost]:
    def reached(method: str, depth: int) -> bool:
        return any(hit.keys & question.answers for hit in hits[method][:depth])

    depths = [
        depth
        for depth in DEPTHS
        if (reached(BM25, depth) or reached(COSINE, depth)) and not reached(HYBRID, depth)
    ]
    if depths:
        deep = scope.ask(question, "hybrid", DEEP).hits
        for depth in depths:
            yield Lost(depth, causes(scope.lane, deep, question.answers, depth))


def _described(
    scope: Scope, question: Question, outcome: Outcome, hybrid: Ranking
) -> dict[str, Any]:
    return {
        "set": scope.set,
        "lane": scope.lane,
        "scope": scope.name,
        "question": question.text,
        "category": question.category,
        "kind": outcome.kind,
        "now": question.now.isoformat(),
        "silent": hybrid.silent,
        "confidence": hybrid.confidence,
        "lost": {lost.depth: lost.causes for lost in outcome.lost},
        "figures": outcome.figures,
        "answers": [[list(key), scope.texts[key]] for key in sorted(question.answers)],
    }


def _ranked_hits(hits: Sequence[Hit], question: Question) -> dict[str, Any]:
    """The places (from 1) and scores of the answers, the first ten, and the factors of all."""
    right = [bool(hit.keys & question.answers) for hit in hits]
    places = [at for at, answers in enumerate(right) if answers]
    return {
        "ranks": [at + 1 for at in places],
        "scores": [round(hits[at].score, 4) for at in places],
        "top": [
            {
                "right": right[at],
                "keys": _sorted_keys(hit),
                "speaker": hit.speaker,
                "score": round(hit.score, 4),
                "text": hit.text[:_SHOWN],
            }
            for at, hit in enumerate(hits[:FIRST_TEN])
        ],
        "factors": [
            {
                "right": right[at],
                "keys": _sorted_keys(hit),
                "score": round(hit.score, 5),
                **{name: round(value, 5) for name, value in hit.factors.items()},
            }
            for at, hit in enumerate(hits[:DEEP])
            if hit.factors
        ],
    }


def _sorted_keys(hit: Hit) -> list[Key]:
    return sorted(hit.keys)
