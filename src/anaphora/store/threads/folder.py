"""The directory of threads: which file holds which conversation, and what lies beside them.

In come ids and names; out come paths, and what was set aside as unreadable. Set-aside files lie
in `.corrupt` as `<file>.<n>` and are never replaced; files that an interrupted write left behind
are removed once nobody can be writing them any more.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from anaphora.errors import WrongKey
from anaphora.store.crypto.threads import PLAIN, ThreadForm
from anaphora.store.disk import (
    identity_of,
    replace_file,
    set_aside,
    sync_directory,
    temporary_key,
)
from anaphora.store.threads.file import key_of, read_bytes
from anaphora.store.threads.gojson import NotAThread, escape, parse
from anaphora.store.threads.locks import ThreadLocks
from anaphora.values.conversations import ThreadProblem

CORRUPT = ".corrupt"
REDACTED = "[redacted]"


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
        if plain is not None and self._stands(plain):
            return self.directory / plain
        return self.directory / self.form.file_name(conversation_id)

    def key(self, conversation_id: str) -> str:
        """What stands for a conversation in the names of its lock and its temporary files."""
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
        if plain is not None and self._stands(plain):
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
                self._put(place, conversation_id, self.form.whole(conversation_id, clean, b"")[0])

    def _put(self, place: Path, conversation_id: str, data: bytes) -> None:
        def write(target: BinaryIO) -> None:
            target.write(data)

        replace_file(place, self.key(conversation_id), identity_of(place.stat()), write)

    def _stands(self, name: str) -> bool:
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
