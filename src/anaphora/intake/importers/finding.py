"""Files to import out of what a user names: a file, a directory (walked, sorted), or a zip file.

In: a path. Out: `ImportFile`s and, for what cannot be opened, `ImportProblem`s. In a directory or
zip file only names that end in .json, .jsonl, .ndjson or .zip are looked at; hidden ones, and what
exports are known to put beside their conversations, are passed over. It reads no contents.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from lzma import LZMAError
from pathlib import Path

from anaphora.intake.importers.base import ImportFile
from anaphora.values import ImportProblem

__all__ = ["UNREADABLE", "find", "is_zip"]

# What reading a file or a member of a damaged zip file raises.
UNREADABLE = (
    OSError,
    zipfile.BadZipFile,
    NotImplementedError,
    EOFError,
    zlib.error,
    LZMAError,
    struct.error,
)

_JSON = (".json", ".jsonl", ".ndjson")
_COMPANIONS = frozenset(
    {
        "user.json",
        "users.json",
        "user_settings.json",
        "projects.json",
        "memories.json",
        "message_feedback.json",
        "model_comparisons.json",
        "shared_conversations.json",
        "shopping.json",
        "sora.json",
        "group_chats.json",
        "export_manifest.json",
        "conversation_asset_file_names.json",
    }
)
_CONVERSATIONS = "conversations"


def is_zip(path: Path) -> bool:
    """Whether a file is to be opened as a zip file."""
    return path.suffix.lower() == ".zip" or (path.is_file() and zipfile.is_zipfile(path))


def find(path: Path) -> Iterator[ImportFile | ImportProblem]:
    """The files to import under a path that exists."""
    if path.is_dir():
        yield from _walk(path)
    elif is_zip(path):
        yield from _members(path)
    else:
        yield _opened(path)


def _walk(root: Path) -> Iterator[ImportFile | ImportProblem]:
    refused: list[OSError] = []
    for folder, folders, names in os.walk(root, onerror=refused.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in _wanted(names):
            path = Path(folder, name)
            if path.suffix.lower() == ".zip":
                yield from _members(path)
            else:
                yield _opened(path)
        for error in refused:
            yield ImportProblem(str(error.filename), "directory", _why(error))
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


def _members(path: Path) -> Iterator[ImportFile | ImportProblem]:
    try:
        with zipfile.ZipFile(path) as archive:
            infos = {info.filename: info for info in archive.infolist() if not info.is_dir()}
    except UnicodeDecodeError:
        yield ImportProblem(str(path), "file", "the names in it are not valid UTF-8")
        return
    except UNREADABLE as error:
        yield ImportProblem(str(path), "file", _why(error))
        return
    folders: dict[str, list[str]] = {}
    for name in infos:
        folder, _, last = name.rpartition("/")
        # Macs put a shadow of every file there.
        if not folder.startswith("__MACOSX"):
            folders.setdefault(folder, []).append(last)
    for folder, names in sorted(folders.items()):
        for last in _wanted(names):
            name = f"{folder}/{last}" if folder else last
            if last.lower().endswith(".zip"):
                yield ImportProblem(f"{path}/{name}", "file", "a zip file within a zip file")
            elif infos[name].flag_bits & 1:
                yield ImportProblem(f"{path}/{name}", "file", "it is encrypted")
            else:
                yield _opened(path, name)


def _opened(path: Path, member: str | None = None) -> ImportFile | ImportProblem:
    try:
        return ImportFile(path, member)
    except UNREADABLE as error:
        return ImportProblem(str(path), "file", _why(error))


def _why(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    return reason or str(error) or type(error).__name__
