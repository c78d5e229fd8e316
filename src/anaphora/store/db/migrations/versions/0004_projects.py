"""Projects: files, sections and their vectors, the graph, and the history."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from anaphora.store.db.schema import EscapedText

revision = "0004"
down_revision = "0003"


def _texts(*names: str, needed: bool = True) -> list[sa.Column[Any]]:
    return [sa.Column(name, EscapedText, nullable=not needed) for name in names]


def _numbers(*names: str, needed: bool = True) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger, nullable=not needed) for name in names]


def _counts(*names: str, needed: bool = True) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Integer, nullable=not needed) for name in names]


def _goes_with(name: str, column: str, table: str, key: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["namespace", column],
        [f"{table}.namespace", f"{table}.{key}"],
        name=name,
        ondelete="CASCADE",
    )


def upgrade() -> None:
    """Make the tables of revision 0004."""
    _files()
    _graph()
    _history()


def _files() -> None:
    op.create_table(
        "project",
        *_texts("namespace", "project_id"),
        *_numbers("seq"),
        *_texts("name", "root", "root_key"),
        *_numbers("made_at"),
        *_numbers("indexed_at", needed=False),
        *_counts("stale"),
        *_texts("head", "folders", needed=False),
        sa.PrimaryKeyConstraint("namespace", "project_id", name="project_pk"),
    )
    op.create_index("project_root", "project", ["namespace", "root_key"], unique=True)
    op.create_table(
        "source_file",
        *_texts("namespace", "file_id", "project_id"),
        *_numbers("seq"),
        *_texts("path", "path_key", "content_hash", "role"),
        *_texts("language", "skipped", needed=False),
        *_counts("parser"),
        *_numbers("size", "mtime_ns", "inode", "changed_at"),
        *_texts("facts", needed=False),
        sa.PrimaryKeyConstraint("namespace", "file_id", name="source_file_pk"),
        _goes_with("source_file_of", "project_id", "project", "project_id"),
    )
    op.create_index(
        "source_file_path", "source_file", ["namespace", "project_id", "path_key"], unique=True
    )
    op.create_index("source_file_seq", "source_file", ["namespace", "project_id", "seq"])
    op.create_table(
        "section",
        *_texts("namespace", "section_id", "project_id", "file_id"),
        *_numbers("seq"),
        *_counts("position"),
        *_texts("kind", "title"),
        *_texts("heading", "symbol", needed=False),
        *_texts("text"),
        *_counts("start_line", "end_line"),
        *_numbers("changed_at"),
        *_texts("text_hash"),
        sa.PrimaryKeyConstraint("namespace", "section_id", name="section_pk"),
        _goes_with("section_of", "file_id", "source_file", "file_id"),
    )
    op.create_index("section_file", "section", ["namespace", "file_id"])
    op.create_index("section_project", "section", ["namespace", "project_id"])
    op.create_index("section_seq", "section", ["namespace", "seq"], unique=True)
    op.create_index("section_text", "section", ["namespace", "text_hash"])
    op.create_table(
        "section_vector",
        *_texts("namespace", "text_hash", "embedder"),
        *_counts("part"),
        sa.Column("data", sa.LargeBinary, nullable=False),
        *_numbers("seq"),
        sa.PrimaryKeyConstraint(
            "namespace", "text_hash", "embedder", "part", name="section_vector_pk"
        ),
    )
    op.create_index("section_vector_seq", "section_vector", ["namespace", "embedder", "seq"])


def _graph() -> None:
    op.create_table(
        "entity",
        *_texts("namespace", "entity_id"),
        *_texts("project_id", needed=False),
        *_numbers("seq"),
        *_texts("kind", "name", "entity_key"),
        *_texts("summary", "file_id", "record_id", needed=False),
        *_counts("start_line", "end_line", needed=False),
        *_numbers("gone_at", needed=False),
        sa.PrimaryKeyConstraint("namespace", "entity_id", name="entity_pk"),
        _goes_with("entity_of", "project_id", "project", "project_id"),
        _goes_with("entity_note", "record_id", "record", "record_id"),
    )
    op.create_index("entity_file", "entity", ["namespace", "file_id"])
    op.create_index("entity_named", "entity", ["namespace", "entity_key"], unique=True)
    op.create_index("entity_project", "entity", ["namespace", "project_id"])
    op.create_index("entity_record", "entity", ["namespace", "record_id"])
    op.create_index("entity_seq", "entity", ["namespace", "seq"])
    op.create_table(
        "entity_alias",
        *_texts("namespace", "alias_key", "entity_id", "kind"),
        *_numbers("seq"),
        sa.PrimaryKeyConstraint("namespace", "alias_key", "entity_id", name="entity_alias_pk"),
        _goes_with("entity_alias_of", "entity_id", "entity", "entity_id"),
    )
    op.create_index("entity_alias_entity", "entity_alias", ["namespace", "entity_id"])
    op.create_table(
        "relation",
        *_texts("namespace", "relation_id"),
        *_texts("project_id", needed=False),
        *_numbers("seq"),
        *_texts("subject_id", "predicate", "object_id", "source_id", "status"),
        sa.Column("strength", sa.Float, nullable=False),
        *_numbers("valid_from"),
        *_numbers("valid_until", needed=False),
        *_texts("supersedes", "detail", needed=False),
        sa.PrimaryKeyConstraint("namespace", "relation_id", name="relation_pk"),
        _goes_with("relation_of", "project_id", "project", "project_id"),
        _goes_with("relation_subject", "subject_id", "entity", "entity_id"),
        _goes_with("relation_object", "object_id", "entity", "entity_id"),
    )
    op.create_index("relation_project", "relation", ["namespace", "project_id"])
    op.create_index("relation_seq", "relation", ["namespace", "seq"])
    op.create_index("relation_source", "relation", ["namespace", "source_id"])
    op.create_index("relation_to", "relation", ["namespace", "object_id"])
    op.create_index(
        "relation_triple",
        "relation",
        ["namespace", "subject_id", "predicate", "object_id", "source_id"],
        unique=True,
    )


def _history() -> None:
    op.create_table(
        "history_item",
        *_texts("namespace", "item_id", "project_id"),
        *_numbers("seq"),
        *_texts("kind"),
        *_numbers("at"),
        *_texts("item_key", "text"),
        *_texts("commit_name", "paths", needed=False),
        sa.PrimaryKeyConstraint("namespace", "item_id", name="history_item_pk"),
        _goes_with("history_item_of", "project_id", "project", "project_id"),
    )
    op.create_index("history_item_at", "history_item", ["namespace", "project_id", "at"])
    op.create_index("history_item_named", "history_item", ["namespace", "item_key"], unique=True)
    op.create_index("history_item_seq", "history_item", ["namespace", "seq"])
    op.create_table(
        "history_path",
        *_texts("namespace", "path_key", "item_id"),
        *_numbers("at"),
        sa.PrimaryKeyConstraint("namespace", "path_key", "item_id", name="history_path_pk"),
        _goes_with("history_path_of", "item_id", "history_item", "item_id"),
    )
    op.create_index("history_path_item", "history_path", ["namespace", "item_id"])
