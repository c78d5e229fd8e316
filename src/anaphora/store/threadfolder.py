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

from anaphora.errors import InvalidId
from anaphora.store.disk import (
    identity_of,
    replace_file,
    set_aside,
    sync_directory,
    temporary_key,
)
from anaphora.store.gojson import NotAThread, escape, parse
from anaphora.store.ids import SUFFIX, check_id, file_name, id_of, is_hashed, plain_name
from anaphora.store.locks import ThreadLocks
from anaphora.store.threadfile import key_of
from anaphora.values import ThreadProblem

__all__ = ["CORRUPT", "REDACTED", "ThreadFolder"]

CORRUPT = ".corrupt"
REDACTED = "[redacted]"
# Longer than any id that we write, escaped, with the key before it.
_ID_BYTES = 16_384
_ID_START = b'{"conversation_id":'


class ThreadFolder:
    """Names and places in one directory of threads."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.corrupt = directory / CORRUPT

    def path(self, conversation_id: str) -> Path:
        """Where this conversation lies or would lie. Raises InvalidId.

        Another program's file under the unescaped id comes first, if there is one.
        """
        plain = plain_name(conversation_id)
        if plain is not None and self._stands(plain):
            return self.directory / plain
        return self.directory / file_name(conversation_id)

    def files(self) -> Iterator[tuple[str, Path]]:
        """Every conversation's id and file, in no particular order. Raises OSError."""
        for name in self._names():
            conversation_id = self._id_in(name)
            if conversation_id is not None and self.path(conversation_id).name == name:
                yield conversation_id, self.directory / name

    def copies(self, conversation_id: str) -> list[Path]:
        """What was set aside of this conversation."""
        names = {file_name(conversation_id), plain_name(conversation_id)}
        return [place for place in self._set_aside() if place.stem in names]

    def set_aside(self, path: Path) -> Path:
        """Move an unreadable thread file out of the way. Raises OSError."""
        return set_aside(path, self.corrupt)

    def problems(self) -> Iterator[ThreadProblem]:
        """What was set aside, and files that no conversation id leads to."""
        for place in self._set_aside():
            conversation_id = id_of(place.stem) or ""
            stood_at = str(self.directory / place.stem)
            yield ThreadProblem(conversation_id, stood_at, _why(place), str(place))
        with suppress(FileNotFoundError):
            for name in self._names():
                path = self.directory / name
                conversation_id = self._id_in(name) or ""
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
        places = [self.directory / file_name(conversation_id)]
        plain = plain_name(conversation_id)
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
        key = key_of(conversation_id)
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
            data = place.read_bytes()
            clean = data
            for form in _written_forms(text):
                # A short text is replaced only where it is the whole of a string.
                old, new = (form, REDACTED) if len(text) >= 8 else (f'"{form}"', f'"{REDACTED}"')
                clean = clean.replace(old.encode("utf-8", "surrogatepass"), new.encode())
            if clean != data:
                self._put(place, conversation_id, clean)

    def _put(self, place: Path, conversation_id: str, data: bytes) -> None:
        def write(target: BinaryIO) -> None:
            target.write(data)

        replace_file(place, key_of(conversation_id), identity_of(place.stat()), write)

    def _stands(self, name: str) -> bool:
        """Whether a file has exactly this name; some disks also find it under other names."""
        place = self.directory / name
        return os.path.lexists(place) and place in self.directory.iterdir()

    def _names(self) -> list[str]:
        with os.scandir(self.directory) as entries:
            return [
                entry.name
                for entry in entries
                if entry.name.endswith(SUFFIX) and entry.name[0] != "." and entry.is_file()
            ]

    def _id_in(self, name: str) -> str | None:
        if not is_hashed(name):
            return id_of(name)
        try:
            with (self.directory / name).open("rb") as file:
                start = file.read(_ID_BYTES)
            if not start.startswith(_ID_START):
                return None
            text = start[len(_ID_START) :].decode("utf-8", "replace")
            found, _end = json.JSONDecoder().raw_decode(text)
            return found if file_name(check_id(found)) == name else None
        except (OSError, ValueError, InvalidId):
            return None

    def _set_aside(self) -> list[Path]:
        try:
            return sorted(place for place in self.corrupt.iterdir() if place.suffix[1:].isdigit())
        except FileNotFoundError:
            return []

    def _temporaries(self) -> list[Path]:
        found: list[Path] = []
        for folder in (self.directory, self.corrupt):
            with suppress(FileNotFoundError), os.scandir(folder) as entries:
                found += [Path(entry.path) for entry in entries if temporary_key(entry.name)]
        return found


def _written_forms(text: str) -> set[str]:
    """How a JSON writer may have written this text inside a string."""
    return {text, escape(text)[1:-1], json.dumps(text)[1:-1]}


def _why(place: Path) -> str:
    try:
        parse(place.read_bytes())
    except NotAThread as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)
    return "it could not be read when it was set aside"
