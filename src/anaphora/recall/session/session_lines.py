"""What a session was about, in one or two lines: what the user stated, and what was left open.

Questions and commands say little a day later; a decision, a value and what has changed do. Which
turn is which is read from its words (`rank/statements`), in every language that is known.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final

from anaphora.language.small_talk import QUESTION_MARKS, begins_as_question, is_small_talk
from anaphora.rank.contradiction import seem_to_contradict
from anaphora.rank.house_rules import sentences_of
from anaphora.rank.statements import read_statement, words_of
from anaphora.text.display import cut
from anaphora.text.recalled import strip_recalled

if TYPE_CHECKING:
    from anaphora.values.conversations import Thread, Turn

DECIDED: Final = (
    r"decided|decision|agreed|chose|chosen|settled on|switched|moved (?:to|from)|migrated|"
    r"we (?:will )?use|instead of|entschieden|decidimos|decidió"
)
"""Words of a decision, as a pattern."""

MOST: Final = 4
"""Statements of a session that are shown."""
CHARACTERS: Final = 110
"""Characters of each."""
_PASTED: Final = 600
"""Characters from which on a turn was pasted rather than typed, or explains."""
_LINES: Final = 4
"""Lines from which on it was pasted."""
_LEAST: Final = 2
_TELLING: Final = 4
"""Words of a request that says what is to be done, and of a statement that stands alone."""
_DECIDED: Final = re.compile(rf"\b(?:{DECIDED})\b", re.IGNORECASE)
# What stands for a value: a figure, code, a name within the sentence.
_VALUE: Final = re.compile(r"\d|`|(?<=[\w,] )[A-ZÀ-Þ]\w+")


def session_statements(
    thread: Thread, rules: Collection[str], later: Collection[str] = ()
) -> list[str]:
    """What the user stated in a session, in order, and last asked for; nothing of small talk.

    What `rules` say is left out, and what one of the `later` statements gives another value.
    """
    typed_turns = [turn for turn in _skip_small_talk(thread) if turn.role == "user"]
    new_texts = [text for turn in typed_turns if (text := _strip_rules(_read_text(turn), rules))]
    # The last text counts if it asks for something to be done, in enough words to say what.
    is_open = bool(new_texts) and _says_enough(new_texts[-1]) and not _asks(new_texts[-1])
    # The texts that state most, of equal ones the last.
    weight_rows = [(_weigh(text), index) for index, text in enumerate(new_texts)]
    best_rows = sorted((row for row in weight_rows if row[0] >= _LEAST), reverse=True)[:MOST]
    chosen_texts = {new_texts[index] for _, index in best_rows}
    if is_open:
        chosen_texts.add(new_texts[-1])
    return [
        text
        for text in new_texts
        if text in chosen_texts and not any(seem_to_contradict(text, newer) for newer in later)
    ]


def _strip_rules(text: str, rules: Collection[str]) -> str:
    """A turn's words without sentences that are rules, or small talk."""
    sentences = sentences_of(text)
    remaining = [part for part in sentences if part not in rules and not is_small_talk(part)]
    return text if len(remaining) == len(sentences) else " ".join(remaining)


def last_exchange(thread: Thread, rules: Collection[str]) -> Iterator[str]:
    """The last question of a session that says what it is about, and the answer.

    Nothing where the user said no more than `rules` say.
    """
    turns = _skip_small_talk(thread)
    typed_turns = [
        turn for turn in turns if turn.role == "user" and _strip_rules(_read_text(turn), rules)
    ]
    if not typed_turns:
        return
    last_turn = next(
        (turn for turn in reversed(typed_turns) if _says_enough(_read_text(turn))), typed_turns[-1]
    )
    yield f"user: {_shorten(last_turn)}"
    later_turns = turns[turns.index(last_turn) + 1 :]
    if later_turns and later_turns[0].role == "assistant":
        yield f"assistant: {_shorten(later_turns[0])}"


def _skip_small_talk(thread: Thread) -> list[Turn]:
    """The turns that are no small talk."""
    return [turn for turn in thread.turns if not is_small_talk(_read_text(turn))]


def _weigh(text: str) -> int:
    """How much of a decision or of a value a turn states: 0 for a question, or a command."""
    if len(text) > _PASTED or text.count("\n") >= _LINES or _asks(text):
        return 0
    read, has_value = read_statement(text), _VALUE.search(text) is not None
    weight = 3 * bool(_DECIDED.search(text)) + 2 * read.changes + bool(read.subject) + has_value
    weight += _says_enough(text)
    return weight - read.tentative - (2 if read.complains and not has_value else 0)


def _asks(text: str) -> bool:
    return (
        text.rstrip().endswith(QUESTION_MARKS)
        or read_statement(text).asks
        or begins_as_question(text)
    )


def _says_enough(text: str) -> bool:
    return len(words_of(text)) >= _TELLING


def _read_text(turn: Turn) -> str:
    return strip_recalled(turn.text).strip()


def _shorten(turn: Turn) -> str:
    return cut(_read_text(turn), CHARACTERS)
