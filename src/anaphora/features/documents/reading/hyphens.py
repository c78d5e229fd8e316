"""Words that were cut at the end of a line, whole again.

The hyphen of a word that was cut goes ("inun-", "dation"), that of a compound stays ("well-",
"known"): what the rest of the text writes decides, then what is a common word, then what compounds
are made of. If none of these tells, the word was cut, as most at the end of a line are. No word
is lost either way: a compound that was kept is found by each of its parts, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Final

from anaphora.embed.wordpiece import common_words
from anaphora.language.folding import fold_letters
from anaphora.language.word_lists import words

_HYPHENS: Final = ("-", "\u2010", "\u00ad")
_SOFT: Final = "\u00ad"
_LAST: Final = re.compile(r"[^\W_]+\Z")
_FIRST: Final = re.compile(r"\s*([^\W_]+)(\S*)[^\S\n]*")
_WRITTEN: Final = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
_LONGEST: Final = 60
_LONGEST_LINE: Final = 400
_LONG: Final = 6
_ENDINGS: Final = ("", "s", "es", "ed", "d", "ing", "ly", "er", "ers", "'s")

# A word stands alone behind a hyphen that belongs to the one before: "in- and outbound".
_BEFORE_ANOTHER: Final = words("and or to und oder bzw sowie bis et ou y e en og och ja i")
# What English compounds begin with, and what they end with, where neither is found as one word.
_FIRSTS: Final = words(
    "well ill self long short high low half full part non ex all cross ever far near hard"
    " soft light heavy open close closed double single multi dual triple first second third"
    " fourth last next new old big small large great good better best bad worst fast slow"
    " early late deep wide thin thick hot cold dry wet clean clear free fair high higher low"
    " lower mid two three four five six seven eight nine ten twelve twenty thirty forty fifty"
    " sixty seventy eighty ninety one north south east west vice quasi pseudo co"
)
_SECONDS: Final = words(
    "based related specific friendly effective efficient driven made known like wide free"
    " time term scale level minded oriented sized shaped style type rich poor in on off up out"
    " down by of aware ready dependent independent neutral sensitive resistant intensive"
    " compatible compliant capable prone averse year month week day hour minute foot inch mile"
    " metre meter to"
)
_PREFIXES: Final = words(
    "re un over under out inter dis mis pre sub super trans fore up down in im en em counter"
    " with de be con com per pro ad ab ob ac af ag al ap ar as at ir il anti auto bi by hyper"
    " hypo infra intra macro mega meta micro mini mono para photo poly post tele thermo tri"
    " ultra uni back hand"
)


def mended(texts: Iterable[str]) -> list[str]:
    """These texts, each in lines, with words whole that were cut at the end of a line.

    What follows on the cut word stays on its line. In time that grows with the length alone.
    """
    pages = list(texts)
    written_words = _WrittenWords(pages)
    mended_pages = []
    for page in pages:
        lines: list[str] = []
        waiting = page.split("\n")[::-1]
        while waiting:
            line = waiting.pop()
            if waiting and line.endswith(_HYPHENS):
                following = _FIRST.match(waiting[-1])
                joint = following and _choose_joint(line, following[1], following[2], written_words)
                if following and joint is not None:
                    remainder = waiting.pop()[following.end() :]
                    line = line[:-1] + joint + following[1] + following[2]
                    # What was put there may be cut at its end as well, if it ends its line.
                    waiting.append(remainder or line)
                    if not remainder:
                        continue
            lines.append(line)
        mended_pages.append("\n".join(lines))
    return mended_pages


class _WrittenWords:
    """The words of the texts away from line ends, counted on first use."""

    def __init__(self, pages: list[str]) -> None:
        self._pages = pages
        self._counted: Counter[str] | None = None

    def count(self, word: str) -> int:
        """How often a word stands there, in any case."""
        if self._counted is None:
            self._counted = Counter(
                match[0].casefold().replace("\u2010", "-")
                for page in self._pages
                for match in _WRITTEN.finditer(page)
            )
        return self._counted[word]


def _choose_joint(line: str, second: str, behind: str, written: _WrittenWords) -> str | None:
    """What comes between a line and the word below: nothing, or a hyphen; None: they stay apart."""
    mark = line[-1]
    token = line[-_LONGEST:-1].rpartition(" ")[2]
    last_match = _LAST.search(token)
    if last_match is None or len(second) > _LONGEST or len(line) > _LONGEST_LINE:
        return None
    first_part, text_before = last_match[0], token[: last_match.start()]
    if mark == _SOFT:
        return ""
    # Letters change from large to small, or the other way: "GPS-based", "Anglo-Saxon".
    is_name = (second[:1].isupper() or (len(first_part) > 1 and first_part.isupper())) and not (
        first_part.isupper() and second.isupper()
    )
    if not (first_part + second).isalpha() or is_name or len(first_part) == 1:
        return mark
    joined_word, hyphenated_word = (f"{first_part}{sign}{second}".casefold() for sign in ("", "-"))
    counts = written.count(joined_word), written.count(hyphenated_word)
    if any(counts):
        return "" if counts[0] >= counts[1] else mark
    if _is_common(joined_word):
        return ""
    if text_before.endswith(_HYPHENS) or behind.startswith(_HYPHENS[:2]):
        return mark
    if second in _BEFORE_ANOTHER:
        return None
    first_part, second = first_part.casefold(), second.casefold()
    is_participle = len(second) > 4 and second.endswith(("ed", "ing"))
    both_common = _is_common(first_part) and _is_common(second)
    if (
        first_part[-1] == second[0]
        and first_part[-1] in "aeio"
        and (both_common or first_part in _FIRSTS)
    ):
        return mark
    if first_part in _FIRSTS:
        return mark if _is_common(first_part) and (_is_common(second) or is_participle) else ""
    # Two long words seldom are one: "harbour-master" stays as it is.
    are_long = min(len(first_part), len(second)) >= _LONG
    stays = both_common and (second in _SECONDS or is_participle or are_long)
    return mark if stays and first_part not in _PREFIXES else ""


@cache
def _is_common(word: str) -> bool:
    folded_word = fold_letters(word)
    return any(
        folded_word.removesuffix(ending) in common_words()
        for ending in _ENDINGS
        if folded_word.endswith(ending) and (not ending or len(folded_word) - len(ending) > 2)
    )
