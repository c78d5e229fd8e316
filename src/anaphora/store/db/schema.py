"""The tables of `db.tables` as SQLAlchemy knows them. Imports SQLAlchemy; it opens nothing.

Every text column is `EscapedText`, and times are integers. `metadata` has every table.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from anaphora.store.db import tables
from anaphora.store.db.revision import REVISION_TABLE
from anaphora.store.escaping import escape, unescape


class EscapedText(TypeDecorator[str]):
    """Text of any length and any characters, compared and ordered by code point everywhere."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Text; on PostgreSQL without the locale, whose order differs from place to place."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.TEXT(collation="C"))
        return dialect.type_descriptor(Text())

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Escape on the way in."""
        return None if value is None else escape(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Give back what was put in."""
        return None if value is None else unescape(value)


_TYPES: Final[dict[tables.Codec, Any]] = {
    "integer": Integer,
    "flag": Integer,
    "big": BigInteger,
    "moment": BigInteger,
    "float": Float,
    "bytes": LargeBinary,
}

metadata = MetaData()

# A table of this name, not `alembic_version`: truth may share a database with another program.
revision = Table(
    REVISION_TABLE,
    metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{REVISION_TABLE}_pkc"),
)


def _made(table: tables.Table) -> Table:
    columns = (
        Column(column.name, _TYPES.get(column.codec, EscapedText), nullable=not column.needed)
        for column in table.columns
    )
    references = (
        ForeignKeyConstraint(
            ["namespace", one.column],
            [f"{one.table}.namespace", f"{one.table}.{one.key}"],
            name=one.name,
            ondelete="CASCADE",
        )
        for one in table.references
    )
    indexes = (Index(one.name, *one.columns, unique=one.unique) for one in table.indexes)
    key = PrimaryKeyConstraint(*table.key, name=f"{table.name}_pk")
    return Table(table.name, metadata, *columns, key, *references, *indexes)


head = _made(tables.HEAD)
conversation_note = _made(tables.CONVERSATION_NOTE)
turn_note = _made(tables.TURN_NOTE)
forgotten_turn = _made(tables.FORGOTTEN_TURN)
thread = _made(tables.THREAD)
turn = _made(tables.TURN)
record = _made(tables.RECORD)
record_event = _made(tables.RECORD_EVENT)
link = _made(tables.LINK)
tombstone = _made(tables.TOMBSTONE)
vector = _made(tables.VECTOR)
project = _made(tables.PROJECT)
source_file = _made(tables.SOURCE_FILE)
section = _made(tables.SECTION)
section_vector = _made(tables.SECTION_VECTOR)
entity = _made(tables.ENTITY)
entity_alias = _made(tables.ENTITY_ALIAS)
relation = _made(tables.RELATION)
history_item = _made(tables.HISTORY_ITEM)
history_path = _made(tables.HISTORY_PATH)
answer = _made(tables.ANSWER)
gap = _made(tables.GAP)
trace = _made(tables.TRACE)
session_job = _made(tables.SESSION_JOB)
extraction = _made(tables.EXTRACTION)
fact_turn = _made(tables.FACT_TURN)
token = _made(tables.TOKEN)
