"""What a larger model thinks of each question's passages: written once, read in training."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


class Teacher:
    """Scores (cosines of the larger model) of questions' passages."""

    def __init__(self, scores: Mapping[str, Mapping[int, float]]) -> None:
        self._scores = scores

    def scores(self, key: str, passages: Sequence[str]) -> list[float] | None:
        """Of a question's passages, None where one of them was not scored."""
        known = self._scores.get(key)
        if known is None:
            return None
        found = [known.get(_digest(passage)) for passage in passages]
        return [one for one in found if one is not None] if None not in found else None


def score_line(key: str, passages: Iterable[str], scores: Iterable[float]) -> str:
    """A question's scores as a line of JSON."""
    pairs = zip(passages, scores, strict=True)
    return json.dumps([key, {str(_digest(text)): round(score, 4) for text, score in pairs}])


def read_scores(path: Path) -> Teacher:
    """What `distil` wrote."""
    scores = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            key, own = json.loads(line)
            scores[key] = {int(digest): float(score) for digest, score in own.items()}
    return Teacher(scores)


def _digest(passage: str) -> int:
    # Among the forty passages of one question: no two of them meet by chance.
    return zlib.crc32(passage.encode("utf-8", "surrogatepass"))
