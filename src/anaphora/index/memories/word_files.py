"""The words of memories on disk: one field in tantivy, a generation at a time.

In: a folder, documents in order. Out: what lies there, or that it cannot be used. It never reads
truth; only one process may write at a time.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from anaphora.core.analyser import ANALYSER
from anaphora.index.generations import WordBulk, WordFiles, digest_of, length_of, tokens_of
from anaphora.index.turns.words import WordsMeta, extend_main, signature


class CutShort(Exception):
    """A rewrite of the words ended before it was whole: what it began with has been forgotten."""


@dataclass(frozen=True, slots=True)
class Document:
    """A memory's text as the word index has it: tokens joined by spaces, and their digest."""

    key: str
    tokens: str
    digest: str

    @property
    def length(self) -> int:
        """How many tokens it has."""
        return length_of(self.tokens)


@dataclass(frozen=True, slots=True)
class Bulk(WordBulk[WordsMeta]):
    """What is on disk: document n (from 1) is memory `ids[n - 1]`."""

    meta: WordsMeta = field(default_factory=WordsMeta)


FILES: Final = WordFiles("memories.json", ("analyser", ANALYSER), Bulk, WordsMeta)
read_bulk = FILES.read
remove = FILES.remove
remove_foreign = FILES.remove_foreign


def document_of(record_id: str, text: str, term: Callable[[str], str] | None = None) -> Document:
    """Analyse a text; `term` replaces each token (a sealed home keeps keyed hashes of them)."""
    tokens = tokens_of(text, term)
    return Document(record_id, tokens, digest_of(tokens))


def write_bulk(
    folder: Path,
    seen: Bulk,
    upto: int,
    documents: Sequence[Document],
    mark: str = "",
    stop: threading.Event | None = None,
) -> Bulk | None:
    """Write documents behind those of `seen`, or a new generation where `seen` is empty.

    None where the disk refuses. Only one process may be in here at a time. Raises `CutShort`, and
    leaves nothing of a new generation, when `stop` is set before it is whole.
    """

    def extend(place: Path) -> WordsMeta:
        count = seen.meta.count + len(documents)
        try:
            # Ours are the only documents: the code by which turns are found by thread is the id.
            going = enumerate(_until(stop, documents), seen.meta.count + 1)
            extend_main(place, ((n, n, d.tokens) for n, d in going))
            tokens = seen.meta.tokens + sum(d.length for d in documents)
            meta = WordsMeta(place.name, count, count, tokens, signature(place))
            _check(stop)
        except CutShort:
            shutil.rmtree(place, ignore_errors=True)
            raise
        return meta

    return FILES.write(folder, seen, upto, documents, mark, extend)


def _until(stop: threading.Event | None, documents: Sequence[Document]) -> Iterator[Document]:
    for document in documents:
        _check(stop)
        yield document


def _check(stop: threading.Event | None) -> None:
    if stop is not None and stop.is_set():
        raise CutShort
