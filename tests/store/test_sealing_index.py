"""The index of a sealed home: the same answers, and nothing to read on the disk."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from tests.sqlite_driver import dbapi2

from anaphora import ConversationStore
from anaphora.core.analyser import query_terms
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.turns.index import TurnIndex
from anaphora.store.db.engine import Database, open_database
from anaphora.store.home.conversion import rotate_keys
from anaphora.store.home.opening import open_home
from anaphora.store.home.sealing import Home, Sealing
from anaphora.store.threads.sidecar import Sidecar
from anaphora.testing import WordHashingEmbedder

pytestmark = pytest.mark.internal

pytest.importorskip("cryptography")

WORDS = ("heron", "estuary", "lighthouse", "ferry", "harbour", "Persephone")


class Lane:
    """What the facade opens for one namespace."""

    def __init__(self, root: Path, encrypt: str | None) -> None:
        self.home = Home(root, root / "conversations")
        self.sealing: Sealing = open_home(self.home, encrypt)  # type: ignore[arg-type]
        self.truth: Database = open_database(root / "anaphora.db")
        self.sidecar = Sidecar(self.truth, "default", self.sealing.rows)
        self.store = ConversationStore(
            self.home.conversations,
            strict=True,
            sidecar=self.sidecar,
            form=self.sealing.threads("default"),
        )
        self.service = EmbedderService(spec_for(WordHashingEmbedder(48, window=6)))
        self.index = TurnIndex(
            root / "index" / "default",
            self.store,
            self.sidecar,
            self.service,
            sealer=self.sealing.index("default"),
        )

    def fill(self) -> None:
        at = datetime(2026, 5, 1, tzinfo=UTC)
        for number in range(120):
            text = f"the {WORDS[number % 5]} at {WORDS[(number + 2) % 5]} {number % 17}"
            at += timedelta(minutes=1)
            self.store.append(f"trip to {WORDS[number % 3]}", "user", text, ts=at, speaker=WORDS[5])
        self.index.sync(embed="all")

    def close(self) -> None:
        self.index.close()
        self.truth.close()


@pytest.fixture
def lanes(tmp_path: Path) -> Iterator[tuple[Lane, Lane]]:
    both = Lane(tmp_path / "clear", None), Lane(tmp_path / "sealed", "file")
    for lane in both:
        lane.fill()
    yield both
    for lane in both:
        lane.close()


def answers(index: TurnIndex, service: EmbedderService) -> list[tuple[object, ...]]:
    """What the index says of each turn, in the order of conversations and positions."""
    view = index.view()
    table = view.table
    columns = [
        np.round(view.words(query_terms("the heron of the lighthouse 3")), 4),
        np.round(view.cosine(service.query("the ferry in the harbour")), 3),
    ]
    idf = view.idf(query_terms("heron nowhere"))
    rows = [
        (table.conversations[int(table.conversation[i])], int(table.position[i]),
         *(float(column[i]) for column in columns))
        for i in range(len(view))
    ]  # fmt: skip
    return [tuple(np.round(idf, 4).tolist()), *sorted(rows)]


def test_a_sealed_index_is_read_back_from_the_disk(lanes: tuple[Lane, Lane]) -> None:
    """Another process finds the sealed index whole: nothing is embedded a second time."""
    _, sealed = lanes
    before = answers(sealed.index, sealed.service)
    sealed.close()
    again = Lane(sealed.home.root, None)
    assert again.sealing.sealed
    followed = again.index.sync(embed="none")
    assert (followed.new_turns, followed.pending) == (0, 0)
    assert answers(again.index, again.service) == before
    again.close()


def test_a_damaged_sealed_index_is_made_again(lanes: tuple[Lane, Lane]) -> None:
    """What was changed in the index file is not shown: the index is made again from truth."""
    _, sealed = lanes
    before = answers(sealed.index, sealed.service)
    sealed.close()
    outside = dbapi2.connect(str(sealed.home.root / "index" / "default" / "turns.sqlite"))
    outside.execute("UPDATE turns SET speaker = 'an1d:AAAA' WHERE id = 3")
    outside.commit()
    outside.close()
    again = Lane(sealed.home.root, None)
    again.index.sync(embed="all")
    assert answers(again.index, again.service) == before
    again.close()


def test_an_index_of_another_key_is_made_again(lanes: tuple[Lane, Lane]) -> None:
    """After a deep rotation, and after a change of form, no row of the old index is used."""
    _, sealed = lanes
    before = answers(sealed.index, sealed.service)
    sealed.close()
    kept = {p.name: p.read_bytes() for p in (sealed.home.root / "index" / "default").glob("turns*")}
    rotate_keys(sealed.home)
    assert not (sealed.home.root / "index").exists()
    (sealed.home.root / "index" / "default").mkdir(parents=True)
    for name, data in kept.items():
        (sealed.home.root / "index" / "default" / name).write_bytes(data)
    again = Lane(sealed.home.root, None)
    assert again.index.sync(embed="all").new_turns == 120
    assert answers(again.index, again.service) == before
    again.close()
