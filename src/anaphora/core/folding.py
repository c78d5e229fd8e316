"""Texts without the differences that do not count: case, accents, width, spacing."""

from __future__ import annotations

import re
import unicodedata

_ACCENTS = re.compile("[\u0300-\u036f]")
_SPACES = re.compile(r"\s+")


def fold(text: str) -> str:
    """Return `text` without differences of case, accent, width and spacing.

    Accents of Latin, Greek and Cyrillic letters go; the vowel signs of other scripts stay, since
    there they tell words apart.
    """
    return _SPACES.sub(" ", fold_letters(compatible(text))).strip()


def compatible(text: str) -> str:
    """`text` in its compatible form (NFKC): one character for all ways to write it."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def fold_letters(text: str) -> str:
    """`text`, which is in its compatible form, without differences of case and accent."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFD", text.casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", apart))
