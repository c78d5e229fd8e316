"""The file with the words of one kind of item, which any number of processes read.

One process writes at a time (the caller holds a lock), into a new file that replaces the last one.
Any process erases documents in the file, at once: what a writer had begun with is erased from the
new file when it replaces the last one.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anaphora.errors import AnaphoraError
from anaphora.index.words.segment import WORD_INDEX_ERRORS, OtherForm, Segment
from anaphora.index.words.writing import (
    CutShort,
    IndexedDocument,
    columns_of,
    join,
    select,
    write_columns,
)
from anaphora.language.analyser import ANALYSER

_LOCK: Final = "erase.lock"


class WordPlan(NamedTuple):
    """What to write: `documents` after those of `base` that are in `keep`, which get `readings` by
    their places. The file is up to date with the database at number `upto`."""

    base: Segment | None
    keep: NDArray[np.bool_]
    documents: Sequence[IndexedDocument]
    upto: int
    readings: Mapping[int, str]


class WordFile:
    """The words of one kind of item in a folder. It keeps no state in memory.

    `key_tag` identifies the key of sealed words ("": clear), and how texts are read. `check` raises
    SealChanged once the seal of the home has changed. `changed` gives the keys of the documents
    that were changed or deleted after a number of the database. `fields`: how many a document has.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        key_tag: str = "",
        check: Callable[[], None] = lambda: None,
        changed: Callable[[int], Iterable[str]] = lambda _: (),
        *,
        fields: int = 1,
    ) -> None:
        self.fields = fields
        self._folder, self._path = folder, folder / name
        self._form = f"/{ANALYSER}{key_tag}"
        self._check, self._changed = check, changed

    def open(self) -> Segment | None:
        """The words on disk; None if there are none. A file that cannot be read is removed."""
        with suppress(*WORD_INDEX_ERRORS):
            return Segment(self._path, self._form)
        with suppress(OSError):
            if self._path.exists():
                # Another process may just be erasing; if it was killed, words may be left.
                with self._erasing:
                    try:
                        return Segment(self._path, self._form)
                    except WORD_INDEX_ERRORS:
                        self._path.unlink(missing_ok=True)
        return None

    def problem(self) -> str | None:
        """The problem with the file, None if it is well or there is none.

        One of another form is none: it is read anew from the database.
        """
        try:
            Segment(self._path, self._form)
        except (FileNotFoundError, OtherForm):
            pass
        except WORD_INDEX_ERRORS as error:
            return str(error)
        return None

    def write(self, plan: WordPlan, stop: Callable[[], bool] = lambda: False) -> bool:
        """Replace the file; False if the disk refuses, the seal of the home has changed, or `stop`
        became true before the end."""
        fresh = self._folder / f"{uuid.uuid4().hex}.new"
        try:
            self._check()
            columns = columns_of(plan.documents, self.fields, stop)
            self._folder.mkdir(parents=True, exist_ok=True)
            if plan.base is not None:
                with self._erasing:
                    old = select(plan.base.columns, plan.keep, plan.readings)
                columns = join(old, columns)
            write_columns(fresh, columns, self._form, fresh.stem, plan.upto)
            with self._erasing:
                self._check()
                if stop():
                    raise CutShort
                fresh.replace(self._path)
                # Up to -1: a part of all, and no process relies on it.
                self._erase(lambda: self._changed(plan.upto) if plan.upto >= 0 else ())
        except (CutShort, AnaphoraError, *WORD_INDEX_ERRORS):
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
            return False
        return True

    def erase(self, keys: Iterable[str]) -> None:
        """Overwrite the documents with these keys; the file is removed if that is refused."""
        with suppress(OSError), self._erasing:
            self._erase(lambda: keys)

    def _erase(self, list_keys: Callable[[], Iterable[str]]) -> None:
        try:
            if keys := set(list_keys()):
                segment = Segment(self._path, self._form, "r+")
                segment.erase(segment.find(keys))
        except (AnaphoraError, *WORD_INDEX_ERRORS):
            self._path.unlink(missing_ok=True)

    @cached_property
    def _erasing(self) -> AbstractContextManager[object]:
        from filelock import FileLock

        return FileLock(self._folder / _LOCK, mode=0o600, poll_interval=0.005)

    def tidy(self, writing: Callable[[str], AbstractContextManager[bool]]) -> None:
        """Remove what a killed writer or an older version left; `writing` locks a part for
        writing."""
        if self._strays():
            # Among them may be what a writer is writing.
            with writing("words") as is_locked:
                for path in self._strays() if is_locked else ():
                    if path.is_dir():
                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        with suppress(OSError):
                            path.unlink(missing_ok=True)

    def _strays(self) -> list[Path]:
        with suppress(OSError):
            return [p for p in self._folder.iterdir() if p.name not in (self._path.name, _LOCK)]
        return []

    def remove_all(self) -> None:
        """Remove everything."""
        shutil.rmtree(self._folder, ignore_errors=True)
