"""Chooses among ranked places: no near-duplicates, a spread over kinds and files.

Places come in best first, with what each one is (its kind, its file, its text); those that are kept
come out in the same order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final

SAME: Final = 0.8
"""Of two texts that share so much of the shorter one's shingles, the worse ranked one goes."""

WIDTH: Final = 3

PER_KIND: Final = 4
"""The seed's number: four sections, four modules, four observations, four diary entries."""

PER_OWNER: Final = 2
"""Sections of one file: its best two say where to look; more of them would hide other files."""


def shingles(tokens: Sequence[str]) -> frozenset[int]:
    """What a text is compared by: a number for each run of three tokens (of fewer, for all)."""
    if len(tokens) < WIDTH:
        return frozenset((hash(tuple(tokens)),) if tokens else ())
    return frozenset(map(hash, zip(*(tokens[at:] for at in range(WIDTH)), strict=False)))


def prune(order: Iterable[int], sketches: Mapping[int, frozenset[int]]) -> list[int]:
    """Those of `order` that are no near-duplicate of a better ranked one that was kept.

    `sketches` has the shingles of each place; a place without any is a duplicate of nothing. Two
    texts are near-duplicates where `SAME` of the shorter one's shingles are in the other (Broder,
    *On the resemblance and containment of documents*, 1997: containment), unless the longer one is
    more than twice as long: a summary does not stand for the whole.
    """
    chosen_indexes: list[int] = []
    for index in order:
        sketch = sketches.get(index, frozenset())
        if not any(alike(sketch, sketches.get(earlier, frozenset())) for earlier in chosen_indexes):
            chosen_indexes.append(index)
    return chosen_indexes


def alike(first: frozenset[int], second: frozenset[int]) -> bool:
    """Whether two texts are near-duplicates by their shingles; see `prune`."""
    short_length, long_length = len(first), len(second)
    if short_length > long_length:
        short_length, long_length = long_length, short_length
    return 0 < long_length <= 2 * short_length and len(first & second) >= SAME * short_length


def spread(
    order: Iterable[int],
    kinds: Mapping[int, Hashable],
    owners: Mapping[int, Hashable],
    limit: int,
) -> list[int]:
    """At most `limit` of `order`, in its order: a few of each kind first, then what is left.

    No more than `PER_OWNER` are of one owner (a file); a place that `owners` does not have, or has
    as None, is its own. Only where a kind has nothing more do others take its room.
    """
    ranked_indexes = list(order)
    chosen_indexes: set[int] = set()
    of_kind: Counter[Hashable] = Counter()
    of_owner: Counter[Hashable] = Counter()
    for max_per_kind in (PER_KIND, len(ranked_indexes)):
        for index in ranked_indexes:
            if len(chosen_indexes) >= limit:
                break
            owner = owners.get(index)
            is_full = owner is not None and of_owner[owner] >= PER_OWNER
            if index in chosen_indexes or is_full or of_kind[kinds.get(index)] >= max_per_kind:
                continue
            chosen_indexes.add(index)
            of_kind[kinds.get(index)] += 1
            of_owner[owner] += 1
    return [index for index in ranked_indexes if index in chosen_indexes]
