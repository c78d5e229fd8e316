"""The same question as other people type it: cheap edits of its letters, the same in every run."""

from __future__ import annotations

import random
import re
from typing import Final

from tools.models.examples import AS_WRITTEN

_WORD: Final = re.compile(r"[^\W\d_]{5,}")
_OPENINGS: Final = ("do you remember ", "remind me, ", "i forgot, ", "quick one: ", "what was it, ")
# Words that carry no need of their own, so that people leave them out when they type in haste.
_LEFT_OUT: Final = re.compile(
    r"\b(?:an?|the|is|are|was|were|do|does|did|has|have|had|to|of|for|in|on|at|it|that|this|our|my"
    r"|your|there|would|will|can|could|should|be|been)\b ?"
)


def restyle(query: str, key: str, language: str = "en") -> tuple[tuple[str, str], ...]:
    """(style, text) of a question, the first as it is written; `key` decides the accidents."""
    chance = random.Random(f"styles:{key}")
    lower = query.lower().rstrip("?？ ¿").lstrip("¿ ")
    found = {AS_WRITTEN: query, "lower": lower, "typo": _mistype(lower, chance)}
    if language == "en":
        found["short"] = _shorten(lower)
        found["asked"] = chance.choice(_OPENINGS) + lower
    seen: dict[str, str] = {}
    for style, text in found.items():
        if text.strip() and text not in seen:
            seen[text] = style
    return tuple((style, text) for text, style in seen.items())


def _mistype(text: str, chance: random.Random) -> str:
    """One slip in one of the longer words: two letters swapped, one lost or one twice."""
    places = [match.span() for match in _WORD.finditer(text)]
    if not places:
        return text
    start, end = chance.choice(places)
    # The first letter is seldom mistyped.
    at = chance.randrange(start + 1, end - 1)
    slips = (
        text[:at] + text[at + 1] + text[at] + text[at + 2 :],
        text[:at] + text[at + 1 :],
        text[:at] + text[at] + text[at:],
    )
    return chance.choice(slips)


def _shorten(text: str) -> str:
    kept = _LEFT_OUT.sub("", text).strip()
    return kept if " " in kept else text
