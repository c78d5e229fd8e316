"""Rows of truth in a sealed home: nothing readable, nothing changed or moved unseen."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sqlite_driver import dbapi2

from anaphora.errors import MissingKey, Tampered
from anaphora.store.crypto.cipher import Cipher, Finder, Keys, binding, derive
from anaphora.store.crypto.columns import ClearRows, SealedRows, open_rows
from anaphora.store.crypto.index import ClearIndex, SealedIndex
from anaphora.store.db.engine import Database, open_database
from anaphora.store.db.tables import TABLES
from anaphora.store.threads.sidecar import Sidecar, TurnNote
from anaphora.store.threads.sql_store import SqlConversationStore

pytestmark = pytest.mark.internal

pytest.importorskip("cryptography")

ROW = {
    "namespace": "default",
    "record_id": "r1",
    "text": "Ada is allergic to nuts",
    "path": "/health/ada",
    "tags": '["health"]',
    "category": None,
    "payload": '{"level":3}',
    "same_key": "0" * 32,
    "kind": "memory",
    "reinforced": 2,
}


class Counter:
    """Randomness that a test can repeat: no two calls give the same bytes."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, count: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(count, "big")


@pytest.fixture
def keys() -> Keys:
    return Keys(bytes(range(32)), Counter())


@pytest.fixture
def sealed(keys: Keys) -> SealedRows:
    return SealedRows(keys)


@pytest.fixture
def truth(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / "truth.db")
    yield opened
    opened.close()


def notes() -> list[TurnNote]:
    return [
        TurnNote(
            "ada-and-bob", 0, "a" * 32, "Persephone", "chatgpt", "chat-of-Ada", "message-of-Ada"
        ),
        TurnNote("ada-and-bob", 1, "b" * 32, "Persephone"),
    ]


def test_every_column_has_a_plan_that_holds() -> None:
    """Each column of each table is clear, sealed or lookup, and its row can show a change of it."""
    from anaphora.store.db.schema import metadata, revision

    assert TABLES.keys() == metadata.tables.keys() - {revision.name}
    for name, table in TABLES.items():
        plan, columns = table, {column.name: column for column in table.columns}
        assert tuple(columns) == tuple(column.name for column in metadata.tables[name].columns)
        assert {one.at_rest for one in table.columns} <= {"clear", "sealed", "lookup"}
        assert set(plan.digests) <= {*plan.sealed, *plan.lookup}
        empty = {one for one in plan.sealed if not columns[one].needed}
        if plan.anchor:
            assert {plan.anchor, *plan.filled} <= set(plan.sealed)
            assert plan.anchor not in empty - set(plan.filled)
            unbound = {one for one in columns if columns[one].at_rest == "clear"}
            assert {f"{name}.{one}" for one in unbound - set(plan.sealing)} <= UNBOUND
        else:
            assert not empty
            assert not set(plan.lookup) - set(plan.key)


# Clear columns that may change without their row being sealed anew: numbers of changes, and marks.
UNBOUND = {f"{table}.seq" for table in TABLES} | {"token.last_used", "project.stale"}
UNBOUND |= {"sync_item.dirty", "sync_item.seen", "record.core"}


def test_only_names_of_things_stay_clear() -> None:
    """No column that is left readable holds words of the user's: the list of them is a decision."""
    texts = {
        f"{table.name}.{column.name}"
        for table in TABLES.values()
        for column in table.columns
        if column.at_rest == "clear" and column.codec == "text"
    }
    ids = {"record_id", "other_id", "owner_id", "parent", "superseded_by", "supersedes"}
    ids |= {"project_id", "file_id", "section_id", "entity_id", "relation_id", "item_id"}
    ids |= {"subject_id", "object_id", "source_id", "gap_id", "trace_id", "job_id", "token_id"}
    kinds = {"kind", "type", "source", "embedder", "namespace", "version_num"}
    kinds |= {"role", "language", "skipped", "predicate", "status", "judge"}
    # When and where a change was noticed, and how a thread file looked: numbers, ids, and hashes.
    ids |= {"device", "stamp", "snapshot_id", "seen", "project", "hash"}
    # Names and words of ours.
    texts -= {"sync_state.name", "sync_entry.state", "head.audit", "audit_state.name"}
    # A keyed hash.
    texts -= {"audit_entry.link"}
    assert {name.split(".")[1] for name in texts} <= ids | kinds


def test_rows_come_back_as_they_were(sealed: SealedRows) -> None:
    """Sealing hides what is sealed, leaves None and clear columns, and opening gives all back."""
    stored = sealed.seal_row("record", ROW)
    for column in ("text", "path", "tags", "payload", "same_key"):
        assert stored[column].startswith("an")
        assert stored[column] != ROW[column]
    assert (stored["category"], stored["kind"], stored["reinforced"]) == (None, "memory", 2)
    assert sealed.open_row("record", stored) == ROW
    assert sealed.seal_row("record", ROW)["text"] != stored["text"]
    assert sealed.seal_row("record", ROW)["same_key"] == stored["same_key"]


@pytest.mark.parametrize("column", ["text", "same_key"])
def test_any_changed_byte_is_seen(sealed: SealedRows, column: str) -> None:
    """Whichever byte of a sealed value is flipped, opening raises Tampered and gives nothing."""
    stored = sealed.seal_row("record", ROW)
    prefix, data = stored[column].split(":")
    raw = bytearray(base64.b64decode(data))
    for place in range(len(raw)):
        for bit in (1, 128):
            raw[place] ^= bit
            changed = f"{prefix}:{base64.b64encode(raw).decode()}"
            with pytest.raises(Tampered):
                sealed.open_row("record", {**stored, column: changed})
            raw[place] ^= bit
    for bad in (
        "",
        "clear",
        "an1:",
        "an1d:",
        "an1:****",
        stored[column][:-4],
        stored[column] + "A",
    ):
        with pytest.raises(Tampered):
            sealed.open_row("record", {**stored, column: bad})


def test_swapped_rows_and_columns_do_not_open(sealed: SealedRows) -> None:
    """A value opens in its own table, column, namespace and row alone."""
    one = sealed.seal_row("record", ROW)
    other = sealed.seal_row("record", {**ROW, "record_id": "r2"})
    elsewhere = sealed.seal_row("record", {**ROW, "namespace": "work"})
    for moved in (
        {**one, "text": other["text"]},
        {**one, "text": elsewhere["text"]},
        {**one, "text": one["path"]},
        {**one, "same_key": elsewhere["same_key"]},
        {**one, "record_id": "r2"},
        {**one, "namespace": "work"},
    ):
        with pytest.raises(Tampered):
            sealed.open_row("record", moved)
    event = sealed.seal_row("record_event", {**ROW, "seq": 1})
    with pytest.raises(Tampered):
        sealed.open_row("record", {**one, "tags": event["tags"]})


def test_another_key_opens_nothing(sealed: SealedRows) -> None:
    """Rows that were sealed with one key give Tampered with another."""
    stored = sealed.seal_row("record", ROW)
    with pytest.raises(Tampered):
        SealedRows(Keys(bytes(32), Counter())).open_row("record", stored)


def test_an_opener_opens_what_rows_hold(sealed: SealedRows) -> None:
    """Vectors, opened one column at a time, are the bytes that were sealed in their rows."""
    row = {"namespace": "n", "record_id": "r", "embedder": "e", "part": 3, "data": b"\0\x01" * 384}
    stored = sealed.seal_row("vector", row)
    opener: Callable[[tuple[str | int, ...], bytes], bytes] = sealed.opener("vector", "data", "n")
    assert opener(("r", "e", 3), stored["data"]) == row["data"]
    with pytest.raises(Tampered):
        opener(("r", "e", 4), stored["data"])
    passing: Callable[[tuple[str | int, ...], bytes], bytes] = ClearRows().opener(
        "vector", "data", "n"
    )
    assert passing(("r", "e", 4), b"as it is") == b"as it is"


def test_many_rows_are_opened_as_one_is(sealed: SealedRows) -> None:
    """Rows as tuples of chosen columns come back opened, and pass through in a clear home."""
    columns = TABLES["record"].sealing[1:]
    given = [{**dict.fromkeys(columns), **ROW, "record_id": f"r{number}"} for number in range(3)]
    clear = [tuple(row[name] for name in columns) for row in given]
    stored = [tuple(sealed.seal_row("record", row)[name] for name in columns) for row in given]
    assert open_rows(sealed, "record", columns, "default", stored) == clear
    assert open_rows(ClearRows(), "record", columns, "default", clear) == clear
    with pytest.raises(MissingKey):
        open_rows(ClearRows(), "record", columns, "default", stored)


def test_a_clear_home_refuses_sealed_rows(sealed: SealedRows) -> None:
    """Rows of a home that lost sealed.json are refused, never shown as if they were texts."""
    with pytest.raises(MissingKey):
        ClearRows().open_row("record", sealed.seal_row("record", ROW))
    words = {**ROW, "text": "an1: is how this text begins"}
    assert ClearRows().open_row("record", words) == words


@given(st.text(), st.text(), st.binary(), st.text())
def test_any_text_and_any_bytes_come_back(text: str, place: str, data: bytes, other: str) -> None:
    """Whatever is sealed comes back, lone surrogates and NUL too; equal lookups stay equal."""
    cipher, finder = Cipher(bytes(32), Counter()), Finder(bytes(range(64)))
    bound = binding(place, 1)
    assert cipher.open_text(cipher.seal_text(text, bound), bound, "x") == text
    assert cipher.open(cipher.seal(data, bound), bound, "x") == data
    assert finder.open(finder.seal(text, bound), bound, "x") == text
    assert (finder.seal(text, bound) == finder.seal(other, bound)) == (text == other)
    assert cipher.seal_text(text, bound).isascii()
    assert finder.seal(text, bound).isascii()


@given(st.lists(st.text()), st.lists(st.text()))
def test_places_are_never_confused(one: list[str], other: list[str]) -> None:
    """Two different lists of parts never bind to the same bytes."""
    assert (binding(*one) == binding(*other)) == (one == other)


@given(st.text(min_size=1), st.text(min_size=1))
def test_words_of_the_index_are_keyed(one: str, other: str) -> None:
    """Equal tokens have equal keys in a namespace; another namespace or key has others."""
    keys = Keys(bytes(32), Counter())
    here, there = SealedIndex(keys, "here"), SealedIndex(keys, "there")
    assert (here.token_key(one) == here.token_key(other)) == (one == other)
    assert here.token_key(one) != there.token_key(one)
    assert SealedIndex(Keys(b"\x01" * 32, Counter()), "here").token_key(one) != here.token_key(one)
    assert len(here.token_key(one)) == 32


def test_blobs_of_the_index_are_bound(keys: Keys) -> None:
    """A blob of the index opens as its own kind, key and namespace alone."""
    index = SealedIndex(keys, "here")
    sealed = index.seal("vector", b"key", b"data")
    assert index.open("vector", b"key", sealed) == b"data"
    assert index.named(index.name("Ada")) == "Ada"
    assert index.name("Ada") == index.name("Ada") != index.name("Bob")
    assert b"Ada" not in index.name("Ada")
    with pytest.raises(Tampered):
        SealedIndex(keys, "there").named(index.name("Ada"))
    clear = ClearIndex()
    assert (clear.named(clear.name("Ada")), clear.open("k", b"", clear.seal("k", b"", b"x"))) == (
        "Ada", b"x"
    )  # fmt: skip
    assert (clear.token_key("word"), clear.hash_key, len(index.hash_key)) == ("word", b"", 32)
    for reader, kind, key in (
        (index, "text", b"key"),
        (index, "vector", b"yek"),
        (SealedIndex(keys, "there"), "vector", b"key"),
    ):
        with pytest.raises(Tampered):
            reader.open(kind, key, sealed)


def test_a_tampered_note_is_not_shown(tmp_path: Path, truth: Database, sealed: SealedRows) -> None:
    """Notes that another program swapped inside the database raise Tampered when they are read."""
    sidecar = Sidecar(truth, "default", sealed)
    sidecar.note_turns(notes())
    outside = dbapi2.connect(str(tmp_path / "truth.db"))
    outside.execute(
        "UPDATE turn_note SET speaker = (SELECT speaker FROM turn_note WHERE position = 1)"
        " WHERE position = 0"
    )
    outside.commit()
    outside.close()
    with pytest.raises(Tampered, match="speaker"):
        sidecar.turn_notes("ada-and-bob")
    assert sidecar.turn_notes("ada-and-bob", 1)[1].speaker == "Persephone"


CELLS = st.one_of(st.none(), st.text(max_size=3), st.integers(0, 3), st.floats(0, 3))


@pytest.mark.promise("sealed.rows_whole")
@given(st.sampled_from([t for t, plan in TABLES.items() if plan.anchor]), st.data())
def test_no_cell_of_another_row_is_taken_for_ones_own(table: str, data: st.DataObject) -> None:
    """Whatever cell of a sealed row is put in another row, or emptied, that row does not open."""
    sealed, plan = SealedRows(Keys(bytes(32), Counter())), TABLES[table]
    clear_cells = st.fixed_dictionaries(dict.fromkeys(plan.bound, CELLS))
    texts = (*plan.sealed, *plan.lookup)
    cells = st.fixed_dictionaries({name: st.none() | st.text(max_size=3) for name in texts})
    rows = []
    for number in range(2):
        key = {name: f"{name} {number}" for name in plan.key} | {"namespace": "default"}
        row = {**data.draw(clear_cells), **data.draw(cells), **key}
        if row[plan.anchor] is None and plan.anchor not in plan.filled:
            row[plan.anchor] = ""
        rows.append(row)
    one, other = (sealed.seal_row(table, row) for row in rows)
    assert sealed.open_row(table, one) == rows[0]
    column = data.draw(st.sampled_from(plan.sealing[1:]))
    for moved in ({**one, column: other[column]}, {**one, column: None}):
        if moved[column] == one[column]:
            continue
        with pytest.raises(Tampered):
            sealed.open_row(table, moved)


@pytest.mark.promise("sealed.rows_whole")
def test_a_table_without_an_anchor_has_no_empty_cell(sealed: SealedRows) -> None:
    """A sealed value that must be there and is not is noticed where no anchor tells of it."""
    row = {"namespace": "n", "conversation_id": "c", "position": 0, "turn_hash": "h", "text": "x"}
    stored = sealed.seal_row("turn", row)
    with pytest.raises(Tampered, match="emptied"):
        sealed.open_row("turn", {**stored, "text": None})


def test_sealed_threads(tmp_path: Path) -> None:
    """In a sealed home no word, id, title, role or time of a thread is in the database."""
    path = tmp_path / "truth.db"
    truth = open_database(path)
    sealer = SealedRows(Keys(bytes(32), os.urandom))
    sidecar = Sidecar(truth, "default", sealer)
    store = SqlConversationStore(truth, "default", sidecar=sidecar, sealer=sealer)
    when = datetime(2026, 4, 30, 12, tzinfo=UTC)
    store.append("zeppelin", "user", "xylophone words", ts=when, speaker="Nour")
    store.append("zeppelin", "assistant", "glockenspiel", ts=when, intent_id="quartz")
    store.set_title("zeppelin", "harpsichord")
    store.append("other", "user", "text", ts=when)
    assert [turn.speaker for turn in store.recent("zeppelin")] == ["Nour", None]
    assert {s.title for s in store.list()} == {"harpsichord", "text"}
    assert store.redact("zeppelin", 1)
    assert store.delete("other")
    again = SqlConversationStore(truth, "default", sidecar=sidecar, sealer=sealer)
    assert [turn.text for turn in again.recent("zeppelin")] == ["xylophone words", "[redacted]"]
    assert [s.title for s in again.list()] == ["harpsichord"]
    truth.close()
    data = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for word in ("xylophone", "glockenspiel", "quartz", "harpsichord", "zeppelin", "Nour",
                 "assistant", "2026-04-30"):  # fmt: skip
        assert word.encode() not in data
    connection = dbapi2.connect(str(path))
    connection.execute("UPDATE turn SET text = (SELECT text FROM turn WHERE position = 0)")
    connection.commit()
    connection.close()
    truth = open_database(path)
    with pytest.raises(Tampered):
        SqlConversationStore(truth, "default", sealer=sealer).get("zeppelin")
    truth.close()


def test_derivation_is_hkdf_as_published() -> None:
    """Derived keys are HKDF-SHA256 (RFC 5869) of the key with the label as info."""
    import hashlib
    import hmac

    key = bytes(range(32))
    extracted = hmac.digest(b"\0" * 32, key, "sha256")
    block = hmac.digest(extracted, b"anaphora/records/v1\x01", "sha256")
    assert derive(key, "records") == block
    assert hashlib.sha256().digest_size == len(block)
