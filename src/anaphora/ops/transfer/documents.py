"""Documents in an export and back: what is known of each version, its sections, its file.

A version that is here under its id is known: its words never change, only its end may come. One
whose bytes are kept here already, under whatever name, is not brought in a second time. What was
forgotten here stays away, unless it is asked for. Secrets are taken out of what comes in.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from anaphora.errors import NotFound
from anaphora.ingest.secrets.redacting import redact, redact_path
from anaphora.ops.transfer.lines import (
    Line,
    LineFields,
    id_in,
    list_in,
    number_in,
    one_of,
    present,
    string,
)
from anaphora.ops.transfer.reading import LineReader, Outcome, Target
from anaphora.store.documents import PIECE, DocumentTransaction, rows_of, same_document, section_id
from anaphora.store.maintenance import kinds_of
from anaphora.store.records.rows import DOCUMENT, RecordEvent
from anaphora.values.documents import FORMATS, Document, DocumentSection

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
    store = services.documents.store
    after = 0
    while found := store.versions.changed_since(after):
        for record in found:
            document = store.get(record.id)
            line = _FIELDS.write(document)
            line["sections"] = [_section(one) for one in store.sections_of(record.id)]
            yield {"kind": "document", **line}
            if document.file_kept:
                yield from _file_lines(document.id, store.file_of(document.id))
        after = found[-1].seq


def _section(one: DocumentSection) -> dict[str, Any]:
    return present({"start": one.start, "page": one.page, "heading": one.heading, "text": one.text})


def _file_lines(document_id: str, data: bytes) -> Iterator[Line]:
    for position, start in enumerate(range(0, len(data), PIECE)):
        piece = base64.b64encode(data[start : start + PIECE]).decode("ascii")
        yield {
            "kind": "document_file",
            "document": document_id,
            "position": position,
            "data": piece,
        }


class DocumentReader(LineReader):
    """Reads the documents of one namespace, each written when it is read."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._store = target.services.documents.store
        self._gone = frozenset(one for _, one in self._store.versions.tombstones_since(0))
        # The documents whose files are wanted: under which id each is here.
        self._without_file: dict[str, str] = {}

    def read(self, number: int, line: Line) -> None:
        """As `LineReader.read`."""
        if line["kind"] == "document_file":
            self._read_piece(line)
            return
        document, sections = _parsed(line)
        here = kinds_of(self._store.truth, self._store.namespace, [document.id])
        if here.get(document.id, DOCUMENT) != DOCUMENT:
            self.target.problem(number, f"its id is that of a {here[document.id]} here")
            return
        self.target.count([self._bring_in(document, sections)], "documents ")

    def flush(self) -> None:
        """As `LineReader.flush`: nothing waits."""

    def _bring_in(self, document: Document, sections: list[DocumentSection]) -> Outcome:
        wanted = document.id
        if document.id in self._gone:
            if not self.target.again:
                return "forgotten"
            document, sections = _under_id(document, sections, self.target.services.ids())
        with self._store.change() as work:
            outcome, kept = _write(work, document, sections)
        if not self._has_file(kept):
            self._without_file[wanted] = kept
        return outcome

    def _has_file(self, document_id: str) -> bool:
        try:
            return bool(self._store.file_of(document_id))
        except NotFound:
            return False

    def _read_piece(self, line: Line) -> None:
        kept = self._without_file.get(id_in(line, "document"))
        position = number_in(line, "position")
        if position is None or position < 0:
            raise ValueError('"position" is not a number from 0 on')
        try:
            data = base64.b64decode(string(line, "data"), validate=True)
        except (binascii.Error, ValueError):
            raise ValueError('"data" is not base64') from None
        if kept is not None and data:
            with self._store.change() as work:
                work.put_piece(kept, position, data)


def _write(
    work: DocumentTransaction, document: Document, sections: list[DocumentSection]
) -> tuple[Outcome, str]:
    """What became of a document, and the id of what stands for it here."""
    here = work.versions.find(document.id)
    if here is not None:
        if here.valid_to is None and document.replaced_at is not None and document.superseded_by:
            work.end(document.id, document.superseded_by, document.replaced_at)
            return "changed", document.id
        return "known", document.id
    same_key = same_document(document.content_hash)
    if document.replaced_at is None and not document.forgotten:
        same = [one for one in work.versions.having(same_key) if one.valid_to is None]
        if same:
            return "known", same[0].id
    rows = rows_of(document, sections)
    work.put(rows, same_key)
    work.versions.tell(RecordEvent(document.id, "added", document.added_at, tags=document.tags))
    if document.forgotten:
        at = document.replaced_at or document.added_at
        work.versions.hide(document.id, at)
        for one in rows.sections:
            work.sections.hide(one.id, at)
    else:
        _line_up(work, document.name)
    return "added", document.id


def _line_up(work: DocumentTransaction, name: str) -> None:
    """Of two documents that stand under a name the one that was added later stays."""
    standing = [one for one in work.versions.versions(name) if one.valid_to is None]
    standing.sort(key=lambda one: (one.valid_from, one.id))
    for one in standing[:-1]:
        work.end(one.id, standing[-1].id, standing[-1].valid_from)


def _parsed(line: Line) -> tuple[Document, list[DocumentSection]]:
    """A document and its sections, without secrets. ValueError."""
    written = list_in(line, "sections")
    given = _FIELDS.read(line)
    for name in ("name", "title", "size", "content_hash", "added_at", "characters"):
        if name not in given:
            raise ValueError(f'"{name}" is missing')
    document = Document(**given, sections=len(written))
    document = replace(
        document,
        name=redact_path(document.name).text,
        title=redact(document.title).text,
        author=redact(document.author).text if document.author else None,
        source=redact(document.source).text if document.source else None,
        tags=tuple(redact(tag).text for tag in document.tags),
    )
    sections = [_parsed_section(document.id, at, one) for at, one in enumerate(written, start=1)]
    if not sections:
        raise ValueError("a document without sections")
    return document, sections


def _parsed_section(document_id: str, number: int, written: object) -> DocumentSection:
    if not isinstance(written, dict):
        raise ValueError("a section is not an object")
    text, start = redact(string(written, "text")).text, number_in(written, "start") or 0
    return DocumentSection(
        section_id(document_id, number),
        document_id,
        number,
        text,
        start,
        start + len(text),
        tuple(redact(str(one)).text for one in list_in(written, "heading")),
        number_in(written, "page"),
    )


def _under_id(
    document: Document, sections: list[DocumentSection], document_id: str
) -> tuple[Document, list[DocumentSection]]:
    moved = [
        replace(one, id=section_id(document_id, one.number), document=document_id)
        for one in sections
    ]
    return replace(document, id=document_id), moved
