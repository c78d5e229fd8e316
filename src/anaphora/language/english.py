"""Whether a text is to be read as English: what decides which network turns it into a vector.

A function of the text and of a list of English words, linear in its first 400 characters. Letters
of the scripts in `_OTHER_SCRIPTS` tell at once. Latin words are weighed: function words of English
against those of other languages, words that English has against words that it has not, which in a
short text are all there is. Doubt is English, and so is code: what holds digits, capitals inside or
joints says nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import repeat
from typing import Final

from anaphora.language.folding import compatible, fold_letters
from anaphora.language.languages.language import ENGLISH, english, languages

_HEAD: Final = 400
"""Characters of a text that are looked at."""

_OTHER_SCRIPTS: Final = re.compile(
    "([\u0400-\u052f])|[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""A letter of a script that only the multilingual network reads; those in the group are short."""
_LETTER: Final = re.compile(r"[^\W\d_]")
_BEYOND_LATIN: Final = "\u0370"
_SYLLABLE: Final = 3
"""Letters that a character of Chinese, Japanese or Korean stands for."""

# With white space or marks of a sentence around it; "don't", "l'été" and "e-mail" in their parts.
_WORD: Final = re.compile(
    r"(?<![^\s\"'’“„«»(¿¡*\-–—])[^\W\d_]+(?:['’](?:s|t|d|m|re|ve|ll)\b)?(?![^\s\"'’“”»«),.;:?!…*\-–—])"
)
_SUFFIX: Final = re.compile(r"['’](?:s|t|d|m|re|ve|ll)$")

# Of languages that the index has no file for.
_MORE: Final = """
alla alle allo anche ancora anni aveva bene che chi ci cosa così dal dalla dei del della delle
dello dentro di dopo dove due è era ero gli ha hai hanno ho il io la le lei li lo loro lui ma mai
mia mie miei mio molto nei nel nella nelle niente noi non nostra nostro ogni per perché però più
poi prima quale quali quando quanto quella quelle quelli quello questa queste questi questo qui
quindi sarà se sempre senza si sia siamo solo sono sua sue suo suoi sul sulla tra tu tua tuo tutti
tutto un una uno va voi
aan al alle alleen altijd als bij daar dan dat de deze die dit door een eens en er geen ge haar
heb hebben heeft heel hem het hier hij hoe hun iets ik jaar je jij jou jouw jullie kan kunnen maar
mag meer met mijn moet moeten naar nee niet niets nog nooit nu om omdat onder ons onze ook op over
te toen tot u uit uur van veel voor waar waarom wanneer wat weer wel welke wie wij wil worden
wordt ze zei zich zij zijn zo zonder zou
ale albo bardzo bez był była było być ci co czy czego czyli dla do dwa gdy gdzie go i ich ile im
ja jak jaka jaki jakie jako jego jej jest jestem już kiedy kto która które który ma mam mi mnie
mój moja może można mu my na nad nam nas nasz nic nie nim niż o od on ona oni po pod poza przed
przez przy raz się są swoje ta tak tam te tego tej ten teraz też to tu twój tylko tym u w we więc
wszystko z za zawsze ze że
"""

# Fitted on texts of twelve languages so that of English ones a few in a thousand are taken for
# another language.
_OWN, _BOTH, _OTHERS, _KNOWN, _UNKNOWN, _NAME, _MARKED = -7, -1, 6, -3, 3, 1, 6
_CERTAIN: Final = 4
_SHORT: Final = 8
"""Different words up to which words that English has not are enough."""


def is_english(text: str, words: frozenset[str]) -> bool:
    """Whether the English network reads `text`; `words` are the whole words that it knows."""
    head = compatible(text[:_HEAD])
    if not head.isascii():
        shares = [1 if short else _SYLLABLE for short in _OTHER_SCRIPTS.findall(head)]
        if shares:
            return sum(shares) <= len(_LETTER.findall(head)) - len(shares)
    weights = list(map(_weight, set(_WORD.findall(head)), repeat(words)))
    # A long text in another language has a word of it that is known here; code has not.
    is_told = len(weights) <= _SHORT or _OTHERS in weights
    return not is_told or sum(weights) < _CERTAIN


@lru_cache(maxsize=1 << 14)
def _weight(word: str, words: frozenset[str]) -> int:
    small = word.lower()
    foreign_words = _foreign_function_words()
    if small in english().stop:
        return _BOTH if small in foreign_words else _OWN
    if small in foreign_words:
        return _OTHERS
    stem = _SUFFIX.sub("", small)
    if stem[0] >= _BEYOND_LATIN:
        return 0
    if not stem.isascii():
        return _MARKED if word == small else _NAME
    if len(stem) < 3 or not (word[1:].islower() or word == small):
        return 0
    if fold_letters(stem) in words:
        return _KNOWN
    return _UNKNOWN if word == small else _NAME


@lru_cache(maxsize=1)
def _foreign_function_words() -> frozenset[str]:
    """Function words of other languages in Latin letters."""
    latin = [lang for lang in languages().values() if lang.spaced and lang.code != ENGLISH]
    return frozenset(_MORE.split()).union(*(lang.written for lang in latin))
