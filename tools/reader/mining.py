"""Which statements of a pool are mistaken most for an answer: those nearest by the embedder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from bench.embedder import KeptEmbedder
from tools.models.examples import chunks
from tools.models.negatives import NEGATIVES, nearest_part
from tools.models.styles import restyle
from tools.reader.examples import AnswerExample
from tools.reader.statements import Judged, Statements, cut_statement

# Of a near miss so many of the nearest statements may be about the question.
_NEAREST_UNCLEAR: Final = 3
_AT_ONCE: Final = 64


def answer_examples(
    pools: Iterable[Statements],
    vectors: KeptEmbedder,
    candidates: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[AnswerExample]:
    """The examples of pools, in their order.

    `candidates` are the words of what the product itself brought for a question, by its key, the
    best first: they come before what the cosine finds.
    """
    for some in chunks((pool for pool in pools if pool.asked), _AT_ONCE):
        yield from _mined(some, vectors, candidates or {})


def _mined(
    pools: Sequence[Statements], vectors: KeptEmbedder, candidates: Mapping[str, Sequence[str]]
) -> Iterator[AnswerExample]:
    # All in one run of the model, which sorts its texts by length.
    vectors.embed([one.query for pool in pools for one in pool.asked])
    vectors.embed([text for pool in pools for text in pool.words])
    for pool in pools:
        parts = vectors.embed(pool.words)
        for one in pool.asked:
            nearness = nearest_part(vectors.embed([one.query])[0][0], parts)
            yield answer_example(pool, one, nearness, candidates.get(one.key, ()))


def answer_example(
    pool: Statements, one: Judged, nearness: np.ndarray, candidates: Sequence[str] = ()
) -> AnswerExample:
    """A question with what was judged for it, and the statements that are mistaken most."""
    by_nearness = np.argsort(-nearness, kind="stable").tolist()
    unclear = one.unclear
    if one.near:
        unclear = unclear.union(by_nearness[:_NEAREST_UNCLEAR])
    # The same words elsewhere in the pool are no worse an answer.
    words_kept_out = {pool.words[place] for place in one.answers | one.hidden}
    kept_out = {at for at, words in enumerate(pool.words) if words in words_kept_out}
    about, unclear = one.about - kept_out, unclear - kept_out - one.about
    place_of = {words: at for at, words in reversed(list(enumerate(pool.words)))}
    brought = (place_of[words] for words in candidates if words in place_of)
    mistaken = dict.fromkeys((*one.misleading, *brought, *by_nearness))
    judged = kept_out | about | unclear
    others = [place for place in mistaken if place not in judged]
    return AnswerExample(
        key=one.key,
        source=pool.source,
        lane=pool.lane,
        group=pool.group,
        queries=restyle(one.query, one.key, pool.language),
        answers=_told(pool, sorted(one.answers), one.query),
        about=_told(pool, sorted(about), one.query),
        others=_told(pool, others[: 2 * NEGATIVES], one.query)[:NEGATIVES],
        unclear=_told(pool, sorted(unclear), one.query),
    )


def _told(pool: Statements, places: Iterable[int], question: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cut_statement(question, pool.told[place]) for place in places))
