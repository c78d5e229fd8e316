"""What a sealed home does with each column of each table: what `schema.py` declares, as plain data.

In: nothing. Out: `PLANS`, one `Plan` a table. A test holds it together with the schema. It never
imports SQLAlchemy: the first reads of every command come through here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens to the columns of one table. `key` is its primary key, in order.

    `digests` are those of the columns that never hold a user's text in a clear home: a sealed
    form in one of them can only mean that the home was sealed.

    Every sealed value is bound to its table, column and key. The `anchor`, a sealed column, is
    bound to the rest of its row as well: to its lookups, to the clear columns in `bound`, and to
    which sealed columns are empty; so who reads the anchor must read all `columns`. A table without
    an anchor needs none: none of its sealed columns may be empty, and its lookups are in its key.
    `filled` are columns that have a sealed form for "nothing", too; `late` are columns that were
    clear when rows had no anchors.
    """

    key: tuple[str, ...]
    sealed: tuple[str, ...] = ()
    lookup: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    anchor: str = ""
    bound: tuple[str, ...] = ()
    filled: tuple[str, ...] = ()
    late: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that sealing has to do with, each once."""
        return tuple(dict.fromkeys((*self.key, *self.sealed, *self.lookup, *self.bound)))


PLANS: Final[Mapping[str, Plan]] = {
    "head": Plan(("namespace",)),
    "conversation_note": Plan(
        ("namespace", "conversation_id"),
        ("source_key",),
        ("conversation_id", "branch_of"),
        anchor="source_key",
        bound=("source", "branch_at"),
        filled=("source_key",),
    ),
    "turn_note": Plan(
        ("namespace", "conversation_id", "position"),
        ("turn_hash", "speaker", "source_key", "message_key"),
        ("conversation_id", "chat_key"),
        ("turn_hash", "chat_key"),
        anchor="turn_hash",
        bound=("source",),
    ),
    "forgotten_turn": Plan(
        ("namespace", "identity_key"),
        ("source_key", "message_key"),
        ("identity_key", "conversation_id", "chat_key"),
        ("identity_key", "chat_key"),
        anchor="source_key",
        bound=("position", "source"),
        filled=("source_key",),
    ),
    "thread": Plan(
        ("namespace", "conversation_id"),
        ("title", "updated_text"),
        ("conversation_id",),
        ("updated_text",),
        anchor="updated_text",
        bound=("stamp", "turn_count", "opening", "deleted"),
    ),
    "turn": Plan(
        ("namespace", "conversation_id", "position"),
        ("role", "text", "ts_text", "intent_id", "turn_hash"),
        ("conversation_id",),
        ("turn_hash",),
    ),
    "record": Plan(
        ("namespace", "record_id"),
        ("text", "path", "category", "tags", "payload", "origin"),
        ("same_key", "path_key"),
        ("same_key", "path_key"),
        anchor="text",
        bound=(
            "kind", "type", "parent", "supersedes", "superseded_by", "created_at", "valid_from",
            "valid_until", "expires_at", "forgotten_at", "reinforced", "last_reinforced",
        ),
    ),
    "record_event": Plan(
        ("namespace", "record_id", "seq"),
        ("tags", "origin"),
        anchor="origin",
        bound=("kind", "at"),
        filled=("origin",),
    ),
    "link": Plan(("namespace", "record_id", "other_id", "kind")),
    "tombstone": Plan(("namespace", "seq")),
    "vector": Plan(
        ("namespace", "record_id", "embedder", "part"),
        ("text_hash", "data"),
        digests=("text_hash",),
    ),
    "project": Plan(
        ("namespace", "project_id"),
        ("name", "root", "head", "folders"),
        ("root_key",),
        ("root_key",),
        anchor="name",
        bound=("made_at", "indexed_at"),
    ),
    "source_file": Plan(
        ("namespace", "file_id"),
        ("path", "facts"),
        ("path_key", "content_hash"),
        ("path_key", "content_hash"),
        anchor="path",
        bound=(
            "project_id", "role", "language", "skipped", "parser", "size", "mtime_ns", "inode",
            "changed_at",
        ),
        # Large, and left out where files are only looked at: it cannot count as empty there.
        filled=("facts",),
    ),
    "section": Plan(
        ("namespace", "section_id"),
        ("title", "heading", "symbol", "text"),
        ("text_hash",),
        ("text_hash",),
        anchor="text",
        bound=(
            "project_id", "file_id", "position", "kind", "start_line", "end_line", "changed_at",
        ),
    ),
    "section_vector": Plan(
        ("namespace", "text_hash", "embedder", "part"), ("data",), ("text_hash",), ("text_hash",)
    ),
    "entity": Plan(
        ("namespace", "entity_id"),
        ("name", "summary"),
        ("entity_key",),
        ("entity_key",),
        anchor="name",
        bound=(
            "project_id", "kind", "file_id", "record_id", "start_line", "end_line", "gone_at",
        ),
    ),
    "entity_alias": Plan(
        ("namespace", "alias_key", "entity_id"),
        ("kind",),
        ("alias_key",),
        ("alias_key",),
        anchor="kind",
        late=("kind",),
    ),
    "relation": Plan(
        ("namespace", "relation_id"),
        ("detail",),
        anchor="detail",
        bound=(
            "project_id", "subject_id", "predicate", "object_id", "source_id", "status",
            "strength", "valid_from", "valid_until", "supersedes",
        ),
        filled=("detail",),
    ),
    "history_item": Plan(
        ("namespace", "item_id"),
        ("text", "commit_name", "paths"),
        ("item_key",),
        ("item_key",),
        anchor="text",
        bound=("project_id", "kind", "at"),
    ),
    "history_path": Plan(("namespace", "path_key", "item_id"), (), ("path_key",), ("path_key",)),
    "answer": Plan(
        ("namespace", "answer_key"), ("body", "evidence"), ("answer_key",), ("answer_key",)
    ),
    "gap": Plan(
        ("namespace", "gap_id"),
        ("question", "details", "closed_by"),
        ("question_key", "conversation_id"),
        ("question_key",),
        anchor="question",
        bound=(
            "kind", "status", "priority", "asked", "created_at", "expires_at", "closed_at",
        ),
    ),
    "trace": Plan(("namespace", "trace_id"), ("question", "body", "seen"), digests=("seen",)),
    "session_job": Plan(
        ("namespace", "job_id"),
        ("kind",),
        ("conversation_id",),
        anchor="kind",
        bound=("made_at", "attempts"),
        late=("kind",),
    ),
    "extraction": Plan(
        ("namespace", "conversation_id"),
        ("content_hash",),
        ("conversation_id",),
        ("content_hash",),
    ),
    "fact_turn": Plan(
        ("namespace", "record_id", "conversation_id", "position"),
        ("turn_hash",),
        ("conversation_id",),
        ("turn_hash",),
    ),
    "token": Plan(
        ("namespace", "token_id"),
        ("name", "scopes"),
        ("token_hash",),
        ("token_hash",),
        anchor="scopes",
        bound=("read_only", "created_at", "expires_at", "revoked_at"),
    ),
}  # fmt: skip
