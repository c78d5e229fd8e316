"""The index follows the thread files: what was written before a question is seen by it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from anaphora import NewTurn, Vectors
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.errors import Closed, EmbeddingError
from anaphora.index.turns.index import INLINE_BACKLOG, TurnIndex
from anaphora.index.turns.records import ThreadCheckpoint
from anaphora.index.turns.source import FileThreadSource
from anaphora.store.hashing import stored_turn_hash
from anaphora.store.threads.sidecar import Sidecar, TurnNote
from anaphora.testing import WordHashingEmbedder

from .conftest import EXACT_AND_BULK, Bench, facts

pytestmark = EXACT_AND_BULK


def all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.promise("index.follows")
def test_a_turn_is_seen_by_the_next_question(bench: Bench) -> None:
    """Every append is found by words and by vector at the next follow, of one thread or all."""
    index = bench.index()
    assert index.sync().new_turns == 0
    for number in range(12):
        bench.store.append("a" if number % 3 else "b", "user", f"fact number{number} holds")
        synced = index.sync(("a" if number % 3 else "b") if number % 2 else None)
        assert (synced.new_turns, synced.embedded, synced.pending) == (1, 1, 0)
        row = int(np.argmax(index.view().words([f"number{number}"])))
        assert index.texts_of(index.view(), [row]) == [f"fact number{number} holds"]
        assert index.view().cosine(bench.service.query(f"fact number{number} holds"))[row] > 0.99
    assert [index.view().table.position[row] for row in index.view().rows("a")] == list(range(8))


def test_nothing_is_embedded_twice(bench: Bench) -> None:
    """Equal texts, a reopened index and a rewritten thread cost no second embedding."""
    bench.store.extend("a", [NewTurn("user", "same words"), NewTurn("assistant", "same words")])
    bench.store.extend("b", [NewTurn("user", "same words"), NewTurn("user", "other words")])
    index = bench.index()
    assert index.sync().embedded == 2
    index.close()
    index = bench.index()
    assert index.sync().embedded == 0
    bench.store.redact("b", 1)
    assert index.sync().embedded == 1
    assert bench.service.embedded == 3


@pytest.mark.promise("recall.pending")
def test_a_large_backlog_comes_in_the_background(bench: Bench) -> None:
    """Words answer at once, the result says how many vectors are coming, and they come."""
    turns = [NewTurn("user", f"unit{number} alone") for number in range(INLINE_BACKLOG + 40)]
    bench.store.extend("a", turns)
    index = bench.index()
    synced = index.sync()
    assert synced.new_turns == len(turns)
    assert np.count_nonzero(index.view().words(["unit7"])) == 1
    if synced.pending:
        assert [part.part for part in synced.degraded] == ["vectors"]
    assert index.wait(60)
    assert index.sync().pending == index.check().pending == 0
    assert index.view().embedded.all()


@pytest.mark.promise("index.follows")
def test_an_edit_in_place_is_followed(bench: Bench) -> None:
    """A foreign program that writes into the file, at once and with equal size, is noticed."""
    bench.store.append("a", "user", "the wall is green")
    index = bench.index()
    index.sync()
    path = bench.store.path("a")
    for old, new in [(b"green", b"white"), (b"white", b"brown"), (b"brown", b"beige")]:
        times = path.stat()
        path.write_bytes(path.read_bytes().replace(old, new))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        index.sync()
        assert index.texts_of(index.view(), [0]) == [f"the wall is {new.decode()}"]


@pytest.mark.promise("index.forgets")
def test_what_is_forgotten_is_gone_from_the_disk(bench: Bench) -> None:
    """After a redaction or deletion is synced, no file of the index holds the words."""
    for number in range(80):
        bench.store.append("a", "user", f"chatter {number}")
    bench.store.append("a", "user", "the secret is xylophone")
    bench.store.append("b", "user", "another zeppelinword here")
    index = bench.index()
    index.sync(embed="all")
    assert b"xylophon" in all_bytes(bench.root / "index")
    bench.store.redact("a", 80)
    index.sync()
    assert b"xylophon" not in all_bytes(bench.root / "index")
    assert not index.view().words(["xylophon"]).any()
    bench.store.delete("b")
    index.sync()
    index.wait(60)
    assert b"zeppelinword" not in all_bytes(bench.root / "index")
    assert index.view().table.conversations == ("a",)
    index.close()
    assert b"xylophon" not in all_bytes(bench.root / "index")


class Picky(WordHashingEmbedder):
    """Refuses texts that hold "poison"; refuses everything while `down`."""

    def __init__(self) -> None:
        super().__init__(32)
        self.down = False

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        if self.down or any("poison" in text for text in texts):
            raise EmbeddingError("cannot embed this")
        return super().embed(texts)


def test_a_text_that_cannot_be_embedded_hides_no_other(bench: Bench) -> None:
    """It is found by words, the result says so, and attempts at it end."""
    service = EmbedderService(spec_for(Picky()))
    index = bench.index(service=service)
    bench.store.extend("a", [NewTurn("user", t) for t in ("first", "poison pill", "third")])
    synced = index.sync()
    assert (synced.new_turns, synced.embedded, synced.pending) == (3, 2, 1)
    assert index.view().embedded.tolist() == [True, False, True]
    assert np.flatnonzero(index.view().words(["poison"])).tolist() == [1]
    for _ in range(3):
        bench.store.append("a", "user", f"more {len(index.view().table)}")
        synced = index.sync()
        assert synced.embedded == 1
    assert synced.pending == 0
    assert [part.part for part in synced.degraded] == ["vectors"]


def test_an_embedder_that_is_down_uses_up_no_attempts(bench: Bench) -> None:
    """While it embeds nothing, words answer and the result says so; later all vectors come."""
    picky = Picky()
    picky.down = True
    index = bench.index(service=EmbedderService(spec_for(picky)))
    bench.store.append("a", "user", "hello there")
    for _ in range(5):
        synced = index.sync()
        assert (synced.pending, len(synced.degraded)) == (1, 1)
    picky.down = False
    synced = index.sync()
    assert (synced.embedded, synced.pending, synced.degraded) == (1, 0, ())


def test_a_long_text_counts_by_its_best_part(bench: Bench) -> None:
    """The cosine of a text of several parts is that of the part closest to the question."""
    words = "one two three four five six seven eight nine ten eleven twelve thirteen"
    bench.store.extend("a", [NewTurn("user", words), NewTurn("user", "something else")])
    index = bench.index()
    index.sync()
    query = bench.service.query("seven eight nine ten eleven twelve")
    assert index.view().cosine(query)[0] == pytest.approx(1.0, abs=1e-3)


def test_a_set_aside_thread_leaves_the_index_and_is_reported(bench: Bench) -> None:
    """A thread file that became garbage is no longer answered with, and the result says so."""
    lenient = bench.index()
    bench.store.append("a", "user", "kept words")
    bench.store.append("b", "user", "lost words")
    lenient.sync()
    bench.store.path("b").write_bytes(b'{"conversation_id": "b", garbage')
    synced = lenient.sync()
    assert "conversations" in {part.part for part in synced.degraded}
    lenient.sync()
    assert np.count_nonzero(lenient.view().words(["word"])) == 1


def test_the_check_says_how_the_index_stands(bench: Bench) -> None:
    """Counts are right, a thread that was not synced yet is named, and the file is sound."""
    index = bench.index()
    bench.store.append("a", "user", "hello there")
    assert index.check().problems == ("1 threads changed since they were indexed",)
    index.sync()
    check = index.check()
    assert (check.conversations, check.turns, check.vectors, check.pending) == (1, 1, 1, 0)
    assert check.problems == ()
    index.rebuild()
    assert (index.check().turns, index.check().vectors) == (1, 0)
    index.close()
    with pytest.raises(Closed):
        index.sync()


def test_sessions_end_where_time_passes(bench: Bench) -> None:
    """A thread's turns share a session until six hours pass between two of them."""
    from datetime import timedelta

    from .conftest import START

    hours = [0, 1, 6.9, 13, 14]
    turns = [NewTurn("user", f"at {h}", ts=START + timedelta(hours=h)) for h in hours]
    bench.store.extend("a", turns)
    bench.store.extend("b", turns[:2])
    index = bench.index()
    index.sync()
    sessions = [index.view().table.session[index.view().rows(key)].tolist() for key in ("a", "b")]
    # Which thread is read first is the file system's order.
    numbers: dict[int, int] = {}
    for session in (*sessions[0], *sessions[1]):
        numbers.setdefault(session, len(numbers))
    assert [[numbers[one] for one in of] for of in sessions] == [[0, 0, 0, 1, 1], [2, 2]]


class Notes:
    """What the index asks of a sidecar, in memory."""

    def __init__(self) -> None:
        self.notes: dict[str, dict[int, TurnNote]] = {}
        self.changed: list[str] = []

    def note(self, conversation_id: str, index: int, text: str, speaker: str) -> None:
        note = TurnNote(conversation_id, index, stored_turn_hash("user", text), speaker)
        self.notes.setdefault(conversation_id, {})[index] = note
        self.changed.append(conversation_id)

    def turn_notes(self, conversation_id: str, start: int = 0) -> dict[int, TurnNote]:
        notes = self.notes.get(conversation_id, {})
        return {index: note for index, note in notes.items() if index >= start}

    def version(self) -> int:
        return len(self.changed)

    def changed_since(self, version: int) -> frozenset[str]:
        return frozenset(self.changed[max(0, version) :])


def test_speakers_come_from_the_sidecar(bench: Bench) -> None:
    """A note that fits its turn gives the speaker, a void one does not, a later one is seen."""
    notes = Notes()
    sidecar: Sidecar = notes  # type: ignore[assignment]
    index = TurnIndex(bench.root / "noted", bench.store, sidecar, bench.service)
    bench.opened.append(index)
    notes.note("a", 0, "hello", "Ann")
    notes.note("a", 1, "never written", "Bob")
    bench.store.extend("a", [NewTurn("user", "hello"), NewTurn("user", "hi")])
    index.sync()

    def speakers() -> list[str | None]:
        table = index.view().table
        return [None if c < 0 else table.speakers[c] for c in table.speaker[index.view().rows("a")]]

    assert speakers() == ["Ann", None]
    notes.note("a", 1, "hi", "Bea")
    index.sync("a")
    assert speakers() == ["Ann", "Bea"]
    notes.note("b", 0, "new thread", "Cid")
    bench.store.append("b", "user", "new thread")
    notes.note("a", 0, "hello", "Dan")
    index.sync("b")
    index.sync("a")
    assert speakers() == ["Dan", "Bea"]
    assert facts(index)["rows"][("b", 0)][3] == "Cid"
    # The database was restored from a backup: its number is lower than the one that was read.
    notes.note("a", 0, "hello", "Ann")
    notes.changed = ["a"]
    index.sync()
    assert speakers() == ["Ann", "Bea"]


SECOND = 1_000_000_000


@pytest.mark.internal
def test_writes_are_seen_at_once_and_edits_in_place_soon(bench: Bench) -> None:
    """Among many files a renamed one shows at once, one edited in place within two seconds."""
    bench.store.append("t0", "user", "hello there")
    model = bench.store.path("t0").read_bytes()
    for number in range(1, 300):
        bench.store.path(f"t{number}").write_bytes(model.replace(b'"t0"', b'"t%d"' % number))
    now = [max(bench.store.path(f"t{n}").stat().st_ctime_ns for n in range(300)) + SECOND]
    follower = FileThreadSource(bench.store, None, lambda: now[0])
    marks: dict[str, ThreadCheckpoint] = {}
    index = bench.index()
    index.sync(embed="none")
    assert len(index.view().table) == 300
    assert len(follower.differing(marks, None)) == 300
    for key in follower.differing(marks, None):
        status = bench.store.path(key).stat()
        identity = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        marks[key] = ThreadCheckpoint(identity, now[0], 1, b"")
    assert follower.differing(marks, None) == []
    path = bench.store.path("t7")
    path.write_bytes(model.replace(b'"t0"', b'"t7"').replace(b"hello", b"HELLO!"))
    assert follower.differing(marks, "t7") == ["t7"]
    now[0] += 2 * SECOND
    assert follower.differing(marks, None) == ["t7"]
    bench.store.append("t9", "user", "one more")
    bench.store.delete("t8")
    assert sorted(follower.differing(marks, None)) == ["t7", "t8", "t9"]
