"""Whom a question means by a name that is no speaker's: "Chris" for Christopher, "Kate" for Emi.

In: a question and who speaks; then, for one name, some texts that hold it, each with who wrote it
and who was spoken to. Out: names to ask about, the code of the speaker who is called so. It never
looks for the texts, and never guesses: a name that nobody gave, or that two people bear, is nobody.

Display names are seldom what people call each other. But they greet each other by name ("Hey
Kate", "Thank you Kate") and give their own ("My name is Kate"): that is what is read here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from anaphora.core.analyser import STOP_WORDS, fold
from anaphora.rank.question import ALSO_WORDS

TEXTS = 16
"""Texts that are read for a name: among the shortest with it are the greetings."""

# A question has few names; a pasted page has hundreds of words with a capital.
_MOST_NAMES = 4
_MOST_READ = 2_000

# Greetings by three turns, or one plain "my name is …", say who it is; nearly all must agree.
_ENOUGH = 3
_AGREE = 0.8
_SHORTEST = 3
_SHORTEST_WRONG = 5

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_DATES = frozenset(
    """
    january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec
    monday tuesday wednesday thursday friday saturday sunday
    """.split()  # noqa: SIM905 - as a list nobody could read it
)
_GREETING = (
    r"\b(?:hey|hi|hello|hiya|heya|dear|thanks|thank you|bye|goodbye|welcome|congratulations"
    r"|congrats|happy birthday|(?:good )?(?:morning|afternoon|evening|night)"
    r"|(?:nice|good|great) to (?:meet|see) you)(?: there| again| so much| back)?[,!]? "
)
# "This is Luna" and "his name is Luna" present a cat.
_GIVEN = r"\b(?:my name(?:['’]s| is)|call me|I go by) "
_SAID = r"\b(?:I['’]m|I am) "
_ENDED = r"(?!\w)(?!['’]s)"
_STOPPED = r"(?=\s*(?:[.,;:!?)\n]|and\b|$))"


def unknown_names(question: str, present: Mapping[int, str]) -> tuple[str, ...]:
    """Words of `question` that are written like a first name and are no part of a speaker's name.

    At most four, in order. Empty where nobody is known: then there is nobody to be called so.
    Words in a row ("Las Vegas", "Mona Lisa") name something else: friends use one.
    """
    if not present:
        return ()
    known = {part for name in present.values() for part in _parts(name)}
    names: dict[str, None] = {}
    words = [m for m in _WORD.finditer(question, 0, _MOST_READ) if _like_a_name(m)]
    ends = {match.end() for match in words}
    for match in words:
        after = match.end()
        in_a_row = match.start() - 1 in ends or any(other.start() == after + 1 for other in words)
        if not in_a_row and fold(match.group()) not in known:
            names[match.group()] = None
    return tuple(names)[:_MOST_NAMES]


def _like_a_name(match: re.Match[str]) -> bool:
    word = match.group()
    if not word[0].isupper() or len(word) < 2 or word.isupper():
        return False
    folded = fold(word)
    if folded in STOP_WORDS or folded in _DATES:
        return False
    return folded not in ALSO_WORDS or not _opens(match)


def shortened(name: str, present: Mapping[int, str]) -> int | None:
    """The code of the one speaker whose first name begins with `name` ("Chris"), None for none."""
    short = fold(name)
    if len(short) < _SHORTEST:
        return None
    codes = [code for code, full in present.items() if (_parts(full) or ("",))[0].startswith(short)]
    return codes[0] if len(codes) == 1 else None


def misspelt(name: str, present: Mapping[int, str]) -> int | None:
    """The code of the one speaker whose first name is one letter away ("Nikolas"), None for none.

    Only for names that no turn holds: a friend's friend may be called much the same.
    """
    wrong = fold(name)
    if len(wrong) < _SHORTEST_WRONG:
        return None
    codes = [
        code for code, full in present.items() if _one_apart(wrong, (_parts(full) or ("",))[0])
    ]
    return codes[0] if len(codes) == 1 else None


def _one_apart(one: str, other: str) -> bool:
    """Whether one letter is put in, left out or another one, or two stand the wrong way round."""
    if one[:1] != other[:1] or abs(len(one) - len(other)) > 1 or one == other:
        return False
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if at is None:
        return True
    swapped = one[at : at + 2] == other[at : at + 2][::-1] and one[at + 2 :] == other[at + 2 :]
    put_in = one[at + 1 :] == other[at:]
    left_out = one[at:] == other[at + 1 :]
    return swapped or put_in or left_out or one[at + 1 :] == other[at + 1 :]


def bearer(name: str, texts: Iterable[tuple[str, int, int]]) -> int | None:
    """The code of the speaker who is called `name`, None where the texts do not say.

    Each of `texts` is a text, the code of who wrote it, and of who was spoken to; -1 is not known.
    """
    greeted, given, said = _patterns(name)
    votes: Counter[int] = Counter()
    for text, writer, other in texts:
        if given.search(text):
            votes[writer] += _ENOUGH
        elif said.search(text):
            votes[writer] += 1
        elif greeted.search(text):
            votes[other] += 1
    total = sum(votes.values())
    for code, count in votes.most_common(1):
        if code >= 0 and count >= _ENOUGH and count >= _AGREE * total:
            return code
    return None


@lru_cache(maxsize=256)
def _patterns(name: str) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    escaped = re.escape(name)
    forms = (_GREETING + escaped + _ENDED, _GIVEN + escaped + _ENDED, _SAID + escaped + _STOPPED)
    greeted, given, said = (re.compile(form, re.IGNORECASE) for form in forms)
    return greeted, given, said


@lru_cache(maxsize=4096)
def _parts(name: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(fold(name)))


def _opens(match: re.Match[str]) -> bool:
    """Whether the word opens a sentence, where every word has a capital."""
    before = match.string[: match.start()].rstrip()
    return not before or before[-1] in ".!?"
