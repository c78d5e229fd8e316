"""What a teacher makes of each example: log-probabilities of the three classes, as JSON lines."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

SOFT_FILE: Final = "soft.jsonl"

Classes: TypeAlias = tuple[float, float, float]


class SoftLabels:
    """Log-probabilities of a question's statements, and of pairs, by an example's key."""

    def __init__(self, labels: Mapping[str, Mapping[int, Classes]]) -> None:
        self._labels = labels

    def of(self, key: str, texts: Sequence[str]) -> list[Classes] | None:
        """One row for each text of an example, None where one of them has none."""
        known = self._labels.get(key)
        if known is None:
            return None
        rows = [known.get(_digest(text)) for text in texts]
        return [row for row in rows if row is not None] if None not in rows else None


def soft_line(key: str, texts: Iterable[str], rows: Iterable[Sequence[float]]) -> str:
    """An example's labels as a line of JSON."""
    labels = {
        str(_digest(text)): [round(value, 3) for value in row]
        for text, row in zip(texts, rows, strict=True)
    }
    return json.dumps([key, labels])


def read_soft(path: Path) -> SoftLabels:
    """What `distil` wrote."""
    return SoftLabels(dict(_lines(path)))


def _lines(path: Path) -> Iterator[tuple[str, dict[int, Classes]]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            key, labels = json.loads(line)
            rows = {}
            for digest, (first, second, third) in labels.items():
                rows[int(digest)] = (float(first), float(second), float(third))
            yield key, rows


def _digest(text: str) -> int:
    # Among some forty texts of one example: no two of them meet by chance.
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))
