"""Documents over a server."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from io import BytesIO
from typing import TYPE_CHECKING

from anaphora.calls.arguments import checked
from anaphora.calls.progress import Progress
from anaphora.container.view import ServerView

if TYPE_CHECKING:
    from anaphora.features.documents.values import AddedDocument


class RemoteDocumentCalls(ServerView):
    """Those calls of documents that are more than a request."""

    @checked
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
        """As `Memory.add_document`, of a file on this machine, which is sent whole.

        A server makes vectors when they are needed, whatever `embed` says.
        """
        from anaphora.features.documents.reading.writing import document_in

        content, document_name = document_in(source, name)
        arguments = {
            "name": document_name,
            "title": title,
            "date": date,
            "origin": origin,
            "tags": tags,
            "keep_file": keep_file,
        }
        added_document = self._ask("add_document", arguments, file=BytesIO(content))
        if progress is not None:
            progress("adding", 1, 1)
        return added_document  # type: ignore[no-any-return]

    @checked
    def document_file(self, id: str) -> bytes:  # noqa: A002 - the field's own name
        """As `Memory.document_file`."""
        file = BytesIO()
        self._download("document_file", {"id": id}, file)
        return file.getvalue()

    def _path_id(self, name: str, argument: str) -> str:
        """The id also of a document that is named by a path, which a path cannot hold."""
        if name != "document_id" or "/" not in argument:
            return super()._path_id(name, argument)
        versions = self._ask("document_history", {"name": argument})
        return versions[-1].id if versions else argument
