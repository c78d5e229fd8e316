"""Long texts are split so that no word is lost and cuts fall where people pause."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from anaphora.embed.chunking import blocks, windows
from anaphora.embed.windowed import embed_parts

PROSE = st.text(
    alphabet=st.sampled_from(["a", "b", "é", "字", " ", "\n", "\r", ".", "!", "。", '"', "1"]),
    max_size=300,
)


def spans_of(text: str) -> list[tuple[int, int]]:
    return [m.span() for m in re.finditer(r"\w{1,3}|[^\w\s]", text)]


@given(PROSE, st.integers(1, 60))
def test_blocks_joined_are_the_text(text: str, size: int) -> None:
    """Blocks lose no character and none is larger than its size."""
    found = list(blocks(text, size))
    assert "".join(found) == text
    assert all(len(block) <= size for block in found)


@pytest.mark.promise("embed.whole")
@given(PROSE, st.integers(1, 40))
def test_windows_cover_every_piece(text: str, size: int) -> None:
    """Every word piece lies in a window, no window is too large and each begins after the last."""
    spans = spans_of(text)
    found = list(windows(text, spans, size))
    assert all(0 <= last - first <= size for first, last in found)
    assert {at for first, last in found for at in range(first, last)} == set(range(len(spans)))
    starts = [first for first, _ in found]
    ends = [last for _, last in found]
    assert starts == sorted(set(starts))
    assert ends == sorted(set(ends))


def test_cut_prefers_a_line_break() -> None:
    """Where a line ends in the second half of a window, the next part begins with the next."""
    text = "a b c. d e f\ng h i j k l"
    spans = spans_of(text)
    first, second = list(windows(text, spans, 10))[:2]
    assert text[spans[first[1] - 1][1]] == "\n"
    assert second[0] == first[1]


def test_sentence_at_a_cut_is_whole_in_one_part() -> None:
    """A cut inside running text falls behind a sentence."""
    text = " ".join(f"This is sentence number {n} of them." for n in range(60))
    spans = spans_of(text)
    for _, last in list(windows(text, spans, 80))[:-1]:
        assert text[spans[last - 1][1] - 1] == "."


def test_parts_overlap_inside_a_long_sentence() -> None:
    """Where only words separate, two neighbouring parts share some of them."""
    text = " ".join(f"w{n}" for n in range(200))
    found = list(windows(text, spans_of(text), 64))
    for (_, end), (start, _) in pairwise(found):
        assert end - 64 // 8 <= start < end


@pytest.mark.parametrize("threads", [1, 3])
def test_a_run_that_fails_is_told(threads: int) -> None:
    """Whichever thread it was in; the others end."""

    def run(batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        if any(len(ids) == 300 for ids in batch):
            raise ValueError("too long for me")
        return np.ones((len(batch), 2), np.float32)

    parts = [(text, range(length)) for text, length in enumerate((200, 250, 300, 280, 220))]
    assert len(embed_parts(parts[:2], 2, 0, run, threads=threads)) == 2
    with pytest.raises(ValueError, match="too long for me"):
        embed_parts(parts, 5, 0, run, threads=threads)
