"""The routes of conversations, and those of the seed: `/conversations`, `/conversations/{id}`."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from fastapi import Path, Request
from starlette.responses import Response

from anaphora.api.memory import Memory
from anaphora.core.caller import call_origin
from anaphora.core.hidden_ids import named_so
from anaphora.errors import InvalidInput, NotFound
from anaphora.ingest.secrets.masking import mask, mask_handle
from anaphora.surfaces.rest.calls import caller_of, reads_verbatim, service_of
from anaphora.surfaces.rest.routing import LaneRouter
from anaphora.surfaces.rest.schemas import (
    AppendTurns,
    Name,
    PageQuery,
    SeedTitle,
    ThreadQuery,
    TurnQuestion,
)
from anaphora.surfaces.rest.shapes import (
    Appended,
    ConversationPage,
    Deleted,
    Redacted,
    SeedItems,
    SeedRecord,
    ThreadShape,
    Titled,
    ToolCalls,
    TurnHits,
    Waiting,
)
from anaphora.surfaces.wire import must_exist, recalled_turns, times_between
from anaphora.values.conversations import NewTurn, ThreadSummary
from anaphora.values.memories import Page

router = LaneRouter("conversation")
seed_router = LaneRouter("seed", "")
Index = Annotated[int, Path(ge=0, le=2**31 - 1)]


@router.answers("POST /conversations/recall", "Recall turns", TurnHits, reads=True)
def recall_conversation(memory: Memory, body: TurnQuestion) -> Any:
    """The turns of one conversation, or of all, that matter for the query."""
    given = body.given()
    return recalled_turns(memory, **given | times_between(given, memory.local_time))


@router.answers("GET /conversations", "List conversations", ConversationPage)
def list_conversations(memory: Memory, query: PageQuery) -> Any:
    """The newest first. `cursor` of a page gets the next one, whatever was written meanwhile."""
    return _page(memory, query.limit, _read_cursor(query.cursor))


@router.answers("GET /conversations/{conversation_id}", "One conversation", ThreadShape)
def get_conversation(memory: Memory, conversation_id: Name, query: ThreadQuery) -> Any:
    """Every word of it, or its `last` turns."""
    found = must_exist(memory.conversations.get(conversation_id), "conversation", conversation_id)
    if query.last is None:
        return found
    return replace(found, turns=found.turns[max(0, len(found.turns) - query.last) :])


@router.answers("GET /conversations/{conversation_id}/tool-calls", "What tools did", ToolCalls)
def tool_calls(memory: Memory, conversation_id: Name) -> Any:
    """A line for each call that the agent made in this session, the oldest first."""
    return memory.tool_calls(conversation_id)


@router.answers("POST /conversations/{conversation_id}/turns", "Keep turns", Appended, 201)
def append_turns(memory: Memory, conversation_id: Name, body: AppendTurns) -> Any:
    """All or none of them. When this returns, they are on the disk.

    A user's turn without a speaker gets the name of the person that the token was made for.
    """
    turns = [_by_person(NewTurn(**turn.given())) for turn in body.turns]
    places = memory.conversations.extend(conversation_id, turns, title=body.title)
    return {"conversation_id": conversation_id, "indexes": list(places)}


@router.answers("POST /conversations/{conversation_id}/end", "End a session", Waiting)
def end_session(memory: Memory, conversation_id: Name) -> Any:
    """Its facts and a dream are queued: `POST /v1/jobs` runs what waits, now or later."""
    return {"jobs": memory.end_session(conversation_id)}


@router.answers("PATCH /conversations/{conversation_id}", "Give a conversation a title", Titled)
def set_title(memory: Memory, conversation_id: Name, body: SeedTitle) -> Any:
    """An empty title lets the first question stand for it again."""
    done = memory.conversations.set_title(conversation_id, body.title)
    must_exist(done, "conversation", conversation_id)
    return {"conversation_id": conversation_id, "title": body.title}


@router.answers("DELETE /conversations/{conversation_id}", "Delete a conversation", Deleted)
def delete_conversation(memory: Memory, conversation_id: Name) -> Any:
    """Gone for real: file, index and side notes."""
    must_exist(memory.conversations.delete(conversation_id), "conversation", conversation_id)
    return {"deleted": conversation_id}


@router.answers(
    "POST /conversations/{conversation_id}/turns/{index}/redact",
    "Take the words of a turn out",
    Redacted,
)
def redact_turn(memory: Memory, conversation_id: Name, index: Index) -> Any:
    """The turn stays, its words are "[redacted]", in the file and in the index."""
    done = memory.conversations.redact(conversation_id, index)
    must_exist(done, "turn", f"{conversation_id} #{index}")
    return {"redacted": {"conversation_id": conversation_id, "index": index}}


@seed_router.answers("GET /conversations", "All conversations", SeedItems)
def list_seed_conversations(memory: Memory) -> Any:
    """Summaries, the newest first, as the daemon that shares the files lists them."""
    return {"items": memory.conversations.list()}


@seed_router.get(
    "/conversations/{conversation_id}",
    summary="A conversation as its file has it",
    responses={200: {"model": SeedRecord}},
)
async def get_seed_conversation(request: Request, conversation_id: Name) -> Response:
    """The record byte for byte, but for the secrets that are masked in it, or 404."""
    service, namespace = service_of(request), caller_of(request).namespace
    verbatim = reads_verbatim(request)

    def record() -> bytes:
        threads = service.view(namespace).conversations
        try:
            must_exist(threads.get(conversation_id), "conversation", conversation_id)
        except InvalidInput:
            # What can name no conversation names none.
            raise NotFound("conversation", conversation_id) from None
        data = threads.read_file(threads.standing_id(conversation_id))[0]
        return data if verbatim else _masked_record(data)

    return Response(await service.run("question", record), media_type="application/json")


def _masked_record(data: bytes) -> bytes:
    """The record with the secrets in its texts masked; the same bytes where there is none."""
    record = json.loads(data)
    masked = mask(record)
    return data if masked == record else json.dumps(masked, ensure_ascii=False).encode()


def _page(memory: Memory, limit: int, after: tuple[datetime, str] | None) -> Page[ThreadSummary]:
    found = sorted(memory.conversations.list(), key=lambda one: one.conversation_id)
    found.sort(key=lambda one: one.updated, reverse=True)
    if after is not None:
        then, last = after
        last = named_so(last, (one.conversation_id for one in found))
        found = [
            one
            for one in found
            if one.updated < then or (one.updated == then and one.conversation_id > last)
        ]
    items = found[:limit]
    more = len(found) > limit
    return Page(tuple(items), _cursor(items[-1]) if more else None)


def _cursor(last: ThreadSummary) -> str:
    given = json.dumps([last.updated.isoformat(), mask_handle(last.conversation_id)])
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
        raise InvalidInput("cursor", cursor, "expected a cursor from an earlier page") from None
    return moment, last


def _by_person(turn: NewTurn) -> NewTurn:
    person = call_origin().person
    if turn.role != "user" or turn.speaker is not None or not person:
        return turn
    return replace(turn, speaker=person)
