"""Anaphora as a contestant: lasting memories, an imported conversation, an indexed project.

In: texts with their times. Out: ids. A text that says what is there already reinforces it: then one
memory stands for several texts, and is given back under the id of the first.
"""

from __future__ import annotations

import json
import re
from contextlib import closing
from datetime import UTC, datetime
from typing import Final

import numpy as np

from anaphora import Memory, NewMemory, Recall
from anaphora.store.db import sqlite
from anaphora.values.conversations import READ_AWAITED, ImportedConversation, ImportedTurn
from anaphora.values.memories import MemoryHit
from bench.compare.stores import Opening, Texts, read_durability
from bench.compare.vectors import Spent
from bench.embedder import KeptEmbedder
from bench.homes import load_reader

__all__ = ["Conversations", "Memories", "Project", "ReadMemories"]

_NUMBER: Final = re.compile(r"\d+\.\d+(e-?\d+)?")


class Memories:
    """A namespace a space, opened with defaults; only the clock and known vectors are given."""

    read: int | None = None

    def __init__(self, opening: Opening) -> None:
        self._embedder = KeptEmbedder(folder=opening.known, ask_anew=opening.known is None)
        now = datetime.fromisoformat(opening.now) if opening.now else None
        self._home = opening.folder / "home"
        self._memory = Memory.open(
            self._home,
            embedder=self._embedder,
            clock=(lambda: now) if now is not None else None,
        )
        # Which text each memory is: the others are given ids of the caller's own.
        self._file = opening.folder.parent / "anaphora-ids.json"
        self._ids: dict[str, str] = {}
        if self._file.is_file():
            self._ids = json.loads(self._file.read_text("utf-8"))
        self._records = {item: record for record, item in self._ids.items()}
        load_reader(self._memory, self.read or 0)

    @property
    def embedding(self) -> Spent:
        """Seconds inside the embedder."""
        return self._embedder.spent.copy()

    @property
    def durability(self) -> str:
        """What SQLite is told for the database of truth."""
        with closing(sqlite.connect(self._home / "anaphora.db")) as connection:
            return read_durability(connection)

    @property
    def judged(self) -> int:
        """Candidates that the reader has read until now."""
        reader = self._memory._container.reader
        return 0 if reader is None else reader.judged

    def add(self, space: str, texts: Texts) -> None:
        """`remember` of one, `remember_many` of several."""
        new = [
            NewMemory(text, source=name, created_at=_time(at) if at else None)
            for name, text, at in texts
        ]
        self._space, scoped = space, self._memory.scoped(space)
        if len(new) == 1:
            (only,) = new
            done = [scoped.remember(only.text, source=only.source, created_at=only.created_at)]
        else:
            done = scoped.remember_many(new)
        for (item, _, _), record in zip(texts, done, strict=True):
            self._records[self._ids.setdefault(record.id, item)] = record.id

    def search(self, space: str, query: str, k: int) -> list[str]:
        """`recall` with its defaults."""
        return [self._ids.get(hit.id, hit.id) for hit in self._recall(space, query, k)]

    def answer(self, space: str, query: str, k: int) -> list[tuple[str, float]]:
        """Whole hits without their numbers, and their scores."""
        return [(_NUMBER.sub("", repr(hit)), hit.score) for hit in self._recall(space, query, k)]

    def _recall(self, space: str, query: str, k: int) -> Recall[MemoryHit]:
        recall = self._memory.scoped(space).recall(query, top_k=k, read=self.read)
        if recall.degraded:
            raise RuntimeError(f"recall was degraded: {recall.degraded}")
        return recall

    def ready(self) -> None:
        """Wait for the vectors of the space that was added to last."""
        self._memory.scoped(self._space).ready()

    def delete(self, space: str, item: str) -> None:
        """`forget` by the memory's id, or by its source where the text restated another one."""
        scoped = self._memory.scoped(space)
        own = self._records.get(item)
        scoped.forget(filters={"source": item}) if own is None else scoped.forget(own)

    def close(self) -> None:
        """`close`."""
        self._memory.close()
        self._file.write_text(json.dumps(self._ids), "utf-8")


class ReadMemories(Memories):
    """The same with the reader on, as servers and the command line ask by default."""

    read = READ_AWAITED


class _Waited:
    """A home where a user waits: calls return once words answer, `ready` waits for the vectors."""

    embedding = np.zeros(2)
    durability = ""

    def __init__(self, opening: Opening) -> None:
        self._folder = opening.folder
        self._memory = Memory.open(opening.folder / "home")
        # The others load the model when they are opened.
        self._memory.remember("The model is loaded.")

    def ready(self) -> None:
        """Wait for the vectors."""
        self._memory.ready()

    def close(self) -> None:
        """`close`."""
        self._memory.close()


class Conversations(_Waited):
    """A conversation a space, imported at once."""

    def add(self, space: str, texts: Texts) -> None:
        """`import_`."""
        before = [None, *(key for key, _, _ in texts)]
        turns = tuple(
            ImportedTurn(key, parent, "user", text)
            for parent, (key, text, _) in zip(before, texts, strict=False)
        )
        self._memory.import_([ImportedConversation("compare", space, space, turns)])

    def search(self, space: str, query: str, k: int) -> list[str]:
        """`recall_conversation`."""
        hits = list(self._memory.recall_conversation(space, query))
        return [str(hit.index) for hit in hits[:k]]


class Project(_Waited):
    """A folder a space."""

    def add(self, space: str, texts: Texts) -> None:
        """`index_project` of the files, which are written first: that is counted, too."""
        root = self._folder / space
        for path, text, _ in texts:
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode("utf-8", "replace"))
        self._memory.index_project(root, name=space)

    def search(self, space: str, query: str, k: int) -> list[str]:
        """`recall_context`."""
        package = self._memory.recall_context(query, project=space)
        return [target.path for target in package.primary_targets[:k]]


def _time(at: str) -> datetime:
    return datetime.fromisoformat(at).astimezone(UTC)
