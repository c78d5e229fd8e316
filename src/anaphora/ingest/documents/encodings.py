"""Bytes as text, in the encoding that a file names, if that is one of text."""

from __future__ import annotations

import codecs
from typing import Final

from anaphora.ingest.documents.base import Reading

# Python knows these as encodings as well: of names of hosts (whose cost grows with the square of
# the length), of source code, of what one machine is set to, and one that always fails.
_NOT_OF_TEXT: Final = frozenset(
    ("idna", "mbcs", "oem", "punycode", "raw-unicode-escape", "undefined", "unicode-escape")
)


def decoded(data: bytes, name: str, reading: Reading, place: str) -> str:
    """The text of `data`. What its encoding does not have is noted, and marked U+FFFD; of an
    encoding that is not known it is read as UTF-8, which is noted too."""
    known = text_encoding(name)
    if known is None:
        reading.problem(place, f"its encoding {name} is not known; read as UTF-8")
        return data.decode("utf-8", "replace")
    try:
        return data.decode(known)
    except UnicodeError as error:
        at = f"byte {error.start:,}" if isinstance(error, UnicodeDecodeError) else "a byte"
        reading.problem(place, f"{at} is not {name}")
        return data.decode(known, "replace")


def text_encoding(name: str) -> str | None:
    """What Python calls an encoding of text; None for what is none."""
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    usable = getattr(found, "_is_text_encoding", True)
    return found.name if usable and found.name.replace("_", "-") not in _NOT_OF_TEXT else None
