"""The thread files of one folder from one form into another, and what was set aside with them.

A file is removed when its successor was written, read back and compared; run again after a crash,
it begins with what is left. Files that cannot be opened are set aside and reported.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from anaphora.core.progress import Progress
from anaphora.errors import EncryptionError, StoreError, WrongKey
from anaphora.store.disk import identity_at, replace_file, sync_directory, translate
from anaphora.store.threads.files import LOCKS_FOLDER, ThreadFolder, ThreadLocks, lock_key
from anaphora.store.threads.forms import SealedThreads, ThreadForm
from anaphora.store.threads.gojson import NotAThread, parse
from anaphora.values.conversations import ThreadProblem


@dataclass(slots=True)
class Done:
    """How many threads have the new form now, and what could not be opened."""

    threads: int = 0
    problems: list[ThreadProblem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Content:
    """A file's conversation ("" for none), the name that it had in clear, and its JSON."""

    conversation_id: str
    original: str
    data: bytes


def convert_folder(directory: Path, source: ThreadForm, target: ThreadForm, tell: Progress) -> Done:
    """Convert every file in `directory`. Nobody else writes there: the marker forbids it."""
    done = Done()
    if not directory.is_dir():
        return done
    folder = ThreadFolder(directory, source)
    try:
        _wait_for_writers(directory)
        folder.sweep(ThreadLocks(directory))
        names = _names(directory, source.suffix)
        ids = {path.name: key for key, path in folder.files()}
        for place in folder.copies_of_all():
            _convert_copy(folder, target, place, done)
        for number, name in enumerate(names, 1):
            _convert_thread(folder, target, name, ids.get(name, ""), done)
            tell("threads", number, len(names))
        _remove_locks(directory)
    except OSError as error:
        raise translate(error, "convert", directory) from error
    return done


def _wait_for_writers(directory: Path) -> None:
    """Whoever began to write before the marker stood there holds its thread's lock until it ends.

    Whoever takes a lock later sees the marker and writes nothing.
    """
    locks = ThreadLocks(directory)
    with suppress(FileNotFoundError):
        for place in list((directory / LOCKS_FOLDER).iterdir()):
            if place.suffix == ".lock":
                with locks.hold(place.stem):
                    pass


def _convert_thread(
    folder: ThreadFolder, target: ThreadForm, name: str, conversation_id: str, done: Done
) -> None:
    path = folder.directory / name
    try:
        content = _content(folder.form, path, name, conversation_id)
    except WrongKey as error:
        if not _is_done(target, path):
            done.problems.append(ThreadProblem("", str(path), error.reason))
        return
    except EncryptionError as error:
        place = folder.set_aside(path)
        problem = ThreadProblem(conversation_id, str(path), error.reason, str(place))
        done.problems.append(problem)
        return
    place = folder.directory / _name(target, content)
    _put(place, content, target, _split(content.data))
    _remove(path)
    done.threads += 1


def _convert_copy(folder: ThreadFolder, target: ThreadForm, place: Path, done: Done) -> None:
    """What was set aside, under the first free number of its new name."""
    conversation_id = folder.form.id_in(place.stem, place) or ""
    try:
        content = _content(folder.form, place, place.stem, conversation_id)
    except EncryptionError as error:
        if not _is_done(target, place):
            problem = ThreadProblem(conversation_id, str(place), error.reason, str(place))
            done.problems.append(problem)
        return
    name, number = _name(target, content), 1
    while os.path.lexists(folder.corrupt / f"{name}.{number}"):
        number += 1
    _put(folder.corrupt / f"{name}.{number}", content, target, (content.data, b""))
    _remove(place)


def _content(form: ThreadForm, path: Path, name: str, conversation_id: str) -> _Content:
    data = path.read_bytes()
    if isinstance(form, SealedThreads):
        found, original, opened = form.decode_any(data)
        return _Content(found, original, opened.data)
    return _Content(conversation_id, name, data)


def _name(target: ThreadForm, content: _Content) -> str:
    if content.conversation_id:
        return target.file_name(content.conversation_id)
    if isinstance(target, SealedThreads):
        return target.name_for_nameless(content.original)
    return content.original


def _is_done(target: ThreadForm, path: Path) -> bool:
    """Whether the file has the new form already."""
    if not isinstance(target, SealedThreads):
        return False
    try:
        target.label(path)
    except EncryptionError:
        return False
    return True


def _split(data: bytes) -> tuple[bytes, bytes]:
    """The JSON in two, where its list of turns ends, so that the next turn can go there."""
    try:
        splice = parse(data).splice
    except NotAThread:
        return data, b""
    return (data, b"") if splice is None else (data[: splice[0]], data[splice[0] :])


def _put(path: Path, content: _Content, target: ThreadForm, pieces: tuple[bytes, bytes]) -> None:
    if isinstance(target, SealedThreads):
        data, _ = target.whole(content.conversation_id, *pieces, original=content.original)
    else:
        data = content.data

    replace_file(path, lock_key(path.name), identity_at(path), data)
    if target.decode(content.conversation_id, path.read_bytes()).data != content.data:
        raise StoreError("convert", path, "it was not read back as it was written")


def _remove(path: Path) -> None:
    path.unlink()
    sync_directory(path.parent)


def _names(directory: Path, suffix: str) -> list[str]:
    with os.scandir(directory) as entries:
        return sorted(
            entry.name
            for entry in entries
            if entry.name.endswith(suffix) and entry.name[0] != "." and entry.is_file()
        )


def _remove_locks(directory: Path) -> None:
    """Their names are hashes of the old names. Who still waits on one will be refused."""
    with suppress(FileNotFoundError):
        for place in list((directory / LOCKS_FOLDER).iterdir()):
            # Windows keeps a file that somebody has open.
            with suppress(PermissionError):
                place.unlink()
