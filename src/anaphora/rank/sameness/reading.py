"""Reads a text for the comparison of facts: its words without what never carries meaning.

In: a text. Out: a `Reading`: words in order, whether it asks, where its commas are, and the same
with a clause at the front moved to the end. Never decides what is the same. Linear in the text.

`text.fold` is not used: it takes accents away, and they tell names and words apart.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from anaphora.core.analyser import analyse
from anaphora.rank.sameness.words import (
    AMBIGUOUS_CASE,
    CONTRACTIONS,
    FILLERS,
    LIKING,
    MONTHS,
    NUMBERS,
    ORDINALS,
    PHRASES,
    SAME,
    SCALES,
    UNITS,
    WEEKDAYS,
    words,
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word as it is compared.

    `article` is the one before it ("a", "the" or none); `case` is "upper" or "lower" for the words
    that mean something else with a capital, where it is not the sentence that capitalises them;
    `name` says that it is written like a name.
    """

    text: str
    article: str = ""
    case: str = ""
    name: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """`commas` are the numbers of words before each comma or other break inside a sentence."""

    words: tuple[Word, ...]
    question: bool
    commas: tuple[int, ...]
    moved: Reading | None = None


_CLOCK = (
    re.compile(r"\b(\d{1,2})(?::(\d\d))?(?::00)?\s?([ap])\.?m\b\.?", re.IGNORECASE),
    re.compile(r"(?<![\d:.])([01]\d|2[0-3]):([0-5]\d)(?![\d:])"),
)
_ISO_DATE = re.compile(r"(?<![\d-])(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?![\d-])")
# "may" and "march" are months only with a capital.
_MONTH = "|".join(
    name.title() if name in ("may", "march", "mar") else f"(?i:{name})"
    for name in sorted(MONTHS, key=len, reverse=True)
)
_MONTH_DAY = re.compile(
    rf"\b({_MONTH})\.? (?:the )?(\d{{1,2}})(?:st|nd|rd|th)?(?!\d|[:.,]\d|%)(?:,? (\d{{4}})\b)?"
)
_DAY_MONTH = re.compile(
    rf"\b(?:the )?(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b\.?(?:,? (\d{{4}})\b)?"
)
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_MONEY = re.compile(r"(?<!\w)([$€])(\d+(?:\.\d+)?)(?!\w|\.\d)")
_MARKUP = re.compile(r"\*\*|__(?=\S)|(?<=\S)__|`+|^\s{0,3}(?:[-*•]|#{1,6})\s+", re.MULTILINE)
_LABEL = re.compile(r"^(?:note|reminder|fyi|remember|btw)[:,]\s+", re.IGNORECASE)
_PIECE = re.compile(
    r"""
      (?P<raw>(?:\w+://\S+|(?=[\w.@~/\\+-]{0,200}[\w~.][@/\\_])[\w.@~/\\+:-]+)(?<![.,;:!?]))
    | (?P<ordinal>\d+(?:st|nd|rd|th)\b)
    | (?P<number>(?:(?<![\w)\]])[-+])?(?:(?<!\w)\.)?\d+(?:[.,:]\d+)*)
    | (?P<face>[:;=]-?[()DP](?!\w))
    | (?P<word>[^\W\d_]\w*(?:['.]\w+)*(?:[+\#]+(?!\w))?(?:'(?!\w))?)
    | (?P<stop>[.!?]+(?=["')\]]*(?:\s|$)))
    | (?P<comma>,|;|\s[-\u2013\u2014]+\s|\u2014|:(?=\s)|[()]|\n)
    | (?P<hyphen>(?<=\w)[-\u2010\u2011](?=[^\W\d_]|\d))
    | (?P<mark>[^\s"'\[\]{}\u201c\u201d,;:.*\ufe0f]|[*:](?=\S)|(?<!\S)\.(?=\w)|(?<=\d)')
    """,
    re.VERBOSE,
)
_PRONOUNS = words("i you he she it we they that there this what who where here")
_SHORT = {"'re": "are", "'m": "am", "'ve": "have", "'ll": "will"}
_SAYING = words("said says say thinks think thought believes believe knows know told")
_FRONTED = WEEKDAYS | words(
    "in on at since for during after before until if when whenever while because every today"
    " tomorrow yesterday"
)


@dataclass(slots=True)
class _Token:
    text: str
    article: str = ""
    case: str = ""
    name: bool = False
    kind: str = "word"


@lru_cache(maxsize=1024)
def read(text: str) -> Reading:
    """Read one text. A new memory is read against each of its neighbours: once is enough."""
    plain = unicodedata.normalize("NFC", text).replace("\u2019", "'").replace("\u2018", "'")
    plain = _LABEL.sub("", _MARKUP.sub("", plain).strip())
    plain = _colon(_dates(_clock(plain)))
    plain = _THOUSANDS.sub(lambda m: m[0].replace(",", ""), plain)
    plain = _MONEY.sub(lambda m: f"{m[2]} {_CURRENCY[m[1]]}", plain)
    tokens = _tokens(plain)
    question = any(token.kind == "stop" and "?" in token.text for token in tokens)
    tokens = _rewritten(tokens)
    whole = _reading(tokens, question)
    moved = _moved(tokens)
    return (
        whole
        if moved is None
        else Reading(whole.words, question, whole.commas, _reading(moved, question))
    )


_LARGE = 10**12
_CURRENCY = {"$": "dollar", "€": "euro"}


def _clock(text: str) -> str:
    def twelve(match: re.Match[str]) -> str:
        hour, minute = int(match[1]), match[2] or "00"
        if not 1 <= hour <= 12:
            return match[0]
        hour = hour % 12 + (12 if match[3].lower() == "p" else 0)
        end = "." if match[0].endswith(".") and not text[match.end() :].strip() else ""
        return f"t{hour:02d}h{minute}{end}"

    text = _CLOCK[0].sub(twelve, text)
    # 10:30 without am or pm can be either; 09:30 and 15:30 cannot.
    return _CLOCK[1].sub(lambda m: m[0] if m[1] in ("10", "11", "12") else f"t{m[1]}h{m[2]}", text)


def _dates(text: str) -> str:
    text = _ISO_DATE.sub(lambda m: f"d{m[1]}x{m[2]}x{m[3]}", text)
    text = _MONTH_DAY.sub(lambda m: _date(m[0], m[3], m[1], m[2]), text)
    return _DAY_MONTH.sub(lambda m: _date(m[0], m[3], m[2], m[1]), text)


def _date(whole: str, year: str | None, month: str, day: str) -> str:
    if not 1 <= int(day) <= 31:
        return whole
    return f"d{year or '-'}x{MONTHS[month.lower()]:02d}x{int(day):02d}".replace("-", "0000")


def _colon(text: str) -> str:
    """ "Favourite colour: blue" says "is"; only where one colon divides one sentence."""
    before, colon, after = text.partition(": ")
    single = colon and ":" not in after and not re.search(r"[.?!,;]\s", text)
    return f"{before} is {after}" if single and before.strip() and after.strip() else text


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    for match in _PIECE.finditer(text):
        kind = match.lastgroup or "word"
        piece = match.group().strip()
        if kind == "hyphen":
            if match.string[match.end()].isdigit() and tokens and tokens[-1].kind == "number":
                tokens.append(_Token("-", kind="mark"))
            continue
        if kind == "word":
            tokens.extend(_word(piece, tokens))
        elif kind == "mark" and piece in "\u2013\u2014\u2010\u2011":
            tokens.append(_Token("-", kind="mark"))
        else:
            tokens.append(_Token(piece, kind=kind))
    while tokens and tokens[-1].kind in ("stop", "comma") and "?" not in tokens[-1].text:
        tokens.pop()
    return tokens


def _word(piece: str, before: list[_Token]) -> list[_Token]:
    """A word with its contraction opened; its case kept only where it can mean something."""
    first = not before or before[-1].kind == "stop"
    low = piece.lower()
    name = piece[0].isupper() and not first
    case = "" if first or low not in AMBIGUOUS_CASE else "upper" if piece[0].isupper() else "lower"
    if before and before[-1].kind == "number" and piece != low:
        # MB and Mb, 5 M and 5 m are not the same unit.
        return [_Token(piece)]
    if low in CONTRACTIONS:
        return [_Token(part) for part in CONTRACTIONS[low].split("_")]
    if low.endswith("n't") and len(low) > 4:
        return [_Token(low[:-3]), _Token("not")]
    stem, quote, ending = low.rpartition("'")
    if not quote:
        # A letter that names something is no article: plan A, vitamin A.
        letter = low == "a" and piece == "A" and not first
        return [_Token("A" if letter else low, "", case, name)]
    short = _SHORT.get("'" + ending)
    if short:
        return [_Token(stem), _Token(short)]
    if ending == "s" and stem in _PRONOUNS:
        return [_Token(stem), _Token("is")]
    return [_Token(stem, "", case, name), _Token("'" + ending)] if stem else [_Token(low)]


def _rewritten(tokens: list[_Token]) -> list[_Token]:
    tokens = _phrases(tokens)
    tokens = _numbers(tokens)
    tokens = _exchanged(tokens)
    return _gerunds(_articles(tokens))


def _phrases(tokens: list[_Token]) -> list[_Token]:
    out: list[_Token] = []
    at = 0
    while at < len(tokens):
        for size in (4, 3, 2):
            words = tuple(token.text for token in tokens[at : at + size])
            if len(words) == size and words in PHRASES:
                out.extend(_Token(word) for word in PHRASES[words])
                at += size
                break
        else:
            out.append(tokens[at])
            at += 1
    return out


def _numbers(tokens: list[_Token]) -> list[_Token]:
    """Number words as digits: "twenty three" is 23, "three hundred" is 300."""
    out: list[_Token] = []
    at = 0
    while at < len(tokens):
        word = tokens[at].text
        value = NUMBERS.get(word) if tokens[at].kind == "word" else None
        if value is None:
            out.append(_Token(ORDINALS[word]) if word in ORDINALS else tokens[at])
            at += 1
            continue
        at += 1
        if value >= 20 and at < len(tokens) and 1 <= NUMBERS.get(tokens[at].text, 0) <= 9:
            value += NUMBERS[tokens[at].text]
            at += 1
        while at < len(tokens) and tokens[at].text in SCALES and value < _LARGE:
            value *= SCALES[tokens[at].text]
            at += 1
        out.append(_Token(str(value), kind="number"))
    return out


def _exchanged(tokens: list[_Token]) -> list[_Token]:
    """Units after numbers, spelling variants and synonyms; fillers go."""
    out: list[_Token] = []
    for at, token in enumerate(tokens):
        last = out[-1] if out else None
        if last is not None and last.kind == "number" and token.text in (*UNITS, "%"):
            out.append(_Token(UNITS.get(token.text, "%")))
        elif token.kind == "word" and token.text in SAME:
            new = (
                SAME[token.text].split("_") if "every_" in SAME[token.text] else [SAME[token.text]]
            )
            out.extend(_Token(word, token.article, token.case, token.name) for word in new)
        elif token.kind == "word" and _is_filler(token, tokens, at):
            continue
        else:
            out.append(token)
    return out


def _is_filler(token: _Token, tokens: list[_Token], at: int) -> bool:
    if token.text in FILLERS:
        return True
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    if token.text == "on":
        return after is not None and after.text in WEEKDAYS
    # "She said that he left", but not "he said that".
    return token.text == "that" and at > 0 and tokens[at - 1].text in _SAYING and after is not None


def _articles(tokens: list[_Token]) -> list[_Token]:
    """Articles become a mark on the word after them; a last one is a word of its own."""
    letters = any(len(t.text) == 1 and t.name and t.text not in "ai" for t in tokens)
    out: list[_Token] = []
    article = ""
    for at, token in enumerate(tokens):
        follows = at + 1 < len(tokens) and tokens[at + 1].kind not in ("stop", "comma", "mark")
        is_name = token.name or (token.text == "a" and letters)
        if token.text in ("a", "an", "the") and follows and not is_name:
            article = "the" if token.text == "the" else "a"
            continue
        out.append(_Token(token.text, article or token.article, token.case, token.name, token.kind))
        article = ""
    return out


def _gerunds(tokens: list[_Token]) -> list[_Token]:
    out: list[_Token] = []
    at = 0
    while at < len(tokens):
        out.append(tokens[at])
        at += 1
        # "Would like to swim" is a wish, "would like swimming" a guess.
        wish = len(out) > 1 and out[-2].text in ("would", "'d")
        if out[-1].text not in LIKING or at >= len(tokens) or wish:
            continue
        here = tokens[at]
        if here.text == "to" and at + 1 < len(tokens) and tokens[at + 1].kind == "word":
            out.append(_Token("-ing " + _stem(tokens[at + 1].text)))
            at += 2
        elif here.kind == "word" and not here.article and _is_gerund(here.text):
            out.append(_Token("-ing " + _stem(here.text)))
            at += 1
    return out


def _is_gerund(word: str) -> bool:
    return re.fullmatch(r"[a-z]{2,}ing", word) is not None and _stem(word) != word


def _stem(word: str) -> str:
    return (analyse(word) or [word])[-1]


def _moved(tokens: list[_Token]) -> list[_Token] | None:
    """ "On Fridays, she cooks" as "she cooks on Fridays"; None where nothing can be moved."""
    breaks = [at for at, token in enumerate(tokens) if token.kind in ("comma", "stop")]
    if len(breaks) != 1 or tokens[breaks[0]].text != ",":
        return None
    at = breaks[0]
    if at == 0 or at + 1 >= len(tokens) or tokens[0].text not in _FRONTED:
        return None
    return tokens[at + 1 :] + tokens[:at]


def _reading(tokens: list[_Token], question: bool) -> Reading:
    words: list[Word] = []
    commas: list[int] = []
    for token in tokens:
        if token.kind == "comma":
            commas.append(len(words))
        else:
            text = "." if token.kind == "stop" and "?" not in token.text else token.text
            words.append(Word(text, token.article, token.case, token.name))
    return Reading(tuple(words), question, tuple(commas))
