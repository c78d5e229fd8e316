"""What is asked of every contestant: chats with their questions, and files cut into pieces.

In: the folder of shared data. Out: frozen values with ids that mean the same to all contestants.
Questions and evidence are those of `python -m bench.quality` on chats 6 to 10, the half that
no weight of Anaphora was fitted on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.compare.vectors import SEAM
from bench.datasets import haystacks

__all__ = [
    "HELD_OUT",
    "PIECE",
    "Chat",
    "Item",
    "Question",
    "cut",
    "owner",
    "prepared",
    "read_chats",
    "read_many",
]

HELD_OUT: Final = range(6, 11)
PIECE: Final = 1_000
"""Characters of a piece of a long text: what users of vector stores commonly cut at."""
SHORT: Final = 300


@dataclass(frozen=True, slots=True)
class Item:
    """One text to keep. `at` is when it was said, in ISO 8601 ("" where the data has no time)."""

    id: str
    text: str
    at: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the ids of the items that answer it."""

    text: str
    category: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat: its turns as items, who said each, and what is asked about it."""

    form: str
    space: str
    items: tuple[Item, ...]
    speakers: tuple[str, ...]
    questions: tuple[Question, ...]


def read_chats(data: Path, numbers: Collection[int] = HELD_OUT) -> list[Chat]:
    """Chats of REALTALK and BEAM. Blank turns, which no product keeps, are left out."""
    found = []
    for form, chat in haystacks(data):
        if chat.number not in numbers:
            continue
        space = f"{form}-{chat.number}"
        items: list[Item] = []
        speakers: list[str] = []
        ids: dict[tuple[str, str], str] = {}
        for conversation in chat.conversations:
            for turn in conversation.turns:
                if turn.text.strip():
                    one = f"{space}-{len(items):05d}"
                    ids[conversation.conversation_id, turn.key] = one
                    at = turn.ts.astimezone(UTC).isoformat() if turn.ts is not None else ""
                    items.append(Item(one, turn.text, at))
                    speakers.append(turn.speaker or turn.role)
        questions = [
            Question(q.text, q.category, evidence)
            for q in chat.questions
            if (evidence := frozenset(ids[key] for key in q.evidence if key in ids))
        ]
        found.append(Chat(form, space, tuple(items), tuple(speakers), tuple(questions)))
    return found


def read_many(data: Path, size: int) -> tuple[list[Item], list[str]]:
    """`size` different texts, and the questions asked of them.

    The first are turns of all chats; those beyond are two short turns each, joined at a seam that
    no turn has, by which their vectors are known, too.
    """
    chats = read_chats(data, range(1, 11))
    turns = list({item.text: item for chat in chats for item in chat.items}.values())
    texts = turns[:size]
    short = [turn for turn in turns if len(turn.text) <= SHORT]
    for number in range(size - len(texts)):
        step, at = divmod(number, len(short))
        first, second = short[at], short[(at + 1 + 37 * step) % len(short)]
        joined = first.text + SEAM + second.text
        texts.append(Item(f"made-{number:07d}", joined, max(first.at, second.at)))
    return texts, list(dict.fromkeys(q.text for chat in chats for q in chat.questions))


def latest(found: Sequence[Chat]) -> datetime:
    """The time of the last turn of all."""
    return max(datetime.fromisoformat(i.at) for chat in found for i in chat.items if i.at)


def prepared(chat: Chat) -> list[Item]:
    """The turns as a careful user would hand them to a store: cut where they are long, each piece
    with its speaker's name before it. The pieces of a turn have its id, "#" and a number."""
    return [
        Item(f"{item.id}#{number}", f"{speaker}: {piece}", item.at)
        for item, speaker in zip(chat.items, chat.speakers, strict=True)
        for number, piece in enumerate(cut(item.text))
    ]


def owner(item: str) -> str:
    """The id of the text that a piece is of."""
    return item.split("#", 1)[0]


def cut(text: str) -> Iterator[str]:
    """Pieces of at most 1,000 characters, ending at a line or a space where there is one."""
    start = 0
    while start < len(text):
        end = start + PIECE
        if end < len(text):
            stop = max(text.rfind("\n", start, end), text.rfind(" ", start, end))
            end = stop + 1 if stop > start else end
        if text[start:end].strip():
            yield text[start:end]
        start = end
