"""Segments in a folder, one generation at a time, with a manifest of the documents in them.

The manifest says which thing each document is, a digest of its tokens, and up to which number of
truth it speaks. Truth is never read here, and only one process may write at a time. Where words
are kept in parts, each write makes a new generation, which has what stays of the last one by links:
the manifest alone says which of them counts. Otherwise a write adds to the generation.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from anaphora.core.analyser import ANALYSER, IndexedText, analyse, index_text, language_token
from anaphora.core.languages.language import language_of
from anaphora.errors import SealChanged
from anaphora.index.words.lookup import TITLE
from anaphora.index.words.parts import (
    PartSizes,
    copy_list,
    drop_parts,
    free_number,
    link_part,
    list_parts,
    part_in,
    parts_from,
    parts_listed,
    stored_parts,
    total_of,
    usable_parts,
    write_part,
)
from anaphora.index.words.segment import (
    WORD_INDEX_ERRORS,
    NumberedTexts,
    Part,
    Segment,
    SegmentMeta,
    signature,
    write_segment,
)

_FORM: Final = f"5/{ANALYSER}"
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


def document_in_language(
    key: str, text: str, term_of: TermOf | None = None, *, title: str = ""
) -> Document:
    """Analyse a document of one field by its language; `term_of` replaces each token.

    Where it does, the words as they are written are left out: they would tell them. The tokens of
    its `title` stand in the same field, each with the mark of titles.
    """
    body = index_text(text)
    heading = titled(title, language_of(f"{title}\n{text}")) if title else IndexedText((), (), 0)
    tokens = (*body.tokens, *heading.tokens)
    if term_of is None:
        forms = dict.fromkeys((*body.forms, *heading.forms))
        return _document(key, (" ".join(tokens),), " ".join(forms))
    return _document(key, (" ".join(map(term_of, tokens)),), "")


def titled(title: str, code: str) -> IndexedText:
    """What an index has of what something is called; `code` is the language of all that is known.

    Each token has the mark of titles. A title tells too little of its own language: it is read in
    none, too.
    """
    plain, in_language = index_text(title, ""), index_text(title, code)
    marked = dict.fromkeys(TITLE + token for token in (*plain.tokens, *in_language.tokens))
    marked.pop(TITLE + language_token(code), None)
    return IndexedText(tuple(marked), plain.forms, len(marked))


def _document(key: str, fields: tuple[str, ...], forms: str) -> Document:
    joined = "\n".join((*fields, forms)).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(joined, digest_size=_DIGITS // 2).hexdigest()
    return Document(key, fields, digest, forms)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is on disk: document n (from 1) is `ids[n - 1]`; `digests` are those of their tokens.

    `upto` is the number of truth that it was written at: what changed later may differ. Where there
    are `parts`, "" is the id of a number that is free; where there are none, all is one.
    """

    meta: SegmentMeta = field(default_factory=SegmentMeta)
    upto: int = -1
    ids: tuple[str, ...] = ()
    digests: str = ""
    parts: tuple[Part, ...] = ()

    def digest(self, number: int) -> str:
        """That of document `number`, from 1."""
        return self.digests[(number - 1) * _DIGITS : number * _DIGITS]

    def documents(self, part: Part) -> tuple[Sequence[str], str]:
        """The keys of a part's documents, and their digests."""
        digests = self.digests[(part.first - 1) * _DIGITS : part.upto * _DIGITS]
        return self.ids[part.first - 1 : part.upto], digests


class SegmentFolder:
    """The segments of one kind of things in a folder. Nothing of it is kept in memory.

    `name` is the manifest's. `key_tag` tells words of one key from those of another, and from clear
    ones (""). `check` raises SealChanged once the home is sealed otherwise than it was. `beside`
    writes what else belongs into a generation: (folder, number of the first document, documents).
    `sizes` says how large parts are, where words are kept in parts; nothing lies beside those.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        fields: Sequence[str],
        key_tag: str = "",
        check: Callable[[], None] = lambda: None,
        *,
        beside: Callable[[Path, int, Sequence[Document]], None] | None = None,
        sizes: PartSizes | None = None,
    ) -> None:
        self.path = folder
        self.fields = tuple(fields)
        self._manifest = folder / name
        self._fresh = folder / f"{name}.new"
        self._key_tag = key_tag
        self._check = check
        self._beside = beside
        self._sizes = sizes

    def read(self) -> Manifest:
        """What the manifest says; an empty one where there is none that can be read."""
        try:
            stored = json.loads(self._manifest.read_text(encoding="utf-8"))
            generation, upto, count, tokens, signed = stored["meta"]
            meta = SegmentMeta(generation, upto, count, tuple(tokens), signed)
            digests, parts = str(stored["digests"]), parts_from(stored.get("parts", ()))
            manifest = Manifest(meta, stored["upto"], tuple(stored["ids"]), digests, parts)
            fits = stored["form"] == _FORM + self._key_tag and len(tokens) == len(self.fields)
        except (OSError, ValueError, KeyError, TypeError):
            return Manifest()
        count_of_ids = len(manifest.ids)
        fits = fits and len(digests) == _DIGITS * count_of_ids and count_of_ids == meta.upto
        fits = fits and meta.count == (total_of(parts, 0)[0] if parts else count_of_ids)
        return manifest if fits else Manifest()

    def open(self, manifest: Manifest) -> Segment:
        """Open what it speaks of; one of WORD_INDEX_ERRORS where the files are others.

        Its `parts` are those of the manifest that nobody has dropped.
        """
        generation, meta = self.path / manifest.meta.generation, manifest.meta
        if not manifest.parts:
            return Segment(generation, meta, self.fields)
        parts = usable_parts(generation, manifest.parts, meta.signature)
        count, tokens = total_of(parts, len(self.fields))
        return Segment(generation, replace(meta, count=count, tokens=tokens), self.fields, parts)

    def staying(self, parts: Sequence[Part], fresh: int) -> tuple[Part, ...]:
        """Those of `parts` that stay as they are where `fresh` documents are written."""
        return () if self._sizes is None else self._sizes.kept(parts, fresh)

    def parts_of(self, manifest: Manifest) -> tuple[Part, ...]:
        """Its parts that nobody has dropped. Raises OSError or ValueError."""
        place, meta = self.path / manifest.meta.generation, manifest.meta
        if manifest.parts:
            return parts_listed(place, manifest.parts)
        if not meta.generation:
            return ()
        # It was written when there were none yet, or none were wanted.
        if signature(place) != meta.signature:
            raise ValueError("the word index on disk is not the one that was finished")
        return (part_in(place, 1, meta),)

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
        previous = seen.meta.generation
        in_place = bool(previous) and self._sizes is None
        generation = previous if in_place else uuid.uuid4().hex
        path = self.path / generation
        try:
            if in_place and signature(path) != seen.meta.signature:
                return None
            path.mkdir(parents=True, exist_ok=True)
            if self._sizes is None:
                manifest = self._extended(path, seen, upto, documents, stop)
            else:
                manifest = self._composed(path, seen, upto, documents, stop)
            if stop():
                raise CutShort
            self._write_manifest(manifest)
            if manifest.parts and previous:
                self._drop_again(manifest, self.path / previous, seen)
        except CutShort:
            shutil.rmtree(path, ignore_errors=True)
            return None
        except WORD_INDEX_ERRORS:
            # With its manifest: one that speaks of files that are gone would never be made right.
            self.remove(generation)
            self.remove(previous or generation)
            with suppress(OSError):
                self._fresh.unlink(missing_ok=True)
            return None
        # They can hold words that were forgotten.
        remove_all_but(self.path, {generation})
        return manifest

    def _extended(
        self,
        path: Path,
        seen: Manifest,
        upto: int,
        documents: Sequence[Document],
        stop: Callable[[], bool],
    ) -> Manifest:
        """Add documents to what lies in `place`."""
        first = seen.meta.count + 1
        if self._beside is not None:
            self._beside(path, first, documents)
        meta = write_segment(path, seen.meta, self.fields, _until(stop, documents, first))
        ids = (*seen.ids, *(d.key for d in documents))
        return Manifest(meta, upto, ids, "".join((seen.digests, *(d.digest for d in documents))))

    def _composed(
        self,
        path: Path,
        seen: Manifest,
        upto: int,
        documents: Sequence[Document],
        stop: Callable[[], bool],
    ) -> Manifest:
        """Make a generation of the parts of `seen`, and new ones of documents."""
        assert self._sizes is not None
        old = self.path / seen.meta.generation
        # What went meanwhile, with what was forgotten, is missed when this is opened.
        parts = [part for part in self.parts_of(seen) if link_part(part, old, path)]
        if parts:
            copy_list(old, path)
        total = sum(part.count for part in parts) + len(documents)
        numbered = {part.first: seen.documents(part) for part in parts}
        done = 0
        for size in self._sizes.split(len(documents), total) or ([] if parts else [0]):
            chunk, first = documents[done : done + size], free_number(parts, size)
            numbered_texts = _until(stop, chunk, first)
            parts.append(write_part(path, self.fields, first, numbered_texts))
            numbered[first] = [d.key for d in chunk], "".join(d.digest for d in chunk)
            done += size
        parts.sort(key=lambda part: part.first)
        ids = [""] * max(part.upto for part in parts)
        digests = bytearray(b"0" * _DIGITS * len(ids))
        for part in parts:
            keys, signs = numbered[part.first]
            ids[part.first - 1 : part.upto] = keys
            digests[(part.first - 1) * _DIGITS : part.upto * _DIGITS] = signs.encode()
        count, tokens = total_of(parts, len(self.fields))
        meta = SegmentMeta(path.name, len(ids), count, tokens, list_parts(path, parts))
        return Manifest(meta, upto, tuple(ids), digests.decode(), tuple(parts))

    def _drop_again(self, manifest: Manifest, old: Path, seen: Manifest) -> None:
        """Drop what another process has dropped of the last generation while this was written."""
        listed = parts_listed(old, seen.parts)
        dropped = [part for part in seen.parts if part in manifest.parts and part not in listed]
        if dropped:
            self.drop(manifest, dropped)

    def drop(self, manifest: Manifest, parts: Sequence[Part]) -> None:
        """Take parts that hold what was forgotten off the disk: all of it where it has no parts.

        Other processes may have written since: the same parts lie in their generations too.
        """
        generation = manifest.meta.generation
        if self._sizes is None:
            self.remove(generation)
            return
        nothing_left = len(parts) >= len(manifest.parts)
        with suppress(*WORD_INDEX_ERRORS):
            parts = parts if manifest.parts else self.parts_of(manifest)
        if nothing_left:
            self.remove(generation)
        # Its own first: whoever writes looks there last.
        for name in sorted(self._generations(), key=lambda name_: name_ != generation):
            try:
                drop_parts(self.path / name, parts)
            except FileNotFoundError:
                continue
            except WORD_INDEX_ERRORS:
                self.remove(name)

    def _generations(self) -> list[str]:
        with suppress(OSError):
            return [path.name for path in self.path.iterdir() if path.is_dir()]
        return []

    def sweep(self) -> None:
        """Remove generations that a writer who was killed has left. The caller may write."""
        remove_all_but(self.path, {self.read().meta.generation})

    def littered(self) -> bool:
        """Whether there is more than one generation: one is being written, or was left."""
        return len(self._generations()) > 1

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
        if manifest.parts:
            value["parts"] = stored_parts(manifest.parts)
        self._fresh.write_text(json.dumps(value), encoding="utf-8")
        self._fresh.replace(self._manifest)


def remove_all_but(folder: Path, names: Collection[str]) -> None:
    """Remove the folders in `folder` that have other names."""
    with suppress(OSError):
        for path in list(folder.iterdir()):
            if path.is_dir() and path.name not in names:
                shutil.rmtree(path, ignore_errors=True)


def _until(
    stop: Callable[[], bool], documents: Sequence[Document], first: int
) -> Iterator[NumberedTexts]:
    for number, document in enumerate(documents, first):
        if stop():
            raise CutShort
        yield NumberedTexts(number, document.texts, forms=document.forms)
