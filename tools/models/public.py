"""The public sets that may be trained on, and one that may only be measured on, as pools.

In: a folder with `NAME.json.xz` files as their authors publish them, packed. FriendsQA and SelQA
(Emory University) and Molweni (HIT-SCIR) are under the Apache License 2.0. MemOps is for measuring.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.models.asked import Asked, Pool
from tools.models.passages import Turn, form_passages, meaning_of, speakers_of


def read_public(folder: Path, form: str) -> Iterator[Pool]:
    """All pools that may be trained on."""
    yield from read_friendsqa(_load(folder / "friendsqa_dev.json.xz"), form)
    for part in ("dev", "test"):
        yield from read_selqa(_load(folder / f"selqa_{part}.json.xz"), part)
    yield from read_molweni(_load(folder / "molweni.json.xz"), form)


def read_friendsqa(raw: Mapping[str, Any], form: str) -> Iterator[Pool]:
    """Scenes of a series: utterances, and questions that name those that answer them."""
    for scene in raw["data"]:
        for number, part in enumerate(scene["paragraphs"]):
            group = f"friendsqa/{scene['title']}/{number}"
            turns: list[Turn] = []
            places: dict[int, int] = {}
            for said in part["utterances:"]:
                places[said["uid"]] = len(turns)
                turns.append(Turn(", ".join(said["speakers"]) or None, said["utterance"]))
            speakers = speakers_of(turns)
            asked = []
            for question in part["qas"]:
                found = frozenset(places[answer["utterance_id"]] for answer in question["answers"])
                if found:
                    text = question["question"]
                    meant = meaning_of(text, speakers)
                    key = f"{group}/{question['id']}"
                    asked.append(Asked(key, text, found, meant=meant))
            yield Pool("friendsqa", "turns", group, form_passages(turns, form), asked)


def read_selqa(raw: Sequence[Mapping[str, Any]], part: str) -> Iterator[Pool]:
    """Sentences of an article's section, and a question that some of them answer."""
    for number, entry in enumerate(raw):
        group = f"selqa/{part}/{number}"
        asked = Asked(group, entry["question"], frozenset(entry["answers"]))
        if asked.positives:
            yield Pool("selqa", "documents", group, entry["candidates"], [asked])


def read_molweni(raw: Sequence[Mapping[str, Any]], form: str) -> Iterator[Pool]:
    """Chats about a system, and questions whose answer stands at a place of the whole text."""
    for number, chat in enumerate(raw):
        group = f"molweni/{number}"
        turns = [Turn(said["speaker"], said["text"]) for said in chat["edus"]]
        spans = _spans(chat["context"], [turn.text for turn in turns])
        speakers = speakers_of(turns)
        asked = []
        for question in chat["qas"]:
            if question["is_impossible"]:
                continue
            starts = [answer["answer_start"] for answer in question["answers"]]
            found = frozenset(
                place for place, (a, b) in enumerate(spans) if any(a <= at < b for at in starts)
            )
            if found:
                text = question["question"]
                meant = meaning_of(text, speakers)
                asked.append(Asked(f"{group}/{question['id']}", text, found, meant=meant))
        yield Pool("molweni", "turns", group, form_passages(turns, form), asked)


def _spans(whole: str, texts: Sequence[str]) -> list[tuple[int, int]]:
    """Where each text stands in the whole, one after the other; nowhere is (-1, -1)."""
    spans, at = [], 0
    for text in texts:
        start = whole.find(text, at)
        if start < 0:
            spans.append((-1, -1))
            continue
        at = start + len(text)
        spans.append((start, at))
    return spans


def _load(path: Path) -> Any:
    with lzma.open(path, "rt", encoding="utf-8") as packed:
        return json.load(packed)
