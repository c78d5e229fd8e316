"""The thread files of one folder from one form into another, and what was set aside with them.

A file is removed when its successor was written, read back and compared; run again after a crash,
it begins with what is left. Files that cannot be opened are set aside and reported.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from anaphora.calls.progress import Progress
from anaphora.errors import EncryptionError, StoreError, WrongKey
from anaphora.store.disk import identity_at, replace_file, sync_directory, translate
from anaphora.store.threads.files import LOCKS_FOLDER, ThreadFolder, lock_key
from anaphora.store.threads.forms import SealedThreads, ThreadForm
from anaphora.store.threads.gojson import NotAThread, parse
from anaphora.store.threads.written import remove_written
from anaphora.values.conversations import ThreadProblem


@dataclass(frozen=True, slots=True)
class _ThreadContent:
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
        """Convert every file. No other process writes there: the marker forbids it."""
        folder = self._folder
        if not folder.directory.is_dir():
            return
        try:
            # Writes that began before the marker was there hold their threads' locks. Later ones
            # see the marker under their lock, and write nothing.
            with suppress(FileNotFoundError):
                for lock_path in list(self._locks.iterdir()):
                    if lock_path.suffix == ".lock":
                        with folder.locks.hold(lock_path.stem):
                            pass
            folder.sweep()
            names = sorted(folder.names())
            ids = {file.path.name: file.conversation_id for file in folder.files()}
            for path in folder.copies_of_all():
                self._convert_copy(path)
            for number, name in enumerate(names, 1):
                self._convert_thread(folder.directory / name, ids.get(name, ""))
                tell("threads", number, len(names))
            # The lock files, named by hashes of the old names. A process on one is refused.
            with suppress(FileNotFoundError):
                for lock_path in list(self._locks.iterdir()):
                    # Windows keeps a file that is open.
                    with suppress(PermissionError):
                        lock_path.unlink()
            remove_written(folder.directory)
        except OSError as error:
            raise translate(error, "convert", folder.directory) from error

    def _convert_thread(self, path: Path, conversation_id: str) -> None:
        try:
            content = self._content(path, path.name, conversation_id)
        except WrongKey as error:
            if not self._is_done(path):
                self.problems.append(ThreadProblem("", str(path), error.reason))
            return
        except EncryptionError as error:
            moved_to = self._folder.set_aside(path)
            problem = ThreadProblem(conversation_id, str(path), error.reason, str(moved_to))
            self.problems.append(problem)
            return
        # In two, where its list of turns ends, so that the next turn can go there.
        parts = content.data, b""
        with suppress(NotAThread):
            splice = parse(content.data).splice
            if splice is not None:
                parts = content.data[: splice[0]], content.data[splice[0] :]
        self._put(path.with_name(self._name(content)), content, parts)
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

    def _content(self, path: Path, name: str, conversation_id: str) -> _ThreadContent:
        content = path.read_bytes()
        if isinstance(self._folder.form, SealedThreads):
            conversation_inside, original, decoded_thread = self._folder.form.decode_any(content)
            return _ThreadContent(conversation_inside, original, decoded_thread.data)
        return _ThreadContent(conversation_id, name, content)

    def _name(self, content: _ThreadContent) -> str:
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

    def _put(self, path: Path, content: _ThreadContent, pieces: tuple[bytes, bytes]) -> None:
        stored_bytes = content.data
        if isinstance(self._target, SealedThreads):
            original = content.original
            stored_bytes, _ = self._target.whole(
                content.conversation_id, *pieces, original=original
            )
        replace_file(path, lock_key(path.name), identity_at(path), stored_bytes)
        if self._target.decode(content.conversation_id, path.read_bytes()).data != content.data:
            raise StoreError("convert", path, "it was not read back as it was written")


def _remove(path: Path) -> None:
    path.unlink()
    sync_directory(path.parent)
