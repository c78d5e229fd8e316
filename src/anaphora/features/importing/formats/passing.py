"""Files that no importer accepts: counted by kind, with the first names of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from anaphora.features.importing.formats.base import Format, ImportFile
from anaphora.features.importing.values import ImportedElse
from anaphora.language.word_lists import words
from anaphora.text.display import one_line
from anaphora.values.conversations import ImportProblem

HIDDEN: Final = "hidden file or folder"
COMPANION: Final = "file beside an export, with no conversation in it"
KEPT_BESIDE: Final = "file of a program about its sessions, with none in it"
PROGRAM: Final = "folder of a program, not looked into"
EMPTY: Final = "file with no conversation or memory in it"
UNREAD: Final = "file with keys or passwords, not read"
_NOT_TOLD: Final = words(".DS_Store .git .obsidian")
"""Files that programs keep in other folders."""

# None of these holds a conversation: they are summed up, and not opened.
_SUMMED_UP: Final = words(
    "png jpg jpeg jfif gif webp svg ico bmp tif tiff heic heif avif psd mp3 m4a wav ogg oga opus "
    "flac aac amr weba mp4 m4v mov avi mkv webm 3gp csv tsv xls xlsx ods ppt pptx odp doc odt rtf "
    "tgs vcf ttf otf woff woff2 css exe dll so dylib o a pyc class jar wasm gz bz2 xz zst br lz4 "
    "tar tgz 7z rar"
)
_PLACE: Final = "/workspace.json"
"""Read with the chats beside it, whose place it tells."""
_DOCUMENTS: Final = words("pdf docx eml")
_ENDING: Final = re.compile(r"\.([a-z0-9_-]{1,12})$")
_NAMED: Final = 3
_LONGEST_NAME: Final = 60
_MOST_KINDS: Final = 40


def is_none(name: str) -> bool:
    """Whether a name tells that no conversation is in the file."""
    return _find_ending(name) in _SUMMED_UP or _find_ending(name) in _DOCUMENTS


def _find_ending(name: str) -> str:
    match = _ENDING.search(name.lower().rpartition("/")[2])
    return match[1] if match else ""


class PassedOver:
    """The names that were passed over, by kind."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._names: dict[str, list[str]] = {}
        self._read: set[str] = set()
        self._companions: dict[str, re.Pattern[str]] = {}
        self._unknown: list[tuple[str, ImportProblem, bool]] = []

    def add(self, kind: str, name: str, *, read: bool = False) -> None:
        """Count what goes by a name; `read`: it was taken, and had nothing."""
        if name in _NOT_TOLD:
            return
        if kind not in self._counts and len(self._counts) >= _MOST_KINDS:
            kind = "file of another kind"
        self._counts[kind] += 1
        names = self._names.setdefault(kind, [])
        if len(names) < _NAMED:
            names.append(one_line(name.rpartition("/")[2], _LONGEST_NAME))
        if read:
            self._read.add(kind)

    def recognise(self, form: Format) -> None:
        """Note that a file of this format was found."""
        if form.companions is not None:
            self._companions[form.name] = form.companions

    def hold(self, file: ImportFile, reason: str) -> None:
        """Note a file of no known format in a folder."""
        is_stub = not file.size and file.name.endswith(".jsonl")
        self._unknown.append((file.relative, file.problem("file", reason), is_stub))

    def unknown(self) -> Iterator[ImportProblem]:
        """The files of no known format, but for companions of those found, which are counted."""
        for path, problem, is_stub in self._unknown:
            if is_stub and self._companions:
                # A session that never began.
                self.add(EMPTY, path, read=True)
            elif any(companions.search(path) for companions in self._companions.values()):
                if not path.endswith(_PLACE):
                    self.add(KEPT_BESIDE, path)
            else:
                yield problem

    def add_file(self, name: str) -> None:
        """Count a file by the ending of its name."""
        ending = _find_ending(name)
        self.add(f".{ending} file" if ending else "file without an ending", name)

    def items(self) -> Iterator[ImportedElse]:
        """Each kind, with how many there are."""
        for kind, count in self._counts.items():
            ending = kind[1:].removesuffix(" file")
            if ending in _SUMMED_UP or kind == KEPT_BESIDE:
                description = kind
            elif ending in _DOCUMENTS:
                description = f"{kind} (`anaphora document add` keeps it)"
            else:
                ellipsis_mark = ", …" if count > _NAMED else ""
                description = f"{kind} ({', '.join(self._names[kind])}{ellipsis_mark})"
            yield ImportedElse(description, count, unread=kind not in self._read)
