"""Signals that the second pass over the turn ranking tried and left out, for bench/fit_turns.py.

In: a chat and a question as that bench reads them, with the ranking's own scores. Out: what the
signal adds to every turn's score, or other words and cosines to rank by. Nothing here is part of
the product: it is kept so that what was left out can be measured again.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anaphora.core.analyser import analyse, query_terms
from anaphora.rank.turn_table import PERSONAL
from anaphora.rank.turns import DEFAULT_WEIGHTS, TurnScores, Weights, best_rows, score_turns

if TYPE_CHECKING:
    from bench.fit_turns import Asked, Chat

Floats = NDArray[np.float64]
Extra = Callable[["Chat", "Asked", TurnScores], Floats]
Instead = Callable[["Chat", "Asked", Weights], TurnScores]

_PLURAL = re.compile(
    r"\b(?:all|list|every|various|different|both|kinds?|types?|how many|which \w+s"
    r"|what (?:\w+ )?\w+s)\b",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"^\W*(?:please\b|(?:could|can|would|will) you\b|how (?:do|can|should|would|could|to|does)\b"
    r"|(?:show|explain|give|help|write|tell|walk|suggest|recommend|create|list|describe)\b"
    r"|what(?:'s| is| are| should| would| could| can| steps| do)\b|i(?:'m| am|'d| would| want)\b)",
    re.IGNORECASE,
)


_SUMMARY = re.compile(r"\b(?:summar\w+|overview|recap)\b", re.IGNORECASE)


def asks_for_several(question: str) -> bool:
    """Questions in the plural."""
    return _PLURAL.search(question) is not None


def asks_for_summary(question: str) -> bool:
    """Questions for a summary."""
    return _SUMMARY.search(question) is not None


def asks(chat: Chat) -> NDArray[np.bool_]:
    """Which turns end in a question mark, shape (N,)."""
    return np.array([text.rstrip()[-1:] == "?" for text in chat.texts])


def bare_question(weight: float) -> Extra:
    """Turns that only ask lose `weight`, where the question names a speaker."""

    def extra(chat: Chat, one: Asked, _: TurnScores) -> Floats:
        if not one.reading.speakers:
            return np.zeros(len(chat.texts))
        only = asks(chat) & ((chat.table.flags & PERSONAL) == 0)
        lost: Floats = -weight * only / DEFAULT_WEIGHTS.scale
        return lost

    return extra


def after_asking(share: float) -> Extra:
    """The turn after another one's question gains `share` more of the question's evidence."""

    def extra(chat: Chat, _: Asked, scores: TurnScores) -> Floats:
        table = chat.table
        own = scores.factors["words"] + scores.factors["meaning"]
        other = (table.speaker[1:] != table.speaker[:-1]) | (table.role[1:] != table.role[:-1])
        goes_on = (table.session[1:] == table.session[:-1]) & other & asks(chat)[:-1]
        gained: Floats = share * np.append(0.0, own[:-1] * goes_on)
        return gained

    return extra


def together(*parts: Extra) -> Extra:
    """The sum of several."""

    def extra(chat: Chat, one: Asked, scores: TurnScores) -> Floats:
        return np.sum([part(chat, one, scores) for part in parts], axis=0)  # type: ignore[no-any-return]

    return extra


def same_speaker(share: float) -> Extra:
    """Beside a turn of the same speaker (one message in two pieces), `share` more of it."""

    def extra(chat: Chat, _: Asked, scores: TurnScores) -> Floats:
        table = chat.table
        own = scores.factors["words"] + scores.factors["meaning"]
        same = (table.session[1:] == table.session[:-1]) & (table.role[1:] == table.role[:-1])
        same &= table.speaker[1:] == table.speaker[:-1]
        gained: Floats = np.append(0.0, own[:-1] * same) + np.append(own[1:] * same, 0.0)
        return share * gained

    return extra


def image(weight: float) -> Extra:
    """Turns with a picture's description."""

    def extra(chat: Chat, _: Asked, __: TurnScores) -> Floats:
        shown = np.array(["[image" in text for text in chat.texts], float)
        return weight * shown / DEFAULT_WEIGHTS.scale

    return extra


def spread(penalty: float) -> Extra:
    """Questions in the plural: every better turn of the same sitting costs `penalty`."""

    def extra(chat: Chat, one: Asked, scores: TurnScores) -> Floats:
        lost = np.zeros(len(chat.texts))
        if _PLURAL.search(one.text):
            seen: Counter[int] = Counter()
            for row in best_rows(chat.table, scores, 60).tolist():
                sitting = int(chat.table.session[row])
                lost[row] = -penalty * seen[sitting]
                seen[sitting] += 1
        return lost

    return extra


Close = Callable[["Chat", NDArray[np.intp], int], Floats]
"""How much each of some rows is like the one at a place among them, 0 to 1."""


def adjacent(_: Chat, rows: NDArray[np.intp], at: int) -> Floats:
    """At most two turns away."""
    near: Floats = (np.abs(rows - rows[at]) <= 2).astype(float)
    return near


def same_sitting(chat: Chat, rows: NDArray[np.intp], at: int) -> Floats:
    """Of the same sitting."""
    same: Floats = (chat.table.session[rows] == chat.table.session[rows[at]]).astype(float)
    return same


def alike(chat: Chat, rows: NDArray[np.intp], at: int) -> Floats:
    """The cosine of their first parts."""
    vectors = chat.vectors[np.searchsorted(chat.owner, rows)]
    near: Floats = np.maximum(vectors @ vectors[at], 0.0).astype(float)
    return near


def covering(penalty: float, close: Close) -> Extra:
    """Questions in the plural: each of the best 60 loses `penalty` for each chosen before that it
    is like. J. Carbonell and J. Goldstein, *The Use of MMR*, 1998, with a sum for the maximum."""

    def extra(chat: Chat, one: Asked, scores: TurnScores) -> Floats:
        lost = np.zeros(len(chat.texts))
        if not _PLURAL.search(one.text):
            return lost
        rows = best_rows(chat.table, scores, 60)
        values = scores.total[rows].astype(float)
        left = np.ones(len(rows), dtype=bool)
        for _ in rows:
            at = int(np.argmax(np.where(left, values, -np.inf)))
            left[at] = False
            values[left] -= (penalty / DEFAULT_WEIGHTS.scale) * close(chat, rows, at)[left]
        lost[rows] = values - scores.total[rows]
        return lost

    return extra


def standing_for_requests(weight: float) -> Instead:
    """Standing instructions count more where the question asks for something to be done."""

    def instead(chat: Chat, one: Asked, weights: Weights) -> TurnScores:
        if _REQUEST.search(one.text):
            weights = replace(weights, standing=weight)
        return score_turns(chat.table, one.reading, one.words, one.cosine, weights)

    return instead


def both_readings(share: float) -> Instead:
    """The question as it stands is embedded, too, and counts with `share`."""

    def instead(chat: Chat, one: Asked, weights: Weights) -> TurnScores:
        nearest = np.maximum(one.cosine, share * one.plain_cosine)
        return score_turns(chat.table, one.reading, one.words, nearest, weights)

    return instead


def nearest_texts(weight: float, count: int, least: float = 0.0) -> Instead:
    """Rocchio: the mean vector of the best `count` turns is added to the question's.

    Only where the best one's score is `least` or more. J. Rocchio, *Relevance Feedback in
    Information Retrieval*, 1971; here without judgements, so the best are taken for relevant.
    """

    def instead(chat: Chat, one: Asked, weights: Weights) -> TurnScores:
        scores = score_turns(chat.table, one.reading, one.words, one.cosine, weights)
        best = best_rows(chat.table, scores, count)
        if not len(best) or scores.total[best[0]] < least:
            return scores
        similar = chat.vectors @ one.vector
        places = [np.flatnonzero(chat.owner == row) for row in best]
        centre = np.mean([chat.vectors[p[np.argmax(similar[p])]] for p in places], axis=0)
        moved = one.vector + weight * centre / np.linalg.norm(centre)
        cosine = chat.cosine(moved / np.linalg.norm(moved))
        return score_turns(chat.table, one.reading, one.words, cosine, weights)

    return instead


def words_of_the_best(weight: float, count: int, terms: int) -> Instead:
    """RM3 on words: the `terms` rarest, most shared words of the best turns join the question's.

    N. Abdul-Jaleel and others, *UMass at TREC 2004: Novelty and HARD*.
    """

    def instead(chat: Chat, one: Asked, weights: Weights) -> TurnScores:
        scores = score_turns(chat.table, one.reading, one.words, one.cosine, weights)
        found: defaultdict[str, float] = defaultdict(float)
        for row in best_rows(chat.table, scores, count).tolist():
            for term in query_terms(chat.texts[row][:400]):
                if term not in one.reading.terms:
                    found[term] += float(scores.total[row]) * chat.bm25.rarity(term)
        more = chat.bm25.scores(sorted(found, key=lambda term: -found[term])[:terms])
        words = one.words + weight * more
        return score_turns(chat.table, one.reading, words, one.cosine, weights)

    return instead


def mean_of_parts(share: float) -> Instead:
    """Long turns: `share` of the mean over a turn's parts beside the best part."""

    def instead(chat: Chat, one: Asked, weights: Weights) -> TurnScores:
        n = len(chat.texts)
        similar = np.bincount(chat.owner, chat.vectors @ one.vector, n)
        mean = similar / np.bincount(chat.owner, minlength=n)
        cosine = (1 - share) * one.cosine + share * mean
        return score_turns(chat.table, one.reading, one.words, cosine, weights)

    return instead


def pairs_of_words(weight: float) -> Instead:
    """BM25 over pairs of adjacent words, those of the question that hold no stop word."""

    def instead(chat: Chat, one: Asked, weights: Weights) -> TurnScores:
        tokens = analyse(one.text)
        kept = set(one.reading.terms)
        pairs = [f"{a} {b}" for a, b in pairwise(tokens) if {a, b} <= kept]
        words = one.words + weight * chat.pairs.scores(pairs)
        return score_turns(chat.table, one.reading, words, one.cosine, weights)

    return instead


def sub_questions(share: float) -> Instead:
    """The parts of a question around "and" and commas are embedded on their own."""

    def instead(chat: Chat, one: Asked, weights: Weights) -> TurnScores:
        if not one.parts:
            return score_turns(chat.table, one.reading, one.words, one.cosine, weights)
        best = np.max([chat.cosine(vector) for vector in one.parts], axis=0)
        cosine = (1 - share) * one.cosine + share * best
        return score_turns(chat.table, one.reading, one.words, cosine, weights)

    return instead
