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

# A file up to this many characters is one memory; a longer one is found by sections of about this.
SECTION = 400
_LEVELS = 2
_NEAR = 2
_PAGE = 500
_CONTENT = "file_text"
# Between a place and a section's number. No path of a file has it: empty names are left out.
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
        """The same; `CommandRefused` with the error's text, for who marks errors as such."""
        name, given = command.get("command"), dict(command)
        given.pop("command", None)
        expected = _COMMANDS.get(name) if isinstance(name, str) else None
        if expected is None:
            known = ", ".join(_COMMANDS)
            raise CommandRefused(f"Error: Unknown command {name!r}. It should be one of {known}.")
        for field in expected:
            field.check(str(name), given)
        wanted = {one.name: given[one.name] for one in expected if given.get(one.name) is not None}
        answer: str = getattr(self, str(name))(**wanted)
        return answer

    # The commands.

    def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """A directory's files, two levels deep with their sizes, or a file's lines, numbered."""
        place = _checked_path(path)
        file = self._file(place)
        if file is not None:
            return _shown(path, _content(file), view_range)
        under = self._under(place)
        if not under and place != ROOT:
            raise CommandRefused(f"The path {path} does not exist. Please provide a valid path.")
        return _listed(path, place, under)

    def create(self, path: str, file_text: str) -> str:
        """A new file. One that is there is never overwritten."""
        place = _checked_path(path)
        taken = CommandRefused(f"Error: File {path} already exists")
        if place == ROOT or self._file(place) or self._under(place, 1):
            raise taken
        self._refuse_file_above(place)
        try:
            _, told = self._write(path, [_version(None, place, file_text)])
        except Conflict:
            raise taken from None
        self._renew_sections(place)
        return f"File created successfully at: {path}{told}"

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
                where = ", ".join(str(line) for line in dict.fromkeys(lines))
                raise CommandRefused(
                    f"No replacement was performed. Multiple occurrences of old_str `{old_str}`"
                    f" in lines: {where}. Please ensure it is unique"
                )

        before, after, told = self._edit(path, missing, check, replaced)
        line = before[: before.find(old_str)].count("\n")
        lines = after.split("\n")
        first, last = max(0, line - _NEAR), line + new_str.count("\n") + _NEAR + 1
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line"
            f" numbers):\n{_numbered(lines[first:last], first + 1)}{told}"
        )

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Put lines behind a line; behind line 0 they are the first ones."""

        def check(content: str) -> None:
            most = len(_lines(content))
            if not 0 <= insert_line <= most:
                raise CommandRefused(
                    f"Error: Invalid `insert_line` parameter: {insert_line}. It should be within"
                    f" the range of lines of the file: [0, {most}]"
                )

        def inserted(content: str) -> str:
            lines = _lines(content)
            lines.insert(insert_line, insert_text.removesuffix("\n"))
            return "\n".join(lines) + "\n"

        _, _, told = self._edit(path, f"Error: The path {path} does not exist", check, inserted)
        return f"The file {path} has been edited.{told}"

    def delete(self, path: str) -> str:
        """Delete a file, or a directory and all in it, as `on_delete` says."""
        place = _checked_path(path)
        if place == ROOT:
            raise CommandRefused(f"Error: Cannot delete the {ROOT} directory itself")
        if not self._delete(place):
            raise CommandRefused(f"Error: The path {path} does not exist")
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Give a file or a directory another path: all of it or nothing. Nothing is overwritten."""
        old, new = _checked_path(old_path), _checked_path(new_path)
        if old == ROOT:
            raise CommandRefused(f"Error: Cannot rename the {ROOT} directory itself")
        while True:
            moved = self._tree(old)
            if not moved:
                raise CommandRefused(f"Error: The path {old_path} does not exist")
            if new == ROOT or self._file(new) or self._under(new, 1):
                raise CommandRefused(f"Error: The destination {new_path} already exists")
            if new.startswith(f"{old}/"):
                raise CommandRefused(f"Error: Cannot move {old_path} into itself")
            self._refuse_file_above(new)
            if len(moved) > BATCH:
                raise CommandRefused(
                    f"Error: {old_path} has more than {BATCH} files: rename its directories apart"
                )
            news = [
                _version(one, new + (one.path or "")[len(old) :], _content(one)) for one in moved
            ]
            # Not only files: a memory of another kind keeps its path as well.
            if self._memory.list({"path": {"in": [one.path for one in news]}}, limit=1):
                raise CommandRefused(f"Error: The destination {new_path} already exists")
            try:
                self._write(new_path, news)
            except (Conflict, NotFound):
                continue  # A file changed meanwhile: look again.
            for one, moved_to in zip(moved, news, strict=True):
                self._renew_sections(moved_to.path or "")
                self._renew_sections(one.path or "")
            return f"Successfully renamed {old_path} to {new_path}"

    def clear(self) -> str:
        """Delete all files, as `on_delete` says."""
        self._delete(ROOT)
        return "All memory cleared"

    def restore(self, path: str) -> bool:
        """Take back the last deletion of a file; False where nothing is to be taken back.

        A file that is there stays as it is.
        """
        place = _checked_path(path)
        versions = self._memory.history(place)
        if self._file(place) is not None or not versions or not versions[-1].forgotten:
            return False
        self._memory.undo_forget(versions[-1].id)
        self._renew_sections(place)
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
        place = _checked_path(path)
        while True:
            file = self._file(place)
            if file is None:
                raise CommandRefused(missing)
            content = _content(file)
            check(content)
            try:
                kept, told = self._write(path, [_version(file, place, change(content))])
            except (Conflict, NotFound):
                continue
            self._renew_sections(place)
            return content, kept, told

    def _write(self, path: str, news: Sequence[NewMemory]) -> tuple[str, str]:
        """Keep versions, all or none; the first one's content, and what to tell of secrets."""
        most = max((len(_given(new)) for new in news), default=0)
        if most > MOST_FILE:
            raise CommandRefused(
                f"Error: {path} would have {most:,} characters; a file has at most {MOST_FILE:,}"
            )
        done = self._memory.remember_many(news)
        kinds = dict.fromkeys(kind for one in done for kind in one.redacted)
        if not kinds:
            return _given(news[0]), ""
        kept = _content(self._memory.get(done[0].id))
        return kept, f"\nNot kept: secrets in the text ({', '.join(kinds)}). Marks stand for them."

    def _renew_sections(self, place: str) -> None:
        """Let the sections of a place be those of the file there; what stays the same is kept.

        It ends only when the file is still what it was at the beginning: of two writers the later
        one's content is what is found.
        """
        while True:
            file = self._file(place)
            wanted = [] if file is None else _sections(_content(file))
            numbered = self._numbered(place)
            there = {one.text: one for one in numbered.values() if one.category == SECTION_CATEGORY}
            fresh = [text for text in wanted if text not in there]
            gone = [one for text, one in there.items() if text not in set(wanted)]
            free = (number for number in count(1) if number not in numbered)
            news = [
                NewMemory(
                    text=text,
                    path=f"{place}{_MARK}{next(free)}" if old is None else old.path,
                    parent="" if file is None else file.id,
                    category=SECTION_CATEGORY,
                    supersedes=None if old is None else old.id,
                    dedupe=False,
                    guarded=True,
                )
                for text, old in zip(fresh, [*gone, *[None] * len(fresh)], strict=False)
            ]
            try:
                self._memory.remember_many(news)
            except (Conflict, NotFound):
                continue
            if surplus := [one.id for one in gone[len(fresh) :]]:
                within = [{"category": SECTION_CATEGORY}, {"id": {"in": surplus}}]
                self._memory.forget(filters={"AND": within})
            now = self._file(place)
            if (now and now.id) == (file and file.id):
                return

    def _numbered(self, place: str) -> dict[int, MemoryRecord]:
        """Every memory at the path of a section of a place, by its number, whatever its category.

        A path is taken by any memory that stands there, not by sections alone.
        """
        start = place + _MARK
        within = self._all({"path": {"startswith": start}})
        suffixes = ((record, (record.path or "")[len(start) :]) for record in within)
        return {int(suffix): record for record, suffix in suffixes if _NUMBER.fullmatch(suffix)}

    def _delete(self, place: str) -> bool:
        """Delete what is there; whether there was anything."""
        found = self._tree(place)
        any_there = bool(found)
        while found:
            wanted = {"id": {"in": [one.id for one in found]}}
            self._memory.forget(
                filters={"AND": [{"category": CATEGORY}, wanted]},
                soft=self._on_delete == "soft",
                undoable=self._on_delete == "undoable",
            )
            # An edit that came between has made a version that was not meant yet.
            found = self._tree(place)
        return any_there

    def _file(self, place: str) -> MemoryRecord | None:
        return next(iter(self._memory.list(_files({"path": place}), limit=1)), None)

    def _under(self, place: str, most: int | None = None) -> list[MemoryRecord]:
        """The files below a directory, at most so many."""
        return list(islice(self._all(_files({"path": {"startswith": f"{place}/"}}), most), most))

    def _all(self, filters: Mapping[str, Any], most: int | None = None) -> Iterator[MemoryRecord]:
        cursor = None
        while True:
            page = self._memory.list(filters, limit=most or _PAGE, cursor=cursor)
            yield from page
            cursor = page.cursor
            if cursor is None:
                return

    def _tree(self, place: str) -> list[MemoryRecord]:
        file = self._file(place)
        return [*([] if file is None else [file]), *self._under(place)]

    def _refuse_file_above(self, place: str) -> None:
        names = place.split("/")
        above = ["/".join(names[:n]) for n in range(3, len(names))]
        if above and (found := self._memory.list(_files({"path": {"in": above}}), limit=1)):
            raise CommandRefused(f"Error: {found.items[0].path} is a file, not a directory")


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a command: its name, its type, and whether it must be there."""

    name: str
    kind: type
    required: bool = True

    def check(self, command: str, given: Mapping[str, Any]) -> None:
        value = given.get(self.name)
        if value is None:
            if self.required:
                raise CommandRefused(f"Error: `{command}` needs `{self.name}`")
            return
        if not isinstance(value, self.kind) or isinstance(value, bool):
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


def _checked_path(path: str) -> str:
    """The one path that stands for this place. `CommandRefused` for one that could lead outside."""
    if len(path) > _MOST_WRITTEN:
        raise _invalid_path(path)
    plain = path
    while (decoded := unquote(plain)) != plain:
        plain = decoded
    # What is written in another way than it reads is an attempt, or about to be misread.
    for text in (path, plain):
        if not text.startswith(ROOT) or text[len(ROOT) : len(ROOT) + 1] not in {"", "/"}:
            raise CommandRefused(f"Error: Path must start with {ROOT}, got: {path}")
        if "\\" in text or {".", ".."} & set(text.split("/")):
            raise CommandRefused(f"Error: Path {path} would escape {ROOT} directory")
    names = [name for name in unicodedata.normalize("NFC", path).split("/") if name]
    place = "/" + "/".join(names)
    unusable = not plain.isprintable() or any(name != name.strip() for name in names)
    if unusable or len(place) > MOST_PATH or redact_path(place).text != place:
        raise _invalid_path(path)
    return place


def _invalid_path(path: str) -> CommandRefused:
    shown = repr(path[:MOST_PATH]) + ("…" if len(path) > MOST_PATH else "")
    return CommandRefused(
        f"Error: Invalid path {shown}: printable names without a secret, at most {MOST_PATH}"
        " characters"
    )


MOST_PATH: Final = 1_024
# Each layer of escapes is taken off in a pass of its own, so the passes grow with the length.
_MOST_WRITTEN: Final = 2 * MOST_PATH


def _files(more: Mapping[str, Any]) -> dict[str, Any]:
    return {"AND": [{"category": CATEGORY}, dict(more)]}


def _version(old: MemoryRecord | None, place: str, content: str) -> NewMemory:
    """What keeps a content at a place, instead of `old`.

    A short one is the memory's text. Of others, and of what has no words, the text is a label.
    """
    short = len(content) <= SECTION and bool(content.strip())
    new = NewMemory(
        text=content if short else _label(place, content),
        payload=None if short else {_CONTENT: content},
        path=place,
        category=CATEGORY,
        dedupe=False,
        guarded=True,
    )
    if old is None:
        return new
    return replace(new, supersedes=old.id, type=old.type, tags=old.tags, expires_at=old.expires_at)


def _label(place: str, content: str) -> str:
    """What a file is about, as far as its name and its headings tell."""
    headings = [line.lstrip("#").strip() for line in content.split("\n") if _HEADING.match(line)]
    return "\n".join([place, *headings])[:SECTION]


def _content(file: MemoryRecord) -> str:
    return str((file.payload or {}).get(_CONTENT, file.text))


def _given(new: NewMemory) -> str:
    return str((new.payload or {}).get(_CONTENT, new.text))


def _sections(content: str) -> list[str]:
    """A long content in pieces that can be found, each behind its heading, in order, each once.

    A piece ends before a heading, at a blank line once it has a third of its size, and where it is
    full. A line is never cut.
    """
    if len(content) <= SECTION:
        return []
    found: list[str] = []
    heading, piece = "", list[str]()

    def end() -> None:
        text = "\n".join(piece).strip("\n")
        if text.strip() and text != heading:
            found.append(text)
        piece[:] = [heading] if heading else []

    for line in content.split("\n"):
        size = sum(len(one) + 1 for one in piece)
        if _HEADING.match(line):
            end()
            heading, piece[:] = line, [line]
        elif (not line.strip() and size >= SECTION // 3) or size + len(line) > SECTION:
            end()
            piece.append(line)
        else:
            piece.append(line)
    end()
    return list(dict.fromkeys(found))


def _lines(content: str) -> list[str]:
    """The lines of a file; the end of the last one begins no other."""
    lines = content.split("\n")
    return lines[:-1] if not lines[-1] else lines


def _lines_with(content: str, wanted: str) -> list[int]:
    """The line, from 1, of each place where a text begins, overlapping ones too."""
    found: list[int] = []
    at = content.find(wanted) if wanted else -1
    while at >= 0:
        found.append(content.count("\n", 0, at) + 1)
        at = content.find(wanted, at + 1)
    return found


def _numbered(lines: Iterable[str], first: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


def _shown(path: str, content: str, view_range: Sequence[int] | None) -> str:
    lines = content.split("\n")
    if len(lines) > MOST_LINES:
        raise CommandRefused(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first, last = _range(view_range, len(lines))
    shown: list[str] = []
    left = MOST_SHOWN
    for line in lines[first - 1 : last]:
        left -= len(line) + 1
        if left < 0 and shown:
            break
        shown.append(line[:MOST_SHOWN])
    told = ""
    if len(shown) < last - first + 1:
        upto = first + len(shown) - 1
        told = f"\n(Lines {upto + 1} to {last} are not shown: use view_range [{upto + 1}, {last}].)"
    return f"Here's the content of {path} with line numbers:\n{_numbered(shown, first)}{told}"


def _range(view_range: Sequence[int] | None, most: int) -> tuple[int, int]:
    if not view_range:
        return 1, most
    if len(view_range) == 2 and all(type(one) is int for one in view_range):
        first = max(1, view_range[0])
        last = most if view_range[1] == -1 else min(most, view_range[1])
        if first <= last:
            return first, last
    raise CommandRefused(
        f"Error: Invalid `view_range` parameter: {list(view_range)}. It should be two lines of the"
        f" file, the first and the last, within [1, {most}]; -1 is the last line"
    )


def _listed(path: str, place: str, files: Iterable[MemoryRecord]) -> str:
    """The listing of a directory: itself, then what is in it, each directory before its content."""
    sizes: dict[tuple[str, ...], int] = {}
    folders: set[tuple[str, ...]] = set()
    total = 0
    for file in files:
        names = tuple((file.path or "")[len(place) + 1 :].split("/"))
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
    """Bytes as people write them: 512B, 5.5K, 1.2M."""
    size, unit = float(count), "B"
    for larger in "KMG":
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f}".removesuffix(".0") + unit
