"""The files of a project: which there are, their text, their part in the project.

In: a folder. Out: what can be indexed, and what was skipped with its reason. It never follows a
link, never writes, and never runs anything.
"""

from __future__ import annotations

from anaphora.ingest.projects.files.reading import read
from anaphora.ingest.projects.files.roles import language_of, role_of
from anaphora.ingest.projects.files.walking import MAX_BYTES, Found, Text, walk

__all__ = [
    "MAX_BYTES",
    "Found",
    "Text",
    "language_of",
    "read",
    "role_of",
    "walk",
]
