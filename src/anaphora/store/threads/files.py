"""Thread files: their locks, their bytes, and the folder in which they lie.

An append copies the old bytes and adds to them: nothing that a file has is parsed or written again
when its identity is the one that this process left. Names and bytes are those of the store's
`ThreadForm`. Set-aside files lie in `.corrupt` as `<file>.<n>` and are never replaced.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from anaphora.errors import Tampered, WrongKey
from anaphora.store.disk import (
    NO_FILE,
    FileChanged,
    Identity,
    copy_start,
    identity_of,
    make_directory,
    replace_file,
    set_aside,
    sync_directory,
    temporary_key,
)
from anaphora.store.threads.forms import PLAIN, Opened, Seam, ThreadForm
from anaphora.store.threads.gojson import (
    REDACTED,
    ZERO_TIME,
    Document,
    NotAThread,
    encode_turn,
    escape,
    latest,
    parse,
    render,
)
from anaphora.values.conversations import ThreadProblem, Turn

LOCKS_FOLDER = ".locks"

# Waiting for another writer's fsync takes milliseconds: filelock's own 50 would be most of it.
_POLL_SECONDS = 0.002


def lock_key(file_name: str) -> str:
    """A thread file's key in the names of its lock and its temporary files."""
    return hashlib.sha256(file_name.encode("utf-8", "surrogatepass")).hexdigest()[:24]


class ThreadLocks:
    """The locks of the threads in one directory, which all Anaphora processes respect.

    A lock file is never deleted: whoever waits on it would be waiting on a file that nobody else
    can see. Its name is a hash, so that it says nothing of a deleted conversation and never grows
    too long.
    """

    def __init__(self, directory: Path) -> None:
        self._folder = directory / LOCKS_FOLDER

    @contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Wait for the lock of the thread with this key and hold it. Raises OSError."""
        from filelock import FileLock

        make_directory(self._folder)
        with FileLock(self._folder / f"{key}.lock", poll_interval=_POLL_SECONDS, mode=0o600):
            yield

    @contextmanager
    def try_hold(self, key: str) -> Iterator[bool]:
        """Hold the lock of the thread with this key if nobody else does; say whether."""
        from filelock import FileLock, Timeout

        make_directory(self._folder)
        lock = FileLock(self._folder / f"{key}.lock", blocking=False, mode=0o600)
        try:
            lock.acquire()
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a thread file.

    New turns go to `seam`; `count` turns stand before it; `rest` are the bytes of the JSON that
    follow the value of "updated". `document` is set where the file has to be written anew to take
    a turn (another program's layout).
    """

    identity: Identity
    seam: Seam
    count: int
    updated: str
    rest: bytes = b"}"
    document: Document | None = None


def key_of(conversation_id: str, form: ThreadForm = PLAIN) -> str:
    """A conversation's key in the names of its lock and its temporary files."""
    return lock_key(form.file_name(conversation_id))


def read_bytes(path: Path, conversation_id: str, form: ThreadForm) -> tuple[Opened, Identity]:
    """A thread file's JSON, and its identity. Raises OSError, WrongKey and NotAThread.

    A sealed file that was changed or cut is no thread: it is set aside as a damaged one is.
    """
    with path.open("rb") as file:
        identity = identity_of(os.fstat(file.fileno()))
        data = file.read()
    try:
        return form.decode(conversation_id, data), identity
    except Tampered as error:
        raise NotAThread(error.reason) from error


def read_document(
    path: Path, conversation_id: str, form: ThreadForm
) -> tuple[Document, Opened, Identity]:
    """A thread file taken apart, its JSON and identity. Raises as `read_bytes` does."""
    opened, identity = read_bytes(path, conversation_id, form)
    return parse(opened.data), opened, identity


def read_tail(path: Path, conversation_id: str, form: ThreadForm) -> Tail:
    """The end of the file at `path`, or of an empty thread where there is none."""
    try:
        document, opened, identity = read_document(path, conversation_id, form)
    except FileNotFoundError:
        return Tail(NO_FILE, Seam(0), 0, ZERO_TIME, document=Document())
    count = len(document.turns)
    seam = opened.seam_at(document.splice[0]) if document.splice is not None else None
    if document.splice is None or seam is None:
        return Tail(identity, Seam(0), count, document.updated, document=document)
    return Tail(identity, seam, count, document.updated, opened.data[document.splice[1] :])


def append_turns(
    path: Path, conversation_id: str, tail: Tail, turns: Sequence[Turn], form: ThreadForm
) -> Tail:
    """Add turns at the end of the file that `tail` describes; returns its new end.

    "updated" becomes the latest of what it was and the turns' times, in UTC. Raises OSError, and
    FileChanged where the file is no longer that one; the old file is then as it was.
    """
    updated = latest(tail.updated, turns)
    if tail.document is not None:
        tail.document.turns.extend(turns)
        tail.document.raw_turns.extend(encode_turn(turn) for turn in turns)
        tail.document.updated = updated
        return rewrite(path, conversation_id, tail.document, tail.identity, form)
    comma = "," if tail.count else ""
    added = (comma + ",".join(encode_turn(turn) for turn in turns)).encode("utf-8")
    end = f'],"updated":{escape(updated)}'.encode() + tail.rest
    data, seam = form.more(conversation_id, tail.seam, added, end)

    def write(target: BinaryIO) -> None:
        with path.open("rb", buffering=0) as source:
            if identity_of(os.fstat(source.fileno())) != tail.identity:
                raise FileChanged(errno.EAGAIN, "another program wrote the file", str(path))
            copy_start(source.fileno(), target, tail.seam.offset)
        target.write(data)

    identity = replace_file(path, key_of(conversation_id, form), tail.identity, write)
    return Tail(identity, seam, tail.count + len(turns), updated, tail.rest)


def rewrite(
    path: Path, conversation_id: str, document: Document, old: Identity, form: ThreadForm
) -> Tail:
    """Write the whole document in the place of the file `old`, its turns from `raw_turns`.

    Raises OSError, and FileChanged where another file is there now.
    """
    if not document.conversation_id:
        document = replace(document, conversation_id=conversation_id)
    head, end = render(document)
    data, seam = form.whole(conversation_id, head, end)

    identity = replace_file(path, key_of(conversation_id, form), old, data)
    if not document.raw_turns:
        return Tail(identity, Seam(0), 0, document.updated, document=document)
    rest = render_rest(document)
    return Tail(identity, seam, len(document.raw_turns), document.updated, rest)


def render_rest(document: Document) -> bytes:
    """What follows the value of "updated" in the document's bytes."""
    return ("".join(f",{key}:{value}" for key, value in document.extras) + "}").encode("utf-8")


CORRUPT = ".corrupt"


class ThreadFolder:
    """Names and places in one directory of threads, whose files have one form."""

    def __init__(self, directory: Path, form: ThreadForm = PLAIN) -> None:
        self.directory = directory
        self.form = form
        self.corrupt = directory / CORRUPT

    def path(self, conversation_id: str) -> Path:
        """Where this conversation lies or would lie. Raises InvalidId.

        Another program's file under the unescaped id comes first, if there is one.
        """
        plain = self.form.plain_name(conversation_id)
        if plain is not None and self._has_file(plain):
            return self.directory / plain
        return self.directory / self.form.file_name(conversation_id)

    def key(self, conversation_id: str) -> str:
        """A conversation's key in the names of its lock and its temporary files."""
        return key_of(conversation_id, self.form)

    def files(self) -> Iterator[tuple[str, Path]]:
        """Every conversation's id and file, in no particular order. Raises OSError."""
        for name in self._names():
            conversation_id = self.form.id_in(name, self.directory / name)
            if conversation_id is not None and self.path(conversation_id).name == name:
                yield conversation_id, self.directory / name

    def copies(self, conversation_id: str) -> list[Path]:
        """What was set aside of this conversation."""
        names = {self.form.file_name(conversation_id), self.form.plain_name(conversation_id)}
        return [place for place in self.copies_of_all() if place.stem in names]

    def set_aside(self, path: Path) -> Path:
        """Move an unreadable thread file out of the way. Raises OSError."""
        return set_aside(path, self.corrupt)

    def problems(self) -> Iterator[ThreadProblem]:
        """What was set aside, and files that no conversation id leads to."""
        for place in self.copies_of_all():
            conversation_id = self.form.id_in(place.stem, place) or ""
            stood_at = str(self.directory / place.stem)
            why = self._why(place, conversation_id)
            yield ThreadProblem(conversation_id, stood_at, why, str(place))
        with suppress(FileNotFoundError):
            for name in self._names():
                path = self.directory / name
                conversation_id = self.form.id_in(name, path) or ""
                if not conversation_id:
                    yield ThreadProblem("", str(path), "its name is no conversation's")
                elif self.path(conversation_id) != path:
                    reason = "another program's file of the same conversation stands before it"
                    yield ThreadProblem(conversation_id, str(path), reason)

    def remove(self, conversation_id: str) -> bool:
        """Remove every file of this conversation; say whether there was one. Raises OSError.

        The caller holds the lock of the thread.
        """
        self.remove_temporaries(conversation_id)
        copies = self.copies(conversation_id)
        places = [self.directory / self.form.file_name(conversation_id)]
        plain = self.form.plain_name(conversation_id)
        if plain is not None and self._has_file(plain):
            places.append(self.directory / plain)
        found = [place for place in (*places, *copies) if os.path.lexists(place)]
        for place in found:
            place.unlink()
        for folder in {place.parent for place in found}:
            sync_directory(folder)
        return bool(found)

    def remove_temporaries(self, conversation_id: str) -> None:
        """Remove what interrupted writes left of this thread; the caller holds its lock."""
        key = self.key(conversation_id)
        for place in self._temporaries():
            if temporary_key(place.name) == key:
                place.unlink(missing_ok=True)

    def sweep(self, locks: ThreadLocks) -> None:
        """Remove what interrupted writes left of any thread that nobody writes just now."""
        for place in self._temporaries():
            with locks.try_hold(temporary_key(place.name) or "") as held:
                if held:
                    place.unlink(missing_ok=True)

    def scrub(self, conversation_id: str, text: str) -> None:
        """Replace `text` in what was set aside of this conversation. Raises OSError."""
        for place in self.copies(conversation_id):
            try:
                data = read_bytes(place, conversation_id, self.form)[0].data
            except (NotAThread, WrongKey):
                # Sealed and damaged: nothing can be replaced in it, and it may hold the words.
                place.unlink()
                continue
            clean = data
            for form in _written_forms(text):
                # A short text is replaced only where it is the whole of a string.
                old, new = (form, REDACTED) if len(text) >= 8 else (f'"{form}"', f'"{REDACTED}"')
                clean = clean.replace(old.encode("utf-8", "surrogatepass"), new.encode())
            if clean != data:
                data, _ = self.form.whole(conversation_id, clean, b"")
                replace_file(place, self.key(conversation_id), identity_of(place.stat()), data)

    def _has_file(self, name: str) -> bool:
        """Whether a file has exactly this name; some disks also find it under other names."""
        place = self.directory / name
        return os.path.lexists(place) and place in self.directory.iterdir()

    def _names(self) -> list[str]:
        with os.scandir(self.directory) as entries:
            return [
                entry.name
                for entry in entries
                if entry.name.endswith(self.form.suffix)
                and entry.name[0] != "."
                and entry.is_file()
            ]

    def copies_of_all(self) -> list[Path]:
        """Everything that was set aside in this form, of any conversation."""
        try:
            return sorted(
                place
                for place in self.corrupt.iterdir()
                if place.suffix[1:].isdigit() and place.stem.endswith(self.form.suffix)
            )
        except FileNotFoundError:
            return []

    def _why(self, place: Path, conversation_id: str) -> str:
        try:
            parse(read_bytes(place, conversation_id, self.form)[0].data)
        except NotAThread as error:
            return str(error)
        except WrongKey as error:
            return error.reason
        except OSError as error:
            return error.strerror or str(error)
        return "it could not be read when it was set aside"

    def _temporaries(self) -> list[Path]:
        found: list[Path] = []
        for folder in (self.directory, self.corrupt):
            with suppress(FileNotFoundError), os.scandir(folder) as entries:
                found += [Path(entry.path) for entry in entries if temporary_key(entry.name)]
        return found


def _written_forms(text: str) -> set[str]:
    """How a JSON writer may have written this text inside a string."""
    return {text, escape(text)[1:-1], json.dumps(text)[1:-1]}
