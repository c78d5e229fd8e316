"""A canvas of Obsidian (JSON Canvas 1.0): the texts on it, each as a note.

What is written beside them, the names of groups and arrows and addresses of pages, is one text.
Files that lie on a canvas are read where they are.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from anaphora.features.importing.formats.base import Malformed

CANVAS: Final = ".canvas"
_MOST_KEY: Final = 100


class CanvasText(NamedTuple):
    """A text of a canvas: the id of its card ("" if it has none), the text, its position."""

    key: str
    text: str
    place: str


def read_canvas(text: str) -> list[CanvasText]:
    """The texts of a canvas, in the order of the file. Raises Malformed if it is no canvas."""
    try:
        canvas = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise Malformed("it is no canvas: its JSON is damaged; it was skipped") from error
    shapes: dict[str, list[dict[str, object]]] = {}
    for name in ("nodes", "edges"):
        listed_shapes = canvas.get(name, []) if isinstance(canvas, dict) else None
        if not isinstance(listed_shapes, list):
            raise Malformed(f"it is no canvas: it has no list of {name}; it was skipped")
        shapes[name] = [shape for shape in listed_shapes if isinstance(shape, dict)]
    cards: dict[str, CanvasText] = {}
    for number, node in enumerate(shapes["nodes"], start=1):
        words = node.get("text")
        if isinstance(words, str) and words.strip():
            card_id = node.get("id")
            if isinstance(card_id, str) and card_id.strip() and card_id.isprintable():
                key = card_id.strip()[:_MOST_KEY].replace("#", "%23")
            else:
                key = f"card {number}"
            key = key if key not in cards else f"{key} ~{number}"
            cards[key] = CanvasText(key, words, f"card {number}")
    labels = dict.fromkeys(
        label.strip()
        for shape in (*shapes["nodes"], *shapes["edges"])
        for name in ("label", "url")
        if isinstance(label := shape.get(name), str) and label.strip()
    )
    beside = [CanvasText("", "\n".join(labels), "labels")] if labels else []
    return [*cards.values(), *beside]
