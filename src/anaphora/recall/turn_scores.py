"""The score of every turn that a question asks about: by meaning, words, speakers, times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.language.analyser import analyse, query_words
from anaphora.rank.embedders import embedder_reads
from anaphora.rank.question import (
    TEXTS,
    QuestionReading,
    find_bearer,
    match_misspelt,
    match_shortened,
    read_question,
    unknown_names,
)
from anaphora.rank.stages import spread_over_stages
from anaphora.rank.statements import read_cues
from anaphora.rank.turn_table import TurnTable, speakers_present
from anaphora.rank.turns import TurnScores, Weights, score_by, score_turns
from anaphora.recall.query import query_vector
from anaphora.recall.turn_candidates import QuestionRun
from anaphora.recall.view_cache import ViewCache

if TYPE_CHECKING:
    from anaphora.embed.service import EmbedderService
    from anaphora.index.turns.index import TurnIndex
    from anaphora.index.turns.view import TurnView
    from anaphora.index.words.lookup import Lookup

_THREADS_KEPT: Final = 256
_NAMES_KEPT: Final = 512
"""Threads whose speakers are remembered between questions, and names, unknown ones included."""

_STEPS: Final = 4
"""Turns that are looked at, back and then forth, for the other one of a conversation."""


@dataclass(frozen=True, slots=True)
class TurnScorer:
    """Scores the turns of one namespace."""

    index: TurnIndex
    embedder: EmbedderService
    weights: Weights
    _speakers: ViewCache[dict[int, str]] = field(default_factory=lambda: ViewCache(_THREADS_KEPT))
    _nicknames: ViewCache[int] = field(default_factory=lambda: ViewCache(_NAMES_KEPT))

    def score(self, run: QuestionRun) -> tuple[str | None, TurnScores]:
        """Score the rows by what the mode asks for, by words alone where vectors cannot be had.

        The first value is the text whose vector was needed.
        """
        view, rows, mode = run.view, run.rows, run.mode
        if mode == "vector":
            cosine = self._compute_cosine(run, run.question.text)
            if cosine is not None:
                return run.question.text, score_by("meaning", cosine, rows=rows)
        only, limit = run.scope
        if mode == "words":
            words = view.words(run.look_up(run.question.asked_words), only)
            return None, score_by("words", words, rows=rows)
        # The speakers of these rows are the same for every question to one view.
        present = self._speakers.of(
            view, only, lambda: speakers_present(view.table, None if only is None else rows)
        )
        nickname_terms = self._find_nicknames(view, run.question.text, present, only)
        reading = read_question(run.question.text, present, run.question.spans, nickname_terms)
        looked_up = run.look_up(reading.words)
        words = view.words(looked_up, only, limit=limit)
        cosine = None if mode == "vector" else self._compute_cosine(run, reading.meaning, words)
        alike = _estimate_meaning(view, looked_up, reading, words, for_all=cosine is None)
        exact = view.exact(looked_up, only) if looked_up.exact else None
        if run.alone and run.naming is not None:
            # What tells of it first, then what was said then, last what told then of other days.
            of_then = run.naming.astype(np.float32)
            if run.elsewhen is not None:
                of_then[rows] = np.maximum(of_then[rows], ~run.elsewhen[rows] / 2)
            exact = np.maximum(of_then, 0.0 if exact is None else exact)
        weights = self.weights
        if not embedder_reads(self.embedder.name, run.question.text):
            weights = replace(weights, words_half=weights.words_half_alone)
        titles = view.titles(looked_up)
        scores = score_turns(
            view.table,
            reading,
            words,
            cosine,
            weights,
            rows=None if run.is_whole else rows,
            alike=alike,
            titles=titles,
            exact=exact,
            naming=run.naming,
            elsewhen=run.elsewhen,
        )
        if read_cues(run.question.text).order:
            scores = spread_over_stages(view.table, scores, self.weights)
        return None if cosine is None else reading.meaning, scores

    def _find_nicknames(
        self, view: TurnView, question: str, present: Mapping[int, str], only: int | None
    ) -> dict[str, int]:
        """Nicknames in `question` to codes of `present`; `only` is the one conversation, if any."""
        nicknames: dict[str, int] = {}
        for name in unknown_names(question, present):
            code = match_shortened(name, present)
            if code is None:
                code = self._nicknames.get(view, (name, only))
                if code is None:
                    words = view.words(query_words(name), only, limit=TEXTS)
                    # BM25 of one word: the shorter the turn, the better, and greetings are short.
                    rows = np.argsort(-words, kind="stable")[: min(TEXTS, np.count_nonzero(words))]
                    if len(rows):
                        writers = view.table.speaker[rows].tolist()
                        addressees = [find_addressee(view.table, row) for row in rows.tolist()]
                        texts = self.index.texts_of(view, rows)
                        speaker = find_bearer(name, zip(texts, writers, addressees, strict=True))
                    else:
                        speaker = match_misspelt(name, present)
                    code = -1 if speaker is None else speaker
                    self._nicknames.put(view, (name, only), code)
            if code in present:
                nicknames[name] = code
        return nicknames

    def _compute_cosine(
        self, run: QuestionRun, text: str, words: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32] | None:
        vector = query_vector(self.embedder, text, run.degraded)
        if vector is None:
            return None
        view, rows = run.view, run.rows
        if len(rows) == len(view):
            cosine = view.cosine(vector, also=None if words is None else np.flatnonzero(words > 0))
        else:
            cosine = view.cosine(vector, rows)
        # By cosine alone, it is the embedder's own.
        return cosine if run.mode == "vector" else self.embedder.calibration.asked.apply(cosine)


def _estimate_meaning(
    view: TurnView,
    looked_up: Lookup,
    reading: QuestionReading,
    words: NDArray[np.float32],
    *,
    for_all: bool,
) -> NDArray[np.float32] | None:
    """What words tell of the meaning of turns without a vector, or of all turns."""
    if not for_all and view.is_embedded:
        return None
    similarity = view.alike(looked_up, words, len(analyse(reading.meaning)))
    if not for_all:
        similarity[view.embedded] = 0.0
    return similarity


def find_addressee(table: TurnTable, row: int) -> int:
    """The code of the last speaker before the turn, else the first after it, or -1; not its own."""
    speaker = int(table.speaker[row])
    for column in (table.previous, table.following):
        beside = row
        for _ in range(_STEPS):
            beside = int(column[beside])
            if beside < 0:
                break
            if (code := int(table.speaker[beside])) not in (speaker, -1):
                return code
    return -1
