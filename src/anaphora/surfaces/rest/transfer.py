"""The routes of whole namespaces: what they hold, out as one file, and in from one."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, Annotated

from fastapi import Query, Request
from starlette.responses import Response, StreamingResponse

from anaphora.store.tokens import EVERYTHING
from anaphora.surfaces.rest.bodies import ImportQuery, NoQuery
from anaphora.surfaces.rest.calls import answer, caller_of, service_of
from anaphora.surfaces.rest.permissions import lane_router
from anaphora.values import ImportReport, Stats

__all__ = ["EXPORT_TYPE", "router"]

router = lane_router("care")
Nothing = Annotated[NoQuery, Query()]
EXPORT_TYPE = "application/x-ndjson"
_CHUNK = 1 << 18


@router.get("/namespaces", summary="Namespaces", responses={200: {"model": list[str]}})
async def namespaces(request: Request, _: Nothing) -> Response:
    """Those that hold or held anything; with a token, those of them that it opens."""
    token = caller_of(request).token
    if token is not None and EVERYTHING not in token.namespaces:
        return await answer(request, lambda _: token.namespaces)
    return await answer(request, lambda memory: memory.namespaces())


@router.get("/stats", summary="What there is", responses={200: {"model": Stats}})
async def stats(request: Request, _: Nothing) -> Response:
    """What this namespace holds, and its size on disk."""
    return await answer(request, lambda memory: memory.stats())


@router.post(
    "/import",
    summary="Import a file",
    responses={200: {"model": ImportReport}},
    openapi_extra={
        "requestBody": {
            "description": "An export of a chat program, or of another memory, as it is.",
            "required": True,
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
            },
        }
    },
)
async def import_file(request: Request, query: Annotated[ImportQuery, Query()]) -> Response:
    """What was imported before is known, and adds nothing. Vectors follow."""
    service = service_of(request)
    with tempfile.TemporaryDirectory(prefix="anaphora-import-") as folder:
        path = Path(folder) / "upload"
        with path.open("wb") as file:
            async for part in request.stream():
                await service.do(file.write, part)
        return await answer(
            request,
            lambda m: m.import_(path, format=query.format, again=query.again, embed=False),
        )


@router.get(
    "/export",
    summary="Export this namespace",
    responses={
        200: {
            "description": "JSON Lines: threads, notes, memories with their history.",
            "content": {EXPORT_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def export(request: Request, _: Nothing) -> Response:
    """One file, as of one moment. `POST /v1/import` takes it in again, here or elsewhere."""
    service, namespace = service_of(request), caller_of(request).namespace

    def written() -> IO[bytes]:
        with tempfile.TemporaryDirectory(prefix="anaphora-export-") as folder:
            path = Path(folder) / "export.jsonl"
            service.view(namespace).export(path)
            spool: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - the answer closes it
            with path.open("rb") as source:
                while data := source.read(_CHUNK):
                    spool.write(data)
            return spool

    file = await service.do(written)
    size = file.tell()
    file.seek(0)

    async def parts() -> AsyncIterator[bytes]:
        with file:
            while data := await service.do(file.read, _CHUNK):
                yield data

    headers = {
        "Content-Length": str(size),
        "Content-Disposition": 'attachment; filename="anaphora-export.jsonl"',
    }
    return StreamingResponse(parts(), media_type=EXPORT_TYPE, headers=headers)
