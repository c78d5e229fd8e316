"""Deep recall: answers, gaps, traces, jobs of a session's end, and what was extracted."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from anaphora.store.db.schema import EscapedText

revision = "0005"
down_revision = "0004"


def _texts(*names: str, needed: bool = True) -> list[sa.Column[Any]]:
    return [sa.Column(name, EscapedText, nullable=not needed) for name in names]


def _numbers(*names: str, needed: bool = True) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger, nullable=not needed) for name in names]


def upgrade() -> None:
    """Make the tables of revision 0005."""
    _questions()
    op.create_table(
        "session_job",
        *_texts("namespace", "job_id"),
        *_numbers("seq"),
        *_texts("conversation_id", needed=False),
        *_texts("kind"),
        *_numbers("made_at"),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "job_id", name="session_job_pk"),
    )
    op.create_table(
        "extraction",
        *_texts("namespace", "conversation_id"),
        *_numbers("seq", "made_at"),
        *_texts("content_hash"),
        sa.PrimaryKeyConstraint("namespace", "conversation_id", name="extraction_pk"),
    )
    op.create_table(
        "fact_turn",
        *_texts("namespace", "record_id", "conversation_id"),
        sa.Column("position", sa.Integer, nullable=False),
        *_numbers("seq"),
        *_texts("turn_hash"),
        sa.PrimaryKeyConstraint(
            "namespace", "record_id", "conversation_id", "position", name="fact_turn_pk"
        ),
        sa.ForeignKeyConstraint(
            ["namespace", "record_id"],
            ["record.namespace", "record.record_id"],
            name="fact_turn_of",
            ondelete="CASCADE",
        ),
    )
    op.create_index("fact_turn_conversation", "fact_turn", ["namespace", "conversation_id"])


def _questions() -> None:
    op.create_table(
        "answer",
        *_texts("namespace", "answer_key"),
        *_numbers("seq", "made_at", "expires_at"),
        *_texts("body", "evidence"),
        sa.PrimaryKeyConstraint("namespace", "answer_key", name="answer_pk"),
    )
    op.create_index("answer_made", "answer", ["namespace", "made_at"])
    op.create_table(
        "gap",
        *_texts("namespace", "gap_id"),
        *_numbers("seq"),
        *_texts("question_key"),
        *_texts("conversation_id", needed=False),
        *_texts("kind", "status"),
        sa.Column("priority", sa.Float, nullable=False),
        sa.Column("asked", sa.Integer, nullable=False),
        *_numbers("created_at", "expires_at"),
        *_numbers("closed_at", needed=False),
        *_texts("question", "details", "closed_by"),
        sa.PrimaryKeyConstraint("namespace", "gap_id", name="gap_pk"),
    )
    op.create_index("gap_question", "gap", ["namespace", "question_key"])
    op.create_index("gap_status", "gap", ["namespace", "status"])
    op.create_table(
        "trace",
        *_texts("namespace", "trace_id"),
        *_numbers("seq", "made_at"),
        *_texts("question", "body", "seen"),
        sa.PrimaryKeyConstraint("namespace", "trace_id", name="trace_pk"),
    )
    op.create_index("trace_made", "trace", ["namespace", "made_at"])
