"""The tables of truth, once for every database.

`namespace` leads every key: it is the distribution column where truth outgrows one machine.
Every text column is `EscapedText`. Times are microseconds since 1970 UTC. Every column says in
its `info` how a sealed home will keep it: `clear`, `sealed`, or `lookup`, a digest of fixed length
that becomes an HMAC (fixed also because PostgreSQL refuses index entries above 2.7 kB). Tables of
projects are in `schema_context`. Importing this module imports SQLAlchemy; it opens nothing.
"""

from __future__ import annotations

from typing import Any

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


metadata = MetaData()


def clear(name: str, kind: Any = EscapedText, *, needed: bool = True) -> Column[Any]:
    """A column that a sealed home leaves readable: it must be counted, ordered or joined."""
    return Column(name, kind, nullable=not needed, info={"at_rest": "clear"})


def sealed(name: str, kind: Any = EscapedText, *, needed: bool = False) -> Column[Any]:
    """A column that a sealed home encrypts."""
    return Column(name, kind, nullable=not needed, info={"at_rest": "sealed"})


def moment(name: str, *, needed: bool = True) -> Column[Any]:
    """Microseconds since 1970 UTC, readable in a sealed home as `clear` is."""
    return Column(
        name, BigInteger, nullable=not needed, info={"at_rest": "clear", "is_moment": True}
    )


def lookup(name: str, *, needed: bool = False) -> Column[Any]:
    """A digest or an id to find rows by: a sealed home keeps a keyed form, equal for equals."""
    return Column(name, EscapedText, nullable=not needed, info={"at_rest": "lookup"})


def _of_record(name: str) -> ForeignKeyConstraint:
    """Rows that go when their record goes: forgetting must not depend on somebody's care."""
    return ForeignKeyConstraint(
        ["namespace", "record_id"],
        ["record.namespace", "record.record_id"],
        name=name,
        ondelete="CASCADE",
    )


# A table of this name, not `alembic_version`: truth may share a database with another program.
revision = Table(
    REVISION_TABLE,
    metadata,
    clear("version_num", String(32)),
    PrimaryKeyConstraint("version_num", name=f"{REVISION_TABLE}_pkc"),
)

head = Table(
    "head",
    metadata,
    clear("namespace"),
    clear("seq", BigInteger),
    PrimaryKeyConstraint("namespace", name="head_pk"),
)

conversation_note = Table(
    "conversation_note",
    metadata,
    clear("namespace"),
    lookup("conversation_id", needed=True),
    clear("source", needed=False),
    sealed("source_key"),
    lookup("branch_of"),
    clear("branch_at", Integer, needed=False),
    clear("seq", BigInteger),
    PrimaryKeyConstraint("namespace", "conversation_id", name="conversation_note_pk"),
    Index("conversation_note_seq", "namespace", "seq"),
)

turn_note = Table(
    "turn_note",
    metadata,
    clear("namespace"),
    lookup("conversation_id", needed=True),
    clear("position", Integer),
    # Sealed, because who guesses a short turn could check the guess against its hash.
    sealed("turn_hash", needed=True),
    sealed("speaker"),
    clear("source", needed=False),
    sealed("source_key"),
    sealed("message_key"),
    lookup("chat_key"),
    clear("seq", BigInteger),
    PrimaryKeyConstraint("namespace", "conversation_id", "position", name="turn_note_pk"),
    Index("turn_note_chat", "namespace", "chat_key"),
    Index("turn_note_seq", "namespace", "seq"),
)

# A table of its own: the place of a forgotten turn may be taken by another turn, and the source
# message must stay known all the same, or the next import would bring it back.
forgotten_turn = Table(
    "forgotten_turn",
    metadata,
    clear("namespace"),
    lookup("identity_key", needed=True),
    lookup("conversation_id", needed=True),
    clear("position", Integer),
    clear("source", needed=False),
    sealed("source_key"),
    sealed("message_key"),
    lookup("chat_key"),
    clear("seq", BigInteger),
    PrimaryKeyConstraint("namespace", "identity_key", name="forgotten_turn_pk"),
    Index("forgotten_turn_place", "namespace", "conversation_id", "position"),
    Index("forgotten_turn_chat", "namespace", "chat_key"),
    Index("forgotten_turn_seq", "namespace", "seq"),
)

# A conversation, where threads live in the database. `stamp` is a random number drawn with each
# change of its turns: equal stamps mean the same turns, also after truth was put back to an earlier
# moment and went on differently. A deleted one keeps its row, for followers. `opening` is the place
# of the first words of the user, which name a conversation without a title.
thread = Table(
    "thread",
    metadata,
    clear("namespace"),
    lookup("conversation_id", needed=True),
    clear("seq", BigInteger),
    clear("stamp", BigInteger),
    clear("turn_count", Integer),
    clear("opening", Integer, needed=False),
    clear("deleted", Integer),
    sealed("title", needed=True),
    sealed("updated_text", needed=True),
    PrimaryKeyConstraint("namespace", "conversation_id", name="thread_pk"),
    Index("thread_seq", "namespace", "seq", unique=True),
)

# A turn of such a conversation, positions without gaps from 0. `stamp` is that of the thread after
# the write that brought the turn; where turns are changed, all of the thread get the new one. So a
# turn that still has the stamp of a moment tells that nothing before it has changed since. There is
# no foreign key: sealing a home changes conversation ids row by row.
turn = Table(
    "turn",
    metadata,
    clear("namespace"),
    lookup("conversation_id", needed=True),
    clear("position", Integer),
    clear("seq", BigInteger),
    clear("stamp", BigInteger),
    sealed("role", needed=True),
    sealed("text", needed=True),
    sealed("ts_text", needed=True),
    sealed("intent_id", needed=True),
    sealed("turn_hash", needed=True),
    PrimaryKeyConstraint("namespace", "conversation_id", "position", name="turn_pk"),
)

# A memory as it stands. `seq` is the number of its last change, so that a follower sees changes as
# it sees new rows; `record_event` tells how it came to be what it is. An empty `same_key` marks a
# memory that stands for itself: nothing restates it and nothing is linked to it.
record = Table(
    "record",
    metadata,
    clear("namespace"),
    clear("record_id"),
    clear("seq", BigInteger),
    clear("kind"),
    clear("type"),
    sealed("text", needed=True),
    sealed("path"),
    sealed("category"),
    sealed("tags"),
    sealed("payload"),
    sealed("origin"),
    clear("parent", needed=False),
    clear("supersedes", needed=False),
    clear("superseded_by", needed=False),
    moment("created_at"),
    moment("valid_from"),
    moment("valid_until", needed=False),
    moment("expires_at", needed=False),
    moment("forgotten_at", needed=False),
    clear("reinforced", Integer),
    moment("last_reinforced"),
    lookup("same_key", needed=True),
    lookup("path_key"),
    PrimaryKeyConstraint("namespace", "record_id", name="record_pk"),
    Index("record_seq", "namespace", "seq", unique=True),
    Index("record_same", "namespace", "same_key"),
    Index("record_path", "namespace", "path_key"),
    Index("record_parent", "namespace", "parent"),
    Index("record_supersedes", "namespace", "supersedes"),
)

# Every time that a memory was said or changed: `at` is when, `origin` a JSON object with the source
# and the words of that time where they differ, or with what a change has replaced.
record_event = Table(
    "record_event",
    metadata,
    clear("namespace"),
    clear("record_id"),
    clear("seq", BigInteger),
    clear("kind"),
    moment("at"),
    sealed("tags"),
    sealed("origin"),
    PrimaryKeyConstraint("namespace", "record_id", "seq", name="record_event_pk"),
    _of_record("record_event_of"),
)

# One row for a pair and kind, kept in the order of its ids where the kind has no direction: a
# pair can count only once, ever.
link = Table(
    "link",
    metadata,
    clear("namespace"),
    clear("record_id"),
    clear("other_id"),
    clear("kind"),
    clear("strength", Float, needed=False),
    clear("seq", BigInteger),
    PrimaryKeyConstraint("namespace", "record_id", "other_id", "kind", name="link_pk"),
    _of_record("link_of"),
    ForeignKeyConstraint(
        ["namespace", "other_id"],
        ["record.namespace", "record.record_id"],
        name="link_to",
        ondelete="CASCADE",
    ),
    Index("link_other", "namespace", "other_id"),
    Index("link_seq", "namespace", "seq"),
)

# What was deleted for good: its id and the number of the deletion, so that followers drop it.
tombstone = Table(
    "tombstone",
    metadata,
    clear("namespace"),
    clear("seq", BigInteger),
    clear("kind"),
    clear("owner_id"),
    PrimaryKeyConstraint("namespace", "seq", name="tombstone_pk"),
)

# `data` is `dimensions` float16 numbers, little-endian. `text_hash` is the hash of the text that
# was embedded: a vector of an older text is never taken for one of the present text.
vector = Table(
    "vector",
    metadata,
    clear("namespace"),
    clear("record_id"),
    clear("embedder"),
    clear("part", Integer),
    sealed("text_hash", needed=True),
    sealed("data", LargeBinary, needed=True),
    clear("seq", BigInteger),
    PrimaryKeyConstraint("namespace", "record_id", "embedder", "part", name="vector_pk"),
    _of_record("vector_of"),
    Index("vector_seq", "namespace", "embedder", "seq"),
)
