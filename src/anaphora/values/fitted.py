"""The numbers that decide what is found, in which order, and when nothing is: `fitted.json`.

`make fit` writes those that depend on the embedder's cosines (`tools/fitting`). The others stand on
plateaus, chosen by hand: where each is used stands what it is and what it was measured by.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

__all__ = ["FILE", "fitted"]

FILE: Final = Path(__file__).with_suffix(".json")


@lru_cache(maxsize=1)
def _read() -> dict[str, dict[str, Any]]:
    numbers: dict[str, dict[str, Any]] = json.loads(FILE.read_text("utf-8"))
    return {
        part: {
            name: tuple(number) if isinstance(number, list) else number
            for name, number in named.items()
        }
        for part, named in numbers.items()
    }


def fitted(part: str) -> dict[str, Any]:
    """The numbers of one part of the ranking, by name: each a number, or a tuple of weights."""
    return _read()[part]
