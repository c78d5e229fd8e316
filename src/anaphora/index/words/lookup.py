"""From the words of a question to the terms of an index, each with its weight.

A word stands for its tokens in all languages. If no text contains any of them, the word may be a
compound of indexed words (in languages with compounds), or misspelt: then the nearest words of the
texts are looked up, with a lower weight. A word that a text contains is never read as another one.
In a sealed home the words cannot be read, so no word is treated as misspelt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, TypeAlias

from anaphora.index.words.documents import TITLE, numbers_of
from anaphora.index.words.postings import WordStatistics, idf
from anaphora.language.analyser import QueryWord, token_of
from anaphora.language.languages.language import ENGLISH

Word: TypeAlias = str | QueryWord
"""A word to look up: of a question, or a token as it is."""

NEAR: Final = 0.6
"""The factor of a word that is read as another one, and of one that is part of another."""

_READ_AS: Final = 3
"""The most words of the texts that one misspelt word is read as."""

_COMPOUNDS: Final = 6
"""The most compounds of the texts that one word is looked up in."""

_WORDS: Final = 65_536
"""The most words whose terms are counted once."""

_PART: Final = 4
_JOINTS: Final = ("", "s", "es", "n", "en", "er", "e")


@dataclass(frozen=True, slots=True)
class Lookup:
    """The terms that words are looked up by.

    `weights` has each term's weight, in units of IDF, `titles` the weights of the same words in
    titles; `mass` is the weight of a text with all the words, and `of_words` what each word adds to
    it, in order. `read_as` has the words that no text contains, with the words they were read as.
    `exact` has the terms of each word that names something exactly, empty if no text has it.
    """

    weights: dict[str, float] = field(default_factory=dict)
    mass: float = 0.0
    of_words: tuple[float, ...] = ()
    read_as: tuple[tuple[str, str], ...] = ()
    titles: dict[str, float] = field(default_factory=dict)
    exact: tuple[tuple[str, ...], ...] = ()

    def notices(self, what: str) -> tuple[str, ...]:
        """Notices of words that were read as others; `what` is the subject, such as "no turn"."""
        return tuple(
            f'{what} holds "{word}": read as "{reading}"' for word, reading in self.read_as
        )


def look_up(
    words: Sequence[Word],
    statistics: WordStatistics,
    term_of: Callable[[str], str],
    *,
    least_documents: int = 0,
    unheld: bool = False,
) -> Lookup:
    """Look words up. IDF is computed as for `least_documents` at least. `unheld`: words that no
    text contains count in the mass as the rarest; otherwise they do not count."""
    return _Looking(statistics, term_of, max(statistics.documents, least_documents)).all(
        words, unheld
    )


@dataclass(slots=True)
class _Looking:
    """One lookup while it is made."""

    _statistics: WordStatistics
    _term_of: Callable[[str], str]
    _documents: int
    _codes: tuple[str, ...] = ()
    _weights: dict[str, float] = field(default_factory=dict)
    _titles: dict[str, float] = field(default_factory=dict)
    _read_as: list[tuple[str, str]] = field(default_factory=list)
    _exact: list[tuple[str, ...]] = field(default_factory=list)

    def all(self, words: Sequence[Word], unheld: bool) -> Lookup:
        parts: list[float] = []
        seen_tokens: set[str] = set()
        mass = 0.0
        # The languages of the texts, as far as these have tokens of their own.
        self._codes = self._statistics.languages(self._term_of)
        query_words = [
            word if isinstance(word, QueryWord) else QueryWord((word,)) for word in words
        ]
        # Counted once: texts are looked up by the same few thousand words again and again.
        counts_by_word = self._statistics.holders
        if len(counts_by_word) >= _WORDS:
            counts_by_word.clear()
        new_words = [word for word in query_words if word not in counts_by_word]
        new_counts = self._count_holders(*(word.tokens_in(self._codes) for word in new_words))
        counts_by_word.update(zip(new_words, new_counts, strict=True))
        for query_word in query_words:
            part = self._add_word(query_word, counts_by_word[query_word])
            if not part and unheld:
                # It counts in the mass although nothing matches it.
                part = idf(self._documents, 0)
                self._weights.setdefault(self._term_of(query_word.tokens[0]), part)
            parts.append(part)
            if query_word.tokens[0] not in seen_tokens:
                seen_tokens.add(query_word.tokens[0])
                mass += part
        return Lookup(
            self._weights,
            mass,
            tuple(parts),
            tuple(self._read_as),
            self._titles,
            tuple(self._exact),
        )

    def _add_word(self, word: QueryWord, counts: dict[str, int]) -> float:
        """Add the terms of a word; its weight in the mass, 0 if no text contains it."""
        if word.exact:
            self._exact.append(tuple(counts))
        if counts:
            weight = self._add_terms(counts)
            if word.compounds:
                self._add_longer(word, counts)
            return weight
        if word.compounds and (weight := self._add_longer(word, {}) or self._add_parts(word)):
            return weight
        # Another version or code is not a misspelling of this one.
        return self._add_nearest(word) if word.form and not word.exact else 0.0

    def _count_holders(self, *words: Iterable[str]) -> list[dict[str, int]]:
        """How many texts have each term of the tokens of each word, of those that any has."""
        words_terms = [
            [self._term_of(mark + token) for token in tokens for mark in ("", TITLE)]
            for tokens in words
        ]
        numbers = numbers_of(chain.from_iterable(words_terms))
        counts = iter(self._statistics.holding(numbers).tolist())
        counted = [
            {term: count for term, count in zip(terms, counts, strict=False) if count}
            for terms in words_terms
        ]
        for terms, counts_by_term in zip(words_terms, counted, strict=True):
            self._statistics.title_terms.update(counts_by_term.keys() & terms[1::2])
        return counted

    def _add_terms(self, counts: dict[str, int], factor: float = 1.0) -> float:
        """Add terms that mean the same: they are as rare as all of them together."""
        weight = idf(self._documents, min(self._documents, sum(counts.values())))
        for term in counts:
            if term in self._statistics.title_terms:
                # Two words may be parts of one compound: "Zahnarzt", "Termin", "Zahnarzttermin".
                self._titles[term] = self._titles.get(term, 0.0) + factor * weight
            else:
                self._weights.setdefault(term, factor * weight)
        return weight

    def _add_longer(self, word: QueryWord, known_terms: dict[str, int]) -> float:
        longer = (
            form
            for vocabulary in self._statistics.vocabularies()
            for form in vocabulary.holding(word.form, _PART - 1)
        )
        # Titles are indexed as English too: they are too short to tell their language.
        tokens = dict.fromkeys(
            token_of(form, code)
            for form in sorted(longer, key=lambda form: (len(form), form))[:_COMPOUNDS]
            for code in (word.compounds, ENGLISH)
        )
        (counts,) = self._count_holders(tokens)
        compounds = {term: count for term, count in counts.items() if term not in known_terms}
        return self._add_terms(compounds, NEAR) if compounds else 0.0

    def _add_parts(self, word: QueryWord) -> float:
        """Add the longest indexed words that the word ends and begins with."""
        form, code = word.form, word.compounds
        for cut_index in range(_PART, len(form) - _PART + 1):
            if head := self._count_holders((token_of(form[cut_index:], code),))[0]:
                weight = self._add_terms(head, NEAR)
                for joint in _JOINTS:
                    stem = form[:cut_index].removesuffix(joint)
                    if len(stem) >= _PART and (
                        head_counts := self._count_holders((token_of(stem, code),))[0]
                    ):
                        return weight + self._add_terms(head_counts, NEAR)
                return weight
        return 0.0

    def _add_nearest(self, word: QueryWord) -> float:
        near_forms = [
            match
            for vocabulary in self._statistics.vocabularies()
            for match in vocabulary.near(word.form)
        ]
        fewest = min((count for count, _ in near_forms), default=0)
        forms = dict.fromkeys(form for count, form in near_forms if count == fewest)
        codes = (ENGLISH, *self._codes)
        counted = self._count_holders(
            *(dict.fromkeys(token_of(form, code) for code in codes) for form in forms)
        )
        counts_by_form = {
            form: counts for form, counts in zip(forms, counted, strict=True) if counts
        }
        if not counts_by_form:
            return 0.0
        # The commonest forms: a rare one may be misspelt itself.
        commonest = sorted(
            counts_by_form, key=lambda form: (-sum(counts_by_form[form].values()), form)
        )[:_READ_AS]
        self._read_as.append((word.form, commonest[0]))
        together = {
            term: count for form in commonest for term, count in counts_by_form[form].items()
        }
        return self._add_terms(together, NEAR)
