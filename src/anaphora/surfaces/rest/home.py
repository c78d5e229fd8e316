"""The routes of a whole home: session, access, statistics, health, export and import.

`/health` says whether this server can serve now: every part with its state, 200 when all are well
and 503 when one is not. `/health/live` says that its process answers.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from fastapi import Query, Request
from starlette.responses import Response, StreamingResponse

from anaphora.api.memory import Memory
from anaphora.calls.parameters import name_parameter
from anaphora.ops import Exported
from anaphora.ops.backup.staging import spooled
from anaphora.store.tokens import EVERYTHING
from anaphora.surfaces.rest.calls import (
    answer,
    caller_of,
    in_threads_of,
    opens_all,
    reads_verbatim,
    service_of,
)
from anaphora.surfaces.rest.derived import path_parameter
from anaphora.surfaces.rest.problems import Problem
from anaphora.surfaces.rest.routing import LaneRouter
from anaphora.surfaces.rest.schemas import ImportQuery, ReadyQuery
from anaphora.surfaces.rest.shapes import (
    AccessShape,
    HealthShape,
    Live,
    Ready,
    Session,
)
from anaphora.surfaces.wire import access_summary, dumps, plain
from anaphora.values.conversations import ImportProblem, ImportReport, Stats
from anaphora.values.namespaces import DeletedNamespace

router = LaneRouter("care")
root_router = LaneRouter("care", "", closed=False)
NamespaceName = Annotated[str, path_parameter(name_parameter("The namespace."))]
EXPORT_TYPE = "application/x-ndjson"
_CHUNK = 1 << 18
_SENT = "upload"
_TOLD = 10
EXPORTED_HEADER = "Anaphora-Exported"
"""What an export contains, as JSON, in a header of the export itself."""


@router.answers("GET /session", "The caller", Session)
def session(memory: Memory, request: Request) -> Any:
    """What the caller has access to: the namespaces of its token, else all."""
    token = caller_of(request).token
    names = token.namespaces if token is not None else (EVERYTHING,)
    return {
        "namespaces": memory.namespaces() if EVERYTHING in names else names,
        "read_only": token is not None and token.read_only,
        "token": None if token is None else token.name,
        "person": "" if token is None else token.person,
        "tokens": service_of(request).options.require_token,
    }


@router.answers("GET /access", "Who can read this namespace", AccessShape)
def access(memory: Memory, request: Request) -> Any:
    """Each person or program with a token for it, and whether it may write."""
    readers = service_of(request).tokens.readers_of(memory.namespace)
    return {
        "namespace": memory.namespace,
        "readers": readers,
        "summary": access_summary(memory.namespace, readers),
    }


@router.answers("DELETE /namespaces/{name}", "Delete a namespace", DeletedNamespace)
def delete_namespace(memory: Memory, request: Request, name: NamespaceName) -> Any:
    """Deletes everything in it. Requires a token for all namespaces."""
    if not opens_all(request):
        reason = "namespaces are deleted by tokens that open all of them"
        raise Problem(403, "namespace", reason)
    return memory.delete_namespace(name)


@router.answers("GET /stats", "Statistics", Stats)
def stats(memory: Memory, request: Request) -> Any:
    """What this namespace contains, and its size on disk.

    Without a token for all namespaces, the path and the size of the home are left out.
    """
    figures = memory.stats()
    visible = {part: size for part, size in figures.bytes.items() if part != "truth"}
    return figures if opens_all(request) else replace(figures, home="", bytes=visible)


@router.answers("GET /ready", "Wait until all is indexed", Ready, kind="long")
def ready(memory: Memory, query: ReadyQuery) -> Any:
    """Whether the model is loaded and everything known is indexed, after at most `timeout`."""
    return {"ready": memory.ready(query.timeout)}


@router.post(
    "/import",
    summary="Import a file",
    responses={200: {"model": ImportReport}},
    openapi_extra={
        "requestBody": {
            "description": "A file of any kind, as it is.",
            "required": True,
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
            },
        }
    },
)
@in_threads_of("import")
async def import_file(request: Request, query: Annotated[ImportQuery, Query()]) -> Response:
    """What was imported before is known, and adds nothing. Vectors follow."""
    service = service_of(request)
    # The path below what was chosen: never one from the root or upwards.
    names = query.name.replace("\\", "/").split("/")
    parts = [name for name in names if name not in {"", ".", ".."} and ":" not in name]
    with spooled(service.memory.home) as spool:
        async for part in request.stream():
            await service.run("change", partial(spool.file.write, part))
        await service.run("change", spool.file.flush)

        def taken(memory: Memory) -> ImportReport:
            report = memory.import_(
                spool.path,
                format=query.format,
                again=query.again,
                embed=False,
                name="/".join(parts),
            )
            # The report names the upload instead of its temporary path.
            problems = (
                replace(problem, path=problem.path.replace(str(spool.path), _SENT))
                for problem in report.problems
            )
            return replace(report, problems=tuple(problems))

        return await answer(request, taken)


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
@in_threads_of("long")
async def export(request: Request) -> Response:
    """One file, as of one moment. `POST /v1/import` takes it in again, here or elsewhere."""
    service, namespace = service_of(request), caller_of(request).namespace
    is_masked = not reads_verbatim(request)

    # Closed at the end of the response.
    exit_stack = ExitStack()

    def written() -> tuple[BinaryIO, Exported]:
        file = exit_stack.enter_context(spooled(service.memory.home)).file
        return file, service.view(namespace).export(file, masked=is_masked)

    try:
        file, export_report = await service.run("long", written)
    except BaseException:
        exit_stack.close()
        raise
    size = file.tell()
    file.seek(0)
    # As many problems as fit into a header, and only the names of files: where the server stores
    # them is internal.
    problems = [
        replace(problem, path=Path(problem.path).name) for problem in export_report.problems[:_TOLD]
    ]
    if len(export_report.problems) > _TOLD:
        hidden_note = f"{len(export_report.problems) - _TOLD} more could not be read"
        problems.append(ImportProblem("", "", hidden_note))
    summary = replace(export_report, problems=tuple(problems))

    async def parts() -> AsyncIterator[bytes]:
        with exit_stack:
            while chunk := await service.run("change", partial(file.read, _CHUNK)):
                yield chunk

    headers = {
        "Content-Length": str(size),
        "Content-Disposition": 'attachment; filename="anaphora-export.jsonl"',
        # Headers are limited to ASCII.
        EXPORTED_HEADER: json.dumps(plain(summary), ensure_ascii=True),
    }
    return StreamingResponse(parts(), media_type=EXPORT_TYPE, headers=headers)


@root_router.answers(
    "GET /health",
    "Whether all can be served",
    HealthShape,
    or_else=(503, lambda health: not health.ok),
)
def health(memory: Memory, request: Request) -> Any:
    """The write path, the index, the embedder and the disk, looked at now.

    Jobs are those of all namespaces; who does not open them all is told of the asked one's.
    """
    report = memory.health()
    if opens_all(request):
        return report
    # What fails is in the report; counting must not fail in its place.
    return replace(report, jobs=memory.stats().jobs if report.ok else 0)


@root_router.get(
    "/health/live", summary="Whether the process answers", responses={200: {"model": Live}}
)
async def live(request: Request) -> Response:
    """Nothing is checked: any answer means that the process is alive."""
    return Response('{"ok":true}', media_type="application/json")


@root_router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """The OpenAPI document."""
    return Response(dumps(request.app.openapi(), indent=None), media_type="application/json")
