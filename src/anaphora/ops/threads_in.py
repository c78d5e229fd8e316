"""How threads of an export meet those that are there.

In: a thread as it was exported, times to the letter. Out: under which id it is here now, and what
that took. The longer of two that begin alike wins; two that differ are both kept, the imported one
under an id made from its content; a turn that was redacted here matches any words, and never gets
them back. Files are written in the form of the home, each under its lock, whole or not at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from anaphora.errors import CorruptThread
from anaphora.store.disk import NO_FILE, make_directory, translate
from anaphora.store.threads.files import (
    REDACTED,
    ThreadFolder,
    ThreadLocks,
    append_turns,
    read_document,
    read_tail,
    rewrite,
)
from anaphora.store.threads.forms import ThreadForm
from anaphora.store.threads.gojson import Document, NotAThread, encode_turn
from anaphora.store.threads.ids import MAX_ID_CHARACTERS
from anaphora.store.threads.sql_store import SqlConversationStore
from anaphora.values.conversations import Thread, Turn


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of a thread: its id here, turns that were added, turns that were there."""

    conversation_id: str
    added: int
    known: int


class ThreadsIn:
    """Writes threads into the folder of one namespace."""

    def __init__(self, directory: Path, form: ThreadForm) -> None:
        self._folder = ThreadFolder(directory, form)
        self._locks = ThreadLocks(directory)

    def put(self, thread: Thread) -> Kept:
        """Keep a thread. `CorruptThread` where one that cannot be read is in its place."""
        try:
            make_directory(self._folder.directory)
            kept = self._put(thread.conversation_id, thread)
            if kept is None:
                other = _other_id(thread)
                kept = self._put(other, thread)
            # Two threads with one digest of their turns are the same thread.
            assert kept is not None
        except OSError as error:
            place = self._folder.path(thread.conversation_id)
            raise translate(error, "write", place) from error
        return kept

    def _put(self, conversation_id: str, thread: Thread) -> Kept | None:
        """None where another thread stands under this id."""
        self._folder.form.check()
        path = self._folder.path(conversation_id)
        with self._locks.hold(self._folder.key(conversation_id)):
            try:
                document, _, _ = read_document(path, conversation_id, self._folder.form)
            except FileNotFoundError:
                self._write(path, conversation_id, thread)
                return Kept(conversation_id, len(thread.turns), 0)
            except NotAThread as error:
                raise CorruptThread(path, str(error)) from error
            relation = _compare(document.turns, thread.turns)
            if relation == "other":
                return None
            news = thread.turns[len(document.turns) :] if relation == "shorter" else ()
            if news:
                tail = read_tail(path, conversation_id, self._folder.form)
                append_turns(path, conversation_id, tail, news, self._folder.form)
            return Kept(conversation_id, len(news), len(thread.turns) - len(news))

    def _write(self, path: Path, conversation_id: str, thread: Thread) -> None:
        document = Document(
            conversation_id=conversation_id,
            title=thread.title,
            turns=list(thread.turns),
            raw_turns=[encode_turn(turn) for turn in thread.turns],
            updated=thread.updated_text,
        )
        rewrite(path, conversation_id, document, NO_FILE, self._folder.form)


class RowsIn:
    """Writes threads into a store of rows."""

    def __init__(self, store: SqlConversationStore) -> None:
        self._store = store

    def put(self, thread: Thread) -> Kept:
        """Keep a thread, beside another one that stands under its id."""
        kept = self._put(thread.conversation_id, thread)
        if kept is None:
            kept = self._put(_other_id(thread), thread)
        # Two threads with one digest of their turns are the same thread.
        assert kept is not None
        return kept

    def _put(self, conversation_id: str, thread: Thread) -> Kept | None:
        while True:
            found = self._store.get(conversation_id)
            here = found.turns if found is not None else ()
            relation = _compare(here, thread.turns)
            if relation == "other":
                return None
            news = thread.turns[len(here) :] if relation == "shorter" else ()
            # Where somebody else was faster, it is compared again.
            if not news or self._store.add_exact(
                conversation_id,
                news,
                len(here),
                title=thread.title,
                updated_text=thread.updated_text,
            ):
                return Kept(conversation_id, len(news), len(thread.turns) - len(news))


def _compare(here: Sequence[Turn], there: Sequence[Turn]) -> Literal["shorter", "enough", "other"]:
    if not all(map(_same, here, there)):
        return "other"
    return "shorter" if len(here) < len(there) else "enough"


def _same(here: Turn, there: Turn) -> bool:
    if here.role != there.role or here.ts != there.ts:
        return False
    return here.text == there.text or REDACTED in here.text


def _other_id(thread: Thread) -> str:
    digest = hashlib.sha256()
    for turn in thread.turns:
        digest.update(encode_turn(turn).encode() + b"\n")
    mark = f"~{digest.hexdigest()[:12]}"
    return thread.conversation_id[: MAX_ID_CHARACTERS - len(mark)] + mark
