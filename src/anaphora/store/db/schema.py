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
    text,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from anaphora.store.db import table, tables
from anaphora.store.db.revision import REVISION_TABLE
from anaphora.store.db.table import Codec
from anaphora.store.escaping import escape, unescape


class EscapedText(TypeDecorator[str]):
    """Text of any length and any characters, compared and ordered by code point everywhere."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Text; on PostgreSQL without the locale, which orders it differently on each server."""
        if dialect.name == "postgresql":
            # Takes a fiftieth of a second to load, which homes in a file should not wait for.
            from sqlalchemy.dialects import postgresql

            return dialect.type_descriptor(postgresql.TEXT(collation="C"))
        return dialect.type_descriptor(Text())

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Escape on the way in."""
        return None if value is None else escape(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Give back what was put in."""
        return None if value is None else unescape(value)


_TYPES: Final[dict[Codec, Any]] = {
    "integer": Integer,
    "flag": Integer,
    "big": BigInteger,
    "moment": BigInteger,
    "float": Float,
    "bytes": LargeBinary,
}


def _index(one: table.Index) -> Index:
    """An index as both databases make it."""
    if not one.filled:
        return Index(one.name, *one.columns, unique=one.unique)
    condition = text(f"{one.filled} IS NOT NULL")
    return Index(
        one.name,
        *one.columns,
        unique=one.unique,
        sqlite_where=condition,
        postgresql_where=condition,
    )


metadata = MetaData()

# A table of this name, not `alembic_version`: the database may be shared with another program.
revision = Table(
    REVISION_TABLE,
    metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{REVISION_TABLE}_pkc"),
)


def _define(one: table.Table) -> None:
    Table(
        one.name,
        metadata,
        *(
            Column(column.name, _TYPES.get(column.codec, EscapedText), nullable=not column.needed)
            for column in one.columns
        ),
        PrimaryKeyConstraint(*one.key, name=f"{one.name}_pk"),
        *(
            ForeignKeyConstraint(
                ["namespace", reference.column],
                [f"{reference.table}.namespace", f"{reference.table}.{reference.key}"],
                name=reference.name,
                ondelete="CASCADE",
            )
            for reference in one.references
        ),
        *(_index(index) for index in one.indexes),
        sqlite_with_rowid=not one.by_key,
    )


def _follow() -> None:
    """Define the tables that were added, and drop the definitions of removed ones."""
    for name, definition in tables.TABLES.items():
        if name not in metadata.tables:
            _define(definition)
    for name in metadata.tables.keys() - tables.TABLES.keys() - {REVISION_TABLE}:
        metadata.remove(metadata.tables[name])


_follow()
tables.FOLLOWERS.append(_follow)
