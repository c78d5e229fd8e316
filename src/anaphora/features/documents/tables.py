"""The tables of documents; see `store.db.tables`."""

from __future__ import annotations

from typing import Final

from anaphora.store.db.table import Reference, Table, clear, namespaced, sealed

# The file of a document, in pieces: `data` are its bytes from `position` pieces on.
DOCUMENT_FILE = namespaced(
    "document_file",
    ("record_id", "position"),
    clear("record_id"),
    clear("position", "integer"),
    sealed("data", "bytes", needed=True),
    clear("seq", "big"),
    references=(Reference("document_file_of", "record_id", "record", "record_id"),),
)

TABLES: Final[tuple[Table, ...]] = (DOCUMENT_FILE,)
