"""The tokenizer of a model folder: our own for BERT's word pieces, else the library `tokenizers`.

Reads a `tokenizer.json`; gives the tokenizer, and the word pieces before and after each text.
Truncation and padding of the file are ignored, since texts are cut into windows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from anaphora.embed.windowed import Tokenizer
from anaphora.embed.wordpiece import read_wordpiece
from anaphora.errors import EmbeddingError, MissingExtra

_PROBE: Final = "word"


@dataclass(frozen=True, slots=True)
class TokenizerSpec:
    """A tokenizer, and the word pieces before and after every text."""

    tokenizer: Tokenizer
    before: tuple[int, ...]
    after: tuple[int, ...]

    def prefix(self, text: str) -> list[int]:
        """The word pieces of a prefix that is followed by text, as if tokenised together."""
        if not text:
            return []
        ways = [self.tokenizer.ids(text), self.tokenizer.ids(text.rstrip())]
        with_word, word = self.tokenizer.ids(text + _PROBE), self.tokenizer.ids(_PROBE)
        # If a space belongs to the next word, the prefix must not have it too.
        return next((ids for ids in ways if [*ids, *word] == with_word), ways[0])


def read_tokenizer(path: Path, *, lower: bool = False) -> TokenizerSpec:
    """Read a `tokenizer.json`. With `lower`, texts are lower-cased first.

    Raises EmbeddingError for an invalid file, MissingExtra if it needs the library.
    """
    try:
        content = path.read_bytes()
        raw = json.loads(content)
    except (OSError, ValueError) as error:
        raise EmbeddingError(f"{path} cannot be read: {error}") from error
    around = _read_special_ids(raw) if isinstance(raw, dict) else None
    if around is not None and _names_type(raw.get("pre_tokenizer"), "BertPreTokenizer"):
        with suppress(EmbeddingError):
            # It lower-cases by itself.
            return TokenizerSpec(read_wordpiece(content), *around)
    try:
        from tokenizers import Tokenizer as LibraryTokenizer
    except ImportError as error:
        raise MissingExtra("embedders", "tokenizers") from error
    try:
        read = LibraryTokenizer.from_str(content.decode())
    except Exception as error:
        raise EmbeddingError(f"{path} is no tokenizer: {error}") from error
    read.no_truncation()
    read.no_padding()
    probe_encoding = read.encode(_PROBE)
    special = probe_encoding.special_tokens_mask
    first_plain = next((at for at, on in enumerate(special) if not on), len(special))
    plain_end = len(special) - next((at for at, on in enumerate(special[::-1]) if not on), 0)
    ids = tuple(probe_encoding.ids)
    return TokenizerSpec(
        _Library(read, lower=lower), ids[:first_plain], ids[max(first_plain, plain_end) :]
    )


def _names_type(part: Any, *types: str) -> bool:
    return isinstance(part, dict) and part.get("type") in types


def _read_special_ids(raw: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The ids before and after a text; None if the file defines them in an unsupported way."""
    post_processor: Any = raw.get("post_processor")
    try:
        if _names_type(post_processor, "BertProcessing", "RobertaProcessing"):
            return (int(post_processor["cls"][1]),), (int(post_processor["sep"][1]),)
        if _names_type(post_processor, "TemplateProcessing"):
            sides: tuple[list[int], list[int]] = ([], [])
            side = 0
            for step in post_processor["single"]:
                if "Sequence" in step:
                    side = 1
                else:
                    sides[side].extend(
                        post_processor["special_tokens"][step["SpecialToken"]["id"]]["ids"]
                    )
            return tuple(sides[0]), tuple(sides[1])
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    return None


class _Library:
    """A tokenizer of the library `tokenizers`."""

    def __init__(self, read: Any, *, lower: bool) -> None:
        self._read = read
        self._lower = lower

    def ids(self, text: str) -> list[int]:
        """The numbers of the text's word pieces."""
        ids: list[int] = self._encode(text).ids
        return ids

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The (start, end) characters of each of its word pieces."""
        spans: list[tuple[int, int]] = self._encode(text).offsets
        return spans

    def _encode(self, text: str) -> Any:
        # Not lower-cased if that changes its length, which would shift the spans.
        cased_text = text.lower() if self._lower else text
        return self._read.encode(
            cased_text if len(cased_text) == len(text) else text, add_special_tokens=False
        )
