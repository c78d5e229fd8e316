"""The kind of hits that a search finds in files of projects."""

from __future__ import annotations

from typing import Final

from anaphora.values.search_kinds import HitKind

FILE: Final = HitKind("file")
