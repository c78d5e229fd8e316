"""Texts, questions and vectors that measurements of memories share.

In: the folder of shared data (REALTALK and BEAM). Out: their turns as memories, beyond those their
sentences, alone and in pairs; their questions; vectors of texts, kept in a folder from one run to
the next, since a hundred thousand of them take minutes. It never makes up a text or a vector.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anaphora.embed.service import EmbedderService
from anaphora.errors import EmbeddingError
from bench.datasets import haystacks

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_SHORTEST = 20

Floats = NDArray[np.float32]


def texts(data: Path, size: int) -> list[str]:
    """`size` different texts: turns, then sentences of them, then two sentences on end.

    Fewer where there are no more.
    """
    turns = [t.text for _, h in haystacks(data) for c in h.conversations for t in c.turns]
    found = list(dict.fromkeys(turns))
    if len(found) < size:
        cut = [[s.strip() for s in _SENTENCE.split(turn)] for turn in turns]
        single = (s for own in cut for s in own if len(s) > _SHORTEST)
        double = (" ".join(two) for own in cut for two in pairwise(own) if all(two))
        found = list(dict.fromkeys([*found, *single, *double]))
    if len(found) < size:
        print(f"only {len(found):,} different texts; asked for {size:,}", file=sys.stderr)
    return found[:size]


def turns(data: Path | None, count: int) -> list[str]:
    """`count` turns of REALTALK, each once; sentences of numbers where there are no more."""
    found: dict[str, None] = {}
    for _, chat in haystacks(data, "realtalk") if data is not None else ():
        said = (turn.text for one in chat.conversations for turn in one.turns)
        found.update((text, None) for text in said if text.strip())
        if len(found) >= count:
            break
    made = (f"sentence {n} tells of {n * 7919 % 1000} boxes in room {n % 37}" for n in range(count))
    return [*found, *made][:count]


def questions(data: Path, count: int) -> list[str]:
    """`count` different questions, evenly spread over the chats."""
    found = list(dict.fromkeys(q.text for _, h in haystacks(data) for q in h.questions))
    return found[:: max(1, len(found) // count)][:count]


def embedded(
    service: EmbedderService, wanted: Sequence[str], kept: Path | None = None
) -> list[Floats]:
    """The vectors (parts, dimensions) of each text; from the folder `kept` where they lie there."""
    place = None if kept is None else kept / f"{_digest(service.name, wanted)}.npz"
    if place is not None and place.is_file():
        with np.load(place) as found:
            rows, counts = found["rows"].astype(np.float32), found["counts"]
        return np.split(rows, np.cumsum(counts)[:-1])
    made: list[Floats] = []
    for one in service.embed(wanted):
        if isinstance(one, EmbeddingError):
            raise one
        made.append(one)
    if place is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        # As truth keeps them: float16.
        np.savez(place, rows=np.concatenate(made).astype("<f2"), counts=[len(one) for one in made])
    return made


def _digest(name: str, wanted: Sequence[str]) -> str:
    digest = hashlib.sha256(name.encode())
    for text in wanted:
        digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]
