"""Segments in a folder, one generation at a time, with a manifest of the documents in them.

The manifest says which thing each document is, a digest of its tokens, and up to which number of
truth it speaks. Truth is never read here, and only one process may write at a time.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, Final

from anaphora.core.analyser import ANALYSER, analyse, index_text
from anaphora.errors import SealChanged
from anaphora.index.words.segment import (
    WORD_INDEX_ERRORS,
    NumberedTexts,
    Segment,
    SegmentMeta,
    signature,
    write_segment,
)

_FORM: Final = f"3/{ANALYSER}"
_DIGITS: Final = 16

TermOf = Callable[[str], str]
"""What stands for a token in the index: in a sealed home a keyed hash."""


class CutShort(Exception):
    """A rewrite of the words ended before it was whole: what it began with has been forgotten."""


@dataclass(frozen=True, slots=True)
class Document:
    """What is written of a thing: each field's tokens joined by spaces, and their digest.

    `forms` are its words as they are written, where those are kept.
    """

    key: str
    texts: tuple[str, ...]
    digest: str
    forms: str = ""


def document_of(key: str, texts: Sequence[str], term_of: TermOf | None = None) -> Document:
    """Analyse the fields of a document whatever its language; `term_of` replaces each token."""
    fields = []
    for text in texts:
        tokens = analyse(text)
        fields.append(" ".join(tokens if term_of is None else map(term_of, tokens)))
    return _document(key, tuple(fields), "")


def document_in_language(key: str, text: str, term_of: TermOf | None = None) -> Document:
    """Analyse a document of one field by its language; `term_of` replaces each token.

    Where it does, the words as they are written are left out: they would tell them.
    """
    found = index_text(text)
    if term_of is None:
        return _document(key, (" ".join(found.tokens),), " ".join(found.forms))
    return _document(key, (" ".join(map(term_of, found.tokens)),), "")


def _document(key: str, fields: tuple[str, ...], forms: str) -> Document:
    joined = "\n".join((*fields, forms)).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(joined, digest_size=_DIGITS // 2).hexdigest()
    return Document(key, fields, digest, forms)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is on disk: document n (from 1) is `ids[n - 1]`; `digests` are those of their tokens.

    `upto` is the number of truth that it was written at: what changed later may differ.
    """

    meta: SegmentMeta = field(default_factory=SegmentMeta)
    upto: int = -1
    ids: tuple[str, ...] = ()
    digests: str = ""

    def digest(self, number: int) -> str:
        """That of document `number`, from 1."""
        return self.digests[(number - 1) * _DIGITS : number * _DIGITS]


class SegmentFolder:
    """The segments of one kind of things in a folder. Nothing of it is kept in memory.

    `name` is the manifest's. `key_tag` tells words of one key from those of another, and from clear
    ones (""). `check` raises SealChanged once the home is sealed otherwise than it was. `beside`
    writes what else belongs into a generation: (folder, number of the first document, documents).
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        fields: Sequence[str],
        key_tag: str = "",
        check: Callable[[], None] = lambda: None,
        beside: Callable[[Path, int, Sequence[Document]], None] | None = None,
    ) -> None:
        self.path = folder
        self.fields = tuple(fields)
        self._manifest = folder / name
        self._fresh = folder / f"{name}.new"
        self._key_tag = key_tag
        self._check = check
        self._beside = beside

    def read(self) -> Manifest:
        """What the manifest says; an empty one where there is none that can be read."""
        try:
            found = json.loads(self._manifest.read_text(encoding="utf-8"))
            generation, upto, count, tokens, signed = found["meta"]
            meta = SegmentMeta(generation, upto, count, tuple(tokens), signed)
            digests = str(found["digests"])
            manifest = Manifest(meta, found["upto"], tuple(found["ids"]), digests)
            fits = found["form"] == _FORM + self._key_tag and len(tokens) == len(self.fields)
        except (OSError, ValueError, KeyError, TypeError):
            return Manifest()
        fits = fits and meta.count == len(manifest.ids) and len(digests) == _DIGITS * meta.count
        return manifest if fits else Manifest()

    def open(self, manifest: Manifest) -> Segment:
        """Open what it speaks of; one of WORD_INDEX_ERRORS where the files are others."""
        return Segment(self.path / manifest.meta.generation, manifest.meta, self.fields)

    def problem(self) -> str | None:
        """What is wrong with the files; nothing at all is well."""
        manifest = self.read()
        if not manifest.meta.generation:
            torn = self.path.is_dir() and any(self.path.iterdir())
            return "its list of documents cannot be read" if torn else None
        try:
            self.open(manifest)
        except WORD_INDEX_ERRORS as error:
            return str(error)
        return None

    def write(
        self,
        seen: Manifest,
        upto: int,
        documents: Sequence[Document],
        stop: Callable[[], bool] = lambda: False,
    ) -> Manifest | None:
        """Write documents behind those of `seen`, or a new generation where `seen` is empty.

        A document that replaces one of `seen` is written under the same key: the later one counts.
        None where the disk or the home's seal refuses, or when `stop` says so before it is whole.
        """
        try:
            self._check()
            written = self._write(seen, upto, documents, stop)
        except SealChanged:
            return None
        try:
            self._check()
        except SealChanged:
            # Words of the old form must not stay in a home that was sealed meanwhile.
            if written is not None:
                self.remove(written.meta.generation)
            return None
        return written

    def _write(
        self, seen: Manifest, upto: int, documents: Sequence[Document], stop: Callable[[], bool]
    ) -> Manifest | None:
        known = seen.meta.generation
        generation = known or uuid.uuid4().hex
        place = self.path / generation
        try:
            if known and signature(place) != seen.meta.signature:
                return None
            first = seen.meta.count + 1
            if self._beside is not None:
                place.mkdir(parents=True, exist_ok=True)
                self._beside(place, first, documents)
            going = _until(stop, documents, first)
            meta = write_segment(place, seen.meta, self.fields, going)
            if stop():
                raise CutShort
            ids = (*seen.ids, *(d.key for d in documents))
            digests = "".join((seen.digests, *(one.digest for one in documents)))
            manifest = Manifest(meta, upto, ids, digests)
            self._write_manifest(manifest)
        except CutShort:
            shutil.rmtree(place, ignore_errors=True)
            return None
        except WORD_INDEX_ERRORS:
            # With its manifest: one that speaks of files that are gone would never be made right.
            self.remove(generation)
            with suppress(OSError):
                self._fresh.unlink(missing_ok=True)
            return None
        # They can hold words that were forgotten.
        remove_all_but(self.path, {generation})
        return manifest

    def remove(self, generation: str) -> None:
        """Remove one generation, and the manifest if it is about that one."""
        if self.read().meta.generation == generation:
            with suppress(OSError):
                self._manifest.unlink(missing_ok=True)
        shutil.rmtree(self.path / generation, ignore_errors=True)

    def remove_foreign(self) -> None:
        """Remove words that a home of another key, or a clear one, has left in a sealed home."""
        if self._key_tag and self._manifest.exists() and not self.read().meta.generation:
            self.remove_all()

    def remove_all(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _write_manifest(self, manifest: Manifest) -> None:
        value: dict[str, Any] = {
            "form": _FORM + self._key_tag,
            "meta": astuple(manifest.meta),
            "upto": manifest.upto,
            "ids": manifest.ids,
            "digests": manifest.digests,
        }
        self._fresh.write_text(json.dumps(value), encoding="utf-8")
        self._fresh.replace(self._manifest)


def remove_all_but(folder: Path, names: Collection[str]) -> None:
    """Remove the folders in `folder` that have other names."""
    with suppress(OSError):
        for place in list(folder.iterdir()):
            if place.is_dir() and place.name not in names:
                shutil.rmtree(place, ignore_errors=True)


def _until(
    stop: Callable[[], bool], documents: Sequence[Document], first: int
) -> Iterator[NumberedTexts]:
    for number, document in enumerate(documents, first):
        if stop():
            raise CutShort
        yield NumberedTexts(number, document.texts, forms=document.forms)
