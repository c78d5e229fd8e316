"""Which turns still hold the words of something that was forgotten.

In: the words, and the index of turns. Out: the places of turns that hold every one of them. It
changes nothing: a thread is the user's own record, and only the user takes words out of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from anaphora.text import analyse, query_terms

if TYPE_CHECKING:
    from anaphora.index.turns.index import TurnIndex

__all__ = ["turns_holding"]

# Candidates by their words: a turn that holds all words of a sentence is among the best for them.
_LOOK_AT = 50


def turns_holding(index: TurnIndex, text: str) -> Iterator[tuple[str, int]]:
    """Conversation id and index of each turn that holds every word of `text`, by their order."""
    terms = query_terms(text)
    if not terms:
        return
    _, view = index.followed(embed="none")
    found = np.flatnonzero(view.words(terms, limit=_LOOK_AT))
    wanted = set(terms)
    for row, words in zip(found.tolist(), index.texts_of(view, found), strict=True):
        if wanted <= set(analyse(words)):
            code = int(view.table.conversation[row])
            yield view.table.conversations[code], int(view.table.position[row])
