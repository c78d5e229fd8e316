"""Beyond the cap the vectors of turns lie in LanceDB, and answers are as right as before."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import python

from anaphora import NewTurn
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.turns import vectors as turn_bulk
from anaphora.index.turns.index import TurnIndex
from anaphora.index.turns.view import TurnView
from anaphora.index.vectors.ann import AnnMeta, AnnStore, Batch, available
from anaphora.index.vectors.matrix import from_float16
from anaphora.store.crypto.cipher import Keys
from anaphora.store.crypto.index import SealedIndex
from anaphora.testing import WordHashingEmbedder

from .conftest import Bench, Eager, facts

pytestmark = pytest.mark.internal

needs_lancedb = pytest.mark.skipif(not available(), reason="the extra `large` is not installed")

SAID = "tea red dog cat paris vienna lock invoice train river stone apple green seven"
WORDS = tuple(SAID.split(" "))
QUERIES = ("red cat", "the train to vienna", "invoice seven", "apple stone river dog tea")


@pytest.fixture
def bulky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterable[Bench]:
    """A bench whose indexes may have an ANN index from the first vector on."""
    # As many as there are in these tests: then answers are those of the scan for every turn.
    monkeypatch.setattr(turn_bulk, "NEAREST", 1000)
    bench = Bench(tmp_path, cap=0, kind=Eager)
    yield bench
    bench.close()


def fill(bench: Bench, threads: int = 4, turns: int = 60, seed: int = 1) -> None:
    """Texts of one to three parts; some are said in several threads."""
    rng = random.Random(seed)
    said = [" ".join(rng.choices(WORDS, k=rng.randrange(2, 15))) for _ in range(40)]
    for thread in range(threads):
        news = []
        for n in range(turns):
            text = rng.choice(said)
            news.append(NewTurn("user", text if n % 4 == 0 else f"{text} unit{thread}x{n}"))
        bench.store.extend(f"t{thread}", news)


def in_bulk(view: TurnView) -> int:
    return 0 if view._ann is None else len(view._ann.ids)


def cosines(index: TurnIndex, query: str) -> np.ndarray[Any, Any]:
    return index.view().cosine(index._embedder.query(query))


def assert_alike(index: TurnIndex, fresh: TurnIndex) -> None:
    found, expected = facts(index, QUERIES), facts(fresh, QUERIES)
    assert found["rows"] == expected["rows"]
    for query in QUERIES:
        mine, theirs = cosines(index, query), cosines(fresh, query)
        keys = [list(facts(one)["rows"]) for one in (index, fresh)]
        assert dict(zip(keys[0], mine.round(3), strict=True)) == pytest.approx(
            dict(zip(keys[1], theirs.round(3), strict=True)), abs=2e-3
        )


@needs_lancedb
def test_answers_from_the_bulk_are_those_of_the_scan(bulky: Bench) -> None:
    """With all vectors in LanceDB, each turn has the cosine that an exact scan gives it, also
    where a text has several parts, is said in several threads, or is newer than the ANN index."""
    fill(bulky)
    index = bulky.index()
    index.sync(embed="all")
    assert in_bulk(index.view()) == index.check().vectors > 100
    assert index._core.state.parts == 0
    assert_alike(index, bulky.fresh())
    bulky.store.append("t0", "user", "a newer red cat")
    TurnIndex.sync(index)
    assert index._core.state.parts == 1
    assert_alike(index, bulky.fresh())
    # What is newer goes there too, behind what is there.
    assert index.settle()
    assert index._core.state.parts == 0
    assert_alike(index, bulky.fresh())
    index.close()
    assert_alike(Bench.index(bulky), bulky.fresh())


@needs_lancedb
def test_the_nearest_of_the_bulk_have_their_cosine(
    bulky: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the ANN index, the nearest have exact cosines and all others 0; turns that are asked about
    have theirs, however far they are; what is newer than the ANN index always has its own."""
    monkeypatch.setattr(turn_bulk, "NEAREST", 20)
    fill(bulky)
    index = bulky.index()
    index.sync(embed="all")
    bulky.store.append("t1", "user", "nothing alike zzz")
    TurnIndex.sync(index)
    view, fresh = index.view(), bulky.fresh().view()
    for query in QUERIES:
        vector = bulky.service.query(query)
        found, expected = view.cosine(vector), fresh.cosine(vector)
        order = dict(zip(keys_of(fresh), expected, strict=True))
        known = [(k, c) for k, c in zip(keys_of(view), found, strict=True) if c]
        assert 15 < len(known) < 120
        assert all(abs(order[k] - c) < 2e-3 for k, c in known)
        best = sorted(order.values())[-5]
        assert all(c for k, c in zip(keys_of(view), found, strict=True) if order[k] > best)
        rows = view.rows("t3")
        also = view.cosine(vector, also=rows)
        scoped = view.cosine(vector, rows)[rows]
        for known_ones in (scoped, also[rows]):
            assert known_ones == pytest.approx([order["t3", p] for p in range(60)], abs=2e-3)
        assert ((found == 0) | (also == found)).all()
    newest = int(view.rows("t1")[-1])
    assert view.cosine(bulky.service.query("zzz"))[newest] > 0.4


def keys_of(view: TurnView) -> list[tuple[str, int]]:
    table = view.table
    names = [table.conversations[c] for c in table.conversation.tolist()]
    return list(zip(names, table.position.tolist(), strict=True))


@needs_lancedb
@pytest.mark.promise("index.forgets")
@pytest.mark.parametrize("how", ["redact", "delete"])
def test_a_forgotten_vector_is_gone_from_the_disk(bulky: Bench, how: str) -> None:
    """When a redaction or deletion was synced, no file has the vector in any form; the ANN index
    comes again without it; another process answers right meanwhile."""
    fill(bulky)
    bulky.store.append("secret", "user", "xylophone in the cellar")
    index, other = bulky.index(), bulky.index()
    index.sync(embed="all")
    other.sync()
    data = index._core.open_ledger().vectors((0, 10**9, -1), 48)[1]
    stored = next(
        b for b in data if from_float16(b, 48)[0] @ bulky.service.query("xylophone") > 0.4
    )
    forms = (stored, from_float16(stored, 48)[0].tobytes())
    assert [form in everything(bulky.root / "index") for form in forms] == [True, True]
    if how == "redact":
        bulky.store.redact("secret", 0)
    else:
        bulky.store.delete("secret")
    # The background rests, as after a refusal: it would write while this looks.
    index._core._ann_refused = time.monotonic()
    TurnIndex.sync(index)
    assert not any(form in everything(bulky.root / "index") for form in forms)
    assert not list((bulky.root / "index" / "ann").rglob("*.lance"))
    view = other.view()
    vector = bulky.service.query("red cat")
    assert np.count_nonzero(view.cosine(vector)) > 100
    assert_alike(index, bulky.fresh())
    assert index.settle()
    assert in_bulk(index.view()) > 100
    other.sync()
    for one in (index, other):
        assert_alike(one, bulky.fresh())
    assert not any(form in everything(bulky.root / "index") for form in forms)


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@needs_lancedb
@pytest.mark.parametrize("first", [True, False])
def test_what_is_forgotten_while_the_bulk_is_written_does_not_stay(
    bulky: Bench, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    """An ANN index that was written while one of its texts was forgotten is thrown away."""
    fill(bulky, turns=20)
    index = bulky.index()
    other = TurnIndex(bulky.root / "index", bulky.store, None, bulky.service, cap=None)
    bulky.opened.append(other)
    if not first:
        index.sync(embed="all")
    bulky.store.append("t0", "user", "xylophone in the cellar")
    TurnIndex.sync(other, embed="all")
    whole = AnnStore.extend

    def slow(self: AnnStore, batches: Iterable[Batch], upto: int) -> AnnMeta:
        meta = whole(self, batches, upto)
        bulky.store.redact("t0", 20)
        TurnIndex.sync(other)
        return meta

    monkeypatch.setattr(AnnStore, "extend", slow)
    TurnIndex.sync(index, embed="none")
    assert not index.settle()
    monkeypatch.setattr(AnnStore, "extend", whole)
    assert not list((bulky.root / "index" / "ann").rglob("*.lance"))
    TurnIndex.sync(index)
    assert_alike(index, bulky.fresh())
    assert index.settle()
    assert_alike(index, bulky.fresh())


@needs_lancedb
@pytest.mark.promise("index.disposable")
@pytest.mark.parametrize("damage", ["deleted", "emptied", "cut", "manifest", "garbage"])
def test_a_torn_bulk_is_made_again(bulky: Bench, damage: str) -> None:
    """Without its bulk, or with a torn one, open and new indexes answer right and write it anew."""
    fill(bulky)
    index = bulky.index()
    index.sync(embed="all")
    fresh = bulky.fresh()
    place = bulky.root / "index" / "ann"
    harm(place, damage)
    assert_alike(index, fresh)
    TurnIndex.sync(index)
    assert_alike(index, fresh)
    new = bulky.index()
    TurnIndex.sync(new)
    assert_alike(new, fresh)
    # Either of the two may be the one that writes it anew.
    for one in (index, new):
        one.wait(60)
    new.sync()
    assert in_bulk(new.view()) > 100
    for one in (new, index):
        TurnIndex.sync(one)
        assert_alike(one, fresh)


def harm(place: Path, damage: str) -> None:
    files = [path for path in place.rglob("*") if path.is_file()]
    if damage == "deleted":
        shutil.rmtree(place)
    elif damage == "manifest":
        next(path for path in files if path.name == "ann.json").write_text("{")
    else:
        for path in files:
            if path.suffix == ".lance":
                data = path.read_bytes()
                kept = {"emptied": b"", "cut": data[: len(data) // 2]}
                path.write_bytes(kept.get(damage, b"\xff" * len(data)))


@needs_lancedb
@pytest.mark.promise("embed.identity")
def test_each_embedder_has_a_bulk_of_its_own(bulky: Bench) -> None:
    """The ANN index of one embedder is not read with another, stays beside it, and forgets too."""
    fill(bulky)
    first = bulky.index()
    first.sync(embed="all")
    other = EmbedderService(spec_for(WordHashingEmbedder(32)))
    second = bulky.index(service=other)
    TurnIndex.sync(second, embed="none")
    assert not second.view().embedded.any()
    second.sync(embed="all")
    assert in_bulk(second.view()) > 100
    assert cosines(second, "red cat").max() > 0.5
    assert_alike(first, bulky.fresh())
    bulky.store.delete("t1")
    TurnIndex.sync(second)
    assert not list((bulky.root / "index" / "ann").rglob("*.lance"))
    first.sync()
    assert_alike(first, bulky.fresh())


@needs_lancedb
def test_the_cap_decides_in_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most `cap` parts stay in memory alone; beside an ANN index, newer ones wait for more."""
    monkeypatch.setattr("anaphora.index.turns.index.STEP", 5)
    bench = Bench(tmp_path, cap=20)
    index = bench.index()

    def say(count: int) -> int:
        for _ in range(count):
            bench.store.append("a", "user", f"number {len(index.view().table)}")
            index.sync()
            assert index.wait(60)
        index.sync()
        return in_bulk(index.view())

    assert [say(20), say(1), say(5), say(1)] == [0, 21, 21, 27]
    assert_alike(index, bench.fresh())
    bench.close()


WRITER = """
import sys
from pathlib import Path
from anaphora.embed.hashing import WordHashingEmbedder
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.turns.index import TurnIndex
from anaphora.store.threads.file_store import ConversationStore

root = Path(sys.argv[1])
store = ConversationStore(root / "conversations")
service = EmbedderService(spec_for(WordHashingEmbedder(48, window=6)))
index = TurnIndex(root / "index", store, None, service, cap=0)
step = 0
while True:
    step += 1
    store.append(f"t{step % 3}", "user", f"step {step} of a long story")
    if step % 7 == 0:
        store.redact("t1", step % 5)
    index.sync(embed="all")
    index.settle()
    print(step, flush=True)
"""


@needs_lancedb
@pytest.mark.promise("index.crash")
@pytest.mark.parametrize("attempt", range(3))
def test_a_killed_writer_leaves_a_bulk_that_answers_right(bulky: Bench, attempt: int) -> None:
    """After SIGKILL at a random moment the index agrees with one that is made anew."""
    writer = subprocess.Popen(
        [*python(), "-c", WRITER, str(bulky.root)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    index = Bench.index(bulky)
    for _ in range(3 + 4 * attempt):
        writer.stdout.readline()
        TurnIndex.sync(index)
    # Following beside it takes as long as it takes: that is the random moment.
    for _ in range(random.Random(attempt).randrange(40)):
        TurnIndex.sync(index)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    TurnIndex.sync(index, embed="all")
    new = bulky.index()
    new.sync(embed="all")
    assert in_bulk(new.view())
    for one in (index, new):
        assert_alike(one, bulky.fresh())


def test_without_lancedb_the_scan_goes_on_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past the cap, without the extra, every vector is scanned, and each answer says so once."""
    monkeypatch.setattr(turn_bulk, "available", lambda: False)
    bench = Bench(tmp_path, cap=100)
    fill(bench)
    index = bench.index()
    for synced in (index.sync(embed="all"), index.sync()):
        assert [part.part for part in synced.degraded] == ["vectors"]
        assert "the extra large" in synced.degraded[0].reason
    assert index.settle()
    assert_alike(index, bench.fresh())
    bench.close()


def test_a_sealed_home_has_no_bulk(tmp_path: Path) -> None:
    """Vectors of a sealed home never lie on the disk in the clear, whatever the cap is."""
    bench = Bench(tmp_path)
    fill(bench)
    index = TurnIndex(
        tmp_path / "sealed", bench.store, None, bench.service,
        sealer=SealedIndex(Keys(bytes(range(32)), os.urandom), "default"), cap=0,
    )  # fmt: skip
    bench.opened.append(index)
    assert index.sync(embed="all").degraded == ()
    assert index.settle()
    assert not (tmp_path / "sealed" / "ann").exists()
    bench.close()
