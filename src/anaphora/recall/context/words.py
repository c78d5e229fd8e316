"""The words of a focus as its author wrote them, for reasons that a person understands.

In: a reading and the worth of its terms. Out: which of them a text, a path or a title holds, as
written. It reads no index and no truth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from anaphora.core.analyser import analyse

_WRITTEN: Final = re.compile(r"[^\s,;:!?()\[\]{}<>\"'`|]+")
_JOINT: Final = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
_LONGEST: Final = 60


class FocusWords:
    """The terms of one focus. `weights` has each term's worth."""

    def __init__(self, statements: Iterable[str], weights: Mapping[str, float]) -> None:
        self._weights = weights
        self._written: dict[str, str] = {}
        for match in _WRITTEN.finditer(" ".join(statements)):
            word = match.group().strip(".-/\\*#=_")
            if not word or len(word) > _LONGEST:
                continue
            for piece in (word, *_JOINT.split(word)):
                tokens = analyse(piece)
                # A part is shown as itself, not as the long name that it is a part of.
                if tokens and tokens[0] in weights:
                    self._written.setdefault(tokens[0], piece)

    def within(self, text: str, most: int = 3) -> list[str]:
        """The worthiest words that a short text (a path, a title) holds, as written."""
        return self.shown(set(analyse(text)) & self._weights.keys(), most)

    def worth(self, text: str) -> float:
        """What share of the focus' worth a text holds, 0 to 1."""
        total = sum(self._weights.values())
        held = set(analyse(text)) & self._weights.keys()
        return sum(self._weights[term] for term in held) / total if total else 0.0

    def shown(self, held: Iterable[str], most: int = 3) -> list[str]:
        """The worthiest of these terms, as they were written."""
        order = sorted(held, key=lambda term: (-self._weights[term], term))
        shown: list[str] = []
        for term in order:
            word = self._written.get(term, term)
            # "sessions" says nothing beside "sessions.py".
            if not any(word.lower() in other.lower() for other in shown):
                shown.append(word)
        return shown[:most]


def listed(words: Iterable[str]) -> str:
    """Words in back-ticks, with commas between them."""
    return ", ".join(f"`{word}`" for word in words)
