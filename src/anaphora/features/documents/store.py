"""Documents: versions of files and their sections, as records of kinds of their own.

A document is a record whose text is its title and whose path is its name; its sections name it as
their parent, and stand or are past as it does. So they share tables, versions, forgetting, vectors
and indexes with memories and notes, and no reader of those ever sees them. The bytes of its file
lie in pieces beside it, in the same database: they are sealed, backed up and erased with it. It
never reads a clock, and it never embeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, cast

from anaphora.errors import NotFound, Unreadable
from anaphora.features.documents.tables import DOCUMENT_FILE
from anaphora.features.documents.values import FORMATS, Document, DocumentSection
from anaphora.store.codecs import readable
from anaphora.store.crypto.columns import CLEAR, Sealer
from anaphora.store.hashing import digest
from anaphora.store.namespace import NamespaceReader, NamespaceTransaction
from anaphora.store.records.rows import DOCUMENT, DOCUMENT_SECTION
from anaphora.store.records.store import Records
from anaphora.store.records.titles import part_heading
from anaphora.store.records.vectors import RecordVectors
from anaphora.values.memories import MemoryRecord

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database, Write
    from anaphora.store.records.transaction import RecordTransaction

PIECE: Final = 1 << 20
"""Bytes of a file in one row."""

_FILE = DOCUMENT_FILE.select() + "AND record_id = :id ORDER BY position"
_PIECES = (
    "SELECT DISTINCT record_id FROM document_file WHERE namespace = :namespace AND position = 0"
)
_COUNT = (
    "SELECT COUNT(*) FROM record WHERE namespace = :namespace AND kind = 'document' "
    "AND valid_until IS NULL AND forgotten_at IS NULL"
)


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """A document as it is written: its record, those of its sections, and the bytes of its file."""

    document: MemoryRecord
    sections: Sequence[MemoryRecord]
    data: bytes | None


class Documents(NamespaceReader):
    """The documents of one namespace. Every read sees every write acknowledged by any process."""

    def __init__(self, truth: Database, namespace: str, sealer: Sealer = CLEAR) -> None:
        super().__init__(truth, namespace, sealer)
        self.versions = Records(truth, namespace, sealer, kinds=(DOCUMENT,))
        self.sections = Records(truth, namespace, sealer, kinds=(DOCUMENT_SECTION,))
        self.vectors = RecordVectors(truth, namespace, sealer, kinds=(DOCUMENT_SECTION,))

    @contextmanager
    def change(self, *, scrub: bool = False) -> Iterator[DocumentTransaction]:
        """One write transaction: what was done in it is kept whole or not.

        `ReadOnly`, `DiskFull` or `StoreError` when the database refuses; `SealChanged` where the
        home was sealed or opened up meanwhile. With `scrub` nothing of what was deleted is left in
        the database's files then.
        """
        with self._writing(scrub=scrub) as write:
            work = DocumentTransaction(write, self.sealer)
            yield work
            work.finish()

    def count(self) -> int:
        """How many there are, past versions not among them."""
        return sum(int(row[0]) for row in self._rows(_COUNT))

    def get(self, document: str) -> Document:
        """The document of this id, or what has this name now. `NotFound`."""
        record = self.versions.many([document]).get(document) or self.versions.current(document)
        if record is None:
            raise NotFound("document", document)
        return self._documents([record])[0]

    def list(self, *, limit: int, history: bool = False) -> tuple[Document, ...]:
        """At most `limit` documents, the last added first; with `history` past versions too."""
        return self._documents(self.versions.list(limit=limit, history=history))

    def history(self, name: str) -> tuple[Document, ...]:
        """Every version that had this name, the oldest first."""
        return self._documents(self.versions.history(name))

    def sections_of(self, document_id: str) -> tuple[DocumentSection, ...]:
        """The sections of a document in order. `NotFound`."""
        document = self.versions.get(document_id)
        count = _number((document.payload or {}).get("sections"))
        ids = [section_id(document_id, number) for number in range(1, count + 1)]
        rows = self.sections.many(ids)
        return tuple(section_of(rows[section]) for section in ids if section in rows)

    def file_of(self, document_id: str) -> bytes:
        """The bytes of its file. `NotFound`, also where they were not kept."""
        document = self.versions.get(document_id)
        rows = self._found(DOCUMENT_FILE, _FILE, id=document_id)
        column = DOCUMENT_FILE.names.index("data")
        content = b"".join(bytes(row[column]) for row in rows)
        # One that an import has not brought whole yet is none.
        if not rows or len(content) != _number((document.payload or {}).get("size")):
            raise NotFound("file of the document", document_id)
        return content

    def _documents(self, records: Iterable[MemoryRecord]) -> tuple[Document, ...]:
        with_file = {row[0] for row in self._rows(_PIECES)}
        return tuple(readable(list(records), lambda record: document_of(record, with_file)))


class DocumentTransaction(NamespaceTransaction):
    """What one write transaction does to documents. `flush` writes what was put.

    `versions` and `sections` are the same transaction on the records of each kind.
    """

    def __init__(self, write: Write, sealer: Sealer = CLEAR) -> None:
        from anaphora.store.records.transaction import RecordTransaction

        super().__init__(write, sealer)
        self.versions: RecordTransaction = RecordTransaction(write, sealer, DOCUMENT)
        self.sections: RecordTransaction = RecordTransaction(write, sealer, DOCUMENT_SECTION)

    def put(self, rows: DocumentRows, same_key: str) -> None:
        """Take in a document that is not there."""
        self.versions.add(rows.document, same_key)
        for section in rows.sections:
            self.sections.add(section, "")
        self.flush()
        if rows.data is not None:
            self.put_file(rows.document.id, rows.data)

    def put_file(self, document_id: str, data: bytes) -> None:
        """Keep the bytes of a document's file."""
        for position, start in enumerate(range(0, len(data), PIECE)):
            self.put_piece(document_id, position, data[start : start + PIECE])

    def put_piece(self, document_id: str, position: int, data: bytes) -> None:
        """Keep a piece of a document's file; one that is there stays."""
        row = {"record_id": document_id, "position": position, "data": data}
        self._insert(DOCUMENT_FILE, [row], once=True)

    def end(self, document_id: str, by: str, at: datetime) -> None:
        """Let a document be past from `at` on, as another version took its place."""
        old_version = self.versions.find(document_id)
        assert old_version is not None
        until = max(at, old_version.valid_from)
        self.versions.change(document_id, valid_to=until, superseded_by=by)
        for section in self.sections_of([document_id]):
            self.sections.change(section, valid_to=until)

    def sections_of(self, document_ids: Iterable[str]) -> list[str]:
        """The ids of the sections of these documents, held from now on."""
        section_ids = sorted(self.sections.children(document_ids))
        self.sections.load(ids=section_ids)
        return section_ids

    def flush(self) -> None:
        """Write what was put."""
        self.versions.flush()
        self.sections.flush()

    def finish(self) -> None:
        """Write what is left; an audit trail is told of documents, not of each section."""
        self.flush()
        self.versions.finish()


def rows_of(
    document: Document, sections: Sequence[DocumentSection], data: bytes | None = None
) -> DocumentRows:
    """What is written of a document: the inverse of `document_of` and `section_of`."""
    payload = {
        "format": document.format,
        "size": document.size,
        "content_hash": document.content_hash,
        "sections": document.sections,
        "characters": document.characters,
        "pages": document.pages,
        "author": document.author,
        "date": document.date.isoformat() if document.date is not None else None,
    }
    record = MemoryRecord(
        id=document.id,
        text=document.title,
        # Where memories have a type, documents and their sections have their kind.
        type=cast("Any", DOCUMENT),
        created_at=document.added_at,
        last_reinforced=document.added_at,
        valid_from=document.added_at,
        seq=0,
        path=document.name,
        payload={name: cell for name, cell in payload.items() if cell is not None},
        tags=document.tags,
        sources=() if document.source is None else (document.source,),
        supersedes=document.supersedes,
        superseded_by=document.superseded_by,
        valid_to=document.replaced_at,
    )
    shared_cells = {"title": document.title, "name": PurePosixPath(document.name).name}
    parts = [
        replace(
            record,
            id=section.id,
            text=section.text,
            path=None,
            payload={"number": section.number, "start": section.start}
            | ({} if section.page is None else {"page": section.page})
            | ({"heading": list(section.heading)} if section.heading else {})
            | shared_cells,
            sources=(),
            parent=document.id,
            supersedes=None,
            superseded_by=None,
            created_at=document.date or document.added_at,
        )
        for section in sections
    ]
    return DocumentRows(record, parts, data)


def same_document(content_hash: str) -> str:
    """The identity of documents with the same bytes."""
    return digest("document", content_hash)


def section_id(document_id: str, number: int) -> str:
    """The id of a section, by which it is cited."""
    return f"{document_id}#{number}"


def document_id_of(any_id: str) -> str:
    """The id of the document that an id, perhaps of a section, is about."""
    return any_id.partition("#")[0]


def document_of(record: MemoryRecord, with_file: Iterable[str]) -> Document:
    """The document that a record stands for; `with_file` has the ids of documents with a file.

    `Unreadable` for one that makes no sense.
    """
    payload = record.payload or {}
    form, author, date = payload.get("format"), payload.get("author"), None
    if isinstance(payload.get("date"), str):
        with suppress(ValueError):
            date = datetime.fromisoformat(payload["date"])
    if form not in FORMATS:
        raise Unreadable("record", record.id, f"its format is {form!r}")
    return Document(
        id=record.id,
        name=record.path or "",
        title=record.text,
        format=form,
        size=_number(payload.get("size")),
        content_hash=str(payload.get("content_hash", "")),
        added_at=record.created_at,
        sections=_number(payload.get("sections")),
        characters=_number(payload.get("characters")),
        pages=payload.get("pages") if isinstance(payload.get("pages"), int) else None,
        author=author if isinstance(author, str) and author else None,
        date=date,
        source=record.sources[0] if record.sources else None,
        tags=record.tags,
        file_kept=record.id in with_file,
        supersedes=record.supersedes,
        superseded_by=record.superseded_by,
        replaced_at=record.valid_to,
        forgotten=record.forgotten,
    )


def section_of(record: MemoryRecord) -> DocumentSection:
    """The section that a record stands for."""
    payload = record.payload or {}
    start = _number(payload.get("start"))
    return DocumentSection(
        id=record.id,
        document=record.parent or document_id_of(record.id),
        number=_number(payload.get("number")),
        text=record.text,
        start=start,
        end=start + len(record.text),
        heading=part_heading(payload),
        page=payload.get("page") if isinstance(payload.get("page"), int) else None,
    )


def section_names(record: MemoryRecord) -> str:
    """What a section is found by beside its words: what it stands under, how the document is
    called, its tags."""
    payload = record.payload or {}
    name = PurePosixPath(str(payload.get("name") or ""))
    names = (str(payload.get("title") or ""), *part_heading(payload)[:-1], name.stem, *record.tags)
    return "\n".join(dict.fromkeys(name_part for name_part in names if name_part))


def _number(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
