"""Scores the turns of conversations for a question: words, meaning, neighbours, speaker, time.

    total = (words + meaning + context + speaker + personal + time + standing) / scale

Where a turn has no vector, what its words tell of its meaning counts for it, with the words.

The parts are added, not multiplied: each is evidence for the same thing, like log-odds. The scale
is a constant, so that scores of different questions can be compared: 0 is nothing at all, 1 is out
of reach, a good hit has 0.4 to 0.6. Nothing is normalised by the best hit of the question: a
question that nothing answers must not get a perfect score, and one odd turn must not press down
all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from anaphora.rank.question import QuestionReading
from anaphora.rank.turn_table import PERSONAL, STANDING, TurnTable
from anaphora.values.fitted import fitted

Floats = NDArray[np.float32]
Rows = NDArray[np.intp]

DAY = 86_400.0


ASKED_WORDS: Final = 16
"""Words of a question up to which a turn needs the whole evidence of `Weights.related`."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The highest value of each part, in units of one full match of words.

    Round numbers on a plateau: doubling or halving any of them moves recall by a point or less.
    docs/decisions/0007 has what each is worth and what was left out.
    """

    words: float
    # How near to a full match of words a turn comes that holds what a question names exactly: a
    # version, a code, a date. What holds another one of its kind is about another thing.
    exact: float
    # BM25 that counts half: s / (s + words_half) keeps a long question's many weak matches from
    # outweighing meaning, and bounds the part without knowing the question's own maximum.
    words_half: float
    # The same where the embedder does not read the question's language: what it says of meaning
    # there is little more than which letters two texts share.
    words_half_alone: float
    # Half more than a full match of words: people ask in other words than the answer's.
    meaning: float
    # Share of a neighbour's words and meaning that a turn is given, for either side: a question
    # and its answer, a topic that goes on. More drowns turns in their surroundings.
    neighbour: float
    # The turn is by a speaker that the question names.
    speaker: float
    # The turn is by the asker ("my", "I") or by the addressee ("you told me"). Less than a name
    # is worth: an assistant's answer repeats what the user said of himself, and may be meant.
    role: float
    # If the question names a speaker: the turn is in the first person, as small talk and
    # comments seldom are. Other questions lose by it: what they ask for is told of things.
    personal: float
    # The turn was written in a time that the question names, or up to a day after it: people tell
    # what they did the morning after.
    time: float
    # What of that counts if the turn tells of other days.
    elsewhen: float
    # Words and meaning from which on a time counts in full: being said then answers nothing.
    time_evidence: float
    # Standing instructions apply whenever their topic comes up, however they are worded.
    standing: float
    # Words and meaning of its own from which on a turn is given its neighbours' share, and what it
    # gets for being personal or an instruction, in full, and below half of it a twentieth:
    # what has nothing to do with the question is not told apart by them.
    related: float
    # The conversation's title holds the words of the question: a share of what a turn's own words
    # and meaning are worth, as it is said of all of its turns alike.
    title: float
    # Lost for a better turn of the same stage, where the order of events is asked for, and for two
    # better ones twice: more changes nothing, half of it less (`rank/stages.py`).
    spread: float
    time_after: float = DAY

    @property
    def scale(self) -> float:
        """The sum of the parts' highest values."""
        evidence = (self.words + self.meaning) * (1 + 2 * self.neighbour)
        hints = max(self.speaker, self.role) + self.personal + self.time + self.standing
        return evidence + hints

    @property
    def cosine_of_meaning(self) -> float:
        """What the part "meaning" of a score is multiplied by to be the cosine."""
        return self.scale / self.meaning


DEFAULT_WEIGHTS: Final = Weights(**fitted("turns"))


@dataclass(frozen=True, slots=True)
class TurnScores:
    """Scores of M rows: `total` (M,), and `factors`, each (M,), which add up to it.

    `rows` (M,) are the rows of the table that were scored. `found` (M,) tells the turns with any
    evidence of their own or beside them from those that only have the right speaker or length.
    """

    rows: Rows
    total: Floats
    factors: Mapping[str, Floats]
    found: NDArray[np.bool_]

    def explain(self, at: int) -> dict[str, float]:
        """The parts of the score at place `at` of these M rows, those that are zero left out."""
        parts = {name: float(part[at]) for name, part in self.factors.items()}
        return {name: share for name, share in parts.items() if share}


def score_turns(
    table: TurnTable,
    reading: QuestionReading,
    words: NDArray[np.floating],
    cosine: NDArray[np.floating] | None,
    weights: Weights = DEFAULT_WEIGHTS,
    *,
    rows: Rows | None = None,
    alike: NDArray[np.floating] | None = None,
    titles: NDArray[np.floating] | None = None,
    exact: NDArray[np.floating] | None = None,
    naming: NDArray[np.bool_] | None = None,
    elsewhen: NDArray[np.bool_] | None = None,
) -> TurnScores:
    """Score the turns of `table` (N rows), or only its `rows` (M), for what was read of a question.

    `words` (N,) is BM25, 0 where it is not known; `cosine` (N,) the best part's cosine to the
    question, None when vectors cannot be had: then words speak alone, on the same scale. Raising
    one turn's words or cosine never lowers its place, since a neighbour gains only a share of it.
    `alike` (N,) is how alike a turn and the question are by their words (0 … 1), 0 for a turn whose
    cosine is known; it counts like a cosine. Without it, a turn that waits for its vector stands
    behind every turn that has one and resembles the question a little. `titles` (N,) is how much of
    the question the title of a turn's conversation holds (0 … 1); the score may pass its scale by
    it. `exact` (N,) is the share that a turn holds of what the question names exactly (None: it
    names nothing so); `naming` (N,) says which turns tell of a day in its times, `elsewhen` (N,)
    which tell of other days than their own.
    """
    if any(s is not None and len(s) != len(table) for s in (words, cosine, alike, exact, naming)):
        raise ValueError(f"every signal must have one value for each of {len(table)} turns")
    # Single precision throughout, and no pass for what is zero for all: at 100,000 turns, memory is
    # what takes the time.
    unit, count = np.float32(1.0 / weights.scale), len(table)
    at: Rows | slice = slice(count) if rows is None else np.asarray(rows, dtype=np.intp)
    scored_rows = np.arange(count) if isinstance(at, slice) else at
    needed = at
    if not isinstance(at, slice):
        needed = np.concatenate((at, *(column[at] for column in table.beside)))
        needed = needed[needed < count]
    near_words = _match_words(words[needed], exact if exact is None else exact[needed], weights)
    if alike is not None:
        near_words += np.asarray(alike[needed], np.float32) * (unit * np.float32(weights.meaning))
    near_meaning = np.zeros(len(near_words), np.float32)
    if cosine is not None:
        # Below zero there is nothing to tell apart: unrelated is unrelated.
        near_meaning = np.maximum(cosine[needed], 0.0, dtype=np.float32)
        near_meaning *= unit * np.float32(weights.meaning)
    near = np.zeros(count + 1, np.float32)
    near[needed] = near_words + near_meaning
    evidence = near[at]
    relatedness = np.ones(len(evidence), np.float32)
    if cosine is not None:
        # In a question of a page one turn holds few of the words and little of the meaning.
        share = min(1.0, ASKED_WORDS / max(1, len(reading.words)))
        full_evidence = unit * np.float32(weights.related * share)
        # From a twentieth to 1, as words and meaning go from half of `full` to all of it.
        np.multiply(evidence, np.float32(2.0) / full_evidence, out=relatedness)
        np.clip(relatedness - np.float32(1.0), 0.05, 1.0, out=relatedness)
    # What the turns before and after tell; "clip" skips a check per row.
    before, after = (np.take(near, column[at], mode="clip") for column in table.beside)
    factors = {
        "words": near_words[: len(evidence)],
        "meaning": near_meaning[: len(evidence)],
        "context": (before + after) * relatedness * np.float32(weights.neighbour),
    }
    if titles is not None:
        factors = {"title": titles[at] * (unit * np.float32(weights.title)), **factors}
    if reading.spans or naming is not None:
        # From a twentieth to 1, as the evidence goes from nothing to enough for a time to count.
        timely = np.clip(evidence / (unit * np.float32(weights.time_evidence)), 0.05, 1.0)
        inside = _match_spans(table.ts[at], reading.spans, weights, naming, elsewhen, at)
        factors["time"] = inside * timely * (unit * np.float32(weights.time))
    total = np.zeros(len(evidence), np.float32)
    for part in factors.values():
        total += part
    # So far it was evidence; what follows only tells turns apart that have some.
    evident = total > 0
    for name, part in _find_hints(table, reading, relatedness, weights, at):
        factors[name] = part
        total += part
    return TurnScores(scored_rows, total, factors, evident)


def _match_words(
    words: NDArray[np.floating], exact: NDArray[np.floating] | None, weights: Weights
) -> Floats:
    """What the words of rows tell: few turns have any of a question's."""
    part = np.zeros(len(words), np.float32)
    matched = np.flatnonzero(words > 0 if exact is None else (words > 0) | (exact > 0))
    scores = np.maximum(words[matched], 0.0, dtype=np.float32)
    scores /= scores + np.float32(weights.words_half)
    if exact is not None:
        shares = np.asarray(exact[matched], np.float32)
        scores += (1.0 - scores) * shares * np.float32(weights.exact)
    part[matched] = scores * np.float32(weights.words / weights.scale)
    return part


def _find_hints(
    table: TurnTable,
    reading: QuestionReading,
    relatedness: Floats,
    weights: Weights,
    at: Rows | slice,
) -> Iterator[tuple[str, Floats]]:
    """What counts for turns beside evidence: the speaker, and the way of speaking."""
    unit, personal = np.float32(1.0 / weights.scale), 0.0
    if reading.speakers or reading.roles:
        worth = weights.speaker if reading.speakers else weights.role
        yield "speaker", _match_speaker(table, reading, at) * (unit * np.float32(worth))
    if reading.speakers:
        personal = weights.personal
    flags = table.flags[at]
    for name, flag, worth in (
        ("personal", PERSONAL, personal),
        ("standing", STANDING, weights.standing),
    ):
        if worth:
            yield name, ((flags & flag) != 0) * relatedness * (unit * np.float32(worth))


def score_by(
    part: Literal["meaning", "words"], values: NDArray[np.floating], *, rows: Rows | None = None
) -> TurnScores:
    """Score by cosine or BM25 and nothing else: `mode="vector"`, the seed's ranking, and "words".

    By words, a turn without a match is not found.
    """
    rows = np.arange(len(values)) if rows is None else np.asarray(rows, dtype=np.intp)
    total: Floats = np.asarray(values, dtype=np.float32)[rows]
    is_match = total > 0 if part == "words" else np.ones(len(rows), dtype=np.bool_)
    return TurnScores(rows, total, {part: total}, is_match)


def best_rows(table: TurnTable, scores: TurnScores, limit: int) -> Rows:
    """Places in `scores` of the best `limit` found turns, best first.

    Equal scores stand in the order of their thread, and threads in the order of their codes.
    Places, not rows: `scores.rows[place]` is the row, `scores.explain(place)` its parts.
    """
    indexes = np.flatnonzero(scores.found)
    if 0 < limit < len(indexes):
        # Everything that ties with the last one stays in, or the cut would decide a tie by chance.
        totals = scores.total[indexes]
        cut_index = len(totals) - limit
        indexes = indexes[totals >= np.partition(totals, cut_index)[cut_index]]
    rows = scores.rows[indexes]
    order = np.lexsort((table.position[rows], table.conversation[rows], -scores.total[indexes]))
    return indexes[order][: max(limit, 0)]


def _match_speaker(
    table: TurnTable, reading: QuestionReading, at: Rows | slice
) -> NDArray[np.bool_]:
    """Where the question's speaker or role speaks; nowhere when that tells no turns apart."""
    speaker, role = table.speaker[at], table.role[at]
    match = np.zeros(len(role), dtype=np.bool_)
    for code in reading.speakers:
        match |= speaker == code
    for code in reading.roles:
        match |= role == code
    return np.zeros_like(match) if match.all() else match


def _match_spans(
    ts: NDArray[np.float64],
    spans: tuple[tuple[float, float], ...],
    weights: Weights,
    naming: NDArray[np.bool_] | None,
    elsewhen: NDArray[np.bool_] | None,
    at: Rows | slice,
) -> NDArray[np.float32]:
    inside = np.zeros(len(ts), dtype=np.float32)
    for start, end in spans:
        inside[(ts >= start) & (ts < end + weights.time_after)] = 1.0
    if elsewhen is not None:
        inside[elsewhen[at]] *= np.float32(weights.elsewhen)
    if naming is not None:
        inside[naming[at]] = 1.0
    return inside
