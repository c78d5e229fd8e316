"""Identifying tokens of a text: numbers, codes, addresses, full names.

An `Identifier` has terms to look it up by in a word index, and a pattern that finds it in a text
however it is spaced and punctuated there. Ordinary words, years and short numbers identify nothing:
half of all texts would hold them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from anaphora.language.analyser import QueryWord, analyse, query_words

_LEAST_DIGITS: Final = 4
_LEAST_OF_A_GROUP: Final = 5
_LEAST_CODE: Final = 6
_LEAST_IN_CODE: Final = 3
# A number without its country's or its trunk prefix is still the same one, if so much is left.
_LEAST_NATIONAL: Final = 7
_MOST: Final = 40

_LINK = re.compile(r"https?://[^\s<>\"')\]]+", re.IGNORECASE)
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_HANDLE = re.compile(r"(?<![\w.+-])@\w{3,}")
_NUMBER = re.compile(r"(?<![^\W_])(?:\+|00)?\(?\d(?:[ \t().\-/]{0,3}\d){3,}(?![^\W_])")
_CODE = re.compile(
    r"(?<![^\W_])(?:[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,}(?:[ ]?[A-Z0-9]{1,4})?"
    r"|[A-Za-z0-9]+(?:[-_/][A-Za-z0-9]+)*)(?![^\W_])"
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_STREET = re.compile(
    r"\w+(?:stra(?:ß|ss)e|str\.|weg|platz|gasse|allee)\s+\d{1,4}\b|\b\d{1,4}\s+\w+\s+"
    r"(?:street|st\.|road|rd\.|avenue|ave\.|lane|drive|square)(?!\w)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_BETWEEN = re.compile(r"(?:\.? |, )\Z")
_APART = r"[\s().,\-/_]{0,3}"


@dataclass(frozen=True, slots=True)
class Identifier:
    """What identifies a person or a thing: `words` to look it up by, `pattern` of texts with it.

    Any one of the words may stand in such a text: a number that is grouped otherwise has others.
    """

    words: tuple[QueryWord, ...]
    pattern: re.Pattern[str]

    @property
    def terms(self) -> tuple[str, ...]:
        """The words as they are analysed in any language."""
        return tuple(word.tokens[0] for word in self.words)

    def held_by(self, text: str) -> bool:
        """Whether the text holds it."""
        return self.pattern.search(text) is not None


def identifiers_of(texts: Iterable[str]) -> tuple[Identifier, ...]:
    """The identifiers of texts, each once."""
    identifiers: dict[str, Identifier] = {}
    for text in texts:
        for written_form, pattern, parts in _scan(text):
            if pattern not in identifiers:
                words = (*query_words(written_form), *(QueryWord((part,)) for part in parts))
                compiled_pattern = re.compile(pattern, re.IGNORECASE)
                identifiers[pattern] = Identifier(tuple(dict.fromkeys(words)), compiled_pattern)
    return tuple(identifiers.values())


def _scan(text: str) -> Iterator[tuple[str, str, Iterable[str]]]:
    """Each identifier as written, its pattern, and terms that it may be written with elsewhere."""
    for kind in (_LINK, _MAIL, _HANDLE):
        for match in kind.finditer(text):
            plain = match[0].rstrip(".,;:!?")
            yield plain, rf"(?<![\w.+-]){re.escape(plain)}(?![\w-])", ()
    # What lies in a link or an address of mail is part of it.
    plain_text = _MAIL.sub(" ", _LINK.sub(" ", text))
    for match in _STREET.finditer(plain_text):
        yield match[0], _join_words(match[0].split(), r"[\s,]+"), ()
    for match in _CODE.finditer(plain_text):
        letters = re.sub(r"[^A-Za-z0-9]", "", match[0])
        digits = sum(c.isdigit() for c in letters)
        if len(letters) < _LEAST_CODE or digits < _LEAST_IN_CODE or digits == len(letters):
            continue
        runs = re.findall(r"\d+|[a-z]+", letters.lower())
        parts = [
            letters.lower(),
            *runs,
            *(p for run in runs if run.isdigit() for p in _split_digits(run)),
        ]
        yield match[0], rf"(?<![^\W_]){_allow_gaps(letters)}(?![^\W_])", parts
    yield from _find_numbers(plain_text)
    # Words that begin with a capital, two or more in a row: the row, and two beside each other.
    row: list[str] = []
    end = 0
    for match in _WORD.finditer(plain_text):
        word = match[0]
        named = len(word) > 1 and word[0].isupper() and not word.isupper()
        if row and not (named and _BETWEEN.match(plain_text[end : match.start()])):
            yield from _split_row(row)
            row = []
        # "The", "My", "When" begin a sentence and no name.
        if named and (row or analyse(word, keep_stop_words=False)):
            row.append(word.removesuffix("'s").removesuffix("\u2019s"))
        end = match.end()
    yield from _split_row(row)


def _find_numbers(text: str) -> Iterator[tuple[str, str, Iterable[str]]]:
    for match in _NUMBER.finditer(text):
        written_number = match[0]
        groups = re.findall(r"\d+", written_number)
        digits = "".join(groups)
        if len(groups) > 1:
            for group in groups:
                if len(group) >= _LEAST_OF_A_GROUP:
                    yield group, rf"(?<!\d){_allow_gaps(group)}(?!\d)", _split_digits(group)
        if not (len(digits) == _LEAST_DIGITS and _YEAR.fullmatch(digits)):
            yield (
                written_number,
                rf"(?<!\d)(?:{'|'.join(_list_dialled(written_number, digits))})(?!\d)",
                _split_digits(digits),
            )


def _list_dialled(written: str, digits: str) -> Iterator[str]:
    """The ways in which the digits of a number are dialled, from here and from abroad."""
    yield _allow_gaps(digits)
    abroad = written.startswith(("+", "00"))
    national = digits.removeprefix("00") if abroad else digits
    if abroad:
        yield _allow_gaps(national)
        for country in (1, 2, 3):
            if len(national) - country >= _LEAST_NATIONAL:
                yield rf"\(?0\)?{_APART}{_allow_gaps(national[country:])}"
    elif national.startswith("0") and len(national) > _LEAST_NATIONAL:
        yield rf"(?:\+|00)\d{{1,3}}{_APART}(?:\(0\))?{_APART}{_allow_gaps(national[1:])}"


def _split_row(words: list[str]) -> Iterator[tuple[str, str, Iterable[str]]]:
    if len(words) > 1:
        yield _make_name(words)
    if len(words) > 2:
        # The first may be what begins the sentence: "Call Noor Haddad".
        yield from (_make_name(words[at : at + 2]) for at in range(1, len(words) - 1))


def _make_name(words: list[str]) -> tuple[str, str, Iterable[str]]:
    ways = (words, [words[-1], *words[:-1]])
    return " ".join(words), "|".join(_join_words(way, r"[\s,.]+") for way in ways), ()


def _join_words(words: Iterable[str], between: str) -> str:
    return rf"(?<!\w){between.join(map(re.escape, words))}(?!\w)"


def _allow_gaps(characters: str) -> str:
    return _APART.join(characters)


def _split_digits(digits: str) -> Iterator[str]:
    """What the groups of these digits may be elsewhere."""
    if len(digits) <= _MOST // 2:
        for start in range(len(digits)):
            for end in range(start + 2, len(digits) + 1):
                yield digits[start:end]
        # A number without the prefix of its country has another one before it.
        for at in range(1, min(4, len(digits))):
            yield f"0{digits[at:]}"
            yield f"0{digits[at : at + 3]}"
