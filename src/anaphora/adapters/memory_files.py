"""The files of Claude's memory tool (`memory_20250818`) as memories: found, versioned, restored.

In: the tool's commands (view, create, str_replace, insert, delete, rename), as a model gives them.
Out: the texts that its documentation names. A file is one memory whose path is the file's; every
edit is a new value with the old one in its history, and deletion takes it out of recall. What a
long file says is found by its sections: memories derived from it, of which an edit renews those
that changed. No file system is touched: a path that leads elsewhere leads nowhere, and is refused.

Needs no package; `anaphora.adapters.anthropic_memory` has the tool for Anthropic's tool runner.
Texts and limits: https://platform.claude.com/docs/en/agents-and-tools/tool-use/memory-tool
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any, Final, Literal
from urllib.parse import unquote

from anaphora.api.memory import Memory
from anaphora.errors import CommandRefused, Conflict, InvalidInput, NotFound
from anaphora.ingest.memories import BATCH
from anaphora.ingest.secrets.redacting import redact_path
from anaphora.values.memories import MemoryRecord, NewMemory

__all__ = ["CATEGORY", "ROOT", "SECTION_CATEGORY", "MemoryFiles"]

CATEGORY: Final = "memory_file"
"""The category of every memory that is a file."""
SECTION_CATEGORY: Final = "memory_file_section"
"""The category of the sections of files: derived, renewed by edits, gone with their file."""
ROOT: Final = "/memories"
"""The directory that all paths are under."""

MOST_LINES: Final = 999_999
MOST_FILE: Final = 1_000_000
"""Characters of a file."""
MOST_SHOWN: Final = 100_000
"""Characters of a file that are shown at once; the rest by `view_range`."""
MOST_LISTED: Final = 1_000
"""Lines of a listing."""

# A file up to this many characters is one memory; a longer one has sections of about this size.
SECTION = 400
_LEVELS = 2
_NEAR = 2
_PAGE = 500
_CONTENT = "file_text"
# Between a file's path and a section's number. No path of a file has it: empty names are left out.
_MARK = "#//"
_NUMBER = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_HEADING = re.compile(r"#{1,6} +\S")

Deletion = Literal["soft", "undoable", "erase"]


class MemoryFiles:
    """The memory directory of one namespace. Safe to share between threads and processes.

    `on_delete` is what a deletion does: "soft" (out of recall, the history kept), "undoable"
    (erased after a day), "erase" (now, with its history). `restore` takes back the first two, and
    `memory.history(path)` has every version. Give each user a namespace: `memory.scoped("mara")`.
    """

    def __init__(self, memory: Memory, *, on_delete: Deletion = "soft") -> None:
        if on_delete not in {"soft", "undoable", "erase"}:
            raise InvalidInput("on_delete", on_delete, "expected 'soft', 'undoable' or 'erase'")
        self._memory = memory
        self._on_delete = on_delete

    def handle(self, command: Mapping[str, Any]) -> str:
        """The text that answers a command, an error's text too. `StoreError` where nothing works.

        `command` is the `input` of the model's tool use: {"command": "view", "path": "/memories"}.
        """
        try:
            return self.run(command)
        except CommandRefused as refused:
            return str(refused)

    def run(self, command: Mapping[str, Any]) -> str:
        """The same; `CommandRefused` with the error's text, for callers that mark errors."""
        name, arguments = command.get("command"), dict(command)
        arguments.pop("command", None)
        expected_fields = _COMMANDS.get(name) if isinstance(name, str) else None
        if expected_fields is None:
            names = ", ".join(_COMMANDS)
            raise CommandRefused(f"Error: Unknown command {name!r}. It should be one of {names}.")
        for field in expected_fields:
            field.check(str(name), arguments)
        values = {
            spec.name: arguments[spec.name]
            for spec in expected_fields
            if arguments.get(spec.name) is not None
        }
        answer: str = getattr(self, str(name))(**values)
        return answer

    # The commands.

    def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """A directory's files, two levels deep with their sizes, or a file's lines, numbered."""
        normal = _normalise_path(path)
        file = self._file(normal)
        if file is not None:
            return _show_lines(path, _content(file), view_range)
        files = self._under(normal)
        if not files and normal != ROOT:
            raise CommandRefused(f"The path {path} does not exist. Please provide a valid path.")
        return _list_folder(path, normal, files)

    def create(self, path: str, file_text: str) -> str:
        """A new file. One that is there is never overwritten."""
        normal = _normalise_path(path)
        exists = CommandRefused(f"Error: File {path} already exists")
        if normal == ROOT or self._file(normal) or self._under(normal, 1):
            raise exists
        self._refuse_file_above(normal)
        try:
            _, note = self._write(path, [_version(None, normal, file_text)])
        except Conflict:
            raise exists from None
        self._renew_sections(normal)
        return f"File created successfully at: {path}{note}"

    def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """Put one text, which the file must have exactly once, in the place of another."""
        missing = f"Error: The path {path} does not exist. Please provide a valid path."

        def replaced(content: str) -> str:
            return content.replace(old_str, new_str, 1)

        def check(content: str) -> None:
            lines = _lines_with(content, old_str)
            if not lines:
                raise CommandRefused(
                    f"No replacement was performed, old_str `{old_str}` did not appear verbatim"
                    f" in {path}."
                )
            if len(lines) > 1:
                line_list = ", ".join(str(line) for line in dict.fromkeys(lines))
                raise CommandRefused(
                    f"No replacement was performed. Multiple occurrences of old_str `{old_str}`"
                    f" in lines: {line_list}. Please ensure it is unique"
                )

        text_before, text_after, note = self._edit(path, missing, check, replaced)
        line = text_before[: text_before.find(old_str)].count("\n")
        lines = text_after.split("\n")
        first_line, last_line = max(0, line - _NEAR), line + new_str.count("\n") + _NEAR + 1
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line"
            f" numbers):\n{_numbered(lines[first_line:last_line], first_line + 1)}{note}"
        )

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Put lines behind a line; behind line 0 they are the first ones."""

        def check(content: str) -> None:
            line_count = len(_lines(content))
            if not 0 <= insert_line <= line_count:
                raise CommandRefused(
                    f"Error: Invalid `insert_line` parameter: {insert_line}. It should be within"
                    f" the range of lines of the file: [0, {line_count}]"
                )

        def inserted(content: str) -> str:
            lines = _lines(content)
            lines.insert(insert_line, insert_text.removesuffix("\n"))
            return "\n".join(lines) + "\n"

        _, _, note = self._edit(path, f"Error: The path {path} does not exist", check, inserted)
        return f"The file {path} has been edited.{note}"

    def delete(self, path: str) -> str:
        """Delete a file, or a directory and all in it, as `on_delete` says."""
        normal = _normalise_path(path)
        if normal == ROOT:
            raise CommandRefused(f"Error: Cannot delete the {ROOT} directory itself")
        if not self._delete(normal):
            raise CommandRefused(f"Error: The path {path} does not exist")
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Give a file or a directory another path: all of it or nothing. Nothing is overwritten."""
        source_path, target_path = _normalise_path(old_path), _normalise_path(new_path)
        if source_path == ROOT:
            raise CommandRefused(f"Error: Cannot rename the {ROOT} directory itself")
        while True:
            moved_files = self._tree(source_path)
            if not moved_files:
                raise CommandRefused(f"Error: The path {old_path} does not exist")
            if target_path == ROOT or self._file(target_path) or self._under(target_path, 1):
                raise CommandRefused(f"Error: The destination {new_path} already exists")
            if target_path.startswith(f"{source_path}/"):
                raise CommandRefused(f"Error: Cannot move {old_path} into itself")
            self._refuse_file_above(target_path)
            if len(moved_files) > BATCH:
                raise CommandRefused(
                    f"Error: {old_path} has more than {BATCH} files: rename its directories apart"
                )
            news = [
                _version(file, target_path + (file.path or "")[len(source_path) :], _content(file))
                for file in moved_files
            ]
            # Not only files: a memory of another kind keeps its path as well.
            if self._memory.list({"path": {"in": [file.path for file in news]}}, limit=1):
                raise CommandRefused(f"Error: The destination {new_path} already exists")
            try:
                self._write(new_path, news)
            except (Conflict, NotFound):
                continue  # A file changed meanwhile: look again.
            for file, moved_to in zip(moved_files, news, strict=True):
                self._renew_sections(moved_to.path or "")
                self._renew_sections(file.path or "")
            return f"Successfully renamed {old_path} to {new_path}"

    def clear(self) -> str:
        """Delete all files, as `on_delete` says."""
        self._delete(ROOT)
        return "All memory cleared"

    def restore(self, path: str) -> bool:
        """Take back the last deletion of a file; False where nothing is to be taken back.

        A file that is there stays as it is.
        """
        normal = _normalise_path(path)
        versions = self._memory.history(normal)
        if self._file(normal) is not None or not versions or not versions[-1].forgotten:
            return False
        self._memory.undo_forget(versions[-1].id)
        self._renew_sections(normal)
        return True

    # How files are kept.

    def _edit(
        self,
        path: str,
        missing: str,
        check: Callable[[str], None],
        change: Callable[[str], str],
    ) -> tuple[str, str, str]:
        """Change a file's content; what it was, what it is, and what to tell of secrets.

        A writer that comes between makes it read again: no edit is ever lost. Every try that fails
        is another's edit that succeeded.
        """
        normal = _normalise_path(path)
        while True:
            file = self._file(normal)
            if file is None:
                raise CommandRefused(missing)
            content = _content(file)
            check(content)
            try:
                content_after, note = self._write(path, [_version(file, normal, change(content))])
            except (Conflict, NotFound):
                continue
            self._renew_sections(normal)
            return content, content_after, note

    def _write(self, path: str, news: Sequence[NewMemory]) -> tuple[str, str]:
        """Store versions, all or none; the first one's content, and a note about secrets."""
        max_length = max((len(_given(new_memory)) for new_memory in news), default=0)
        if max_length > MOST_FILE:
            raise CommandRefused(
                f"Error: {path} would have {max_length:,} characters; "
                f"a file has at most {MOST_FILE:,}"
            )
        reports = self._memory.remember_many(news)
        kinds = dict.fromkeys(kind for report in reports for kind in report.redacted)
        if not kinds:
            return _given(news[0]), ""
        content = _content(self._memory.get(reports[0].id))
        return (
            content,
            f"\nNot kept: secrets in the text ({', '.join(kinds)}). Marks stand for them.",
        )

    def _renew_sections(self, file_path: str) -> None:
        """Update the sections of a path to those of the file there; unchanged ones are kept.

        It repeats until the file is the same as at the beginning: with two writers the later
        content is searched.
        """
        while True:
            file = self._file(file_path)
            texts = [] if file is None else _sections(_content(file))
            section_by_number = self._numbered(file_path)
            current = {
                section.text: section
                for section in section_by_number.values()
                if section.category == SECTION_CATEGORY
            }
            new_texts = [text for text in texts if text not in current]
            stale_sections = [
                section for text, section in current.items() if text not in set(texts)
            ]
            free_numbers = (number for number in count(1) if number not in section_by_number)
            new_sections = [
                NewMemory(
                    text=text,
                    path=f"{file_path}{_MARK}{next(free_numbers)}"
                    if old_section is None
                    else old_section.path,
                    parent="" if file is None else file.id,
                    category=SECTION_CATEGORY,
                    supersedes=None if old_section is None else old_section.id,
                    dedupe=False,
                    guarded=True,
                )
                for text, old_section in zip(
                    new_texts, [*stale_sections, *[None] * len(new_texts)], strict=False
                )
            ]
            try:
                self._memory.remember_many(new_sections)
            except (Conflict, NotFound):
                continue
            if surplus := [section.id for section in stale_sections[len(new_texts) :]]:
                within = [{"category": SECTION_CATEGORY}, {"id": {"in": surplus}}]
                self._memory.forget(filters={"AND": within})
            current_file = self._file(file_path)
            if (current_file and current_file.id) == (file and file.id):
                return

    def _numbered(self, file_path: str) -> dict[int, MemoryRecord]:
        """Every memory at the path of a section of a file, by its number, in any category.

        Any memory may occupy such a path, not only a section.
        """
        start = file_path + _MARK
        within = self._all({"path": {"startswith": start}})
        suffixes = ((record, (record.path or "")[len(start) :]) for record in within)
        return {int(suffix): record for record, suffix in suffixes if _NUMBER.fullmatch(suffix)}

    def _delete(self, file_path: str) -> bool:
        """Delete all files at and under a path; whether there were any."""
        files = self._tree(file_path)
        any_there = bool(files)
        while files:
            ids = {"id": {"in": [file.id for file in files]}}
            self._memory.forget(
                filters={"AND": [{"category": CATEGORY}, ids]},
                soft=self._on_delete == "soft",
                undoable=self._on_delete == "undoable",
            )
            # A concurrent edit has made a new version, to be deleted too.
            files = self._tree(file_path)
        return any_there

    def _file(self, file_path: str) -> MemoryRecord | None:
        return next(iter(self._memory.list(_files({"path": file_path}), limit=1)), None)

    def _under(self, folder: str, most: int | None = None) -> list[MemoryRecord]:
        """The files below a directory, at most so many."""
        return list(islice(self._all(_files({"path": {"startswith": f"{folder}/"}}), most), most))

    def _all(self, filters: Mapping[str, Any], most: int | None = None) -> Iterator[MemoryRecord]:
        cursor = None
        while True:
            page = self._memory.list(filters, limit=most or _PAGE, cursor=cursor)
            yield from page
            cursor = page.cursor
            if cursor is None:
                return

    def _tree(self, file_path: str) -> list[MemoryRecord]:
        file = self._file(file_path)
        return [*([] if file is None else [file]), *self._under(file_path)]

    def _refuse_file_above(self, file_path: str) -> None:
        names = file_path.split("/")
        ancestors = ["/".join(names[:n]) for n in range(3, len(names))]
        if ancestors and (
            parents := self._memory.list(_files({"path": {"in": ancestors}}), limit=1)
        ):
            raise CommandRefused(f"Error: {parents.items[0].path} is a file, not a directory")


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a command: its name, its type, and whether it must be there."""

    name: str
    kind: type
    required: bool = True

    def check(self, command: str, arguments: Mapping[str, Any]) -> None:
        argument = arguments.get(self.name)
        if argument is None:
            if self.required:
                raise CommandRefused(f"Error: `{command}` needs `{self.name}`")
            return
        if not isinstance(argument, self.kind) or isinstance(argument, bool):
            raise CommandRefused(
                f"Error: `{self.name}` of `{command}` should be of type {self.kind.__name__}"
            )


_PATH = _Field("path", str)
_COMMANDS: Final[Mapping[str, tuple[_Field, ...]]] = {
    "view": (_PATH, _Field("view_range", list, required=False)),
    "create": (_PATH, _Field("file_text", str)),
    "str_replace": (_PATH, _Field("old_str", str), _Field("new_str", str, required=False)),
    "insert": (_PATH, _Field("insert_line", int), _Field("insert_text", str)),
    "delete": (_PATH,),
    "rename": (_Field("old_path", str), _Field("new_path", str)),
}


def _normalise_path(path: str) -> str:
    """The normal form of a path. `CommandRefused` for one that could lead outside."""
    if len(path) > _MOST_WRITTEN:
        raise _invalid_path(path)
    plain = path
    while (decoded_path := unquote(plain)) != plain:
        plain = decoded_path
    # An encoded path is an attack, or likely to be misread: both forms must be valid.
    for text in (path, plain):
        if not text.startswith(ROOT) or text[len(ROOT) : len(ROOT) + 1] not in {"", "/"}:
            raise CommandRefused(f"Error: Path must start with {ROOT}, got: {path}")
        if "\\" in text or {".", ".."} & set(text.split("/")):
            raise CommandRefused(f"Error: Path {path} would escape {ROOT} directory")
    names = [name for name in unicodedata.normalize("NFC", path).split("/") if name]
    normal = "/" + "/".join(names)
    unusable = not plain.isprintable() or any(name != name.strip() for name in names)
    if unusable or len(normal) > MOST_PATH or redact_path(normal).text != normal:
        raise _invalid_path(path)
    return normal


def _invalid_path(path: str) -> CommandRefused:
    excerpt = repr(path[:MOST_PATH]) + ("…" if len(path) > MOST_PATH else "")
    return CommandRefused(
        f"Error: Invalid path {excerpt}: printable names without a secret, at most {MOST_PATH}"
        " characters"
    )


MOST_PATH: Final = 1_024
# Each layer of escapes is taken off in a pass of its own, so the passes grow with the length.
_MOST_WRITTEN: Final = 2 * MOST_PATH


def _files(more: Mapping[str, Any]) -> dict[str, Any]:
    return {"AND": [{"category": CATEGORY}, dict(more)]}


def _version(old: MemoryRecord | None, file_path: str, content: str) -> NewMemory:
    """The memory that stores a content at a path, instead of `old`.

    A short content is the memory's text. For a longer or a blank one the text is the topic of the
    file: its name and its headings.
    """
    is_short = len(content) <= SECTION and bool(content.strip())
    headings = [
        line.lstrip("#").strip()
        for line in (() if is_short else content.split("\n"))
        if _HEADING.match(line)
    ]
    new_memory = NewMemory(
        text=content if is_short else "\n".join([file_path, *headings])[:SECTION],
        payload=None if is_short else {_CONTENT: content},
        path=file_path,
        category=CATEGORY,
        dedupe=False,
        guarded=True,
    )
    if old is None:
        return new_memory
    return replace(
        new_memory, supersedes=old.id, type=old.type, tags=old.tags, expires_at=old.expires_at
    )


def _content(file: MemoryRecord) -> str:
    return str((file.payload or {}).get(_CONTENT, file.text))


def _given(new: NewMemory) -> str:
    return str((new.payload or {}).get(_CONTENT, new.text))


def _sections(content: str) -> list[str]:
    """A long content in searchable pieces, each after its heading, in order, each once.

    A piece ends before a heading, at a blank line once it has a third of its size, and when it is
    full. A line is never cut.
    """
    if len(content) <= SECTION:
        return []
    sections: list[str] = []
    heading, piece = "", list[str]()

    def end() -> None:
        text = "\n".join(piece).strip("\n")
        if text.strip() and text != heading:
            sections.append(text)
        piece[:] = [heading] if heading else []

    for line in content.split("\n"):
        size = sum(len(part) + 1 for part in piece)
        if _HEADING.match(line):
            end()
            heading, piece[:] = line, [line]
        elif (not line.strip() and size >= SECTION // 3) or size + len(line) > SECTION:
            end()
            piece.append(line)
        else:
            piece.append(line)
    end()
    return list(dict.fromkeys(sections))


def _lines(content: str) -> list[str]:
    """The lines of a file; the end of the last one begins no other."""
    lines = content.split("\n")
    return lines[:-1] if not lines[-1] else lines


def _lines_with(content: str, text: str) -> list[int]:
    """The line, from 1, of each occurrence of a text, overlapping ones too."""
    line_numbers: list[int] = []
    start = content.find(text) if text else -1
    while start >= 0:
        line_numbers.append(content.count("\n", 0, start) + 1)
        start = content.find(text, start + 1)
    return line_numbers


def _numbered(lines: Iterable[str], first: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


def _show_lines(path: str, content: str, view_range: Sequence[int] | None) -> str:
    lines = content.split("\n")
    if len(lines) > MOST_LINES:
        raise CommandRefused(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first_line, last_line = _range(view_range, len(lines))
    shown_lines: list[str] = []
    room = MOST_SHOWN
    for line in lines[first_line - 1 : last_line]:
        room -= len(line) + 1
        if room < 0 and shown_lines:
            break
        shown_lines.append(line[:MOST_SHOWN])
    note = ""
    if len(shown_lines) < last_line - first_line + 1:
        upto = first_line + len(shown_lines) - 1
        omitted = f"Lines {upto + 1} to {last_line} are not shown"
        note = f"\n({omitted}: use view_range [{upto + 1}, {last_line}].)"
    numbered = _numbered(shown_lines, first_line)
    return f"Here's the content of {path} with line numbers:\n{numbered}{note}"


def _range(view_range: Sequence[int] | None, most: int) -> tuple[int, int]:
    if not view_range:
        return 1, most
    if len(view_range) == 2 and all(type(number) is int for number in view_range):
        first_line = max(1, view_range[0])
        last_line = most if view_range[1] == -1 else min(most, view_range[1])
        if first_line <= last_line:
            return first_line, last_line
    raise CommandRefused(
        f"Error: Invalid `view_range` parameter: {list(view_range)}. It should be two lines of the"
        f" file, the first and the last, within [1, {most}]; -1 is the last line"
    )


def _list_folder(path: str, folder: str, files: Iterable[MemoryRecord]) -> str:
    """The listing of a directory: itself, then what is in it, each directory before its content."""
    sizes: dict[tuple[str, ...], int] = {}
    folders: set[tuple[str, ...]] = set()
    total = 0
    for file in files:
        names = tuple((file.path or "")[len(folder) + 1 :].split("/"))
        if any(name.startswith(".") or name == "node_modules" for name in names):
            continue
        size = len(_content(file).encode("utf-8", "surrogatepass"))
        total += size
        for depth in range(1, min(len(names), _LEVELS) + 1):
            sizes[names[:depth]] = sizes.get(names[:depth], 0) + size
            if depth < len(names):
                folders.add(names[:depth])
    base = path.rstrip("/")
    lines = [f"{_size(total)}\t{base}"]
    lines += (
        f"{_size(sizes[names])}\t{'/'.join((base, *names))}{'/' * (names in folders)}"
        for names in sorted(sizes)[:MOST_LISTED]
    )
    if len(sizes) > MOST_LISTED:
        lines.append(f"(and {len(sizes) - MOST_LISTED:,} more: view a directory of them)")
    return (
        f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items"
        " and node_modules:\n" + "\n".join(lines)
    )


def _size(count: int) -> str:
    """Bytes in readable units: 512B, 5.5K, 1.2M."""
    size, unit = float(count), "B"
    for larger in "KMG":
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f}".removesuffix(".0") + unit
