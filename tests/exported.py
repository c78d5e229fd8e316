"""What an export says of a memory: each of its lines, by kind (docs/formats.md)."""

from __future__ import annotations

import io
import json
from typing import Any

from anaphora import Memory


def exported(memory: Memory, kind: str) -> list[dict[str, Any]]:
    """The lines of one kind in an export of this namespace."""
    out = io.BytesIO()
    memory.export(out)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    # A line with characters that JSON cannot tell apart is wrapped; no test here looks into one.
    return [line for line in lines if line.get("kind") == kind]
