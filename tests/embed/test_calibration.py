"""Cosines of every embedder are brought to where the ranking expects them; their order stays."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anaphora import Memory, Vector, Vectors
from anaphora.embed.base import mean_vector
from anaphora.embed.calibration import (
    MINILM,
    UNCHANGED,
    Line,
    measure_calibration,
    measure_mean_cosines,
)
from anaphora.embed.minilm import MiniLM
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.testing import WordHashingEmbedder

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)


class Squeezed:
    """Hashed words whose cosines c are a + (1 - a) · c instead, as of some trained models."""

    def __init__(self, a: float) -> None:
        self._inner = WordHashingEmbedder()
        self._a = a
        self.embedded = 0

    @property
    def name(self) -> str:
        return f"squeezed:{self._a}"

    @property
    def dimensions(self) -> int:
        return self._inner.dimensions + 1

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        self.embedded += len(texts)
        return [self._squeezed(rows) for rows in self._inner.embed(texts)]

    def embed_query(self, text: str) -> Vector:
        return mean_vector(self.embed([text])[0])

    def query_key(self, text: str) -> Hashable:
        return self._inner.query_key(text)

    def _squeezed(self, rows: Vectors) -> Vectors:
        common = np.full((len(rows), 1), np.sqrt(self._a), np.float32)
        own = rows * np.float32(np.sqrt(1.0 - self._a))
        return np.concatenate([own, common], axis=1).astype(np.float32)


@pytest.mark.promise("embed.calibration")
def test_the_bundled_models_cosines_stay_as_they_are() -> None:
    """The map is the identity itself, not nearly it, and takes no array apart."""
    service = EmbedderService(spec_for("minilm"))
    service.query("load it")
    assert service.calibration is UNCHANGED
    cosines = np.linspace(-1, 1, 9, dtype=np.float32)
    assert service.calibration.asked.apply(cosines) is cosines
    # What others are measured against is what it has.
    found = measure_mean_cosines(MiniLM())
    assert (found.apart, found.told) == pytest.approx((MINILM.apart, MINILM.told), abs=2e-3)


@pytest.mark.promise("embed.calibration")
@settings(max_examples=20, deadline=None)
@given(st.floats(0.05, 0.9))
def test_a_line_between_cosines_changes_nothing(a: float) -> None:
    """Of two embedders whose cosines differ by a line, both have the same after calibration."""
    plain, squeezed = measure_calibration(WordHashingEmbedder()), measure_calibration(Squeezed(a))
    cosines = np.linspace(-0.2, 1.0, 7)
    for of_plain, of_squeezed in (
        (plain.asked, squeezed.asked),
        (plain.alike, squeezed.alike),
    ):
        mapped = of_squeezed.apply(a + (1.0 - a) * cosines)
        assert mapped == pytest.approx(of_plain.apply(cosines), abs=5e-3)


@given(st.floats(0.2, 20.0), st.floats(-15.0, 1.0), st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))
def test_order_stays_and_the_way_back_is_exact(
    scale: float, shift: float, one: float, other: float
) -> None:
    """No cosine passes another; what is not known stays not known; thresholds map back."""
    line = Line(scale, shift)
    low, high = line.apply(np.array(sorted((one, other)))) if one and other else (0.0, 0.0)
    assert low <= high
    assert line.invert(line.scale * one + line.shift) == pytest.approx(one, abs=1e-6)
    unknown = line.apply(np.array([0.0, np.nan]))
    assert unknown[0] == 0.0
    assert np.isnan(unknown[1])


def test_an_embedder_that_tells_nothing_apart_is_left_alone() -> None:
    """Where answers are no closer than anything else, there is no line to find."""
    assert measure_calibration(Squeezed(0.9999)) == UNCHANGED
    assert measure_mean_cosines(Squeezed(0.5)).apart > 0.5


@pytest.mark.promise("embed.calibration")
def test_it_is_measured_once_for_a_home(tmp_path: Path) -> None:
    """The second opening knows how the embedder's cosines lie, and embeds no neutral sentence."""
    first, second = Squeezed(0.8), Squeezed(0.8)
    with Memory.open(tmp_path, embedder=first) as memory:
        memory.remember("Nadia sells milk.")
        memory.ready()
    assert first.embedded > 30
    with Memory.open(tmp_path, embedder=second) as memory:
        memory.recall("Who sells milk?")
    assert second.embedded == 1


@pytest.mark.promise("embed.calibration")
def test_unrelated_memories_are_not_linked_because_all_cosines_are_high(tmp_path: Path) -> None:
    """Cosines count as the bundled model's would; `mode="vector"` shows the embedder's own."""
    with Memory.open(tmp_path, embedder=Squeezed(0.8), clock=lambda: NOW) as memory:
        memory.ready()
        memory.remember("Nadia sells milk on Mondays.")
        closes = "The harbour master closes the heavy northern gate at ten"
        other = memory.remember(f"{closes}.")
        same = memory.remember(f"{closes} tonight.")
        assert other.related == ()
        assert same.related == (other.id,)
        bare = memory.recall(f"{closes}.", mode="vector", top_k=1)
        assert bare[0].similarity == pytest.approx(1.0, abs=1e-3)
        unrelated = memory.recall("quarterly revenue", top_k=3, min_score=0.0)
        assert max(hit.factors["meaning"] for hit in unrelated) < 0.3
