"""The query cache keeps the vectors used last, tells hits from misses and can be off."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.embed.service import CacheEvent, EmbedderService, spec_for
from anaphora.errors import InvalidInput
from anaphora.testing import WordHashingEmbedder

QUERIES = st.lists(
    st.sampled_from(["one", "two", "three", "four", "five", "One", " two", "three!"]), max_size=40
)


@pytest.mark.promise("embed.cache")
@given(QUERIES, st.integers(0, 5))
def test_cache_is_least_recently_used(queries: list[str], size: int) -> None:
    """Hits and misses are those of a plain LRU over the embedder's keys."""
    events: list[CacheEvent] = []
    service = EmbedderService(spec_for("hashing"), cache_size=size, on_cache=events.append)
    plain: OrderedDict[object, None] = OrderedDict()
    expected: list[CacheEvent] = []
    embedder = WordHashingEmbedder()
    for query in queries:
        key = embedder.query_key(query)
        expected.append(CacheEvent("hit" if key in plain else "miss", query))
        plain[key] = None
        plain.move_to_end(key)
        if len(plain) > size:
            plain.popitem(last=False)
        assert np.array_equal(service.query(query), embedder.embed_query(query))
    assert events == expected
    assert service.embedded == sum(event.type == "miss" for event in events)


@pytest.mark.promise("embed.cache")
def test_size_zero_keeps_nothing() -> None:
    """With the cache off the same question is computed every time."""
    events: list[CacheEvent] = []
    service = EmbedderService(spec_for("hashing"), cache_size=0, on_cache=events.append)
    for _ in range(3):
        service.query("again")
    assert [event.type for event in events] == ["miss"] * 3


def test_negative_size_is_refused() -> None:
    """A size below zero is an error of the caller."""
    with pytest.raises(InvalidInput, match="cache_size"):
        EmbedderService(spec_for("hashing"), cache_size=-1)


def test_cached_vector_cannot_be_changed() -> None:
    """A caller cannot spoil the vector that the next one gets."""
    vector = EmbedderService(spec_for("hashing")).query("mine")
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 2.0
