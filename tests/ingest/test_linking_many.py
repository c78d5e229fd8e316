"""What is close is linked among thousands as among few, one at a time and many at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from anaphora import Memory

# More than are compared one by one, of more directions than their short forms have.
GROUPS, EACH, WIDTH = 450, 6, 192
Floats = NDArray[np.float32]


def _words(group: int, number: int) -> str:
    return f"house {group} keeps item {number} in room {group * 31 + number}"


class GroupedEmbedder:
    """Texts of one group lie at 0.94 to each other, and at nothing to all others."""

    name = "grouped:1"
    dimensions = WIDTH

    def __init__(self) -> None:
        rng = np.random.default_rng(11)
        middles = rng.standard_normal((GROUPS, WIDTH))
        apart = rng.standard_normal((GROUPS, EACH, WIDTH))
        middles /= np.linalg.norm(middles, axis=-1, keepdims=True)
        apart /= np.linalg.norm(apart, axis=-1, keepdims=True)
        rows = middles[:, None] + apart / 4.0
        rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
        places = ((group, number) for group in range(GROUPS) for number in range(EACH))
        self._rows = {_words(*place): rows[place].astype(np.float32) for place in places}
        others = rng.standard_normal((64, WIDTH))
        others /= np.linalg.norm(others, axis=-1, keepdims=True)
        self._others = others.astype(np.float32)

    def embed(self, texts: Sequence[str]) -> list[Floats]:
        """One vector a text."""
        return [self._row(text)[None] for text in texts]

    def embed_query(self, text: str) -> Floats:
        """The vector of a question."""
        return self._row(text)

    def query_key(self, text: str) -> str:
        """A question is known by its words."""
        return text

    def _row(self, text: str) -> Floats:
        found: Floats = self._rows.get(text, self._others[sum(text.encode()) % 64])
        return found


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    folder: Path = tmp_path_factory.mktemp("linking") / "home"
    with Memory.open(folder, embedder=GroupedEmbedder()) as opened:
        opened.ready()
        yield opened


@pytest.mark.promise("remember.links")
def test_the_close_ones_of_thousands_are_linked(memory: Memory) -> None:
    """Each of a batch, and each of those that come one by one after it, has its own group."""
    ids: dict[str, int] = {}
    places = [(group, number) for number in range(EACH - 1) for group in range(GROUPS)]
    texts = [_words(*place) for place in places]
    for (group, _), done in zip(places, memory.remember_many(texts), strict=True):
        ids[done.id] = group
        assert (done.action, done.related) == ("added", ())  # Vectors of many come behind.
    memory.reindex(links=False)
    for done in memory.remember_many(texts):
        # Those that came later are linked to it, too.
        assert (done.action, len(done.related)) == ("reinforced", EACH - 2)
        assert {ids[one] for one in done.related} == {ids[done.id]}
    for group in range(0, GROUPS, 9):
        alone = memory.remember(_words(group, EACH - 1))
        assert len(alone.related) == EACH - 1
        assert {ids[one] for one in alone.related} == {group}
