"""One module per format: files of other programs in, conversations and memories out, as values.

A path is a file, a directory or a zip file; its format is recognised unless the caller names it.
An unreadable part is an `ImportProblem` with its position; files that no importer accepts are
counted. Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from anaphora.errors import InvalidInput, UnknownFormat
from anaphora.features.importing.formats import (
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
from anaphora.features.importing.formats.base import (
    UNEXPECTED,
    Format,
    ImportFile,
    ImportItem,
    Sample,
    failure,
)
from anaphora.features.importing.formats.canvas import CANVAS
from anaphora.features.importing.formats.drafts import LeftOut
from anaphora.features.importing.formats.finding import UNREADABLE, find, reason_of
from anaphora.features.importing.formats.json_reader import sample
from anaphora.features.importing.formats.packed import why_packed
from anaphora.features.importing.formats.passing import EXPORT, PassedOver, is_export
from anaphora.features.importing.formats.sqlite_reader import MAGIC
from anaphora.ingest.bounds import BOUNDS, Bounds
from anaphora.ingest.problems import EMPTY, UNKNOWN, Problems
from anaphora.store.db.driver import dbapi2
from anaphora.values.conversations import ImportedConversation, ImportProblem

RECOGNISED = (
    "Recognised are\n"
    "- chats: exports of ChatGPT, Claude.ai, DeepSeek, Gemini (Google Takeout) and Telegram "
    "(result.json), transcripts of Claude Code, Codex, Gemini CLI and Cursor, histories of aider, "
    "chats of VS Code's Copilot, the databases (state.vscdb) of Cursor and VS Code, ShareGPT, "
    "threads of Neo\n"
    "- memories: mem0, basic-memory, claude-mem, the MCP memory server, Zep, Letta, what `anaphora "
    "export` wrote\n"
    "- notes: Obsidian vaults and other folders of Markdown\n"
    "- documents: PDF, Word (.docx), HTML, mails (.eml, .mbox), calendars (.ics), Markdown, text, "
    "CSV, JSON, notebooks\n"
    "Other chats as JSON Lines, one message a line:\n"
    '{"role": "user", "text": "Which port is staging on?", "ts": "2026-03-02T09:00:00Z"}\n'
    '{"role": "assistant", "text": "5433.", "ts": "2026-03-02T09:00:05Z"}'
)
"""What can be imported, as it is told where nothing could be."""


# In the order in which they are tried: a value that several formats accept goes to the first.
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
# jsonl and markdown are general: they would also accept the values of these formats.
_SPECIAL = tuple(form for form in _ALL if form.name not in {"jsonl", "markdown"})
# How files begin that are JSON, a database of SQLite, or an HTML page of Takeout.
_BEGINNINGS = (b"{", b"[", b"<", MAGIC)
# Folders that programs keep for themselves, beside hidden ones.
_OF_PROGRAMS = frozenset({"AppData", "Application Support"})
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
    with closing(find(_require_existing(path), name=name)) as files:
        for candidate in files:
            if isinstance(candidate, ImportProblem):
                reason = f"{candidate.place}: {candidate.reason}"
            if not isinstance(candidate, ImportFile):
                continue
            forms, reason, _ = _recognise(candidate)
            if forms:
                return forms[0].name
    raise UnknownFormat("path", str(path), reason)


def check_format(format: str) -> None:  # noqa: A002 - the word that users know
    """Raise UnknownFormat for one that does not exist."""
    if format not in FORMATS:
        raise UnknownFormat(
            "format", format, "expected one of " + ", ".join((*FORMATS, "anaphora"))
        )


def found_imports(
    path: Path | str,
    format: str | None = None,  # noqa: A002 - as above
    bounds: Bounds = BOUNDS,
    name: str = "",
) -> Iterator[FileImport]:
    """Every file under a path, in order; read each before you take the next.

    `name` is that of a file that lies elsewhere than where it came from, as an upload does.
    The last of all tells what the files are that no importer recognises: perhaps documents, or
    counted by their kinds, or problems. Raises InvalidInput for a path that does not exist.
    """
    return _found_imports(_require_existing(path), format, bounds, name)


def _found_imports(
    root: Path,
    format: str | None,  # noqa: A002 - as above
    bounds: Bounds,
    name: str,
) -> Iterator[FileImport]:
    is_of_program = _OF_PROGRAMS & {*root.parts} or any(
        part.startswith(".") for part in root.resolve().parts
    )
    passed_over = PassedOver(root, keeps_documents=not is_of_program or not root.is_dir())
    form = FORMATS[format] if format is not None else None
    for candidate in find(root, bounds, format, name, passed_over):
        if isinstance(candidate, ImportFile):
            items = _limit_problems(candidate, form, passed_over)
            yield FileImport(candidate.name, items, candidate.progress)
        else:
            label = candidate.path if isinstance(candidate, ImportProblem) else str(root)
            yield FileImport(label, iter([candidate]), lambda: (0, 0))
    if leftovers := list(passed_over.items()):
        yield FileImport(str(root), iter(leftovers), lambda: (0, 0))


def _limit_problems(
    file: ImportFile, form: Format | None, passed: PassedOver
) -> Iterator[ImportItem]:
    problems = Problems(file.bounds.problems)
    for imported_record in _read(file, form, passed):
        if not isinstance(imported_record, ImportProblem) or problems.add(imported_record):
            yield imported_record
    yield from problems.summary()


def _read(file: ImportFile, form: Format | None, passed: PassedOver) -> Iterator[ImportItem]:
    try:
        forms, reason, is_torn = ([form], "", False) if form is not None else _recognise(file)
        if not forms:
            # The folders of programs hold databases of their own: counted, not reported.
            if file.in_folder and file.is_database and not is_torn:
                passed.add(LeftOut.OTHER_DATABASE, file.name)
            else:
                passed.hold(file, reason, is_torn=is_torn)
            return
        for recognised_format in forms:
            passed.recognise(recognised_format)
        empty = True
        for imported_record in (
            forms[0].read(file) if len(forms) == 1 else _read_shared(file, forms)
        ):
            empty = False
            yield imported_record
        if empty:
            passed.add(EMPTY, file.name)
    except UNREADABLE as error:
        yield file.problem("file", reason_of(error))
    except UNEXPECTED as error:
        # One file never stops those behind it.
        yield file.problem("file", failure(error))


def _read_shared(file: ImportFile, forms: Sequence[Format]) -> Iterator[ImportItem]:
    """The items of every format in a file; the first also gets values of no format. A chat comes
    once."""
    chats: set[tuple[str, str]] = set()
    for number, form in enumerate(forms):
        other_formats = [candidate for candidate in forms if candidate is not form]
        file.wanted = partial(_is_for, file, form, forms[:number], [] if number else other_formats)
        file.later = number > 0
        earlier_chats = frozenset(chats)
        for imported_record in form.read(file):
            if isinstance(imported_record, ImportedConversation):
                if (imported_record.source, imported_record.key) in earlier_chats:
                    continue
                chats.add((imported_record.source, imported_record.key))
            yield imported_record
    file.wanted = None


def _is_for(
    file: ImportFile,
    form: Format,
    before: Sequence[Format],
    behind: Sequence[Format],
    value: object,
) -> bool:
    """Whether a format reads a value of a shared file: formats `before` it have precedence, and the
    first format also reads values that none `behind` it recognises."""
    if _recognises(form, file, value):
        return not any(_recognises(candidate, file, value) for candidate in before)
    return not before and not any(_recognises(candidate, file, value) for candidate in behind)


def _recognise(file: ImportFile) -> tuple[list[Format], str, bool]:
    """The formats found in a file, or the reason why there is none; whether it is broken JSON."""
    if reason := why_packed(file.packing):
        return [], reason, False
    try:
        if is_export(file):
            return [], EXPORT, False
        if file.tentative:
            with file.open() as raw:
                head = raw.peek(_HEAD)[:_HEAD]
            # In UTF-16 every other byte is zero.
            is_utf_16 = head.startswith((b"\xff\xfe", b"\xfe\xff"))
            if not is_utf_16 and not head.lstrip(_BLANK).startswith(_BEGINNINGS):
                return [], UNKNOWN, False
        beginning = sample(file)
        forms = _choose_formats(beginning)
    except UNREADABLE as error:
        file.is_database = isinstance(error, dbapi2.Error)
        return [], reason_of(error), True
    # Markdown is a note in a folder of notes, and elsewhere a document.
    is_note = file.of_notes or file.name.lower().endswith(CANVAS)
    if forms and (is_note or forms != [markdown.FORMAT]):
        return forms, "", False
    reason = UNKNOWN
    file.is_database = beginning.shape == "database"
    if file.is_database:
        table_names = ", ".join(sorted(beginning.tables)[:8])
        reason += f" (a database of SQLite with the tables {table_names})"
    if beginning.problem is not None:
        reason += f" ({beginning.problem.place}: {beginning.problem.reason})"
    return [], reason, beginning.problem is not None


def _choose_formats(beginning: Sample) -> list[Format]:
    """The first format that recognises the beginning of a file, and those that recognise what it
    does not."""
    file = beginning.file
    # Where damage at the start makes a difference, the sample is as each format would read it.
    is_damaged = beginning.problem is not None and beginning.shape == "elements"
    samples = (
        (form, sample(file, partial(_recognises, form, file)) if is_damaged else beginning)
        for form in _ALL
    )
    first_format = next((form for form, begun in samples if form.detect(begun)), None)
    if first_format is None or first_format not in _SPECIAL:
        return [] if first_format is None else [first_format]
    remainder = beginning
    if beginning.shape != "database":
        untaken = (
            element for element in beginning.values if not _recognises(first_format, file, element)
        )
        remainder = replace(beginning, values=tuple(untaken), head=b"\0")
        if not remainder.values:
            return [first_format]
    return [
        first_format,
        *(form for form in _SPECIAL if form is not first_format and form.detect(remainder)),
    ]


def _recognises(form: Format, file: ImportFile, value: object) -> bool:
    """Whether a value is of a format, in a sample with a head that no note has."""
    return form.detect(Sample(file, "elements", (value,), head=b"\0"))


def _require_existing(path: Path | str) -> Path:
    existing = Path(path).expanduser()
    if not existing.exists():
        raise InvalidInput("path", str(path), "no such file or directory")
    return existing
