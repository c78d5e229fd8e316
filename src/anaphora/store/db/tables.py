"""The tables of the database: one description of each, from which all else about them follows.

The SQLAlchemy schema (`schema`), what a sealed home does with each column (`crypto.columns`), the
columns of a SELECT, and how rows become values (`store.mapping`) are made from it. Plain data:
importing it imports no SQLAlchemy, as the first reads of every command come through here. A feature
adds tables of its own (`add_tables`).

`namespace` leads every key and every index: it is the distribution column where the database
outgrows one machine. Each row has a number (`seq`) of its namespace, drawn with its last change.
Ids are random, never made from names: in a sealed home no guess must be checkable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from anaphora.store.db.table import (
    Index,
    Reference,
    Table,
    clear,
    lookup,
    moment,
    namespaced,
    sealed,
)

TABLES: Final[dict[str, Table]] = {}
"""Every table by its name, in the order in which they are made: those of features come last."""

ADDED: Final[set[str]] = set()
"""The names of those that features have added, and of those that hold what can be made again: a
home may be older than they are, and the next write makes them."""

FOLLOWERS: Final[list[Callable[[], object]]] = []
"""Called after every change of `TABLES`."""


def add_tables(tables: Iterable[Table]) -> None:
    """Add the tables of a feature. ValueError for a name that another table has."""
    for table in tables:
        if table.name in TABLES:
            raise ValueError(f"there is a table {table.name!r} already")
        TABLES[table.name] = table
        ADDED.add(table.name)
    for follow in FOLLOWERS:
        follow()


def remove_tables(tables: Iterable[Table]) -> None:
    """Remove the tables of a feature from the program; what a database holds in them stays."""
    for table in tables:
        del TABLES[table.name]
        ADDED.discard(table.name)
    for follow in FOLLOWERS:
        follow()


def _add(name: str, key: tuple[str, ...], *columns: Any, **more: Any) -> Table:
    table = namespaced(name, key, *columns, **more)
    TABLES[name] = table
    return table


# `audit` says whether an audit trail is kept, and its tip ("on 12 <link>"), NULL if never.
HEAD = _add(
    "head",
    (),
    clear("seq", "big"),
    clear("audit", needed=False),
)

CONVERSATION_NOTE = _add(
    "conversation_note",
    ("conversation_id",),
    lookup("conversation_id", needed=True),
    clear("source", needed=False),
    sealed("source_key", filled=True),
    lookup("branch_of"),
    clear("branch_at", "integer", needed=False),
    clear("seq", "big"),
    anchor="source_key",
    indexes=(Index("conversation_note_seq", "seq"),),
)

# Where an agent's session took place. What is not known is "": no sealed column may be empty here.
SESSION_PLACE = _add(
    "session_place",
    ("conversation_id",),
    lookup("conversation_id", needed=True),
    sealed("client", needed=True),
    sealed("directory", needed=True),
    sealed("repository", needed=True),
    sealed("branch", needed=True),
    clear("seq", "big"),
    indexes=(Index("session_place_seq", "seq"),),
)

TURN_NOTE = _add(
    "turn_note",
    ("conversation_id", "position"),
    lookup("conversation_id", needed=True),
    clear("position", "integer"),
    # Sealed, because a guess of a short turn could be checked against its hash.
    sealed("turn_hash", needed=True, digest=True),
    sealed("speaker"),
    clear("source", needed=False),
    sealed("source_key"),
    sealed("message_key"),
    lookup("chat_key", digest=True),
    clear("seq", "big"),
    anchor="turn_hash",
    indexes=(Index("turn_note_chat", "chat_key"), Index("turn_note_seq", "seq")),
)

# A table of its own: the place of a forgotten turn may be taken by another turn, and the source
# message must stay known all the same, or the next import would bring it back.
FORGOTTEN_TURN = _add(
    "forgotten_turn",
    ("identity_key",),
    lookup("identity_key", needed=True, digest=True),
    lookup("conversation_id", needed=True),
    clear("position", "integer"),
    clear("source", needed=False),
    sealed("source_key", filled=True),
    sealed("message_key"),
    lookup("chat_key", digest=True),
    clear("seq", "big"),
    anchor="source_key",
    indexes=(
        Index("forgotten_turn_place", "conversation_id", "position"),
        Index("forgotten_turn_seq", "seq"),
        Index("forgotten_turn_chat", "chat_key"),
    ),
)

# A conversation, where threads live in the database. `stamp` is a random number drawn with each
# change of its turns: equal stamps mean the same turns, also after the database was put back to an
# earlier moment and went on differently. A deleted one keeps its row, for followers. `opening` is
# the place of the first words of the user, which name a conversation without a title.
THREAD = _add(
    "thread",
    ("conversation_id",),
    lookup("conversation_id", needed=True),
    clear("seq", "big"),
    clear("stamp", "big"),
    clear("turn_count", "integer"),
    clear("opening", "integer", needed=False),
    clear("deleted", "flag"),
    sealed("title", needed=True),
    sealed("updated_text", needed=True, digest=True),
    anchor="updated_text",
    indexes=(Index("thread_seq", "seq", unique=True),),
)

# A turn of such a conversation, positions without gaps from 0. `stamp` is that of the thread after
# the write that brought the turn; where turns are changed, all of the thread get the new one. So a
# turn that still has the stamp of a moment tells that nothing before it has changed since. There is
# no foreign key: sealing a home changes conversation ids row by row.
TURN = _add(
    "turn",
    ("conversation_id", "position"),
    lookup("conversation_id", needed=True),
    clear("position", "integer"),
    clear("seq", "big"),
    clear("stamp", "big"),
    sealed("role", needed=True),
    sealed("text", needed=True),
    sealed("ts_text", needed=True),
    sealed("intent_id", needed=True),
    sealed("turn_hash", needed=True, digest=True),
)

# A memory as it stands. `seq` is the number of its last change, so that a follower sees changes as
# it sees new rows; `record_event` tells how it came to be what it is. An empty `same_key` marks a
# memory that stands for itself: nothing restates it and nothing is linked to it. By `core` those of
# the core block are found: it repeats what `type` and, sealed, `origin` say.
RECORD = _add(
    "record",
    ("record_id",),
    clear("record_id"),
    clear("seq", "big"),
    clear("kind"),
    clear("type"),
    sealed("text", needed=True),
    sealed("path"),
    sealed("category"),
    sealed("tags", "texts"),
    sealed("payload", "json"),
    sealed("origin", "mapping"),
    clear("parent", needed=False),
    clear("supersedes", needed=False),
    clear("superseded_by", needed=False),
    moment("created_at"),
    moment("valid_from"),
    moment("valid_until", needed=False),
    moment("expires_at", needed=False),
    moment("forgotten_at", needed=False),
    clear("reinforced", "integer"),
    moment("last_reinforced"),
    lookup("same_key", needed=True, digest=True),
    lookup("path_key", digest=True),
    clear("core", "integer", needed=False, loose=True),
    anchor="text",
    indexes=(
        Index("record_core", "core", "seq", filled="core"),
        Index("record_same", "same_key"),
        Index("record_seq", "seq", unique=True),
        Index("record_path", "path_key", filled="path_key"),
        Index("record_parent", "parent", filled="parent"),
        Index("record_supersedes", "supersedes", filled="supersedes"),
        Index("record_superseded_by", "superseded_by", filled="superseded_by"),
        Index("record_payload", "seq", filled="payload"),
    ),
)

# Every time that a memory was said or changed: `at` is when, `origin` a JSON object with the source
# and the words of that time where they differ, or with what a change has replaced.
RECORD_EVENT = _add(
    "record_event",
    ("record_id", "seq"),
    clear("record_id"),
    clear("seq", "big"),
    clear("kind"),
    moment("at"),
    sealed("tags", "texts"),
    sealed("origin", "mapping", filled=True),
    anchor="origin",
    references=(Reference("record_event_of", "record_id", "record", "record_id"),),
    by_key=True,
)

# One row for a pair and kind, kept in the order of its ids where the kind has no direction: a
# pair can count only once, ever.
LINK = _add(
    "link",
    ("record_id", "other_id", "kind"),
    clear("record_id"),
    clear("other_id"),
    clear("kind"),
    clear("strength", "float", needed=False),
    clear("seq", "big"),
    references=(
        Reference("link_of", "record_id", "record", "record_id"),
        Reference("link_to", "other_id", "record", "record_id"),
    ),
    indexes=(Index("link_seq", "seq"), Index("link_other", "other_id")),
)

# What was deleted for good: its id and the number of the deletion, so that followers drop it.
TOMBSTONE = _add(
    "tombstone",
    ("seq",),
    clear("seq", "big"),
    clear("kind"),
    clear("owner_id"),
)

# `data` is `dimensions` float16 numbers, little-endian. `text_hash` is the hash of the text that
# was embedded: a vector of an older text is never taken for one of the present text.
VECTOR = _add(
    "vector",
    ("record_id", "embedder", "part"),
    clear("record_id"),
    clear("embedder"),
    clear("part", "integer"),
    sealed("text_hash", needed=True, digest=True),
    sealed("data", "bytes", needed=True),
    clear("seq", "big"),
    references=(Reference("vector_of", "record_id", "record", "record_id"),),
    indexes=(Index("vector_seq", "embedder", "seq"),),
)

# Work that the end of a session has queued.
SESSION_JOB = _add(
    "session_job",
    ("job_id",),
    clear("job_id"),
    clear("seq", "big"),
    lookup("conversation_id"),
    # A label of ours; sealed, it ties the conversation to the job.
    sealed("kind", needed=True),
    moment("made_at"),
    clear("attempts", "integer"),
    anchor="kind",
)

# A token is the home's, not a namespace's: all rows lie in the default one, and `scopes` is a JSON
# list of the namespaces that it opens. `token_hash` is the SHA-256 of 256 random bits, which cannot
# be guessed, so it needs no salt. `last_used` is coarse, an hour or so.
TOKEN = _add(
    "token",
    ("token_id",),
    clear("token_id"),
    clear("seq", "big"),
    sealed("name", needed=True),
    lookup("token_hash", needed=True, digest=True),
    sealed("scopes", needed=True),
    clear("read_only", "flag"),
    moment("created_at"),
    moment("expires_at", needed=False),
    moment("last_used", needed=False, loose=True),
    moment("revoked_at", needed=False),
    anchor="scopes",
    indexes=(Index("token_hash_of", "token_hash", unique=True),),
)

# The turns, or memories, that a fact was taken from: it is forgotten with them. Of a memory,
# `conversation_id` is its id behind a mark, and `position` is negative (`store.facts`).
FACT_TURN = _add(
    "fact_turn",
    ("record_id", "conversation_id", "position"),
    clear("record_id"),
    lookup("conversation_id", needed=True),
    clear("position", "integer"),
    clear("seq", "big"),
    sealed("turn_hash", needed=True, digest=True),
    references=(Reference("fact_turn_of", "record_id", "record", "record_id"),),
    indexes=(Index("fact_turn_conversation", "conversation_id"),),
)

# What a statement makes of an earlier one (`StatementLink`); only where it is about the same. Both
# ends are references to turns or records. No row has a number: links are made again at any time.
VERDICT = _add(
    "verdict",
    ("newer", "older"),
    lookup("newer", needed=True),
    lookup("older", needed=True),
    # Sealed, because a guess of a short text could be checked against them.
    sealed("newer_stamp", needed=True, digest=True),
    sealed("older_stamp", needed=True, digest=True),
    clear("replaces", "float"),
    # "both" means something to PostgreSQL.
    clear("holds", "float"),
    clear("repeats", "float"),
    indexes=(Index("verdict_older", "older"),),
)

# A statement that was compared with all others, and the version of what judged it: both ends of
# every link are here. Of a record, the conversation is "".
JUDGED = _add(
    "judged",
    ("statement", "conversation_id"),
    lookup("statement", needed=True),
    lookup("conversation_id", needed=True),
    sealed("stamp", needed=True, digest=True),
    clear("judge"),
    indexes=(Index("judged_conversation", "conversation_id"),),
)
ADDED.update((VERDICT.name, JUDGED.name))
