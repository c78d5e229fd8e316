"""Texts without the differences that do not count: case, accents, width, spacing."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_ACCENTS = re.compile("[\u0300-\u036f]")
_SPACES = re.compile(r"\s+")
_LONGEST_KNOWN = 8_000
_IN_A_LINE = re.compile(r"[^\S\n]+")


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


def typed_text(text: str) -> str:
    """A text in one form however it was typed: composed (NFC), without spaces that say nothing."""
    # A cache of very long texts would hold gigabytes.
    return _known_typed(text) if len(text) <= _LONGEST_KNOWN else _typed(text)


def _typed(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return _IN_A_LINE.sub(" ", text).strip()


_known_typed = lru_cache(maxsize=8192)(_typed)
