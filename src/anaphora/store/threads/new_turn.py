"""What a caller wants kept in, the turn as it will stand in the file out; labels for lists.

Refuses what the format cannot hold. Never touches a disk; the clock is the caller's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from anaphora.core.arguments import has_utc
from anaphora.errors import InvalidTurn
from anaphora.store.threads.gojson import Document, format_time, read_time
from anaphora.values.conversations import NewTurn, ThreadSummary, Turn

NEW_CHAT = "New chat"
_TITLE_CHARACTERS = 60
_PREVIEW_CHARACTERS = 100
_SPLIT_CHARACTER = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def is_blank(turn: NewTurn) -> bool:
    """Whether a turn has no words, and is therefore not kept. Raises InvalidTurn for no text."""
    if not isinstance(turn.text, str):
        raise InvalidTurn("text", turn.text, "must be a string")
    return not turn.text.strip()


def check_turns(turns: object) -> Sequence[NewTurn]:
    """Turns to keep, each of them one. Raises InvalidTurn, naming the place of another."""
    if isinstance(turns, str | bytes | Mapping) or not isinstance(turns, Iterable):
        raise InvalidTurn("turns", turns, "must be a list of NewTurn")
    given = tuple(turns)
    for place, turn in enumerate(given):
        if not isinstance(turn, NewTurn):
            raise InvalidTurn(f"turns[{place}]", turn, "must be a NewTurn")
    return given


def check_title(title: object) -> None:
    """Raises InvalidTurn for what is no text."""
    if not isinstance(title, str):
        raise InvalidTurn("title", title, "must be a string")


def check_number(name: str, number: object) -> int:
    """The number itself, if it is a whole one. Raises InvalidTurn."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidTurn(name, number, "must be a whole number")
    return number


def check_turn(turn: NewTurn, clock: Callable[[], datetime], *, notes: bool) -> Turn:
    """The turn to store, with a time. `notes` says whether there is a sidecar to hold a speaker.

    Raises InvalidTurn for a role that is empty or has control characters, a time without an
    offset, and a speaker or a source that nothing could keep.
    """
    _check_role(turn.role)
    if not isinstance(turn.intent_id, str):
        raise InvalidTurn("intent_id", turn.intent_id, "must be a string")
    if not notes and (turn.speaker is not None or turn.source is not None):
        raise InvalidTurn(
            "speaker" if turn.speaker is not None else "source",
            turn.speaker if turn.speaker is not None else turn.source,
            "a thread file has no place for it, and this store was opened without a sidecar",
        )
    ts_text = _time_text(turn.ts if turn.ts is not None else clock().astimezone(UTC))
    return Turn(
        role=turn.role,
        text=_joined(turn.text),
        ts=read_time(ts_text),
        ts_text=ts_text,
        intent_id=turn.intent_id,
        speaker=turn.speaker,
        source=turn.source,
    )


def summary_of(conversation_id: str, document: Document) -> ThreadSummary:
    """A thread in a list: its own title or its first question, and its latest turn, both short."""
    first = next((t.text for t in document.turns if t.role == "user" and t.text.strip()), "")
    return ThreadSummary(
        conversation_id=conversation_id,
        title=_label(document.title, _TITLE_CHARACTERS)
        or _label(first, _TITLE_CHARACTERS)
        or NEW_CHAT,
        preview=_label(document.turns[-1].text if document.turns else "", _PREVIEW_CHARACTERS),
        turn_count=len(document.turns),
        updated=read_time(document.updated),
    )


def _label(text: str, characters: int) -> str:
    # That many words are long enough, and the latest turn may be ten megabytes long.
    words = " ".join(text.split(None, characters)[:characters])
    return words if len(words) <= characters else words[:characters] + "…"


def _check_role(role: object) -> None:
    if not isinstance(role, str) or not role.strip():
        raise InvalidTurn("role", role, "must be a string with something in it")
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in role):
        raise InvalidTurn("role", role, "must not have control characters")


def _time_text(instant: object) -> str:
    if not isinstance(instant, datetime) or instant.utcoffset() is None:
        raise InvalidTurn("ts", instant, "must be a datetime with an offset")
    if not has_utc(instant):
        raise InvalidTurn("ts", instant, "must lie in the years 1 to 9999 in UTC")
    return format_time(instant)


def _joined(text: str) -> str:
    """Halves of one character that stand side by side become it: a file could not tell them."""
    if not _SPLIT_CHARACTER.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
