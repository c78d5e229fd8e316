"""The words of a project's sections and notes, field by field: path, title, body.

For rows, the BM25 of each field and the share of the terms' mass that a row holds anywhere. An
inverted index finds candidates; what each of them holds is looked up in `forward`, whose lines lie
beside the segment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.sections.forward import (
    NOTHING,
    Block,
    Forward,
    block_of,
    joined,
    load_lines,
    save_block,
    score_lines,
)
from anaphora.index.words.index import WordIndex
from anaphora.index.words.manifest import Document, Manifest, SegmentFolder
from anaphora.index.words.postings import idf
from anaphora.index.words.segment import WORD_INDEX_ERRORS
from anaphora.rank.context.scores import FieldScores

FIRST: Final = {"path": 2.0, "title": 2.0, "body": 1.0}
"""How fields weigh when candidates are looked for: a name says more than a mention."""
FIELDS: Final = tuple(FIRST)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def section_segments(
    folder: Path, key_tag: str = "", check: Callable[[], None] = lambda: None
) -> SegmentFolder:
    """Where the words of sections and notes lie, with their lines."""
    return SegmentFolder(folder, "sections.json", FIELDS, key_tag, check, beside=_save)


def _save(folder: Path, first: int, documents: Sequence[Document]) -> None:
    save_block(folder, first, block_of(document.texts for document in documents))


def _load(folder: SegmentFolder, manifest: Manifest) -> Forward:
    """The lines beside a segment. Raises ValueError or OSError where they are not complete."""
    forward = load_lines(folder.path / manifest.meta.generation)
    if len(forward) != manifest.meta.count:
        raise ValueError("the lines of the word index on disk are not complete")
    return forward


def look_at(folder: SegmentFolder) -> tuple[int, str | None]:
    """How many documents lie in `folder`, and what is wrong with them; nothing there is well."""
    manifest, problem = folder.read(), folder.problem()
    if problem is None and manifest.meta.generation:
        try:
            _load(folder, manifest)
        except WORD_INDEX_ERRORS as error:
            problem = str(error)
    return (manifest.meta.count if problem is None else 0), problem


class SectionWords:
    """Scores the words of one namespace's sections and notes. One thread at a time."""

    def __init__(self, index: WordIndex) -> None:
        self.index = index
        self._forward = Forward()
        # Of documents that wait in memory, made when they are scored.
        self._lines: dict[int, tuple[Document, Block]] = {}

    def open(self, manifest: Manifest, row_of: Callable[[str], int], known_upto: int) -> bool:
        """As `WordIndex.open`, with the lines beside the segment."""
        if not manifest.meta.generation:
            return False
        try:
            forward = _load(self.index.folder, manifest)
        except WORD_INDEX_ERRORS:
            return False
        if not self.index.open(manifest, row_of, known_upto):
            return False
        self._forward, self._lines = forward, {}
        return True

    def weights(self, terms: Mapping[str, float]) -> dict[str, float]:
        """Each term's weight times its IDF: of those too that no row holds, which are the rarest.

        A term is as rare as it is in bodies: each section of a file repeats the file's path, so
        that paths would make a large file's own name a common word. Keys are the terms as the index
        has them (keyed ones in a sealed home).
        """
        statistics, weights = self.index.statistics, {}
        for token, weight in terms.items():
            term = self.index.term(token)
            path, title, body = (statistics.holding(term, at) for at in range(len(FIELDS)))
            holding = body or max(path, title)
            weights[term] = weight * idf(max(statistics.documents, holding), holding)
        return weights

    def best(self, weights: Mapping[str, float], limit: int) -> Ints:
        """Rows that match a term in any field, best first by the fields' weighted BM25.

        At most `limit` of the segment and `limit` of those in memory.
        """
        parts = [{t: f * w for t, w in weights.items() if f * w > 0.0} for f in FIRST.values()]
        rows, scores = self.index.in_memory(parts)
        order = np.lexsort((rows, -scores))[:limit]
        statistics, count = self.index.statistics, self.index.count
        boosts = {
            name: statistics.boosts(weights, at, factor)
            for at, (name, factor) in enumerate(FIRST.items())
        }
        # What counts no more still takes places among the best.
        stored, stored_scores = self.index.search(boosts, min(limit + self.index.gone, count))
        alive = stored >= 0
        rows = np.concatenate((stored[alive][:limit], rows[order]))
        scores = np.concatenate((stored_scores[alive][:limit], scores[order]))
        return rows[np.lexsort((rows, -np.round(scores, 4)))]

    def scores(self, weights: Mapping[str, float], rows: Ints) -> FieldScores:
        """What each of `rows` matches, shapes of `rows`: the same wherever a document lies."""
        averages, numbers = self._averages(), self.index.numbers(rows)
        stored = numbers > 0
        scores = np.zeros((4, len(rows)))
        if stored.any():
            block = self._forward.block(numbers[stored] - 1)
            scores[:, stored] = score_lines(block, weights, averages)
        if not stored.all():
            block = joined(self._lines_of(row) for row in rows[~stored].tolist())
            scores[:, ~stored] = score_lines(block, weights, averages)
        return FieldScores(*scores)

    def _lines_of(self, row: int) -> Block:
        document = self.index.document(row)
        if document is None:
            return NOTHING
        cached = self._lines.get(row)
        if cached is None or cached[0] is not document:
            cached = self._lines[row] = (document, block_of([document.texts]))
        return cached[1]

    def _averages(self) -> Floats:
        """How long each field is on average; what counts no more is among them."""
        statistics = self.index.statistics
        tokens = np.array([statistics.tokens(at) for at in range(len(FIELDS))], np.float64)
        averages: Floats = np.maximum(tokens / max(1, statistics.documents), 1.0)
        return averages
