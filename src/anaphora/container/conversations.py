"""The services of a namespace for conversations: threads, sessions, and tool calls."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from anaphora.container.services import service
from anaphora.store.threads.gojson import REDACTED

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.index.turns.index import TurnIndex
    from anaphora.ingest.sessions import SessionWriter
    from anaphora.recall.conversation import ConversationRecall
    from anaphora.recall.places import SessionPlaces
    from anaphora.recall.tool_calls import ToolCallRecall
    from anaphora.store.records.store import Records
    from anaphora.store.threads.file_store import ConversationStore
    from anaphora.store.threads.sidecar import Sidecar
    from anaphora.store.threads.sql_store import SqlConversationStore


class ConversationServices:
    """What a namespace works with for its conversations."""

    def __init__(self, services: NamespaceServices) -> None:
        self._services = services
        self.locks: dict[str, threading.RLock] = {}

    @property
    def closed(self) -> bool:
        """Whether the namespace is closed: no service is created any more."""
        return self._services.closed

    @service
    def sidecar(self) -> Sidecar:
        """What thread files have no place for."""
        from anaphora.store.threads.sidecar import Sidecar

        return Sidecar(self._services.truth, self._services.namespace, self._services.rows_sealer)

    @service
    def threads(self) -> ConversationStore | SqlConversationStore:
        """The threads. Strict; each write counts as a call on the home."""
        from anaphora.store.home.opening import open_conversations
        from anaphora.store.threads.conversations import WriteHooks, surround_writes

        store = open_conversations(
            self._services.truth,
            self.sidecar,
            self._services.sealing,
            # Where truth is on a server, threads are there too.
            self._services.folder if self._services.container.truth.path is not None else None,
            clock=self._services.local_clock,
            on_removed=self._words_removed,
        )
        hooks = WriteHooks(self._services.container.calls.under_way, self._services.after_turns)
        return surround_writes(store, hooks)

    def _words_removed(self, conversation_id: str) -> None:
        """Remove deleted or redacted text from the index files before the next question."""
        self.turn_index.sync(conversation_id, embed="none")
        thread = self.threads.get(conversation_id)
        remaining = None
        if thread is not None:
            remaining = frozenset(n for n, turn in enumerate(thread.turns) if turn.text != REDACTED)
        if self.sessions.forget_removed(conversation_id, remaining):
            self.tool_call_index.purge()
            self._services.truth.scrub()
        for feature in self._services.features:
            feature.forget_conversation(conversation_id)
        self._services.after_removal()

    @service
    def turn_index(self) -> TurnIndex:
        """The index of turns."""
        from anaphora.index.turns.index import TurnIndex

        return TurnIndex(
            self._services.index_folder,
            self.threads,
            self.sidecar,
            self._services.embedder,
            sealer=self._services.sealing.index(self._services.namespace),
            cap=self._services.exact_cap,
        )

    @service
    def sessions(self) -> SessionWriter:
        """Keeps what is known of agents' sessions beside their turns."""
        from anaphora.ingest.sessions import SessionWriter

        return SessionWriter(self.sidecar, self.tool_calls, self._services.ids)

    @service
    def tool_calls(self) -> Records:
        """Records of what agents did with their tools."""
        from anaphora.store.records.rows import TOOL_CALL
        from anaphora.store.records.store import Records

        return Records(
            self._services.truth,
            self._services.namespace,
            self._services.rows_sealer,
            kinds=(TOOL_CALL,),
        )

    @service
    def tool_call_index(self) -> MemoryIndex:
        """The index of those records: of their words."""
        return self._services.record_index("tool_calls", self.tool_calls, lambda _: "")

    def has_turn(self, conversation_id: str, index: int) -> bool:
        """Whether a conversation has a turn at this index."""
        thread = self.threads.get(conversation_id)
        return thread is not None and index < len(thread.turns)

    @service
    def recall_turns(self) -> ConversationRecall:
        """The conversation lane."""
        from anaphora.ingest.secrets.masking import cut_between_secrets
        from anaphora.recall.conversation import ConversationRecall

        return ConversationRecall(
            self.threads,
            self.turn_index,
            self._services.embedder,
            self._services.local_clock,
            cut=cut_between_secrets,
            reader=self._services.container.reader,
        )

    @service
    def recall_tool_calls(self) -> ToolCallRecall:
        """The lane of tool calls."""
        from anaphora.recall.tool_calls import ToolCallRecall

        return ToolCallRecall(self.tool_calls, self.tool_call_index, self._services.clock)

    @service
    def session_places(self) -> SessionPlaces:
        """Where sessions took place."""
        from anaphora.recall.places import SessionPlaces

        return SessionPlaces(self.sidecar)
