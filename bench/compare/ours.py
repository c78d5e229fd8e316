"""Anaphora as a contestant: lasting memories, an imported conversation, an indexed project.

In: texts with their times. Out: ids. A text that says what is there already reinforces it: then one
memory stands for several texts, and is given back under the id of the first.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

from anaphora import Memory, NewMemory
from anaphora.values.conversations import ImportedConversation, ImportedTurn
from bench.compare.stores import Opening, Texts
from bench.embedder import KeptEmbedder

__all__ = ["Conversations", "Memories", "Project"]


class Memories:
    """A namespace a space, opened with defaults; only the clock and known vectors are given."""

    def __init__(self, opening: Opening) -> None:
        self._embedder = KeptEmbedder(folder=opening.known, ask_anew=opening.known is None)
        now = datetime.fromisoformat(opening.now) if opening.now else None
        self._memory = Memory.open(
            opening.folder / "home",
            embedder=self._embedder,
            clock=(lambda: now) if now is not None else None,
        )
        # Which text each memory is: the others are given ids of the caller's own.
        self._file = opening.folder.parent / "anaphora-ids.json"
        self._ids: dict[str, str] = {}
        if self._file.is_file():
            self._ids = json.loads(self._file.read_text("utf-8"))

    @property
    def embedding(self) -> float:
        """Seconds inside the embedder."""
        return self._embedder.seconds + self._embedder.query_seconds

    def add(self, space: str, texts: Texts) -> None:
        """`remember` of one, `remember_many` of several."""
        new = [
            NewMemory(text, source=name, created_at=_time(at) if at else None)
            for name, text, at in texts
        ]
        scoped = self._memory.scoped(space)
        if len(new) == 1:
            (only,) = new
            done = [scoped.remember(only.text, source=only.source, created_at=only.created_at)]
        else:
            done = scoped.remember_many(new)
        for (item, _, _), record in zip(texts, done, strict=True):
            self._ids.setdefault(record.id, item)

    def search(self, space: str, query: str, k: int) -> list[str]:
        """`recall` with its defaults."""
        recall = self._memory.scoped(space).recall(query, top_k=k)
        if recall.degraded:
            raise RuntimeError(f"recall was degraded: {recall.degraded}")
        return [self._ids.get(hit.id, hit.id) for hit in recall]

    def delete(self, space: str, item: str) -> None:
        """`forget` by the memory's id, or by its source where the text restated another one."""
        scoped = self._memory.scoped(space)
        own = next((record for record, text in self._ids.items() if text == item), None)
        scoped.forget(filters={"source": item}) if own is None else scoped.forget(own)

    def close(self) -> None:
        """`close`."""
        self._memory.close()
        self._file.write_text(json.dumps(self._ids), "utf-8")


class _Waited:
    """A home where a user waits: calls return once words answer, `ready` waits for the vectors."""

    embedding = 0.0

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
