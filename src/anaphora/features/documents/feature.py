"""Documents: files that are stored as searchable text, in versions."""

from __future__ import annotations

from anaphora.container.feature import CommandLine, Commands, Feature, later
from anaphora.features.documents.calls import DocumentCalls
from anaphora.features.documents.kinds import DOCUMENT
from anaphora.features.documents.remote import RemoteDocumentCalls
from anaphora.features.documents.tables import TABLES

__all__ = ["FEATURE", "DocumentCalls", "RemoteDocumentCalls"]


FEATURE = Feature(
    "documents",
    later(f"{__package__}.services:DocumentServices"),
    values=f"{__package__}.values",
    tables=TABLES,
    search_kinds=(DOCUMENT,),
    commands=(Commands(f"{__package__}.commands:register", 30, behind={"document": "Bring in"}),),
    routes=(f"{__package__}.routes:router",),
    cli=CommandLine(show=f"{__package__}.commands:show_by_id"),
    line_kinds=f"{__package__}.export:LINES",
)
