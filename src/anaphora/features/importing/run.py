"""An import: files of other programs in, conversations and memories kept, a report of both.

What is malformed or beyond `Bounds` is a problem of the report, with its place; the rest goes in.
A folder or zip file in which nothing is of a known format is refused as such a file is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anaphora.calls.progress import Progress
from anaphora.errors import UnknownFormat
from anaphora.features.importing.memories import ImportedMemoryWriter
from anaphora.features.importing.reading import FileStarted, ImportSource
from anaphora.features.importing.values import ImportedElse, ImportedMemory, ImportedWhole
from anaphora.ingest.bounds import BOUNDS, Bounds
from anaphora.ingest.conversations import ConversationImport
from anaphora.ingest.problems import UNKNOWN, UNKNOWN_ALL, Problems, shortened
from anaphora.values.conversations import (
    ImportedConversation,
    ImportProblem,
    ImportReport,
    Source,
)

if TYPE_CHECKING:
    from anaphora.features.importing.formats.base import ImportItem

# Of all files together: a folder may have any number of them.
_MOST_PROBLEMS: Final = 10_000
_GIVEN: Final = "conversations"
_MOST_TOLD: Final = 8


def import_files(
    sources: Iterable[Source],
    conversations: ConversationImport,
    memories: ImportedMemoryWriter,
    *,
    format: str | None = None,  # noqa: A002 - the word that users know
    name: str = "",
    progress: Progress | None = None,
    bounds: Bounds = BOUNDS,
) -> ImportReport:
    """Import files, directories, zip files, or conversations that were read already.

    `name` is that of a file that lies elsewhere than where it came from.
    `progress` is called with a file's name, the bytes of it that were read, and its size.

    Raises UnknownFormat or InvalidInput before anything is written, when a path or format that
    was named cannot be used; StoreError and its kinds when the store cannot write: what was
    written until then stays, and importing again goes on from there.
    """
    run = _ImportRun(conversations, memories)
    conversations_given: list[ImportedConversation] = []
    problems: list[ImportProblem] = []
    files: list[ImportSource] = []
    for source in sources:
        if isinstance(source, ImportedConversation):
            conversations_given.append(source)
            continue
        file = ImportSource(Path(source).expanduser(), format, name, bounds)
        problem = file.check()
        if problem is None:
            files.append(file)
        else:
            problems.append(problem)
    for problem in problems:
        run.add(problem, problem.path)
    for file in files:
        passed_over = _Passed()
        _add_files(run, file, progress, passed_over)
        if not passed_over.is_all:
            continue
        if len(files) == 1 and not conversations_given and not problems:
            # It imports every format.
            from anaphora.features.importing.formats import RECOGNISED

            reason = f"{passed_over.in_words()}.\n{RECOGNISED}\n"
            raise UnknownFormat("path", str(file.path), reason)
        run.add(ImportProblem(str(file.path), "file", passed_over.in_words()), "")
    total = len(conversations_given)
    for number, conversation in enumerate(conversations_given, start=1):
        run.add(conversation, _GIVEN)
        if progress is not None:
            progress(_GIVEN, number, total)
    return run.report()


@dataclass(slots=True)
class _Passed:
    """Files of a folder or zip file that no importer accepted; `is_all`: there are no others."""

    is_all: bool = True
    words: list[str] = field(default_factory=list)

    def add(self, item: ImportItem, root: Path) -> None:
        """Note one result of reading a file."""
        match item:
            case ImportedElse(unread=True):
                self.words.append(f"{item.count} {item.kind}")
            case ImportProblem() if item.reason.startswith(UNKNOWN):
                name = item.path.removeprefix(f"{root}").lstrip("/\\")
                self.words.append(shortened(name or item.path))
            case _:
                self.is_all = False

    def in_words(self) -> str:
        """Why nothing was imported."""
        words, more_count = self.words[:_MOST_TOLD], len(self.words) - _MOST_TOLD
        contents = "; ".join(words) + (f" and {more_count:,} more" if more_count > 0 else "")
        return f"{UNKNOWN_ALL}: it has {contents}" if contents else f"{UNKNOWN_ALL}: it is empty"


def _add_files(
    run: _ImportRun, source: ImportSource, progress: Progress | None, passed: _Passed
) -> None:
    current = FileStarted("", 0)
    with closing(source.read()) as values:
        for answer in values:
            if isinstance(answer, FileStarted):
                _tell_end(current, progress)
                current = answer
                continue
            passed.add(answer.item, source.path)
            run.add(answer.item, current.label)
            if progress is not None and isinstance(
                answer.item, ImportedConversation | ImportedMemory
            ):
                progress(current.label, answer.done, current.size)
    _tell_end(current, progress)


def _tell_end(file: FileStarted, progress: Progress | None) -> None:
    if progress is not None and file.label:
        progress(file.label, file.size, file.size)


class _ImportRun:
    """One import under way, and its report so far."""

    def __init__(self, conversations: ConversationImport, memories: ImportedMemoryWriter) -> None:
        self._conversations = conversations
        self._memories = memories
        self._left_out: Counter[str] = Counter()
        self._problems = Problems(_MOST_PROBLEMS)

    def add(self, item: ImportItem, label: str) -> None:
        """Store one result of reading a file, or note why not."""
        match item:
            case ImportProblem():
                self._problems.add(item)
            case ImportedElse():
                self._left_out[item.kind] += item.count
            case ImportedConversation():
                self._left_out.update(item.left_out)
                self._conversations.add(
                    item,
                    lambda chat, place, reason: self._add_problem(
                        f"{chat.source} {chat.key}", place, reason
                    ),
                )
            case ImportedMemory():
                self._memories.add(
                    item, lambda memory, reason: self._add_problem(label, memory.place, reason)
                )
            case ImportedWhole():
                self._memories.end(item)

    def _add_problem(self, path: str, place: str, reason: str) -> None:
        self._problems.add(ImportProblem(shortened(path), shortened(place), shortened(reason)))

    def report(self) -> ImportReport:
        """Write what is pending, and report what was done."""
        self._memories.flush()
        counts, conversation_import = self._memories.counts, self._conversations
        return ImportReport(
            conversations=len(conversation_import.chats),
            **conversation_import.counts,
            left_out=dict(self._left_out),
            problems=self._problems.all(),
            conversation_ids=tuple(conversation_import.threads),
            memories_added=counts["added"],
            memories_known=counts["known"],
            memories_changed=counts["changed"],
            memories_ended=counts["ended"],
            memories_forgotten=counts["forgotten"],
            gone=tuple(self._memories.gone),
            redacted=tuple(self._memories.redacted),
            notices=(),
        )
