"""What a session was about: what the user stated, agreed to, and asked for last.

Questions and commands say little a day later; a decision, a value and what has changed do. Which
turn is which is read from its words (`rank/statements`), in every language that is known. What the
assistant proposed and the user took ("ok 409") is a decision too, and is told with the proposal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeAlias

from anaphora.language.small_talk import QUESTION_MARKS, begins_as_question, is_small_talk
from anaphora.rank.house_rules import is_rule, rule_of, sentences_of
from anaphora.rank.statements import read_statement, words_of
from anaphora.recall.render import quoted_line
from anaphora.text.display import cut
from anaphora.text.recalled import strip_recalled
from anaphora.values.links import turn_reference

if TYPE_CHECKING:
    from anaphora.recall.links import ToldStatement
    from anaphora.values.conversations import Thread, Turn

MOST: Final = 6
"""Statements of a session that are shown."""
CHARACTERS: Final = 110
"""Characters of each."""
LEAST: Final = 2
"""The weight from which on a statement is shown a day later."""
_PASTED: Final = 600
"""Characters from which on a turn was pasted rather than typed, or explains."""
_LINES: Final = 4
"""Lines from which on it was pasted."""
_AGREED: Final = 5
"""The weight of what was proposed and taken."""
_TELLING: Final = 4
"""Words of a request that says what is to be done, and of a statement that stands alone."""
_REPLY: Final = 80
"""Characters of a reply that takes a proposal, at most."""
_PROPOSED: Final = 90
"""Characters that are shown of a proposal, and of the question that it answers."""
_REFUSED: Final = 3
"""Statements in turn without room, after which no more are looked at."""
# What stands for a value: a figure, code, a name within the sentence.
_VALUE: Final = re.compile(r"\d|`|(?<=[\w,] )[A-ZÀ-Þ]\w+")


@dataclass(frozen=True, slots=True)
class Stated:
    """What a user stated in a turn.

    `weight` is how much of a decision or of a value it tells (0: a command, -1: a question),
    `turns` are the indexes of the turns that say it, `whole` those that `text` quotes in full.
    """

    text: str
    weight: int
    turns: tuple[int, ...]
    whole: tuple[int, ...]


def read_session(
    turns: Sequence[Turn], rules: Collection[str], most: int = CHARACTERS
) -> list[Stated]:
    """What the user stated in a session, in order; nothing of small talk, nor what `rules` say.

    `most` are the characters of each that are shown.
    """
    statements: list[Stated] = []
    for index, turn in enumerate(turns):
        if turn.role != "user":
            continue
        text = _read_text(turn)
        if agreed := _read_agreement(turns, index, text):
            # The question that it settles stands in it.
            statements = [row for row in statements if row.turns[0] != index - 2 or row.weight > 0]
            statements.append(agreed)
        elif not _is_chatter(text) and (stated := _strip_rules(text, rules)):
            shown_text = cut(stated, most)
            whole_turns = (index,) if shown_text == text else ()
            statements.append(Stated(shown_text, _weigh(stated), (index,), whole_turns))
    if statements and _says_enough(last := statements[-1].text) and not _asks(last):
        # What was asked for last may still be open.
        statements[-1] = replace(statements[-1], weight=max(statements[-1].weight, LEAST))
    return statements


@dataclass(frozen=True, slots=True)
class Newer:
    """What stands against a statement: its id, the word for that, what it says, and since when."""

    id: str
    mark: str
    text: str
    ts: datetime


Replacing: TypeAlias = Callable[[Collection[str]], Mapping[str, "ToldStatement"]]
"""Gives what replaced statements of any kind, by their references, as recall judges it."""


def find_newer(
    replacing: Replacing, keys: Sequence[tuple[str, int]], stated: Stated
) -> Newer | None:
    """What replaced a statement of a session, whose turns are at `keys`; None where it holds."""
    for newer in replacing([turn_reference(*keys[index]) for index in stated.turns]).values():
        return Newer(newer.reference, "replaced", strip_recalled(newer.text), newer.at)
    return None


def choose_statements(
    keys: Sequence[tuple[str, int]],
    statements: Iterable[Stated],
    newer_of: Callable[[Stated], Newer | None],
    shown: set[str],
    has_room: Callable[[Stated], bool],
) -> list[Stated]:
    """The statements of a session, whose turns are at `keys`, that state most and for which there
    is room, in their order.

    Where several in turn have none, those that state less are not looked at. What was replaced
    gives way to what replaced it, if that is `shown`, by the ids of turns; else it is marked. What
    is chosen is `shown` from now on.
    """
    chosen: list[tuple[Stated, str]] = []
    refused = 0
    for stated in sorted(statements, key=lambda one: (-one.weight, -one.turns[0])):
        if refused == _REFUSED:
            # Looking up what replaced each of a long session takes many seconds.
            break
        newer = newer_of(stated)
        if newer is not None and newer.id in shown:
            continue
        marked = stated
        if newer is not None:
            line = quoted_line(cut(newer.text, CHARACTERS), newer.ts)
            marked = replace(stated, text=f"{stated.text} ({newer.mark} {line})", whole=())
        if has_room(marked):
            chosen.append((marked, newer.id if newer else ""))
            shown.update(turn_reference(*keys[index]) for index in stated.turns)
            refused = 0
        else:
            refused += 1
    chosen.sort(key=lambda row: row[0].turns[0])
    return [stated for stated, newer_id in chosen if newer_id not in shown]


def _read_agreement(turns: Sequence[Turn], index: int, text: str) -> Stated | None:
    """A short reply to what the assistant proposed or asked before it, with that; else None."""
    if index == 0 or turns[index - 1].role != "assistant" or len(text) > _REPLY or _asks(text):
        return None
    sentences = sentences_of(_read_text(turns[index - 1]))
    proposals = [sentence for sentence in sentences if read_statement(sentence).proposes]
    if not (proposals and read_statement(text).assents):
        # What chooses tells something itself: "Postgres", to "which database shall we take?".
        proposals = sentences[-1:] if sentences and sentences[-1].endswith(QUESTION_MARKS) else []
        if not proposals or _says_enough(text) or is_small_talk(text):
            return None
    question = _read_text(turns[index - 2]) if index > 1 and turns[index - 2].role == "user" else ""
    context = f'"{cut(question, _PROPOSED)}": ' if question and _asks(question) else ""
    agreement = f'{text} (to {context}"{cut(proposals[-1], _PROPOSED)}")'
    return Stated(agreement, _AGREED, (index, index - 1), (index,))


def _strip_rules(text: str, rules: Collection[str]) -> str:
    """A turn's words without sentences that are rules, or small talk."""
    sentences = sentences_of(text)
    remaining = [
        part for part in sentences if rule_of(part) not in rules and not is_small_talk(part)
    ]
    return text if len(remaining) == len(sentences) else " ".join(remaining)


def last_exchange(thread: Thread, rules: Collection[str]) -> Iterator[str]:
    """The last question of a session that says what it is about, and the answer.

    Nothing where the user said no more than `rules` say.
    """
    turns = [turn for turn in thread.turns if not _is_chatter(_read_text(turn))]
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


def _is_chatter(text: str) -> bool:
    """Whether a turn is small talk, or has one word beside that: "thanks, coffee now"."""
    return is_small_talk(text) or (
        is_small_talk(text, 1) and not read_statement(text).settles and not _VALUE.search(text)
    )


def _weigh(text: str) -> int:
    """How much of a decision or of a value a turn states: 0 for a command, less for a question."""
    if len(text) > _PASTED or text.count("\n") >= _LINES:
        return 0
    if _asks(text):
        return -1
    read, has_value = read_statement(text), _VALUE.search(text) is not None
    settles = read.settles or is_rule(text)
    weight = 3 * settles + 2 * read.changes + bool(read.subject) + has_value
    weight += _says_enough(text, _TELLING - bool(read.subject))
    return weight - read.tentative - (2 if read.complains and not has_value else 0)


def _asks(text: str) -> bool:
    return (
        text.rstrip().endswith(QUESTION_MARKS)
        or read_statement(text).asks
        or begins_as_question(text)
    )


def _says_enough(text: str, least: int = _TELLING) -> bool:
    return len(words_of(text)) >= least


def _read_text(turn: Turn) -> str:
    return strip_recalled(turn.text).strip()


def _shorten(turn: Turn) -> str:
    return cut(_read_text(turn), CHARACTERS)
