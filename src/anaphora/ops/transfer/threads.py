"""Conversations in an export and back: threads with their turns, and the notes of both.

Of two threads with the same beginning the longer wins; two that differ are both kept, the imported
one under an id made from its content; a turn that was redacted here matches any text, and its text
is never restored. Notes (speakers, sources, forgotten turns) are imported for turns with the same
text here and in the export; existing notes stay, and forgotten turns stay forgotten. Thread files
are written in the form of the home, each under its lock, whole or not at all; times are kept
verbatim.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from anaphora.errors import CorruptThread, EncryptionError
from anaphora.language.names import forms_of
from anaphora.ops.transfer.reading import BATCH, BatchReader, LineReader, LoadTarget
from anaphora.store.disk import NO_FILE, make_directory, translate
from anaphora.store.hashing import stored_turn_hash
from anaphora.store.line_fields import LineFields, string
from anaphora.store.lines import Line
from anaphora.store.threads.files import ThreadFolder
from anaphora.store.threads.gojson import (
    REDACTED,
    NotAThread,
    decode,
    document_of,
    encode_turn,
    read_time,
)
from anaphora.store.threads.ids import MAX_ID_CHARACTERS, check_id
from anaphora.store.threads.sidecar import ConversationNote, TurnNote
from anaphora.store.threads.sql_store import SqlConversationStore
from anaphora.values.conversations import ImportProblem, Thread, Turn

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices
    from anaphora.values.actions import AuditAction

_TURN_NOTE: Final = LineFields(
    TurnNote,
    ("speaker", "source", "source_key", "message_key"),
    left_out=("conversation_id", "index", "turn_hash", "forgotten"),
)
_CONVERSATION_NOTE: Final = LineFields(
    ConversationNote,
    ("source", "source_key", "branch_of", "branch_at"),
    left_out=("conversation_id",),
)


def thread_lines(
    services: NamespaceServices,
    problems: list[ImportProblem],
    hashes: dict[str, list[str]],
    tell: Callable[[int, int], None],
) -> Iterator[Line]:
    """Every thread with its turns. Fills `hashes` by thread, and `problems` for unreadable ones."""
    store = services.conversation.threads
    files = sorted(store.files())
    for done_count, (conversation_id, path) in enumerate(files):
        try:
            thread = decode(store.read_file(conversation_id)[0])
        except FileNotFoundError:
            continue  # Deleted since the folder was listed.
        except (NotAThread, EncryptionError, OSError) as error:
            # One unreadable file must not stop the export of the others.
            problems.append(ImportProblem(str(path), conversation_id, str(error)))
            continue
        hashes[conversation_id] = _hashes(thread)
        yield {
            "kind": "thread",
            "id": conversation_id,
            "title": thread.title or None,
            "updated": thread.updated_text,
            "turns": len(thread.turns),
        }
        for index, turn in enumerate(thread.turns):
            yield {
                "kind": "turn",
                "thread": conversation_id,
                "index": index,
                "role": turn.role,
                "text": turn.text,
                "intent_id": turn.intent_id or None,
                "ts": turn.ts_text,
            }
        tell(done_count + 1, len(files))


def _hashes(thread: Thread) -> list[str]:
    return [stored_turn_hash(turn.role, turn.text) for turn in thread.turns]


def note_lines(services: NamespaceServices, hashes: Mapping[str, list[str]]) -> Iterator[Line]:
    """The notes of conversations, then of the turns exported with these hashes."""
    sidecar = services.conversation.sidecar
    for conversation_id, origin in sorted(sidecar.conversation_notes().items()):
        yield {
            "kind": "conversation_note",
            "thread": conversation_id,
            **_CONVERSATION_NOTE.write(origin),
        }
    # Notes of deleted conversations keep their messages from being imported again.
    for conversation_id in sorted(hashes.keys() | sidecar.changed_since(0)):
        turn_hashes = hashes.get(conversation_id, [])
        for index, note in sidecar.turn_notes(conversation_id).items():
            if note.forgotten or (
                index < len(turn_hashes) and turn_hashes[index] == note.turn_hash
            ):
                yield {
                    "kind": "forgotten_turn" if note.forgotten else "turn_note",
                    "thread": note.conversation_id,
                    "index": note.index,
                    **_TURN_NOTE.write(note),
                }


class ThreadReader(LineReader):
    """Reads the threads of one namespace, each whole."""

    def __init__(self, target: LoadTarget) -> None:
        super().__init__(target)
        services = target.services
        store = services.conversation.threads
        self._write: Callable[[str, Thread], int | None]
        if isinstance(store, SqlConversationStore):
            self._write = partial(_write_rows, store)
        else:
            form = services.container.sealing.threads(services.namespace)
            folder = ThreadFolder(services.folder, form)
            self._write = partial(_write_file, services.after_turns, folder)
        # The thread of the following turns, its stated number of turns, and the number of its line.
        self._head: Thread | None = None
        self._stated: object = None
        self._number = 0
        self._turns: list[Turn] = []

    def read(self, number: int, line: Line) -> None:
        """Read a thread's line, or that of its next turn. ValueError."""
        if line["kind"] == "turn":
            if self._head is None or self._head.conversation_id != string(line, "thread"):
                raise ValueError("a turn comes before its thread")
            if line.get("index") != len(self._turns):
                raise ValueError(
                    f"turn {line.get('index')!r} comes where {len(self._turns)} was expected"
                )
            ts_text = string(line, "ts")
            intent = string(line, "intent_id") if "intent_id" in line else ""
            role, text = string(line, "role"), string(line, "text")
            self._turns.append(Turn(role, text, read_time(ts_text), ts_text, intent))
            return
        self.flush()
        conversation_id, updated_text = check_id(string(line, "id")), string(line, "updated")
        title = string(line, "title") if "title" in line else ""
        self._head = Thread(conversation_id, (), read_time(updated_text), updated_text, title)
        self._stated, self._number = line.get("turns"), number

    def flush(self) -> None:
        """Write the thread that was read."""
        head, turns = self._head, tuple(self._turns)
        self._head, self._turns = None, []
        if head is None:
            return
        target, thread = self.target, replace(head, turns=turns)
        if self._stated != len(turns):
            reason = f"only the first {len(turns)} of {self._stated} turns can be read"
            target.problem(self._number, reason)
        if not target.again and any(map(self._was_deleted, forms_of(thread.conversation_id))):
            target.deleted_threads.add(thread.conversation_id)
            target.counts["forgotten"] += len(turns)
            return
        thread_id = target.services.conversation.threads.standing_id(thread.conversation_id)
        try:
            added_count = self._write(thread_id, thread)
            if added_count is None:
                # Another thread has the id: this one gets an id derived from its turns.
                digest = hashlib.sha256()
                for turn in turns:
                    digest.update(encode_turn(turn).encode() + b"\n")
                mark = f"~{digest.hexdigest()[:12]}"
                thread_id = thread.conversation_id[: MAX_ID_CHARACTERS - len(mark)] + mark
                added_count = self._write(thread_id, thread)
        except CorruptThread as error:
            target.problem(self._number, str(error))
            return
        # Threads with the same digest of their turns are the same thread.
        assert added_count is not None
        target.thread_ids[thread.conversation_id] = thread_id
        target.turn_hashes[thread_id] = _hashes(thread)
        target.counts["threads"] += 1
        target.counts["turns added"] += added_count
        target.counts["turns known"] += len(turns) - added_count

    def _was_deleted(self, conversation_id: str) -> bool:
        """Whether this thread was deleted here, by its mark or by its notes."""
        services = self.target.services
        notes = services.conversation.sidecar.turn_notes(conversation_id).values()
        is_marked = services.conversation.sidecar.deletion_key(conversation_id) in self._deletions
        if not is_marked and not (notes and all(note.forgotten for note in notes)):
            return False
        return services.conversation.threads.get(conversation_id) is None

    @cached_property
    def _deletions(self) -> frozenset[str]:
        return self.target.services.conversation.sidecar.deleted_since(0)


def _write_file(
    after_turns: Callable[[AuditAction, str, int], object],
    folder: ThreadFolder,
    conversation_id: str,
    thread: Thread,
) -> int | None:
    """Write a thread under this id; returns the added turns, None if another thread has the id.

    The audit trail gets an entry, as a conversation store writes it. `CorruptThread` for an
    unreadable file of that id, `StoreError` and its kinds.
    """
    file = folder.file(conversation_id)
    try:
        make_directory(folder.directory)
        file.form.check()
        with folder.locks.hold(file.key):
            try:
                document, _ = file.document()
            except FileNotFoundError:
                document_here = replace(document_of(thread), conversation_id=conversation_id)
                file.rewrite(document_here, NO_FILE)
                news: Sequence[Turn] | None = thread.turns
            except NotAThread as error:
                raise CorruptThread(file.path, str(error)) from error
            else:
                news = _news(document.turns, thread.turns)
                if news:
                    file.append(file.tail(), news)
    except OSError as error:
        raise translate(error, "write", folder.file(thread.conversation_id).path) from error
    if news:
        after_turns("remembered", conversation_id, len(news))
    return None if news is None else len(news)


def _write_rows(store: SqlConversationStore, conversation_id: str, thread: Thread) -> int | None:
    """As `_write_file`, into a store of rows."""
    while True:
        thread_here = store.get(conversation_id)
        turns_here = thread_here.turns if thread_here is not None else ()
        news = _news(turns_here, thread.turns)
        # If another writer was faster, compare again.
        if not news or store.add_exact(
            conversation_id,
            news,
            len(turns_here),
            title=thread.title,
            updated_text=thread.updated_text,
        ):
            return None if news is None else len(news)


def _news(ours: Sequence[Turn], theirs: Sequence[Turn]) -> Sequence[Turn] | None:
    """The turns after the end of `ours`; None if the two are not the same thread."""
    for our_turn, their_turn in zip(ours, theirs, strict=False):
        same_text = our_turn.text == their_turn.text or REDACTED in our_turn.text
        if our_turn.role != their_turn.role or our_turn.ts != their_turn.ts or not same_text:
            return None
    return theirs[len(ours) :]


class NoteReader(BatchReader[TurnNote]):
    """Reads the notes of the conversations and turns of one namespace, after its threads."""

    def __init__(self, target: LoadTarget) -> None:
        super().__init__(target)
        self._here: dict[str, Mapping[int, TurnNote]] = {}

    def parse(self, line: Line) -> TurnNote | None:
        """The note of an imported turn; all others are written at once. ValueError."""
        exported_id = check_id(string(line, "thread"))
        if exported_id in self.target.deleted_threads:
            return None
        conversation_id = self.target.thread_ids.get(exported_id, exported_id)
        if line["kind"] == "conversation_note":
            summary = ConversationNote(conversation_id, **_CONVERSATION_NOTE.read(line))
            if conversation_id not in self._conversations:
                if summary.branch_of is not None:
                    branch_of = self.target.thread_ids.get(summary.branch_of, summary.branch_of)
                    summary = replace(summary, branch_of=branch_of)
                self._conversations[conversation_id] = summary
                self.target.services.conversation.sidecar.note_conversation(summary)
            return None
        index = line.get("index")
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise ValueError('"index" is not an integer, 0 or more')
        note = TurnNote(conversation_id, index, "", **_TURN_NOTE.read(line))
        if line["kind"] == "forgotten_turn":
            self._write_forgotten(note)
            return None
        hashes = self.target.turn_hashes.get(conversation_id, [])
        if index >= len(hashes):
            raise ValueError("a note about a turn that is not in the file")
        present = self._notes_here(conversation_id).get(index)
        if present is not None and present.turn_hash == hashes[index]:
            return None
        if present is not None and present.forgotten and not self.target.again:
            return None
        return replace(note, turn_hash=hashes[index])

    def write(self, batch: Sequence[tuple[int, TurnNote]]) -> None:
        """As `BatchReader.write`."""
        self.target.services.conversation.sidecar.note_turns([note for _, note in batch])
        self._here = {}

    def _write_forgotten(self, note: TurnNote) -> None:
        """Keep a message that was forgotten there from being imported, unless it is stored here."""
        sidecar = self.target.services.conversation.sidecar
        if note.source is None or note.source_key is None or note.message_key is None:
            return
        if note.message_key in sidecar.known(note.source, note.source_key):
            return
        if self._notes_here(note.conversation_id).get(note.index) is not None:
            # The note that the turn has here must not be replaced.
            return
        self.flush()
        sidecar.note_turns([note])
        sidecar.forget(note.conversation_id, note.index)
        self._here = {}

    @cached_property
    def _conversations(self) -> dict[str, ConversationNote]:
        return self.target.services.conversation.sidecar.conversation_notes()

    def _notes_here(self, conversation_id: str) -> Mapping[int, TurnNote]:
        if conversation_id not in self._here:
            if len(self._here) >= BATCH:
                self._here = {}
            self._here[conversation_id] = self.target.services.conversation.sidecar.turn_notes(
                conversation_id
            )
        return self._here[conversation_id]
