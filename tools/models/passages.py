"""The texts that an embedder is given of turns: the product's own cutting, in several forms.

The product embeds a turn's words alone (`text`); who spoke and what came before are signals of
their own there. `speaker` puts the name before the words, `before` also the turn before behind
them, if it asks, `mixed` is `text` for one half of the groups and `speaker` for the other.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from anaphora.index.turns.embedded import embedded_text
from anaphora.reading.inputs import said_text, statement_text

FORMS: Final = ("text", "speaker", "before", "mixed")


@dataclass(frozen=True, slots=True)
class Turn:
    """Who said what; `speaker` None where nobody is named."""

    speaker: str | None
    text: str

    @property
    def said(self) -> str:
        """`speaker: text`, or the text alone."""
        return said_text(self.text, self.speaker)


def form_passages(turns: Sequence[Turn], form: str, group: str) -> list[str]:
    """The passages of a chat's turns, in their order."""
    if form == "mixed":
        form = "speaker" if zlib.crc32(group.encode()) % 2 else "text"
    told = [Turn(turn.speaker, embedded_text(turn.text).strip() or " ") for turn in turns]
    if form == "text":
        return [turn.text for turn in told]
    if form == "speaker":
        return [turn.said for turn in told]
    before = ["", *(turn.said for turn in told[:-1])]
    return [
        statement_text(turn.text, speaker=turn.speaker, before=earlier)
        for turn, earlier in zip(told, before, strict=True)
    ]
