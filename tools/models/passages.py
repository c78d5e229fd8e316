"""The texts of turns, cut as the product cuts them, in several forms.

The product embeds a turn's words alone (`WORDS`); its reader also gets who spoke (`SPEAKER`) and,
behind them, the turn before if it asks (`CONTEXT`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from anaphora.index.turns.embedded import embedded_text
from anaphora.rank.question import read_question
from anaphora.reading.inputs import said_text, statement_text

WORDS: Final = "text"
SPEAKER: Final = "speaker"
CONTEXT: Final = "before"


@dataclass(frozen=True, slots=True)
class Turn:
    """Who said what; `speaker` None where nobody is named."""

    speaker: str | None
    text: str

    @property
    def said(self) -> str:
        """`speaker: text`, or the text alone."""
        return said_text(self.text, self.speaker)


def form_passages(turns: Sequence[Turn], form: str) -> list[str]:
    """The passages of a chat's turns, in their order."""
    cut = [Turn(turn.speaker, embedded_text(turn.text).strip() or " ") for turn in turns]
    if form == WORDS:
        return [turn.text for turn in cut]
    if form == SPEAKER:
        return [turn.said for turn in cut]
    before = ["", *(turn.said for turn in cut[:-1])]
    return [
        statement_text(turn.text, speaker=turn.speaker, before=earlier)
        for turn, earlier in zip(cut, before, strict=True)
    ]


def speakers_of(turns: Iterable[Turn]) -> dict[int, str]:
    """The speakers of a chat by a number, as the product's reading of questions takes them."""
    return dict(enumerate(dict.fromkeys(turn.speaker for turn in turns if turn.speaker)))


def meaning_of(question: str, speakers: dict[int, str]) -> str:
    """What the product embeds of a question."""
    return read_question(question, speakers, []).meaning
