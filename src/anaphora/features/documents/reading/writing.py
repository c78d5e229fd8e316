"""Documents are read, cut, stored in one transaction, then embedded; and forgotten.

The same bytes are kept once, whatever they are called. Other bytes under a name are its next
version: the one before leaves recall and stays in history. Secrets are taken out of the text, as
out of notes; where there were any, the file itself is kept only if that is asked for, as it still
has them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, cast

from anaphora.calls.moments import checked_moment
from anaphora.calls.progress import Progress
from anaphora.errors import EmbeddingError, InvalidInput, UnreadableDocument
from anaphora.features.documents.reading.base import DocumentLimits, ExtractedDocument, one_line
from anaphora.features.documents.reading.cutting import CutDocument
from anaphora.features.documents.reading.working import read_in_worker
from anaphora.features.documents.store import (
    DocumentRows,
    Documents,
    rows_of,
    same_document,
    section_id,
)
from anaphora.features.documents.values import AddedDocument, Document, DocumentSection
from anaphora.index.backlog import IN_CALL, Backlog, fill_records
from anaphora.ingest.secrets.redacting import redact, redact_path
from anaphora.store.disk import open_regular
from anaphora.store.records.rows import RecordEvent
from anaphora.values.memories import MemoryRecord

if TYPE_CHECKING:
    from anaphora.embed.base import Vectors
    from anaphora.embed.service import EmbedderService
    from anaphora.store.records.forgetting import ForgottenRecords
    from anaphora.store.records.transaction import RecordTransaction
    from anaphora.store.records.vectors import TextToEmbed

OnGone = Callable[["RecordTransaction", "ForgottenRecords", bool], None]
"""Called when documents are forgotten, in the same transaction, to remove answers made from them.
The last argument says that the documents may come back."""

_LONGEST_NAME: Final = 1_024


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A new document: its bytes and name; its metadata may supply the rest."""

    data: bytes
    name: str
    title: str | None = None
    date: datetime | None = None
    source: str | None = None
    tags: tuple[str, ...] = ()
    keep_file: bool | None = None

    @property
    def content_hash(self) -> str:
        """The SHA-256 of its bytes, in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()


def document_in(source: str | os.PathLike[str] | bytes, name: str | None) -> tuple[bytes, str]:
    """The bytes of a document and its name: that of a file is its whole path.

    `UnreadableDocument` for a file that cannot be read or is too large, `InvalidInput` for bytes
    without a name.
    """
    if isinstance(source, bytes):
        if name is None:
            raise InvalidInput("name", None, "is required where bytes are given")
        return source, name
    path = Path(source).expanduser()
    max_size = DocumentLimits().size
    try:
        # An upload lies at a path that leads nowhere any more but to the open file.
        path = path if name else path.resolve(strict=True)
        size = path.stat().st_size
        with open_regular(path) as file:
            # Of one that is too large, nothing.
            content = file.read(max_size + 1 if size <= max_size else 0)
    except (OSError, RuntimeError, ValueError) as error:
        reason = f"it cannot be read: {getattr(error, 'strerror', None) or error}"
        raise UnreadableDocument("document", str(source), reason) from error
    if size > max_size:
        reason = f"it has {size:,} bytes; at most {max_size:,} are read"
        raise UnreadableDocument("document", str(source), reason)
    return content, name or path.as_posix()


class DocumentWriter:
    """Takes documents into one namespace. Safe to share between threads.

    `clock` gives the present, aware; `ids` new record ids that rise; `later` is called where
    vectors are left to `fill_vectors`.
    """

    def __init__(
        self,
        documents: Documents,
        embedder: EmbedderService,
        *,
        clock: Callable[[], datetime],
        ids: Callable[[], str],
        on_gone: OnGone,
        limits: DocumentLimits | None = None,
        later: Callable[[], object] = lambda: None,
    ) -> None:
        self._documents = documents
        self._embedder = embedder
        self._clock, self._ids, self._on_gone = clock, ids, on_gone
        self._limits = limits or DocumentLimits()
        self._later = later
        self._backlog: Backlog[TextToEmbed] = Backlog(
            embedder, lambda text: text.record_id, lambda text: text.text, self._put_vectors
        )

    def add(
        self, new: NewDocument, *, embed: bool = True, progress: Progress | None = None
    ) -> AddedDocument:
        """Keep a document; when this returns it is on the disk.

        `embed` False leaves its vectors to later. Raises `UnreadableDocument`, `MissingExtra`,
        `InvalidInput` naming the field, `StoreError`.
        """
        name = new.name.strip()
        if not name:
            raise InvalidInput("name", new.name, "must not be blank")
        if len(name) > _LONGEST_NAME:
            raise InvalidInput("name", name, f"expected at most {_LONGEST_NAME:,} characters")
        if new.date is not None:
            checked_moment("date", new.date)
        for tag in new.tags:
            if not tag.strip():
                raise InvalidInput("tags", tag, "expected non-empty strings")
        title = one_line(new.title)
        if new.title is not None and title is None:
            raise InvalidInput("title", new.title, "must not be blank")
        tags = tuple(dict.fromkeys(redact(tag).text for tag in new.tags))
        new = replace(new, name=name, title=title, tags=tags)
        content = new.content_hash
        existing = next((record for record in self._find_same(new) if not record.forgotten), None)
        if existing is not None:
            return self._answer(existing, "known", embed, progress)
        document = read_in_worker(new.name, new.data, self._limits)
        document_text, cut_text = document.told, document.cut
        keep = not cut_text.redacted if new.keep_file is None else new.keep_file
        rows = self._make_rows(new, content, document_text, cut_text)
        rows = rows if keep else replace(rows, data=None)
        written_document, is_replaced = self._write(rows, same_document(content))
        if written_document is not rows.document:
            # Another process has kept the same bytes meanwhile.
            return self._answer(written_document, "known", embed, progress)
        answer = self._answer(
            written_document, "replaced" if is_replaced else "added", embed, progress
        )
        return replace(answer, problems=document_text.problems, redacted=cut_text.redacted)

    def has_forgotten(self, new: NewDocument) -> bool:
        """Whether a document of these bytes is softly forgotten, and there is no other one."""
        forgotten_flags = [record.forgotten for record in self._find_same(new)]
        return bool(forgotten_flags) and all(forgotten_flags)

    def _find_same(self, new: NewDocument) -> list[MemoryRecord]:
        records = self._documents.versions.with_same_key(same_document(new.content_hash))
        return [record for record in records if record.valid_to is None]

    def _make_rows(
        self, new: NewDocument, content: str, extracted: ExtractedDocument, cut: CutDocument
    ) -> DocumentRows:
        now, document_id = self._clock(), self._ids()
        title = redact(
            new.title or extracted.title or PurePosixPath(new.name).name or new.name
        ).text
        document = Document(
            id=document_id,
            name=redact_path(new.name).text,
            title=title,
            format=extracted.format,
            size=len(new.data),
            content_hash=content,
            added_at=now,
            sections=len(cut.sections),
            characters=cut.characters,
            pages=extracted.pages,
            author=redact(extracted.author).text if extracted.author else None,
            date=new.date or extracted.date,
            source=None if new.source is None else redact(new.source).text,
            tags=new.tags,
        )
        sections = [
            DocumentSection(
                section_id(document_id, number),
                document_id,
                number,
                section.text,
                section.start,
                section.end,
                section.heading,
                section.page,
            )
            for number, section in enumerate(cut.sections, start=1)
        ]
        return rows_of(document, sections, new.data)

    def _write(self, rows: DocumentRows, same_key: str) -> tuple[MemoryRecord, bool]:
        """The record of these bytes, and whether it replaced an older version."""
        new_document = rows.document
        with self._documents.change() as work:
            same_documents = [
                record for record in work.versions.having(same_key) if record.valid_to is None
            ]
            if same_documents:
                return same_documents[0], False
            earlier_versions = [
                record
                for record in work.versions.versions(new_document.path or "")
                if not record.valid_to
            ]
            if earlier_versions:
                document = replace(new_document, supersedes=earlier_versions[-1].id)
                rows = replace(rows, document=document)
            work.put(rows, same_key)
            work.versions.tell(
                RecordEvent(
                    new_document.id, "added", new_document.created_at, tags=new_document.tags
                )
            )
            for old_version in earlier_versions:
                work.end(old_version.id, new_document.id, new_document.valid_from)
        return new_document, bool(earlier_versions)

    def _answer(
        self, record: MemoryRecord, action: Any, embed: bool, progress: Progress | None
    ) -> AddedDocument:
        if embed:
            self.fill_vectors(progress=progress, room=IN_CALL)
        pending = self._documents.vectors.lacking(self._embedder.name)
        if embed and pending and self._embedder.failure is None:
            self._later()
        return AddedDocument(self._documents.get(record.id), action, pending=pending)

    def fill_vectors(
        self,
        limit: int | None = None,
        progress: Progress | None = None,
        *,
        room: int | None = None,
        stopping: Callable[[], bool] | None = None,
    ) -> int:
        """Embed sections that have no vector yet, at most `limit`; how many got theirs.

        With `room` no more than so many characters; it ends when `stopping` becomes true.
        Waits for the model; if it is not available, the sections are found by keywords alone.
        """
        name, vectors = self._embedder.name, self._documents.vectors

        def tell(done: int, total: int) -> None:
            if progress is not None:
                progress("sections", done, total)

        with suppress(EmbeddingError):
            return fill_records(
                self._backlog, vectors, name, limit, tell, room=room, stopping=stopping
            )[0]
        return 0

    def _put_vectors(self, embedded: Sequence[tuple[TextToEmbed, Vectors]]) -> int:
        from anaphora.store.records.vectors import vector_rows

        rows = vector_rows((text.record_id, text.text, vectors) for text, vectors in embedded)
        return self._documents.vectors.put(self._embedder.name, rows)

    def forget(self, document_id: str, *, soft: bool = False) -> ForgottenRecords:
        """Forget a document: one that stands with all versions before it, a past one alone.

        `ids` are those of documents, `texts` those of their sections. An id of no document forgets
        nothing.
        """
        from anaphora.store.records.forgetting import (
            describe_forgotten,
            forget_for_good,
            forget_softly,
        )

        with self._documents.change(scrub=not soft) as work:
            if soft:
                forgotten_documents = forget_softly(work.versions, [document_id], self._clock())
            else:
                forgotten_documents = forget_for_good(work.versions, [document_id])
            sections = work.sections_of(forgotten_documents.ids)
            records = {
                section: cast(MemoryRecord, work.sections.find(section)) for section in sections
            }
            forgotten_texts = forgotten_documents.and_more(
                describe_forgotten(work.sections, records)
            )
            if soft:
                for section in sections:
                    work.sections.hide(section, self._clock())
            else:
                work.sections.erase(sections)
            self._on_gone(work.versions, forgotten_texts, soft)
        return replace(forgotten_texts, ids=forgotten_documents.ids)

    def would_forget(self, document_id: str) -> ForgottenRecords:
        """What `forget` would take, without doing it."""
        from anaphora.store.records.forgetting import describe_forgotten, would_forget

        with self._documents.change() as work:
            forgotten_documents = would_forget(work.versions, [document_id])
            records = {
                section: cast(MemoryRecord, work.sections.find(section))
                for section in work.sections_of(forgotten_documents.ids)
            }
            return replace(
                forgotten_documents.and_more(describe_forgotten(work.sections, records)),
                ids=forgotten_documents.ids,
            )

    def bring_back(self, document_id: str) -> tuple[str, ...]:
        """Undo a soft forgetting; the ids of the documents that are back."""
        from anaphora.store.records.forgetting import bring_back, would_forget

        with self._documents.change() as work:
            ids = would_forget(work.versions, [document_id]).ids
            restored_ids = bring_back(work.versions, ids, self._clock())
            for section in work.sections_of(restored_ids):
                work.sections.reveal(section)
        return restored_ids
