"""The index may vanish, be torn, or lose its writer at any time: the next answer is right."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.commands import python

from anaphora import NewTurn, Vector, Vectors
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.recall.conversation import ConversationRecall
from anaphora.testing import WordHashingEmbedder

from .conftest import Bench, Ticking, facts

pytestmark = pytest.mark.internal

QUERIES = ("number 7", "words of thread")


def filled(bench: Bench, turns: int = 120) -> None:
    for thread in ("a", "b"):
        news = [NewTurn("user", f"words of thread {thread} number {n}") for n in range(turns)]
        bench.store.extend(thread, news)


@pytest.mark.promise("index.disposable")
def test_a_deleted_directory_is_made_again_under_an_open_index(bench: Bench) -> None:
    """An index in use answers right after its directory is gone, and so does a new one."""
    filled(bench)
    index = bench.index()
    index.sync(embed="all")
    expected = facts(index, QUERIES)
    shutil.rmtree(bench.root / "index")
    bench.store.append("c", "user", "a new one")
    index.sync(embed="all")
    assert len(index.view().table) == 241
    bench.store.delete("c")
    index.sync(embed="all")
    assert facts(index, QUERIES) == expected
    assert (bench.root / "index" / "turns.sqlite").exists()


@pytest.mark.parametrize("place", range(8))
def test_a_torn_file_is_found_out_and_made_again(bench: Bench, place: int) -> None:
    """Garbage anywhere in the file or the words, or a missing end, is never answered with."""
    filled(bench)
    index = bench.index()
    index.sync(embed="all")
    expected = facts(index, QUERIES)
    index.close()
    chance = random.Random(place)
    files = [
        path
        for path in (bench.root / "index").rglob("*")
        if path.is_file() and path.stat().st_size > 100
    ]
    for path in files if place % 2 else [bench.root / "index" / "turns.sqlite"]:
        data = bytearray(path.read_bytes())
        for _ in range(1 + 40 * (place // 2)):
            at = chance.randrange(len(data))
            data[at : at + 30] = chance.randbytes(30)
        path.write_bytes(bytes(data[: len(data) - (place % 3) * 1000]))
    index = bench.index()
    index.sync(embed="all")
    assert facts(index, QUERIES) == expected


def test_where_nothing_can_be_written_memory_answers(bench: Bench) -> None:
    """A place that is no directory costs the index its file, not the answer."""
    filled(bench, 5)
    (bench.root / "index").write_text("in the way")
    index = bench.index()
    synced = index.sync()
    assert (synced.new_turns, synced.pending) == (10, 0)
    assert [part.part for part in synced.degraded] == ["index"]
    assert index.view().words(["number"]).all()
    assert "cannot be written" in index.check().problems[0]


WRITER = """
import sys
from pathlib import Path
from anaphora.embed.hashing import WordHashingEmbedder
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.turns.index import TurnIndex
from anaphora.store.threads.file_store import ConversationStore

root = Path(sys.argv[1])
store = ConversationStore(root / "conversations")
print("ready", flush=True)
while True:
    index = TurnIndex(
        root / "index", store, None, EmbedderService(spec_for(WordHashingEmbedder(48, window=6)))
    )
    for step in range(9):
        store.append(f"t{step % 3}", "user", f"step {step} of a long story")
        index.sync(embed="all" if step == 5 else "inline")
        if step == 7:
            store.redact("t1", 0)
    index.close()
"""


@pytest.mark.promise("index.crash")
@pytest.mark.parametrize("attempt", range(6))
def test_a_killed_writer_leaves_an_index_that_answers_right(bench: Bench, attempt: int) -> None:
    """After SIGKILL at a random moment the index agrees with one that is made anew."""
    writer = subprocess.Popen(
        [*python(), "-c", WRITER, str(bench.root)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    writer.stdout.readline()
    index = bench.index()
    while not index.sync().new_turns:
        pass
    # Following beside it takes as long as it takes: that is the random moment.
    for _ in range(random.Random(attempt).randrange(3, 60)):
        index.sync()
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    index.sync(embed="all")
    expected = facts(bench.fresh(), QUERIES)
    assert expected["rows"]
    assert facts(index, QUERIES)["rows"] == expected["rows"]
    again = bench.index()
    again.sync(embed="all")
    again.rebuild() if attempt == 0 else None
    again.sync(embed="all")
    for query in QUERIES:
        found = facts(again, QUERIES)
        assert found[f"cosine {query}"] == expected[f"cosine {query}"]
        assert found[f"words {query}"].keys() == expected[f"words {query}"].keys()


def test_words_of_an_older_version_leave_the_disk(bench: Bench) -> None:
    """They may have been forgotten since, and are of no more use."""
    filled(bench)
    older = bench.root / "index" / "words"
    older.mkdir(parents=True)
    (older / "segment").write_bytes(b"number")
    index = bench.index()
    index.sync(embed="all")
    assert facts(index, QUERIES) == facts(bench.fresh(), QUERIES)
    assert not older.exists()


class Removing(WordHashingEmbedder):
    """Removes a folder so many times, each time that it is asked for a vector."""

    def __init__(self, folder: Path) -> None:
        super().__init__(48, window=6)
        self.folder, self.left = folder, 0

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        self._remove()
        return super().embed(texts)

    def embed_query(self, text: str) -> Vector:
        self._remove()
        return super().embed_query(text)

    def _remove(self) -> None:
        if self.left:
            self.left -= 1
            shutil.rmtree(self.folder, ignore_errors=True)


@pytest.mark.promise("index.disposable")
@pytest.mark.parametrize("thread", [None, "a"])
@pytest.mark.parametrize("times", [1, 2, 4, 100])
def test_a_directory_that_vanishes_within_a_question(
    bench: Bench, times: int, thread: str | None
) -> None:
    """Removed between the steps of a recall: it answers all the same, or says what it lacks."""
    filled(bench, 30)
    embedder = Removing(bench.root / "index")
    index = bench.index(service=EmbedderService(spec_for(embedder)))
    recall = ConversationRecall(bench.store, index, index._embedder, Ticking())
    calm = ConversationRecall(bench.store, bench.index("calm"), bench.service, Ticking())
    for number in range(6):
        bench.store.append("a", "user", f"something new {number}")
        embedder.left = times
        found = recall.recall(thread, f"thread a number {number}")
        expected = calm.recall(thread, f"thread a number {number}")
        assert found.degraded or [hit.text for hit in found] == [hit.text for hit in expected]
        assert times == 100 or found.hits


@pytest.mark.promise("index.forgets")
def test_a_redacted_text_is_in_no_byte_of_the_index(bench: Bench) -> None:
    """However often pages fill and empty: SQLite keeps no copy of a text that was moved."""
    rng, index, living, number = random.Random(4), bench.index(), list[tuple[int, str]](), 0
    for _ in range(40):
        for _ in range(rng.randint(1, 12)):
            word = f"secret{number}word"
            bench.store.append("a", "user", f"{word} " + "x " * rng.choice((1, 90, 900)))
            living.append((number, word))
            number += 1
        index.sync(embed="none")
        gone = [living.pop(rng.randrange(len(living))) for _ in range(len(living) // 3)]
        for place, _ in gone:
            bench.store.redact("a", place)
        index.sync(embed="none")
        stored = b"".join(one.read_bytes() for one in (bench.root / "index").iterdir())
        assert not [word for _, word in gone if f"{word} ".encode() in stored]
        assert all(f"{word} ".encode() in stored for _, word in living[-3:])
