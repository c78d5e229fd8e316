"""The routes of conversations, and those of the seed: `/conversations`, `/conversations/{id}`."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import datetime
from typing import Annotated, Any

from fastapi import Path, Query, Request
from starlette.responses import Response

from anaphora.api.memory import Memory
from anaphora.errors import InvalidInput, NotFound
from anaphora.surfaces.rest.auth import lane_router, reads_only
from anaphora.surfaces.rest.calls import answer, caller_of, service_of
from anaphora.surfaces.rest.schemas import (
    Appended,
    AppendTurns,
    ConversationPage,
    Deleted,
    Name,
    PageQuery,
    Redacted,
    SeedItems,
    SeedRecord,
    SeedTitle,
    ThreadShape,
    Titled,
    TurnHits,
    TurnQuestion,
)
from anaphora.surfaces.wire import recalled_turns
from anaphora.values.conversations import NewTurn, ThreadSummary
from anaphora.values.memories import Page

router = lane_router("conversation")
seed_router = lane_router("seed", "")
Index = Annotated[int, Path(ge=0, le=2**31 - 1)]


@router.post("/conversations/recall", summary="Recall turns", responses={200: {"model": TurnHits}})
@reads_only
async def recall(request: Request, body: TurnQuestion) -> Response:
    """The turns of one conversation, or of all, that matter for the query."""
    return await answer(
        request,
        lambda memory: recalled_turns(
            memory,
            body.conversation_id,
            body.query,
            top_k=body.top_k,
            budget=body.budget,
            exclude=body.exclude,
            mode=body.mode,
        ),
    )


@router.get(
    "/conversations", summary="List conversations", responses={200: {"model": ConversationPage}}
)
async def list_conversations(request: Request, query: Annotated[PageQuery, Query()]) -> Response:
    """The newest first. `cursor` of a page gets the next one, whatever was written meanwhile."""
    after = _read_cursor(query.cursor)
    return await answer(request, lambda memory: _page(memory, query.limit, after))


@router.get(
    "/conversations/{conversation_id}",
    summary="One conversation",
    responses={200: {"model": ThreadShape}},
)
async def get(request: Request, conversation_id: Name) -> Response:
    """Every word of it."""
    return await answer(request, lambda memory: _thread(memory, conversation_id))


@router.post(
    "/conversations/{conversation_id}/turns",
    status_code=201,
    summary="Keep turns",
    responses={201: {"model": Appended}},
)
async def append(request: Request, conversation_id: Name, body: AppendTurns) -> Response:
    """All or none of them. When this returns, they are on the disk."""
    turns = [
        NewTurn(t.role, t.text, intent_id=t.intent_id, ts=t.ts, speaker=t.speaker)
        for t in body.turns
    ]

    def kept(memory: Memory) -> dict[str, Any]:
        places = memory.conversations.extend(conversation_id, turns)
        return {"conversation_id": conversation_id, "indexes": list(places)}

    return await answer(request, kept, 201)


@router.patch(
    "/conversations/{conversation_id}",
    summary="Give a conversation a title",
    responses={200: {"model": Titled}},
)
async def set_title(request: Request, conversation_id: Name, body: SeedTitle) -> Response:
    """An empty title lets the first question stand for it again."""

    def titled(memory: Memory) -> dict[str, Any]:
        if not memory.conversations.set_title(conversation_id, body.title):
            raise NotFound("conversation", conversation_id)
        return {"conversation_id": conversation_id, "title": body.title}

    return await answer(request, titled)


@router.delete(
    "/conversations/{conversation_id}",
    summary="Delete a conversation",
    responses={200: {"model": Deleted}},
)
async def delete(request: Request, conversation_id: Name) -> Response:
    """Gone for real: file, index and side notes."""

    def gone(memory: Memory) -> dict[str, Any]:
        if not memory.conversations.delete(conversation_id):
            raise NotFound("conversation", conversation_id)
        return {"deleted": conversation_id}

    return await answer(request, gone)


@router.post(
    "/conversations/{conversation_id}/turns/{index}/redact",
    summary="Take the words of a turn out",
    responses={200: {"model": Redacted}},
)
async def redact(request: Request, conversation_id: Name, index: Index) -> Response:
    """The turn stays, its words are "[redacted]", in the file and in the index."""

    def redacted(memory: Memory) -> dict[str, Any]:
        if not memory.conversations.redact(conversation_id, index):
            raise NotFound("turn", f"{conversation_id} #{index}")
        return {"redacted": {"conversation_id": conversation_id, "index": index}}

    return await answer(request, redacted)


@seed_router.get(
    "/conversations", summary="All conversations", responses={200: {"model": SeedItems}}
)
async def seed_list(request: Request) -> Response:
    """Summaries, the newest first, as the daemon that shares the files lists them."""
    return await answer(request, lambda memory: {"items": memory.conversations.list()})


@seed_router.get(
    "/conversations/{conversation_id}",
    summary="A conversation as its file has it",
    responses={200: {"model": SeedRecord}},
)
async def seed_get(request: Request, conversation_id: Name) -> Response:
    """The record byte for byte, or 404."""
    service, namespace = service_of(request), caller_of(request).namespace

    def record() -> bytes:
        threads = service.view(namespace).conversations
        try:
            if threads.get(conversation_id) is None:
                raise NotFound("conversation", conversation_id)
        except InvalidInput:
            # What can name no conversation names none.
            raise NotFound("conversation", conversation_id) from None
        return threads.read_file(conversation_id)[0]

    return Response(await service.do(record), media_type="application/json")


def _thread(memory: Memory, conversation_id: str) -> Any:
    thread = memory.conversations.get(conversation_id)
    if thread is None:
        raise NotFound("conversation", conversation_id)
    return thread


def _page(memory: Memory, limit: int, after: tuple[datetime, str] | None) -> Page[ThreadSummary]:
    found = sorted(memory.conversations.list(), key=lambda one: one.conversation_id)
    found.sort(key=lambda one: one.updated, reverse=True)
    if after is not None:
        then, last = after
        found = [
            one
            for one in found
            if one.updated < then or (one.updated == then and one.conversation_id > last)
        ]
    items = found[:limit]
    more = len(found) > limit
    return Page(tuple(items), _cursor(items[-1]) if more else None)


def _cursor(last: ThreadSummary) -> str:
    given = json.dumps([last.updated.isoformat(), last.conversation_id])
    return base64.urlsafe_b64encode(given.encode()).decode().rstrip("=")


def _read_cursor(cursor: str | None) -> tuple[datetime, str] | None:
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        then, last = json.loads(base64.b64decode(padded, b"-_", validate=True))
        moment = datetime.fromisoformat(then)
        if moment.tzinfo is None or not isinstance(last, str):
            raise ValueError
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise InvalidInput("cursor", cursor, "expected what an earlier page gave") from None
    return moment, last
