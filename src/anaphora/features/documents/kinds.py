"""The kind of hits that a search finds in documents."""

from __future__ import annotations

from typing import Final

from anaphora.values.search_kinds import HitKind

DOCUMENT: Final = HitKind("document")
