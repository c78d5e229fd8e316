"""Who writes into a sealed home without its key moves nothing unseen; nothing wrong is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.sqlite_driver import dbapi2

from anaphora import Memory, NewTurn
from anaphora.errors import Tampered
from anaphora.index.turns.ledger import row_checks
from anaphora.index.turns.table import Turns, turn_rows
from anaphora.store.crypto.index import CLEAR_INDEX

pytestmark = pytest.mark.internal

pytest.importorskip("cryptography")

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
MARA, RAFI = "Mara keeps bees behind the house", "Rafi sails boats on the lake"


def opened(home: Path, **options: Any) -> Memory:
    return Memory.open(home, embedder="hashing", clock=lambda: NOW, **options)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A sealed home with two conversations, three memories and two tokens."""
    place = tmp_path / "home"
    with opened(place, encrypt="file") as memory:
        for name, text in (("mara", MARA), ("rafi", RAFI)):
            memory.conversations.extend(name, [NewTurn("user", text, speaker=name.title())])
        memory.remember("The alarm code is 1111", path="alarm.code", tags=["codes"])
        memory.remember("The gate code is 2222", path="gate.code", payload={"digits": 4})
        memory.remember("Rafi likes tea")
        memory.ready(60)
        memory.recall_conversation(None, "bees")
    return place


def outside(place: Path, *statements: str) -> None:
    """Change a database of the home as somebody without the key would."""
    with closing(dbapi2.connect(str(place), isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def swapped(place: Path, table: str, column: str, *rows: str) -> None:
    """Swap a column of two rows, given by what finds each."""
    with closing(dbapi2.connect(str(place), isolation_level=None)) as connection:
        one, other = (
            connection.execute(f"SELECT {column} FROM {table} WHERE {row}").fetchone()[0]
            for row in rows
        )
        for row, value in zip(rows, (other, one), strict=True):
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {row}", (value,))


def checked_anew(place: Path) -> None:
    """Give every row of an index of turns the checksum that a clear one would have."""
    columns = ("id", "thread", "position", "role", "length", "flags", "ts", "offset", "text_hash")
    with closing(dbapi2.connect(str(place), isolation_level=None)) as connection:
        rows = connection.execute(f"SELECT {', '.join(columns)} FROM turns").fetchall()
        *numbers, hashes = zip(*rows, strict=True)
        turns = Turns(turn_rows((*numbers, -1), len(rows)), list(hashes))
        made = row_checks(turns, ((), (), ()), CLEAR_INDEX)
        for key, total in zip(numbers[0], made.tolist(), strict=True):
            connection.execute("UPDATE turns SET checked = ? WHERE id = ?", (total, key))


def shown(memory: Memory) -> Iterator[tuple[str, str, str | None, str]]:
    """Conversation, role, speaker and words of every way in which turns are shown."""
    for thread in (None, "mara", "rafi"):
        for query in ("bees behind the house", "boats on the lake", "what does Rafi do?"):
            for hit in memory.recall_conversation(thread, query):
                yield hit.conversation_id, hit.role, hit.speaker, hit.text
    for source in memory.deep_recall("who keeps bees?", scope="all_sessions").sources:
        if source.conversation_id is not None:
            # There the speaker stands in the place of the role.
            yield source.conversation_id, "user", source.role, source.text


MOVES: dict[str, Callable[[Path], object]] = {
    "texts": lambda place: swapped(place, "turns", "text_hash", "id = 1", "id = 2"),
    "speakers": lambda place: swapped(place, "turns", "speaker", "id = 1", "id = 2"),
    "threads": lambda place: outside(
        place,
        "UPDATE turns SET thread = -thread",
        "UPDATE turns SET thread = 3 + thread",
    ),
    "roles": lambda place: outside(place, "UPDATE turns SET role = 1 - role"),
    "times": lambda place: outside(place, "UPDATE turns SET ts = ts - 86400 * id"),
    "names": lambda place: outside(
        place,
        "CREATE TABLE old AS SELECT code, id FROM threads",
        "UPDATE threads SET id = CAST(code AS BLOB)",
        "UPDATE threads SET id = (SELECT id FROM old WHERE old.code = 3 - threads.code)",
        "DROP TABLE old",
    ),
}


@pytest.mark.promise("sealed.index_moved")
@pytest.mark.parametrize("move", MOVES)
def test_words_of_the_index_are_given_to_nobody_else(home: Path, move: str) -> None:
    """Turns, speakers and threads swapped in the index: what is shown is what was said, by whom."""
    index = home / "index" / "default" / "turns.sqlite"
    MOVES[move](index)
    checked_anew(index)
    with opened(home) as memory:
        found = set(shown(memory))
    assert found == {("mara", "user", "Mara", MARA), ("rafi", "user", "Rafi", RAFI)}


ALARM = "rowid = 1"
GATE = "rowid = 2"


@pytest.mark.promise("sealed.rows_whole")
@pytest.mark.parametrize("key", ["path_key", "same_key"])
def test_a_key_moved_to_another_memory(home: Path, key: str) -> None:
    """Swapped lookup keys never lead to another memory, and supersede nothing wrong."""
    swapped(home / "anaphora.db", "record", key, ALARM, GATE)
    with opened(home) as memory:
        for ask in (
            lambda: memory.history("alarm.code"),
            lambda: memory.remember("The alarm code is 3333", path="alarm.code"),
            lambda: memory.remember("The gate code is 2222", path="gate.code"),
            lambda: memory.recall("alarm code"),
            lambda: memory.list(limit=10),
        ):
            with pytest.raises(Tampered):
                ask()
    rows = "SELECT COUNT(*), SUM(valid_until IS NOT NULL) FROM record"
    with closing(dbapi2.connect(str(home / "anaphora.db"))) as connection:
        assert connection.execute(rows).fetchone() == (3, 0)


@pytest.mark.promise("sealed.rows_whole")
@pytest.mark.parametrize("column", ["payload", "path", "tags", "category", "origin"])
def test_an_emptied_column_is_noticed(home: Path, column: str) -> None:
    """A payload, path or list of tags that somebody emptied is an error, not an empty answer."""
    rows = f"UPDATE record SET {column} = NULL WHERE {column} IS NOT NULL"
    if column in ("category", "origin"):
        rows = f"UPDATE record SET {column} = tags"
    outside(home / "anaphora.db", rows)
    with opened(home) as memory:
        for ask in (
            lambda: memory.list(limit=10),
            lambda: memory.recall("code", top_k=5),
            lambda: memory.recall("code", filters={"tags": {"contains": "codes"}}),
            lambda: memory.recall("code", filters={"path": "gate.code"}),
        ):
            with pytest.raises(Tampered):
                ask()


@pytest.mark.promise("sealed.rows_whole")
@pytest.mark.parametrize(
    "change",
    [
        "superseded_by = (SELECT record_id FROM record WHERE rowid = 2), valid_until = 1",
        "valid_from = valid_from - 1000000",
        "type = 'episodic'",
        "reinforced = 40",
    ],
)
def test_lineage_times_and_types_of_a_memory_are_its_own(home: Path, change: str) -> None:
    """A lineage, a time, a type or a count that somebody changed is noticed when it is read."""
    outside(home / "anaphora.db", f"UPDATE record SET {change} WHERE {ALARM}")
    with opened(home) as memory, pytest.raises(Tampered):
        memory.history("alarm.code")


@pytest.mark.promise("sealed.rights")
@pytest.mark.parametrize(
    "change", ["revoked_at = NULL", "read_only = 0", "expires_at = NULL", "expires_at = 1 << 60"]
)
def test_a_token_cannot_be_given_more_rights(home: Path, change: str) -> None:
    """A revoked, read-only or ending token whose row was changed opens nothing."""
    with opened(home) as memory:
        limits: dict[str, Any] = {"read_only": True, "expires_at": NOW.replace(year=2027)}
        secret = memory.tokens.create("reader", **limits).secret
        assert memory.tokens.check(secret) is not None
        memory.tokens.revoke("reader")
        assert memory.tokens.check(secret) is None
    outside(home / "anaphora.db", f"UPDATE token SET {change}")
    with opened(home) as memory:
        with pytest.raises(Tampered):
            memory.tokens.check(secret)
        with pytest.raises(Tampered):
            memory.tokens.list()


@pytest.mark.promise("sealed.rows_whole")
def test_a_speaker_taken_away_is_noticed(home: Path) -> None:
    """A turn whose speaker or source was emptied in truth is an error, not a turn of nobody."""
    outside(home / "anaphora.db", "UPDATE turn_note SET speaker = NULL")
    with opened(home) as memory, pytest.raises(Tampered):
        memory.conversations.get("mara")
