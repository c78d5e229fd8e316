"""The tables of deep recall: answers, gaps, traces, jobs of a session's end, extractions.

Declared as `schema` declares the others, in the same metadata; `metadata` is given again here, so
that `schema_tokens` can hand it on. Importing this module imports SQLAlchemy.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
)

from anaphora.store.db.schema import clear, lookup, moment, sealed
from anaphora.store.db.schema_context import metadata

__all__ = [
    "TABLES",
    "answer",
    "extraction",
    "fact_turn",
    "gap",
    "metadata",
    "session_job",
    "trace",
]

# An answer that may be given again. `answer_key` is a digest of what was asked, where and of which
# models; `body` the answer as JSON, `evidence` what it stood on, to see whether that has changed.
answer = Table(
    "answer",
    metadata,
    clear("namespace"),
    lookup("answer_key", needed=True),
    clear("seq", BigInteger),
    moment("made_at"),
    moment("expires_at"),
    sealed("body", needed=True),
    sealed("evidence", needed=True),
    PrimaryKeyConstraint("namespace", "answer_key", name="answer_pk"),
    Index("answer_made", "namespace", "made_at"),
)

# A question that memory could not answer. `question_key` is a digest of the folded question;
# `conversation_id` is where it was asked; `details` a JSON object with the scope of the question;
# `closed_by` a JSON list of the sources that closed it.
gap = Table(
    "gap",
    metadata,
    clear("namespace"),
    clear("gap_id"),
    clear("seq", BigInteger),
    lookup("question_key", needed=True),
    lookup("conversation_id"),
    clear("kind"),
    clear("status"),
    clear("priority", Float),
    clear("asked", Integer),
    moment("created_at"),
    moment("expires_at"),
    moment("closed_at", needed=False),
    sealed("question", needed=True),
    sealed("details", needed=True),
    sealed("closed_by", needed=True),
    PrimaryKeyConstraint("namespace", "gap_id", name="gap_pk"),
    Index("gap_question", "namespace", "question_key"),
    Index("gap_status", "namespace", "status"),
)

# How an answer was found, to be shown again. `seen` is a JSON object that says which turns and
# memories the code could read: when one of them is forgotten, the trace goes.
trace = Table(
    "trace",
    metadata,
    clear("namespace"),
    clear("trace_id"),
    clear("seq", BigInteger),
    moment("made_at"),
    sealed("question", needed=True),
    sealed("body", needed=True),
    sealed("seen", needed=True),
    PrimaryKeyConstraint("namespace", "trace_id", name="trace_pk"),
    Index("trace_made", "namespace", "made_at"),
)

# Work that the end of a session has queued.
session_job = Table(
    "session_job",
    metadata,
    clear("namespace"),
    clear("job_id"),
    clear("seq", BigInteger),
    lookup("conversation_id"),
    # A label of ours; sealed, it ties the conversation to the job.
    sealed("kind", needed=True),
    moment("made_at"),
    clear("attempts", Integer),
    PrimaryKeyConstraint("namespace", "job_id", name="session_job_pk"),
)

# The content of a conversation from which facts were taken last.
extraction = Table(
    "extraction",
    metadata,
    clear("namespace"),
    lookup("conversation_id", needed=True),
    clear("seq", BigInteger),
    moment("made_at"),
    sealed("content_hash", needed=True),
    PrimaryKeyConstraint("namespace", "conversation_id", name="extraction_pk"),
)

# The turns that a fact was taken from: when one of them goes, or is redacted, so does the fact.
fact_turn = Table(
    "fact_turn",
    metadata,
    clear("namespace"),
    clear("record_id"),
    lookup("conversation_id", needed=True),
    clear("position", Integer),
    clear("seq", BigInteger),
    sealed("turn_hash", needed=True),
    PrimaryKeyConstraint(
        "namespace", "record_id", "conversation_id", "position", name="fact_turn_pk"
    ),
    ForeignKeyConstraint(
        ["namespace", "record_id"],
        ["record.namespace", "record.record_id"],
        name="fact_turn_of",
        ondelete="CASCADE",
    ),
    Index("fact_turn_conversation", "namespace", "conversation_id"),
)

TABLES = {table.name: table for table in (answer, gap, trace, session_job, extraction, fact_turn)}
