"""A segment: words on disk under tantivy, in one field or several, found by BM25.

Documents have a number (turns: the row id), and may belong to a group (turns: the thread). A
segment that was finished as one `SegmentMeta` is never answered from as another.
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
"""What tantivy may raise for files that are torn, gone or locked."""

# Documents that are named one by one in a query: 24 take 0.1 ms, as a set 0.5 to 1.
_NAMED: Final = 400

_TERMS: Final = 4_096
"""Terms whose numbers of documents are remembered."""

Numbers = NDArray[np.int64]
Scores = NDArray[np.float64]
Boosts = Mapping[str, Mapping[str, float]]
"""How much each term counts in each field, beside the segment's own IDF."""


@dataclass(frozen=True, slots=True)
class SegmentMeta:
    """What lies in the folder `generation`: `count` documents, the last of number `upto`.

    `tokens` are those of each field; `signature` is over the files: another one means that a write
    did not end.
    """

    generation: str = ""
    upto: int = 0
    count: int = 0
    tokens: tuple[int, ...] = ()
    signature: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """Documents `first` to `upto` of a generation, all of them; `tokens` are those of each field.

    `segments` are tantivy's, each with its number of documents; `files` are theirs, and `signature`
    is over these.
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
    """A document to be written: each field's tokens joined by spaces, and its words as written."""

    number: int
    texts: Sequence[str]
    group: int | None = None
    forms: str = ""


class Segment:
    """A segment opened for search; immutable."""

    def __init__(
        self,
        folder: Path,
        meta: SegmentMeta,
        fields: Sequence[str],
        parts: tuple[Part, ...] = (),
    ) -> None:
        """Open it. Raises ValueError or OSError where the files are not those of `meta`.

        Where it has `parts`, somebody has looked at their files.
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
        """The words of its documents as they are written; read once."""
        if self._vocabulary is None:
            terms = self._searcher.terms_with_prefix(_FORMS, "")
            self._vocabulary = Vocabulary(word for word, _ in terms)
        return self._vocabulary

    def holding(self, term: str, field: int = 0) -> int:
        """How many documents hold a term in a field."""
        # A question asks for a term several times, and for those of all languages each time.
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

        query = self._any_term(boosts)
        if query is None or limit < 1:
            return np.empty(0, np.int64), np.empty(0)
        inside = None
        if group is not None:
            inside = tantivy.Query.term_query(self._schema, "group", group)
        elif among is not None:
            inside = self._any_of(among)
        if inside is not None:
            only = tantivy.Query.const_score_query(inside, 0.0)
            clauses = [(tantivy.Occur.Must, query), (tantivy.Occur.Must, only)]
            query = tantivy.Query.boolean_query(clauses)
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
                    # Of plain terms alone tantivy skips what cannot be among the best.
                    query = tantivy.Query.boost_query(query, boost)
                parts.append((tantivy.Occur.Should, query))
        return tantivy.Query.boolean_query(parts) if parts else None

    def _any_of(self, numbers: Sequence[int]) -> tantivy.Query:
        from tantivy import Occur, Query

        if len(numbers) > _NAMED:
            return Query.term_set_query(self._schema, "number", list(numbers))
        # A set is looked up by an automaton over every document there is: docs/decisions/0022.
        clauses = (Query.term_query(self._schema, "number", number) for number in numbers)
        return Query.boolean_query([(Occur.Should, query) for query in clauses])


def write_segment(
    folder: Path, seen: SegmentMeta, fields: Sequence[str], documents: Iterable[NumberedTexts]
) -> SegmentMeta:
    """Add documents behind those of `seen`, in `folder`; what lies there then.

    Raises one of WORD_INDEX_ERRORS where it cannot be written, or another process writes it.
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
    """One number over the names and bytes of the files in `folder`."""
    names = sorted(path.name for path in folder.iterdir())
    return signature_of(folder, (name for name in names if not name.endswith(".lock")))


def signature_of(folder: Path, names: Iterable[str]) -> int:
    """One number over some files in `folder`, in this order: their names and bytes.

    A file is read once, and again when it was changed.
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
    # Our analyser is the only one: tokens never hold white space.
    for name in fields:
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="freq")
    # Looked through for what is misspelt, never scored.
    builder.add_text_field(_FORMS, tokenizer_name="whitespace", index_option="basic")
    builder.add_unsigned_field("number", indexed=True, fast=True)
    builder.add_unsigned_field("group", indexed=True)
    return builder.build()
