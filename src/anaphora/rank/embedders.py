"""Which texts a model reads: words weigh more in a text that its vectors say little of."""

from __future__ import annotations

import re
from typing import Final

from anaphora.language.languages.language import ENGLISH, language_of

_HEAD: Final = 400
"""Characters of a text that are looked at."""
_BEYOND_LATIN: Final = "\u0370"
"""The first letter of another alphabet: what comes before is Latin, with or without marks."""
_BUNDLED: Final = "anaphora-l6:"
_READ_SCRIPTS: Final = re.compile(
    "[A-Za-z\u00aa-\u036f\u0400-\u052f\u1100-\u11ff\u1e00-\u1eff\u3000-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff00-\uffdc\U00020000-\U0003ffff]"
)
"""Letters of which the bundled embedder knows words: Latin, Cyrillic, Chinese, Japanese, Korean."""


def embedder_reads(embedder: str, text: str) -> bool:
    """Whether a text is in a script that an embedder reads, by its name; an unknown one reads all.

    A text without letters counts as read.
    """
    if text.isascii() or not embedder.startswith(_BUNDLED):
        return True
    letters = sum(map(str.isalpha, text[:_HEAD]))
    return 2 * len(_READ_SCRIPTS.findall(text[:_HEAD])) >= letters


def reader_reads(text: str) -> bool:
    """Whether a text is in English, as far as can be told.

    Of a text in another language the reader takes every one for no answer.
    """
    code = language_of(text)
    if code or text[:_HEAD].isascii():
        return code in {"", ENGLISH}
    # A text in no known language: unless it has more other letters than Latin ones.
    latin = [letter < _BEYOND_LATIN for letter in text[:_HEAD] if letter.isalpha()]
    return 2 * sum(latin) >= len(latin)
