"""A home of many memories, written to its database as a restored backup would be: in minutes.

In: texts, an embedder, a folder. Out: a home with them and their vectors, no words indexed yet. It
goes round `remember` (no dedupe, no links, no events) and round SQLAlchemy, and waits for the disk
once, at the end: what writing costs is measured elsewhere.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np

from anaphora.embed.base import Embedder
from anaphora.store.db import sqlite
from anaphora.store.db.engine import open_database
from anaphora.store.db.table import Table
from anaphora.store.db.tables import HEAD, RECORD, VECTOR
from anaphora.store.hashing import hash_text
from anaphora.store.records.ids import RecordIds
from anaphora.store.records.rows import MEMORY, RECORD_MAPPING, same_key_of
from anaphora.values.memories import MemoryRecord
from bench.memories import NOW

__all__ = ["write_home"]

NAMESPACE: Final = "default"
_STEP: Final = 20_000
_DAYS: Final = 365.0

Row = dict[str, Any]


def write_home(home: Path, texts: Sequence[str], embedder: Embedder) -> None:
    """Make a home at `home`, in place of what is there."""
    shutil.rmtree(home, ignore_errors=True)
    truth = open_database(home / "anaphora.db")
    truth.ensure()
    truth.close()
    connection = sqlite.connect(home / "anaphora.db")
    try:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN IMMEDIATE")
        seq = 0
        for records, vectors in _rows(texts, embedder):
            for table, rows in ((RECORD, records), (VECTOR, vectors)):
                numbered = [{**row, "seq": number} for number, row in enumerate(rows, seq + 1)]
                seq += len(rows)
                connection.executemany(_insert(table), numbered)
        row = {"namespace": NAMESPACE, "seq": seq, "audit": None}
        connection.execute(_insert(HEAD), row)
        connection.execute("COMMIT")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


def _rows(texts: Sequence[str], embedder: Embedder) -> Iterator[tuple[list[Row], list[Row]]]:
    """Rows of memories and of their vectors, some at a time, by the order of their ids."""
    ids, rng = RecordIds(lambda: NOW), np.random.default_rng(0)
    for start in range(0, len(texts), _STEP):
        some = texts[start : start + _STEP]
        ages = rng.uniform(0.0, _DAYS, len(some)).tolist()
        records: list[Row] = []
        vectors: list[Row] = []
        made = zip(some, ages, embedder.embed(some), strict=True)
        for at, (text, days, parts) in enumerate(made, start):
            when = NOW - timedelta(days=days)
            one = MemoryRecord(
                ids(), text, "semantic", when, when, when, 0,
                category=f"c{at % 20}", tags=(f"t{at % 7}",),
            )  # fmt: skip
            more = {"namespace": NAMESPACE, "kind": MEMORY, "forgotten_at": None}
            records.append(RECORD_MAPPING.row(one, same_key=same_key_of(one), **more))
            vectors += (
                {
                    "namespace": NAMESPACE,
                    "record_id": one.id,
                    "embedder": embedder.name,
                    "part": part,
                    "text_hash": hash_text(text),
                    "data": np.asarray(vector, "<f2").tobytes(),
                }
                for part, vector in enumerate(parts)
            )
        yield records, vectors


def _insert(table: Table) -> str:
    names = [column.name for column in table.columns]
    places = ", ".join(f":{name}" for name in names)
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({places})"
