"""An import: files of any kind in, conversations, memories and documents kept, a report of all.

What no importer knows is offered to the features that keep files (`take_file`). What is malformed
or beyond `Bounds` is a problem of the report, with its place; the rest goes in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anaphora.calls.progress import Progress
from anaphora.errors import InvalidInput, UnknownFormat
from anaphora.features.importing.formats.packed import PACKED
from anaphora.features.importing.memories import ImportedMemoryWriter
from anaphora.features.importing.reading import FileStarted, ImportSource
from anaphora.features.importing.values import (
    ImportedElse,
    ImportedFile,
    ImportedMemory,
    ImportedWhole,
)
from anaphora.ingest.bounds import BOUNDS, Bounds
from anaphora.ingest.conversations import ConversationImport
from anaphora.ingest.problems import UNKNOWN, Problems, shortened
from anaphora.values.conversations import (
    ImportedConversation,
    ImportProblem,
    ImportReport,
    Source,
)
from anaphora.values.files import TakenFile

if TYPE_CHECKING:
    from anaphora.features.importing.formats.base import ImportItem

# Of all files together: a folder may have any number of them.
_MOST_PROBLEMS: Final = 10_000
_GIVEN: Final = "conversations"
# Names of each kind of file that was left out.
_MOST_NAMED: Final = 20
_NO_READER: Final = "file that only the feature `documents` reads"
_FORGOTTEN: Final = "document that was forgotten here; --again brings it back"
# How the reader of documents begins to say what a file is.
_IT_IS: Final = re.compile(r"^it (?:is|has) (?:an? )?")

TakeFile = Callable[[Path | bytes, str | None], TakenFile | ImportReport | None]
"""Keeps a file at a path, or its bytes, under its path or a name; None if nothing keeps files.

Of an export, which may have anything in it, the report."""


def import_files(
    sources: Iterable[Source],
    conversations: ConversationImport,
    memories: ImportedMemoryWriter,
    *,
    take_file: TakeFile = lambda _source, _name: None,
    format: str | None = None,  # noqa: A002 - the word that users know
    name: str = "",
    progress: Progress | None = None,
    bounds: Bounds = BOUNDS,
) -> ImportReport:
    """Import files, directories, zip files, or conversations that were read already.

    `name` is that of a file that lies elsewhere than where it came from. `take_file` keeps what no
    importer knows. `progress` is called with a file's name, the bytes of it that were read, and its
    size; of other files with how many there are.

    Raises UnknownFormat or InvalidInput before anything is written, when a path or format that
    was named cannot be used, and UnknownFormat where a single file was named that is of no known
    kind; StoreError and its kinds when the store cannot write: what was written until then stays,
    and importing again goes on from there.
    """
    run = _ImportRun(conversations, memories, take_file)
    conversations_given: list[ImportedConversation] = []
    files: list[ImportSource] = []
    for source in sources:
        if isinstance(source, ImportedConversation):
            conversations_given.append(source)
            continue
        file = ImportSource(Path(source).expanduser(), format, name, bounds)
        file.check()
        files.append(file)
    for file in files:
        _add_files(run, file, progress)
    total = len(conversations_given)
    for number, conversation in enumerate(conversations_given, start=1):
        run.add(conversation, _GIVEN)
        if progress is not None:
            progress(_GIVEN, number, total)
    report = run.report()
    if [str(file.path) for file in files] == [problem.path for problem in report.problems]:
        reason = report.problems[0].reason if report.problems else ""
        if reason.startswith((UNKNOWN, PACKED)):
            raise UnknownFormat("path", str(files[0].path), reason)
    return report


def _add_files(run: _ImportRun, source: ImportSource, progress: Progress | None) -> None:
    current = FileStarted("", 0)
    unknown_files: list[ImportedFile] = []
    with closing(source.read()) as values:
        for answer in values:
            if isinstance(answer, FileStarted):
                _tell_end(current, progress)
                current = answer
            elif isinstance(answer.item, ImportedFile):
                unknown_files.append(answer.item)
            else:
                run.add(answer.item, current.label)
                if progress is not None and isinstance(
                    answer.item, ImportedConversation | ImportedMemory
                ):
                    progress(current.label, answer.done, current.size)
    _tell_end(current, progress)
    # Each is read in a worker: that of the importers is free by now.
    for number, file in enumerate(unknown_files, start=1):
        run.add_file(source, file)
        if progress is not None:
            progress(file.path or source.path.name, number, len(unknown_files))


def _tell_end(file: FileStarted, progress: Progress | None) -> None:
    if progress is not None and file.label:
        progress(file.label, file.size, file.size)


class _ImportRun:
    """One import under way, and its report so far."""

    def __init__(
        self, conversations: ConversationImport, memories: ImportedMemoryWriter, take_file: TakeFile
    ) -> None:
        self._conversations = conversations
        self._memories = memories
        self._take_file = take_file
        self._labels: set[str] = set()
        self._exports: list[ImportReport] = []
        self._documents: Counter[str] = Counter()
        self._redacted: dict[str, None] = {}
        self._left_out: Counter[str] = Counter()
        self._names: dict[str, tuple[str, ...]] = {}
        self._remarks = Problems(_MOST_PROBLEMS)
        self._problems = Problems(_MOST_PROBLEMS)

    def add(self, item: ImportItem, label: str) -> None:
        """Store one result of reading a file, or note why not."""
        match item:
            case ImportProblem():
                self._problems.add(item)
            case ImportedElse():
                self._leave_out(item.kind, item.count, item.names)
            case ImportedConversation():
                self._note_file(label if item.turns or item.calls else _GIVEN)
                self._left_out.update(item.left_out)
                self._conversations.add(
                    item,
                    lambda chat, place, reason: self._add_problem(
                        f"{chat.source} {chat.key}", place, reason
                    ),
                )
            case ImportedMemory():
                self._note_file(label)
                self._memories.add(
                    item, lambda memory, reason: self._add_problem(label, memory.place, reason)
                )
            case ImportedWhole():
                self._memories.end(item)

    def add_file(self, source: ImportSource, file: ImportedFile) -> None:
        """Offer a file that no importer knows."""
        base = source.name or str(source.path)
        label = "/".join(filter(None, (base, file.path, file.member)))
        name = label.rpartition("/")[2]
        try:
            outcome = self._take_file(*source.take(file))
        except InvalidInput as error:
            outcome = TakenFile("failed", error.reason)
        match outcome:
            case None:
                self._leave_out(_NO_READER, 1, (name,))
            case ImportReport():
                self._exports.append(outcome)
            case TakenFile("left_out"):
                kind = _IT_IS.sub("", outcome.reason)
                self._leave_out(kind, 1, (name,))
            case TakenFile("forgotten"):
                self._leave_out(_FORGOTTEN, 1, (name,))
            case TakenFile("failed"):
                self._add_problem(label, "file", outcome.reason)
            case TakenFile():
                self._documents[outcome.action] += 1
                self._redacted.update(dict.fromkeys(outcome.redacted))
                for problem in outcome.problems:
                    self._remarks.add(replace(problem, path=label))
                if file.remark and outcome.action == "added":
                    self._remarks.add(ImportProblem(label, "", file.remark))

    def _leave_out(self, kind: str, count: int, names: tuple[str, ...]) -> None:
        self._left_out[kind] += count
        if names:
            self._names[kind] = (*self._names.get(kind, ()), *names)[:_MOST_NAMED]

    def _note_file(self, label: str) -> None:
        if label != _GIVEN:
            self._labels.add(label)

    def _add_problem(self, path: str, place: str, reason: str) -> None:
        self._problems.add(ImportProblem(shortened(path), shortened(place), shortened(reason)))

    def report(self) -> ImportReport:
        """Write what is pending, and report what was done."""
        self._memories.flush()
        counts, conversation_import = self._memories.counts, self._conversations
        documents, redacted_kinds = self._documents, self._redacted | self._memories.redacted
        report = ImportReport(
            **conversation_import.counts,
            files=len(self._labels) + documents.total(),
            conversations=len(conversation_import.chats),
            left_out=dict(self._left_out),
            left_out_files=self._names,
            remarks=self._remarks.all(),
            problems=self._problems.all(),
            conversation_ids=tuple(conversation_import.threads),
            last_index=conversation_import.last_index,
            memories_added=counts["added"],
            memories_known=counts["known"],
            memories_changed=counts["changed"],
            memories_ended=counts["ended"],
            memories_forgotten=counts["forgotten"],
            gone=tuple(self._memories.gone),
            documents_added=documents["added"],
            documents_known=documents["known"],
            redacted=tuple(redacted_kinds),
            notices=(),
        )
        return ImportReport.joined([report, *self._exports]) if self._exports else report
