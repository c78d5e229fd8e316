"""What a larger model makes of each example's texts: written once by `distil`, read in training.

For the embedder a score (a cosine) of each passage of a question; for the reader log-probabilities
of its three classes, of each statement of a question and of each pair.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

SOFT_FILE: Final = "soft.jsonl"


class Teacher:
    """Labels of the larger model by an example's key, then by text."""

    def __init__(self, labels: Mapping[str, Mapping[str, Any]]) -> None:
        self._labels = labels

    def labels(self, key: str, texts: Sequence[str]) -> list[Any] | None:
        """One for each text of an example, None where one of them has none."""
        labels = self._labels.get(key, {})
        rows = [labels.get(_digest(text)) for text in texts]
        return None if None in rows else rows


def label_line(key: str, texts: Iterable[str], labels: Iterable[Any]) -> str:
    """An example's labels as a line of JSON."""
    rows = {_digest(text): label for text, label in zip(texts, labels, strict=True)}
    return json.dumps([key, rows]) + "\n"


def read_labels(path: Path) -> Teacher:
    """What `distil` wrote."""
    with path.open(encoding="utf-8") as lines:
        return Teacher(dict(map(json.loads, lines)))


def _digest(text: str) -> str:
    # Among some forty texts of one example: no two of them meet by chance.
    return str(zlib.crc32(text.encode("utf-8", "surrogatepass")))
