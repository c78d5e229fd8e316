"""Bytes as text, in the encoding that a file names, as browsers read such names.

The names are those of the WHATWG Encoding Standard: `iso-8859-1` is windows-1252 and `gb2312` is
gbk, as the files that say so were written. Mails name others, too, which Python knows.
"""

from __future__ import annotations

import codecs
from typing import Final

import webencodings

from anaphora.features.documents.reading.base import Reading

# Encodings of Python that are not for text: of host names (at a cost that grows with the square of
# the length), of source code, of the machine's settings, and one that always fails.
_NOT_OF_TEXT: Final = frozenset(
    ("idna", "mbcs", "oem", "punycode", "raw-unicode-escape", "undefined", "unicode-escape")
)
# Python's encodings of these names leave out characters that the standard's have.
_WIDER: Final = {"gbk": "gb18030", "euc-jp": "euc_jis_2004"}
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def marked(data: bytes) -> tuple[str, bytes] | None:
    """The encoding of a byte order mark, and the bytes behind it; None without one."""
    for mark, name in _BOMS:
        if data.startswith(mark):
            return name, data[len(mark) :]
    return None


def decoded(data: bytes, name: str | None, reading: Reading, place: str) -> str:
    """The text of `data`, in the encoding `name`; a byte order mark wins over it.

    What the encoding does not have is noted, and marked U+FFFD. Without a name, or with one that is
    not known (which is noted), it is UTF-8 if it is valid as that, else Windows-1252, which is
    noted.
    """
    if (mark := marked(data)) is not None:
        return _decode(mark[1], mark[0], mark[0], reading, place)
    encoding = text_encoding(name) if name else None
    if name and encoding is not None:
        return _decode(data, encoding, name, reading, place)
    unknown = f"its encoding {name} is not known" if name else ""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        reason = unknown or f"byte {error.start:,} is not UTF-8, and no encoding is declared"
        reading.problem(place, f"{reason}; read as Windows-1252")
        return data.decode("cp1252", "replace")
    if unknown:
        reading.problem(place, f"{unknown}; read as UTF-8")
    return text


def _decode(data: bytes, encoding: str, name: str, reading: Reading, place: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeError as error:
        wider = _WIDER.get(encoding)
        if wider is not None:
            return _decode(data, wider, name, reading, place)
        at = f"byte {error.start:,}" if isinstance(error, UnicodeDecodeError) else "a byte"
        reading.problem(place, f"{at} is not {name}")
        return data.decode(encoding, "replace")


def text_encoding(name: str) -> str | None:
    """Python's name of a text encoding; None if it is not one."""
    try:
        standard = webencodings.lookup(name)
    except ValueError:
        return None
    # Two old encodings of mails, which browsers do not read for what scripts could hide in them.
    if standard is not None and standard.name != "replacement":
        python = str(standard.codec_info.name)
        if python == "x-user-defined":
            return "cp1252"
        return str(standard.name) if standard.name in _WIDER else python
    try:
        codec = codecs.lookup(name.strip())
    except (LookupError, ValueError):
        return None
    usable = getattr(codec, "_is_text_encoding", True)
    return codec.name if usable and codec.name.replace("_", "-") not in _NOT_OF_TEXT else None


def declared_encoding(label: str) -> str | None:
    """The encoding that a page declares within itself; None if the standard does not have it.

    One whose declaration could be read is not UTF-16, whatever it says: by the standard, UTF-8.
    """
    standard = webencodings.lookup(label) if label.isascii() else None
    if standard is None:
        return None
    return "utf-8" if standard.name in {"utf-16le", "utf-16be"} else label
