"""Sealed threads and their index: the same answers, unreadable and unchangeable from outside."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sqlite_driver import dbapi2

from anaphora import ConversationStore, NewTurn
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.errors import CorruptThread, Tampered, WrongKey
from anaphora.index.turns.index import TurnIndex
from anaphora.language.analyser import query_terms
from anaphora.store.crypto.cipher import Keys
from anaphora.store.db.engine import Database, open_database
from anaphora.store.home.conversion import rotate_keys
from anaphora.store.home.opening import open_home
from anaphora.store.home.sealing import Home, Sealing
from anaphora.store.threads.forms import SealedThreads, ThreadForm
from anaphora.store.threads.gojson import decode
from anaphora.store.threads.sidecar import Sidecar
from anaphora.testing import WordHashingEmbedder

pytestmark = pytest.mark.internal

pytest.importorskip("cryptography")

ID = "Ada and Bob 🌊"
WORDS = "the heron flies at dawn"


@pytest.fixture
def form() -> ThreadForm:
    return SealedThreads(Keys(bytes(32), os.urandom), "default")


@pytest.fixture
def store(tmp_path: Path, form: ThreadForm) -> ConversationStore:
    return ConversationStore(tmp_path, strict=True, form=form)


def texts(store: ConversationStore, conversation_id: str = ID) -> list[str]:
    return [turn.text for turn in store.recent(conversation_id, 10_000)]


def test_a_sealed_thread_reads_as_a_clear_one(
    tmp_path: Path, store: ConversationStore, form: ThreadForm
) -> None:
    """Turns, order, titles, lists and files are those of a clear store, in any process."""
    for number in range(5):
        assert store.append_user(ID, f"{WORDS} {number}")
        assert store.append_assistant(ID, "so it does", intent_id=f"i{number}")
    assert store.set_title(ID, "Herons")
    assert store.append_user("plain", "short")
    again = ConversationStore(tmp_path, strict=True, form=form)
    assert again.append_user(ID, "from another process")
    for one in (store, again):
        assert texts(one) == [t for n in range(5) for t in (f"{WORDS} {n}", "so it does")] + [
            "from another process"
        ]
        assert [s.conversation_id for s in one.list()] == [ID, "plain"]
        assert one.list()[0].title == "Herons"
        assert dict(one.files()) == {ID: one.path(ID), "plain": one.path("plain")}
        assert one.problems() == ()
    assert store.suffix == ".json.sealed"
    assert {path.suffix for path in tmp_path.iterdir() if path.is_file()} == {".sealed"}


def test_the_json_is_that_of_a_clear_file(
    tmp_path: Path, store: ConversationStore, form: ThreadForm
) -> None:
    """What is sealed is byte for byte what Go would write, so that an export is Go's file."""
    clear = ConversationStore(tmp_path / "clear", strict=True)
    for one in (clear, store):
        for number in range(3):
            turn = NewTurn("user", f"<{number}>", ts=None)
            fixed = clear.recent(ID)[number].ts if one is store else None
            one.extend(ID, [turn if fixed is None else NewTurn("user", turn.text, ts=fixed)])
    data, _identity = store.read_file(ID)
    assert data == clear.path(ID).read_bytes()
    assert clear.read_file(ID)[0] == data
    assert len(decode(data).turns) == 3


def test_an_append_keeps_the_pieces_that_are_there(store: ConversationStore) -> None:
    """An append encrypts what is new alone: the old bytes stand as they were, but for the end."""
    store.append_user(ID, "x" * 10_000)
    before = store.path(ID).read_bytes()
    store.append_user(ID, "y")
    after = store.path(ID).read_bytes()
    assert after[:10_000] == before[:10_000]
    assert len(after) < len(before) + 500
    store.redact(ID, 0)
    assert store.path(ID).read_bytes()[100:200] != after[100:200]
    assert texts(store) == ["[redacted]", "y"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(min_size=1), min_size=1, max_size=6))
def test_any_texts_come_back(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    """Whatever is appended is read back, by the writer and by a process that never wrote."""
    place = tmp_path_factory.mktemp("threads")
    form = SealedThreads(Keys(bytes(32), os.urandom), "default")
    sealed = ConversationStore(place, strict=True, form=form)
    clear = ConversationStore(place / "clear", strict=True)
    for text in words:
        assert sealed.append_user("c", text) == clear.append_user("c", text)
    reader = ConversationStore(place, strict=True, form=form)
    assert texts(sealed, "c") == texts(reader, "c") == texts(clear, "c")


def places(size: int) -> Iterator[int]:
    yield from range(0, min(size, 200), 7)
    yield from range(200, size, 31)
    yield size - 1


def test_any_changed_byte_is_seen(tmp_path: Path, form: SealedThreads) -> None:
    """Whichever byte of a file is flipped, decoding fails; so does a file cut at any place."""
    store = ConversationStore(tmp_path, strict=True, form=form)
    for number in range(4):
        store.append_user(ID, f"{WORDS} {number}")
    data = store.path(ID).read_bytes()
    for place in places(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        with pytest.raises((Tampered, WrongKey)):
            form.decode(ID, bytes(changed))
    for size in range(len(data)):
        with pytest.raises(Tampered):
            form.decode(ID, data[:size])
    with pytest.raises(Tampered):
        form.decode(ID, data + data[-40:])
    assert form.decode(ID, data).data.count(b"heron") == 4


def test_pieces_cannot_be_dropped_or_moved(form: SealedThreads) -> None:
    """A turn left out, turns exchanged, and an end of another length are all seen."""
    start, seam = form.whole("c", b'{"turns":[1', b"]}")
    head = start[: seam.offset]
    pieces, ends = [], []
    for number in range(3):
        data, following = form.more("c", seam, f",{number}".encode(), b"]}")
        pieces.append(data[: following.offset - seam.offset])
        ends.append(data[following.offset - seam.offset :])
        seam = following
    whole = head + b"".join(pieces) + ends[2]
    assert form.decode("c", whole).data == b'{"turns":[1,0,1,2]}'
    for wrong in (
        head + pieces[0] + pieces[2] + ends[2],
        head + pieces[1] + pieces[0] + pieces[2] + ends[2],
        head + pieces[0] + pieces[1] + ends[2],
        head + b"".join(pieces) + ends[1],
        head + b"".join(pieces),
        head + b"".join(pieces) + ends[2] + ends[2],
    ):
        with pytest.raises(Tampered):
            form.decode("c", wrong)
    other, _seam = form.whole("c", b'{"turns":[9', b"]}")
    assert len(other) == len(start)
    with pytest.raises(Tampered):
        form.decode("c", other[:32] + start[32:])


def test_a_file_under_another_name_is_refused(tmp_path: Path, store: ConversationStore) -> None:
    """Two files that change places are two corrupt threads, not two exchanged conversations."""
    store.append_user("one", "first")
    store.append_user("two", "second")
    one, two = store.path("one"), store.path("two")
    kept = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(kept)
    for conversation_id in ("one", "two"):
        with pytest.raises(CorruptThread):
            store.get(conversation_id)


def test_other_namespaces_and_keys_read_nothing(tmp_path: Path, store: ConversationStore) -> None:
    """The same file in another namespace, or with another key, opens for nobody, and stays."""
    store.append_user("c", "words")
    data = store.path("c").read_bytes()
    other = SealedThreads(Keys(bytes(32), os.urandom), "other")
    with pytest.raises(Tampered):
        other.decode("c", data)
    stranger = SealedThreads(Keys(b"\x01" * 32, os.urandom), "default")
    with pytest.raises(WrongKey):
        stranger.decode("c", data)
    strange = ConversationStore(tmp_path, strict=True, form=stranger)
    strange.path("c").write_bytes(data)
    with pytest.raises(WrongKey):
        strange.append_user("c", "more")
    assert strange.path("c").read_bytes() == data


@pytest.mark.parametrize("strict", [True, False])
def test_a_damaged_file_is_set_aside(tmp_path: Path, form: ThreadForm, strict: bool) -> None:
    """A truncated thread is kept aside as it is, reported, and never shown in part."""
    store = ConversationStore(tmp_path, strict=strict, form=form)
    for number in range(3):
        store.append_user("c", f"{WORDS} {number}")
    path = store.path("c")
    cut = path.read_bytes()[:-1]
    path.write_bytes(cut)
    fresh = ConversationStore(tmp_path, strict=strict, form=form)
    if strict:
        with pytest.raises(CorruptThread) as caught:
            fresh.recent("c")
        assert caught.value.set_aside is not None
    else:
        assert fresh.recent("c") == ()
    [problem] = fresh.problems()
    assert problem.conversation_id == "c"
    assert problem.set_aside is not None
    assert Path(problem.set_aside).read_bytes() == cut
    assert fresh.append_user("c", "new")
    assert texts(fresh, "c") == ["new"]
    # What cannot be opened may hold the words that are to go.
    assert fresh.redact("c", 0)
    assert fresh.problems() == ()


def test_delete_leaves_nothing(tmp_path: Path, store: ConversationStore) -> None:
    """After a delete neither the thread nor a copy that was set aside is there."""
    store.append_user(ID, WORDS)
    path = store.path(ID)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptThread):
        store.get(ID)
    store.append_user(ID, WORDS)
    assert store.delete(ID)
    assert store.list() == ()
    assert store.problems() == ()
    assert [p for p in tmp_path.rglob("*") if p.is_file() and p.suffix != ".lock"] == []


def test_long_ids_and_many_turns(tmp_path: Path, form: ThreadForm) -> None:
    """The longest id and a thread of many pieces are listed and read back whole."""
    store = ConversationStore(tmp_path, strict=True, form=form)
    longest = "🌊" * 1024
    store.append_user(longest, "far")
    for number in range(200):
        store.append_user("many", str(number))
    fresh = ConversationStore(tmp_path, strict=True, form=form)
    assert {s.conversation_id for s in fresh.list()} == {longest, "many"}
    assert texts(fresh, "many") == [str(number) for number in range(200)]


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX modes")
def test_sealed_files_are_private(store: ConversationStore) -> None:
    """Sealed files have the mode of clear ones: for this user alone."""
    store.append_user("c", "words")
    assert store.path("c").stat().st_mode & 0o777 == 0o600


pytest.importorskip("cryptography")

PLACES = ("heron", "estuary", "lighthouse", "ferry", "harbour", "Persephone")


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
            text = f"the {PLACES[number % 5]} at {PLACES[(number + 2) % 5]} {number % 17}"
            at += timedelta(minutes=1)
            self.store.append(
                f"trip to {PLACES[number % 3]}", "user", text, ts=at, speaker=PLACES[5]
            )
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
