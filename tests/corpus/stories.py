"""A small story, and the files of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TURNS = [
    "morning all",
    "the key hangs in the eel trap",
    "thirty sacks a week for the baker",
    "the key lives with madame now",
    "forty five sacks, he says",
    "walnuts shut my throat",
    "sesame for me",
]


def small_story() -> dict[str, Any]:
    """Two sessions, four facts, a change, a pair that both hold, four questions."""
    return {
        "id": "mill",
        "lang": "en",
        "register": "team chat",
        "domain": "a mill",
        "sessions": [
            {"id": "s1", "when": "2024-03-04T07:41:00Z", "turns": turns(TURNS[:3])},
            {"id": "s2", "when": "2024-06-03T08:05:00Z", "turns": turns(TURNS[3:])},
        ],
        "facts": [
            fact("2024-03-04", "The hut's key is kept in the eel trap."),
            fact("2024-06-03", "Madame keeps the hut's key now."),
            fact("2024-06-03", "Riwal is allergic to walnuts."),
            fact("2024-06-03", "Enora is allergic to sesame."),
        ],
        "changes": [
            change("turns", ["s1", 1], ["s2", 0], "replaces"),
            change("turns", ["s1", 2], ["s2", 1], "replaces"),
            change("turns", ["s2", 2], ["s2", 3], "both"),
            change("facts", 0, 1, "replaces"),
        ],
        "questions": [
            asked(
                "what do i unlock it with", "current", ["madame"], ["eel trap"], [["s2", 0]], [1]
            ),
            asked(
                "baking for all", "list", ["walnut", "sesame"], [], [["s2", 2], ["s2", 3]], [2, 3]
            ),
            asked("what does a tour cost", "absent", [], [], [], []),
            asked("what can't Gwenole eat", "absent", [], [], [], []) | {"near": True},
        ],
    }


def turns(texts: list[str]) -> list[dict[str, str]]:
    return [{"role": "user", "speaker": "Riwal", "text": text} for text in texts]


def fact(day: str, text: str) -> dict[str, str]:
    return {"when": f"{day}T00:00:00Z", "text": text, "type": "semantic"}


def change(lane: str, older: object, newer: object, relation: str) -> dict[str, object]:
    return {"lane": lane, "older": older, "newer": newer, "relation": relation}


def asked(
    text: str,
    kind: str,
    answer: list[str],
    stale: list[str],
    evidence: list[list[object]],
    facts: list[int],
) -> dict[str, Any]:
    now = "2025-01-20T00:00:00Z"
    named = {"q": text, "kind": kind, "now": now, "answer": answer, "stale": stale}
    return named | {"evidence": evidence, "facts": facts}


def written(folder: Path, story: dict[str, Any], author: str = "a01") -> Path:
    """The file of a story, in a folder of authors."""
    file = folder / author / f"{story['id']}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(story), "utf-8")
    return file
