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
from anaphora.calls.caller import call_origin
from anaphora.errors import InvalidInput, NotFound
from anaphora.ingest.secrets.masking import mask, mask_handle
from anaphora.surfaces.rest.calls import caller_of, reads_verbatim, service_of
from anaphora.surfaces.rest.routing import ConversationId, LaneRouter
from anaphora.surfaces.rest.schemas import (
    AppendTurns,
    PageQuery,
    SeedTitle,
    ThreadQuery,
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
)
from anaphora.surfaces.wire import must_exist, recalled_turns
from anaphora.text.hidden_ids import named_so
from anaphora.values.conversations import NewTurn
from anaphora.values.memories import Page

router = LaneRouter("conversation")
router.offer(
    Memory, "recall_conversation", "tool_calls", calls={"recall_conversation": recalled_turns}
)
seed_router = LaneRouter("seed", "")
_INDEX = "The position of the turn in its conversation, from 0."
Index = Annotated[int, Path(ge=0, le=2**31 - 1, description=_INDEX)]


@router.answers("GET /conversations", "List conversations", ConversationPage)
def list_conversations(memory: Memory, query: PageQuery) -> Any:
    """Newest first. `cursor` of a page gets the next one, even if turns were added meanwhile."""
    cursor = query.cursor
    if cursor is not None:
        try:
            padded_cursor = cursor + "=" * (-len(cursor) % 4)
            moment, last_id = json.loads(base64.b64decode(padded_cursor, b"-_", validate=True))
            cursor_time = datetime.fromisoformat(moment)
            if cursor_time.tzinfo is None or not isinstance(last_id, str):
                raise ValueError
        except (ValueError, TypeError, binascii.Error, RecursionError):
            raise InvalidInput("cursor", cursor, "expected a cursor from an earlier page") from None
    summaries = sorted(memory.conversations.list(), key=lambda summary: summary.conversation_id)
    summaries.sort(key=lambda summary: summary.updated, reverse=True)
    if cursor is not None:
        last_id = named_so(last_id, (summary.conversation_id for summary in summaries))
        summaries = [
            summary
            for summary in summaries
            if summary.updated < cursor_time
            or (summary.updated == cursor_time and summary.conversation_id > last_id)
        ]
    page = summaries[: query.limit]
    if len(summaries) <= query.limit:
        return Page(tuple(page), None)
    fields = json.dumps([page[-1].updated.isoformat(), mask_handle(page[-1].conversation_id)])
    return Page(tuple(page), base64.urlsafe_b64encode(fields.encode()).decode().rstrip("="))


@router.answers("GET /conversations/{conversation_id}", "One conversation", ThreadShape)
def get_conversation(memory: Memory, conversation_id: ConversationId, query: ThreadQuery) -> Any:
    """Every word of it, or its `last` turns."""
    thread = must_exist(memory.conversations.get(conversation_id), "conversation", conversation_id)
    if query.last is None:
        return thread
    return replace(thread, turns=thread.turns[max(0, len(thread.turns) - query.last) :])


@router.answers("POST /conversations/{conversation_id}/turns", "Store turns", Appended, 201)
def append_turns(memory: Memory, conversation_id: ConversationId, body: AppendTurns) -> Any:
    """All or none of them. When this returns, they are on the disk.

    A user's turn without a speaker gets the name of the person that the token was made for.
    """
    person = call_origin().person
    turns = [NewTurn(**turn.given()) for turn in body.turns]
    if person:
        turns = [
            replace(turn, speaker=person) if turn.role == "user" and turn.speaker is None else turn
            for turn in turns
        ]
    indexes = memory.conversations.extend(conversation_id, turns, title=body.title)
    return {"conversation_id": conversation_id, "indexes": list(indexes)}


@router.answers("PATCH /conversations/{conversation_id}", "Give a conversation a title", Titled)
def set_title(memory: Memory, conversation_id: ConversationId, body: SeedTitle) -> Any:
    """With an empty title, the first question becomes the title again."""
    report = memory.conversations.set_title(conversation_id, body.title)
    must_exist(report, "conversation", conversation_id)
    return {"conversation_id": conversation_id, "title": body.title}


@router.answers("DELETE /conversations/{conversation_id}", "Delete a conversation", Deleted)
def delete_conversation(memory: Memory, conversation_id: ConversationId) -> Any:
    """Deleted for good: file, index and notes on the session."""
    must_exist(memory.conversations.delete(conversation_id), "conversation", conversation_id)
    return {"deleted": conversation_id}


@router.answers(
    "POST /conversations/{conversation_id}/turns/{index}/redact",
    "Redact a turn",
    Redacted,
)
def redact_turn(memory: Memory, conversation_id: ConversationId, index: Index) -> Any:
    """The turn stays, its words are "[redacted]", in the file and in the index."""
    report = memory.conversations.redact(conversation_id, index)
    must_exist(report, "turn", f"{conversation_id} #{index}")
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
async def get_seed_conversation(request: Request, conversation_id: ConversationId) -> Response:
    """The record byte for byte, but for the secrets that are masked in it, or 404."""
    service, namespace = service_of(request), caller_of(request).namespace
    verbatim = reads_verbatim(request)

    def record() -> bytes:
        threads = service.view(namespace).conversations
        try:
            must_exist(threads.get(conversation_id), "conversation", conversation_id)
        except InvalidInput:
            # An invalid id names no conversation.
            raise NotFound("conversation", conversation_id) from None
        content = threads.read_file(threads.standing_id(conversation_id))[0]
        if verbatim:
            return content
        stored_record = json.loads(content)
        masked_record = mask(stored_record)
        return (
            content
            if masked_record == stored_record
            else json.dumps(masked_record, ensure_ascii=False).encode()
        )

    return Response(await service.run("question", record), media_type="application/json")
