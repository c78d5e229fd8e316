"""Imported conversations into threads: every message once, nothing twice, however often.

A message is known by its identity in its source. The store writes identities before the thread
file, and they are believed only where the turn has the hash they carry, so a crash between the two
loses nothing. Two imports of one chat wait for each other. A turn that is there never changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from anaphora.errors import CorruptThread, InvalidInput
from anaphora.ingest.branching import ThreadPlan, plan_threads
from anaphora.ingest.copies import CopiedChats
from anaphora.ingest.sessions import SessionWriter
from anaphora.store.disk import translate
from anaphora.store.threads.conversations import Conversations, Replacement, replace_turns
from anaphora.store.threads.files import ThreadLocks, lock_key
from anaphora.store.threads.gojson import format_time
from anaphora.store.threads.sidecar import Sidecar
from anaphora.store.threads.sql_store import SqlConversationStore
from anaphora.values.conversations import ImportedConversation, NewTurn

Refuse = Callable[[ImportedConversation, str, str], None]
"""Called with a conversation that was not kept whole, where that is, and why."""


class ConversationImport:
    """Keeps what one import brings. `store` must have been opened with `sidecar`.

    `sessions` keeps what transcripts of coding agents tell beside the turns. Turns that were
    redacted or deleted here stay out, unless `again`. `counts` has what was done so far: added,
    known, forgotten, branches, tool_calls; `chats` are the sources' conversations, `threads` the
    ids of those here, that of the last message last, which is at `last_index` of it.
    """

    def __init__(
        self,
        store: Conversations,
        sidecar: Sidecar,
        *,
        sessions: SessionWriter | None = None,
        again: bool = False,
    ) -> None:
        self._store = store
        self._sidecar = sidecar
        self._sessions = sessions
        self._copies = CopiedChats(sidecar)
        self._again = again
        self._locks_at = store.directory or Path()
        self._locks = ThreadLocks(store.directory) if store.directory is not None else None
        self._server = store if isinstance(store, SqlConversationStore) else None
        self.counts = Counter(added=0, known=0, forgotten=0, branches=0, tool_calls=0)
        self.chats: set[tuple[str, str]] = set()
        self.threads: dict[str, None] = {}
        self.last_index: int | None = None

    def add(self, conversation: ImportedConversation, refuse: Refuse) -> None:
        """Keep a conversation. StoreError and its kinds when the store cannot write."""
        if not conversation.turns and not conversation.calls:
            return
        conversation = replace(
            conversation, conversation_id=self._store.standing_id(conversation.conversation_id)
        )
        try:
            with ExitStack() as stack:
                # No other import of this chat runs, or of one that may be its copy: any session.
                is_session = conversation.unique_keys or conversation.place is not None
                same_chat = "" if is_session else conversation.key
                name = f"import of {conversation.source}: {same_chat}"
                if self._server is not None:
                    stack.enter_context(self._server.importing(name))
                if self._locks is not None:
                    try:
                        stack.enter_context(self._locks.hold(lock_key(name), patience=-1))
                    except OSError as error:
                        raise translate(error, "lock", self._locks_at) from error
                known_notes = self._sidecar.known(conversation.source, conversation.key)
                resolved_conversation = self._copies.resolve(conversation, known_notes)
                if resolved_conversation.key != conversation.key:
                    known_notes = self._sidecar.known(
                        resolved_conversation.source, resolved_conversation.key
                    )
                    standing_id = self._store.standing_id(resolved_conversation.conversation_id)
                    resolved_conversation = replace(
                        resolved_conversation, conversation_id=standing_id
                    )
                self.chats.add((resolved_conversation.source, resolved_conversation.key))
                plan = plan_threads(
                    resolved_conversation,
                    known_notes,
                    self._store.get,
                    self._sidecar.turn_notes,
                    again=self._again,
                )
                self._sidecar.note_turns(plan.adopted)
                self.counts["known"] += plan.known
                self.counts["forgotten"] += plan.forgotten
                self._write(resolved_conversation, plan, refuse)
                self._correct(resolved_conversation, plan)
                if self._sessions is not None:
                    self.counts["tool_calls"] += self._sessions.keep(resolved_conversation, plan)
                self.threads.update(plan.threads)
                if plan.places:
                    *_, (thread_id, self.last_index) = plan.places.values()
                    self.threads.pop(thread_id, None)
                    self.threads[thread_id] = None
                self._copies.settle(conversation.source)
        except (CorruptThread, InvalidInput) as error:
            # This conversation's own trouble; what the disk refuses would meet the next one too.
            refuse(conversation, conversation.conversation_id, str(error))

    def _correct(self, conversation: ImportedConversation, plan: ThreadPlan) -> None:
        """Give a thread the name that its chat has got since, and turns their own times."""
        thread_id, title = conversation.conversation_id, conversation.title.strip()
        stored_title = plan.titles.get(thread_id, title)
        # Another name than the source ever gave is the user's, given here.
        if stored_title != title and stored_title in ("", *conversation.former_titles):
            self._store.set_title(thread_id, title)
        for thread_id in {thread_id: None for thread_id, _ in plan.times}:
            thread = self._store.get(thread_id)
            if thread is None:
                continue
            turns = [
                replace(turn, ts=ts, ts_text=format_time(ts))
                if (ts := plan.times.get((thread_id, index))) is not None
                else turn
                for index, turn in enumerate(thread.turns)
            ]
            notes = [
                note for note in self._sidecar.turn_notes(thread_id).values() if not note.forgotten
            ]
            replacement = Replacement(thread.turns, turns, notes, thread.title)
            replace_turns(self._store, thread_id, replacement, lambda: None)

    def _write(self, conversation: ImportedConversation, plan: ThreadPlan, refuse: Refuse) -> None:
        for thread_id, turns in plan.appends.items():
            note = plan.started.get(thread_id)
            if note is not None:
                self._sidecar.note_conversation(note)
                self.counts["branches"] += note.branch_of is not None
            written_turns = self._store.extend(
                thread_id,
                [
                    NewTurn(
                        role=turn.role,
                        text=turn.text,
                        intent_id=turn.intent_id,
                        ts=turn.ts,
                        speaker=turn.speaker,
                        source=conversation.source,
                        source_key=conversation.key,
                        message_key=turn.key,
                    )
                    for turn in turns
                ],
                # A chat that begins here has the title of its source; a branch is named by its
                # turns. In the same write: an import that is cut off there never comes back for it.
                title=conversation.title if thread_id == conversation.conversation_id else "",
            )
            self.counts["added"] += len(written_turns)
            if len(written_turns) < len(turns):
                lost_count = len(turns) - len(written_turns)
                refuse(conversation, thread_id, f"the store did not keep {lost_count} turns")
