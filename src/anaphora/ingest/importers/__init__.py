"""One module a format: what other programs keep in, conversations and memories out, as values.

A path is a file, a directory or a zip file; its format is recognised unless the caller names it.
What cannot be read is an `ImportProblem` with its place, what no importer takes is counted. Nothing
is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from anaphora.errors import InvalidInput, UnknownFormat
from anaphora.ingest.bounds import BOUNDS, Bounds
from anaphora.ingest.importers import (
    aider,
    basic_memory,
    chatgpt,
    claude_ai,
    claude_code,
    claude_mem,
    codex,
    cursor,
    deepseek,
    gemini_cli,
    gemini_takeout,
    jsonl,
    letta,
    markdown,
    mcp_memory,
    mem0,
    neo,
    sharegpt,
    telegram,
    vscode_copilot,
    zep,
)
from anaphora.ingest.importers.base import (
    UNEXPECTED,
    Format,
    ImportFile,
    ImportItem,
    Sample,
    failure,
)
from anaphora.ingest.importers.drafts import LeftOut
from anaphora.ingest.importers.finding import UNREADABLE, find, is_zip, reason_of
from anaphora.ingest.importers.json_reader import sample
from anaphora.ingest.importers.passing import EMPTY, PassedOver
from anaphora.ingest.importers.sqlite_reader import MAGIC
from anaphora.ingest.problems import UNKNOWN, Problems
from anaphora.values.conversations import ImportedConversation, ImportProblem
from anaphora.values.imports import ImportedElse, ImportedWhole

RECOGNISED = (
    "Recognised are\n"
    "- chats: exports of ChatGPT, Claude.ai, DeepSeek, Gemini (Google Takeout) and Telegram "
    "(result.json), transcripts of Claude Code, Codex, Gemini CLI and Cursor, histories of aider, "
    "chats of VS Code's Copilot, the databases (state.vscdb) of Cursor and VS Code, ShareGPT, "
    "threads of Neo\n"
    "- memories: mem0, basic-memory, claude-mem, the MCP memory server, Zep, Letta, what `anaphora "
    "export` wrote\n"
    "- notes: Obsidian vaults and other folders of Markdown\n"
    "Anything else as JSON Lines, one message a line:\n"
    '{"role": "user", "text": "Which port is staging on?", "ts": "2026-03-02T09:00:00Z"}\n'
    '{"role": "assistant", "text": "5433.", "ts": "2026-03-02T09:00:05Z"}'
)
"""What can be imported, as the error says it whose file is not recognised."""


# In the order in which they are tried. What several take goes to the first of them.
_ALL = (
    deepseek.FORMAT,
    chatgpt.FORMAT,
    claude_ai.FORMAT,
    claude_code.FORMAT,
    codex.FORMAT,
    gemini_cli.FORMAT,
    cursor.FORMAT,
    vscode_copilot.FORMAT,
    gemini_takeout.FORMAT,
    mem0.FORMAT,
    claude_mem.FORMAT,
    mcp_memory.FORMAT,
    letta.FORMAT,
    zep.FORMAT,
    basic_memory.FORMAT,
    sharegpt.FORMAT,
    neo.FORMAT,
    telegram.FORMAT,
    jsonl.FORMAT,
    aider.FORMAT,
    markdown.FORMAT,
)
FORMATS: Mapping[str, Format] = {form.name: form for form in _ALL}
# The others would take what is of these for their own.
_SPECIAL = tuple(form for form in _ALL if form.name not in {"jsonl", "markdown"})
# How files begin that are JSON, a database of SQLite, or an HTML page of Takeout.
_BEGINNINGS = (b"{", b"[", b"<", MAGIC)
_HEAD = 256
_BLANK = b"\xef\xbb\xbf \t\r\n"


@dataclass(frozen=True, slots=True)
class FileImport:
    """One file of an import: its `label`, what it gives, and how much of it was read so far.

    `progress()` is (bytes read, bytes in all).
    """

    label: str
    items: Iterator[ImportItem]
    progress: Callable[[], tuple[int, int]]


def detect(path: Path | str, name: str = "") -> str:
    """The format of a file, or of the first file in a directory or zip file that has one.

    Raises UnknownFormat when there is none, InvalidInput when there is no such path.
    """
    reason = "no importer recognises its contents"
    with closing(find(_existing(path), name=name)) as files:
        for found in files:
            if isinstance(found, ImportProblem):
                reason = f"{found.place}: {found.reason}"
            if not isinstance(found, ImportFile):
                continue
            forms, reason = _recognise(found)
            if forms:
                return forms[0].name
    if reason.startswith(UNKNOWN):
        reason += f".\n{RECOGNISED}\n"
    raise UnknownFormat("path", str(path), reason)


def check_source(path: Path | str, format: str | None = None, name: str = "") -> None:  # noqa: A002 - the word that users know
    """Raise UnknownFormat for a named file that no importer recognises or a format that does not
    exist, InvalidInput for a path that does not exist. Nothing else is read for that."""
    place = _existing(path)
    if format is not None and format not in FORMATS:
        raise UnknownFormat(
            "format", format, "expected one of " + ", ".join((*FORMATS, "anaphora"))
        )
    if format is None and not place.is_dir() and not is_zip(place):
        detect(place, name)


def found_imports(
    path: Path | str,
    format: str | None = None,  # noqa: A002 - as above
    bounds: Bounds = BOUNDS,
    name: str = "",
) -> Iterator[FileImport]:
    """Every file under a path that was checked, in order; read each before you take the next.

    `name` is that of a file that lies elsewhere than where it came from, as an upload does.
    Files in a directory or zip file that are not recognised become problems, or are counted where
    their names are none of exports; the last of all is that count.
    """
    return _found_imports(_existing(path), format, bounds, name)


def _found_imports(
    place: Path,
    format: str | None,  # noqa: A002 - as above
    bounds: Bounds,
    name: str,
) -> Iterator[FileImport]:
    passed = PassedOver()
    for found in find(place, bounds, format, name, passed):
        yield _file_import(found, format, place, passed)
    if items := list(passed.items()):
        yield FileImport(str(place), iter(items), lambda: (0, 0))


def file_imports(
    path: Path | str,
    format: str | None = None,  # noqa: A002 - as above
    bounds: Bounds = BOUNDS,
    name: str = "",
) -> Iterator[FileImport]:
    """`found_imports` of a path that is checked first."""
    check_source(path, format, name)
    return found_imports(path, format, bounds, name)


def _file_import(
    found: ImportFile | ImportProblem | ImportedWhole | ImportedElse,
    format: str | None,  # noqa: A002 - as above
    place: Path,
    passed: PassedOver,
) -> FileImport:
    if not isinstance(found, ImportFile):
        label = found.path if isinstance(found, ImportProblem) else str(place)
        return FileImport(label, iter([found]), lambda: (0, 0))
    form = FORMATS[format] if format is not None else None
    return FileImport(found.name, _items(found, form, passed), lambda: (found.consumed, found.size))


def _items(file: ImportFile, form: Format | None, passed: PassedOver) -> Iterator[ImportItem]:
    problems = Problems(file.bounds.problems)
    for item in _read(file, form, passed):
        if not isinstance(item, ImportProblem) or problems.add(item):
            yield item
    yield from problems.summary()


def _read(file: ImportFile, form: Format | None, passed: PassedOver) -> Iterator[ImportItem]:
    try:
        forms, reason = ([form], "") if form is not None else _recognise(file)
        if not forms:
            yield from _unknown(file, reason, passed)
            return
        empty = True
        for item in forms[0].read(file) if len(forms) == 1 else _read_shared(file, forms):
            empty = False
            yield item
        if empty:
            passed.add(EMPTY, file.name, read=True)
    except UNREADABLE as error:
        yield file.problem("file", reason_of(error))
    except UNEXPECTED as error:
        # One file never stops those behind it.
        yield file.problem("file", failure(error))


def _read_shared(file: ImportFile, forms: Sequence[Format]) -> Iterator[ImportItem]:
    """What each format has of a file, the first also what is of none; a chat once."""
    chats: set[tuple[str, str]] = set()
    for number, form in enumerate(forms):
        others = [other for other in forms if other is not form]
        file.wanted = partial(_is_for, file, form, forms[:number], [] if number else others)
        file.later = number > 0
        before = frozenset(chats)
        for item in form.read(file):
            if isinstance(item, ImportedConversation):
                if (item.source, item.key) in before:
                    continue
                chats.add((item.source, item.key))
            yield item
    file.wanted = None


def _is_for(
    file: ImportFile,
    form: Format,
    before: Sequence[Format],
    behind: Sequence[Format],
    value: object,
) -> bool:
    """Whether a value of a shared file is read by a format: those `before` it come first, and the
    first has what is of none `behind` it."""
    one = _alone(file, value)
    if form.detect(one):
        return not any(other.detect(one) for other in before)
    return not before and not any(other.detect(one) for other in behind)


def _unknown(file: ImportFile, reason: str, passed: PassedOver) -> Iterator[ImportProblem]:
    """What is said of a file of no format. Folders of programs hold other databases of theirs."""
    if file.in_folder and reason.startswith(UNKNOWN) and "database" in reason:
        passed.add(LeftOut.OTHER_DATABASE, file.name)
    elif file.tentative:
        passed.add_file(file.name)
    else:
        yield file.problem("file", reason)


def _recognise(file: ImportFile) -> tuple[list[Format], str]:
    """The formats that a file has something of, or why it has none."""
    try:
        if file.tentative and not _begins_as_exports_do(file):
            return [], UNKNOWN
        beginning = sample(file)
        forms = _fitting(beginning)
    except UNREADABLE as error:
        return [], reason_of(error)
    if forms:
        return forms, ""
    reason = UNKNOWN
    if beginning.shape == "database":
        named = ", ".join(sorted(beginning.tables)[:8])
        reason += f" (a database of SQLite with the tables {named})"
    if beginning.problem is not None:
        reason += f" ({beginning.problem.place}: {beginning.problem.reason})"
    return [], reason


def _fitting(beginning: Sample) -> list[Format]:
    """The first format that takes the beginning of a file, and those that take what it does not."""
    first = next((form for form in _ALL if form.detect(_sample_for(form, beginning))), None)
    if first is None or first not in _SPECIAL:
        return [] if first is None else [first]
    rest = beginning
    if beginning.shape != "database":
        left = (value for value in beginning.values if not first.detect(_alone(rest.file, value)))
        rest = replace(beginning, values=tuple(left), head=b"\0")
        if not rest.values:
            return [first]
    return [first, *(form for form in _SPECIAL if form is not first and form.detect(rest))]


def _alone(file: ImportFile, value: object) -> Sample:
    """A sample of one value: the head is that of no note."""
    return Sample(file, "elements", (value,), head=b"\0")


def _begins_as_exports_do(file: ImportFile) -> bool:
    with file.open() as raw:
        head = raw.peek(_HEAD)[:_HEAD]
    # In UTF-16 every other byte is none.
    return head.lstrip(_BLANK).startswith(_BEGINNINGS) or head.startswith(
        (b"\xff\xfe", b"\xfe\xff")
    )


def _sample_for(form: Format, beginning: Sample) -> Sample:
    """The sample as this format would read it, where damage at the start makes a difference."""
    if beginning.problem is None or beginning.shape != "elements":
        return beginning
    file, shape = beginning.file, beginning.shape
    return sample(file, lambda value: form.detect(Sample(file, shape, (value,), head=b"\0")))


def _existing(path: Path | str) -> Path:
    place = Path(path).expanduser()
    if not place.exists():
        raise InvalidInput("path", str(path), "no such file or directory")
    return place
