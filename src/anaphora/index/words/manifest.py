"""Segments in a folder, one generation at a time, with a manifest of the documents in them.

The manifest has the key of each document, a digest of its tokens, and the number of the database
that it is up to date with. The database is never read here, and one process writes at a time. If
words are stored in parts, each write makes a new generation that links the parts that stay: the
manifest alone says which generation counts. Otherwise a write adds to the generation.
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

from anaphora.errors import SealChanged
from anaphora.index.words.lookup import TITLE
from anaphora.index.words.parts import (
    PartSizes,
    check_parts,
    copy_list,
    drop_parts,
    free_number,
    link_part,
    list_parts,
    load_parts,
    select_listed,
    sum_parts,
    write_part,
)
from anaphora.index.words.segment import (
    WORD_INDEX_ERRORS,
    NumberedTexts,
    Segment,
    SegmentMeta,
    SegmentPart,
    signature,
    write_segment,
)
from anaphora.language.analyser import ANALYSER, IndexedText, analyse, index_text, language_token
from anaphora.language.languages.language import language_of

_FORM: Final = f"5/{ANALYSER}"
_DIGITS: Final = 16

TermOf = Callable[[str], str]
"""Gives the term of a token in the index: in a sealed home a keyed hash."""


class CutShort(Exception):
    """A rewrite was stopped before it was complete: documents it began with were forgotten."""


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """The indexed form of an item: the tokens of each field joined by spaces, and their digest.

    `forms` are its words as written, if those are stored.
    """

    key: str
    texts: tuple[str, ...]
    digest: str
    forms: str = ""


def document_of(key: str, texts: Sequence[str], term_of: TermOf | None = None) -> IndexedDocument:
    """Analyse the fields of a document in any language; `term_of` replaces each token."""
    fields = []
    for text in texts:
        tokens = analyse(text)
        fields.append(" ".join(tokens if term_of is None else map(term_of, tokens)))
    return _document(key, tuple(fields), "")


def document_in_language(
    key: str, text: str, term_of: TermOf | None = None, *, title: str = ""
) -> IndexedDocument:
    """Analyse a document of one field by its language; `term_of` replaces each token.

    With `term_of`, the words as written are left out: they would reveal the tokens. The tokens of
    its `title` are in the same field, each with the prefix of titles.
    """
    body = index_text(text)
    heading = titled(title, language_of(f"{title}\n{text}")) if title else IndexedText((), (), 0)
    tokens = (*body.tokens, *heading.tokens)
    if term_of is None:
        forms = dict.fromkeys((*body.forms, *heading.forms))
        return _document(key, (" ".join(tokens),), " ".join(forms))
    return _document(key, (" ".join(map(term_of, tokens)),), "")


def titled(title: str, code: str) -> IndexedText:
    """The indexed form of a title; `code` is the language of the item.

    Each token has the prefix of titles. The language may be wrong for a title, so that it is also
    analysed without one.
    """
    plain, in_language = index_text(title, ""), index_text(title, code)
    title_tokens = dict.fromkeys(TITLE + token for token in (*plain.tokens, *in_language.tokens))
    title_tokens.pop(TITLE + language_token(code), None)
    return IndexedText(tuple(title_tokens), plain.forms, len(title_tokens))


def _document(key: str, fields: tuple[str, ...], forms: str) -> IndexedDocument:
    document_bytes = "\n".join((*fields, forms)).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(document_bytes, digest_size=_DIGITS // 2).hexdigest()
    return IndexedDocument(key, fields, digest, forms)


@dataclass(frozen=True, slots=True)
class WordManifest:
    """The documents on disk: number n (from 1) is `ids[n - 1]`; `digests` are of their tokens.

    `upto` is the number of the database at which it was written: later changes are missing. With
    `parts`, the id of a free number is ""; without, all documents are in one segment.
    """

    meta: SegmentMeta = field(default_factory=SegmentMeta)
    upto: int = -1
    ids: tuple[str, ...] = ()
    digests: str = ""
    parts: tuple[SegmentPart, ...] = ()

    def digest(self, number: int) -> str:
        """The digest of document `number`, from 1."""
        return self.digests[(number - 1) * _DIGITS : number * _DIGITS]

    def documents(self, part: SegmentPart) -> tuple[Sequence[str], str]:
        """The keys of a part's documents, and their digests."""
        digests = self.digests[(part.first - 1) * _DIGITS : part.upto * _DIGITS]
        return self.ids[part.first - 1 : part.upto], digests


class SegmentFolder:
    """The segments for one kind of item in a folder. It keeps no state in memory.

    `name` is the name of the manifest. `key_tag` identifies the key of sealed words ("": clear).
    `check` raises SealChanged once the seal of the home has changed. `beside` writes further files
    into a generation: (folder, number of the first document, documents). `sizes` are the sizes of
    parts if words are stored in parts; then there is no `beside`.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        fields: Sequence[str],
        key_tag: str = "",
        check: Callable[[], None] = lambda: None,
        *,
        beside: Callable[[Path, int, Sequence[IndexedDocument]], None] | None = None,
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

    def read(self) -> WordManifest:
        """The manifest on disk; an empty one if there is none that can be read."""
        try:
            stored_fields = json.loads(self._manifest.read_text(encoding="utf-8"))
            generation, upto, count, tokens, signature_text = stored_fields["meta"]
            meta = SegmentMeta(generation, upto, count, tuple(tokens), signature_text)
            digests, parts = (
                str(stored_fields["digests"]),
                load_parts(stored_fields.get("parts", ())),
            )
            manifest = WordManifest(
                meta, stored_fields["upto"], tuple(stored_fields["ids"]), digests, parts
            )
            fits = stored_fields["form"] == _FORM + self._key_tag and len(tokens) == len(
                self.fields
            )
        except (OSError, ValueError, KeyError, TypeError):
            return WordManifest()
        length = len(manifest.ids)
        fits = fits and len(digests) == _DIGITS * length and length == meta.upto
        fits = fits and meta.count == (sum_parts(parts, 0)[0] if parts else length)
        fits = fits and bool(parts) == (self._sizes is not None)
        return manifest if fits else WordManifest()

    def open(self, manifest: WordManifest) -> Segment:
        """Open the segment of a manifest. Raises one of WORD_INDEX_ERRORS if the files differ.

        Its `parts` are those of the manifest that no process has dropped.
        """
        generation, meta = self.path / manifest.meta.generation, manifest.meta
        if not manifest.parts:
            return Segment(generation, meta, self.fields)
        parts = check_parts(generation, manifest.parts, meta.signature)
        count, tokens = sum_parts(parts, len(self.fields))
        return Segment(generation, replace(meta, count=count, tokens=tokens), self.fields, parts)

    def staying(self, parts: Sequence[SegmentPart], fresh: int) -> tuple[SegmentPart, ...]:
        """Those of `parts` that stay unchanged if `fresh` documents are written."""
        return () if self._sizes is None else self._sizes.choose_staying(parts, fresh)

    def parts_of(self, manifest: WordManifest) -> tuple[SegmentPart, ...]:
        """Its parts that no process has dropped. Raises OSError or ValueError."""
        if not manifest.parts:
            return ()
        return select_listed(self.path / manifest.meta.generation, manifest.parts)

    def problem(self) -> str | None:
        """The problem with the files, None if they are well or there are none."""
        manifest = self.read()
        if not manifest.meta.generation:
            is_torn = self.path.is_dir() and any(self.path.iterdir())
            return "its list of documents cannot be read" if is_torn else None
        try:
            self.open(manifest)
        except WORD_INDEX_ERRORS as error:
            return str(error)
        return None

    def write(
        self,
        seen: WordManifest,
        upto: int,
        documents: Sequence[IndexedDocument],
        stop: Callable[[], bool] = lambda: False,
    ) -> WordManifest | None:
        """Write documents after those of `seen`, or a new generation if `seen` is empty.

        A document that replaces one of `seen` has the same key: the later one counts. None if the
        disk refuses, the seal of the home has changed, or `stop` became true before the end.
        """
        try:
            self._check()
            new_manifest = self._write(seen, upto, documents, stop)
        except SealChanged:
            return None
        try:
            self._check()
        except SealChanged:
            # Words in the old form must not stay in a home that was sealed meanwhile.
            if new_manifest is not None:
                self.remove(new_manifest.meta.generation)
            return None
        return new_manifest

    def _write(
        self,
        seen: WordManifest,
        upto: int,
        documents: Sequence[IndexedDocument],
        stop: Callable[[], bool],
    ) -> WordManifest | None:
        previous = seen.meta.generation
        in_place = bool(previous) and self._sizes is None
        generation = previous if in_place else uuid.uuid4().hex
        path = self.path / generation
        try:
            if in_place and signature(path) != seen.meta.signature:
                return None
            path.mkdir(parents=True, exist_ok=True)
            if self._sizes is None:
                manifest = self._extend(path, seen, upto, documents, stop)
            else:
                manifest = self._compose(path, seen, upto, documents, stop)
            if stop():
                raise CutShort
            self._write_manifest(manifest)
            if manifest.parts and previous:
                # Drop what another process has dropped from the last generation meanwhile.
                listed_parts = select_listed(self.path / previous, seen.parts)
                dropped_parts = [
                    p for p in seen.parts if p in manifest.parts and p not in listed_parts
                ]
                if dropped_parts:
                    self.drop(manifest, dropped_parts)
        except CutShort:
            shutil.rmtree(path, ignore_errors=True)
            return None
        except WORD_INDEX_ERRORS:
            # With its manifest: a manifest without its files would never be repaired.
            self.remove(generation)
            self.remove(previous or generation)
            with suppress(OSError):
                self._fresh.unlink(missing_ok=True)
            return None
        # Other generations can contain forgotten words.
        remove_all_but(self.path, {generation})
        return manifest

    def _write_manifest(self, manifest: WordManifest) -> None:
        stored_fields: dict[str, Any] = {
            "form": _FORM + self._key_tag,
            "meta": astuple(manifest.meta),
            "upto": manifest.upto,
            "ids": manifest.ids,
            "digests": manifest.digests,
        }
        if manifest.parts:
            stored_fields["parts"] = [astuple(part) for part in manifest.parts]
        self._fresh.write_text(json.dumps(stored_fields), encoding="utf-8")
        self._fresh.replace(self._manifest)

    def _extend(
        self,
        path: Path,
        seen: WordManifest,
        upto: int,
        documents: Sequence[IndexedDocument],
        stop: Callable[[], bool],
    ) -> WordManifest:
        """Add documents to the generation at `path`."""
        first_number = seen.meta.count + 1
        if self._beside is not None:
            self._beside(path, first_number, documents)
        meta = write_segment(path, seen.meta, self.fields, _until(stop, documents, first_number))
        ids = (*seen.ids, *(d.key for d in documents))
        return WordManifest(
            meta, upto, ids, "".join((seen.digests, *(d.digest for d in documents)))
        )

    def _compose(
        self,
        path: Path,
        seen: WordManifest,
        upto: int,
        documents: Sequence[IndexedDocument],
        stop: Callable[[], bool],
    ) -> WordManifest:
        """Make a generation of the parts of `seen` and new parts of documents."""
        assert self._sizes is not None
        old_path = self.path / seen.meta.generation
        # Documents of parts that were dropped meanwhile are found missing when this is opened.
        parts = [part for part in self.parts_of(seen) if link_part(part, old_path, path)]
        if parts:
            copy_list(old_path, path)
        total = sum(part.count for part in parts) + len(documents)
        documents_by_number = {part.first: seen.documents(part) for part in parts}
        written_count = 0
        for size in self._sizes.split(len(documents), total) or ([] if parts else [0]):
            chunk, first_number = (
                documents[written_count : written_count + size],
                free_number(parts, size),
            )
            numbered_texts = _until(stop, chunk, first_number)
            parts.append(write_part(path, self.fields, first_number, numbered_texts))
            documents_by_number[first_number] = (
                [d.key for d in chunk],
                "".join(d.digest for d in chunk),
            )
            written_count += size
        parts.sort(key=lambda part: part.first)
        ids = [""] * max(part.upto for part in parts)
        digests = bytearray(b"0" * _DIGITS * len(ids))
        for part in parts:
            keys, signs = documents_by_number[part.first]
            ids[part.first - 1 : part.upto] = keys
            digests[(part.first - 1) * _DIGITS : part.upto * _DIGITS] = signs.encode()
        count, tokens = sum_parts(parts, len(self.fields))
        meta = SegmentMeta(path.name, len(ids), count, tokens, list_parts(path, parts))
        return WordManifest(meta, upto, tuple(ids), digests.decode(), tuple(parts))

    def drop(self, manifest: WordManifest, parts: Sequence[SegmentPart]) -> None:
        """Remove parts with forgotten documents from the disk; the generation if it has no parts.

        Other processes may have written since, so the parts may be in their generations too.
        """
        generation = manifest.meta.generation
        if self._sizes is None:
            self.remove(generation)
            return
        if len(parts) >= len(manifest.parts):
            self.remove(generation)
        # This generation first: a writer checks for dropped parts there last.
        for name in sorted(self._generations(), key=lambda name: name != generation):
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
        """Remove generations left by a killed writer. The caller holds the lock for writing."""
        remove_all_but(self.path, {self.read().meta.generation})

    def littered(self) -> bool:
        """Whether there is more than one generation: one is being written, or was left over."""
        return len(self._generations()) > 1

    def remove(self, generation: str) -> None:
        """Remove a generation, and the manifest if it is the manifest of that generation."""
        if self.read().meta.generation == generation:
            with suppress(OSError):
                self._manifest.unlink(missing_ok=True)
        shutil.rmtree(self.path / generation, ignore_errors=True)

    def remove_foreign(self) -> None:
        """Remove words in a sealed home that are clear or of another key."""
        if self._key_tag and self._manifest.exists() and not self.read().meta.generation:
            self.remove_all()

    def remove_all(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.path, ignore_errors=True)


def remove_all_but(folder: Path, names: Collection[str]) -> None:
    """Remove all folders in `folder` except those with these names."""
    with suppress(OSError):
        for path in list(folder.iterdir()):
            if path.is_dir() and path.name not in names:
                shutil.rmtree(path, ignore_errors=True)


def _until(
    stop: Callable[[], bool], documents: Sequence[IndexedDocument], first: int
) -> Iterator[NumberedTexts]:
    for number, document in enumerate(documents, first):
        if stop():
            raise CutShort
        yield NumberedTexts(number, document.texts, forms=document.forms)
