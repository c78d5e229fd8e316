"""The indexed form of a text: its terms as numbers, and its words as written.

A term is a token in a field. Its number is a hash: what is stored has no tokens, only the words as
written (`forms`, for misspelt words of questions), and in a sealed home not even those.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.language.analyser import IndexedText, analyse, index_text, language_token
from anaphora.language.languages.language import language_of
from anaphora.text.shown_times import in_speakers_zone

TermNumbers = NDArray[np.uint64]
TermOf = Callable[[str], str]
"""Gives the term of a token in the index: in a sealed home a keyed hash."""

TITLE: Final = "^"
"""Prefix of the tokens of titles. No token of a text begins with it."""

MOST: Final = 65_535
"""The most occurrences of a term in a document that are counted."""

SHIFT: Final = 61
"""The bits of a number that are the hash; those above it are the field."""


@lru_cache(maxsize=16_384)
def _hash(term: str) -> int:
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> (64 - SHIFT)


def term_number(term: str, field: int = 0) -> int:
    """The number of a term in a field."""
    return (field << SHIFT) | _hash(term)


def numbers_of(terms: Iterable[str], field: int = 0) -> TermNumbers:
    """The numbers of terms in a field, in order."""
    return np.fromiter((term_number(term, field) for term in terms), np.uint64)


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """The distinct terms of a text by number (8 bytes each), how often each occurs (2 bytes), and
    its words as written, joined by spaces."""

    numbers: bytes = b""
    counts: bytes = b""
    forms: str = ""

    @property
    def content(self) -> bytes:
        """All of it."""
        return self.numbers + self.counts + self.forms.encode("utf-8", "surrogatepass")

    @classmethod
    def read(cls, content: bytes, term_count: int) -> IndexedDocument:
        """The document of so many terms with this `content`."""
        ends = 8 * term_count, 10 * term_count
        forms = content[ends[1] :].decode("utf-8", "surrogatepass")
        return cls(content[: ends[0]], content[ends[0] : ends[1]], forms)

    @property
    def term_count(self) -> int:
        """How many distinct terms it has."""
        return len(self.counts) // 2

    @property
    def terms(self) -> TermNumbers:
        """The numbers of its terms, each once."""
        return np.frombuffer(self.numbers, "<u8")


def document_of(fields: Iterable[Sequence[str]], forms: Iterable[str] = ()) -> IndexedDocument:
    """The indexed form of a text with these tokens in its fields."""
    counts: Counter[int] = Counter(
        term_number(token, number) for number, tokens in enumerate(fields) for token in tokens
    )
    return IndexedDocument(
        np.fromiter(counts, "<u8", len(counts)).tobytes(),
        np.minimum(np.fromiter(counts.values(), np.int64, len(counts)), MOST)
        .astype("<u2")
        .tobytes(),
        " ".join(forms),
    )


def analyse_fields(texts: Sequence[str], term_of: TermOf | None = None) -> IndexedDocument:
    """Analyse the fields of a document in any language; `term_of` replaces each token."""
    fields = map(analyse, texts)
    return document_of(
        fields if term_of is None else (list(map(term_of, field)) for field in fields)
    )


def analyse_text(
    text: str,
    term_of: TermOf | None = None,
    *,
    title: str = "",
    told_at: datetime | None = None,
) -> IndexedDocument:
    """Analyse a text by its language; `term_of` replaces each token.

    With `told_at` also the days that it means by that one. With `term_of`, the words as written are
    left out: they would reveal the tokens. The tokens of its `title` are among its words, each with
    the prefix of titles.
    """
    body = index_text(text, None, told_at and in_speakers_zone(told_at))
    heading = titled(title, language_of(f"{title}\n{text}")) if title else IndexedText((), (), 0)
    tokens = (*body.tokens, *heading.tokens)
    if term_of is not None:
        return document_of(([*map(term_of, tokens)],))
    return document_of((tokens,), dict.fromkeys((*body.forms, *heading.forms)))


def titled(title: str, code: str) -> IndexedText:
    """The indexed form of a title; `code` is the language of the item.

    Each token has the prefix of titles. The language may be wrong for a title, so that it is also
    analysed without one.
    """
    plain, in_language = index_text(title, ""), index_text(title, code)
    title_tokens = dict.fromkeys(TITLE + token for token in (*plain.tokens, *in_language.tokens))
    title_tokens.pop(TITLE + language_token(code), None)
    return IndexedText(tuple(title_tokens), plain.forms, len(title_tokens))
