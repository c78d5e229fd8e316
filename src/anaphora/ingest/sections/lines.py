"""Text without a structure that is known: the whole file, or its lines in parts.

In: lines. Out: one mark, which cutting divides where the text leaves a blank line.
"""

from __future__ import annotations

from collections.abc import Sequence

from anaphora.ingest.sections.cutting import Mark, fits


def line_marks(lines: Sequence[str], title: str) -> list[Mark]:
    """One mark for all lines: the file's own section if it fits, else lines in parts."""
    return [Mark(1, "file" if fits(lines, 1, len(lines)) else "lines", title)]
