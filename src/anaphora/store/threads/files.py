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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from anaphora.errors import InvalidId, Tampered, WrongKey
from anaphora.store.db.faults import BUSY_SECONDS
from anaphora.store.disk import (
    NO_FILE,
    FileChanged,
    Identity,
    copy_start,
    identity_at,
    identity_of,
    make_directory,
    replace_file,
    set_aside,
    sync_directory,
    temporary_key,
)
from anaphora.store.threads.forms import PLAIN, DecodedThread, Seam, ThreadForm
from anaphora.store.threads.gojson import (
    REDACTED,
    ZERO_TIME,
    NotAThread,
    ThreadDocument,
    encode_turn,
    escape,
    latest,
    parse,
    render,
)
from anaphora.store.threads.ids import lock_name, spellings, unfit_for_windows
from anaphora.store.threads.joining import restore_lost
from anaphora.store.threads.written import WrittenCopy, second_names
from anaphora.values.conversations import ThreadProblem, Turn

LOCKS_FOLDER = ".locks"
CORRUPT = ".corrupt"

# Another program may write again while its last write is joined; each try takes an fsync.
_TRIES = 50
# Waiting for another writer's fsync takes milliseconds: filelock's own 50 would be most of it.
_POLL_SECONDS = 0.002


def lock_key(file_name: str) -> str:
    """A thread file's key in the names of its lock and its temporary files."""
    return hashlib.sha256(file_name.encode("utf-8", "surrogatepass")).hexdigest()[:24]


class ThreadLocks:
    """The locks of the threads in one directory, which all Anaphora processes respect.

    A lock file is never deleted: a process that waits on it would be waiting on a file that no
    other one can see. Its name is a hash, so that it says nothing of a deleted conversation and
    never grows too long.
    """

    def __init__(self, directory: Path) -> None:
        self._folder = directory / LOCKS_FOLDER

    @contextmanager
    def hold(self, key: str, patience: float = BUSY_SECONDS) -> Iterator[None]:
        """Wait for the lock of the thread with this key and hold it.

        Raises OSError, also where another process holds it for `patience` seconds (-1: as long as
        it takes): it may have been stopped.
        """
        from filelock import FileLock

        make_directory(self._folder)
        path = self._folder / f"{key}.lock"
        with FileLock(path, timeout=patience, poll_interval=_POLL_SECONDS, mode=0o600):
            yield

    @contextmanager
    def try_hold(self, key: str) -> Iterator[bool]:
        """Hold the lock of the thread with this key if it is free; say whether."""
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
    document: ThreadDocument | None = None


@dataclass(frozen=True, slots=True)
class ThreadFile:
    """The file of a conversation, there or not, or what was set aside of it."""

    conversation_id: str
    path: Path
    form: ThreadForm = PLAIN

    @property
    def key(self) -> str:
        """The conversation's key in the names of its lock and its temporary files."""
        return lock_key(self.form.lock_name(self.conversation_id))

    @property
    def written(self) -> WrittenCopy | None:
        """The second name of what this store wrote; None where no other program writes."""
        if not self.form.shared:
            return None
        # By the name of the file: two ids may share a lock.
        return WrittenCopy(self.path, lock_key(self.path.name))

    def read(self) -> tuple[DecodedThread, Identity]:
        """Its JSON, and its identity. Raises OSError, WrongKey and NotAThread.

        A sealed file that was changed or cut is no thread: it is set aside as a damaged one is.
        """
        with self.path.open("rb") as file:
            identity = identity_of(os.fstat(file.fileno()))
            content = file.read()
        try:
            return self.form.decode(self.conversation_id, content), identity
        except Tampered as error:
            raise NotAThread(error.reason) from error

    def document(self) -> tuple[ThreadDocument, Identity]:
        """What it has, taken apart, and its identity. Raises as `read` does."""
        decoded_thread, identity = self.read()
        return parse(decoded_thread.data), identity

    def tail(self) -> Tail:
        """Its end, or that of an empty thread where there is no file."""
        try:
            decoded_thread, identity = self.read()
        except FileNotFoundError:
            return Tail(NO_FILE, Seam(0), 0, ZERO_TIME, document=ThreadDocument())
        document = parse(decoded_thread.data)
        count = len(document.turns)
        seam = decoded_thread.seam_at(document.splice[0]) if document.splice is not None else None
        if document.splice is None or seam is None:
            return Tail(identity, Seam(0), count, document.updated, document=document)
        return Tail(
            identity, seam, count, document.updated, decoded_thread.data[document.splice[1] :]
        )

    def append(self, tail: Tail, turns: Sequence[Turn]) -> Tail:
        """Add turns at the end that `tail` describes; returns the new end.

        "updated" becomes the latest of what it was and the turns' times, in UTC. Raises OSError,
        and FileChanged where the file is no longer that one; the old file is then as it was.
        """
        update_time = latest(tail.updated, turns)
        if tail.document is not None:
            tail.document.turns.extend(turns)
            tail.document.raw_turns.extend(encode_turn(turn) for turn in turns)
            tail.document.updated = update_time
            return self.rewrite(tail.document, tail.identity, adding=True)
        comma = "," if tail.count else ""
        added_bytes = (comma + ",".join(encode_turn(turn) for turn in turns)).encode("utf-8")
        end = f'],"updated":{escape(update_time)}'.encode() + tail.rest
        content, seam = self.form.more(self.conversation_id, tail.seam, added_bytes, end)

        def write(target: BinaryIO) -> None:
            with self.path.open("rb", buffering=0) as source:
                if identity_of(os.fstat(source.fileno())) != tail.identity:
                    raise FileChanged(
                        errno.EAGAIN, "another program wrote the file", str(self.path)
                    )
                copy_start(source.fileno(), target, tail.seam.offset)
            target.write(content)

        identity = self._replace(tail.identity, write, adding=True)
        return Tail(identity, seam, tail.count + len(turns), update_time, tail.rest)

    def rewrite(self, document: ThreadDocument, old: Identity, *, adding: bool = False) -> Tail:
        """Write the whole document in the place of the file `old`, its turns from `raw_turns`.

        `adding` says that it has every turn of the old one. Raises OSError, and FileChanged where
        another file is there now.
        """
        if not document.conversation_id:
            document = replace(document, conversation_id=self.conversation_id)
        head, end = render(document)
        content, seam = self.form.whole(self.conversation_id, head, end)
        identity = self._replace(old, content, adding=adding)
        count = len(document.raw_turns)
        if not count:
            return Tail(identity, Seam(0), 0, document.updated, document=document)
        tail_text = "".join(f",{key}:{member_value}" for key, member_value in document.extras) + "}"
        return Tail(identity, seam, count, document.updated, tail_text.encode("utf-8"))

    def settle(self) -> bool:
        """Put back what another program's write took away; whether the file was changed.

        The caller holds the lock of the thread. Raises OSError, and FileChanged where another
        program goes on writing.
        """
        written_file = self.written
        if written_file is None:
            return False
        is_changed = False
        # What was exchanged is another program's; the link has what this store wrote.
        for source in written_file.displaced():
            is_changed |= self._restore(source, is_ours=False)
        return self._restore(written_file.link, is_ours=True) or is_changed

    def _restore(self, source: Path, *, is_ours: bool) -> bool:
        """Join what lies under one of the names with the file, or drop that name.

        A name of another program's file is dropped once a file with its turns is in place. The
        link is renewed by the write.
        """
        identity = identity_at(source)
        if identity == NO_FILE:
            return False
        if identity[0] == identity_at(self.path)[0]:
            if not is_ours:
                source.unlink()
            return False
        try:
            source_document = parse(source.read_bytes())
        except NotAThread:
            # A swap that was not written to its end is nothing.
            if not is_ours:
                source.unlink()
            return False
        try:
            document, old_identity = self.document()
        except FileNotFoundError:
            # The conversation was deleted: nothing of it is kept.
            source.unlink()
            return False
        except NotAThread:
            # A reader sets the file aside.
            return False
        joined_document = restore_lost(
            *((source_document, document) if is_ours else (document, source_document))
        )
        if joined_document is not None:
            self.rewrite(joined_document, old_identity, adding=True)
        if joined_document is None or not is_ours:
            source.unlink()
        return joined_document is not None

    def _replace(
        self, old: Identity, content: bytes | Callable[[BinaryIO], object], *, adding: bool
    ) -> Identity:
        written_file = self.written
        if written_file is None:
            return replace_file(self.path, self.key, old, content)
        if not adding:
            return written_file.replace(old, content)
        return written_file.exchange(old, content)


class ThreadFolder:
    """Names and paths in one directory of threads with files of one form; and their locks."""

    def __init__(self, directory: Path, form: ThreadForm = PLAIN) -> None:
        self.directory = directory
        self.form = form
        self.corrupt = directory / CORRUPT
        self.locks = ThreadLocks(directory)
        # Whether names that differ only in case or normal form were seen side by side.
        self._tells_spellings = False

    def file(self, conversation_id: str) -> ThreadFile:
        """The one file of this conversation, there or not. Raises InvalidId.

        What another program's write took away is put back first. The caller does not hold its
        lock.
        """
        file = self._file(conversation_id)
        if file.written is not None and file.written.differs():
            # A folder that cannot be written is read as it is, and so is a thread that another
            # process writes just now: no reader waits for it.
            with suppress(OSError), self.locks.try_hold(file.key) as is_free:
                if is_free:
                    return self.settle(conversation_id)
        self._refuse_unfit(file)
        return file

    def settle(self, conversation_id: str) -> ThreadFile:
        """As `file`, for a caller that holds the lock of the thread. Raises InvalidId, OSError."""
        file = self._file(conversation_id)
        self._refuse_unfit(file)
        for _ in range(_TRIES):
            if file.written is None or not file.written.differs():
                break
            with suppress(FileChanged):
                file.settle()
        return file

    def holds(self, conversation_id: str) -> bool:
        """Whether there is a file of exactly this id, and not of one that the disk confuses."""
        try:
            file = self._file(conversation_id)
        except InvalidId:
            # Another form of an id may be too long for one.
            return False
        if not os.path.lexists(file.path):
            return False
        return self.form.id_in(file.path.name, file.path) == conversation_id

    def key(self, conversation_id: str) -> str:
        """A conversation's key in the names of its lock and its temporary files."""
        return lock_key(self.form.lock_name(conversation_id))

    def files(self) -> Iterator[ThreadFile]:
        """Every conversation's file, in no particular order. Raises OSError."""
        inodes = self._inodes()
        links, has_swap = second_names(self.directory) if self.form.shared else ({}, False)
        for name, inode in inodes.items():
            conversation_id = self.form.id_in(name, self.directory / name)
            if conversation_id is None:
                continue
            expected_name = self.form.file_name(conversation_id)
            if name != expected_name and expected_name in inodes:
                # Another spelling of a name that is there.
                continue
            if name == expected_name and links.get(name, inode) == inode and not has_swap:
                yield ThreadFile(conversation_id, self.directory / name, self.form)
            else:
                with suppress(InvalidId):
                    yield self.file(conversation_id)

    def _file(self, conversation_id: str) -> ThreadFile:
        name = self.form.file_name(conversation_id)
        return ThreadFile(conversation_id, self.directory / name, self.form)

    def _refuse_unfit(self, file: ThreadFile) -> None:
        """Raise InvalidId where this file system cannot hold the file beside what is there."""
        if not self.form.shared:
            return
        conversation_id, name = file.conversation_id, file.path.name
        reason = unfit_for_windows(conversation_id) if os.name == "nt" else None
        if reason is None and not self._tells_spellings:
            twins = [form for form in spellings(name) if os.path.lexists(self.directory / form)]
            present = self.names() if twins and os.path.lexists(file.path) else []
            if name in present:
                self._tells_spellings = any(twin in present for twin in twins)
            elif present:
                forms_by_lock = {lock_name(form): form for form in present}
                twin = forms_by_lock.get(lock_name(name), twins[0])
                reason = f"this file system does not tell its file from {twin!r}"
        if reason is not None:
            raise InvalidId("conversation id", conversation_id, reason)

    def copies(self, conversation_id: str) -> list[Path]:
        """What was set aside of this conversation."""
        name = self.form.file_name(conversation_id)
        return [path for path in self.copies_of_all() if path.stem == name]

    def set_aside(self, path: Path) -> Path:
        """Move an unreadable thread file out of the way. Raises OSError."""
        return set_aside(path, self.corrupt)

    def problems(self) -> Iterator[ThreadProblem]:
        """What was set aside, and files that no conversation id leads to."""
        for path in self.copies_of_all():
            conversation_id = self.form.id_in(path.stem, path) or ""
            stood_at = str(self.directory / path.stem)
            copy = ThreadFile(conversation_id, path, self.form)
            yield ThreadProblem(conversation_id, stood_at, _why_unreadable(copy), str(copy.path))
        with suppress(FileNotFoundError):
            for name in self.names():
                path = self.directory / name
                conversation_id = self.form.id_in(name, path) or ""
                if not conversation_id and name.startswith("."):
                    # Another program's hidden file.
                    continue
                if not conversation_id:
                    yield ThreadProblem("", str(path), "its name is not a conversation id")
                elif name != self.form.file_name(conversation_id):
                    reason = "it could not be joined with the other file of this conversation"
                    yield ThreadProblem(conversation_id, str(path), reason)

    def remove(self, conversation_id: str) -> bool:
        """Remove every file of this conversation; say whether there was one. Raises OSError.

        The caller holds the lock of the thread.
        """
        self.remove_temporaries(conversation_id)
        file = self._file(conversation_id)
        if file.written is not None:
            file.written.drop()
        paths = [file.path, *self.copies(conversation_id)]
        existing = [path for path in paths if os.path.lexists(path)]
        for path in existing:
            path.unlink()
        for folder in {path.parent for path in existing}:
            sync_directory(folder)
        return bool(existing)

    def remove_temporaries(self, conversation_id: str) -> None:
        """Remove what interrupted writes left of this thread; the caller holds its lock."""
        key = self.key(conversation_id)
        for path in self.temporaries():
            if temporary_key(path.name) == key:
                path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what interrupted writes left of any thread that is not being written just now."""
        for path in self.temporaries():
            with self.locks.try_hold(temporary_key(path.name) or "") as is_free:
                if is_free:
                    path.unlink(missing_ok=True)

    def scrub(self, conversation_id: str, text: str) -> None:
        """Replace `text` in what was set aside of this conversation. Raises OSError."""
        for path in self.copies(conversation_id):
            copy = ThreadFile(conversation_id, path, self.form)
            try:
                content = copy.read()[0].data
            except (NotAThread, WrongKey):
                # Sealed and damaged: nothing can be replaced in it, and it may hold the words.
                path.unlink()
                continue
            clean = content
            # As a JSON writer may have written it inside a string.
            for form in {text, escape(text)[1:-1], json.dumps(text)[1:-1]}:
                # A short text is replaced only where it is the whole of a string.
                old_text, new_text = (
                    (form, REDACTED) if len(text) >= 8 else (f'"{form}"', f'"{REDACTED}"')
                )
                clean = clean.replace(old_text.encode("utf-8", "surrogatepass"), new_text.encode())
            if clean != content:
                content, _ = self.form.whole(conversation_id, clean, b"")
                replace_file(path, copy.key, identity_of(path.stat()), content)

    def names(self) -> list[str]:
        """The names of all thread files, in no particular order. Raises OSError."""
        return list(self._inodes())

    def _inodes(self) -> dict[str, int]:
        with os.scandir(self.directory) as entries:
            return {
                dir_entry.name: dir_entry.inode()
                for dir_entry in entries
                if dir_entry.name.endswith(self.form.suffix) and dir_entry.is_file()
            }

    def copies_of_all(self) -> list[Path]:
        """Everything that was set aside in this form, of any conversation."""
        try:
            return sorted(
                path
                for path in self.corrupt.iterdir()
                if path.suffix[1:].isdigit() and path.stem.endswith(self.form.suffix)
            )
        except FileNotFoundError:
            return []

    def temporaries(self) -> list[Path]:
        """What writes have left, or are writing just now."""
        paths: list[Path] = []
        for folder in (self.directory, self.corrupt):
            with suppress(FileNotFoundError), os.scandir(folder) as entries:
                paths += [
                    Path(dir_entry.path) for dir_entry in entries if temporary_key(dir_entry.name)
                ]
        return paths


def _why_unreadable(copy: ThreadFile) -> str:
    try:
        copy.document()
    except NotAThread as error:
        return str(error)
    except WrongKey as error:
        return error.reason
    except OSError as error:
        return error.strerror or str(error)
    return "it could not be read when it was set aside"
