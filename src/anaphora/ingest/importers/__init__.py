"""One module a format: what other programs keep in, conversations and memories out, as values.

A path is a file, a directory or a zip file; its format is recognised unless the caller names it.
What cannot be read is an `ImportProblem` with its place. Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
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
from anaphora.ingest.importers.base import Format, ImportFile, ImportItem, Sample
from anaphora.ingest.importers.drafts import LeftOut
from anaphora.ingest.importers.finding import UNREADABLE, find, is_zip, reason_of
from anaphora.ingest.importers.json_reader import sample
from anaphora.ingest.problems import Problems
from anaphora.values.conversations import ImportProblem
from anaphora.values.imports import ImportedElse, ImportedWhole

UNKNOWN = "no importer recognises this file"
"""How the problem of a file begins that is none of `RECOGNISED`."""
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


# In the order in which they are tried: the plainest last, it would take others' lines for its own.
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
            form, reason = _recognise(found)
            if form is not None:
                return form.name
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
    Files in a directory or zip file that are not recognised become problems.
    """
    place = _existing(path)
    return (_file_import(found, format, place) for found in find(place, bounds, format, name))


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
) -> FileImport:
    if not isinstance(found, ImportFile):
        label = found.path if isinstance(found, ImportProblem) else str(place)
        return FileImport(label, iter([found]), lambda: (0, 0))
    form = FORMATS[format] if format is not None else None
    return FileImport(found.name, _items(found, form), lambda: (found.consumed, found.size))


def _items(file: ImportFile, form: Format | None) -> Iterator[ImportItem]:
    problems = Problems(file.bounds.problems)
    for item in _read(file, form):
        if not isinstance(item, ImportProblem) or problems.add(item):
            yield item
    yield from problems.summary()


def _read(file: ImportFile, form: Format | None) -> Iterator[ImportItem]:
    try:
        reason = ""
        if form is None:
            form, reason = _recognise(file)
        if form is None:
            yield _unknown(file, reason)
            return
        yield from form.read(file)
    except UNREADABLE as error:
        yield file.problem("file", reason_of(error))


def _unknown(file: ImportFile, reason: str) -> ImportItem:
    """What is said of a file of no format. Folders of programs hold other databases of theirs."""
    if file.in_folder and reason.startswith(UNKNOWN) and "database" in reason:
        return ImportedElse(LeftOut.OTHER_DATABASE)
    return file.problem("file", reason)


def _recognise(file: ImportFile) -> tuple[Format | None, str]:
    """The file's format, or why it has none."""
    try:
        beginning = sample(file)
        for form in _ALL:
            if form.detect(_sample_for(form, beginning)):
                return form, ""
    except UNREADABLE as error:
        return None, reason_of(error)
    reason = UNKNOWN
    if beginning.shape == "database":
        named = ", ".join(sorted(beginning.tables)[:8])
        reason += f" (a database of SQLite with the tables {named})"
    if beginning.problem is not None:
        reason += f" ({beginning.problem.place}: {beginning.problem.reason})"
    return None, reason


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
