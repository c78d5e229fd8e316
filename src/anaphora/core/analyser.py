"""Text in, tokens out: the one analyser of the word index, of queries and of focus statements.

`analyse` turns any text into the tokens that are indexed, `query_terms` a question into the terms
that are looked up; both are pure, deterministic and linear in the length of the text, and both
take any string, lone surrogates and NUL included. A token never holds white space.

What becomes of a text:
- words are folded (case, accents, width) and stemmed by script (Latin letters as English);
- identifiers, paths, URLs, addresses, versions and hyphenated words stay whole, folded and
  unstemmed, and come in their parts too (`getUserName`: getusername, get, user, name);
- Chinese, Japanese and Korean runs, and the scripts of South East Asia that put no spaces between
  words, become overlapping pairs of characters (one character alone stays alone);
- numbers lose the commas between thousands; emoji are tokens.

Stop words are indexed like any other word, so that "to be or not to be" can be found;
`query_terms` leaves them out unless a query holds nothing else.

Never: a clock, a disk, a language model, the environment.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache

ANALYSER = "1"
"""The version of these rules: an index made with another one is made again."""

MAX_TOKEN = 128
"""Characters of a token that count: what is longer (base64, minified code) is cut to this."""

# Function words only: a word that could be what somebody asks for ("may", "will", "us") is absent.
STOP_WORDS = frozenset(
    """
    a about after all also am an and any are aren't as at be because been before being but by can
    can't could couldn't did didn't do does doesn't doing don't for from had hadn't has hasn't have
    haven't having he he'd he'll he's her here's hers herself him himself his how how's i i'd i'll
    i'm i've if in into is isn't it it'd it'll it's its itself just let's me my myself no nor not of
    on or our ours ourselves out over shall she she'd she'll she's should shouldn't so some such
    than that that's the their theirs them themselves then there there's these they they'd they'll
    they're they've this those to too under until up very was wasn't we we'd we'll we're we've were
    weren't what what's when when's where where's which while who who's whom whose why why's with
    won't would wouldn't you you'd you'll you're you've your yours yourself yourselves
    """.split()  # noqa: SIM905 - a list of 170 quoted words cannot be read
)

# `\w` leaves out the vowel signs of the scripts of India and of their neighbours, which are marks.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0900-\u0903"
    "\u093a-\u094f\u0951-\u0957\u0962\u0963\u0980-\u09e3\u0a00-\u0a75\u0a80-\u0ae3\u0b00-\u0b63"
    "\u0b80-\u0bd7\u0c00-\u0c63\u0c80-\u0ce3\u0d00-\u0d63\u0d80-\u0df3\u0e31-\u0e3a\u0e47-\u0e4e"
    "\u0eb1-\u0ebc\u0ec8-\u0ece\u0f71-\u0f84\u102b-\u103e\u17b4-\u17d3\u3099\u309a"
)
_UNSPACED = (
    "\u0e00-\u0e3a\u0e40-\u0e4e\u0e80-\u0ece\u1000-\u103e\u1780-\u17d3"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3041-\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u3131-\u318e\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3"
    "\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_EMOJI = (
    "\u203c\u2049\u2139\u231a\u231b\u2328\u23e9-\u23f3\u2600-\u27bf\u2b05-\u2b07\u2b1b\u2b1c"
    "\u2b50\u2b55\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
)
_DECORATION = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")

# Alternatives are tried in this order. None of them can look far ahead and then fail, which is
# what would make a long text take quadratic time.
_PIECE = re.compile(
    rf"""
      (?P<url>(?:https?|ftp|file|ssh|git|wss?)://[^\s<>"'`|]+)
    | (?P<number>\d{{1,3}}(?:,\d{{3}})+(?![\d,]))
    | (?P<sharp>(?<![\w])[A-Za-z](?:\+\+|\#)(?!\w))
    | (?P<word>[\w{_MARKS}]+(?:(?:::|->|['\u2019]|[-./\\:@])[\w{_MARKS}]+)*)
    | (?P<flag>[\U0001f1e6-\U0001f1ff]{{2}})
    | (?P<emoji>[{_EMOJI}][\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]*
        (?:\u200d[{_EMOJI}][\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]*)*)
    """,
    re.VERBOSE,
)
# From the loosest joint to the tightest: a path holds file names, a file name holds words.
_JOINTS = (
    re.compile(r"(?:::|->|[/\\:@?#=&%+,;~!*$()\[\]])+"),
    re.compile(r"\.+"),
    re.compile(r"[-_]+"),
)
_JOINED = re.compile(r"[^\w'\u2019" + _MARKS + r"]|_")
_APOSTROPHE = re.compile(r"['\u2019]")
_CONTRACTION = re.compile(r"[^\W\d_]+'(?:s|t|d|m|re|ve|ll)", re.IGNORECASE)
_SCRIPT_RUN = re.compile(rf"([{_UNSPACED}]+)")
_HUMP = re.compile(rf"[A-Z]+(?=[A-Z][a-z])|[A-Z]?(?:[^\W\dA-Z_]|[{_MARKS}])+|[A-Z]+|\d+")
_LETTERS = re.compile(rf"(?:[^\W\d_]|['{_MARKS}])+")
_HEX = re.compile(r"(?:0x[0-9a-f]+|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,})", re.IGNORECASE)
_ACCENTS = re.compile("[\u0300-\u036f]")
_SPACES = re.compile(r"\s+")

# The stemmer of a script, by a letter range; Latin letters are read as English.
_STEMMERS: tuple[tuple[str, str, str], ...] = (
    ("a", "z", "english"),
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u052f", "russian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)
_stemming = threading.Lock()


def fold(text: str) -> str:
    """Return `text` without differences of case, accent, width and spacing.

    Accents of Latin, Greek and Cyrillic letters go; the vowel signs of other scripts stay, since
    there they tell words apart.
    """
    return _SPACES.sub(" ", _fold_letters(_compatible(text))).strip()


def analyse(text: str, *, keep_stop_words: bool = True) -> list[str]:
    """Return the tokens of `text` in order, repeated as often as they occur."""
    kind = 0 if keep_stop_words else 1
    tokens: list[str] = []
    for match in _PIECE.finditer(_compatible(text)):
        tokens.extend(_tokens(match.group(), match.lastgroup or "word")[kind])
    return tokens


def query_terms(text: str) -> tuple[str, ...]:
    """Return the distinct terms to look `text` up by, in order of appearance.

    Stop words are left out; a query of stop words alone is looked up by all of them. A text with
    nothing that can be looked up (blank, punctuation) gives no terms.
    """
    terms = analyse(text, keep_stop_words=False) or analyse(text)
    return tuple(dict.fromkeys(terms))


def _compatible(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _fold_letters(text: str) -> str:
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFD", text.casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", apart))


def _tokens(piece: str, kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return all tokens of a piece, and those that remain without stop words."""
    # A cache of very long pieces would hold megabytes and never hit.
    return _cached_tokens(piece, kind) if len(piece) <= MAX_TOKEN else _make_tokens(piece, kind)


def _make_tokens(piece: str, kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if kind == "word":
        pairs = list(_word(piece))
    elif kind == "url":
        pairs = list(_joined(piece.rstrip(".,;:!?)]}'")))
    elif kind == "number":
        pairs = [(piece.replace(",", ""), False)]
    else:
        pairs = [(_DECORATION.sub("", piece).lower(), False)]
    pairs = [(token[:MAX_TOKEN], stop) for token, stop in pairs if token]
    return tuple(token for token, _ in pairs), tuple(token for token, stop in pairs if not stop)


_cached_tokens = lru_cache(maxsize=65_536)(_make_tokens)


def _word(piece: str) -> Iterator[tuple[str, bool]]:
    if _JOINED.search(piece):
        yield from _joined(piece)
    else:
        yield from _plain(piece)


def _joined(piece: str, level: int = 0) -> Iterator[tuple[str, bool]]:
    """Give a compound whole, then each of its parts, which can be compounds of a tighter joint."""
    if level == len(_JOINTS):
        yield from _cached_plain(piece) if len(piece) <= MAX_TOKEN else _plain(piece)
        return
    parts = [part for part in _JOINTS[level].split(piece) if part]
    whole = piece.strip("/\\~")
    if len(parts) > 1 or (parts and parts[0] != whole):
        yield _fold_letters(whole).replace("\u2019", "'"), False
    for part in parts:
        yield from _joined(part, level + 1)


def _plain(piece: str) -> Iterator[tuple[str, bool]]:
    """Give the tokens of letters and digits without a joint; apostrophes can be among them."""
    if _APOSTROPHE.search(piece):
        piece = piece.replace("\u2019", "'")
        if not _CONTRACTION.fullmatch(piece):
            for part in piece.split("'"):
                yield from _plain(part)
            return
    for run in _SCRIPT_RUN.split(piece):
        if run and _SCRIPT_RUN.fullmatch(run):
            yield from ((pair, False) for pair in _pairs(_fold_letters(run)))
        elif run:
            yield from _humps(run)


@lru_cache(maxsize=16_384)
def _cached_plain(piece: str) -> tuple[tuple[str, bool], ...]:
    return tuple(_plain(piece))


def _humps(word: str) -> Iterator[tuple[str, bool]]:
    """Give a word; one with inner capitals or with digits among letters also in its parts."""
    # What is longer than a token is no word: nothing is gained by stemming megabytes.
    word = word[:MAX_TOKEN]
    folded = _fold_letters(word)
    simple = word.isdecimal() or _HEX.fullmatch(word)
    humps = [] if simple or _is_one_hump(word) else _HUMP.findall(word)
    if simple:
        yield folded, False
    elif len(humps) > 1:
        yield folded, False
        for hump in humps:
            part = _fold_letters(hump)
            yield _stem(part), part in STOP_WORDS
    else:
        yield _stem(folded), folded in STOP_WORDS


def _is_one_hump(word: str) -> bool:
    cased = word.islower() or word.isupper() or word[1:].islower() or word.lower() == word.upper()
    return cased and _LETTERS.fullmatch(word) is not None


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for start in range(len(run) - 1):
        yield run[start : start + 2]


def _stem(word: str) -> str:
    """Return the stem of a folded word, by the script of its first letter."""
    first = word[:1]
    for low, high, language in _STEMMERS:
        if low <= first <= high:
            # The library's stemmers keep their state in the object: one thread at a time.
            with _stemming:
                return _stemmer(language)(word) or word
    return word


@lru_cache(maxsize=len(_STEMMERS))
def _stemmer(language: str) -> Callable[[str], str]:
    import snowballstemmer

    stem: Callable[[str], str] = snowballstemmer.stemmer(language).stemWord
    return stem
