"""Files that no importer takes: what each is, by its name, and which of them may be documents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anaphora.features.importing.formats.base import Format, ImportFile, ImportItem
from anaphora.features.importing.values import ImportedElse, ImportedFile
from anaphora.ingest.export_child import is_beginning
from anaphora.ingest.files.walking import is_secret_file
from anaphora.ingest.problems import EMPTY
from anaphora.language.word_lists import by_word, words
from anaphora.text.display import one_line
from anaphora.values.conversations import ImportProblem

HIDDEN: Final = "hidden file or folder"
COMPANION: Final = "file beside an export, with no conversation in it"
KEPT_BESIDE: Final = "file of a program about its sessions, with none in it"
PROGRAM: Final = "folder of a program, not looked into"
PROJECT: Final = "folder of a project: `anaphora project index` reads its files"
UNREAD: Final = "file with keys or passwords, not read"
LINK: Final = "link, which is not followed"
BLANK: Final = "empty file"
PACKED: Final = "archive: unpack it first"
_TOLD_BY_NUMBER: Final = frozenset((KEPT_BESIDE, PROGRAM, HIDDEN))
_NOT_TOLD: Final = words(".DS_Store .git .obsidian")
"""Files that programs keep in other folders."""

_KINDS: Final = by_word(
    {
        "picture, whose text an OCR must read first": "png jpg jpeg jfif gif webp svg ico bmp tif "
        "tiff heic heif avif psd tgs",
        "sound recording": "mp3 m4a wav ogg oga opus flac aac amr weba",
        "film": "mp4 m4v mov avi mkv webm 3gp",
        PACKED: "zip gz bz2 xz zst br lz4 tar tgz 7z rar",
        "spreadsheet: save it as PDF or CSV": "xls xlsx xlsm ods numbers",
        "presentation: save it as PDF": "ppt pptx odp key",
        "text of another program: save it as DOCX or PDF": "doc odt rtf pages wpd",
        "e-book: save it as PDF": "epub mobi azw3",
        "contact card": "vcf",
        "program, or a part of one": "exe dll so dylib o a pyc class jar wasm msi apk",
        "disk image": "dmg iso img vhd",
        "font": "ttf otf woff woff2",
    }
)
"""What files are that have no text to be read, by the endings of their names."""
_PLACE: Final = "/workspace.json"
"""Read with the chats beside it, whose place it tells."""
_WRITTEN: Final = words(
    "pdf docx html htm xhtml eml mbox ics md markdown mdown txt text csv tsv json ipynb rst org "
    "adoc tex"
)
"""Endings of what people write and keep, beside none at all."""
_LINES: Final = (".jsonl", ".ndjson")
_CHATS: Final = (*_LINES, ".json")
EXPORT: Final = "an export of Anaphora"
"""The reason why no importer reads such a file."""
_NO_CHAT: Final = "no chat is recognised in it: kept as a document"
_ENDING: Final = re.compile(r"\.([a-z0-9_-]{1,12})$")
_START: Final = 256
_LONGEST_HEAD: Final = 1 << 20
_NAMED: Final = 20
_LONGEST_NAME: Final = 60
_MOST_KINDS: Final = 40


def kind_of_name(name: str) -> str:
    """What a file is that has no text to be read, by its name; "" for any other."""
    return _KINDS.get(_find_ending(name), "")


def is_export(file: ImportFile) -> bool:
    """Whether a file of a folder is what `anaphora export` wrote."""
    if file.member is not None or not file.in_folder or not file.name.lower().endswith(_LINES):
        return False
    with file.open() as raw:
        is_named = b'"anaphora"' in raw.peek(_START)[:_START]
        return is_named and True in is_beginning(raw.readline(_LONGEST_HEAD))


def is_written(name: str) -> bool:
    """Whether a name is one of what people write and keep."""
    ending = _find_ending(name)
    return ending in _WRITTEN or "." not in name.rpartition("/")[2]


def _find_ending(name: str) -> str:
    match = _ENDING.search(name.lower().rpartition("/")[2])
    return match[1] if match else ""


@dataclass(frozen=True, slots=True)
class _UnknownFile:
    """A file of no known format; `problem` is what it is if it could only be a chat.

    `is_torn`: its beginning is no whole JSON; `is_export`: `anaphora export` wrote it.
    """

    file: ImportFile
    problem: ImportProblem
    is_torn: bool
    is_export: bool = False

    @property
    def is_stub(self) -> bool:
        """Whether it is a session that never began."""
        return not self.file.size and self.file.name.endswith(".jsonl")

    @property
    def kind(self) -> str:
        """What it is instead of a chat or a document; "" for what may be one."""
        file = self.file
        if kind := kind_of_name(file.name):
            return kind
        if not file.size:
            return BLANK
        if is_secret_file(file.relative):
            return UNREAD
        is_link = file.in_folder and file.member is None and file.path.is_symlink()
        return LINK if is_link else ""


class PassedOver:
    """The files that no importer took, by kind, and those that may be documents.

    Without `keeps_documents` nothing but chats and memories is wanted.
    """

    def __init__(self, root: Path, *, keeps_documents: bool = True) -> None:
        self._root = root
        self._keeps_documents = keeps_documents
        self._counts: Counter[str] = Counter()
        self._names: dict[str, list[str]] = {}
        self._companions: dict[str, re.Pattern[str]] = {}
        self._held: list[_UnknownFile] = []
        self._projects: set[Path] = set()

    def add(self, kind: str, name: str) -> None:
        """Count what goes by a name."""
        if name in _NOT_TOLD:
            return
        if kind not in self._counts and len(self._counts) >= _MOST_KINDS:
            kind = "file of another kind"
        self._counts[kind] += 1
        names = self._names.setdefault(kind, [])
        if len(names) < _NAMED:
            names.append(one_line(name.rpartition("/")[2], _LONGEST_NAME))

    def add_file(self, name: str) -> None:
        """Count a file by what its name says that it is."""
        ending = _find_ending(name)
        other_kind = f".{ending} file" if ending else "file without an ending"
        self.add(kind_of_name(name) or other_kind, name)

    def add_project(self, folder: Path) -> None:
        """Note the folder of a project of code: nothing but chats is wanted of it."""
        if folder != self._root and not self._projects & {*folder.parents}:
            self._projects.add(folder)
            self.add(PROJECT, folder.name)

    def recognise(self, form: Format) -> None:
        """Note that a file of this format was found."""
        if form.companions is not None:
            self._companions[form.name] = form.companions

    def hold(self, file: ImportFile, reason: str, *, is_torn: bool) -> None:
        """Note a file of no known format; `is_torn`: its beginning is no whole JSON."""
        problem = file.problem("file", reason)
        self._held.append(_UnknownFile(file, problem, is_torn, reason == EXPORT))

    def items(self) -> Iterator[ImportItem]:
        """What became of each file: a problem, perhaps a document, or one of a kind."""
        for unknown in self._held:
            path = unknown.file.relative
            if unknown.is_stub and self._companions:
                self.add(EMPTY, path)
            elif any(companions.search(path) for companions in self._companions.values()):
                if not path.endswith(_PLACE):
                    self.add(KEPT_BESIDE, path)
            else:
                yield from self._judge(unknown)
        for kind, count in self._counts.items():
            # What a program keeps beside its sessions is not the user's: its number is enough.
            is_kept_beside = self._companions and kind in _TOLD_BY_NUMBER
            yield ImportedElse(kind, count, () if is_kept_beside else tuple(self._names[kind]))

    def _judge(self, unknown: _UnknownFile) -> Iterator[ImportItem]:
        """What a file is that no importer knows, and no program keeps beside its sessions."""
        file, name = unknown.file, unknown.file.name
        is_chat, is_lines = (name.lower().endswith(endings) for endings in (_CHATS, _LINES))
        if self._projects & {*file.path.parents} and not is_lines:
            # The project is told of.
            return
        if file.packing or file.is_database:
            yield unknown.problem
        elif kind := unknown.kind:
            self.add(kind, file.relative)
        elif is_lines and unknown.is_export:
            yield ImportedFile(file.path.relative_to(self._root).as_posix())
        elif is_chat and (unknown.is_torn or is_lines or not self._keeps_documents):
            yield unknown.problem
        elif any(part.startswith(".") for part in file.relative.split("/")[:-1]):
            self.add(HIDDEN, file.relative)
        elif file.in_folder and not (self._keeps_documents and is_written(name)):
            self.add_file(file.relative)
        else:
            path = file.path.relative_to(self._root).as_posix()
            member = "" if file.member is None else file.member.filename
            yield ImportedFile("" if path == "." else path, member, _NO_CHAT * is_chat)
