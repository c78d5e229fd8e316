"""Anaphora: lasting memories, a namespace a space, as `remember_many` and `recall` keep and find.

In: texts with their times. Out: ids. A text that says what is there already reinforces it: then one
memory stands for several texts, and is given back under the id of the first.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

from anaphora import Memory, NewMemory
from anaphora.embed.service import spec_for
from bench.compare.store import Opening, Texts
from bench.fit_project import Kept
from bench.timed import TimedEmbedder

__all__ = ["Anaphora"]


class Anaphora:
    """A home in the folder, opened with defaults; only the clock and known vectors are given."""

    def __init__(self, opening: Opening) -> None:
        inner = Kept(opening.known) if opening.known else spec_for("minilm").load()
        self._timed = TimedEmbedder(inner)
        now = datetime.fromisoformat(opening.now) if opening.now else None
        self._memory = Memory.open(
            opening.folder / "home",
            embedder=self._timed,
            clock=(lambda: now) if now is not None else None,
        )
        # Which text each memory is: the others are given ids of the caller's own.
        self._known = opening.folder.parent / "anaphora-ids.json"
        self._ids: dict[str, str] = {}
        if self._known.is_file():
            self._ids = json.loads(self._known.read_text("utf-8"))

    @property
    def embedding(self) -> float:
        """Seconds inside the embedder."""
        return self._timed.seconds + self._timed.query_seconds

    def add(self, space: str, texts: Texts) -> None:
        """`remember` of one, `remember_many` of several."""
        new = [
            NewMemory(text, source=one, created_at=_time(at) if at else None)
            for one, text, at in texts
        ]
        scoped = self._memory.scoped(space)
        if len(new) == 1:
            one = new[0]
            done = [scoped.remember(one.text, source=one.source, created_at=one.created_at)]
        else:
            done = scoped.remember_many(new)
        for (item, _, _), kept in zip(texts, done, strict=True):
            self._ids.setdefault(kept.id, item)

    def search(self, space: str, query: str, k: int) -> list[str]:
        """`recall` with its defaults."""
        found = self._memory.scoped(space).recall(query, top_k=k)
        if found.degraded:
            raise RuntimeError(f"recall was degraded: {found.degraded}")
        return [self._ids.get(hit.id, hit.id) for hit in found]

    def every(self, space: str) -> list[tuple[str, str]]:
        """`list`, a page after the other; a memory has the id of the first text it was."""
        found, cursor = [], None
        while True:
            page = self._memory.scoped(space).list(limit=500, cursor=cursor)
            found += [(one.sources[0], one.text) for one in page]
            cursor = page.cursor
            if cursor is None:
                return found

    def delete(self, space: str, item: str) -> None:
        """`forget` by the memory's id."""
        own = next((one for one, text in self._ids.items() if text == item), None)
        if own is None:
            # A text that restated another one.
            self._memory.scoped(space).forget(filters={"source": item})
        else:
            self._memory.scoped(space).forget(own)

    def close(self) -> None:
        """`close`."""
        self._memory.close()
        self._known.write_text(json.dumps(self._ids), "utf-8")


def _time(at: str) -> datetime:
    return datetime.fromisoformat(at).astimezone(UTC)
