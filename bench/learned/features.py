"""Features of a question's first candidates: everything that ranking has without a model.

In: a chat and a question as bench/fit_turns.py reads them. Out: the rows of the candidates, best
first, a matrix of their features, and which of them are evidence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.rank.turns import DEFAULT_WEIGHTS, best_rows, score_turns
from bench.fit_turns import Asked, Chat

DEPTH: Final = 100
# A neighbour is at most so many turns away.
REACH: Final = 2

Floats = NDArray[np.float64]

_DATE = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|last|next|ago|week|weekend|month|year"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|january|february|march|april|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][a-z]{2,}")
_QUESTIONS: Final = {
    "when": r"^\W*(?:when|what (?:date|day|time|month|year)|how long)\b",
    "who": r"\bwho(?:se)?\b",
    "where": r"\bwhere\b|\b(?:which|what) (?:city|country|place|countries|cities|places)\b",
    "how many": r"\bhow (?:many|much|often)\b",
    "why": r"\bwhy\b|\breason",
    "how": r"^\W*how\b",
    "what": r"\bwhat\b|\bwhich\b",
    "yes or no": r"^\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|would|will|should)\b",
    "plural": r"\b(?:all|list|every|various|different|both|kinds?|types?|how many|which \w+s\b)",
    "order": r"\b(?:order|first|last|before|after|since|until|between)\b",
    "request": r"^\W*(?:please\b|(?:could|can|would|will) you\b|how (?:do|can|should|to)\b)",
    "summary": r"\b(?:summar\w+|overview|comprehensive)\b",
}
_FORMS: Final = {name: re.compile(form, re.IGNORECASE) for name, form in _QUESTIONS.items()}


@dataclass(frozen=True, slots=True)
class Example:
    """A question of `source`, put in `style`, with C candidates: `rows` (C,), `values` (C, F) with
    `total` among them, `right` (C,). `evidence` may have rows that are no candidates."""

    source: str
    number: int
    category: str
    style: str
    evidence: frozenset[int]
    rows: NDArray[np.intp]
    values: NDArray[np.float32]
    right: NDArray[np.bool_]


GROUPS: Final = ("own", "parts", "near", "sitting", "form", "question", "vectors")
"""The groups of features: a turn's own words and meaning and how they compare with the others',
the parts of the sum, neighbours, the sitting, the form of the text, the form of the question, and
vectors of neighbours and of the best candidates."""


def describe(
    source: str, style: str, chat: Chat, one: Asked, unseen: int | None = None
) -> tuple[list[str], Example]:
    """The names of the features ("group: name") and the question as an example.

    `unseen` is a row that must not be a candidate: the turn that the question was taken from.
    """
    rows, columns = _columns(chat, one)
    shown = rows != (-1 if unseen is None else unseen)
    values = np.column_stack(list(columns.values())).astype(np.float32)[shown]
    rows = rows[shown]
    right = np.isin(rows, list(one.evidence))
    example = Example(source, chat.number, one.category, style, one.evidence, rows, values, right)
    return list(columns), example


def _columns(chat: Chat, one: Asked) -> tuple[NDArray[np.intp], dict[str, Floats]]:
    table, sitting = chat.table, chat.table.session
    scores = score_turns(table, one.reading, one.words, one.cosine)
    total = scores.total.astype(float) * DEFAULT_WEIGHTS.scale
    rows = best_rows(table, scores, DEPTH)
    words, meaning = np.maximum(one.words, 0.0), np.maximum(one.cosine, 0.0)
    bounded = words / (words + DEFAULT_WEIGHTS.words_half)
    mass = sum(chat.bm25.rarity(term) for term in one.reading.terms)
    best = np.sort(total)[::-1]
    found = {
        "own: total": total,
        "own: words": bounded,
        "own: meaning": meaning,
        "own: bm25": words,
        "own: share of the words": words / max(mass, 1e-9),
        "own: behind the best": total - best[0],
        "own: behind the tenth": total - best[min(9, len(best) - 1)],
        "own: words to the best": words / max(float(words.max()), 1e-9),
        "own: meaning behind the best": meaning - meaning.max(),
        "own: meaning, standardised": _standardised(meaning),
        "own: total, standardised": _standardised(total),
        "own: place": _places(total),
        "own: place by words": _places(words),
        "own: place by meaning": _places(meaning),
    }
    for name in ("context", "time", "speaker", "personal", "standing"):
        found[f"parts: {name}"] = scores.factors[name].astype(float) * DEFAULT_WEIGHTS.scale
    length: Floats = np.log2(1.0 + table.length.astype(float))
    said_by = table.speaker.astype(float) * 10 + table.role.astype(float)
    for step in (*range(-REACH, 0), *range(1, REACH + 1)):
        found[f"near: words {step:+}"] = _beside(bounded, sitting, step)
        found[f"near: meaning {step:+}"] = _beside(meaning, sitting, step)
    for step in (-1, 1):
        found[f"near: same speaker {step:+}"] = (
            _beside(said_by, sitting, step, -99.0) == said_by
        ).astype(float)
        found[f"near: length {step:+}"] = _beside(length, sitting, step)
    found |= _of_sitting(total, meaning, bounded, sitting, rows)
    found |= _form(chat, length)
    chosen = {name: np.asarray(column, float)[rows] for name, column in found.items()}
    for name, form in _FORMS.items():
        chosen[f"question: {name}"] = np.full(len(rows), bool(form.search(one.text)), float)
    chosen["question: times"] = np.full(len(rows), len(one.reading.spans), float)
    return rows, chosen | _of_vectors(chat, one, rows)


def _standardised(values: Floats) -> Floats:
    same: Floats = (values - values.mean()) / max(float(values.std()), 1e-6)
    return same


def _places(values: Floats) -> Floats:
    place = np.empty(len(values))
    place[np.argsort(-values, kind="stable")] = np.arange(len(values))
    return np.log1p(place)


def _beside(values: Floats, sitting: NDArray[np.int32], step: int, missing: float = 0.0) -> Floats:
    """What stands `step` turns further on, where the sitting goes on."""
    found = np.full(len(values), missing)
    if step > 0:
        found[:-step] = np.where(sitting[step:] == sitting[:-step], values[step:], missing)
    else:
        found[-step:] = np.where(sitting[:step] == sitting[-step:], values[:step], missing)
    return found


def _of_sitting(
    total: Floats,
    meaning: Floats,
    words: Floats,
    sitting: NDArray[np.int32],
    rows: NDArray[np.intp],
) -> dict[str, Floats]:
    n, count = len(total), int(sitting.max()) + 1
    order = np.lexsort((-total, sitting))
    first = np.searchsorted(sitting[order], np.arange(count))
    best = order[first]
    after = order[np.minimum(first + 1, n - 1)]
    alone = (first + 1 >= n) | (sitting[after] != np.arange(count))
    second = np.where(alone, 0.0, total[after])
    others = np.where(np.arange(n) == best[sitting], second[sitting], total[best][sitting])
    early = np.zeros(n)
    early[rows[:30]] = 1.0
    size = np.bincount(sitting, minlength=count)
    begin = np.searchsorted(sitting, sitting, "left")
    return {
        "sitting: best other": others,
        "sitting: best": total[best][sitting],
        "sitting: among the first 30": np.bincount(sitting, early, count)[sitting],
        "sitting: mean meaning": (np.bincount(sitting, meaning, count) / size)[sitting],
        "sitting: all words": np.bincount(sitting, words, count)[sitting],
        "sitting: place in it": np.log1p(np.arange(n) - begin),
        "sitting: size": np.log1p(size[sitting]),
    }


def _form(chat: Chat, length: Floats) -> dict[str, Floats]:
    asks = np.array([text.rstrip()[-1:] == "?" for text in chat.texts], float)
    sitting = chat.table.session
    return {
        "form: length": length,
        "form: asks": asks,
        "form: the turn before asks": _beside(asks, sitting, -1),
        "form: the turn after asks": _beside(asks, sitting, 1),
        "form: a question in it": np.array(["?" in text for text in chat.texts], float),
        "form: a digit": np.array([any(map(str.isdigit, t)) for t in chat.texts], float),
        "form: a date": np.array([bool(_DATE.search(t[:2000])) for t in chat.texts], float),
        "form: names": np.array([min(3, len(_NAME.findall(t[:1000]))) for t in chat.texts], float),
    }


def _of_vectors(chat: Chat, one: Asked, rows: NDArray[np.intp]) -> dict[str, Floats]:
    """Cosines of the question with the mean of a window, of a candidate with the best ones."""
    whole = np.zeros((len(chat.texts), chat.vectors.shape[1]), np.float32)
    np.add.at(whole, chat.owner, chat.vectors)
    whole /= np.maximum(np.linalg.norm(whole, axis=1, keepdims=True), 1e-9)
    found: dict[str, Floats] = {}
    for reach in (1, 2, 4):
        window = np.zeros((len(rows), whole.shape[1]), np.float32)
        for step in range(-reach, reach + 1):
            place = np.clip(rows + step, 0, len(whole) - 1)
            inside = (rows + step == place) & (
                chat.table.session[place] == chat.table.session[rows]
            )
            window += whole[place] * inside[:, None]
        near = (window @ one.vector) / np.maximum(np.linalg.norm(window, axis=1), 1e-9)
        found[f"vectors: window of {reach}"] = near.astype(float)
    alike = (whole[rows] @ whole[rows].T).astype(float)
    np.fill_diagonal(alike, 0.0)
    for best in (3, 10):
        others = np.maximum(min(best, len(rows)) - (np.arange(len(rows)) < best), 1)
        found[f"vectors: like the first {best}"] = alike[:, :best].sum(axis=1) / others
    found["vectors: nearest of the first 10"] = alike[:, :10].max(axis=1)
    return found
