"""The passage of a long turn that stands for it, where it cannot come whole.

In: a view, a question's terms and vector, a turn that was found and the tokens that it may take.
Out: the turn with a verbatim part of its text, and where in it that stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from anaphora.index.turns.embedded import over_whole
from anaphora.recall.snippets import passage
from anaphora.text.recalled import FAR, recalled_blocks
from anaphora.values.conversations import Excerpt, RelatedTurn, TurnHit

if TYPE_CHECKING:
    from anaphora.embed.base import Vector
    from anaphora.index.turns.view import TurnView
    from anaphora.language.analyser import QueryWord

COMPARED: Final = 150
"""Tokens of that passage."""

Cut = Callable[[str, int, int], tuple[int, int]]
"""A text, start and end of a passage → where it is cut."""


def anywhere(_text: str, start: int, end: int) -> tuple[int, int]:
    """A cut where it falls."""
    return start, end


TurnT = TypeVar("TurnT", TurnHit, RelatedTurn)


@dataclass(frozen=True)
class PassageFinder:
    """Finds passages for one question to one view.

    `vector_of` gives the question's vector, None where there is none; it is asked where a turn is
    too long to come whole. `cut` moves the place of a passage to where the turn may be cut.
    """

    view: TurnView
    words: Sequence[QueryWord]
    vector_of: Callable[[], Vector | None]
    cut: Cut

    @cached_property
    def _vector(self) -> Vector | None:
        return self.vector_of()

    @cached_property
    def _weights(self) -> Mapping[str, float]:
        """How rare each word is among the turns: what is in all of them tells no part apart."""
        weights = self.view.idf(self.words).tolist()
        return dict(zip((word.tokens[0] for word in self.words), weights, strict=True))

    def shortened(self, turn: TurnT, row: int, room: int | None) -> TurnT:
        """The turn of `row` with its best passage of at most `room` tokens; None: as it is."""
        if room is None:
            return turn
        start, end = self.cut(turn.text, *self._find_span(turn.text, row, room))
        excerpt = Excerpt(start, end, len(turn.text))
        return replace(turn, text=turn.text[start:end], excerpt=excerpt)

    def compared(self, text: str, row: int) -> str | None:
        """The passage by which a very long turn is compared with others; None: by its text."""
        if len(text) <= FAR:
            return None
        start, end = self._find_span(text, row, COMPARED)
        return text[start:end]

    def _find_span(self, text: str, row: int, room: int) -> tuple[int, int]:
        chunk_closeness = (
            [] if self._vector is None else self.view.chunks(self._vector, row).tolist()
        )
        blanked_text, weights = text, self._weights
        blocks = list(recalled_blocks(text))
        for begin, end in blocks:
            # What was recalled was not said by this turn: nothing in it is looked for.
            blanked_text = f"{blanked_text[:begin]}{' ' * (end - begin)}{blanked_text[end:]}"
        chunk_closeness = over_whole(chunk_closeness, blanked_text)
        start, end = passage(
            blanked_text, tuple(weights), 4 * room, weights=weights, near=chunk_closeness
        )
        for first_index, last_index in blocks:
            if first_index <= start < last_index:
                start = min(last_index, len(text) - 1)
            elif start < first_index < end:
                end = first_index
        return start, max(start + 1, end)
