"""The words of the titles of conversations, by their codes: few enough for memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from anaphora.index.turns.records import ThreadCheckpoint
from anaphora.index.words.documents import document_of, titled
from anaphora.index.words.lookup import Lookup
from anaphora.index.words.postings import MemoryPostings, Postings, WordStatistics, idf, score
from anaphora.language.languages.language import language_of


class TitleWords:
    """Indexes the titles of conversations. One thread at a time (the caller holds a lock)."""

    def __init__(self, term_of: Callable[[str], str]) -> None:
        self._term_of = term_of
        self._titles: dict[int, str] = {}
        self.postings = MemoryPostings()

    def follow(self, checkpoints: Iterable[ThreadCheckpoint]) -> None:
        """Update the titles of new or changed checkpoints."""
        anew = False
        for checkpoint in checkpoints:
            old_title = self._titles.get(checkpoint.code, "")
            if old_title == checkpoint.title:
                continue
            anew = anew or bool(old_title)
            self._titles[checkpoint.code] = checkpoint.title
            if not anew:
                self._add(checkpoint.code, checkpoint.title)
        if anew:
            self.postings = MemoryPostings()
            for code, title in self._titles.items():
                self._add(code, title)

    def _add(self, code: int, title: str) -> None:
        if title:
            indexed_title = titled(title, language_of(title))
            tokens = [*map(self._term_of, indexed_title.tokens)]
            self.postings.add(code, document_of((tokens,), indexed_title.forms))


def title_shares(
    titles: Postings, statistics: WordStatistics, lookup: Lookup
) -> Mapping[int, float]:
    """The share (0 to 1) of the mass of all words of a query that a title has, by code: its BM25.

    A word that is nowhere counts as the rarest.
    """
    average = titles.tokens[0] / max(1, titles.count)
    codes, scores = score(titles, lookup.titles, max(1.0, average))
    if not len(codes):
        return {}
    rarest = idf(statistics.documents, 0)
    mass = sum(weight or rarest for weight in lookup.of_words)
    distinct_codes, inverse = np.unique(codes, return_inverse=True)
    shares = np.minimum(np.bincount(inverse, scores, len(distinct_codes)) / mass, 1.0)
    return dict(zip(distinct_codes.tolist(), shares.tolist(), strict=True))
