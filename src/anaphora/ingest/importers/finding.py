"""Files to import out of what a user names: a file, a directory (walked, sorted), or a zip file.

In a directory or zip file only names that end in .json, .jsonl, .ndjson or .zip are looked at;
hidden ones, and what exports are known to put beside their conversations, are passed over. A zip
file is opened once, for as long as its members are given; what it would become is bounded before
anything of it is unpacked. What cannot be opened is an `ImportProblem`.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path

from anaphora.core.word_lists import words
from anaphora.ingest.importers.base import BOUNDS, Bounds, ImportFile
from anaphora.store.disk import open_regular
from anaphora.values.conversations import ImportProblem

# What reading a file or a member of a damaged zip file raises, or one that asks for too much.
UNREADABLE = (
    OSError,
    zipfile.BadZipFile,
    NotImplementedError,
    EOFError,
    zlib.error,
    struct.error,
    MemoryError,
)
# Of the other kinds the library unpacks a whole block at once, however large it becomes.
_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_JSON = (".json", ".jsonl", ".ndjson")
_COMPANIONS = words(
    "user.json users.json user_settings.json projects.json memories.json message_feedback.json "
    "model_comparisons.json shared_conversations.json shopping.json sora.json group_chats.json "
    "export_manifest.json conversation_asset_file_names.json"
)
_CONVERSATIONS = "conversations"


def is_zip(path: Path) -> bool:
    """Whether a file is to be opened as a zip file. One that cannot be read is none."""
    if path.suffix.lower() == ".zip":
        return True
    try:
        with open_regular(path) as file:
            return zipfile.is_zipfile(file)
    except OSError:
        return False


def find(path: Path, bounds: Bounds = BOUNDS) -> Generator[ImportFile | ImportProblem, None, None]:
    """The files under a path that exists. Each can be read until the next is asked for."""
    if path.is_dir():
        yield from _walk(path, bounds)
    elif is_zip(path):
        yield from _members(path, bounds)
    else:
        yield _opened(path, bounds)


def _walk(root: Path, bounds: Bounds) -> Iterator[ImportFile | ImportProblem]:
    refused: list[OSError] = []
    for folder, folders, names in os.walk(root, onerror=refused.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in _wanted(names):
            path = Path(folder, name)
            if path.suffix.lower() == ".zip":
                yield from _members(path, bounds)
            else:
                yield _opened(path, bounds)
        for error in refused:
            yield ImportProblem(str(error.filename), "directory", reason_of(error))
        refused.clear()


def _wanted(names: list[str]) -> list[str]:
    """The names in one folder that may hold conversations, in order."""
    visible = sorted(name for name in names if not name.startswith("."))
    export = any(name.startswith(_CONVERSATIONS) and name.endswith(".json") for name in visible)
    return [
        name
        for name in visible
        if name.lower().endswith((*_JSON, ".zip")) and not (export and name in _COMPANIONS)
    ]


def _members(path: Path, bounds: Bounds) -> Iterator[ImportFile | ImportProblem]:
    try:
        file = open_regular(path)
    except OSError as error:
        yield ImportProblem(str(path), "file", reason_of(error))
        return
    with file:
        try:
            archive = zipfile.ZipFile(file)
            room = bounds.room(path.stat().st_size)
        except UnicodeDecodeError:
            yield ImportProblem(str(path), "file", "the names in it are not valid UTF-8")
            return
        except UNREADABLE as error:
            yield ImportProblem(str(path), "file", reason_of(error))
            return
        for info in _in_order(archive):
            reason = _unwanted(info, room)
            if reason:
                yield ImportProblem(f"{path}/{info.filename}", "file", reason)
                continue
            room -= info.file_size
            yield _opened(path, bounds, info, archive)


def _in_order(archive: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    """The members that may hold conversations, folder by folder."""
    infos = {info.filename: info for info in archive.infolist() if not info.is_dir()}
    folders: dict[str, list[str]] = {}
    for name in infos:
        folder, _, last = name.rpartition("/")
        # Macs put a shadow of every file there.
        if not folder.startswith("__MACOSX"):
            folders.setdefault(folder, []).append(last)
    for folder, names in sorted(folders.items()):
        for last in _wanted(names):
            yield infos[f"{folder}/{last}" if folder else last]


def _unwanted(info: zipfile.ZipInfo, room: int) -> str:
    """Why a member is left out, "" if it is not. Nothing of it is unpacked for that.

    The size that it claims binds: no more than that is read of it.
    """
    if info.filename.lower().endswith(".zip"):
        return "a zip file within a zip file"
    if info.flag_bits & 1:
        return "it is encrypted"
    if info.compress_type not in _BOUNDED:
        return "it is packed in a way that is not read here: pack it again as usual (deflate)"
    if info.file_size > room:
        return (
            f"it would become {info.file_size:,} bytes, more than a zip file of this size may; "
            "unpack it yourself if it is what you expect, and import the file"
        )
    return ""


def _opened(
    path: Path,
    bounds: Bounds,
    member: zipfile.ZipInfo | None = None,
    archive: zipfile.ZipFile | None = None,
) -> ImportFile | ImportProblem:
    try:
        return ImportFile(path, member, archive, bounds)
    except UNREADABLE as error:
        return ImportProblem(str(path), "file", reason_of(error))


def reason_of(error: Exception) -> str:
    """What was wrong, in words."""
    if isinstance(error, MemoryError):
        return "there is not memory enough for it"
    reason = error.strerror if isinstance(error, OSError) else None
    return reason or str(error) or type(error).__name__
