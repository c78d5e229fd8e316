"""A memory to fill with projects and notes, and to ask about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from anaphora import Embedder, IndexReport, Memory, RecallPackage, WarmUp


class ContextDesk:
    """Projects and notes of one memory, in the short words of the tests."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._said: set[str] = set()

    def add(
        self, root: Path, files: Mapping[str, str], name: str | None = None, *, embed: bool = True
    ) -> IndexReport:
        """Write a project's files and index them."""
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        return self.memory.index_project(root, name=name, embed=embed)

    def note(self, text: str, **given: Any) -> str:
        """Save an observation; its id."""
        return self.memory.observe(text, **given).id

    def diary(self, text: str) -> str:
        """Save a diary entry; its id."""
        return self.memory.write_diary(text).id

    def once(self, text: str, kind: Any) -> None:
        """Save an observation unless it was saved before."""
        if text not in self._said:
            self._said.add(text)
            self.note(text, kind=kind)

    def recall(self, focus: Any, **given: Any) -> RecallPackage:
        """A package."""
        return self.memory.recall_context(focus, **given)

    def warm_up(self, topic: str | None = None, **given: Any) -> WarmUp:
        """What a new session should know."""
        return self.memory.warm_up(topic, **given)


@contextmanager
def context_desk(
    tmp_path: Path, clock: Callable[[], datetime], embedder: str | Embedder = "hashing"
) -> Iterator[ContextDesk]:
    """A desk over an empty home, its embedder loaded."""
    with Memory.open(tmp_path / "home", embedder=embedder, clock=clock) as memory:
        memory.ready(60)
        yield ContextDesk(memory)
