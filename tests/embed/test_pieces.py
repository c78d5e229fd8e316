"""Texts in pieces: word pieces, and windows for long texts."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tokenizers import Tokenizer

from anaphora.embed.chunking import blocks, windows
from anaphora.embed.minilm import MINILM, MULTILINGUAL
from anaphora.embed.unigram import Unigram, read_unigram
from anaphora.embed.windowed import embed_parts
from anaphora.embed.wordpiece import WordPiece, read_wordpiece
from anaphora.errors import EmbeddingError

FILE = MINILM / "tokenizer.json"
OLD = unicodedata.ucd_3_2_0


# What `tokenizers` knows of Unicode is some ten years old: of newer characters the two may differ,
# and the model knows none of them.
@cache
def known() -> tuple[str, ...]:
    return tuple(
        chr(code)
        for code in range(0x110000)
        if not 0xD800 <= code < 0xE000
        and OLD.category(chr(code)) == unicodedata.category(chr(code)) != "Cn"
    )


@cache
def reference() -> Tokenizer:
    found = Tokenizer.from_buffer(FILE.read_bytes())
    found.no_padding()
    found.no_truncation()
    return found


@cache
def ours() -> WordPiece:
    return read_wordpiece(FILE.read_bytes())


def differs(text: str) -> bool:
    """Whether the two find other pieces, or find them elsewhere."""
    expected = reference().encode(text, add_special_tokens=False)
    return ours().ids(text) != expected.ids or ours().spans(text) != expected.offsets


def files() -> Iterator[Path]:
    """Texts of this project: code, documents, tables, other languages."""
    top = Path(__file__).resolve().parents[2]
    yield from (top / "docs").rglob("*.md")
    yield from (top / "src" / "anaphora" / "rank").rglob("*.py")


WORDS = st.sampled_from(
    [
        "[CLS]",
        "[MASK",
        "[UNK]]",
        "naïve",
        "ÅNGSTRÖM",
        "東京",
        "don't",
        "a\u0301",
        "ﬁ",
        "\u00ad",
        "한국",
    ]
)
TEXTS = st.lists(
    st.one_of(
        st.deferred(lambda: st.sampled_from(known())), WORDS, st.text("ab ,.\n\t[]", max_size=5)
    )
)


@pytest.mark.promise("embed.wordpiece")
@given(TEXTS.map("".join))
def test_the_same_pieces_for_any_text(text: str) -> None:
    """Numbers and places are those of the reference, whatever the text is made of."""
    assert not differs(text)


def test_the_same_pieces_for_every_character() -> None:
    """Each character of Unicode 3.2, within a word and alone."""
    assert len(known()) > 200_000
    assert [hex(ord(one)) for one in known() if differs(f"a{one}b {one}")] == []


def test_the_same_pieces_for_real_pages() -> None:
    """Documents and code of this project, whole."""
    read = [file.read_text(encoding="utf-8") for file in files()]
    assert len(read) > 50
    assert not any(map(differs, read))


@pytest.mark.parametrize("length", [99, 100, 101])
def test_a_very_long_word_is_unknown(length: int) -> None:
    """More than a hundred letters without a break are one piece."""
    assert not differs("a" * length)
    assert (len(ours().ids("ab" * length)) == 1) is (2 * length > 100)


def _changed(**changes: object) -> bytes:
    raw = json.loads(FILE.read_bytes())
    raw["normalizer"] |= changes
    return json.dumps(raw).encode()


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b'{"model": {}}', _changed(lowercase=False), _changed(type="NFC")],
    ids=["nothing", "no object", "no model", "cased", "another normalizer"],
)
def test_another_tokenizer_is_refused(content: bytes) -> None:
    """A file that is no tokenizer, or one that would find other pieces, is an error."""
    with pytest.raises(EmbeddingError, match="tokenizer"):
        read_wordpiece(content)


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
    assert len(embed_parts(parts[:2], 0, run, threads=threads)) == 2
    with pytest.raises(ValueError, match="too long for me"):
        embed_parts(parts, 0, run, threads=threads)


@cache
def unigram() -> tuple[Unigram, Tokenizer]:
    content = (MULTILINGUAL / "tokenizer.json").read_bytes()
    return read_unigram(content), Tokenizer.from_buffer(content)


CUT = (
    "Beim Schleudern wackelt die Waschmaschine so heftig, dass sie durchs Bad wandert",
    "脱水になると洗濯機がガタガタ揺れて、洗面所の中を動き回るんだよね",
    "洗衣机一甩干就抖得厉害,都能在卫生间里自己挪地方",
    "При отжиме стиралку так трясёт, что она ездит по ванной",
    "탈수만 하면 세탁기가 너무 심하게 흔들려서 욕실 안을 돌아다녀",
    "ﾊﾟﾋﾟﾌﾟ ①②③…abc Ｆｕｌｌ e\u0301a\u0308 각각",
    "a\tb\n c\0d\u200be 👩\u200d👩\u200d👧 \U0001f1e6 العربية हिन्दी שלום ไม่รู้",
    "xyzzy" * 40,
    "字" * 300,
    "",
)


@pytest.mark.parametrize("text", CUT)
def test_unigram_pieces_are_those_of_the_library(text: str) -> None:
    """Our pieces of a text in any language are those of `tokenizers`, each with its place."""
    ours, library = unigram()
    expected = library.encode(text, add_special_tokens=False)
    assert ours.ids(text) == expected.ids
    spans = ours.spans(text)
    assert len(spans) == len(expected.ids)
    assert all(start <= end for start, end in spans)
    assert all(one[0] <= two[0] and one[1] <= two[1] for one, two in pairwise(spans))


@given(st.text(max_size=40))
def test_unigram_pieces_of_any_text_have_places(text: str) -> None:
    """However odd a text, its pieces are as many as their places, which lie in it."""
    ours, _ = unigram()
    spans = ours.spans(text)
    assert len(spans) == len(ours.ids(text))
    assert all(0 <= start <= end <= len(text) for start, end in spans)


def test_what_looks_special_is_text() -> None:
    """A text cannot hold the pieces that begin, end and fill a text."""
    ours, _ = unigram()
    assert not {0, 1, 2} & set(ours.ids("<s> </s> <pad><s></s>"))


@pytest.mark.parametrize("content", ["{}", "[]", "no", '{"model": {"type": "BPE"}}'])
def test_a_tokenizer_of_another_form_is_refused(content: str) -> None:
    """A file that is no unigram tokenizer raises EmbeddingError."""
    with pytest.raises(EmbeddingError):
        read_unigram(content.encode())
