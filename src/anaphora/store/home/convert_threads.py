"""The thread files of one folder from one form into another, and what was set aside with them.

A file is removed when its successor was written, read back and compared; run again after a crash,
it begins with what is left. Files that cannot be opened are set aside and reported.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from anaphora.core.progress import Progress
from anaphora.errors import EncryptionError, StoreError, WrongKey
from anaphora.store.disk import identity_at, replace_file, sync_directory, translate
from anaphora.store.threads.files import LOCKS_FOLDER, ThreadFolder, lock_key
from anaphora.store.threads.forms import SealedThreads, ThreadForm
from anaphora.store.threads.gojson import NotAThread, parse
from anaphora.store.threads.written import remove_written
from anaphora.values.conversations import ThreadProblem


@dataclass(frozen=True, slots=True)
class _Content:
    """A file's conversation ("" for none), the name that it had in clear, and its JSON."""

    conversation_id: str
    original: str
    data: bytes


class FolderConversion:
    """The thread files of one folder, from the form that they have into `target`.

    `threads` counts those that have the new form now; `problems` are what could not be opened.
    """

    def __init__(self, directory: Path, source: ThreadForm, target: ThreadForm) -> None:
        self.threads = 0
        self.problems: list[ThreadProblem] = []
        self._folder = ThreadFolder(directory, source)
        self._locks = directory / LOCKS_FOLDER
        self._target = target

    def run(self, tell: Progress) -> None:
        """Convert every file. Nobody else writes there: the marker forbids it."""
        folder = self._folder
        if not folder.directory.is_dir():
            return
        try:
            self._wait_for_writers()
            folder.sweep()
            names = sorted(folder.names())
            ids = {file.path.name: file.conversation_id for file in folder.files()}
            for place in folder.copies_of_all():
                self._convert_copy(place)
            for number, name in enumerate(names, 1):
                self._convert_thread(folder.directory / name, ids.get(name, ""))
                tell("threads", number, len(names))
            self._remove_locks()
            remove_written(folder.directory)
        except OSError as error:
            raise translate(error, "convert", folder.directory) from error

    def _wait_for_writers(self) -> None:
        """Whoever began to write before the marker stood there holds its thread's lock until it
        ends. Whoever takes a lock later sees the marker and writes nothing.
        """
        with suppress(FileNotFoundError):
            for place in list(self._locks.iterdir()):
                if place.suffix == ".lock":
                    with self._folder.locks.hold(place.stem):
                        pass

    def _remove_locks(self) -> None:
        """Their names are hashes of the old names. Who still waits on one will be refused."""
        with suppress(FileNotFoundError):
            for place in list(self._locks.iterdir()):
                # Windows keeps a file that somebody has open.
                with suppress(PermissionError):
                    place.unlink()

    def _convert_thread(self, path: Path, conversation_id: str) -> None:
        try:
            content = self._content(path, path.name, conversation_id)
        except WrongKey as error:
            if not self._is_done(path):
                self.problems.append(ThreadProblem("", str(path), error.reason))
            return
        except EncryptionError as error:
            place = self._folder.set_aside(path)
            problem = ThreadProblem(conversation_id, str(path), error.reason, str(place))
            self.problems.append(problem)
            return
        self._put(path.with_name(self._name(content)), content, _split(content.data))
        _remove(path)
        self.threads += 1

    def _convert_copy(self, place: Path) -> None:
        """What was set aside, under the first free number of its new name."""
        conversation_id = self._folder.form.id_in(place.stem, place) or ""
        try:
            content = self._content(place, place.stem, conversation_id)
        except EncryptionError as error:
            if not self._is_done(place):
                problem = ThreadProblem(conversation_id, str(place), error.reason, str(place))
                self.problems.append(problem)
            return
        name, number = self._name(content), 1
        while os.path.lexists(place.with_name(f"{name}.{number}")):
            number += 1
        self._put(place.with_name(f"{name}.{number}"), content, (content.data, b""))
        _remove(place)

    def _content(self, path: Path, name: str, conversation_id: str) -> _Content:
        data = path.read_bytes()
        if isinstance(self._folder.form, SealedThreads):
            found, original, decoded = self._folder.form.decode_any(data)
            return _Content(found, original, decoded.data)
        return _Content(conversation_id, name, data)

    def _name(self, content: _Content) -> str:
        if content.conversation_id:
            return self._target.file_name(content.conversation_id)
        if isinstance(self._target, SealedThreads):
            return self._target.name_for_nameless(content.original)
        return content.original

    def _is_done(self, path: Path) -> bool:
        """Whether the file has the new form already."""
        if not isinstance(self._target, SealedThreads):
            return False
        with suppress(EncryptionError):
            self._target.label(path)
            return True
        return False

    def _put(self, path: Path, content: _Content, pieces: tuple[bytes, bytes]) -> None:
        data = content.data
        if isinstance(self._target, SealedThreads):
            original = content.original
            data, _ = self._target.whole(content.conversation_id, *pieces, original=original)
        replace_file(path, lock_key(path.name), identity_at(path), data)
        if self._target.decode(content.conversation_id, path.read_bytes()).data != content.data:
            raise StoreError("convert", path, "it was not read back as it was written")


def _split(data: bytes) -> tuple[bytes, bytes]:
    """The JSON in two, where its list of turns ends, so that the next turn can go there."""
    try:
        splice = parse(data).splice
    except NotAThread:
        return data, b""
    return (data, b"") if splice is None else (data[: splice[0]], data[splice[0] :])


def _remove(path: Path) -> None:
    path.unlink()
    sync_directory(path.parent)
