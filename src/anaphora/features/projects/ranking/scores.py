"""Scores sections, notes and files for a focus, and says how far the result may be trusted.

Rows, out of six signals of R candidates:

    relevance = words + MEANING · closeness      (closeness only where a word matched)
    score     = relevance · confidence · recency · size · role fit

The last four are factors near 1, so that none of them can make an unrelated section pass for an
answer. Files, out of their rows:

    file = (best section + others · Σ decayⁿ · n-th other + path · path + file_title · best name
            + named · named + file_meaning · closest section) · role fit · confidence · recency

The sum over the other sections saturates: a file that speaks of the focus in many places is a
better target than one that mentions it once, and a huge file gains no more by being huge. A note is
a target of its own, with its row's score. What has no word in common with the focus is no target.

The label ("strong", "partial", "weak") is no claim that an answer is right: it says how much to
verify.

    support = best · min(4, mean of the first three / mean of the next seven) · sqrt(min(16, terms))

of the targets' grounded scores, in which meaning, recency and roles are not. A focus that is about
something here matches much of what it says in a few places, and there far better than in the places
after them; a focus about something else matches a little everywhere. The same share of a longer
focus is more evidence. The form was chosen looking at four repositories, against questions asked of
projects that they are not about.

`rank.context.weights` says why each weight is what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anaphora.features.projects.ranking.table import ROLES, SectionTable
from anaphora.features.projects.ranking.weights import DEFAULT_WEIGHTS, SignalWeights
from anaphora.features.projects.values import Intent, Quality

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SIGNALS: Final = ("words", "meaning", "confidence", "recency", "size", "role_fit")

SMALL_TOKENS: Final = 120.0
LARGE_TOKENS: Final = 2_000.0
"""Between an excerpt and a whole budget the cost of size rises by the logarithm of the tokens."""

UNJUDGED: Final = 4
"""A section counts as a note of importance 4: it is the project itself, and a note of importance 5
says that it matters more."""

HOLDABLE: Final = 24
"""The best section for a bug report of a page holds a tenth of its words: measured by all of them
words would count for little beside meaning and names. A focus of so many terms or fewer is not
touched. From 8 to 32 the order of the 13 issues hardly changes (docs/decisions/0021)."""


class FieldScores(NamedTuple):
    """What R rows match, each (R,): BM25 of each field, and the share of the terms' mass (0 … 1).

    BM25 has the terms' weights in it (idf × the weight that was given); `held` counts each term
    once, whichever field holds it, however often.
    """

    path: Floats
    title: Floats
    body: Floats
    held: Floats


@dataclass(frozen=True, slots=True)
class Signals:
    """What is known of R candidate rows, each (R,).

    `mass` is the sum of the terms' weights, and `most` what of it one section can be expected to
    hold. `cosine` is NaN for a row without a vector, None where the query has none.
    """

    rows: Ints
    words: FieldScores
    mass: float
    cosine: Floats | None = None
    most: float = np.inf

    @property
    def whole(self) -> float:
        """What counts as a full match of words; infinite where there is nothing to match."""
        return min(self.mass, self.most) if self.mass > 0.0 else np.inf

    @property
    def share(self) -> float:
        """How much of the whole focus that is, 0 … 1."""
        return self.whole / self.mass if self.mass > 0.0 else 1.0


@dataclass(frozen=True, slots=True)
class FocusNeeds:
    """What the focus asks for: intents, the time (seconds since the epoch), files it names.

    `named` gives file codes and how surely the focus names them (0 … 1), as `PathNames.named`
    does; `log` is True where the focus asks for a change log.
    """

    intents: tuple[Intent, ...] = ()
    now: float = 0.0
    named: Mapping[int, float] = field(default_factory=dict)
    log: bool = False


@dataclass(frozen=True, slots=True)
class RowScores:
    """Scores of R candidates, each (R,); `order`: their places, best first.

    `signals` has the six of the score by name (`SIGNALS`). `grounded` is False for a row that has
    no word in common with the focus: it comes behind all that have, and its score is 0.
    `match` is what its own body and name matched: files are ranked by it.
    """

    rows: Ints
    score: Floats
    order: NDArray[np.intp]
    grounded: NDArray[np.bool_]
    match: Floats
    signals: Mapping[str, Floats]

    def explain(self, index: int) -> dict[str, float]:
        """The six signals of one candidate."""
        return {name: round(float(values[index]), 4) for name, values in self.signals.items()}


def rank_rows(
    table: SectionTable,
    signals: Signals,
    needs: FocusNeeds,
    weights: SignalWeights = DEFAULT_WEIGHTS,
) -> RowScores:
    """Score R candidates and order them; ties by row number. An empty focus scores nothing."""
    at, s, w = signals.rows, signals.words, weights
    mass = signals.whole
    match = (s.body + w.title * s.title) / mass
    file = table.file[at]
    logs = np.zeros(len(file), np.bool_)
    if len(table.files):
        logs = np.where(file >= 0, table.files.log[file], False)
    named_weights = np.array([needs.named.get(code, 0.0) for code in file.tolist()], np.float64)
    is_grounded = (s.held > 0.0) & np.isfinite(mass)
    cosine = signals.cosine
    meaning = np.zeros(len(at)) if cosine is None else np.nan_to_num(cosine).clip(0.0, 1.0)
    values = {
        "words": match + w.row_path * s.path / mass + w.row_named * named_weights,
        "meaning": meaning,
        "confidence": confidence(table, signals, w),
        "recency": recency((needs.now - table.changed_at[at]) / 86_400.0, w),
        "size": size(table.tokens[at]),
        "role_fit": role_fit(table.role[at], logs, needs, w),
    }
    relevance = values["words"] + w.meaning * values["meaning"]
    factors = values["confidence"] * values["role_fit"]
    factors = factors * (1.0 + w.recent * values["recency"]) * (1.0 - w.size * values["size"])
    # Six digits: what differs behind them is the order of additions, and would decide ties.
    score = np.where(is_grounded, np.round(relevance * factors, 6), 0.0)
    order = np.lexsort((at, -score, ~is_grounded))
    return RowScores(at, score, order, is_grounded, match, values)


def holdable(weights: Iterable[float]) -> float:
    """What one section can be expected to hold of terms with these weights: the 24 greatest."""
    return sum(sorted(weights, reverse=True)[:HOLDABLE])


def confidence(
    table: SectionTable, signals: Signals, weights: SignalWeights = DEFAULT_WEIGHTS
) -> Floats:
    """Trust in the source's role × importance, each 0 … 1; shape (R,)."""
    at = signals.rows
    judged_importance = np.where(table.importance[at] > 0, table.importance[at], UNJUDGED).clip(
        1, 5
    )
    trust = np.array([weights.trust.get(role, 1.0) for role in ROLES], np.float64)
    trust_shares = np.where(table.file[at] >= 0, trust[table.role[at]], 1.0)
    sure: Floats = trust_shares * (1.0 - weights.importance * (5 - judged_importance))
    return sure


def recency(days: Floats, weights: SignalWeights = DEFAULT_WEIGHTS) -> Floats:
    """1 for today and for what lies ahead, 0 at `recent_days` and where it is not known."""
    freshness: Floats = np.nan_to_num(1.0 - days / weights.recent_days, nan=0.0).clip(0.0, 1.0)
    return freshness


def size(tokens: NDArray[np.int32]) -> Floats:
    """0 up to 120 tokens, rising to 1 at 2,000, by their logarithm."""
    span = np.log(LARGE_TOKENS / SMALL_TOKENS)
    cost: Floats = np.log(np.maximum(tokens, 1) / SMALL_TOKENS) / span
    return cost.clip(0.0, 1.0)


def role_fit(
    roles: NDArray[np.int8],
    logs: NDArray[np.bool_],
    needs: FocusNeeds,
    weights: SignalWeights = DEFAULT_WEIGHTS,
) -> Floats:
    """How well roles (codes into `ROLES`) fit the intents: a factor, 1 for no opinion.

    `logs` tells change logs, which give way unless the focus asks for one.
    """
    deltas = []
    for role in ROLES:
        fits = weights.roles.get(role, {})
        deltas.append(fits.get(None, 0.0) + sum(fits.get(intent, 0.0) for intent in needs.intents))
    log = np.where(logs, 0.0 if needs.log else weights.log, 0.0)
    fit: Floats = np.exp(np.array(deltas)[roles] + log)
    return fit


@dataclass(frozen=True, slots=True)
class TargetScores:
    """T targets, best first, each (T,).

    `files`: codes into the table's files, -1 for a note. `best`: the place, among the rows that
    were ranked, of the best section (of a note, its own). `held`: the greatest share of the terms'
    mass in one section; `named`: how surely the focus names the file; `grounded`: the score
    without meaning, recency and role, of the whole focus: what words and names alone say.
    """

    files: Ints
    best: Ints
    score: Floats
    held: Floats
    named: Floats
    grounded: Floats

    def __len__(self) -> int:
        return len(self.files)


def rank_targets(
    table: SectionTable,
    signals: Signals,
    needs: FocusNeeds,
    rows: RowScores,
    weights: SignalWeights = DEFAULT_WEIGHTS,
) -> TargetScores:
    """Files and notes with a word in common with the focus, best first; ties by row number."""
    w = weights
    file = table.file[rows.rows].astype(np.int64)
    indexes = np.flatnonzero(rows.grounded)
    # Each note is a target of its own.
    owner = np.where(file >= 0, file, len(table.files) + rows.rows)[indexes]
    owners, owner_indexes = np.unique(owner, return_inverse=True)
    mass, words = signals.whole, signals.words
    of = _Owned(len(owners), owner_indexes, indexes)
    score: Floats = of.best(rows.match) + w.others * of.others(rows.match, w.decay)
    score += w.path * of.best(words.path / mass) + w.file_title * of.best(words.title / mass)
    named_weights = np.array(
        [needs.named.get(int(code), 0.0) for code in owners.tolist()], np.float64
    )
    of_notes = of.best(rows.signals["words"])
    # How far to trust a package is about all that was asked, not about what one section can hold.
    grounded_scores = np.where(owners < len(table.files), score, of_notes) * signals.share
    grounded_scores = (grounded_scores + w.named * named_weights).round(6)
    score += w.named * named_weights
    score += w.file_meaning * of.best(rows.signals["meaning"])
    score *= of.best(rows.signals["role_fit"]) * of.best(rows.signals["confidence"])
    score *= 1.0 + w.recent * of.best(rows.signals["recency"])
    is_file = owners < len(table.files)
    score = np.where(is_file, score, of.best(rows.score)).round(6)
    best_indexes = of.first(rows)
    order = np.lexsort((rows.rows[best_indexes], -score))
    return TargetScores(
        files=np.where(is_file, owners, -1)[order],
        best=best_indexes[order],
        score=score[order],
        held=of.best(words.held)[order],
        named=named_weights[order],
        grounded=grounded_scores[order],
    )


@dataclass(frozen=True, slots=True)
class _Owned:
    """Rows that belong to T targets: `where` (G,) says to which, `places` (G,) which rows."""

    count: int
    where: NDArray[np.intp]
    places: NDArray[np.intp]

    def best(self, values: Floats) -> Floats:
        """The greatest value of each target's rows."""
        highest = np.zeros(self.count)
        np.maximum.at(highest, self.where, values[self.places])
        return highest

    def first(self, rows: RowScores) -> Ints:
        """The place of each target's best row."""
        rank = np.empty(len(rows.order), np.int64)
        rank[rows.order] = np.arange(len(rows.order))
        best_rank = np.full(self.count, len(rows.order), np.int64)
        np.minimum.at(best_rank, self.where, rank[self.places])
        return rows.order[best_rank].astype(np.int64)

    def others(self, values: Floats, decay: float) -> Floats:
        """The sum of each target's n-th best values times decay ** n, n from 1 (not the best)."""
        owned_values = values[self.places]
        order = np.lexsort((-owned_values, self.where))
        owner, ranked_values = self.where[order], owned_values[order]
        nth = np.arange(len(owner)) - np.searchsorted(owner, np.arange(self.count))[owner]
        parts = np.where(nth > 0, decay ** nth.astype(np.float64) * ranked_values, 0.0)
        sums: Floats = np.bincount(owner, parts, self.count).astype(np.float64)
        return sums


STRONG: Final = 6.5
PARTIAL: Final = 2.4

SECOND: Final = 0.4
"""The grounded score of a second target that makes strong evidence more than one target."""

DISTINCT: Final = 4.0
"""So many times the score of the places after them is as distinct as need be."""

TERMS: Final = 16
"""More terms than this are no more evidence."""

_FIRST: Final = 3
_AFTER: Final = 7
_NOTHING: Final = 0.05


def support_of(targets: TargetScores, terms: int) -> float:
    """The support of the best targets: 0 where there is none, 4 · 4 times a full match at most."""
    if not len(targets):
        return 0.0
    # Targets are in the order of their whole scores; this is about words and names alone.
    grounded_scores = sorted(targets.grounded.tolist(), reverse=True)
    first_mean = sum(grounded_scores[:_FIRST]) / _FIRST
    following_mean = sum(grounded_scores[_FIRST : _FIRST + _AFTER]) / _AFTER
    distinctness = min(DISTINCT, first_mean / (following_mean + _NOTHING))
    return float(grounded_scores[0] * distinctness * min(TERMS, terms) ** 0.5)


def quality_of(targets: TargetScores, terms: int) -> Quality:
    """The label of the targets of a focus of so many terms."""
    support = support_of(targets, terms)
    if support >= STRONG and (targets.grounded >= SECOND).sum() > 1:
        return "strong"
    return "partial" if support >= PARTIAL else "weak"
