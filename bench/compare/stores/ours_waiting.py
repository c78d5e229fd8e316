"""Anaphora where a user waits for it: an import of a conversation, the files of a project.

In: texts of one conversation, or of files, whose ids are their paths. Out: ids. `import_` and
`index_project` return once words answer; `ready` waits for the vectors that are made behind them.
"""

from __future__ import annotations

from anaphora import Memory
from anaphora.values.conversations import ImportedConversation, ImportedTurn
from bench.compare.store import Opening, Texts

__all__ = ["Conversations", "Project"]


class _Home:
    """A home in the folder, opened with defaults."""

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


class Conversations(_Home):
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
        found = self._memory.recall_conversation(space, query)
        return [str(hit.index) for hit in list(found)[:k]]


class Project(_Home):
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
        found = self._memory.recall_context(query, project=space)
        return [target.path for target in found.primary_targets[:k]]
