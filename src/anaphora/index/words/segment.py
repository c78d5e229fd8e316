"""A segment: a tantivy index of words on disk, in one field or several, searched by BM25.

Documents have a number (turns: the row id), and may belong to a group (turns: the thread). A
segment is only opened with the `SegmentMeta` that it was finished with.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anaphora.index.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    import tantivy

_HEAP: Final = 32_000_000
_FORMS: Final = "forms"
WORD_INDEX_ERRORS: Final = (ValueError, OSError, RuntimeError)
"""Errors that tantivy may raise for files that are torn, gone or locked."""

# Most documents that a query lists one by one: 24 take 0.1 ms, as a set 0.5 to 1.
_NAMED: Final = 400

_TERMS: Final = 4_096
"""How many document counts of terms are cached."""

Numbers = NDArray[np.int64]
Scores = NDArray[np.float64]
Boosts = Mapping[str, Mapping[str, float]]
"""The factor of each term in each field, applied to the segment's own IDF."""


@dataclass(frozen=True, slots=True)
class SegmentMeta:
    """The content of the folder `generation`: `count` documents, the last with number `upto`.

    `tokens` counts those of each field; `signature` is a checksum of the files: another one means
    that a write was not finished.
    """

    generation: str = ""
    upto: int = 0
    count: int = 0
    tokens: tuple[int, ...] = ()
    signature: int = 0


@dataclass(frozen=True, slots=True)
class SegmentPart:
    """Documents `first` to `upto` of a generation; `tokens` counts those of each field.

    `segments` are tantivy's, each with its number of documents; `files` are their files, and
    `signature` is the checksum of the files.
    """

    first: int
    count: int
    tokens: tuple[int, ...]
    segments: tuple[tuple[str, int], ...]
    files: tuple[str, ...]
    signature: int

    @property
    def upto(self) -> int:
        """The number of the last document."""
        return self.first + self.count - 1


class NumberedTexts(NamedTuple):
    """A document to write: the tokens of each field joined by spaces, and its words as written."""

    number: int
    texts: Sequence[str]
    group: int | None = None
    forms: str = ""


class Segment:
    """A segment that is open for search; immutable."""

    def __init__(
        self,
        folder: Path,
        meta: SegmentMeta,
        fields: Sequence[str],
        parts: tuple[SegmentPart, ...] = (),
    ) -> None:
        """Open it. Raises ValueError or OSError if the files are not those of `meta`.

        With `parts`, the caller has checked their files.
        """
        import tantivy

        if not parts and signature(folder) != meta.signature:
            raise ValueError("the word index on disk is not the one that was finished")
        index = tantivy.Index.open(str(folder))
        index.config_reader(reload_policy="manual", num_warmers=0)
        self._schema = index.schema
        self._searcher = index.searcher()
        if self._searcher.num_docs != meta.count:
            raise ValueError("the word index on disk has lost documents")
        self.fields = tuple(fields)
        self.meta = meta
        self.parts = parts
        self._vocabulary: Vocabulary | None = None
        self._holding: dict[tuple[int, str], int] = {}

    @property
    def vocabulary(self) -> Vocabulary:
        """The words of its documents as written; read once."""
        if self._vocabulary is None:
            terms = self._searcher.terms_with_prefix(_FORMS, "")
            self._vocabulary = Vocabulary(word for word, _ in terms)
        return self._vocabulary

    def holding(self, term: str, field: int = 0) -> int:
        """How many documents have a term in a field."""
        # Cached: a query needs a term several times, and those of all languages each time.
        count = self._holding.get((field, term))
        if count is None:
            if len(self._holding) >= _TERMS:
                self._holding = {}
            count = int(self._searcher.doc_freq(self.fields[field], term))
            self._holding[field, term] = count
        return count

    def search(
        self,
        boosts: Boosts,
        limit: int,
        *,
        group: int | None = None,
        among: Sequence[int] | None = None,
    ) -> tuple[Numbers, Scores]:
        """Numbers and scores of the best `limit` documents: all, of one group, or `among` some."""
        import tantivy
        from tantivy import Query

        query = self._any_term(boosts)
        if query is None or limit < 1:
            return np.empty(0, np.int64), np.empty(0)
        inside = None
        if group is not None:
            inside = Query.term_query(self._schema, "group", group)
        elif among is not None and len(among) > _NAMED:
            inside = Query.term_set_query(self._schema, "number", list(among))
        elif among is not None:
            # An automaton would look a set up in every document there is: docs/decisions/0022.
            number_queries = (Query.term_query(self._schema, "number", number) for number in among)
            inside = Query.boolean_query(
                [(tantivy.Occur.Should, clause) for clause in number_queries]
            )
        if inside is not None:
            only = Query.const_score_query(inside, 0.0)
            clauses = [(tantivy.Occur.Must, query), (tantivy.Occur.Must, only)]
            query = Query.boolean_query(clauses)
        hits = self._searcher.search(query, limit=limit, count=False).hits
        numbers_ = self._searcher.fast_field_values("number", [address for _, address in hits])
        numbers = np.array([int(number or 0) for number in numbers_], np.int64)
        return numbers, np.array([score for score, _ in hits], np.float64)

    def _any_term(self, boosts: Boosts) -> tantivy.Query | None:
        import tantivy

        parts = []
        for field, terms in boosts.items():
            for term, boost in terms.items():
                query = tantivy.Query.term_query(self._schema, field, term, "freq")
                if boost != 1.0:
                    # Only if needed: with plain terms tantivy skips documents that cannot win.
                    query = tantivy.Query.boost_query(query, boost)
                parts.append((tantivy.Occur.Should, query))
        return tantivy.Query.boolean_query(parts) if parts else None


def write_segment(
    folder: Path, seen: SegmentMeta, fields: Sequence[str], documents: Iterable[NumberedTexts]
) -> SegmentMeta:
    """Append documents to those of `seen` in `folder`; the new state.

    Raises one of WORD_INDEX_ERRORS if it cannot be written, or another process is writing.
    """
    import tantivy

    folder.mkdir(parents=True, exist_ok=True)
    index = tantivy.Index(_schema(fields), path=str(folder))
    writer = index.writer(_HEAP, 1)
    tokens = [*seen.tokens] or [0] * len(fields)
    upto, count = seen.upto, seen.count
    for number, texts, group, forms in documents:
        document = tantivy.Document()
        document.add_unsigned("number", number)
        if group is not None:
            document.add_unsigned("group", group)
        for at, (field, text) in enumerate(zip(fields, texts, strict=True)):
            document.add_text(field, text)
            tokens[at] += text.count(" ") + 1 if text else 0
        if forms:
            document.add_text(_FORMS, forms)
        writer.add_document(document)
        upto, count = number, count + 1
    writer.commit()
    writer.wait_merging_threads()
    return SegmentMeta(folder.name, upto, count, tuple(tokens), signature(folder))


def signature(folder: Path) -> int:
    """A checksum of the names and bytes of the files in `folder`."""
    names = sorted(path.name for path in folder.iterdir())
    return signature_of(folder, (name for name in names if not name.endswith(".lock")))


def signature_of(folder: Path, names: Iterable[str]) -> int:
    """A checksum of the names and bytes of these files in `folder`, in this order.

    A file is only read again if it has changed.
    """
    total = 0
    for path in (folder / name for name in names):
        status = path.stat()
        identity = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        total = zlib.crc32(f"{path.name}:{_checksum(path, identity)}".encode(), total)
    return total


@lru_cache(maxsize=4_096)
def _checksum(path: Path, identity: tuple[int, ...]) -> int:
    del identity  # Part of the key: a file of another identity has other bytes.
    return zlib.crc32(path.read_bytes())


def _schema(fields: Sequence[str]) -> tantivy.Schema:
    import tantivy

    builder = tantivy.SchemaBuilder()
    # Texts are analysed already: tokens never contain white space.
    for name in fields:
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="freq")
    # For misspelt words only, never scored.
    builder.add_text_field(_FORMS, tokenizer_name="whitespace", index_option="basic")
    builder.add_unsigned_field("number", indexed=True, fast=True)
    builder.add_unsigned_field("group", indexed=True)
    return builder.build()
