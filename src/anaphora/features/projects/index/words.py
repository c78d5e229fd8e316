"""The words of a project's sections and notes, field by field: path, title, body.

For each row, the BM25 of each field and the share of the terms' mass that the row matches in any
field. An inverted index finds candidates; their words are read from the forward index (`forward`),
which is stored beside the segment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.features.projects.index.forward import (
    NOTHING,
    Forward,
    TermBlock,
    block_of,
    join_blocks,
    load_lines,
    save_block,
    score_lines,
)
from anaphora.features.projects.ranking.scores import FieldScores
from anaphora.index.words.index import WordIndex
from anaphora.index.words.manifest import IndexedDocument, SegmentFolder, WordManifest
from anaphora.index.words.postings import idf
from anaphora.index.words.segment import WORD_INDEX_ERRORS

FIRST: Final = {"path": 2.0, "title": 2.0, "body": 1.0}
"""The weights of fields in the search for candidates: a name says more than a mention."""
FIELDS: Final = tuple(FIRST)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def section_segments(
    folder: Path, key_tag: str = "", check: Callable[[], None] = lambda: None
) -> SegmentFolder:
    """The folder with the words of sections and notes, and their forward index."""

    def save(folder: Path, first: int, documents: Sequence[IndexedDocument]) -> None:
        save_block(folder, first, block_of(document.texts for document in documents))

    return SegmentFolder(folder, "sections.json", FIELDS, key_tag, check, beside=save)


def _load(folder: SegmentFolder, manifest: WordManifest) -> Forward:
    """The forward index beside a segment. Raises ValueError or OSError if it is incomplete."""
    forward = load_lines(folder.path / manifest.meta.generation)
    if len(forward) != manifest.meta.count:
        raise ValueError("the lines of the word index on disk are not complete")
    return forward


def check_files(folder: SegmentFolder) -> tuple[int, str | None]:
    """How many documents `folder` has, and the problem with them; an empty folder is well."""
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
        # The blocks of waiting documents, made when they are scored.
        self._lines: dict[int, tuple[IndexedDocument, TermBlock]] = {}

    def open(self, manifest: WordManifest, row_of: Callable[[str], int], known_upto: int) -> bool:
        """As `WordIndex.open`, with the forward index beside the segment."""
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
        """Each term's weight times its IDF; terms that no row has count as the rarest.

        The IDF is that in bodies: each section of a file repeats the file's path, so that paths
        would make the name of a large file a common word. Keys are the terms of the index (keyed
        in a sealed home).
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

        At most `limit` from the segment and `limit` from memory.
        """
        parts = [{t: f * w for t, w in weights.items() if f * w > 0.0} for f in FIRST.values()]
        rows, scores = self.index.in_memory(parts)
        order = np.lexsort((rows, -scores))[:limit]
        statistics, count = self.index.statistics, self.index.count
        boosts = {
            name: statistics.boosts(weights, at, factor)
            for at, (name, factor) in enumerate(FIRST.items())
        }
        # Documents that no longer count can still be among the best of the segment.
        stored_rows, stored_scores = self.index.search(boosts, min(limit + self.index.gone, count))
        alive = stored_rows >= 0
        rows = np.concatenate((stored_rows[alive][:limit], rows[order]))
        scores = np.concatenate((stored_scores[alive][:limit], scores[order]))
        return rows[np.lexsort((rows, -np.round(scores, 4)))]

    def scores(self, weights: Mapping[str, float], rows: Ints) -> FieldScores:
        """The scores of each of `rows`: the same wherever a document is stored."""
        statistics, numbers = self.index.statistics, self.index.numbers(rows)
        # The average lengths of the fields, including documents that no longer count.
        tokens = np.array([statistics.tokens(at) for at in range(len(FIELDS))], np.float64)
        averages = np.maximum(tokens / max(1, statistics.documents), 1.0)
        is_stored = numbers > 0
        scores = np.zeros((4, len(rows)))
        if is_stored.any():
            block = self._forward.block(numbers[is_stored] - 1)
            scores[:, is_stored] = score_lines(block, weights, averages)
        if not is_stored.all():
            block = join_blocks(self._lines_of(row) for row in rows[~is_stored].tolist())
            scores[:, ~is_stored] = score_lines(block, weights, averages)
        return FieldScores(*scores)

    def _lines_of(self, row: int) -> TermBlock:
        document = self.index.document(row)
        if document is None:
            return NOTHING
        cached_line = self._lines.get(row)
        if cached_line is None or cached_line[0] is not document:
            cached_line = self._lines[row] = (document, block_of([document.texts]))
        return cached_line[1]
