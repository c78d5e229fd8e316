"""Says whether two texts state one fact, or two that only look alike.

Close vectors say nothing here: "allergic to peanuts" and "not allergic to peanuts" lie closer to
each other than most paraphrases. So two texts are the same only if, after differences that never
carry meaning are taken away, the same words stand in the same order. Calling one fact two costs a
line on a screen; calling two facts one hides the truth, so whatever is in doubt is a difference.

Taken away: letter case and punctuation (where they carry nothing), formatting, contractions,
articles on one side only, fillers, spelling variants and a few plain synonyms, number words,
ways of writing dates, times and units, "likes to hike" against "likes hiking", a clause moved to
the front. All else stays: negation, tense, person, quantity, modality, order, names, symbols.

`language.folding.fold` is not used: it takes accents away, and they tell names and words apart.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from anaphora.language.analyser import analyse
from anaphora.language.dates import MONTH_OF, WEEKDAYS
from anaphora.language.word_lists import words


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split())


NEGATIONS = words(
    "not no never none nobody nothing nowhere neither nor without hardly barely rarely seldom "
    "cannot isnt stopped stop quit longer instead avoid avoids refuse refuses except unless"
)
_SMALL = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBERS = {word: value for value, word in enumerate(_SMALL.split())} | {
    word: value * 10 for value, word in enumerate(_TENS.split(), start=2)
}
SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
ORDINALS = _pairs(
    "first=1st second=2nd third=3rd fourth=4th fifth=5th sixth=6th seventh=7th eighth=8th "
    "ninth=9th tenth=10th eleventh=11th twelfth=12th"
)
CONTRACTIONS = _pairs("can't=can_not cannot=can_not won't=will_not shan't=shall_not let's=let_us")
# Only forms that mean one thing as a unit after a number: "m", "lb" and "pounds" do not.
UNITS = _pairs(
    """
    km=kilometre kms=kilometre kilometer=kilometre kilometers=kilometre kilometres=kilometre
    kg=kilogram kgs=kilogram kilograms=kilogram cm=centimetre centimeter=centimetre
    centimeters=centimetre centimetres=centimetre mm=millimetre millimeters=millimetre
    millimetres=millimetre mg=milligram milligrams=milligram ml=millilitre milliliters=millilitre
    millilitres=millilitre GB=gigabyte gigabytes=gigabyte MB=megabyte megabytes=megabyte
    ms=millisecond milliseconds=millisecond min=minute mins=minute minutes=minute hr=hour hrs=hour
    hours=hour secs=2nd seconds=2nd second=2nd sec=2nd days=day weeks=week months=month years=year
    yrs=year miles=mile dollars=dollar euros=euro percent=%
    """
)

SAME = _pairs(
    """
    favorite=favourite favorites=favourites color=colour colors=colours flavor=flavour
    neighbor=neighbour neighbors=neighbours behavior=behaviour center=centre theater=theatre
    organize=organise organized=organised organizes=organises analyze=analyse gray=grey
    traveling=travelling traveled=travelled canceled=cancelled jewelry=jewellery
    okay=ok tv=television telephone=phone mom=mother mum=mother dad=father kid=child kids=children
    bicycle=bike bicycles=bikes refrigerator=fridge photograph=photo photographs=photos
    purchases=buys perhaps=maybe till=until js=javascript ts=typescript postgres=postgresql
    k8s=kubernetes repo=repository repos=repositories config=configuration configs=configurations
    db=database dbs=databases automobile=car automobiles=cars begins=starts begin=start
    began=started daily=every_day weekly=every_week monthly=every_month yearly=every_year
    annually=every_year anyone=anybody everyone=everybody someone=somebody u.s=usa
    noon=t12h00 midnight=t00h00
    """
)

PHRASES = {
    tuple(old.split()): tuple(new.split())
    for old, new in (
        line.split("=")
        for line in """
    in order to=to
    due to=because of
    a few=afew
    a little=alittle
    a lot of=lots of
    is able to=can
    are able to=can
    has got a=has
    have got a=have
    has got an=has
    have got an=have
    e mail=email
    e mails=emails
    united states of america=usa
    united states=usa
    new york city=nyc
    each day=every day
    at the moment=
    right now=
    by the way=
    please note that=
    note that=
    remember that=
    keep in mind that=
    """.strip().splitlines()
    )
}
_PHRASE_STARTS = frozenset(phrase[0] for phrase in PHRASES)
FILLERS = words("please also actually currently")

LIKING = words("like likes liked love loves loved hate hates hated prefer prefers preferred")
"""Verbs after which "to hike" and "hiking" say the same."""

AMBIGUOUS_CASE = words(
    """
    us it may march apple polish china turkey who aids will mark bill rose jack art grace hope faith
    amber dawn eve frank gene grant guy jade joy june lance may miles olive page penny pierce ray
    rich rob robin ruby sandy sue summer august violet wade ward go swift rust python shell windows
    meta alphabet amazon oracle target gap ford smart word access excel teams zoom slack notion
    spring flask express react node ant make chat square stripe visa cat dog chip
    brown black white green young long king knight fox wolf bird stone wood field park bush
    reading bath nice cork orange mobile phoenix troy lima bell cook baker smith mason hunter
    """
)
"""Words that mean something else with a capital letter: us and US, polish and Polish."""


class ComparedWord(NamedTuple):
    """A word as it is compared.

    `article` is the one before it ("a", "the" or none); `case` is "upper" or "lower" for the words
    that mean something else with a capital, where it is not the sentence that capitalises them;
    `name` says that it is written like a name; `kind` is the group of `_PIECE` that it came from.
    """

    text: str
    article: str = ""
    case: str = ""
    name: bool = False
    kind: str = "word"


@dataclass(frozen=True, slots=True)
class TextReading:
    """`commas` are the numbers of words before each comma or other break inside a sentence."""

    words: tuple[ComparedWord, ...]
    question: bool
    commas: tuple[int, ...]
    moved: TextReading | None = None


_CLOCK = (
    re.compile(r"\b(\d{1,2})(?::(\d\d))?(?::00)?\s?([ap])\.?m\b\.?", re.IGNORECASE),
    re.compile(r"(?<![\d:.])([01]\d|2[0-3]):([0-5]\d)(?![\d:])"),
)
_ISO_DATE = re.compile(r"(?<![\d-])(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?![\d-])")
# "may" and "march" are months only with a capital.
_MONTH = "|".join(
    name.title() if name in ("may", "march", "mar") else f"(?i:{name})"
    for name in sorted(MONTH_OF, key=len, reverse=True)
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
_FRONTED = WEEKDAYS.keys() | words(
    "in on at since for during after before until if when whenever while because every today"
    " tomorrow yesterday"
)


def _plain(text: str) -> str:
    """A text without formatting."""
    plain = unicodedata.normalize("NFC", text).replace("\u2019", "'").replace("\u2018", "'")
    return _MARKUP.sub("", plain).strip()


# Words that reading may replace, or leave out.
_REPLACED = frozenset(
    re.findall(
        r"[a-z]{4,}",
        f"{CONTRACTIONS} {UNITS} {SAME} {PHRASES} {FILLERS} {[*NUMBERS]} {[*SCALES]} {ORDINALS} "
        f"{[*MONTH_OF]} note reminder remember that".lower(),
    )
)
# In small letters: what may follow a verb of liking is replaced, and "n't" parted from a word.
_WORD = re.compile(r"\bto\W+\w+|\b\w*ing\b|([a-z]{4,})(?!'t)")


@lru_cache(maxsize=1024)
def _list_words(text: str) -> tuple[str, frozenset[str]]:
    """A text in small letters, and words that stand in every text that is the same as it."""
    plain = _plain(text).lower()
    return plain, frozenset(_WORD.findall(plain)) - _REPLACED


@lru_cache(maxsize=1024)
def read_text(text: str) -> TextReading:
    """Read one text. A new memory is read against each of its neighbours: once is enough."""
    plain = _LABEL.sub("", _plain(text))
    plain = _ISO_DATE.sub(lambda m: f"d{m[1]}x{m[2]}x{m[3]}", _rewrite_clock(plain))
    plain = _MONTH_DAY.sub(lambda m: _format_date(m[0], m[3], m[1], m[2]), plain)
    plain = _DAY_MONTH.sub(lambda m: _format_date(m[0], m[3], m[2], m[1]), plain)
    # "Favourite colour: blue" says "is"; only if one colon divides one sentence.
    text_before, colon, text_after = plain.partition(": ")
    single = colon and ":" not in text_after and not re.search(r"[.?!,;]\s", plain)
    if single and text_before.strip() and text_after.strip():
        plain = f"{text_before} is {text_after}"
    plain = _THOUSANDS.sub(lambda m: m[0].replace(",", ""), plain)
    plain = _MONEY.sub(lambda m: f"{m[2]} {_CURRENCY[m[1]]}", plain)
    tokens = _tokenise(plain)
    question = any(token.kind == "stop" and "?" in token.text for token in tokens)
    tokens = _replace_gerunds(
        _attach_articles(_replace_variants(_replace_numbers(_replace_phrases(tokens))))
    )
    reading = _make_reading(tokens, question)
    # "On Fridays, she cooks" is read as "she cooks on Fridays" too.
    breaks = [at for at, token in enumerate(tokens) if token.kind in ("comma", "stop")]
    comma = breaks[0] if len(breaks) == 1 and tokens[breaks[0]].text == "," else 0
    if 0 < comma < len(tokens) - 1 and tokens[0].text in _FRONTED:
        moved_tokens = tokens[comma + 1 :] + tokens[:comma]
        reading = replace(reading, moved=_make_reading(moved_tokens, question))
    return reading


_LARGE = 10**12
_CURRENCY = {"$": "dollar", "€": "euro"}


def _rewrite_clock(text: str) -> str:
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


def _format_date(match_text: str, year: str | None, month: str, day: str) -> str:
    if not 1 <= int(day) <= 31:
        return match_text
    return f"d{year or '-'}x{MONTH_OF[month.lower()]:02d}x{int(day):02d}".replace("-", "0000")


def _tokenise(text: str) -> list[ComparedWord]:
    tokens: list[ComparedWord] = []
    for match in _PIECE.finditer(text):
        kind = match.lastgroup or "word"
        piece = match.group().strip()
        if kind == "hyphen":
            if match.string[match.end()].isdigit() and tokens and tokens[-1].kind == "number":
                tokens.append(ComparedWord("-", kind="mark"))
            continue
        if kind == "word":
            tokens.extend(_read_word(piece, tokens))
        elif kind == "mark" and piece in "\u2013\u2014\u2010\u2011":
            tokens.append(ComparedWord("-", kind="mark"))
        else:
            tokens.append(ComparedWord(piece, kind=kind))
    while tokens and tokens[-1].kind in ("stop", "comma") and "?" not in tokens[-1].text:
        tokens.pop()
    return tokens


def _read_word(piece: str, before: list[ComparedWord]) -> list[ComparedWord]:
    """A word with its contraction opened; its case kept only where it can mean something."""
    starts_sentence = not before or before[-1].kind == "stop"
    low = piece.lower()
    name = piece[0].isupper() and not starts_sentence
    case = (
        ""
        if starts_sentence or low not in AMBIGUOUS_CASE
        else "upper"
        if piece[0].isupper()
        else "lower"
    )
    if before and before[-1].kind == "number" and piece != low:
        # MB and Mb, 5 M and 5 m are not the same unit.
        return [ComparedWord(piece)]
    if low in CONTRACTIONS:
        return [ComparedWord(part) for part in CONTRACTIONS[low].split("_")]
    if low.endswith("n't") and len(low) > 4:
        return [ComparedWord(low[:-3]), ComparedWord("not")]
    stem, quote, ending = low.rpartition("'")
    if not quote:
        # A letter that names something is no article: plan A, vitamin A.
        letter = low == "a" and piece == "A" and not starts_sentence
        return [ComparedWord("A" if letter else low, "", case, name)]
    short_ending = _SHORT.get("'" + ending)
    if short_ending:
        return [ComparedWord(stem), ComparedWord(short_ending)]
    if ending == "s" and stem in _PRONOUNS:
        return [ComparedWord(stem), ComparedWord("is")]
    return (
        [ComparedWord(stem, "", case, name), ComparedWord("'" + ending)]
        if stem
        else [ComparedWord(low)]
    )


def _replace_phrases(tokens: list[ComparedWord]) -> list[ComparedWord]:
    compared_words: list[ComparedWord] = []
    at = 0
    while at < len(tokens):
        for size in (4, 3, 2) if tokens[at].text in _PHRASE_STARTS else ():
            words = tuple(token.text for token in tokens[at : at + size])
            if len(words) == size and words in PHRASES:
                compared_words.extend(ComparedWord(word) for word in PHRASES[words])
                at += size
                break
        else:
            compared_words.append(tokens[at])
            at += 1
    return compared_words


def _replace_numbers(tokens: list[ComparedWord]) -> list[ComparedWord]:
    """Number words as digits: "twenty three" is 23, "three hundred" is 300."""
    compared_words: list[ComparedWord] = []
    at = 0
    while at < len(tokens):
        word = tokens[at].text
        number = NUMBERS.get(word) if tokens[at].kind == "word" else None
        if number is None:
            compared_words.append(ComparedWord(ORDINALS[word]) if word in ORDINALS else tokens[at])
            at += 1
            continue
        at += 1
        if number >= 20 and at < len(tokens) and 1 <= NUMBERS.get(tokens[at].text, 0) <= 9:
            number += NUMBERS[tokens[at].text]
            at += 1
        while at < len(tokens) and tokens[at].text in SCALES and number < _LARGE:
            number *= SCALES[tokens[at].text]
            at += 1
        compared_words.append(ComparedWord(str(number), kind="number"))
    return compared_words


def _replace_variants(tokens: list[ComparedWord]) -> list[ComparedWord]:
    """Units after numbers, spelling variants and synonyms; fillers go."""
    compared_words: list[ComparedWord] = []
    for at, token in enumerate(tokens):
        last_word = compared_words[-1] if compared_words else None
        next_text = tokens[at + 1].text if at + 1 < len(tokens) else None
        on_weekday = token.text == "on" and next_text in WEEKDAYS
        # "She said that he left", but not "he said that".
        said_that = token.text == "that" and at > 0 and tokens[at - 1].text in _SAYING
        said_that = said_that and next_text is not None
        if last_word is not None and last_word.kind == "number" and token.text in (*UNITS, "%"):
            compared_words.append(ComparedWord(UNITS.get(token.text, "%")))
        elif token.kind == "word" and token.text in SAME:
            synonym = SAME[token.text]
            forms = synonym.split("_") if "every_" in synonym else [synonym]
            compared_words.extend(token._replace(text=word) for word in forms)
        elif token.kind == "word" and (token.text in FILLERS or on_weekday or said_that):
            continue
        else:
            compared_words.append(token)
    return compared_words


def _attach_articles(tokens: list[ComparedWord]) -> list[ComparedWord]:
    """Articles become a mark on the word after them; a last one is a word of its own."""
    letters = any(len(t.text) == 1 and t.name and t.text not in "ai" for t in tokens)
    compared_words: list[ComparedWord] = []
    article = ""
    for at, token in enumerate(tokens):
        follows = at + 1 < len(tokens) and tokens[at + 1].kind not in ("stop", "comma", "mark")
        is_name = token.name or (token.text == "a" and letters)
        if token.text in ("a", "an", "the") and follows and not is_name:
            article = "the" if token.text == "the" else "a"
            continue
        compared_words.append(token._replace(article=article) if article else token)
        article = ""
    return compared_words


def _replace_gerunds(tokens: list[ComparedWord]) -> list[ComparedWord]:
    compared_words: list[ComparedWord] = []
    at = 0
    while at < len(tokens):
        compared_words.append(tokens[at])
        at += 1
        # "Would like to swim" is a wish, "would like swimming" a guess.
        wish = len(compared_words) > 1 and compared_words[-2].text in ("would", "'d")
        if compared_words[-1].text not in LIKING or at >= len(tokens) or wish:
            continue
        following = tokens[at]
        if following.text == "to" and at + 1 < len(tokens) and tokens[at + 1].kind == "word":
            compared_words.append(ComparedWord("-ing " + _stem(tokens[at + 1].text)))
            at += 2
        elif (
            following.kind == "word"
            and not following.article
            and re.fullmatch(r"[a-z]{2,}ing", following.text)
            and _stem(following.text) != following.text
        ):
            compared_words.append(ComparedWord("-ing " + _stem(following.text)))
            at += 1
    return compared_words


def _stem(word: str) -> str:
    return (analyse(word) or [word])[-1]


def _make_reading(tokens: list[ComparedWord], question: bool) -> TextReading:
    words: list[ComparedWord] = []
    commas: list[int] = []
    for token in tokens:
        if token.kind == "comma":
            commas.append(len(words))
        else:
            is_end = token.kind == "stop" and "?" not in token.text
            words.append(ComparedWord(".", kind="stop") if is_end else token)
    return TextReading(tuple(words), question, tuple(commas))


# Words after which a comma decides what is meant: "no, tests are needed", "no tests are needed".
_COMMA_MATTERS = NEGATIONS | {"only", "but", "except", "unless", "yes", "if", "just", "let"}


def same_fact(a: str, b: str) -> bool:
    """Whether `a` and `b` state the same fact. Symmetric; every text is the same as itself."""
    if a == b:
        return True
    (_, first_words), (second_plain, _) = _list_words(a), _list_words(b)
    # Reading is more work: of most texts that are near, a word shows that they differ.
    if not all(word in second_plain for word in first_words):
        return False
    first_reading, second_reading = read_text(a), read_text(b)
    if not first_reading.words or not second_reading.words:
        return False
    if _have_same_words(first_reading, second_reading):
        return _agree(first_reading, second_reading)
    # A clause at the front may have been moved to the end.
    ways = ((first_reading.moved, second_reading), (first_reading, second_reading.moved))
    return any(
        first_way is not None
        and second_way is not None
        and _have_same_words(first_way, second_way)
        and _agree(first_way, second_way)
        for first_way, second_way in ways
    )


def _have_same_words(first: TextReading, second: TextReading) -> bool:
    return len(first.words) == len(second.words) and all(
        word.text == counterpart.text
        for word, counterpart in zip(first.words, second.words, strict=True)
    )


def _agree(first: TextReading, second: TextReading) -> bool:
    """Whether two texts of the same words in the same order do not differ in anything else."""
    if first.question != second.question:
        return False
    if first.commas != second.commas and any(word.text in _COMMA_MATTERS for word in first.words):
        return False
    return not any(
        (word.article and counterpart.article and word.article != counterpart.article)
        or (word.case and counterpart.case and word.case != counterpart.case)
        for word, counterpart in zip(first.words, second.words, strict=True)
    )
