"""The tables of projects: files, sections, the graph of what they hold, and their history.

Declared as `schema` declares the others, in the same metadata; `metadata` is given again here, so
that whoever needs every table imports it from here. Ids are random, never made from names: a
sealed home must not let anybody check a guess. Importing this module imports SQLAlchemy.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
)

from anaphora.store.db.schema import clear, lookup, metadata, moment, sealed

__all__ = [
    "entity",
    "entity_alias",
    "history_item",
    "history_path",
    "metadata",
    "project",
    "relation",
    "section",
    "section_vector",
    "source_file",
]


def _goes_with(name: str, column: str, table: str, key: str) -> ForeignKeyConstraint:
    """Rows that go when what they belong to goes."""
    return ForeignKeyConstraint(
        ["namespace", column],
        [f"{table}.namespace", f"{table}.{key}"],
        name=name,
        ondelete="CASCADE",
    )


# A project that is or was indexed. `indexed_at` is empty until a pass was finished; `stale` is 1
# from the first change of its files until the graph has been brought in line with them. `folders`
# is a JSON object from path to modification time, by which new files are noticed; `head` the
# commit up to which history was read.
project = Table(
    "project",
    metadata,
    clear("namespace"),
    clear("project_id"),
    clear("seq", BigInteger),
    sealed("name", needed=True),
    sealed("root", needed=True),
    lookup("root_key", needed=True),
    moment("made_at"),
    moment("indexed_at", needed=False),
    clear("stale", Integer),
    sealed("head"),
    sealed("folders"),
    PrimaryKeyConstraint("namespace", "project_id", name="project_pk"),
    Index("project_root", "namespace", "root_key", unique=True),
)

# A file of a project, also one that was looked at and left out (`skipped` says why). `size`,
# `mtime_ns` and `inode` are as they were when it was read, `mtime_ns` negative where the file may
# have changed again within the clock's grain. `facts` is a JSON object of what the graph is made
# of: imports, symbols, commands, packages, title. `parser` is the version of what read it.
source_file = Table(
    "source_file",
    metadata,
    clear("namespace"),
    clear("file_id"),
    clear("project_id"),
    clear("seq", BigInteger),
    sealed("path", needed=True),
    lookup("path_key", needed=True),
    lookup("content_hash", needed=True),
    clear("role"),
    clear("language", needed=False),
    clear("skipped", needed=False),
    clear("parser", Integer),
    clear("size", BigInteger),
    clear("mtime_ns", BigInteger),
    clear("inode", BigInteger),
    moment("changed_at"),
    sealed("facts"),
    PrimaryKeyConstraint("namespace", "file_id", name="source_file_pk"),
    _goes_with("source_file_of", "project_id", "project", "project_id"),
    Index("source_file_path", "namespace", "project_id", "path_key", unique=True),
    Index("source_file_seq", "namespace", "project_id", "seq"),
)

# A part of a file, whole lines of it. `text_hash` is that of the words to embed, by which sections
# find their vectors: a file that was moved, or text that returns, is embedded once.
section = Table(
    "section",
    metadata,
    clear("namespace"),
    clear("section_id"),
    clear("project_id"),
    clear("file_id"),
    clear("seq", BigInteger),
    clear("position", Integer),
    clear("kind"),
    sealed("title", needed=True),
    sealed("heading"),
    sealed("symbol"),
    sealed("text", needed=True),
    clear("start_line", Integer),
    clear("end_line", Integer),
    moment("changed_at"),
    lookup("text_hash", needed=True),
    PrimaryKeyConstraint("namespace", "section_id", name="section_pk"),
    _goes_with("section_of", "file_id", "source_file", "file_id"),
    Index("section_file", "namespace", "file_id"),
    Index("section_seq", "namespace", "seq", unique=True),
    Index("section_text", "namespace", "text_hash"),
    Index("section_project", "namespace", "project_id"),
)

# `data` is `dimensions` float16 numbers, little-endian, as in `vector`.
section_vector = Table(
    "section_vector",
    metadata,
    clear("namespace"),
    lookup("text_hash", needed=True),
    clear("embedder"),
    clear("part", Integer),
    sealed("data", LargeBinary, needed=True),
    clear("seq", BigInteger),
    PrimaryKeyConstraint("namespace", "text_hash", "embedder", "part", name="section_vector_pk"),
    Index("section_vector_seq", "namespace", "embedder", "seq"),
)

# Something that notes and files speak of. A note is one as well (`record_id`), of no project. What
# is no longer there has `gone_at`; `file_id` names the file where it is, without a constraint, as
# a file that was deleted leaves its entity. `summary` is a line to show.
entity = Table(
    "entity",
    metadata,
    clear("namespace"),
    clear("entity_id"),
    clear("project_id", needed=False),
    clear("seq", BigInteger),
    clear("kind"),
    sealed("name", needed=True),
    lookup("entity_key", needed=True),
    sealed("summary"),
    clear("file_id", needed=False),
    clear("record_id", needed=False),
    clear("start_line", Integer, needed=False),
    clear("end_line", Integer, needed=False),
    moment("gone_at", needed=False),
    PrimaryKeyConstraint("namespace", "entity_id", name="entity_pk"),
    _goes_with("entity_of", "project_id", "project", "project_id"),
    _goes_with("entity_note", "record_id", "record", "record_id"),
    Index("entity_named", "namespace", "entity_key", unique=True),
    Index("entity_project", "namespace", "project_id"),
    Index("entity_file", "namespace", "file_id"),
    Index("entity_record", "namespace", "record_id"),
    Index("entity_seq", "namespace", "seq"),
)

# A name by which an entity is found: a digest of its normalised form.
entity_alias = Table(
    "entity_alias",
    metadata,
    clear("namespace"),
    lookup("alias_key", needed=True),
    clear("entity_id"),
    # A label of ours; sealed, it ties the name to the entity.
    sealed("kind", needed=True),
    clear("seq", BigInteger),
    PrimaryKeyConstraint("namespace", "alias_key", "entity_id", name="entity_alias_pk"),
    _goes_with("entity_alias_of", "entity_id", "entity", "entity_id"),
    Index("entity_alias_entity", "namespace", "entity_id"),
)

# What one entity is to another, as `source_id` states it: a file's id, a note's, or "" for the
# shape of the project itself. One row for each statement: one that holds again becomes active
# again. `supersedes` is the id of the relation that it took the place of.
relation = Table(
    "relation",
    metadata,
    clear("namespace"),
    clear("relation_id"),
    clear("project_id", needed=False),
    clear("seq", BigInteger),
    clear("subject_id"),
    clear("predicate"),
    clear("object_id"),
    clear("source_id"),
    clear("status"),
    clear("strength", Float),
    moment("valid_from"),
    moment("valid_until", needed=False),
    clear("supersedes", needed=False),
    sealed("detail"),
    PrimaryKeyConstraint("namespace", "relation_id", name="relation_pk"),
    _goes_with("relation_of", "project_id", "project", "project_id"),
    _goes_with("relation_subject", "subject_id", "entity", "entity_id"),
    _goes_with("relation_object", "object_id", "entity", "entity_id"),
    Index(
        "relation_triple",
        "namespace", "subject_id", "predicate", "object_id", "source_id",
        unique=True,
    ),
    Index("relation_to", "namespace", "object_id"),
    Index("relation_source", "namespace", "source_id"),
    Index("relation_project", "namespace", "project_id"),
    Index("relation_seq", "namespace", "seq"),
)  # fmt: skip

# A commit or a rename of a project's past. `text` is the subject line, `commit_name` what version
# control calls it, `paths` a JSON list; of a rename, the old path and then the new one.
history_item = Table(
    "history_item",
    metadata,
    clear("namespace"),
    clear("item_id"),
    clear("project_id"),
    clear("seq", BigInteger),
    clear("kind"),
    moment("at"),
    lookup("item_key", needed=True),
    sealed("text", needed=True),
    sealed("commit_name"),
    sealed("paths"),
    PrimaryKeyConstraint("namespace", "item_id", name="history_item_pk"),
    _goes_with("history_item_of", "project_id", "project", "project_id"),
    Index("history_item_named", "namespace", "item_key", unique=True),
    Index("history_item_at", "namespace", "project_id", "at"),
    Index("history_item_seq", "namespace", "seq"),
)

# Which paths an item of history touched, to find it by them.
history_path = Table(
    "history_path",
    metadata,
    clear("namespace"),
    lookup("path_key", needed=True),
    clear("item_id"),
    moment("at"),
    PrimaryKeyConstraint("namespace", "path_key", "item_id", name="history_path_pk"),
    _goes_with("history_path_of", "item_id", "history_item", "item_id"),
    Index("history_path_item", "namespace", "item_id"),
)
