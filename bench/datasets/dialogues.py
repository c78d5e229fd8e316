"""REALTALK and LoCoMo: chats between two people in numbered sessions, evidence like "D8:6".

In: `{session_1: [{dia_id, speaker, text or clean_text, …}], session_1_date_time, …}` with `qa`
beside it, or (LoCoMo) under `conversation`; one chat a file or a list of them. Out: one `Haystack`
a chat, all in one namespace. Both people's turns get the role "user"; who speaks is the speaker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from anaphora.ingest.bounds import BOUNDS, Bounds
from anaphora.values.conversations import ImportedConversation, ImportedTurn, ImportProblem
from bench.datasets.common import (
    Haystack,
    MessageKey,
    Question,
    UniqueNames,
    data_files,
    fill_times,
    first_number,
    json_values,
    read_time,
    safe_id,
    text_of,
)

_SESSION = re.compile(r"session_(\d+)\Z")

# "D8:6", with the stray spaces, leading zeros and doubled colon that the files have; then perhaps
# "-D8:9" or "-9" for a range.
_ONE = r"D\s*:?\s*(\d+)\s*:\s*(\d+)"
_EVIDENCE = re.compile(_ONE + r"(?:\s*[-–—]\s*(?:D\s*:?\s*(\d+)\s*:\s*)?(\d+))?", re.IGNORECASE)

_REALTALK = {"1": "1 multi-hop", "2": "2 temporal", "3": "3 commonsense"}
_LOCOMO = {
    "1": "1 multi-hop",
    "2": "2 temporal",
    "3": "3 open-domain",
    "4": "4 single-hop",
    "5": "5 adversarial",
}

Spot = tuple[int, int]
"""Session and turn number of a message: (8, 6) for "D8:6"."""


@dataclass(frozen=True, slots=True)
class _Format:
    source: str
    categories: Mapping[str, str]
    numbered_by_file: bool


def read_realtalk(path: Path, bounds: Bounds = BOUNDS) -> Iterator[Haystack | ImportProblem]:
    """The chats of a REALTALK file or directory (`Chat_1_Emi_Elise.json`, …)."""
    return _read(path, _Format("realtalk", _REALTALK, numbered_by_file=True), bounds)


def read_locomo(path: Path, bounds: Bounds = BOUNDS) -> Iterator[Haystack | ImportProblem]:
    """The samples of a LoCoMo file (a list, a mapping or one sample) or of a directory of them."""
    return _read(path, _Format("locomo", _LOCOMO, numbered_by_file=False), bounds)


def _read(path: Path, format: _Format, bounds: Bounds) -> Iterator[Haystack | ImportProblem]:  # noqa: A002
    names, place = UniqueNames(), 0
    for file in data_files(path):
        chats = 0
        for value in json_values(file, bounds):
            if isinstance(value, ImportProblem):
                yield value
                continue
            for label, sample in _samples(value, ""):
                place, chats = place + 1, chats + 1
                number = first_number(file.stem) if format.numbered_by_file else None
                name = names.take(_name(file, label, sample, chats))
                yield _haystack(sample, name, number or place, format)
        if not chats:
            yield ImportProblem(str(file), "file", "no session_1, session_2, … in it")


def _samples(
    value: object, label: str, depth: int = 0
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Every mapping that holds sessions, itself or under "conversation", with its name if any."""
    if isinstance(value, Mapping):
        if _sessions(value):
            yield label, value
        elif depth < 3:
            for key, inner in value.items():
                yield from _samples(inner, str(key), depth + 1)
    elif isinstance(value, list) and depth < 3:
        for inner in value:
            yield from _samples(inner, label, depth + 1)


def _talk(sample: Mapping[str, object]) -> Mapping[str, object]:
    inner = sample.get("conversation")
    return inner if isinstance(inner, Mapping) else sample


def _sessions(sample: Mapping[str, object]) -> list[tuple[int, list[object]]]:
    found = []
    for key, value in _talk(sample).items():
        matched = _SESSION.match(str(key))
        if matched and isinstance(value, list):
            found.append((int(matched[1]), value))
    return sorted(found, key=lambda pair: pair[0])


def _name(file: Path, label: str, sample: Mapping[str, object], chats: int) -> str:
    given = sample.get("sample_id") or label
    if given:
        return str(given)
    return file.stem if chats == 1 else f"{file.stem}-{chats}"


def _haystack(
    sample: Mapping[str, object],
    name: str,
    number: int,
    format: _Format,  # noqa: A002
) -> Haystack:
    conversation_id = safe_id(f"{format.source}-{name}")
    turns, spots, left_out = _turns(sample)
    conversation = ImportedConversation(
        source=format.source,
        key=name,
        conversation_id=conversation_id,
        turns=turns,
        title=" and ".join(dict.fromkeys(t.speaker for t in turns if t.speaker)),
        left_out=left_out,
    )
    qa = sample.get("qa")
    questions = tuple(
        _question(one, conversation, spots, format.categories)
        for one in (qa if isinstance(qa, list) else [])
        if isinstance(one, Mapping) and text_of(one, "question")
    )
    return Haystack("default", number, (conversation,), questions)


def _turns(
    sample: Mapping[str, object],
) -> tuple[tuple[ImportedTurn, ...], dict[Spot, str], dict[str, int]]:
    talk, keys = _talk(sample), UniqueNames()
    turns: list[ImportedTurn] = []
    spots: dict[Spot, str] = {}
    left_out: dict[str, int] = {}
    for session, messages in _sessions(sample):
        began = read_time(talk.get(f"session_{session}_date_time"))
        for place, message in enumerate(messages, start=1):
            text = _text(message) if isinstance(message, Mapping) else ""
            if not isinstance(message, Mapping) or not text:
                left_out["blank"] = left_out.get("blank", 0) + 1
                continue
            dia_id = str(message.get("dia_id") or f"D{session}:{place}")
            key = keys.take(dia_id.strip())
            matched = re.match(_ONE, dia_id.strip(), re.IGNORECASE)
            if matched:
                spots.setdefault((int(matched[1]), int(matched[2])), key)
            turns.append(
                ImportedTurn(
                    key=key,
                    parent=turns[-1].key if turns else None,
                    role="user",
                    text=text,
                    ts=read_time(message.get("date_time")) or began,
                    speaker=text_of(message, "speaker").strip() or None,
                )
            )
    return fill_times(turns), spots, left_out


def _text(message: Mapping[str, object]) -> str:
    """What was said, and in brackets what a picture sent with it shows: a reader of the chat would
    see it, and questions are asked about it."""
    said = text_of(message, "clean_text", "text", "content").strip()
    caption = message.get("blip_caption")
    captions = caption if isinstance(caption, list) else [caption]
    shown = "; ".join(c.strip() for c in captions if isinstance(c, str) and c.strip())
    return f"{said}\n[image: {shown}]".strip() if shown else said


def _question(
    one: Mapping[str, object],
    conversation: ImportedConversation,
    spots: Mapping[Spot, str],
    categories: Mapping[str, str],
) -> Question:
    category = str(one.get("category", "")).strip()
    keys, unresolved = evidence_ids(one.get("evidence"), spots)
    found: frozenset[MessageKey] = frozenset((conversation.conversation_id, key) for key in keys)
    missing = "evidence not in the data" if unresolved else "no evidence given"
    return Question(
        text=text_of(one, "question").strip(),
        category=categories.get(category, category or "none"),
        conversation_id=conversation.conversation_id,
        evidence=found,
        now=conversation.turns[-1].ts if conversation.turns else None,
        left_out="" if found else missing,
        unresolved=unresolved,
    )


def evidence_ids(evidence: object, spots: Mapping[Spot, str]) -> tuple[frozenset[str], int]:
    """The keys of the messages that an evidence field names, and how many pieces name none.

    `evidence` is a string or a list of strings, each with one id, several (joined by anything), or
    a range such as "D12:3-D12:5", whose messages are those of the data from one end to the other.
    """
    order = {spot: place for place, spot in enumerate(sorted(spots))}
    found: set[str] = set()
    unresolved = 0
    for piece in evidence if isinstance(evidence, list) else [evidence]:
        text = str(piece or "")
        named = [_ends(match) for match in _EVIDENCE.finditer(text)]
        unresolved += bool(text.strip() and not named)
        for first, last in named:
            keys = {spots[s] for s in order if first <= s <= last}
            found |= keys
            unresolved += not keys
    return frozenset(found), unresolved


def _ends(match: re.Match[str]) -> tuple[Spot, Spot]:
    first = (int(match[1]), int(match[2]))
    if match[4] is None:
        return first, first
    last = (int(match[3]) if match[3] else first[0], int(match[4]))
    return (first, last) if first <= last else (last, first)
