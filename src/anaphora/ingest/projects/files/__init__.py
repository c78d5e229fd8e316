"""The files of a project: which there are, their text, their role. Links are never followed."""

from __future__ import annotations

from anaphora.ingest.projects.files.reading import read
from anaphora.ingest.projects.files.roles import language_of, role_of
from anaphora.ingest.projects.files.walking import MAX_BYTES, FileText, FoundFile, walk

__all__ = [
    "MAX_BYTES",
    "FileText",
    "FoundFile",
    "language_of",
    "read",
    "role_of",
    "walk",
]
