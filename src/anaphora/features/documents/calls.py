"""The facade of documents: files that are stored as searchable text."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Final

from anaphora.calls.caller import signed
from anaphora.calls.operation import AuditRule, Http, ids_of, operation
from anaphora.calls.parameters import name_parameter
from anaphora.calls.progress import Progress
from anaphora.calls.tracing import span
from anaphora.container.view import NamespaceView
from anaphora.features.documents.services import DocumentServices

if TYPE_CHECKING:
    from anaphora.features.documents.values import AddedDocument, Document, DocumentSection

_READ: Final = AuditRule("read", "document", ids_of)
_DOCUMENT: Final = name_parameter("The document.")


class DocumentCalls(NamespaceView):
    """Documents in one namespace of a home."""

    @property
    def _documents(self) -> DocumentServices:
        return self._services().feature(DocumentServices)

    @operation(
        "write",
        http=Http("POST /v1/documents", repeatable=True, long=True, renamed={"tags": "tag"}),
    )
    def add_document(
        self,
        source: str | os.PathLike[str] | bytes,
        *,
        name: str | None = None,
        title: str | None = None,
        date: datetime | None = None,
        origin: str | None = None,
        tags: Iterable[str] = (),
        keep_file: bool | None = None,
        embed: bool = True,
        progress: Progress | None = None,
    ) -> AddedDocument:
        """Keep the text of a PDF, DOCX, HTML, mail (.eml), Markdown or text file, in sections.

        `source` is its path, or its bytes with a `name`. The same bytes are kept once; other bytes
        under the same `name` (by default the whole path) are a new version, which takes the place
        of the one before in every answer. `title` and `date` (aware) take the place of what the
        file tells; `origin` says where it comes from. The file itself is kept beside its text,
        unless secrets were taken out of that (`keep_file` True: then, too, False: never).
        `embed=False` leaves the vectors to `ready()`; words are found before. `progress` is called
        with (label, done, total). Raises `UnreadableDocument` where it has no text to be had,
        `MissingExtra` for an encrypted PDF without the extra `encryption`, `InvalidInput`,
        `StoreError`.
        """
        from anaphora.features.documents.reading.writing import NewDocument, document_in

        with span("add_document"):
            content, document_name = document_in(source, name)
            new_document = NewDocument(
                content, document_name, title, date, signed(origin), tuple(tags), keep_file
            )
            return self._documents.writing.add(new_document, embed=embed, progress=progress)

    @operation("read", audit=_READ, http=Http("GET /v1/documents", "List documents"))
    def documents(self, *, limit: int = 50, history: bool = False) -> tuple[Document, ...]:
        """At most `limit` documents, the last added first; with `history` past versions too."""
        return self._documents.store.list(limit=limit, history=history)

    @operation(
        "read",
        audit=AuditRule("read", "document", lambda document: ids_of((document,))),
        http=Http("GET /v1/documents/{document_id}", "One document", renamed={"id": "document_id"}),
        parameters={"id": _DOCUMENT},
    )
    def document(self, id: str) -> Document:  # noqa: A002 - the field's own name
        """One document, by its id, that of a section of it, or its name. Raises `NotFound`."""
        from anaphora.features.documents.store import document_id_of

        documents = self._documents.store
        document_id = document_id_of(id)
        return documents.get(document_id if documents.versions.many([document_id]) else id)

    @operation(
        "read",
        http=Http(
            "GET /v1/documents/{document_id}/sections",
            "The text of a document",
            renamed={"id": "document_id"},
        ),
        parameters={"id": _DOCUMENT},
    )
    def document_sections(self, id: str) -> tuple[DocumentSection, ...]:  # noqa: A002
        """The sections of a document in order, which together are its text. Raises `NotFound`."""
        return self._documents.store.sections_of(self.document(id).id)

    @operation(
        "read", http=Http("GET /v1/documents/{document_id}/file", renamed={"id": "document_id"})
    )
    def document_file(self, id: str) -> bytes:  # noqa: A002 - the field's own name
        """The bytes of a document's file. Raises `NotFound`, also where they were not kept."""
        return self._documents.store.file_of(self.document(id).id)

    @operation(
        "read",
        audit=_READ,
        http=Http("GET /v1/documents/history", "The versions of a document"),
        parameters={
            "name": name_parameter("Its name; another file of this name is a new version.")
        },
    )
    def document_history(self, name: str) -> tuple[Document, ...]:
        """Every version that a name had, the oldest first; each has its text still."""
        return self._documents.store.history(name)
