"""The routes of documents: files stored as text."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from anaphora.api.memory import Memory
from anaphora.calls.operation import operation_of
from anaphora.features.documents.calls import DocumentCalls
from anaphora.features.documents.schemas import (
    NewDocumentQuery,
)
from anaphora.features.documents.values import AddedDocument
from anaphora.surfaces.rest.calls import answer, caller_of, in_threads_of, service_of
from anaphora.surfaces.rest.derived import path_parameter
from anaphora.surfaces.rest.routing import LaneRouter
from anaphora.surfaces.rest.schemas import DeleteQuery
from anaphora.values.memories import Forgotten

router = LaneRouter("documents")
router.offer(DocumentCalls)
DocumentId = Annotated[str, path_parameter(operation_of(DocumentCalls.document).describe("id"))]
_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


@router.post(
    "/documents",
    summary="Add a document",
    status_code=201,
    responses={201: {"model": AddedDocument}, 200: {"model": AddedDocument}},
    openapi_extra={
        "requestBody": {
            "description": "A PDF, DOCX, HTML, mail, Markdown or text file, as it is.",
            "required": True,
            "content": _BYTES,
        }
    },
)
@in_threads_of("document")
async def add_document(request: Request, query: Annotated[NewDocumentQuery, Query()]) -> Response:
    """201 when it is new, or a new version of its name; 200 when these bytes are stored already."""
    content = await request.body()

    def taken(memory: Memory) -> AddedDocument:
        return memory.add_document(
            content,
            name=query.name,
            title=query.title,
            date=query.date,
            origin=query.origin,
            tags=query.tag,
            keep_file=query.keep_file,
            embed=False,
        )

    return await answer(request, taken, lambda done: 200 if done.action == "known" else 201)


@router.get(
    "/documents/{document_id}/file",
    summary="The file of a document",
    responses={200: {"description": "Its bytes, as they were added.", "content": _BYTES}},
)
async def document_file(request: Request, document_id: DocumentId) -> Response:
    """404 also if only its text was stored."""
    service, namespace = service_of(request), caller_of(request).namespace
    content = await service.run(
        "question", partial(service.view(namespace).document_file, document_id)
    )
    # Never rendered as a page of this server: it may contain scripts.
    headers = {"Content-Disposition": "attachment"}
    return Response(content, media_type="application/octet-stream", headers=headers)


@router.answers("DELETE /documents/{document_id}", "Forget a document", Forgotten, kind="document")
def forget_document(memory: Memory, document_id: DocumentId, query: DeleteQuery) -> Any:
    """With all its versions. `undoable`: after a day; `soft`: only out of recall."""
    document = memory.document(document_id)
    return memory.forget(document.id, soft=query.soft, undoable=query.undoable)
