"""Turns into thread files, one writer of a thread at a time.

In come checked turns and changes; nothing comes back before it is on the disk. Every method
takes the lock of its thread, and raises OSError or StoreError with the file as it was.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from anaphora.store.disk import NO_FILE, FileChanged, Identity, identity_of, make_directory
from anaphora.store.threads.file import (
    Tail,
    append_turns,
    read_document,
    read_tail,
    rewrite,
)
from anaphora.store.threads.folder import REDACTED, ThreadFolder
from anaphora.store.threads.gojson import Document, NotAThread, contains, encode_turn
from anaphora.store.threads.locks import ThreadLocks
from anaphora.store.threads.reader import ThreadReader
from anaphora.values.conversations import NewTurn, Turn

if TYPE_CHECKING:
    from anaphora.store.threads.sidecar import Sidecar

ResultT = TypeVar("ResultT")
# A tail is some hundred bytes; few processes write more threads than this.
_TAILS = 1024
# Another program may replace a file between our read and our write, but hardly ever again.
_TRIES = 5
# A shorter text, such as "yes", is redacted in its own turn alone.
_REDACT_ELSEWHERE = 8


class ThreadWriter:
    """Writes the threads of one folder. `strict`: an unreadable file ends an append."""

    def __init__(
        self,
        folder: ThreadFolder,
        locks: ThreadLocks,
        reader: ThreadReader,
        sidecar: Sidecar | None,
        *,
        strict: bool,
    ) -> None:
        self._folder = folder
        self._locks = locks
        self._reader = reader
        self._sidecar = sidecar
        self._strict = strict
        self._swept = False
        self._mutex = Lock()
        self._tails: OrderedDict[str, Tail] = OrderedDict()

    def extend(
        self,
        conversation_id: str,
        news: Sequence[NewTurn],
        turns: Sequence[Turn],
        title: str = "",
    ) -> range:
        """Add `turns`, made from `news`, in one write; the places that they got.

        A thread that begins with them gets the title.
        """

        def add() -> range:
            path = self._folder.path(conversation_id)
            tail = self._tail(conversation_id, path)
            self._note(conversation_id, tail.count, news, turns)
            if tail.identity == NO_FILE and tail.document is not None:
                tail.document.title = title
            tail = append_turns(path, conversation_id, tail, turns, self._folder.form)
            self._remember(conversation_id, tail)
            return range(tail.count - len(turns), tail.count)

        with self._writing(conversation_id):
            return _until_unchanged(add)

    def delete(self, conversation_id: str) -> bool:
        """Remove the thread and what was set aside of it; whether there was anything."""
        if not self._folder.directory.is_dir():
            return False
        with self._writing(conversation_id):
            self._forget(conversation_id, None)
            return self._folder.remove(conversation_id)

    def set_title(self, conversation_id: str, title: str) -> bool:
        """Give the thread this title; whether there is such a thread."""

        def change(document: Document) -> bool:
            document.title = title
            return True

        with self._writing(conversation_id):
            return _until_unchanged(lambda: self._change(conversation_id, change))

    def redact(self, conversation_id: str, index: int) -> bool:
        """Redact the turn at `index`; whether there is such a turn."""
        words: list[str] = []

        def change(document: Document) -> bool:
            if not 0 <= index < len(document.turns):
                return False
            words[:] = [document.turns[index].text]
            for place in redact_turn(document, index):
                self._forget(conversation_id, place)
            return True

        with self._writing(conversation_id):
            if not _until_unchanged(lambda: self._change(conversation_id, change)):
                return False
            self._folder.remove_temporaries(conversation_id)
            self._folder.scrub(conversation_id, words[0])
            return True

    @contextmanager
    def _writing(self, conversation_id: str) -> Iterator[None]:
        make_directory(self._folder.directory)
        if not self._swept:
            self._swept = True
            self._folder.sweep(self._locks)
        with self._locks.hold(self._folder.key(conversation_id)):
            # Under the lock: whoever seals the home waits for it after having said so.
            self._folder.form.check()
            yield

    def _change(self, conversation_id: str, change: Callable[[Document], bool]) -> bool:
        path = self._folder.path(conversation_id)
        try:
            document, _opened, identity = read_document(path, conversation_id, self._folder.form)
        except FileNotFoundError:
            return False
        except NotAThread as error:
            raise self._reader.set_aside(conversation_id, path, str(error)) from error
        if not change(document):
            return False
        form = self._folder.form
        self._remember(conversation_id, rewrite(path, conversation_id, document, identity, form))
        return True

    def _tail(self, conversation_id: str, path: Path) -> Tail:
        """The end of the file, read from it unless this process left it that way."""
        with self._mutex:
            # Whoever fails to write with it must not find it again.
            known = self._tails.pop(conversation_id, None)
        if known is not None and known.identity == _identity_at(path):
            return known
        try:
            return read_tail(path, conversation_id, self._folder.form)
        except NotAThread as error:
            corrupt = self._reader.set_aside(conversation_id, path, str(error))
            if self._strict or corrupt.set_aside is None:
                raise corrupt from error
        return read_tail(path, conversation_id, self._folder.form)

    def _remember(self, conversation_id: str, tail: Tail) -> None:
        with self._mutex:
            self._tails[conversation_id] = tail
            while len(self._tails) > _TAILS:
                self._tails.popitem(last=False)

    def _note(
        self,
        conversation_id: str,
        start: int,
        news: Sequence[NewTurn],
        turns: Sequence[Turn],
    ) -> None:
        """Tell the sidecar first: a note whose turn never came is seen to be void by its hash."""
        if self._sidecar is None:
            return
        from anaphora.store.threads.sidecar import notes_of

        notes = notes_of(conversation_id, start, news, turns)
        if notes:
            self._sidecar.note_turns(notes)

    def _forget(self, conversation_id: str, index: int | None) -> None:
        if self._sidecar is not None:
            self._sidecar.forget(conversation_id, index)


def _until_unchanged(action: Callable[[], ResultT]) -> ResultT:
    """Do it again where another program, which knows no lock, came in between."""
    for _ in range(_TRIES - 1):
        try:
            return action()
        except FileChanged:
            continue
    return action()


def _identity_at(path: Path) -> Identity:
    try:
        return identity_of(path.stat())
    except FileNotFoundError:
        return NO_FILE


def redact_turn(document: Document, index: int) -> list[int]:
    """Take the words of a turn out of a document; the places of the turns that changed."""
    words = document.turns[index].text
    elsewhere = len(words.strip()) >= _REDACT_ELSEWHERE and words != REDACTED
    changed: list[int] = []
    for place, turn in enumerate(document.turns):
        text = REDACTED if place == index else turn.text
        if elsewhere and place != index:
            text = text.replace(words, REDACTED)
        if place == index or text != turn.text or (elsewhere and _hides(document, place, words)):
            document.turns[place] = replace(turn, text=text)
            document.raw_turns[place] = encode_turn(document.turns[place])
            changed.append(place)
    if elsewhere:
        document.title = document.title.replace(words, REDACTED)
        document.extras = [extra for extra in document.extras if not contains(extra[1], words)]
    return changed


def _hides(document: Document, place: int, words: str) -> bool:
    """Whether a turn has members that Go does not know, and the words are in them."""
    raw = document.raw_turns[place]
    return raw != encode_turn(document.turns[place]) and contains(raw, words)
