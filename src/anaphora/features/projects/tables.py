"""The tables of projects; see `store.db.tables`."""

from __future__ import annotations

from typing import Final

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

# A project that is or was indexed. `indexed_at` is empty until a pass was finished; `stale` is 1
# from the first change of its files until the graph has been brought in line with them. `folders`
# is a JSON object from path to modification time, by which new files are noticed; `head` the
# commit up to which history was read.
PROJECT = namespaced(
    "project",
    ("project_id",),
    clear("project_id"),
    clear("seq", "big"),
    sealed("name", needed=True),
    sealed("root", needed=True),
    lookup("root_key", needed=True, digest=True),
    moment("made_at"),
    moment("indexed_at", needed=False),
    clear("stale", "flag", loose=True),
    sealed("head"),
    sealed("folders", "mapping"),
    anchor="name",
    indexes=(Index("project_root", "root_key", unique=True),),
)

# A file of a project, also one that was looked at and left out (`skipped` says why). `size`,
# `mtime_ns` and `inode` are as they were when it was read, `mtime_ns` negative where the file may
# have changed again within the clock's grain. `facts` is a JSON object of what the graph is made
# of: imports, symbols, commands, packages, title. `parser` is the version of what read it.
SOURCE_FILE = namespaced(
    "source_file",
    ("file_id",),
    clear("file_id"),
    clear("project_id"),
    clear("seq", "big"),
    sealed("path", needed=True),
    lookup("path_key", needed=True, digest=True),
    lookup("content_hash", needed=True, digest=True),
    clear("role"),
    clear("language", needed=False),
    clear("skipped", needed=False),
    clear("parser", "integer"),
    clear("size", "big"),
    clear("mtime_ns", "big"),
    clear("inode", "big"),
    moment("changed_at"),
    # Large, and left out where files are only looked at: it cannot count as empty there.
    sealed("facts", "mapping", filled=True),
    anchor="path",
    references=(Reference("source_file_of", "project_id", "project", "project_id"),),
    indexes=(
        Index("source_file_seq", "project_id", "seq"),
        Index("source_file_path", "project_id", "path_key", unique=True),
    ),
)

# A part of a file, whole lines of it. `text_hash` is that of the words to embed, by which sections
# find their vectors: a file that was moved, or text that returns, is embedded once.
SECTION = namespaced(
    "section",
    ("section_id",),
    clear("section_id"),
    clear("project_id"),
    clear("file_id"),
    clear("seq", "big"),
    clear("position", "integer"),
    clear("kind"),
    sealed("title", needed=True),
    sealed("heading", "texts"),
    sealed("symbol"),
    sealed("text", needed=True),
    clear("start_line", "integer"),
    clear("end_line", "integer"),
    moment("changed_at"),
    lookup("text_hash", needed=True, digest=True),
    anchor="text",
    references=(Reference("section_of", "file_id", "source_file", "file_id"),),
    indexes=(
        Index("section_project", "project_id"),
        Index("section_seq", "seq", unique=True),
        Index("section_file", "file_id"),
        Index("section_text", "text_hash"),
    ),
)

# `data` is `dimensions` float16 numbers, little-endian, as in `vector`.
SECTION_VECTOR = namespaced(
    "section_vector",
    ("text_hash", "embedder", "part"),
    lookup("text_hash", needed=True, digest=True),
    clear("embedder"),
    clear("part", "integer"),
    sealed("data", "bytes", needed=True),
    clear("seq", "big"),
    indexes=(Index("section_vector_seq", "embedder", "seq"),),
)

# Something that notes and files speak of. A note is one as well (`record_id`), of no project. What
# is no longer there has `gone_at`; `file_id` names the file where it is, without a constraint, as
# a file that was deleted leaves its entity. `summary` is a line to show.
ENTITY = namespaced(
    "entity",
    ("entity_id",),
    clear("entity_id"),
    clear("project_id", needed=False),
    clear("seq", "big"),
    clear("kind"),
    sealed("name", needed=True),
    lookup("entity_key", needed=True, digest=True),
    sealed("summary"),
    clear("file_id", needed=False),
    clear("record_id", needed=False),
    clear("start_line", "integer", needed=False),
    clear("end_line", "integer", needed=False),
    moment("gone_at", needed=False),
    anchor="name",
    references=(
        Reference("entity_of", "project_id", "project", "project_id"),
        Reference("entity_note", "record_id", "record", "record_id"),
    ),
    indexes=(
        Index("entity_file", "file_id"),
        Index("entity_record", "record_id"),
        Index("entity_named", "entity_key", unique=True),
        Index("entity_seq", "seq"),
        Index("entity_project", "project_id"),
    ),
)

# A name by which an entity is found: a digest of its normalised form.
ENTITY_ALIAS = namespaced(
    "entity_alias",
    ("alias_key", "entity_id"),
    lookup("alias_key", needed=True, digest=True),
    clear("entity_id"),
    # A label of ours; sealed, it ties the name to the entity.
    sealed("kind", needed=True),
    clear("seq", "big"),
    anchor="kind",
    references=(Reference("entity_alias_of", "entity_id", "entity", "entity_id"),),
    indexes=(Index("entity_alias_entity", "entity_id"),),
)

# What one entity is to another, as `source_id` states it: a file's id, a note's, or "" for the
# shape of the project itself. One row for each statement: one that holds again becomes active
# again. `supersedes` is the id of the relation that it took the place of.
RELATION = namespaced(
    "relation",
    ("relation_id",),
    clear("relation_id"),
    clear("project_id", needed=False),
    clear("seq", "big"),
    clear("subject_id"),
    clear("predicate"),
    clear("object_id"),
    clear("source_id"),
    clear("status"),
    clear("strength", "float"),
    moment("valid_from"),
    moment("valid_until", needed=False),
    clear("supersedes", needed=False),
    sealed("detail", filled=True),
    anchor="detail",
    references=(
        Reference("relation_of", "project_id", "project", "project_id"),
        Reference("relation_subject", "subject_id", "entity", "entity_id"),
        Reference("relation_object", "object_id", "entity", "entity_id"),
    ),
    indexes=(
        Index("relation_source", "source_id"),
        Index("relation_triple", "subject_id", "predicate", "object_id", "source_id", unique=True),
        Index("relation_project", "project_id"),
        Index("relation_to", "object_id"),
        Index("relation_seq", "seq"),
    ),
)

# A commit or a rename of a project's past. `text` is the subject line, `commit_name` what version
# control calls it, `paths` a JSON list; of a rename, the old path and then the new one.
HISTORY_ITEM = namespaced(
    "history_item",
    ("item_id",),
    clear("item_id"),
    clear("project_id"),
    clear("seq", "big"),
    clear("kind"),
    moment("at"),
    lookup("item_key", needed=True, digest=True),
    sealed("text", needed=True),
    sealed("commit_name"),
    sealed("paths", "texts"),
    anchor="text",
    references=(Reference("history_item_of", "project_id", "project", "project_id"),),
    indexes=(
        Index("history_item_at", "project_id", "at"),
        Index("history_item_seq", "seq"),
        Index("history_item_named", "item_key", unique=True),
    ),
)

# Which paths an item of history touched, to find it by them.
HISTORY_PATH = namespaced(
    "history_path",
    ("path_key", "item_id"),
    lookup("path_key", needed=True, digest=True),
    clear("item_id"),
    moment("at"),
    references=(Reference("history_path_of", "item_id", "history_item", "item_id"),),
    indexes=(Index("history_path_item", "item_id"),),
)

TABLES: Final[tuple[Table, ...]] = (
    PROJECT,
    SOURCE_FILE,
    SECTION,
    SECTION_VECTOR,
    ENTITY,
    ENTITY_ALIAS,
    RELATION,
    HISTORY_ITEM,
    HISTORY_PATH,
)
