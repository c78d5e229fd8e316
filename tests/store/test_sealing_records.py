"""Memories in a sealed truth: every answer is that of a clear one, and no row says a word."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.ingest.truth_desk import drop_vectors

from anaphora import NewMemory
from anaphora.errors import MissingKey, Tampered
from anaphora.store.crypto.cipher import Keys
from anaphora.store.crypto.columns import CLEAR, SealedRows, Sealer
from anaphora.store.db.engine import Database
from anaphora.store.db.statements import execute
from anaphora.store.filters import parse
from anaphora.store.hashing import hash_text
from anaphora.store.records.ids import RecordIds
from anaphora.store.records.rows import same_key_of
from anaphora.store.records.store import Records
from anaphora.store.records.vectors import RecordVectors, VectorRow

pytestmark = pytest.mark.internal

pytest.importorskip("cryptography")

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
TEXTS = ("tea", "cafe\u0301", "caf\u00e9", "a\x00b \ud800", "tee")
PATHS = (None, "/drink", "/drink/\u00e9")
EMBEDDER = "hashing"


def sealed_with(byte: int) -> SealedRows:
    count = itertools.count(1)
    return SealedRows(Keys(bytes([byte]) * 32, lambda size: next(count).to_bytes(size, "big")))


@pytest.fixture
def sealer() -> SealedRows:
    return sealed_with(7)


class Desk:
    """Remembers and forgets by the rules of memories, with ids that a second desk repeats."""

    def __init__(self, truth: Database, sealer: Sealer, namespace: str = "default") -> None:
        self.records = Records(truth, namespace, sealer)
        self.vectors = RecordVectors(truth, namespace, sealer)
        self.ids = RecordIds(lambda: NOW, random.Random(1).getrandbits)

    def put(self, *items: NewMemory) -> list[str]:
        from anaphora.store.records.rules import draft_memory, put_all

        with self.records.change() as work:
            drafts = [draft_memory(item, NOW, self.ids()) for item in items]
            return [done.id for done in put_all(work, drafts, self.ids)]

    def change(self, record_id: str, **changes: Any) -> None:
        from anaphora.store.records.rules import change_in_place

        with self.records.change() as work:
            change_in_place(work, record_id, changes, NOW)

    def forget(self, record_id: str, *, soft: bool) -> tuple[str, ...]:
        from anaphora.store.records.forgetting import forget_for_good, forget_softly

        with self.records.change() as work:
            if soft:
                return forget_softly(work, [record_id], NOW).texts
            return forget_for_good(work, [record_id]).texts

    def embed(self, record_id: str, *parts: bytes) -> None:
        rows = [VectorRow(record_id, n, hash_text("x"), data) for n, data in enumerate(parts)]
        self.vectors.put(EMBEDDER, rows)

    def everything(self) -> dict[str, Any]:
        """All that any reader of truth can ask for, but for the numbers of changes.

        Which of two records that one change touches gets the lower number is chance.
        """
        records = self.records.changed_since(0)
        ids = sorted(record.id for record in records)
        tagged = parse({"tags": {"contains": "t1"}})
        same = {record.id: self.records.with_same_key(same_key_of(record)) for record in records}
        found: dict[str, Any] = {
            "many": sorted(self.records.many(ids).items()),
            "same": {one: same[one] for one in ids},
            "listed": sorted(r.id for r in self.records.list(limit=500)),
            "tagged": sorted(r.id for r in self.records.list(tagged, limit=500, history=True)),
            "history": {path: self.records.history(path) for path in PATHS if path},
            "current": {path: self.records.current(path) for path in PATHS if path},
            "events": {one: self.records.events(one) for one in ids},
            "links": self.records.links(ids),
            "text": {text: self.records.with_text(text) for text in TEXTS},
            "gone": sorted(one for _, one in self.records.tombstones_since(0)),
            "vectors": sorted(
                (b.record_ids, b.parts, b.data) for b in self.vectors.get_all(EMBEDDER, batch=1)
            ),
            "without": self.vectors.owners_without(EMBEDDER),
            "counts": (self.vectors.counts(), self.vectors.records()),
        }
        return {name: re.sub(r"seq=\d+", "", repr(value)) for name, value in found.items()}


def said(desk: Desk) -> str:
    """Remember one memory that has a secret in every column; return its id."""
    (record_id,) = desk.put(
        NewMemory(
            "Ada takes cardamom",
            path="/drink/ada",
            tags=("kitchen-tag",),
            category="taste-of-ada",
            payload={"payload-word": 1},
            source="from-the-diary",
            conversation_id="chat-with-ada",
            turn_index=3,
        )
    )
    desk.change(record_id, category="espresso")
    desk.embed(record_id, b"\x00\x3c" * 8)
    return record_id


def test_events_that_move_to_a_new_version_still_open(truth: Database, sealer: SealedRows) -> None:
    """A version that a late value splits takes its later events along, tags and words too."""
    desk = Desk(truth, sealer)
    for text, day in (("tea", 9), ("tea", 3), ("juice", 6)):
        at = NOW - timedelta(days=day)
        desk.put(NewMemory(text, path="/p", tags=(f"day {day}",), source=text, created_at=at))
    versions = desk.records.history("/p")
    assert [version.text for version in versions] == ["tea", "juice", "tea"]
    (event,) = desk.records.events(versions[2].id)
    assert (event.kind, event.tags, event.source) == ("restated", ("day 3",), "tea")


CHANGES: dict[str, str] = {
    "a changed text": "UPDATE record SET text = 'an1:BBBB' || SUBSTR(text, 9) "
    "WHERE record_id = '{one}'",
    "a clear text": "UPDATE record SET text = 'Ada takes tea' WHERE record_id = '{one}'",
    "a text of another row": "UPDATE record SET text = (SELECT text FROM record "
    "WHERE record_id = '{other}') WHERE record_id = '{one}'",
    "a path in the place of a text": "UPDATE record SET text = path WHERE record_id = '{one}'",
    "an identity that is none": "UPDATE record SET same_key = 'an1d:AAAA' "
    "WHERE record_id = '{one}'",
    "a row of another id": "UPDATE record SET record_id = 'zzz' WHERE record_id = '{one}'",
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_or_moved_record_is_refused(
    truth: Database, sealer: SealedRows, what: str
) -> None:
    """What was changed, moved or put in clear raises `Tampered`, in every read that meets it."""
    desk = Desk(truth, sealer)
    one = said(desk)
    (other,) = desk.put(NewMemory("something else"))
    statement = CHANGES[what].format(one=one, other=other)
    if "'zzz'" in statement:
        drop_vectors(desk.vectors, EMBEDDER)
    with truth.write("default") as write:
        if "'zzz'" in statement:
            execute(write.connection, "DELETE FROM record_event")
        execute(write.connection, statement)
    wanted = "zzz" if "'zzz'" in statement else one
    reads: list[Callable[[], object]] = [
        lambda: desk.records.get(wanted),
        lambda: desk.records.many([wanted]),
        lambda: desk.records.changed_since(0),
        desk.records.list,
        lambda: desk.forget(wanted, soft=True),
    ]
    for read in reads:
        with pytest.raises(Tampered):
            read()
    assert desk.records.get(other).text == "something else"


def test_a_changed_vector_or_event_is_refused(truth: Database, sealer: SealedRows) -> None:
    """Vectors and histories that were put elsewhere, or changed, raise `Tampered`."""
    desk = Desk(truth, sealer)
    one = said(desk)
    (other,) = desk.put(NewMemory("something else", source="elsewhere"))
    desk.embed(other, b"\x00\x3d" * 8)
    with truth.write("default") as write:
        execute(
            write.connection,
            "UPDATE vector SET data = (SELECT data FROM vector WHERE record_id = ?) "
            "WHERE record_id = ?",
            (one, other),
        )
        moved = "UPDATE record_event SET record_id = ? WHERE record_id = ?"
        execute(write.connection, moved, (other, one))
    with pytest.raises(Tampered):
        list(desk.vectors.get_all(EMBEDDER))
    with pytest.raises(Tampered):
        desk.records.events(other)


def test_another_key_opens_nothing(truth: Database, sealer: SealedRows) -> None:
    """Rows of one home are nothing to the key of another, nor to a home that thinks it is clear."""
    one = said(Desk(truth, sealer))
    wrong, clear = Desk(truth, sealed_with(8)), Desk(truth, CLEAR)
    with pytest.raises(Tampered):
        wrong.records.get(one)
    with pytest.raises(Tampered):
        list(wrong.vectors.get_all(EMBEDDER))
    assert wrong.records.history("/drink/ada") == ()
    with pytest.raises(MissingKey):
        clear.records.get(one)


def test_namespaces_share_nothing(truth: Database, sealer: SealedRows) -> None:
    """Equal memories in two namespaces have no equal cell that was sealed."""
    sealed = []
    for namespace in ("default", "work"):
        desk = Desk(truth, sealer, namespace)
        said(desk)
        names = {"namespace": namespace}
        rows = truth.rows("SELECT * FROM record WHERE namespace = :namespace", names)
        sealed.append({cell for cell in rows[0] if str(cell).startswith("an1")})
    assert sealed[0]
    assert not sealed[0] & sealed[1]
