"""What has no vector gets one, group by group; a text that cannot be embedded hides no other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from anaphora.embed.base import Vectors
from anaphora.embed.hashing import WordHashingEmbedder
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.errors import EmbeddingError
from anaphora.index import backlog as module
from anaphora.index.backlog import Backlog

pytestmark = pytest.mark.internal


class Refusing(WordHashingEmbedder):
    """Cannot embed a text with "bad" in it; counts what it is given."""

    def __init__(self) -> None:
        super().__init__(8)
        self.given: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        self.given += texts
        if any("bad" in text for text in texts):
            raise EmbeddingError("it is bad")
        return super().embed(texts)


class Shelf:
    """Texts by name, and those that have a vector."""

    def __init__(self, names: Sequence[str]) -> None:
        self.embedder = Refusing()
        self.names = sorted(names)
        self.done: list[str] = []
        service = EmbedderService(spec_for(self.embedder))
        self.backlog = Backlog[str](service, str, lambda name: f"text of {name}", self.put)

    def put(self, made: Sequence[tuple[str, Vectors]]) -> int:
        self.done += [name for name, _ in made]
        return len(made)

    def without(self, after: str, limit: int) -> Sequence[str]:
        left = [one for one in self.names if one > after and one not in self.done]
        return left[:limit]


def test_all_get_theirs_but_those_that_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over several groups; what failed is named once, and not tried again."""
    monkeypatch.setattr(module, "GROUP", 2)
    shelf, told = Shelf(["a", "b", "bad c", "d", "e"]), []
    filled = shelf.backlog.fill(shelf.without, progress=lambda *sums: told.append(sums))
    assert (filled, shelf.done) == ((4, 1), ["a", "b", "d", "e"])
    assert told == [(2, 2), (3, 4), (4, 5)]
    assert isinstance(shelf.backlog.failure, EmbeddingError)
    tried = len(shelf.embedder.given)
    assert shelf.backlog.fill(shelf.without) == (0, 1)
    assert len(shelf.embedder.given) == tried


def test_no_more_than_wanted() -> None:
    """`limit` counts what got a vector; the next call goes on."""
    shelf = Shelf(["a", "b", "c"])
    assert shelf.backlog.fill(shelf.without, limit=2) == (2, 0)
    assert shelf.backlog.failure is None
    assert shelf.backlog.fill(shelf.without) == (1, 0)
    assert shelf.done == ["a", "b", "c"]
