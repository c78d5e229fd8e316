"""Words on disk: one folder a generation, and a manifest of what is in it.

In: a folder, documents in order, a way to write them. Out: what lies there, or that it cannot be
used. The manifest says which thing each document is, a digest of its tokens, and up to which number
of truth it speaks. It never reads truth; only one process may write at a time.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from anaphora.core.text import analyse
from anaphora.index.words.segment import WORD_INDEX_ERRORS, signature

_DIGITS: Final = 16


class Meta(Protocol):
    """What a generation's files are, a dataclass: its fields stand in the manifest in order."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def generation(self) -> str:
        """The folder's name, "" for no files."""
        ...

    @property
    def count(self) -> int:
        """How many documents they hold."""
        ...

    @property
    def signature(self) -> int:
        """One number over the files: another one means that a write did not end."""
        ...


class Document(Protocol):
    """What is written."""

    @property
    def key(self) -> str:
        """Which thing it is of."""
        ...

    @property
    def digest(self) -> str:
        """Tells its tokens from others: `digest_of`."""
        ...


MetaT = TypeVar("MetaT", bound=Meta)


@dataclass(frozen=True, slots=True)
class WordBulk(Generic[MetaT]):
    """What is on disk: document n (from 1) is `ids[n - 1]` with tokens of that digest.

    `upto` is the number of truth that it was written at: what changed later may differ.
    """

    meta: MetaT
    upto: int = -1
    ids: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()


BulkT = TypeVar("BulkT", bound=WordBulk[Any])


def tokens_of(text: str, term: Callable[[str], str] | None) -> str:
    """A text's tokens joined by spaces; `term` replaces each (a sealed home keeps keyed hashes)."""
    found = analyse(text)
    return " ".join(found if term is None else [term(token) for token in found])


def length_of(tokens: str) -> int:
    """How many tokens are joined there."""
    return tokens.count(" ") + 1 if tokens else 0


def digest_of(tokens: str) -> str:
    """Tells tokens from others, in as many digits as a manifest has for each document."""
    joined = tokens.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(joined, digest_size=_DIGITS // 2).hexdigest()


class WordFiles(Generic[BulkT]):
    """How one kind of words lies in a folder. Keeps nothing of any folder.

    `form` is the entry of the manifest that says how the words were made, and what it must say:
    what was made otherwise is not read. `bulk` and `meta` make the values; `meta` of what stands in
    the manifest, raising ValueError where that is not one.
    """

    def __init__(
        self,
        manifest: str,
        form: tuple[str, str],
        bulk: Callable[..., BulkT],
        meta: Callable[..., Meta],
    ) -> None:
        self._manifest = manifest
        self._entry, self._form = form
        self.bulk = bulk
        self._meta = meta

    def read(self, folder: Path, key_tag: str = "") -> BulkT:
        """What the manifest in `folder` says; an empty bulk where there is none that can be read.

        `key_tag` tells words of one key from those of another, and from clear ones ("").
        """
        try:
            found = json.loads((folder / self._manifest).read_text(encoding="utf-8"))
            if found[self._entry] != self._form + key_tag:
                return self.bulk()
            digests = found["digests"]
            cut = tuple(digests[at : at + _DIGITS] for at in range(0, len(digests), _DIGITS))
            meta = self._meta(*found["meta"])
            bulk = self.bulk(meta, found["upto"], tuple(found["ids"]), cut)
        except (OSError, ValueError, KeyError, TypeError):
            return self.bulk()
        return bulk if meta.count == len(bulk.ids) == len(cut) else self.bulk()

    def write(
        self,
        folder: Path,
        seen: BulkT,
        upto: int,
        documents: Sequence[Document],
        key_tag: str,
        extend: Callable[[Path], Meta],
    ) -> BulkT | None:
        """Write documents behind those of `seen`, or a new generation where `seen` is empty.

        `extend` writes them into the generation's folder and says what lies there then. None where
        the disk refuses. Only one process may be in here at a time.
        """
        known = seen.meta.generation
        if known and _signature(folder / known) != seen.meta.signature:
            return None
        generation = known or uuid.uuid4().hex
        place = folder / generation
        try:
            bulk = self.bulk(
                extend(place),
                upto,
                (*seen.ids, *(d.key for d in documents)),
                (*seen.digests, *(d.digest for d in documents)),
            )
            self._write_manifest(folder, bulk, key_tag)
        except WORD_INDEX_ERRORS:
            # With its manifest: one that speaks of files that are gone would never be made right.
            self.remove(folder, generation, key_tag)
            with suppress(OSError):
                self._fresh(folder).unlink(missing_ok=True)
            return None
        # They can hold words that were forgotten.
        remove_all_but(folder, {generation})
        return bulk

    def remove(self, folder: Path, generation: str, key_tag: str = "") -> None:
        """Remove one generation, and the manifest if it is about that one."""
        if self.read(folder, key_tag).meta.generation == generation:
            with suppress(OSError):
                (folder / self._manifest).unlink(missing_ok=True)
        shutil.rmtree(folder / generation, ignore_errors=True)

    def remove_foreign(self, folder: Path, key_tag: str) -> None:
        """Remove words that a home of another key, or a clear one, has left in a sealed home."""
        if not key_tag or not (folder / self._manifest).exists():
            return
        if not self.read(folder, key_tag).meta.generation:
            shutil.rmtree(folder, ignore_errors=True)

    def _fresh(self, folder: Path) -> Path:
        return folder / f"{self._manifest}.new"

    def _write_manifest(self, folder: Path, bulk: BulkT, key_tag: str) -> None:
        value = {
            self._entry: self._form + key_tag,
            "meta": astuple(bulk.meta),
            "upto": bulk.upto,
            "ids": bulk.ids,
            "digests": "".join(bulk.digests),
        }
        fresh = self._fresh(folder)
        fresh.write_text(json.dumps(value), encoding="utf-8")
        fresh.replace(folder / self._manifest)


def remove_all_but(folder: Path, names: Collection[str]) -> None:
    """Remove the folders in `folder` that have other names."""
    with suppress(OSError):
        for place in list(folder.iterdir()):
            if place.is_dir() and place.name not in names:
                shutil.rmtree(place, ignore_errors=True)


def _signature(folder: Path) -> int:
    try:
        return signature(folder)
    except OSError:
        return -1
