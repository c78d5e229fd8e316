"""Languages as data: which there are, what their files say, and in which one a text is written.

A file of `data/` is a language: its code is the file's name, `data/README.md` says what its keys
mean. Nothing else names a language, so that another one needs a file and no code.

The language of a text is told from its script, else from its function words and from letters that
only some languages have; English wins every tie, and a text that shows neither is in no known
language. It is a function of the text alone, linear in its first 400 characters.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from anaphora.language.folding import fold

ENGLISH: Final = "en"
_DATA: Final = Path(__file__).parent / "data"

_HEAD: Final = 400
"""Characters of a text that are looked at: a language shows itself in a few words."""

_LEAST: Final = 2
"""Function words (and letters) at least that tell a language which is not English."""

_SHARE: Final = 0.15
"""The share of a text's words that they must be."""

_SHORT_RUN: Final = 64
"""Characters of a run that is kept: longer ones are seldom met again."""

_UMLAUTS: Final = "äöü"
_LATIN: Final = "a-z\u00df-\u024f"
# "don't" and "Ada's" are English words; other apostrophes part words ("l'été").
# A letter with a point is an abbreviation ("9 a.m.").
_WORD = re.compile(r"(?!\b\w\.)[^\W\d_]+(?:['’](?:s|t|d|m|re|ve|ll)\b)?")


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """What a file says of a language; a part that it leaves out is empty.

    `stop` are its function words, folded, `written` as they may be written. `spaced`: words stand
    apart. `script` is a class of characters, `people`, `cues` and `times` are patterns by name.
    """

    code: str
    name: str
    stop: frozenset[str]
    written: frozenset[str]
    stemmer: str = ""
    spaced: bool = True
    compounds: bool = False
    script: str = _LATIN
    weight: int = 1
    letters: frozenset[str] = frozenset()
    questions: str = ""
    questions_inside: str = ""
    people: Mapping[str, Sequence[str]] = field(default_factory=dict)
    cues: Mapping[str, Any] = field(default_factory=dict)
    times: Mapping[str, Any] = field(default_factory=dict)

    def any_of(self, patterns: Iterable[str], before: str = "", after: str = "") -> str:
        """A pattern for any of several, as whole words where words stand apart; "" for none."""
        joined_pattern = loose("|".join(patterns))
        if not joined_pattern:
            return ""
        bound = r"\b" if self.spaced else ""
        return rf"{before}{bound}(?:{joined_pattern}){bound}{after}"


@lru_cache(maxsize=4096)
def loose(pattern: str) -> str:
    """A pattern that also matches letters without their accents: "é" as "e", "ü" as "ue"."""
    parts: list[str] = []
    inside = False
    for at, letter in enumerate(pattern):
        is_escaped = at > 0 and pattern[at - 1] == "\\"
        inside = (inside or letter == "[") and not (letter == "]" and not is_escaped)
        plain = letter if inside or letter.isascii() else fold(letter)
        if plain == letter or not plain.isascii():
            parts.append(letter)
        else:
            spelt = f"|{plain}e" if letter.lower() in _UMLAUTS else ""
            parts.append(f"(?:{letter}|{plain}{spelt})")
    return "".join(parts)


def read_language(path: Path) -> Language:
    """The language of a file. Raises OSError, ValueError or TypeError if it cannot be read."""
    fields = tomllib.loads(path.read_text(encoding="utf-8"))
    stop_words = frozenset(fields.pop("stop").split())
    stop = frozenset(fold(word) for word in stop_words)
    letters = frozenset(fields.pop("letters", ""))
    return Language(path.stem, stop=stop, written=stop_words | stop, letters=letters, **fields)


@lru_cache(maxsize=8)
def languages(folder: Path = _DATA) -> Mapping[str, Language]:
    """The languages of a folder by code, in the order of the codes."""
    return {path.stem: read_language(path) for path in sorted(folder.glob("*.toml"))}


@lru_cache(maxsize=1)
def english() -> Language:
    """English, which is needed before other languages."""
    return read_language(_DATA / f"{ENGLISH}.toml")


def language_of(text: str, known: Mapping[str, Language] | None = None) -> str:
    """The code of the language that `text` is written in, "" if its words do not show it."""
    # In small letters: a text and its small letters are in one language, found once.
    return (_any_language() if known is None else _KnownLanguages(known)).of_head(
        text[:_HEAD].lower()
    )


class _KnownLanguages:
    """Several languages, of which a text is looked through once for the words of all."""

    def __init__(self, known: Mapping[str, Language]) -> None:
        self._known = known
        self._codes: dict[str, list[str]] = {}
        for language in known.values():
            for word in (
                (language.stop if language.code == ENGLISH else language.written)
                if language.spaced
                else ()
            ):
                self._codes.setdefault(word, []).append(language.code)
        self.of_head = lru_cache(maxsize=8192)(self._of_head)
        self._of_known_run = lru_cache(maxsize=32_768)(self._of_run)

    def _of_head(self, head: str) -> str:
        if head.isascii():
            return self._by_words(head)
        best_code, most_count = "", 0
        for language in self._known.values():
            if not language.spaced:
                count = len(_script(language.script).findall(head)) * language.weight
                if count > most_count:
                    best_code, most_count = language.code, count
        # A character of such a script is about a syllable: a word of Latin letters has some five.
        if best_code and 2 * most_count > sum(map(str.isascii, filter(str.isalpha, head))) // 2:
            return best_code
        return self._by_words(head)

    def _by_words(self, text: str) -> str:
        length = 0
        counts: dict[str, int] = {}
        # Words have no white space, and most runs without it are cached.
        for run in text.split():
            read = self._of_known_run if len(run) <= _SHORT_RUN else self._of_run
            words, codes = read(run)
            length += words
            for code in codes:
                counts[code] = counts.get(code, 0) + 1
        english_words = counts.pop(ENGLISH, 0)
        if not text.isascii():
            signs = set(text)
            for language in self._known.values():
                if language.spaced and language.code != ENGLISH and language.letters & signs:
                    sign_count = len(language.letters & signs)
                    counts[language.code] = counts.get(language.code, 0) + sign_count
        best_code, most_words, second = "", 0, 0
        for code in sorted(counts):
            if counts[code] > most_words:
                best_code, most_words, second = code, counts[code], most_words
            else:
                second = max(second, counts[code])
        sufficient = most_words >= _LEAST and most_words >= _SHARE * length
        if sufficient and most_words > english_words and most_words > second:
            return best_code
        return ENGLISH if english_words and english_words >= most_words else ""

    def _of_run(self, run: str) -> tuple[int, list[str]]:
        """How many words stand in a text without white space, in small letters; the codes of the
        languages of those that are function words, as often as there are."""
        words = _WORD.findall(run)
        codes: list[str] = []
        for word in words:
            codes += self._codes.get(word, ())
        return len(words), codes


@lru_cache(maxsize=1)
def _any_language() -> _KnownLanguages:
    return _KnownLanguages(languages())


@lru_cache(maxsize=64)
def _script(characters: str) -> re.Pattern[str]:
    return re.compile(f"[{characters}]")
