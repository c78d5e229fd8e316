"""What a call or a write does, as records of it say."""

from __future__ import annotations

from typing import Final, Literal

AuditAction = Literal[
    "switched_on",
    "switched_off",
    "recovered",
    "remembered",
    "changed",
    "forgotten",
    "hidden",
    "restored",
    "recalled",
    "read",
    "exported",
]

DIGESTED: Final = "#"
"""Begins ids that a trail stores as digests: those of conversations and files."""
