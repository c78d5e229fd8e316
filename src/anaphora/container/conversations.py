"""The services of a namespace for conversations: threads, sessions, and tool calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.container.services import ServiceGroup, service

if TYPE_CHECKING:
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


class ConversationServices(ServiceGroup):
    """What a namespace works with for its conversations."""

    @service
    def sidecar(self) -> Sidecar:
        """What thread files have no place for."""
        from anaphora.store.threads.sidecar import Sidecar

        return Sidecar(self.services.truth, self.services.namespace, self.services.rows_sealer)

    @service
    def threads(self) -> ConversationStore | SqlConversationStore:
        """The threads. Strict; each write counts as a call on the home."""
        from anaphora.store.home.opening import open_conversations
        from anaphora.store.threads.conversations import WriteHooks, surround_writes

        store = open_conversations(
            self.services.truth,
            self.sidecar,
            self.services.sealing,
            # Where truth is on a server, threads are there too.
            self.services.folder if self.services.container.truth.path is not None else None,
            clock=self.services.local_clock,
            on_removed=self._words_removed,
        )
        hooks = WriteHooks(self.services.container.calls, self.services.after_turns)
        return surround_writes(store, hooks)

    def _words_removed(self, conversation_id: str) -> None:
        """Remove deleted or redacted text from the index files before the next question."""
        from anaphora.store.threads.gojson import REDACTED

        self.turn_index.sync(conversation_id, embed="none")
        thread = self.threads.get(conversation_id)
        remaining = None
        if thread is not None:
            remaining = frozenset(n for n, turn in enumerate(thread.turns) if turn.text != REDACTED)
        if self.sessions.forget_removed(conversation_id, remaining):
            self.tool_call_index.purge()
            self.services.truth.scrub()
        for feature in self.services.features:
            feature.forget_conversation(conversation_id)
        self.services.after_removal()

    @service
    def turn_index(self) -> TurnIndex:
        """The index of turns."""
        from anaphora.index.turns.index import TurnIndex

        return TurnIndex(
            self.services.index_folder,
            self.threads,
            self.sidecar,
            self.services.embedder,
            sealer=self.services.sealing.index(self.services.namespace),
            cap=self.services.exact_cap,
            follow=self.services.link_in_background,
        )

    @service
    def sessions(self) -> SessionWriter:
        """Keeps what is known of agents' sessions beside their turns."""
        from anaphora.ingest.sessions import SessionWriter

        return SessionWriter(self.sidecar, self.tool_calls, self.services.ids, self.project_facts)

    @service
    def tool_calls(self) -> Records:
        """Records of what agents did with their tools."""
        from anaphora.store.records.rows import TOOL_CALL
        from anaphora.store.records.store import Records

        return Records(
            self.services.truth,
            self.services.namespace,
            self.services.rows_sealer,
            kinds=(TOOL_CALL,),
        )

    @service
    def tool_call_index(self) -> MemoryIndex:
        """The index of those records: of their words."""
        return self.services.record_index("tool_calls", self.tool_calls, lambda _: "")

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
            self.services.embedder,
            self.services.local_clock,
            cut=cut_between_secrets,
            reader=self.services.container.reader,
            links=self.services.links,
        )

    @service
    def recall_tool_calls(self) -> ToolCallRecall:
        """The lane of tool calls."""
        from anaphora.recall.tool_calls import ToolCallRecall

        return ToolCallRecall(self.tool_calls, self.tool_call_index, self.services.clock)

    @service
    def session_places(self) -> SessionPlaces:
        """Where sessions took place."""
        from anaphora.recall.places import SessionPlaces

        return SessionPlaces(self.sidecar, self.project_facts)

    @service
    def project_facts(self) -> Records:
        """What was said of two projects, the marks of sessions' repositories, indexed folders."""
        from anaphora.store.records.rows import INDEXED_FOLDER, PROJECT_PAIR, SESSION_MARK
        from anaphora.store.records.store import Records

        services = self.services
        kinds = (PROJECT_PAIR, SESSION_MARK, INDEXED_FOLDER)
        return Records(services.truth, services.namespace, services.rows_sealer, kinds=kinds)
