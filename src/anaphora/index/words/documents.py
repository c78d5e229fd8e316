"""The indexed forms of items: their tokens, and a digest of these."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime

from anaphora.index.words.lookup import TITLE
from anaphora.index.words.writing import IndexedDocument
from anaphora.language.analyser import IndexedText, analyse, index_text, language_token
from anaphora.language.languages.language import language_of
from anaphora.text.shown_times import in_speakers_zone

TermOf = Callable[[str], str]
"""Gives the term of a token in the index: in a sealed home a keyed hash."""


def document_of(key: str, texts: Sequence[str], term_of: TermOf | None = None) -> IndexedDocument:
    """Analyse the fields of a document in any language; `term_of` replaces each token."""
    fields = []
    for text in texts:
        tokens = analyse(text)
        fields.append(" ".join(tokens if term_of is None else map(term_of, tokens)))
    return _document(key, tuple(fields), "")


def document_in_language(
    key: str,
    text: str,
    term_of: TermOf | None = None,
    *,
    title: str = "",
    told_at: datetime | None = None,
) -> IndexedDocument:
    """Analyse a document by its language; `term_of` replaces each token.

    With `told_at` also the days that it means by that one.

    With `term_of`, the words as written are left out: they would reveal the tokens. The tokens of
    its `title` are among its words, each with the prefix of titles.
    """
    body = index_text(text, None, told_at and in_speakers_zone(told_at))
    heading = titled(title, language_of(f"{title}\n{text}")) if title else IndexedText((), (), 0)
    forms = dict.fromkeys((*body.forms, *heading.forms) if term_of is None else ())
    tokens = (*body.tokens, *heading.tokens)
    words = " ".join(tokens if term_of is None else map(term_of, tokens))
    return _document(key, (words,), " ".join(forms))


def titled(title: str, code: str) -> IndexedText:
    """The indexed form of a title; `code` is the language of the item.

    Each token has the prefix of titles. The language may be wrong for a title, so that it is also
    analysed without one.
    """
    plain, in_language = index_text(title, ""), index_text(title, code)
    title_tokens = dict.fromkeys(TITLE + token for token in (*plain.tokens, *in_language.tokens))
    title_tokens.pop(TITLE + language_token(code), None)
    return IndexedText(tuple(title_tokens), plain.forms, len(title_tokens))


def _document(key: str, fields: tuple[str, ...], forms: str) -> IndexedDocument:
    document_bytes = "\n".join((*fields, forms)).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(document_bytes, digest_size=8).digest()
    return IndexedDocument(key, fields, int.from_bytes(digest, "little"), forms)
