"""The tokenizer of the bundled model finds the pieces that the library `tokenizers` finds."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from anaphora.embed.minilm import MINILM
from anaphora.embed.wordpiece import WordPiece, read_wordpiece
from anaphora.errors import EmbeddingError

FILE = MINILM / "tokenizer.json"
OLD = unicodedata.ucd_3_2_0
# What `tokenizers` knows of Unicode is some ten years old: of newer characters the two may differ,
# and the model knows none of them.
KNOWN = tuple(
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
TEXTS = st.lists(st.one_of(st.sampled_from(KNOWN), WORDS, st.text("ab ,.\n\t[]", max_size=5)))


@pytest.mark.promise("embed.wordpiece")
@given(TEXTS.map("".join))
def test_the_same_pieces_for_any_text(text: str) -> None:
    """Numbers and places are those of the reference, whatever the text is made of."""
    assert not differs(text)


def test_the_same_pieces_for_every_character() -> None:
    """Each character of Unicode 3.2, within a word and alone."""
    assert len(KNOWN) > 200_000
    assert [hex(ord(one)) for one in KNOWN if differs(f"a{one}b {one}")] == []


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
