"""The bulk of the sections' words on disk: tantivy, one field each for path, title and body.

In: documents, weighted terms. Out: BM25 scores by document number; what lies there.
It never knows rows, and nothing of it is truth: a folder that does not fit its manifest is made
again. Only one process may write at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.core.analyser import ANALYSER
from anaphora.index.generations import WordBulk, WordFiles, digest_of, length_of, tokens_of
from anaphora.index.sections.forward import lines_of, load_lines, save_lines
from anaphora.index.turns.words import WORD_INDEX_ERRORS, signature

if TYPE_CHECKING:
    import tantivy

FIELDS: Final = ("path", "title", "body")

_FORM: Final = "2"
_HEAP: Final = 32_000_000


@dataclass(frozen=True, slots=True)
class SectionDocument:
    """A section or note as the word index has it: each field's tokens joined by spaces."""

    key: str
    path: str
    title: str
    body: str
    digest: str

    @property
    def texts(self) -> tuple[str, str, str]:
        """The fields in the order of `FIELDS`."""
        return (self.path, self.title, self.body)

    @property
    def lengths(self) -> tuple[int, ...]:
        """How many tokens each field has."""
        return tuple(map(length_of, self.texts))


@dataclass(frozen=True, slots=True)
class SectionMeta:
    """The files on disk: folder `generation`, `count` documents, tokens by field, `signature`."""

    generation: str = ""
    count: int = 0
    tokens: tuple[int, ...] = (0, 0, 0)
    signature: int = 0


@dataclass(frozen=True, slots=True)
class SectionBulk(WordBulk[SectionMeta]):
    """What is on disk: document n (from 1) is section or note `ids[n - 1]`."""

    meta: SectionMeta = field(default_factory=SectionMeta)


def _meta(generation: str, count: int, tokens: Sequence[int], signed: int) -> SectionMeta:
    if len(tokens) != len(FIELDS):
        raise ValueError("words of other fields")
    return SectionMeta(generation, count, tuple(tokens), signed)


FILES: Final = WordFiles("sections.json", ("form", f"{_FORM}/{ANALYSER}"), SectionBulk, _meta)
read_bulk = FILES.read
remove = FILES.remove
remove_foreign = FILES.remove_foreign


def document_of(
    key: str, path: str, title: str, body: str, term: Callable[[str], str] | None = None
) -> SectionDocument:
    """Analyse a document; `term` replaces each token (a sealed home keeps keyed hashes of them).

    `path` is a file's path or a note's source, `title` a heading path or qualified symbol.
    """

    texts = (tokens_of(path, term), tokens_of(title, term), tokens_of(body, term))
    return SectionDocument(key, *texts, digest_of("\n".join(texts)))


def look_at(folder: Path, mark: str = "") -> tuple[int, str | None]:
    """How many documents lie in `folder`, and what is wrong with them; nothing there is well."""
    bulk = read_bulk(folder, mark)
    if not bulk.meta.generation:
        torn = folder.is_dir() and any(folder.iterdir())
        return 0, "its list of documents cannot be read" if torn else None
    try:
        FoundSections(folder / bulk.meta.generation, bulk.meta)
    except WORD_INDEX_ERRORS as error:
        return 0, str(error)
    return bulk.meta.count, None


def write_bulk(
    folder: Path,
    seen: SectionBulk,
    upto: int,
    documents: Sequence[SectionDocument],
    mark: str = "",
) -> SectionBulk | None:
    """Write documents behind those of `seen`, or a new generation where `seen` is empty.

    A document that replaces one of `seen` is written behind it under the same key: the later one
    counts. None where the disk refuses. Only one process may be in here at a time.
    """

    def extend(place: Path) -> SectionMeta:
        lengths = np.array([d.lengths for d in documents], np.int64).reshape(-1, len(FIELDS))
        tokens = tuple((np.array(seen.meta.tokens, np.int64) + lengths.sum(axis=0)).tolist())
        _extend(place, seen.meta.count + 1, documents)
        save_lines(place, seen.meta.count + 1, [lines_of(one.texts) for one in documents])
        return SectionMeta(place.name, seen.meta.count + len(documents), tokens, signature(place))

    return FILES.write(folder, seen, upto, documents, mark, extend)


class FoundSections:
    """One generation of the bulk on disk, opened for search; immutable once opened."""

    def __init__(self, folder: Path, meta: SectionMeta) -> None:
        """Open it. Raises ValueError or OSError where the files are not those of `meta`."""
        import tantivy

        if signature(folder) != meta.signature:
            raise ValueError("the word index on disk is not the one that was finished")
        index = tantivy.Index.open(str(folder))
        index.config_reader(reload_policy="manual", num_warmers=0)
        self._schema = index.schema
        self._searcher = index.searcher()
        if self._searcher.num_docs != meta.count:
            raise ValueError("the word index on disk has lost documents")
        self.forward = load_lines(folder)
        if len(self.forward) != meta.count:
            raise ValueError("the lines of the word index on disk are not complete")
        self.meta = meta

    def holding(self, field: str, term: str) -> int:
        """How many documents hold a term in a field."""
        return int(self._searcher.doc_freq(field, term))

    def search(
        self, boosts: Mapping[str, Mapping[str, float]], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Numbers and scores of the best `limit` documents; `boosts` by field and term."""
        words = self._words(boosts)
        return self._run(words, limit) if words is not None and limit > 0 else _NOTHING

    def _run(
        self, query: tantivy.Query, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        hits = self._searcher.search(query, limit=limit, count=False).hits
        ids = self._searcher.fast_field_values("number", [address for _, address in hits])
        numbers = np.array([int(one or 0) for one in ids], np.int64)
        return numbers, np.array([score for score, _ in hits], np.float64)

    def _words(self, boosts: Mapping[str, Mapping[str, float]]) -> tantivy.Query | None:
        import tantivy

        parts = [
            (tantivy.Occur.Should, self._term(field, term, boost))
            for field, terms in boosts.items()
            for term, boost in terms.items()
        ]
        return tantivy.Query.boolean_query(parts) if parts else None

    def _term(self, field: str, term: str, boost: float) -> tantivy.Query:
        import tantivy

        query = tantivy.Query.term_query(self._schema, field, term, "freq")
        return tantivy.Query.boost_query(query, boost)


_NOTHING: Final = (np.empty(0, np.int64), np.empty(0))


def _extend(folder: Path, first: int, documents: Sequence[SectionDocument]) -> None:
    import tantivy

    folder.mkdir(parents=True, exist_ok=True)
    index = tantivy.Index(_schema(), path=str(folder))
    writer = index.writer(_HEAP, 1)
    for number, document in enumerate(documents, first):
        made = tantivy.Document()
        made.add_unsigned("number", number)
        for name, text in zip(FIELDS, document.texts, strict=True):
            made.add_text(name, text)
        writer.add_document(made)
    writer.commit()
    writer.wait_merging_threads()


def _schema() -> tantivy.Schema:
    import tantivy

    builder = tantivy.SchemaBuilder()
    # Our analyser is the only one: tokens never hold white space.
    for name in FIELDS:
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="freq")
    builder.add_unsigned_field("number", indexed=True, fast=True)
    return builder.build()
