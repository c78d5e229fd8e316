"""The tables of lasting memories: alike on both databases, and nothing outlives its record."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import LargeBinary, Table, select

from anaphora.store.db.engine import Database, Write
from anaphora.store.db.schema import metadata

pytestmark = pytest.mark.internal
link, record, record_event, vector = (
    metadata.tables[name] for name in ("link", "record", "record_event", "vector")
)

SECOND = 1_000_000


def put(write: Write, table: Table, **values: Any) -> None:
    (seq,) = write.take()
    row = {"namespace": write.namespace, "seq": seq, **values}
    write.connection.execute(table.insert().values(**row))


def put_record(write: Write, record_id: str, **values: Any) -> None:
    """A record with everything that belongs to it: an event and a vector in two parts."""
    at = 1_777_000_000 * SECOND
    put(
        write, record, record_id=record_id, kind="memory", type="semantic", text="a fact",
        created_at=at, valid_from=at, reinforced=0, last_reinforced=at, same_key="k", **values,
    )  # fmt: skip
    put(write, record_event, record_id=record_id, kind="added", at=at)
    for part in range(2):
        put(
            write, vector, record_id=record_id, embedder="e", part=part, text_hash="h",
            data=bytes(range(256)),
        )  # fmt: skip


def test_values_come_back_as_they_were(truth: Database) -> None:
    """Texts, times far in the past and future, and bytes are the same on every database."""
    given = {
        "text": "\x00 \ud800 \x10 ok \U0001f600", "path": "Ünicode/пуť", "category": "",
        "tags": '["a"]', "payload": '{"n": 1}', "created_at": -(2**62), "expires_at": 2**62,
        "parent": None,
    }  # fmt: skip
    with truth.write("default") as write:
        at = {"valid_from": 0, "last_reinforced": 0, "reinforced": 3, "same_key": "k"}
        put(write, record, record_id="a", kind="memory", type="episodic", **at, **given)
        put(
            write, vector, record_id="a", embedder="e", part=0, text_hash="h",
            data=bytes(range(256)),
        )  # fmt: skip
    with truth.read() as connection:
        row = connection.execute(select(record)).mappings().one()
        assert {name: row[name] for name in given} == given
        assert connection.execute(select(vector.c.data)).scalar_one() == bytes(range(256))
    assert isinstance(vector.c.data.type, LargeBinary)


def test_texts_have_one_order(truth: Database) -> None:
    """Texts are ordered by code point on every database, whatever its language."""
    names = ["Zebra", "Apple", "apple", "Äpfel", "a", "a b", "ab", "_", "日本", ""]
    with truth.write("default") as write:
        for name in names:
            put_record(write, name)
    with truth.read() as connection:
        ordered = connection.execute(select(record.c.record_id).order_by(record.c.record_id))
        assert ordered.scalars().all() == sorted(names)
        found = select(record.c.record_id).where(record.c.record_id.startswith("a"))
        assert set(connection.execute(found).scalars()) == {"a", "a b", "ab", "apple"}
