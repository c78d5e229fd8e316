"""Which passages of a pool mislead: those nearest to the question by the bundled model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from tools.models.asked import Asked, Pool
from tools.models.examples import MEANT, Example, chunks
from tools.models.styles import restyle

if TYPE_CHECKING:
    from anaphora.embed.base import Embedder, Vector

NEGATIVES: Final = 30
# Pools that are put together into one run of the model, which sorts its texts by length.
_AT_ONCE: Final = 64


def make_examples(
    pools: Iterable[Pool],
    model: Embedder,
    candidates: Mapping[str, Sequence[str]] | None = None,
    *,
    others: Embedder | None = None,
) -> Iterator[Example]:
    """The examples of pools, in their order.

    `candidates` are the passages that the product itself brought for a question, by its key, the
    best first: they come before those that the cosine finds. `others` is asked where not all
    texts of a pool are English.
    """
    for some in chunks((pool for pool in pools if pool.asked), _AT_ONCE):
        read = [pool for pool in some if pool.language == "en" or others is None]
        yield from _mined(read, model, candidates or {})
        if others is not None and len(read) < len(some):
            rest = [pool for pool in some if pool.language != "en"]
            yield from _mined(rest, others, candidates or {})


def _mined(
    pools: Sequence[Pool], model: Embedder, candidates: Mapping[str, Sequence[str]]
) -> Iterator[Example]:
    queries = [one.query for pool in pools for one in pool.asked]
    passages = [passage for pool in pools for passage in pool.passages]
    vectors = iter(model.embed(queries))
    of_passages = iter(model.embed(passages))
    for pool in pools:
        own = [next(of_passages) for _ in pool.passages]
        for one in pool.asked:
            nearness = nearest_part(next(vectors)[0], own)
            yield example_of(pool, one, nearness, candidates.get(one.key, ()))


def nearest_part(vector: Vector, parts: Sequence[np.ndarray]) -> np.ndarray:
    """The cosine of the best part of each text, shape (texts,)."""
    return np.array([float((part @ vector).max()) for part in parts])


def example_of(
    pool: Pool, one: Asked, nearness: np.ndarray, candidates: Sequence[str] = ()
) -> Example:
    """A question with the passages that mislead most, and every other way to type it."""
    positives = tuple(dict.fromkeys(pool.passages[place] for place in sorted(one.positives)))
    neutral = tuple(
        dict.fromkeys([*(pool.passages[place] for place in sorted(one.neutral)), *one.also])
    )
    # The same words elsewhere in the pool are no worse an answer.
    kept_out = {*positives, *neutral}
    by_nearness = (pool.passages[place] for place in np.argsort(-nearness, kind="stable"))
    known = set(pool.passages)
    written = (pool.passages[place] for place in one.misleading)
    brought = (text for text in candidates if text in known)
    misleading = dict.fromkeys((*written, *brought, *by_nearness))
    queries = restyle(one.query, one.key, pool.language)
    if one.meant and one.meant not in {text for _, text in queries}:
        queries = (*queries, (MEANT, one.meant))
    return Example(
        key=one.key,
        source=pool.source,
        lane=pool.lane,
        group=pool.group,
        queries=queries,
        positives=positives,
        negatives=tuple(text for text in misleading if text not in kept_out)[:NEGATIVES],
        neutral=neutral,
        language=pool.language,
    )
