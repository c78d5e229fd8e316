"""The tables of deep recall; see `store.db.tables`."""

from __future__ import annotations

from typing import Final

from anaphora.store.db.table import (
    Index,
    Table,
    clear,
    lookup,
    moment,
    namespaced,
    sealed,
)

# An answer that may be given again. `answer_key` is a digest of what was asked, where and of which
# models; `body` the answer as JSON, `evidence` what it stood on, to see whether that has changed.
ANSWER = namespaced(
    "answer",
    ("answer_key",),
    lookup("answer_key", needed=True, digest=True),
    clear("seq", "big"),
    moment("made_at"),
    moment("expires_at"),
    sealed("body", needed=True),
    sealed("evidence", needed=True),
    indexes=(Index("answer_made", "made_at"),),
)

# A question that memory could not answer. `question_key` is a digest of the folded question;
# `conversation_id` is where it was asked; `details` a JSON object with the scope of the question;
# `closed_by` a JSON list of the sources that closed it.
GAP = namespaced(
    "gap",
    ("gap_id",),
    clear("gap_id"),
    clear("seq", "big"),
    lookup("question_key", needed=True, digest=True),
    lookup("conversation_id"),
    clear("kind"),
    clear("status"),
    clear("priority", "float"),
    clear("asked", "integer"),
    moment("created_at"),
    moment("expires_at"),
    moment("closed_at", needed=False),
    sealed("question", needed=True),
    sealed("details", needed=True),
    sealed("closed_by", needed=True),
    anchor="question",
    indexes=(Index("gap_status", "status"), Index("gap_question", "question_key")),
)

# How an answer was found, to be shown again. `seen` is a JSON object that says which turns and
# memories the code could read: when one of them is forgotten, the trace goes.
TRACE = namespaced(
    "trace",
    ("trace_id",),
    clear("trace_id"),
    clear("seq", "big"),
    moment("made_at"),
    sealed("question", needed=True),
    sealed("body", needed=True),
    sealed("seen", needed=True, digest=True),
    indexes=(Index("trace_made", "made_at"),),
)

# The content of a conversation from which facts were taken last.
EXTRACTION = namespaced(
    "extraction",
    ("conversation_id",),
    lookup("conversation_id", needed=True),
    clear("seq", "big"),
    moment("made_at"),
    sealed("content_hash", needed=True, digest=True),
)

TABLES: Final[tuple[Table, ...]] = (
    ANSWER,
    GAP,
    TRACE,
    EXTRACTION,
)
