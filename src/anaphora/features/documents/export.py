"""Documents in an export and back: the metadata of each version, its sections, its file.

A version whose id exists here is known: its text never changes, only its end may come. One whose
bytes are stored here already, under any name, is not imported a second time. Forgotten documents
are not imported, unless requested. Secrets are redacted in imported text.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from anaphora.container.feature import LineKind
from anaphora.errors import NotFound
from anaphora.features.documents.services import DocumentServices
from anaphora.features.documents.store import (
    PIECE,
    DocumentTransaction,
    rows_of,
    same_document,
    section_id,
)
from anaphora.features.documents.values import FORMATS, Document, DocumentSection
from anaphora.ingest.secrets.redacting import redact, redact_path
from anaphora.ops.transfer.reading import LineReader, LoadTarget, Outcome
from anaphora.store.line_fields import LineFields, id_in, list_in, number_in, one_of, string
from anaphora.store.lines import Line, present
from anaphora.store.maintenance import kinds_of
from anaphora.store.records.rows import DOCUMENT, RecordEvent

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_FIELDS: Final = LineFields(
    Document,
    ("id", "name", "title", "format", "size", "content_hash", "added_at"),
    left_out=("file_kept", "sections"),
    readers={"format": one_of(FORMATS, "")},
)


def document_lines(services: NamespaceServices) -> Iterator[Line]:
    """All documents in the order in which they changed, each with its sections and its file."""
    store = services.feature(DocumentServices).store
    last_seq = 0
    while records := store.versions.changed_since(last_seq):
        for record in records:
            document = store.get(record.id)
            line = _FIELDS.write(document)
            line["sections"] = [
                present({"start": s.start, "page": s.page, "heading": s.heading, "text": s.text})
                for s in store.sections_of(record.id)
            ]
            yield {"kind": "document", **line}
            if document.file_kept:
                content = store.file_of(document.id)
                for position, start in enumerate(range(0, len(content), PIECE)):
                    yield {
                        "kind": "document_file",
                        "document": document.id,
                        "position": position,
                        "data": base64.b64encode(content[start : start + PIECE]).decode("ascii"),
                    }
        last_seq = records[-1].seq


class DocumentReader(LineReader):
    """Reads the documents of one namespace, and writes each at once."""

    def __init__(self, target: LoadTarget) -> None:
        super().__init__(target)
        self._store = target.services.feature(DocumentServices).store
        self._gone = frozenset(
            record_id for _, record_id in self._store.versions.tombstones_since(0)
        )
        # The ids here of the documents that lack their file, by their ids in the export.
        self._without_file: dict[str, str] = {}

    def read(self, number: int, line: Line) -> None:
        """As `LineReader.read`."""
        if line["kind"] == "document_file":
            stored_id = self._without_file.get(id_in(line, "document"))
            position = number_in(line, "position")
            if position is None or position < 0:
                raise ValueError('"position" is not a number from 0 on')
            try:
                piece = base64.b64decode(string(line, "data"), validate=True)
            except (binascii.Error, ValueError):
                raise ValueError('"data" is not base64') from None
            if stored_id is not None and piece:
                with self._store.change() as work:
                    work.put_piece(stored_id, position, piece)
            return
        document, sections = _parse(line)
        kinds = kinds_of(self._store.truth, self._store.namespace, [document.id])
        if kinds.get(document.id, DOCUMENT) != DOCUMENT:
            self.target.problem(number, f"its id is that of a {kinds[document.id]} here")
            return
        exported_id = document.id
        if document.id in self._gone:
            if not self.target.again:
                self.target.count(["forgotten"], "documents ")
                return
            new_id = self.target.services.ids()
            document = replace(document, id=new_id)
            sections = [
                replace(section, id=section_id(new_id, section.number), document=new_id)
                for section in sections
            ]
        with self._store.change() as work:
            outcome, document_id = _write(work, document, sections)
        try:
            has_file = bool(self._store.file_of(document_id))
        except NotFound:
            has_file = False
        if not has_file:
            self._without_file[exported_id] = document_id
        self.target.count([outcome], "documents ")

    def flush(self) -> None:
        """As `LineReader.flush`: nothing waits."""


def _write(
    work: DocumentTransaction, document: Document, sections: list[DocumentSection]
) -> tuple[Outcome, str]:
    """Write a document; returns the outcome and the id of its equivalent here."""
    current = work.versions.find(document.id)
    if current is not None:
        if current.valid_to is None and document.replaced_at is not None and document.superseded_by:
            work.end(document.id, document.superseded_by, document.replaced_at)
            return "changed", document.id
        return "known", document.id
    same_key = same_document(document.content_hash)
    if document.replaced_at is None and not document.forgotten:
        present_versions = [
            version for version in work.versions.having(same_key) if version.valid_to is None
        ]
        if present_versions:
            return "known", present_versions[0].id
    rows = rows_of(document, sections)
    work.put(rows, same_key)
    work.versions.tell(RecordEvent(document.id, "added", document.added_at, tags=document.tags))
    if document.forgotten:
        at = document.replaced_at or document.added_at
        work.versions.hide(document.id, at)
        for section in rows.sections:
            work.sections.hide(section.id, at)
    else:
        # Of several current documents with one name only the last added one stays current.
        versions = work.versions.versions(document.name)
        ranked_records = sorted(
            (version for version in versions if version.valid_to is None),
            key=lambda version: (version.valid_from, version.id),
        )
        for version in ranked_records[:-1]:
            work.end(version.id, ranked_records[-1].id, ranked_records[-1].valid_from)
    return "added", document.id


def _parse(line: Line) -> tuple[Document, list[DocumentSection]]:
    """A document and its sections, without secrets. ValueError."""
    sections_written = list_in(line, "sections")
    fields = _FIELDS.read(line)
    for name in ("name", "title", "size", "content_hash", "added_at", "characters"):
        if name not in fields:
            raise ValueError(f'"{name}" is missing')
    document = Document(**fields, sections=len(sections_written))
    document = replace(
        document,
        name=redact_path(document.name).text,
        title=redact(document.title).text,
        author=redact(document.author).text if document.author else None,
        source=redact(document.source).text if document.source else None,
        tags=tuple(redact(tag).text for tag in document.tags),
    )
    sections: list[DocumentSection] = []
    for number, section in enumerate(sections_written, start=1):
        if not isinstance(section, dict):
            raise ValueError("a section is not an object")
        text, start = redact(string(section, "text")).text, number_in(section, "start") or 0
        sections.append(
            DocumentSection(
                section_id(document.id, number),
                document.id,
                number,
                text,
                start,
                start + len(text),
                tuple(redact(str(heading)).text for heading in list_in(section, "heading")),
                number_in(section, "page"),
            )
        )
    if not sections:
        raise ValueError("a document without sections")
    return document, sections


LINES: Final = (
    LineKind(
        ("document", "document_file"),
        60,
        lambda source: document_lines(source.services),
        DocumentReader,
    ),
)
