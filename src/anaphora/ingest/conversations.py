"""Imported conversations into threads: every message once, nothing twice, however often.

A message is known by its identity in its source. The store writes identities before the thread
file, and they are believed only where the turn has the hash they carry, so a crash between the two
loses nothing. Two imports of one chat wait for each other. A turn that is there never changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path

from anaphora.core.progress import Progress
from anaphora.errors import CorruptThread, InvalidInput
from anaphora.ingest.branching import ThreadPlan, plan_threads
from anaphora.ingest.importers import FileImport, file_imports
from anaphora.ingest.importers.base import ImportItem, Problems, shortened
from anaphora.ingest.sessions import SessionWriter
from anaphora.store.disk import translate
from anaphora.store.threads.conversations import Conversations
from anaphora.store.threads.files import ThreadLocks, lock_key
from anaphora.store.threads.sidecar import Sidecar
from anaphora.store.threads.sql_store import SqlConversationStore
from anaphora.values.conversations import (
    ImportedConversation,
    ImportProblem,
    ImportReport,
    NewTurn,
    Source,
)

# Of all files together: a folder may have any number of them.
_MOST_PROBLEMS = 10_000


def import_conversations(
    sources: Iterable[Source],
    store: Conversations,
    sidecar: Sidecar,
    *,
    sessions: SessionWriter | None = None,
    format: str | None = None,  # noqa: A002 - the word that users know
    again: bool = False,
    progress: Progress | None = None,
) -> ImportReport:
    """Import files, directories, zip files, or conversations that were read already.

    `store` must have been opened with `sidecar`. `sessions` keeps what transcripts of coding agents
    tell beside the turns. What is malformed or beyond `Bounds` is in
    `problems`, the rest goes in. Turns that were redacted or deleted here stay out, unless
    `again`. `progress` is called with a file's name, the bytes of it that were read, and its size.

    Raises UnknownFormat or InvalidInput before anything is written, when a path or format that
    was named cannot be used; StoreError and its kinds when the store cannot write: what was
    written until then stays, and importing again goes on from there.
    """
    run = _Import(store, sidecar, sessions, again)
    for file in chain.from_iterable(_imports(sources, format)):
        for item in file.items:
            run.add(item)
            if progress is not None and isinstance(item, ImportedConversation):
                progress(file.label, *file.progress())
        if progress is not None:
            _, size = file.progress()
            progress(file.label, size, size)
    return run.report()


def _imports(
    sources: Iterable[Source],
    format: str | None,  # noqa: A002 - as above
) -> list[Iterator[FileImport]]:
    """Every named path is looked at before the first is imported."""
    result: list[Iterator[FileImport]] = []
    given: list[ImportedConversation] = []
    for source in sources:
        if isinstance(source, ImportedConversation):
            given.append(source)
        else:
            result.append(file_imports(Path(source), format))
    if given:
        result.append(iter([_as_file_import(given)]))
    return result


def _as_file_import(conversations: list[ImportedConversation]) -> FileImport:
    done = 0

    def items() -> Iterator[ImportItem]:
        nonlocal done
        for done, conversation in enumerate(conversations, start=1):  # noqa: B007 - shown below
            yield conversation

    return FileImport("conversations", items(), lambda: (done, len(conversations)))


class _Import:
    """One import under way, and its report so far."""

    def __init__(
        self, store: Conversations, sidecar: Sidecar, sessions: SessionWriter | None, again: bool
    ) -> None:
        self._store = store
        self._sidecar = sidecar
        self._sessions = sessions
        self._again = again
        self._locks_at = store.directory or Path()
        self._locks = ThreadLocks(store.directory) if store.directory is not None else None
        self._server = store if isinstance(store, SqlConversationStore) else None
        self._counts = Counter(added=0, known=0, forgotten=0, branches=0, tool_calls=0)
        self._left_out: Counter[str] = Counter()
        self._problems = Problems(_MOST_PROBLEMS)
        self._chats: set[tuple[str, str]] = set()
        self._threads: dict[str, None] = {}

    def add(self, item: ImportItem) -> None:
        """Keep a conversation, or note a problem."""
        if isinstance(item, ImportProblem):
            self._problems.add(item)
            return
        self._left_out.update(item.left_out)
        if not item.turns and not item.calls:
            return
        self._chats.add((item.source, item.key))
        try:
            with self._lock(item):
                self._keep(item)
        except (CorruptThread, InvalidInput) as error:
            # This conversation's own trouble; what the disk refuses would meet the next one too.
            self._problem(item, item.conversation_id, str(error))

    def _problem(self, item: ImportedConversation, place: str, reason: str) -> None:
        self._problems.add(ImportProblem(shortened(f"{item.source} {item.key}"), place, reason))

    def report(self) -> ImportReport:
        return ImportReport(
            conversations=len(self._chats),
            **self._counts,
            left_out=dict(self._left_out),
            problems=self._problems.all(),
            conversation_ids=tuple(self._threads),
        )

    @contextmanager
    def _lock(self, item: ImportedConversation) -> Iterator[None]:
        """Wait until no other import of this chat runs."""
        name = f"import of {item.source}: {item.key}"
        with ExitStack() as held:
            if self._server is not None:
                held.enter_context(self._server.importing(name))
            if self._locks is not None:
                try:
                    held.enter_context(self._locks.hold(lock_key(name)))
                except OSError as error:
                    raise translate(error, "lock", self._locks_at) from error
            yield

    def _keep(self, item: ImportedConversation) -> None:
        found = plan_threads(
            item,
            self._sidecar.known(item.source, item.key),
            self._store.get,
            self._sidecar.turn_notes,
            again=self._again,
        )
        self._sidecar.note_turns(found.adopted)
        self._counts["known"] += found.known
        self._counts["forgotten"] += found.forgotten
        self._write(item, found)
        if self._sessions is not None:
            self._counts["tool_calls"] += self._sessions.keep(item, found)
        self._threads.update(found.threads)

    def _write(self, item: ImportedConversation, found: ThreadPlan) -> None:
        for thread_id, turns in found.appends.items():
            note = found.started.get(thread_id)
            if note is not None:
                self._sidecar.note_conversation(note)
                self._counts["branches"] += note.branch_of is not None
            written = self._store.extend(
                thread_id,
                [
                    NewTurn(
                        role=turn.role,
                        text=turn.text,
                        intent_id=turn.intent_id,
                        ts=turn.ts,
                        speaker=turn.speaker,
                        source=item.source,
                        source_key=item.key,
                        message_key=turn.key,
                    )
                    for turn in turns
                ],
                # A chat that begins here has the title of its source; a branch is named by its
                # turns. In the same write: an import that is cut off there never comes back for it.
                title=item.title if thread_id == item.conversation_id else "",
            )
            self._counts["added"] += len(written)
            if len(written) < len(turns):
                lost = len(turns) - len(written)
                self._problem(item, thread_id, f"the store did not keep {lost} turns")
