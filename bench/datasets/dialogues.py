"""REALTALK and LoCoMo: chats between two people in numbered sessions, evidence like "D8:6".

In: `{session_1: [{dia_id, speaker, text or clean_text, …}], session_1_date_time, …}` with `qa`
beside it, or (LoCoMo) under `conversation`; one chat a file or a list of them. Out: one `Haystack`
a chat, all in one namespace. Both people's turns get the role "user"; who speaks is the speaker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from anaphora.values.conversations import ImportedConversation
from bench.datasets.common import (
    Haystack,
    Question,
    chained,
    data_files,
    first_number,
    read_json,
    read_time,
)

# "D8:6", with the stray spaces, leading zeros and doubled colon that the files have; then perhaps
# "-D8:9" or "-9" for a range.
_ONE: Final = r"D\s*:?\s*(\d+)\s*:\s*(\d+)"
_EVIDENCE: Final = re.compile(
    _ONE + r"(?:\s*[-–—]\s*(?:D\s*:?\s*(\d+)\s*:\s*)?(\d+))?", re.IGNORECASE
)
_REALTALK: Final = {1: "1 multi-hop", 2: "2 temporal", 3: "3 commonsense"}
_LOCOMO: Final = {
    1: "1 multi-hop",
    2: "2 temporal",
    3: "3 open-domain",
    4: "4 single-hop",
    5: "5 adversarial",
}

Spot = tuple[int, int]
"""Session and turn number of a message: (8, 6) for "D8:6"."""


def read_realtalk(path: Path) -> Iterator[Haystack]:
    """The chats of a REALTALK file or directory (`Chat_1_Emi_Elise.json`, …)."""
    for place, file in enumerate(data_files(path), 1):
        number = first_number(file.stem, place)
        yield _haystack(read_json(file), f"realtalk-{file.stem}", number, _REALTALK)


def read_locomo(path: Path) -> Iterator[Haystack]:
    """The samples of a LoCoMo file, or of a directory of them."""
    samples = (sample for file in data_files(path) for sample in read_json(file))
    for number, sample in enumerate(samples, 1):
        yield _haystack(sample, f"locomo-{sample['sample_id']}", number, _LOCOMO)


def _haystack(
    sample: Mapping[str, Any], name: str, number: int, categories: Mapping[int, str]
) -> Haystack:
    source, _, key = name.partition("-")
    turns = chained(_turns(sample.get("conversation", sample)))
    matches = ((re.match(_ONE, turn.key, re.IGNORECASE), turn.key) for turn in turns)
    spots = {(int(match[1]), int(match[2])): key for match, key in matches if match}
    title = " and ".join(dict.fromkeys(turn.speaker for turn in turns if turn.speaker))
    chat = ImportedConversation(source, key, name.lower(), turns, title)
    questions = tuple(
        Question(
            question["question"].strip(),
            categories[int(question["category"])],
            chat.conversation_id,
            frozenset(
                (chat.conversation_id, key) for key in evidence_ids(question["evidence"], spots)
            ),
            turns[-1].ts,
        )
        for question in sample["qa"]
    )
    return Haystack("default", number, (chat,), questions)


def _turns(talk: Mapping[str, Any]) -> Iterator[tuple[str, str, str, datetime | None, str | None]]:
    numbers = sorted(
        int(match[1]) for name in talk if (match := re.fullmatch(r"session_(\d+)", name))
    )
    for session in numbers:
        began = read_time(talk.get(f"session_{session}_date_time"))
        for message in talk[f"session_{session}"]:
            time = read_time(message.get("date_time")) or began
            yield (
                message["dia_id"].strip(),
                "user",
                _text(message),
                time,
                message["speaker"].strip(),
            )


def _text(message: Mapping[str, Any]) -> str:
    """What was said, and in brackets what a picture sent with it shows: a reader of the chat would
    see it, and questions are asked about it."""
    said = (message.get("clean_text") or message.get("text") or "").strip()
    caption = message.get("blip_caption") or ()
    captions = [caption] if isinstance(caption, str) else caption
    pictured = "; ".join(text.strip() for text in captions if text.strip())
    return f"{said}\n[image: {pictured}]".strip() if pictured else said


def evidence_ids(evidence: list[str], spots: Mapping[Spot, str]) -> frozenset[str]:
    """The keys of the messages that an evidence field names.

    Each piece names one, several (joined by anything), or a range such as "D12:3-D12:5", whose
    messages are those of the data from one end to the other.
    """
    ranges = [_ends(match) for piece in evidence for match in _EVIDENCE.finditer(piece)]
    return frozenset(
        key for spot, key in spots.items() if any(first <= spot <= last for first, last in ranges)
    )


def _ends(match: re.Match[str]) -> tuple[Spot, Spot]:
    first = (int(match[1]), int(match[2]))
    if match[4] is None:
        return first, first
    last = (int(match[3]) if match[3] else first[0], int(match[4]))
    return (first, last) if first <= last else (last, first)
