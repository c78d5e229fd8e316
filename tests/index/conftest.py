"""Indexes over real thread files, with the word-hashing embedder."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anaphora import ConversationStore
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.turns.index import TurnIndex
from anaphora.language.analyser import query_terms
from anaphora.testing import WordHashingEmbedder

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


class Ticking:
    """A clock that moves on by a minute whenever it is read."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


class Eager(TurnIndex):
    """Sends every vector to the ANN index before it answers."""

    def sync(self, *given: Any, **options: Any) -> Any:
        synced = super().sync(*given, **options)
        # The background writes the same one, and whoever comes second does not wait.
        self.wait()
        self.settle()
        return synced


class Bench:
    """One store, and any number of indexes over it; `cap` is theirs, but for `fresh` ones."""

    def __init__(
        self, root: Path, cap: int | None = None, kind: type[TurnIndex] = TurnIndex
    ) -> None:
        self.root = root
        self.cap = cap
        self.kind = kind
        self.store = ConversationStore(root / "conversations", clock=Ticking(), strict=True)
        self.service = EmbedderService(spec_for(WordHashingEmbedder(48, window=6)))
        self.opened: list[TurnIndex] = []

    def index(self, name: str = "index", service: EmbedderService | None = None) -> TurnIndex:
        place, service = self.root / name, service or self.service
        index = self.kind(place, self.store, None, service, cap=self.cap)
        self.opened.append(index)
        return index

    def fresh(self) -> TurnIndex:
        """An index made from nothing over what the files hold now."""
        name = f"fresh-{len(self.opened)}"
        index = TurnIndex(self.root / name, self.store, None, self.service, cap=None)
        self.opened.append(index)
        index.sync(embed="all")
        return index

    def close(self) -> None:
        for index in self.opened:
            index.close()


NO_ANN = find_spec("lancedb") is None
EXACT_AND_BULK = pytest.mark.parametrize(
    "bench",
    [
        pytest.param(None, id="exact"),
        pytest.param(0, id="ann", marks=pytest.mark.skipif(NO_ANN, reason="no LanceDB")),
    ],
    indirect=True,
)
"""Runs a test with all vectors in memory, and with all of them in LanceDB."""


@pytest.fixture
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    cap = getattr(request, "param", None)
    bench = Bench(tmp_path, cap, TurnIndex if cap is None else Eager)
    yield bench
    bench.close()


def facts(index: TurnIndex, queries: tuple[str, ...] = ()) -> dict[str, Any]:
    """All that an index says, in an order that does not depend on how it came to be.

    A score is rounded: vectors are kept in 16 bits, and sums depend on their order.
    """
    view = index.view()
    table = view.table
    names = table.conversations
    keys = [
        (names[c], int(p)) for c, p in zip(table.conversation.tolist(), table.position, strict=True)
    ]

    def key_of(row: int) -> tuple[str, int] | None:
        return keys[row] if row >= 0 else None

    texts = index.texts_of(view, range(len(view)))
    sessions: dict[int, list[tuple[str, int]]] = {}
    for row, session in enumerate(table.session.tolist()):
        sessions.setdefault(session, []).append(keys[row])
    rows = {
        keys[row]: (
            key_of(int(table.previous[row])),
            key_of(int(table.following[row])),
            int(table.role[row]),
            None if table.speaker[row] < 0 else table.speakers[table.speaker[row]],
            float(table.ts[row]),
            int(table.length[row]),
            int(table.flags[row]),
            texts[row],
        )
        for row in range(len(view))
    }
    found: dict[str, Any] = {
        "conversations": sorted(names),
        "rows": rows,
        "sessions": sorted(sorted(s) for s in sessions.values()),
    }
    for query in queries:
        words = view.words(query_terms(query))
        cosine = view.cosine(index._embedder.query(query))
        found[f"words {query}"] = {
            k: round(float(w), 3) for k, w in zip(keys, words, strict=True) if w
        }
        found[f"cosine {query}"] = {
            k: round(float(np.round(c, 3)), 2) for k, c in zip(keys, cosine, strict=True)
        }
    return found


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """What two indexes say is the same, but for a cosine on the edge of its rounding."""
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        near = key.startswith("cosine")
        assert found[key] == (pytest.approx(value, abs=0.011) if near else value), key
