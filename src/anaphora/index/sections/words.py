"""The bulk of the sections' words on disk: tantivy, one field each for path, title and body.

In: documents, weighted terms. Out: BM25 scores by document number; what lies there.
It never knows rows, and nothing of it is truth: a folder that does not fit its manifest is made
again. Only one process may write at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.core.text import ANALYSER
from anaphora.index.sections.forward import (
    NOTHING,
    FieldScores,
    Lines,
    block_of,
    lines_of,
    load_lines,
    save_lines,
    score_lines,
)
from anaphora.index.words.manifest import WordBulk, WordFiles, digest_of, length_of, tokens_of
from anaphora.index.words.rows import WordRows
from anaphora.index.words.segment import (
    WORD_INDEX_ERRORS,
    MemoryPostings,
    idf,
    signature,
    tail_scores,
)

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


def look_at(folder: Path, key_tag: str = "") -> tuple[int, str | None]:
    """How many documents lie in `folder`, and what is wrong with them; nothing there is well."""
    bulk = read_bulk(folder, key_tag)
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
    key_tag: str = "",
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

    return FILES.write(folder, seen, upto, documents, key_tag, extend)


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


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST: Final = {"path": 2.0, "title": 2.0, "body": 1.0}
"""How fields weigh when candidates are looked for: a name says more than a mention."""


class SectionWords(
    WordRows[SectionBulk, SectionDocument, FoundSections, dict[str, MemoryPostings]]
):
    """The words of one namespace's sections and notes, by row. One thread at a time."""

    def __init__(
        self, folder: Path, term: Callable[[str], str] | None = None, key_tag: str = ""
    ) -> None:
        super().__init__(folder, FILES, term, key_tag)
        self._tail_lines: dict[int, Lines] = {}
        self._lengths = np.zeros((len(FIELDS), 0), np.int32)

    def _opened(self, place: Path, bulk: SectionBulk) -> FoundSections:
        return FoundSections(place, bulk.meta)

    @property
    def gone(self) -> int:
        """How many documents of the bulk count no more: with many, it is worth writing anew."""
        return len(self.bulk.ids) - len(self._doc_of)

    def weights(self, terms: Mapping[str, float]) -> dict[str, float]:
        """Each term's weight times its IDF: of those too that no row holds, which are the rarest.

        A term is as rare as it is in bodies: each section of a file repeats the file's path, so
        that paths would make a large file's own name a common word. Keys are the terms as the index
        has them (keyed ones in a sealed home).
        """
        tail, main = self._in_tail(), self._main
        documents = len(self._waiting) + (main.meta.count if main is not None else 0)
        found = {}
        for term, weight in terms.items():
            name = term if self._term is None else self._term(term)
            path, title, body = (
                tail[field].holding(name) + (main.holding(field, name) if main else 0)
                for field in FIELDS
            )
            holding = body or max(path, title)
            found[name] = weight * idf(max(documents, holding), holding)
        return found

    def best(
        self, weights: Mapping[str, float], limit: int, fields: Mapping[str, float] = FIRST
    ) -> Ints:
        """Rows that match a term in any field, best first by the fields' weighted BM25.

        At most `limit` of the bulk and `limit` of the tail.
        """
        rows, scores = self._tail_best(weights, limit, fields)
        if self._main is not None:
            boosts = {f: self._boosts(f, weights, fields.get(f, 0.0)) for f in FIELDS}
            # What counts no more still takes places among the best.
            asked = min(limit + self.gone, self._main.meta.count)
            docs, found = self._main.search(boosts, asked)
            at = self._row_of[docs]
            rows = np.concatenate((at[at >= 0][:limit], rows))
            scores = np.concatenate((found[at >= 0][:limit], scores))
        return rows[np.lexsort((rows, -np.round(scores, 4)))]

    def scores(self, weights: Mapping[str, float], rows: Ints) -> FieldScores:
        """What each of `rows` matches, shapes of `rows`: the same wherever a document lies."""
        averages, main = self._averages(), self._main
        docs = np.array([self._doc_of.get(row, 0) for row in rows.tolist()], np.int64)
        stored = (docs > 0) & (main is not None)
        found = np.zeros((4, len(rows)))
        if main is not None and stored.any():
            block = main.forward.block(docs[stored] - 1)
            found[:, stored] = _columns(score_lines(block, weights, averages))
        if not stored.all():
            # The averages have made the tail.
            lines = [self._tail_lines.get(row, NOTHING) for row in rows[~stored].tolist()]
            found[:, ~stored] = _columns(score_lines(block_of(lines), weights, averages))
        return FieldScores(*found)

    def _averages(self) -> Floats:
        """How long each field is on average; what counts no more is among them."""
        tail, meta = self._in_tail(), self.bulk.meta
        count = len(self._waiting) + (meta.count if self._main is not None else 0)
        tokens = [tail[field].tokens + meta.tokens[n] for n, field in enumerate(FIELDS)]
        return np.maximum(np.array(tokens, np.float64) / max(1, count), 1.0)

    def _boosts(self, field: str, weights: Mapping[str, float], factor: float) -> dict[str, float]:
        """What makes the field's own IDF that of all fields, bulk and tail together."""
        main = self._main
        if main is None or factor <= 0.0:
            return {}
        count = main.meta.count
        held = {term: main.holding(field, term) for term, w in weights.items() if w > 0.0}
        return {t: factor * weights[t] / idf(count, n) for t, n in held.items() if n}

    def _tail_best(
        self, weights: Mapping[str, float], limit: int, fields: Mapping[str, float]
    ) -> tuple[Ints, Floats]:
        keys, parts = [np.empty(0, np.int64)], [np.empty(0)]
        for number, name in enumerate(FIELDS):
            factor = fields.get(name, 0.0)
            boosted = {t: factor * w for t, w in weights.items() if factor * w > 0.0}
            some, scores = self._tail_parts(number, name, boosted)
            keys.append(some)
            parts.append(scores.astype(np.float64))
        rows, where = np.unique(np.concatenate(keys), return_inverse=True)
        sums: Floats = np.bincount(where, np.concatenate(parts), len(rows)).astype(np.float64)
        order = np.lexsort((rows, -sums))[:limit]
        return rows[order], sums[order]

    def _tail_parts(
        self, number: int, field: str, weights: Mapping[str, float]
    ) -> tuple[Ints, NDArray[np.float32]]:
        tail, meta = self._in_tail()[field], self.bulk.meta
        if meta.count:
            average = meta.tokens[number] / meta.count
        else:
            average = tail.tokens / max(1, tail.count)
        return tail_scores(tail, weights, max(1.0, average), self._lengths[number])

    def _in_tail(self) -> dict[str, MemoryPostings]:
        if self._tail is None:
            self._tail = {field: MemoryPostings() for field in FIELDS}
            self._tail_lines = {}
            self._lengths = np.zeros((len(FIELDS), 0), np.int32)
            self._add(self._waiting.items())
        return self._tail

    def _add(self, documents: Iterable[tuple[int, SectionDocument]]) -> None:
        tail = self._tail
        if tail is None:
            return
        for row, document in documents:
            if row >= self._lengths.shape[1]:
                grown = np.zeros((len(FIELDS), row + row // 4 + 64), np.int32)
                grown[:, : self._lengths.shape[1]] = self._lengths
                self._lengths = grown
            self._lengths[:, row] = document.lengths
            self._tail_lines[row] = lines_of(document.texts)
            for name, tokens in zip(FIELDS, document.texts, strict=True):
                tail[name].add([(row, tokens)])


def _columns(scores: FieldScores) -> Floats:
    return np.array((scores.path, scores.title, scores.body, scores.held))
