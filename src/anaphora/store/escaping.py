"""One reversible rule that lets every Python string live in every database.

A stored text has no NUL and no surrogates, which PostgreSQL refuses. Each refused character becomes
U+0010 (DLE, "data link escape") and its code in four hexadecimal digits; DLE itself is written the
same way. Everything else stays as it is, so ordinary text is unchanged.

The rule works on one character at a time and no code is the beginning of another. Hence
`escape(a + b) == escape(a) + escape(b)`, two different strings never share an escaped form, and
`a` starts with `b` exactly when `escape(a)` starts with `escape(b)`: prefix search stays true.
"""

from __future__ import annotations

import re
from typing import Any

from anaphora.errors import InvalidInput

MARK = "\x10"
"""What every escape begins with: a stored text without it is as it was given."""

REFUSED = re.compile("[\x00\x10\ud800-\udfff]")
"""A character that `escape` changes."""

_CODE = re.compile("\x10([0-9A-F]{4})?")


def escape(text: str) -> str:
    """The form of `text` that every database keeps; `unescape` gives `text` back."""
    if text.isascii() and MARK not in text and "\0" not in text:
        # Nearly every text; looking for two characters is a tenth of looking at each.
        return text
    return REFUSED.sub(lambda match: f"\x10{ord(match[0]):04X}", text)


def unescape(stored: str) -> str:
    """What was given to `escape`. `InvalidInput` when `stored` is not an escaped form."""
    return _CODE.sub(_decode, stored) if MARK in stored else stored


def escape_cell(value: Any) -> Any:
    """What a cell holds for a value: a text is escaped, anything else is as it is."""
    return escape(value) if isinstance(value, str) else value


def unescape_cell(cell: Any) -> Any:
    """What was given to `escape_cell`."""
    return unescape(cell) if isinstance(cell, str) else cell


def escape_rows(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows with their texts escaped; as they are where no text needs it, as nearly always."""
    # All texts at once: calling `escape` for each cell takes longer than writing it.
    texts = "".join([cell for row in rows for cell in row if isinstance(cell, str)])
    return rows if escape(texts) == texts else [tuple(map(escape_cell, row)) for row in rows]


def unescape_rows(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows with their texts unescaped; as they are where no text needs it, as nearly always."""
    # Column by column: looking at each cell of 100,000 rows takes longer than reading them.
    for column in zip(*rows, strict=True):
        kinds = set(map(type, column))
        if str not in kinds:
            continue
        texts = column if len(kinds) == 1 else [c for c in column if isinstance(c, str)]
        if MARK in "".join(texts):
            return [tuple(map(unescape_cell, row)) for row in rows]
    return rows


def _decode(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16)) if match[1] else ""
    if not REFUSED.fullmatch(character):
        raise InvalidInput("stored text", match.string, "contains an invalid escape")
    return character
