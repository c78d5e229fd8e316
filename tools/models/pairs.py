"""Pairs of the corpus as pools: a statement, three wordings of a question, and what misleads.

In: `FOLDER/NAME.jsonl`, a pair a line (`corpus/README.md`). Out: a pool for the turns and one for
the facts of a file in each language; each wording is a question of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.models.asked import Asked, Pool
from tools.models.stories import FACTS, TURNS

SOURCE: Final = "pairs"
LANES: Final = {"turn": TURNS, "fact": FACTS}


def read_pairs(folder: Path) -> Iterator[Pool]:
    """The pools of all files, in the order of their names."""
    for file in sorted(folder.glob("*.jsonl")):
        passages: dict[tuple[str, str], list[str]] = {}
        asked: dict[tuple[str, str], list[Asked]] = {}
        for number, line in enumerate(file.read_text("utf-8").splitlines()):
            pair = json.loads(line)
            pool = LANES[pair["lane"]], str(pair["language"])
            own = passages.setdefault(pool, [])
            place = len(own)
            own += [pair["answer"], *pair["misleading"]]
            misleading = tuple(range(place + 1, len(own)))
            for wording, text in enumerate((pair["question"], *pair["also"])):
                key = f"pairs/{file.stem}/{number}/{wording}"
                one = Asked(key, text, frozenset({place}), misleading=misleading)
                asked.setdefault(pool, []).append(one)
        for (lane, language), own in passages.items():
            group = f"pairs/{file.stem}/{lane}/{language}"
            yield Pool(SOURCE, lane, group, own, asked[lane, language], "", language)
