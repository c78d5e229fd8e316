"""The word-hashing embedder: same words, same direction, on every machine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.testing import WordHashingEmbedder

EMBEDDER = WordHashingEmbedder()


@given(st.text())
def test_every_text_has_a_unit_vector(text: str) -> None:
    """Any text, empty or odd, gives one row of length 1, and the same one each time."""
    rows = EMBEDDER.embed([text, text])
    assert rows[0].shape == (1, 384)
    assert rows[0].dtype == np.float32
    assert np.linalg.norm(rows[0][0]) == pytest.approx(1.0, abs=1e-5)
    assert np.array_equal(rows[0], rows[1])
    assert np.array_equal(rows[0][0], EMBEDDER.embed_query(text))


@given(st.text(), st.text())
def test_equal_keys_have_equal_vectors(one: str, other: str) -> None:
    """Texts with the same key cannot be told apart by their vectors."""
    if EMBEDDER.query_key(one) == EMBEDDER.query_key(other):
        assert np.array_equal(EMBEDDER.embed_query(one), EMBEDDER.embed_query(other))


def test_shared_words_are_close() -> None:
    """The more words two texts share, the closer they are."""
    cat = EMBEDDER.embed_query("the cat sat on the mat")
    near = EMBEDDER.embed_query("The cat lay on the mat")
    far = EMBEDDER.embed_query("quarterly revenue projections")
    assert cat @ near > 0.6
    assert abs(cat @ far) < 0.3


def test_window_makes_parts() -> None:
    """With a window, a longer text has a row for each window of words."""
    embedder = WordHashingEmbedder(dimensions=32, window=3)
    assert embedder.embed(["a b c d e f g"])[0].shape == (3, 32)
    assert embedder.name != WordHashingEmbedder(dimensions=32).name


@pytest.mark.parametrize("arguments", [{"dimensions": 0}, {"window": 0}])
def test_impossible_sizes_are_refused(arguments: dict[str, int]) -> None:
    """Dimensions and window must be at least 1."""
    with pytest.raises(ValueError, match="at least 1"):
        WordHashingEmbedder(**arguments)


def test_vectors_are_the_same_on_every_machine() -> None:
    """The places of a word are fixed by its hash, not by the process."""
    vector = WordHashingEmbedder(dimensions=16).embed_query("anaphora")
    assert np.flatnonzero(vector).tolist() == PLACES


PLACES = [9, 12, 13]
