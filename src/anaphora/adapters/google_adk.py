"""A memory service for Google's Agent Development Kit (ADK).

    runner = Runner(..., memory_service=AnaphoraMemoryService(memory))

A session's events become a conversation, verbatim, each once however often the session is added;
`search_memory`, and so ADK's tools `load_memory` and `preload_memory`, finds them and all other
memories of the user. Every app and user has a namespace.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from anaphora.api.aio import AsyncMemory
from anaphora.errors import MissingExtra, NotFound
from anaphora.store.threads.ids import safe_id
from anaphora.text.display import visible
from anaphora.text.recalled import strip_recalled
from anaphora.values.conversations import ImportedConversation, ImportedTurn
from anaphora.values.search import SearchHit

try:
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai import types
except ImportError as error:
    raise MissingExtra("", "google-adk") from error

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

__all__ = ["AnaphoraMemoryService", "namespace_of_user"]

SOURCE: Final = "google_adk"
_UNKNOWN: Final = "unknown"


def namespace_of_user(app_name: str, user_id: str) -> str:
    """The namespace of an app's user: readable, and another one for every other pair."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", f"{app_name}-{user_id}").strip("-")[:40]
    key = hashlib.sha256(f"{len(app_name)}:{app_name}{user_id}".encode("utf-8", "surrogatepass"))
    return f"adk-{readable}-{key.hexdigest()[:24]}"


class AnaphoraMemoryService(BaseMemoryService):
    """A `BaseMemoryService` over a home. `namespace_of(app_name, user_id)` names a namespace.

    A search gives at most `top_k` memories, whose texts cost at most `budget` tokens; nothing where
    nothing is likely to answer.
    """

    def __init__(
        self,
        memory: AsyncMemory,
        *,
        namespace_of: Callable[[str, str], str] = namespace_of_user,
        top_k: int = 6,
        budget: int = 1_000,
    ) -> None:
        self._memory = memory
        self._namespace_of = namespace_of
        self._top_k = top_k
        self._budget = budget

    async def add_session_to_memory(self, session: Session) -> None:
        """Keep what was said in a session; what is known of it already stays as it is."""
        scope = self._scope(session.app_name, session.user_id)
        await _keep(scope, session.id, list(_turns(session.events, None)))

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep some events, behind those of their session that are known."""
        scope, session = self._scope(app_name, user_id), session_id or _UNKNOWN
        thread = await scope.conversations.get(safe_id(SOURCE, session))
        known_ids = [turn.intent_id for turn in thread.turns] if thread is not None else []
        new_events = [event for event in events if event.id not in known_ids]
        await _keep(scope, session, list(_turns(new_events, known_ids[-1] if known_ids else None)))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember facts. One that is known is reinforced; secrets are taken out."""
        texts = [strip_recalled(_text(entry.content)).strip() for entry in memories]
        await self._scope(app_name, user_id).remember_many([text for text in texts if text])

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """What bears on a query, of sessions and memories, best first."""
        question = strip_recalled(query).strip()
        if not question:
            return SearchMemoryResponse()
        answer = await self._scope(app_name, user_id).search(
            question, kinds=("memory", "note", "turn"), top_k=self._top_k, budget=self._budget
        )
        return SearchMemoryResponse(memories=[_entry(hit) for hit in answer.hits])

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Forget what a search has found, by its id; adding its session again brings nothing back.

        A memory goes with its history; an event's words are redacted. An unknown id is ignored.
        """
        scope = self._scope(app_name, user_id)
        conversation, _, index = (memory_id or "").rpartition("#")
        if conversation and index.isdecimal():
            await scope.conversations.redact(conversation, int(index))
        elif memory_id:
            try:
                await scope.forget(memory_id)
            except NotFound:
                return

    def _scope(self, app_name: str, user_id: str) -> AsyncMemory:
        return self._memory.scoped(self._namespace_of(app_name, user_id))


async def _keep(scope: AsyncMemory, session_id: str, turns: Sequence[ImportedTurn]) -> None:
    if turns:
        conversation = ImportedConversation(
            SOURCE, session_id, safe_id(SOURCE, session_id), tuple(turns)
        )
        await scope.import_([conversation])


def _turns(events: Sequence[Event], parent: str | None) -> Iterator[ImportedTurn]:
    """The turns that events are: their texts, without thoughts, tools and recalled blocks."""
    for event in events:
        text = strip_recalled(_text(event.content)).strip()
        if not text or event.partial:
            continue
        is_user = event.author == "user"
        yield ImportedTurn(
            key=event.id,
            parent=parent,
            role="user" if is_user else "assistant",
            text=text,
            ts=datetime.fromtimestamp(event.timestamp, UTC),
            speaker=None if is_user else event.author,
            # Identifies the last known event.
            intent_id=event.id,
        )
        parent = event.id


def _text(content: Any) -> str:
    parts = (content.parts or ()) if content is not None else ()
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def _entry(hit: SearchHit) -> MemoryEntry:
    role = "user" if hit.kind == "turn" and not hit.speaker else "model"
    text = visible(strip_recalled(hit.snippet).strip())
    return MemoryEntry(
        id=hit.id,
        author=hit.speaker or hit.title or hit.kind,
        content=types.Content(role=role, parts=[types.Part.from_text(text=text)]),
        timestamp=hit.ts.isoformat() if hit.ts is not None and hit.ts.year > 1 else None,
        custom_metadata={"kind": hit.kind, "score": hit.score, "current": hit.current},
    )
