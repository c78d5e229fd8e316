"""The files of a project: which there are, their text, their part in the project.

In: a folder. Out: what can be indexed, and what was skipped with its reason. It never follows a
link, never writes, and never runs anything.
"""

from __future__ import annotations

from anaphora.ingest.files.reading import read
from anaphora.ingest.files.roles import language_of, role_of
from anaphora.ingest.files.secret_files import is_secret_file, without_secret_names
from anaphora.ingest.files.values import MAX_BYTES, Found, Text
from anaphora.ingest.files.walking import walk

__all__ = [
    "MAX_BYTES",
    "Found",
    "Text",
    "is_secret_file",
    "language_of",
    "read",
    "role_of",
    "walk",
    "without_secret_names",
]
