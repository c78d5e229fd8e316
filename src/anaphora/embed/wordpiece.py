"""BERT's tokenizer: from a text to the ids of its word pieces.

The text is cleaned of control characters, lower-cased and stripped of accents; words are separated
by spaces, and each punctuation mark and Chinese character is a word of its own; a word is cut into
the longest pieces of the vocabulary, from the left (Wu et al., arXiv:1609.08144; Devlin et al.,
arXiv:1810.04805). The pieces are those of the library `tokenizers` for every character of Unicode
3.2; for newer scripts the interpreter's tables define marks and punctuation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final
from unicodedata import category as kind_of
from unicodedata import normalize

from anaphora.errors import EmbeddingError

_CONTINUED: Final = "##"
_LONGEST_WORD: Final = 100
"""Characters; a longer word is one unknown piece."""

_KEPT_WORDS: Final = 1 << 15
_WORDS: Final = re.compile("[^ ]+")
_INVISIBLE: Final = frozenset(("Cc", "Cf", "Cs", "Co"))
# "$", "+", "<" and others of ASCII are symbols to Unicode and punctuation to BERT.
_ASCII_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_IDEOGRAPHS: Final = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip

_Pieces = tuple[list[int], list[int]]
"""The pieces of one word: their ids, and how many characters of the word each covers."""


class WordPiece:
    """`vocabulary` has the ids of pieces, `special` those of literal tokens such as `[MASK]`."""

    def __init__(self, vocabulary: Mapping[str, int], special: Mapping[str, int], unknown: int):
        self._special = special
        self._characters = _Characters()
        self._words = _WordPieces(vocabulary, unknown)
        # Without any it matches nowhere.
        self._marked = re.compile(f"({'|'.join(map(re.escape, special)) or '(?!)'})")

    def ids(self, text: str) -> list[int]:
        """The ids of the text's word pieces, without special ones around them."""
        ids: list[int] = []
        for part in self._marked.split(text):
            if part in self._special:
                ids.append(self._special[part])
                continue
            for word in "".join(map(self._characters.__getitem__, part)).split():
                ids += self._words[word][0]
        return ids

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The (start, end) characters of `text` for each of its word pieces."""
        spans: list[tuple[int, int]] = []
        start = 0
        for part in self._marked.split(text):
            is_special = part in self._special
            if is_special:
                spans.append((start, start + len(part)))
            character_forms = [] if is_special else [self._characters[char] for char in part]
            # The position in the text of each character of the cleaned text.
            positions = [
                at for at, characters in enumerate(character_forms, start) for _ in characters
            ]
            for word in _WORDS.finditer("".join(character_forms)):
                at = word.start()
                for length in self._words[word.group()][1]:
                    spans.append((positions[at], positions[at + length - 1] + 1))
                    at += length
            start += len(part)
        return spans


class _WordPieces(dict[str, _Pieces]):
    """The pieces of each word, cut once."""

    def __init__(self, vocabulary: Mapping[str, int], unknown: int) -> None:
        self._vocabulary = vocabulary
        self._unknown = unknown
        self._longest = max(map(len, vocabulary), default=0)

    def __missing__(self, word: str) -> _Pieces:
        ids: list[int] = []
        lengths: list[int] = []
        start, prefix = 0, ""
        reach = self._longest if len(word) <= _LONGEST_WORD else 0
        while start < len(word):
            for end in range(min(len(word), start + reach), start, -1):
                piece = self._vocabulary.get(prefix + word[start:end])
                if piece is not None:
                    ids.append(piece)
                    lengths.append(end - start)
                    start, prefix = end, _CONTINUED
                    break
            else:
                ids, lengths, start = [self._unknown], [len(word)], len(word)
        if len(self) >= _KEPT_WORDS:
            self.clear()
        self[word] = ids, lengths
        return ids, lengths


class _Characters(dict[str, str]):
    """The cleaned form of each character, computed once: empty, a space, or some characters."""

    def __missing__(self, character: str) -> str:
        code = ord(character)
        if character in "\t\n\r":
            read = " "
        elif code == 0xFFFD or kind_of(character) in _INVISIBLE:
            read = ""
        elif character.isspace():
            read = " "
        else:
            parts = (part for part in normalize("NFD", character) if kind_of(part) != "Mn")
            read = "".join(part.lower() for part in parts)
            stands_alone = any(low <= code <= high for low, high in _IDEOGRAPHS) or any(
                part in _ASCII_PUNCTUATION or kind_of(part).startswith("P") for part in read
            )
            read = f" {read} " if stands_alone else read
        self[character] = read
        return read


@lru_cache(1)
def read_wordpiece(content: bytes) -> WordPiece:
    """A tokenizer from a `tokenizer.json` of the library `tokenizers`; models share one.

    Raises EmbeddingError if it is not BERT's tokenizer with lower-casing.
    """
    try:
        raw: Any = json.loads(content)
        model, normalizer = raw["model"], raw["normalizer"]
        kinds = (model["type"], model["continuing_subword_prefix"], normalizer["type"])
        flags = (normalizer["clean_text"], normalizer["lowercase"], normalizer["strip_accents"])
        if kinds != ("WordPiece", _CONTINUED, "BertNormalizer") or flags != (True, True, None):
            raise EmbeddingError(f"another tokenizer was expected than {kinds}, {flags}")
        vocabulary: dict[str, int] = model["vocab"]
        special = {str(token["content"]): int(token["id"]) for token in raw["added_tokens"]}
        return WordPiece(vocabulary, special, vocabulary[model["unk_token"]])
    except (ValueError, KeyError, TypeError) as error:
        raise EmbeddingError(f"the model's tokenizer cannot be read: {error!r}") from error


@cache
def common_words() -> frozenset[str]:
    """The whole words in the vocabulary of the bundled model: common English words, folded."""
    content = (Path(__file__).parent / "models" / "minilm" / "tokenizer.json").read_bytes()
    return frozenset(word for word in json.loads(content)["model"]["vocab"] if word.isalpha())
