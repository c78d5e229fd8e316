"""Imports of exports: missing data is added, existing data stays.

A line that cannot be read is reported with its number, and the others are imported. Importing the
same file again changes nothing; to finish an interrupted import, repeat it. Vectors are computed
later.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path

from anaphora.calls.progress import Progress
from anaphora.container.home import Container
from anaphora.container.namespace import NamespaceServices
from anaphora.errors import CorruptThread, EmbeddingError, StoreError, UnknownFormat
from anaphora.index.backlog import IN_CALL
from anaphora.index.turns.index import INLINE_BACKLOG
from anaphora.ingest.bounds import BOUNDS, Bounds
from anaphora.ingest.export_lines import ReadLine, export_lines
from anaphora.ingest.problems import Problems, shortened
from anaphora.ops.transfer.export import is_export
from anaphora.ops.transfer.kinds import line_kinds
from anaphora.ops.transfer.reading import BATCH, FORMAT, LineReader, LoadTarget
from anaphora.store.disk import open_regular, translate
from anaphora.store.line_fields import string
from anaphora.store.lines import Line, from_line
from anaphora.store.threads.ids import check_id
from anaphora.system.worker import WorkerEnded, WorkerFailed
from anaphora.values.conversations import ImportedConversation, ImportProblem, ImportReport, Source

# Errors of the file or its contents; any other error is one of this home.
_WRONG = (ValueError, TypeError, CorruptThread)
# Bytes: no turn and no memory is longer, and one line never takes all of a machine's memory.
_MOST_LINE = 128 << 20
_MOST_PROBLEMS = 10_000


def import_sources(
    services: NamespaceServices,
    source: str | os.PathLike[str] | Iterable[Source],
    *,
    form: str | None,
    again: bool,
    embed: bool,
    progress: Progress | None,
    name: str = "",
) -> ImportReport:
    """Import files of other programs, and exports of other memories; see `Memory.import_`.

    With `embed` the computation of their vectors is started.
    """
    sources: Iterable[Source] = [source] if isinstance(source, (str, os.PathLike)) else source
    exports: list[str | os.PathLike[str]] = []
    conversations: list[Source] = []
    for candidate in sources:
        path = None if isinstance(candidate, ImportedConversation) else candidate
        if path is not None and (form == "anaphora" or (form is None and is_export(path))):
            exports.append(path)
        else:
            conversations.append(candidate)
    home, into = services.container, services.namespace
    reports = [
        import_export(home, path, namespace=into, again=again, progress=progress)
        for path in exports
    ]
    if conversations or not exports:
        reports.append(
            _import_files(services, conversations, form, name, again=again, progress=progress)
        )
    report = ImportReport.joined(reports)
    if embed:
        memories = bool(exports or report.memories_added or report.memories_changed)
        # Few vectors now, many in the background; a later question continues, in any process.
        services.conversation.turn_index.sync()
        if memories:
            with suppress(EmbeddingError):
                services.memory.writer.fill_vectors(INLINE_BACKLOG, room=IN_CALL)
        if exports:
            for feature in services.features:
                feature.fill_in_call(INLINE_BACKLOG, room=IN_CALL)
        if memories or report.documents_added:
            services.fill_in_background()
    return report


def _import_files(
    services: NamespaceServices,
    sources: Iterable[Source],
    form: str | None,
    name: str,
    *,
    again: bool,
    progress: Progress | None,
) -> ImportReport:
    """Import files of other programs, by the feature that reads them."""
    for feature in services.features:
        report = feature.import_files(sources, form, name, again=again, progress=progress)
        if report is not None:
            return report
    raise UnknownFormat("source", name, "an export of Anaphora")


def import_export(
    container: Container,
    source: str | os.PathLike[str],
    *,
    namespace: str | None = None,
    again: bool = False,
    progress: Progress | None = None,
    bounds: Bounds = BOUNDS,
) -> ImportReport:
    """Import the export at `source`, each namespace into its own, or all into `namespace`.

    Memories and notes that change count as added. `again` also imports data that was deleted here.
    `progress` is called with the file's name, bytes read and bytes in all. `UnknownFormat` for a
    file that is no export, `StoreError` for one of a newer format, `StoreError` and its kinds if
    this home cannot be written: the lines written until then stay, and a repeated import continues.
    """
    path = Path(source).expanduser().absolute()
    into = None if namespace is None else container.standing_namespace(check_id(namespace))
    run = _LoadRun(container, path, into, again)
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise translate(error, "read", path) from error
    lines = export_lines(path, size, _MOST_LINE, bounds)
    try:
        with closing(lines):
            run.begin(next(lines, None))
            for line in lines:
                run.read(line)
                if progress is not None and run.number % BATCH == 0:
                    progress(path.name, line.done, size)
    except WorkerEnded as error:
        run.stop(str(error))
    except WorkerFailed as error:
        raise StoreError("read", path, str(error)) from error
    report = run.end()
    if progress is not None:
        progress(path.name, size, size)
    return report


class _LoadRun:
    """An import under way."""

    def __init__(self, container: Container, path: Path, into: str | None, again: bool) -> None:
        self._container = container
        self._path = path
        self._into = into
        self._namespaces: dict[str, str] = {}
        self._again = again
        self._counts: Counter[str] = Counter()
        self._problems = Problems(_MOST_PROBLEMS)
        self._targets: dict[str, LoadTarget] = {}
        self._reader_by_kind = {name: kind.reader for kind in line_kinds() for name in kind.names}
        self._readers: dict[tuple[str, Callable[[LoadTarget], LineReader]], LineReader] = {}
        self._reader: LineReader | None = None
        self._ended = False
        self.number = 1

    def begin(self, line: ReadLine | None) -> None:
        """Read the first line."""
        head = {} if line is None or line.text is None else from_line(line.text)
        if head.get("anaphora") != "export":
            raise UnknownFormat("source", str(self._path), "an export of Anaphora")
        if head.get("version") != FORMAT:
            reason = f"its format {head.get('version')} is newer than this program"
            raise StoreError("read", self._path, reason)

    def read(self, line: ReadLine) -> None:
        """Read another line, and write full batches."""
        self.number += 1
        if line.text is None:
            self._problem(self.number, line.reason)
            return
        try:
            self._read(from_line(line.text))
        except MemoryError:
            self._problem(self.number, "there is not memory enough for it")
        except _WRONG as error:
            self._problem(self.number, str(error))

    def stop(self, reason: str) -> None:
        """Reading was ended: the lines after the last one are lost."""
        self._problem(self.number + 1, reason)
        self._ended = True

    def _read(self, line: Line) -> None:
        kind = string(line, "kind")
        if kind == "end":
            self._ended = True
            return
        reader_class = self._reader_by_kind.get(kind)
        if reader_class is None:
            raise ValueError(f"unknown kind of line {kind!r}")
        namespace = self._into
        if namespace is None:
            name = string(line, "namespace")
            if name not in self._namespaces:
                self._namespaces[name] = self._container.standing_namespace(check_id(name))
            namespace = self._namespaces[name]
        if (namespace, reader_class) not in self._readers:
            if namespace not in self._targets:
                services = self._container.namespace(namespace)
                deleted_ids = frozenset(
                    record_id for _, record_id in services.memory.records.tombstones_since(0)
                )
                self._targets[namespace] = LoadTarget(
                    services, self._again, deleted_ids, self._problem, self._counts
                )
            self._readers[namespace, reader_class] = reader_class(self._targets[namespace])
        reader = self._readers[namespace, reader_class]
        if reader is not self._reader:
            previous_reader, self._reader = self._reader, reader
            if previous_reader is not None and not previous_reader.last:
                previous_reader.flush()
        reader.read(self.number, line)

    def end(self) -> ImportReport:
        """Write the remaining lines, link the imported notes, and report."""
        for namespace in self._targets:
            reader_classes = dict.fromkeys(self._reader_by_kind.values())
            readers = [
                self._readers[namespace, reader_class]
                for reader_class in reader_classes
                if (namespace, reader_class) in self._readers
            ]
            for reader in readers:
                reader.flush()
            for reader in readers:
                reader.end()
        if not self._ended:
            self._problem(self.number, "the file ends here, before its own end")
        counts = self._counts
        return ImportReport(
            files=1,
            conversations=counts["threads"],
            added=counts["turns added"],
            known=counts["turns known"],
            forgotten=counts["forgotten"],
            memories_added=counts["added"] + counts["changed"],
            memories_known=counts["known"],
            notes_added=counts["notes added"] + counts["notes changed"],
            notes_known=counts["notes known"],
            gaps_added=counts["gaps added"],
            tool_calls=counts["tool calls added"],
            documents_added=counts["documents added"] + counts["documents changed"],
            documents_known=counts["documents known"],
            problems=self._problems.all(),
        )

    def _problem(self, number: int, reason: str) -> None:
        self._problems.add(ImportProblem(str(self._path), f"line {number}", shortened(reason)))
