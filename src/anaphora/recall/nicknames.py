"""Finds the turns that tell whom a question means by a name that is no speaker's.

In: a view of the index, a question, who speaks. Out: code of the speaker by name, for the names
that the turns tell. It reads few texts, and only for words of the question that are written like a
name; what it found is kept for as long as the view is. It never changes anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anaphora.core.analyser import query_terms
from anaphora.rank.nicknames import TEXTS, bearer, misspelt, shortened, unknown_names
from anaphora.rank.table import TurnTable
from anaphora.recall.repeated import Repeated

if TYPE_CHECKING:
    from anaphora.index.turns.index import TurnIndex
    from anaphora.index.turns.view import TurnView

# Names that are remembered between questions, nobody's among them.
_NAMES_KEPT = 512

# Turns that are looked at, back and then forth, for the other one of a conversation.
_STEPS = 4


@dataclass(frozen=True, slots=True)
class Nicknames:
    """Who is called what in the turns of one index."""

    index: TurnIndex
    _known: Repeated[int] = field(default_factory=lambda: Repeated(_NAMES_KEPT))

    def called(
        self, view: TurnView, question: str, present: Mapping[int, str], only: int | None
    ) -> dict[str, int]:
        """Names in `question` to codes of `present`; `only` is the one conversation, if it is."""
        found: dict[str, int] = {}
        for name in unknown_names(question, present):
            code = shortened(name, present)
            if code is None:
                code = self._bearer(view, name, present, only)
            if code in present:
                found[name] = code
        return found

    def _bearer(
        self, view: TurnView, name: str, present: Mapping[int, str], only: int | None
    ) -> int:
        """The code of who is called `name`, -1 for nobody."""
        code = self._known.get(view, (name, only))
        if code is None:
            words = view.words(query_terms(name), only, limit=TEXTS)
            # BM25 of one word: the shorter the turn, the better, and greetings are short.
            rows = np.argsort(-words, kind="stable")[: min(TEXTS, np.count_nonzero(words))]
            if len(rows):
                texts = self.index.texts_of(view, rows)
                found = bearer(name, _exchanges(view.table, rows, texts))
            else:
                found = misspelt(name, present)
            code = -1 if found is None else found
            self._known.put(view, (name, only), code)
        return code


def _exchanges(
    table: TurnTable, rows: NDArray[np.intp], texts: list[str]
) -> Iterator[tuple[str, int, int]]:
    for row, text in zip(rows.tolist(), texts, strict=True):
        yield text, int(table.speaker[row]), spoken_to(table, row)


def spoken_to(table: TurnTable, row: int) -> int:
    """The code of who last spoke before the turn, else first after it; not its own, -1 for none."""
    own = int(table.speaker[row])
    for column in (table.previous, table.following):
        beside = row
        for _ in range(_STEPS):
            beside = int(column[beside])
            if beside < 0:
                break
            if (code := int(table.speaker[beside])) not in (own, -1):
                return code
    return -1
