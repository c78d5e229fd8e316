"""What a question asks for, and which of it a text holds: the evidence that words give.

A question is made of words that frame it ("what did … say", "tell me about …") and of what it asks
for: words, names of people, identifiers ("ERR-4021"). The framing words say nothing of an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Final

from anaphora.language.analyser import QueryWord, analyse, numbered_things, token_of
from anaphora.language.folding import typed_text
from anaphora.language.languages.language import languages
from anaphora.rank.statements import HEAD, asked_words, read_statement

_FRAMES: Final = ("happening", "framing")
_MOST_NAMED: Final = 20_000
"""Characters of lines with digits in which identifiers are looked for."""
_MOST_READ: Final = 100_000
"""Characters of a text that are read; beyond them what stands around words of the question."""
_AROUND: Final = 200
_PLACES: Final = 4
_SHORTEST: Final = 3
"""Characters of a word that is looked for in a text as it is written."""


@dataclass(frozen=True)
class QuestionTerms:
    """The words that a question asks for, without those that frame it, in its order.

    `framed`: there were framing words; `bare`: there were no others, and `words` are these.
    `identifiers` are the terms of `words` that mix digits with letters or marks.
    """

    words: tuple[QueryWord, ...]
    framed: bool
    bare: bool
    identifiers: frozenset[str]

    @cached_property
    def terms(self) -> frozenset[str]:
        """The first token of each word."""
        return frozenset(word.tokens[0] for word in self.words)


@lru_cache(maxsize=1)
def _list_framing() -> frozenset[str]:
    """The tokens of framing words, in any language."""
    texts = (language.cues.get(name, "") for language in languages().values() for name in _FRAMES)
    return frozenset(token for words in texts for word in words.split() for token in analyse(word))


@lru_cache(maxsize=256)
def read_question_terms(question: str) -> QuestionTerms:
    """What `question` asks for."""
    words = asked_words(question)
    identifiers = {word.tokens[0] for word in words if word.exact and not word.tokens[0].isdigit()}
    # "qx-771" is looked up by its parts as well; they are one word.
    distinct_words = tuple(
        word
        for word in words
        if not any(
            word.tokens[0] in identifier and word.tokens[0] != identifier
            for identifier in identifiers
        )
    )
    framing_tokens = _list_framing()
    remaining = tuple(word for word in distinct_words if word.tokens[0] not in framing_tokens)
    chosen_words = remaining or distinct_words
    return QuestionTerms(
        chosen_words,
        framed=len(remaining) < len(distinct_words),
        bare=not remaining,
        identifiers=frozenset(identifiers & {word.tokens[0] for word in chosen_words}),
    )


def bearing_parts(question: str, text: str) -> str:
    """`text`, or of a very long one the beginning and the first places where words of the question
    may stand, wherever these are: what `find_held_terms` needs of it, in bounded size."""
    if len(text) <= _MOST_READ:
        return text
    lower_text = text.lower()
    parts = [text[:_MOST_READ]]
    for word in read_question_terms(question).words:
        # How the word may begin: as it is typed, and as its stem does.
        forms = {form.lower() for form in (word.form, *word.spellings, *word.tokens) if form}
        needles = {form.partition("~")[0] for form in forms}
        if word.form and not word.exact:
            needles.add(_common_prefix(word.form, token_of(word.form, "")))
        needles = {form for form in needles if len(form) >= _SHORTEST or word.exact}
        for needle in needles:
            at = _MOST_READ - len(needle)
            for _ in range(_PLACES):
                at = lower_text.find(needle, at + 1)
                if at < 0:
                    break
                start = max(text.rfind("\n", at - _AROUND, at) + 1, at - _AROUND, 0)
                parts.append(text[start : at + _AROUND])
    return "\n".join(parts)


@lru_cache(maxsize=512)
def _read_tokens(question: str, code: str) -> tuple[tuple[QueryWord, frozenset[str]], ...]:
    """The words that `question` asks for, each with its tokens in texts of a language."""
    codes = (code,) if code in languages() else ()
    return tuple(
        (word, frozenset(word.tokens_in(codes))) for word in read_question_terms(question).words
    )


@lru_cache(maxsize=4096)
def find_held_terms(question: str, text: str, line: str = "") -> frozenset[str]:
    """The terms of `read_question_terms(question)` that `text` holds, wherever they stand in it.

    `line` is what `keep_reading` made of `text`, if that is known.
    """
    reading = read_statement(text, line)
    return frozenset(
        word.tokens[0]
        for word, tokens in _read_tokens(question, reading.code)
        if not reading.words.isdisjoint(tokens)
        or (
            not _find_named(text).isdisjoint(word.tokens) if word.exact else _is_written(word, text)
        )
    )


@lru_cache(maxsize=256)
def _fold(text: str) -> str:
    return typed_text(text).casefold()


@lru_cache(maxsize=256)
def _find_named(text: str) -> frozenset[str]:
    """The tokens of the lines of a text that hold a digit, as all identifiers do."""
    lines = [line for line in text.splitlines() if any(map(str.isdigit, line))]
    named_text = "\n".join(lines)[:_MOST_NAMED].lower()
    return numbered_things(named_text).union(analyse(named_text))


@lru_cache(maxsize=1024)
def find_terms_in_title(title: str, terms: frozenset[str]) -> frozenset[str]:
    """Those of `terms` that stand in what something is called, as a part of a longer word too."""
    tokens = frozenset(analyse(title))
    names = " ".join(tokens)
    return frozenset(
        term for term in terms if term in tokens or (len(term) > _SHORTEST and term in names)
    )


def _is_written(word: QueryWord, text: str) -> bool:
    """Whether a word stands in a text: within a longer one where words are joined."""
    form = word.form or word.tokens[0]
    if len(form) < _SHORTEST:
        return False
    if word.compounds:
        return form in _fold(text)
    if len(text) <= HEAD:
        return False
    stem, folded_text = (
        form if not word.form else _common_prefix(form, token_of(form, "")),
        _fold(text),
    )
    at = folded_text.find(stem)
    while at > 0 and (folded_text[at - 1].isalnum() or folded_text[at - 1] == "_"):
        at = folded_text.find(stem, at + 1)
    return at >= 0


def _common_prefix(form: str, token: str) -> str:
    """What a word and its stem begin with, at least `_SHORTEST` characters of the word."""
    pairs = zip(form, token, strict=False)
    size = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return form[: max(size, _SHORTEST)]
