"""The documents of one kind of item on disk, a cell each: what an index need not analyse again.

Any number of processes read and write it. Nothing is raised: a file that is torn is made anew, and
where the disk refuses, memory answers.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from anaphora.errors import AnaphoraError, StoreError
from anaphora.index.cells import CellTable, cell_name, write_anew
from anaphora.index.file import IndexFile, remove_index_file
from anaphora.index.maintenance import IndexBusy, IndexLost
from anaphora.index.words.documents import IndexedDocument
from anaphora.language.analyser import ANALYSER
from anaphora.store.crypto.index import CLEAR_INDEX, IndexSealer
from anaphora.store.disk import make_directory, translate

_FILE: Final = "words.sqlite"
_FORM: Final = f"11/{ANALYSER}"
_DOCUMENTS, _READINGS = CellTable("documents"), CellTable("readings")
_SCHEMA: Final = f"{_DOCUMENTS.schema};\n{_READINGS.schema}"
_HEAD: Final = struct.Struct("<qqHI")
"""What a document begins with: its checksum, its mark, the length of its key, how many terms."""

_OLDER: Final = ("words", "rows.bin", "rows.bin.new")
"""What an older version kept beside it, with words that may have been forgotten since."""

ResultT = TypeVar("ResultT")


class StoredDocument(NamedTuple):
    """A document as stored, with the mark of the item that it was made of."""

    key: str
    mark: int
    document: IndexedDocument


class DocumentTable:
    """The documents in `folder`. One thread at a time (the caller holds a lock).

    `form` is how readings are written. `check` raises SealChanged once the seal of the home has
    changed.
    """

    def __init__(
        self,
        folder: Path,
        sealer: IndexSealer = CLEAR_INDEX,
        form: str = "",
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder, self._path = folder, folder / _FILE
        self._sealer = sealer
        self._form = f"{_FORM}/{form}{sealer.mark}"
        self._check = check
        self._file: IndexFile | None = None
        self.problem: str | None = None
        """What was wrong with the file, which is made anew; None if nothing was."""

    def read(self) -> list[StoredDocument]:
        """All documents."""

        def read_all(file: IndexFile) -> list[StoredDocument]:
            with file.reading():
                return [self._unpack(*cell) for cell in _DOCUMENTS.read(file.db)]

        return self._read(read_all) or []

    def read_forms(self) -> Iterable[str]:
        """The words of every document as written."""
        return [stored.document.forms for stored in self.read()]

    def write(
        self, documents: Sequence[StoredDocument], changed: Callable[[], Iterable[str]]
    ) -> bool:
        """Store documents, new or changed; False if that cannot be done now.

        `changed` gives the keys of items that were changed or deleted since these documents were
        made: what another process forgot meanwhile must not come back.
        """

        def write_all(file: IndexFile) -> None:
            with file.writing():
                self._check()
                left_out = set(changed())
                present = [document for document in documents if document.key not in left_out]
                self._wipe(file, [document.key for document in present])
                _DOCUMENTS.add(
                    file.db,
                    ((self._name(document.key), self._pack(document)) for document in present),
                )

        if not self._write(write_all, begin=True):
            return False
        self.problem = None
        return True

    def erase(self, keys: Collection[str]) -> bool:
        """Remove the documents with these keys; whether no file has a byte of them."""

        def erase_all(file: IndexFile) -> None:
            with file.writing():
                self._wipe(file, keys)

        if self._write(erase_all):
            assert self._file is not None
            with suppress(IndexLost, IndexBusy):
                return self._file.purge()
        return not self._is_there()

    def _wipe(self, file: IndexFile, keys: Collection[str]) -> None:
        names = [self._name(key) for key in keys]
        _DOCUMENTS.wipe(file.db, names)
        _READINGS.wipe(file.db, names)

    def write_anew(self) -> None:
        """Give the room of what was removed back to the disk, if it is much."""
        self._write(lambda file: write_anew(file, (_DOCUMENTS, _READINGS)))

    # What was read of texts.

    def readings(self, keys: Sequence[str]) -> list[str]:
        """What was read of each of these items, "" for none."""
        names = [self._name(key) for key in keys]

        def read_some(file: IndexFile) -> dict[int, bytes]:
            # Not in a transaction: a question asks for a handful.
            with file.guarded(decoding=True):
                return _READINGS.find(file.db, names)

        contents = (self._read(read_some) or {}) if names else {}
        return [contents.get(name, b"").decode("utf-8", "replace") for name in names]

    def unread(self, limit: int) -> list[str]:
        """The keys of up to so many documents of which nothing was read yet."""

        def list_unread(file: IndexFile) -> list[str]:
            with file.guarded(decoding=True):
                query = (
                    "SELECT name, content FROM documents AS d WHERE name > 0 AND NOT EXISTS"
                    " (SELECT 1 FROM readings AS r WHERE r.name = d.name) LIMIT ?"
                )
                cells = file.db.execute(query, (limit,)).fetchall()
                return [self._unpack(*cell).key for cell in cells]

        return self._read(list_unread) or []

    def keep_readings(self, readings: Mapping[str, str]) -> bool:
        """Store what was read of items, by key; False if that cannot be done now."""
        cells = {self._name(key): text.encode("utf-8", "replace") for key, text in readings.items()}

        def write_all(file: IndexFile) -> None:
            with file.writing():
                names = list(_DOCUMENTS.find(file.db, [*cells]))
                _READINGS.wipe(file.db, names)
                _READINGS.add(file.db, ((name, cells[name]) for name in names))

        return self._write(write_all)

    # Cells.

    def _name(self, key: str) -> int:
        stored_key = key.encode("utf-8", "surrogatepass")
        return cell_name(blake2b(stored_key, digest_size=8, key=self._sealer.hash_key).digest())

    def _pack(self, stored: StoredDocument) -> bytes:
        key, document = stored.key.encode("utf-8", "surrogatepass"), stored.document
        head = _HEAD.pack(0, stored.mark, len(key), document.term_count)
        content = head[8:] + key + document.content
        return (
            self._sealer.check("words", key, content).to_bytes(8, "little", signed=True) + content
        )

    def _unpack(self, name: int, content: bytes) -> StoredDocument:
        """Raises IndexLost if it is not what was written."""
        check, mark, key_size, count = _HEAD.unpack_from(content)
        end = _HEAD.size + key_size
        key = content[_HEAD.size : end]
        if self._sealer.check("words", key, content[8:]) != check:
            raise IndexLost("words are not the ones that were written")
        document = IndexedDocument.read(content[end:], count)
        stored = StoredDocument(key.decode("utf-8", "surrogatepass"), mark, document)
        if self._name(stored.key) != name:
            raise IndexLost("words are not where they were written")
        return stored

    # The file.

    def find_problem(self) -> str | None:
        """The problem with the file, None if it is well or there is none."""
        if (file := self._open()) is not None:
            try:
                if problems := file.problems():
                    return problems[0]
            except (IndexLost, IndexBusy) as error:
                return str(error)
        return self.problem

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def remove(self) -> None:
        """Remove it from the disk. Raises `StoreError` if that is refused."""
        self.close()
        self.problem = None
        try:
            remove_index_file(self._path)
        except OSError as error:
            raise translate(error, "remove", self._path) from error

    def _open(self, *, begin: bool = False) -> IndexFile | None:
        """The open file; None if there is none, unless it is to `begin`, or if it cannot be
        opened."""
        if self._file is not None and self._file.current():
            return self._file
        self.close()
        try:
            if not self._path.exists():
                for path in (self._folder / name for name in _OLDER):
                    if path.is_dir():
                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        path.unlink(missing_ok=True)
                if not begin:
                    return None
                make_directory(self._folder)
            self._file = IndexFile(self._path, _SCHEMA, self._form)
        except IndexLost as error:
            self._lose(error)
            if begin:
                with suppress(IndexLost, IndexBusy):
                    self._file = IndexFile(self._path, _SCHEMA, self._form)
        except (IndexBusy, OSError):
            return None
        return self._file

    def _read(self, read: Callable[[IndexFile], ResultT]) -> ResultT | None:
        """What is read of the file; None if there is none, or it cannot be read."""
        file = self._open()
        if file is None:
            return None
        try:
            return read(file)
        except (IndexLost, struct.error) as error:
            self._lose(error)
        except IndexBusy:
            pass
        return None

    def _write(self, write: Callable[[IndexFile], None], *, begin: bool = False) -> bool:
        """Write to the file; False if there is none, or it cannot be written now."""
        file = self._open(begin=begin)
        if file is None:
            return False
        try:
            write(file)
        except IndexLost as error:
            self._lose(error)
            return False
        except (AnaphoraError, IndexBusy):
            return False
        return True

    def _lose(self, error: Exception) -> None:
        with suppress(StoreError):
            self.remove()
        self.problem = str(error)

    def _is_there(self) -> bool:
        try:
            return self._path.exists()
        except OSError:
            return True
