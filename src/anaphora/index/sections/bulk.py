"""The bulk of the sections' words on disk: tantivy, one field each for path, title and body.

In: documents, weighted terms. Out: BM25 scores by document number; a manifest of what is there.
It never knows rows, and nothing of it is truth: a folder that does not fit its manifest is made
again. Only one process may write at a time.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.sections.forward import lines_of, load_lines, save_lines
from anaphora.index.turns.words import WORD_INDEX_ERRORS, signature
from anaphora.text import ANALYSER, analyse

if TYPE_CHECKING:
    import tantivy

__all__ = [
    "FIELDS",
    "FoundSections",
    "SectionBulk",
    "SectionDocument",
    "SectionMeta",
    "document_of",
    "look_at",
    "read_bulk",
    "remove",
    "remove_foreign",
    "write_bulk",
]

FIELDS: Final = ("path", "title", "body")

_MANIFEST: Final = "sections.json"
_FORM: Final = "2"
_DIGITS: Final = 16
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
        return tuple(text.count(" ") + 1 if text else 0 for text in self.texts)


@dataclass(frozen=True, slots=True)
class SectionMeta:
    """The files on disk: folder `generation`, `count` documents, tokens by field, `signature`."""

    generation: str = ""
    count: int = 0
    tokens: tuple[int, ...] = (0, 0, 0)
    signature: int = 0


@dataclass(frozen=True, slots=True)
class SectionBulk:
    """What is on disk: document n (from 1) is `ids[n - 1]` with tokens of that digest.

    `upto` is the number of truth that it was written at: what changed later may differ.
    """

    meta: SectionMeta = field(default_factory=SectionMeta)
    upto: int = -1
    ids: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()


def document_of(
    key: str, path: str, title: str, body: str, term: Callable[[str], str] | None = None
) -> SectionDocument:
    """Analyse a document; `term` replaces each token (a sealed home keeps keyed hashes of them).

    `path` is a file's path or a note's source, `title` a heading path or qualified symbol.
    """

    def tokens(text: str) -> str:
        found = analyse(text)
        return " ".join(found if term is None else [term(token) for token in found])

    texts = (tokens(path), tokens(title), tokens(body))
    joined = "\n".join(texts).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(joined, digest_size=_DIGITS // 2)
    return SectionDocument(key, *texts, digest.hexdigest())


def read_bulk(folder: Path, mark: str = "") -> SectionBulk:
    """What the manifest in `folder` says; an empty bulk where there is none that can be read.

    `mark` tells words of one key from those of another, and from clear ones ("").
    """
    try:
        found = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        if found["form"] != _form(mark):
            return SectionBulk()
        generation, count, tokens, signed = found["meta"]
        digests = found["digests"]
        cut = tuple(digests[at : at + _DIGITS] for at in range(0, len(digests), _DIGITS))
        meta = SectionMeta(generation, count, tuple(tokens), signed)
        bulk = SectionBulk(meta, found["upto"], tuple(found["ids"]), cut)
    except (OSError, ValueError, KeyError, TypeError):
        return SectionBulk()
    whole = meta.count == len(bulk.ids) == len(cut) and len(meta.tokens) == len(FIELDS)
    return bulk if whole else SectionBulk()


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


def remove_foreign(folder: Path, mark: str) -> None:
    """Remove words that a home of another key, or a clear one, has left in a sealed home."""
    if mark and (folder / _MANIFEST).exists() and not read_bulk(folder, mark).meta.generation:
        shutil.rmtree(folder, ignore_errors=True)


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
    meta = seen.meta
    if meta.generation and _signature(folder / meta.generation) != meta.signature:
        return None
    generation = meta.generation or uuid.uuid4().hex
    place = folder / generation
    lengths = np.array([d.lengths for d in documents], np.int64).reshape(-1, len(FIELDS))
    tokens = tuple((np.array(meta.tokens, np.int64) + lengths.sum(axis=0)).tolist())
    try:
        _extend(place, meta.count + 1, documents)
        save_lines(place, meta.count + 1, [lines_of(one.texts) for one in documents])
        count = meta.count + len(documents)
        bulk = SectionBulk(
            SectionMeta(generation, count, tokens, signature(place)),
            upto,
            (*seen.ids, *(d.key for d in documents)),
            (*seen.digests, *(d.digest for d in documents)),
        )
        _write_manifest(folder, bulk, mark)
    except WORD_INDEX_ERRORS:
        shutil.rmtree(place, ignore_errors=True)
        return None
    _remove_all_but(folder, generation)
    return bulk


def remove(folder: Path, generation: str, mark: str = "") -> None:
    """Remove one generation, and the manifest if it is about that one."""
    if read_bulk(folder, mark).meta.generation == generation:
        with suppress(OSError):
            (folder / _MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(folder / generation, ignore_errors=True)


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


def _form(mark: str) -> str:
    return f"{_FORM}/{ANALYSER}{mark}"


def _write_manifest(folder: Path, bulk: SectionBulk, mark: str) -> None:
    meta = bulk.meta
    value = {
        "form": _form(mark),
        "meta": [meta.generation, meta.count, meta.tokens, meta.signature],
        "upto": bulk.upto,
        "ids": bulk.ids,
        "digests": "".join(bulk.digests),
    }
    fresh = folder / f"{_MANIFEST}.new"
    fresh.write_text(json.dumps(value), encoding="utf-8")
    fresh.replace(folder / _MANIFEST)


def _remove_all_but(folder: Path, generation: str) -> None:
    """Remove other generations: they can hold words that were forgotten."""
    with suppress(OSError):
        for place in list(folder.iterdir()):
            if place.is_dir() and place.name != generation:
                shutil.rmtree(place, ignore_errors=True)


def _signature(folder: Path) -> int:
    try:
        return signature(folder)
    except OSError:
        return -1


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
