"""Conversations out of their files, with the speakers that the sidecar knows.

In come ids; out come threads and summaries. A file that Go would refuse is set aside, never
overwritten, and CorruptThread is raised. Reading takes no lock: a file is replaced in one step.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.errors import CorruptThread
from anaphora.store.disk import Identity, identity_of
from anaphora.store.hashing import stored_turn_hash
from anaphora.store.threads.file import read_document
from anaphora.store.threads.folder import ThreadFolder
from anaphora.store.threads.gojson import Document, NotAThread
from anaphora.store.threads.gotime import nanoseconds, read_time
from anaphora.store.threads.locks import ThreadLocks
from anaphora.store.threads.new_turn import summary_of
from anaphora.values.conversations import Thread, ThreadProblem, ThreadSummary, Turn

if TYPE_CHECKING:
    from anaphora.store.threads.sidecar import Sidecar, TurnNote

_log = logging.getLogger("anaphora")


class ThreadReader:
    """Reads the threads of one folder."""

    def __init__(self, folder: ThreadFolder, locks: ThreadLocks, sidecar: Sidecar | None) -> None:
        self._folder = folder
        self._locks = locks
        self._sidecar = sidecar
        self._summaries: dict[str, tuple[Identity, int, ThreadSummary]] = {}
        self._stuck: dict[Path, ThreadProblem] = {}

    def thread(self, conversation_id: str, last: int | None = None) -> Thread | None:
        """The conversation, or its `last` turns. Raises OSError, CorruptThread, StoreError."""
        document = self._document(conversation_id, self._folder.path(conversation_id))
        if document is None:
            return None
        start = 0 if last is None else max(0, len(document.turns) - last)
        return Thread(
            conversation_id=conversation_id,
            turns=self._with_notes(conversation_id, start, document.turns[start:]),
            updated=read_time(document.updated),
            updated_text=document.updated,
            title=document.title,
        )

    def summaries(self) -> tuple[ThreadSummary, ...]:
        """Every thread that can be read, newest first. Raises OSError if the folder cannot be."""
        fresh: dict[str, tuple[Identity, int, ThreadSummary]] = {}
        for conversation_id, path in self._folder.files():
            try:
                found = self._summary(conversation_id, path)
            except CorruptThread:
                continue
            except OSError as error:
                # One file that cannot be opened must not hide the others.
                self._keep_problem(conversation_id, path, error.strerror or str(error))
                continue
            if found is not None:
                fresh[conversation_id] = found
        self._summaries = fresh
        ordered = sorted(fresh.values(), key=lambda f: (-f[1], f[2].conversation_id))
        return tuple(summary for _, _, summary in ordered)

    def problems(self) -> tuple[ThreadProblem, ...]:
        """What could not be read: still in its place, or set aside. Raises OSError."""
        stuck = [problem for path, problem in self._stuck.items() if path.exists()]
        return (*stuck, *self._folder.problems())

    def set_aside(self, conversation_id: str, path: Path, reason: str) -> CorruptThread:
        """Move an unreadable file out of the way; the error that says so.

        The caller holds the lock of the thread. Where the file cannot be moved it stays.
        """
        try:
            place = self._folder.set_aside(path)
        except OSError as error:
            why = f"{reason}; it could not be set aside: {error.strerror or error}"
            self._keep_problem(conversation_id, path, why)
            return CorruptThread(path, why)
        corrupt = CorruptThread(path, reason, place)
        _log.warning("%s", corrupt)
        return corrupt

    def _document(self, conversation_id: str, path: Path) -> Document | None:
        try:
            return self._read(conversation_id, path)
        except NotAThread as error:
            reason = str(error)
        try:
            with self._locks.hold(self._folder.key(conversation_id)):
                # Whoever held the lock may have set it aside, or put a good one in its place.
                try:
                    return self._read(conversation_id, path)
                except NotAThread as error:
                    raise self.set_aside(conversation_id, path, str(error)) from error
        except OSError as error:
            why = f"{reason}; it could not be set aside: {error.strerror or error}"
            self._keep_problem(conversation_id, path, why)
            raise CorruptThread(path, why) from error

    def _read(self, conversation_id: str, path: Path) -> Document | None:
        try:
            document, _opened, _identity = read_document(path, conversation_id, self._folder.form)
        except FileNotFoundError:
            # It may be gone because the home was sealed a moment ago.
            self._folder.form.check()
            return None
        self._stuck.pop(path, None)
        return document

    def _summary(
        self, conversation_id: str, path: Path
    ) -> tuple[Identity, int, ThreadSummary] | None:
        known = self._summaries.get(conversation_id)
        try:
            identity = identity_of(path.stat())
        except FileNotFoundError:
            return None
        if known is not None and known[0] == identity:
            return known
        document = self._document(conversation_id, path)
        if document is None:
            return None
        # The identity is older than the bytes, never newer: at worst it is read once more.
        return identity, nanoseconds(document.updated), summary_of(conversation_id, document)

    def _with_notes(
        self, conversation_id: str, start: int, turns: Sequence[Turn]
    ) -> tuple[Turn, ...]:
        if self._sidecar is None:
            return tuple(turns)
        notes = self._sidecar.turn_notes(conversation_id, start)
        return tuple(_with_note(turn, notes.get(start + i)) for i, turn in enumerate(turns))

    def _keep_problem(self, conversation_id: str, path: Path, reason: str) -> None:
        if path not in self._stuck:
            _log.warning("cannot read %s: %s", path, reason)
        self._stuck[path] = ThreadProblem(conversation_id, str(path), reason)


def _with_note(turn: Turn, note: TurnNote | None) -> Turn:
    """A note whose hash is another turn's is void: its own turn is not here."""
    if note is None or note.forgotten or note.turn_hash != stored_turn_hash(turn.role, turn.text):
        return turn
    return replace(turn, speaker=note.speaker, source=note.source)
