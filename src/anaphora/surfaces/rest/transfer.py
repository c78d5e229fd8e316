"""The routes of whole namespaces: what they hold, out as one file, and in from one."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response, StreamingResponse

from anaphora.memory import Memory
from anaphora.store.tokens import EVERYTHING
from anaphora.surfaces.rest.bodies import ImportQuery, NoQuery
from anaphora.surfaces.rest.calls import answer, caller_of, service_of
from anaphora.surfaces.rest.permissions import lane_router
from anaphora.surfaces.rest.shapes import Session
from anaphora.values import ImportReport, Stats

__all__ = ["EXPORT_TYPE", "router"]

router = lane_router("care")
Nothing = Annotated[NoQuery, Query()]
EXPORT_TYPE = "application/x-ndjson"
_CHUNK = 1 << 18


@router.get("/session", summary="Who asks", responses={200: {"model": Session}})
async def session(request: Request, _: Nothing) -> Response:
    """What the caller may open: by a token its namespaces, else all that hold or held anything."""
    token, required = caller_of(request).token, service_of(request).options.require_token

    def told(memory: Memory) -> dict[str, Any]:
        names = token.namespaces if token is not None else (EVERYTHING,)
        return {
            "namespaces": memory.namespaces() if EVERYTHING in names else names,
            "read_only": token is not None and token.read_only,
            "token": None if token is None else token.name,
            "tokens": required,
        }

    return await answer(request, told)


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
