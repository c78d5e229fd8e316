"""Words as the checks compare them: roughly the same stem, nothing that every text has.

In: a text in any of the languages of the corpus. Out: the set of its words that tell something.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["counted", "rare_shared", "words"]


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STOP: Final = _listed(
    """
    a an the of to in on at for by with from as is are was were be been am do does did done
    have has had i me my mine we us our you your he she it its they them their this that these
    those there here what which who whom whose when where why how and or but if so not no yes
    can could will would shall should may might must up out off over about into than then also
    just any some all each every again still now get got go goes going one two same how's
    what's who's whats hows dont don't im it's i'm we're they're much many long often last
    first before after new old next back day days week time thing things someone anyone
    something anything
    der die das den dem des ein eine einen einem einer ist sind war waren wir ich du er sie es
    ihr uns mir mich und oder aber nicht kein keine wie was wer wo wann warum welche welcher
    welches mit von zu zum zur im in an auf für bei nach noch schon jetzt
    le la les un une des du de et ou mais est sont était étaient je tu il elle nous vous ils
    on ne pas que qui quoi où quand comment pourquoi quel quelle quels quelles au aux en dans
    sur pour avec par ce cette ces son sa ses mon ma mes notre nos
    el los las una unos unas y o pero es son era eran yo tú él ella nosotros no qué quién
    dónde cuándo cómo cuál cuáles por para con en a al del se su sus mi mis lo que
    o os as um uma e mas é são eu ele ela nós não quem onde quando como qual quais por para
    com em no na do da dos das se seu sua meu minha que
    il lo gli i e o ma è sono era io tu lui lei noi non che chi dove quando come quale quali
    per con in su al del della dei si suo sua mio mia
    de het een en of maar is zijn was waren ik jij hij zij wij niet geen wie wat waar wanneer
    hoe welke met van naar op in aan voor bij nog
    i w z na do o nie jest są był była było ja ty on ona my kto co gdzie kiedy jak jaki jaka
    jakie który która które się że czy po od dla za ten ta to
    и в на с о не что кто где когда как какой какая какие мы я ты он она они это у за по для
    из от до ли же был была было были
    """
)
_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_KANA_OR_HAN: Final = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_RUN: Final = re.compile(r"[\u30a0-\u30ff\u4e00-\u9fff]{2,}")
_STEM: Final = 5
# A word is rare in a story where it stands in so many turns at most, or in this share of them.
_FEW: Final = 2
_RARE: Final = 0.1


def words(text: str) -> set[str]:
    """The first five letters of each word of three letters and more; of Chinese and Japanese, the
    pairs of neighbouring characters that are no hiragana."""
    folded = unicodedata.normalize("NFC", text).casefold()
    if _KANA_OR_HAN.search(folded):
        runs = _RUN.findall(folded)
        return {run[at : at + 2] for run in runs for at in range(len(run) - 1)}
    found = (word for word in _WORD.findall(folded) if word not in _STOP and len(word) > 2)
    return {word[:_STEM] if len(word) > _STEM else word for word in found}


def counted(texts: Iterable[str]) -> Counter[str]:
    """In how many of the texts each word stands."""
    return Counter(word for text in texts for word in words(text))


def rare_shared(
    question: str, answers: Iterable[str], counts: Mapping[str, int], many: int
) -> set[str]:
    """The words that a question shares with its answers and that are rare among `many` turns."""
    held: set[str] = set().union(*map(words, answers))
    most = max(_FEW, many * _RARE)
    return {word for word in words(question) & held if counts.get(word, 0) <= most}
