"""The words of memories on disk: a generation of tantivy, and the manifest beside it.

In: a folder, documents in order. Out: what lies there, or that it cannot be used. The manifest says
which memory each document is, a digest of its tokens, and up to which number of truth it speaks. It
never reads truth; only one process may write at a time.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from anaphora.index.turns.words import WORD_INDEX_ERRORS, WordsMeta, extend_main
from anaphora.index.turns.words import signature as words_signature
from anaphora.text import ANALYSER, analyse

__all__ = [
    "Bulk",
    "CutShort",
    "Document",
    "document_of",
    "read_bulk",
    "remove",
    "remove_foreign",
    "write_bulk",
]

_MANIFEST: Final = "memories.json"
_DIGITS: Final = 16


class CutShort(Exception):
    """A rewrite of the words ended before it was whole: what it began with has been forgotten."""


@dataclass(frozen=True, slots=True)
class Document:
    """A memory's text as the word index has it: tokens joined by spaces, and their digest."""

    record_id: str
    tokens: str
    digest: str

    @property
    def length(self) -> int:
        """How many tokens it has."""
        return self.tokens.count(" ") + 1 if self.tokens else 0


@dataclass(frozen=True, slots=True)
class Bulk:
    """What is on disk: document n (from 1) is memory `ids[n - 1]` with tokens of that digest.

    `upto` is the number of truth that it was written at: what changed later may differ.
    """

    meta: WordsMeta = field(default_factory=WordsMeta)
    upto: int = -1
    ids: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()


def document_of(record_id: str, text: str, term: Callable[[str], str] | None = None) -> Document:
    """Analyse a text; `term` replaces each token (a sealed home keeps keyed hashes of them)."""
    tokens = analyse(text)
    joined = " ".join(tokens if term is None else [term(token) for token in tokens])
    digest = hashlib.blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=_DIGITS // 2)
    return Document(record_id, joined, digest.hexdigest())


def read_bulk(folder: Path, mark: str = "") -> Bulk:
    """What the manifest in `folder` says; an empty bulk where there is none that can be read.

    `mark` tells words of one key from those of another, and from clear ones ("").
    """
    try:
        found = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        if found["analyser"] != ANALYSER + mark:
            return Bulk()
        digests = found["digests"]
        cut = [digests[at : at + _DIGITS] for at in range(0, len(digests), _DIGITS)]
        bulk = Bulk(WordsMeta(*found["meta"]), found["upto"], tuple(found["ids"]), tuple(cut))
        return bulk if bulk.meta.count == len(bulk.ids) == len(cut) else Bulk()
    except (OSError, ValueError, KeyError, TypeError):
        return Bulk()


def remove_foreign(folder: Path, mark: str) -> None:
    """Remove words that a home of another key, or a clear one, has left in a sealed home."""
    if mark and (folder / _MANIFEST).exists() and not read_bulk(folder, mark).meta.generation:
        shutil.rmtree(folder, ignore_errors=True)


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
    meta = seen.meta
    if meta.generation and _signature(folder / meta.generation) != meta.signature:
        return None
    generation = meta.generation or uuid.uuid4().hex
    place = folder / generation
    first = meta.count + 1
    try:
        # Ours are the only documents: the code by which turns are found by thread is the id.
        going = _until(stop, documents)
        extend_main(place, ((n, n, d.tokens) for n, d in enumerate(going, first)))
        tokens = sum(d.length for d in documents)
        meta = WordsMeta(
            generation,
            meta.count + len(documents),
            meta.count + len(documents),
            meta.tokens + tokens,
            words_signature(place),
        )
        bulk = Bulk(
            meta,
            upto,
            (*seen.ids, *(d.record_id for d in documents)),
            (*seen.digests, *(d.digest for d in documents)),
        )
        if stop is not None and stop.is_set():
            raise CutShort
        _write_manifest(folder, bulk, mark)
    except CutShort:
        shutil.rmtree(place, ignore_errors=True)
        raise
    except WORD_INDEX_ERRORS:
        shutil.rmtree(place, ignore_errors=True)
        return None
    remove_all_but(folder, generation)
    return bulk


def _until(stop: threading.Event | None, documents: Sequence[Document]) -> Iterator[Document]:
    for document in documents:
        if stop is not None and stop.is_set():
            raise CutShort
        yield document


def remove_all_but(folder: Path, generation: str) -> None:
    """Remove other generations: they can hold words that were forgotten."""
    with suppress(OSError):
        for place in list(folder.iterdir()):
            if place.is_dir() and place.name != generation:
                shutil.rmtree(place, ignore_errors=True)


def remove(folder: Path, generation: str, mark: str = "") -> None:
    """Remove one generation, and the manifest if it is about that one."""
    if read_bulk(folder, mark).meta.generation == generation:
        with suppress(OSError):
            (folder / _MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(folder / generation, ignore_errors=True)


def _write_manifest(folder: Path, bulk: Bulk, mark: str) -> None:
    meta = bulk.meta
    value = {
        "analyser": ANALYSER + mark,
        "meta": [meta.generation, meta.upto, meta.count, meta.tokens, meta.signature],
        "upto": bulk.upto,
        "ids": bulk.ids,
        "digests": "".join(bulk.digests),
    }
    fresh = folder / f"{_MANIFEST}.new"
    fresh.write_text(json.dumps(value), encoding="utf-8")
    fresh.replace(folder / _MANIFEST)


def _signature(folder: Path) -> int:
    try:
        return words_signature(folder)
    except OSError:
        return -1
