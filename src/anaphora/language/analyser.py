"""Text in, tokens out: the one analyser of the word index, of queries and of focus statements.

`index_text` turns a text into the tokens that are indexed, `query_words` a question into the words
that are looked up there. `analyse` and `query_terms` do the same without regard to languages: their
tokens are for comparing texts and questions with each other. All are pure, deterministic and linear
in the length of the text, and take any string, lone surrogates and NUL included. A token never
holds white space.

What becomes of a text:
- words are folded (case, accents, width) and stemmed by script (Latin letters as English); in a
  text whose language is known to be another one, the index has that language's stem and its code
  ("haus~de"), so that stems of two languages are never mixed up, and once "~de";
- identifiers, paths, URLs, addresses and hyphenated words stay whole, folded and unstemmed, and
  come in their parts too (`getUserName`: getusername, get, user, name); letters and a number are
  one however they are joined (`ERR-4021`: err4021, err, 4021);
- versions and section numbers are whole or nothing: `v2.3.1` and "2.3.1" are 2.3.1, which shares
  no part with 3.2.1; long hexadecimal numbers also come as their first seven digits;
- a date and a time of day are one token each, however they are written (`dates.py`), beside
  their words; a question has that token alone. A day meant by the day of telling ("yesterday",
  `times/told.py`) has the tokens of that date, too;
- Chinese, Japanese and Korean runs, and the scripts of South East Asia that put no spaces between
  words, become overlapping pairs of characters, and Chinese characters come alone, too. A question
  is cut at the function words of such a language;
- numbers lose the commas between thousands; emoji are tokens.

A question's word stands for several tokens, one for each language: in which of them the texts are
need not be known. Stop words are indexed like any other word, so that "to be or not to be" can be
found; a question leaves out those of its language unless it holds nothing else.

Never: a clock, a disk (but for the lists of words), a language model, the environment.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from itertools import repeat
from typing import Final, NamedTuple

from anaphora.language.dates import WrittenTime, moments_in
from anaphora.language.folding import compatible, fold, fold_letters
from anaphora.language.languages.language import ENGLISH, english, language_of, languages
from anaphora.language.times.told import ELSEWHEN, told_tokens

__all__ = [
    "ANALYSER",
    "MAX_TOKEN",
    "STOP_WORDS",
    "IndexedText",
    "QueryWord",
    "analyse",
    "fold",
    "index_text",
    "language_token",
    "query_terms",
    "query_words",
    "token_of",
]

ANALYSER = "5"
"""The version of these rules: an index made with another one is made again."""

SHORTEST_FORM: Final = 4
LONGEST_FORM: Final = 24
"""Letters of a word that is kept as it is written (folded), to look for what was misspelt."""

MAX_TOKEN = 128
"""Characters of a token that count: what is longer (base64, minified code) is cut to this."""

# Function words only, without words that could be searched for ("may", "will", "us").
STOP_WORDS = english().stop

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
# what would make a long text take quadratic time. No piece of one kind could be one of another.
# Of separators (1c to 1f) only patterns of Unicode know that they are white space.
_KINDS = {
    "url": r"(?:https?|ftp|file|ssh|git|wss?)://[^\s\x1c-\x1f<>\"'`|\ud800-\udfff]+",
    "number": r"\d{1,3}(?:,\d{3})+(?![\d,])",
    "sharp": r"(?<![\w])[A-Za-z](?:\+\+|\#)(?!\w)",
    "word": rf"[\w{_MARKS}]+(?:(?:::|->|['\u2019]|[-./\\:@])[\w{_MARKS}]+)*",
    "flag": r"[\U0001f1e6-\U0001f1ff]{2}",
    "emoji": rf"[{_EMOJI}][\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]*"
    rf"(?:\u200d[{_EMOJI}][\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]*)*",
}
_PIECE = re.compile("|".join(f"(?:{kind})" for kind in _KINDS.values()))
_KIND = re.compile("|".join(f"(?P<{name}>{kind})" for name, kind in _KINDS.items()))
# The same for texts that are ASCII throughout, as code is: half as long to try.
_ASCII_PIECE = re.compile(
    "|".join(f"(?:{_KINDS[kind]})" for kind in ("url", "number", "sharp", "word")).replace(
        _MARKS, ""
    ),
    re.ASCII,
)
# From the loosest joint to the tightest: a path holds file names, a file name holds words.
_JOINTS = (
    re.compile(r"(?:::|->|[/\\:@?#=&%+,;~!*$()\[\]])+"),
    re.compile(r"(?<!\d)\.+|\.+(?!\d)|\.{2,}"),
    re.compile(r"[-_]+"),
)
# "2.3.1" with or without its "v", and what stands before and behind such a number without a joint.
_DOTTED = re.compile(r"([^\W\d_]*)(\d+(?:\.\d+)+)(\w*)")
_NUMBERED = re.compile(r"([^\W\d_]+)[-_](\d+)([^\W\d_]?)")
# A number that tells a thing from others of its kind, with what ends a sentence.
_SHORT_NUMBER = re.compile(r"\d{1,3}[.,;:!?)]*")
_WITH_NUMBER: Final = "#"
_ISO_DAY = re.compile(r"(?<!\d)(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)")
_DAY_TOKEN = re.compile(r"(?:\d{4}|-)-\d\d-\d\d")
_SHORT_HEX: Final = 7
# An exact name of something: not a count, an ordinal or a year.
_EXACT = re.compile(r"(?!(?:19|20)\d\d$)(?!\d+(?:st|nd|rd|th)$)(?=.*\d)(?!\d{1,2}$).+")
_JOINED = re.compile(r"[^\w'\u2019" + _MARKS + r"]|_")
_APOSTROPHE = re.compile(r"['\u2019]")
_CONTRACTION = re.compile(r"[^\W\d_]+'(?:s|t|d|m|re|ve|ll)", re.IGNORECASE)
_SCRIPT_RUN = re.compile(rf"([{_UNSPACED}]+)")
_HUMP = re.compile(rf"[A-Z]+(?=[A-Z][a-z])|[A-Z]?(?:[^\W\dA-Z_]|[{_MARKS}])+|[A-Z]+|\d+")
_LETTERS = re.compile(rf"(?:[^\W\d_]|['{_MARKS}])+")
_HEX = re.compile(r"(?:0x[0-9a-f]+|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,})", re.IGNORECASE)
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_KANA = re.compile("[\u3041-\u309f]")
_LATIN = re.compile("[a-z]")

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


class _TextPart(NamedTuple):
    """A part of a text: a token, and of a plain word how it is written, folded and not.

    A run of a script without spaces is a part that is `unspaced`: its token is all of it. `held`
    are tokens that an index has beside its own, `others` those that it also stands for in a
    question. One that is `written` is in the index alone: a question has the token of its date.
    """

    token: str
    folded: str = ""
    raw: str = ""
    unspaced: bool = False
    held: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    written: bool = False


@dataclass(frozen=True, slots=True)
class IndexedText:
    """What the index has of a text: its tokens in order, and its words as written, each once.

    `length` is how many tokens it has without those that stand beside others.
    """

    tokens: tuple[str, ...]
    forms: tuple[str, ...]
    length: int


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a question, and the tokens it may have in an index.

    `tokens` are those of a text in no known language, the first one the word's own; `spellings`
    are stemmed by each language of the texts (`tokens_in`). `form` is the folded word. `compounds`
    is the code of the question's language if that has compounds. `exact`: it names something
    exactly, as a version, a code, a date or a time of day does.
    """

    tokens: tuple[str, ...]
    form: str = ""
    spellings: tuple[str, ...] = ()
    compounds: str = ""
    exact: bool = False

    def tokens_in(self, codes: Collection[str]) -> tuple[str, ...]:
        """All its tokens if there are texts in these languages, too."""
        if not codes or not self.spellings:
            return self.tokens
        stemmed_tokens: dict[str, None] = {}
        for code in codes:
            stemmed_tokens.update(dict.fromkeys(map(token_of, self.spellings, repeat(code))))
        return (*self.tokens, *stemmed_tokens)


def analyse(text: str, *, keep_stop_words: bool = True, code: str | None = None) -> list[str]:
    """Return the tokens of `text` in order, repeated as often as they occur.

    They do not depend on its language; stop words are those of its language, which is `code`, if
    the caller knows it.
    """
    tokens: list[str] = []
    if keep_stop_words:
        # Hot loop of indexing projects: runs of code rarely repeat, but their pieces do.
        for stretch, moment in _stretches(compatible(text)):
            if moment is not None:
                tokens += _tokens_of(_moment_parts(stretch, moment))
                continue
            for piece in (_ASCII_PIECE if stretch.isascii() else _PIECE).findall(stretch):
                is_short = len(piece) <= MAX_TOKEN
                tokens += _cached_plain_tokens(piece) if is_short else _make_plain_tokens(piece)
        return tokens
    code = language_of(text) if code is None else code
    stops = _stop_words(code)
    for part in _parts(text):
        if part.unspaced:
            for run in _cut(part.token, code):
                tokens.extend((*_pairs(run), *_alone(run)))
        elif part.folded not in stops:
            tokens.append(part.token)
            tokens += (token for token in part.held if _WITH_NUMBER not in token)
    return tokens


def numbered_things(text: str) -> frozenset[str]:
    """The tokens of things that a short number identifies: "locker 3"."""
    tokens = (token for part in _parts(text) for token in part.held)
    return frozenset(token for token in tokens if _WITH_NUMBER in token)


def query_terms(text: str) -> tuple[str, ...]:
    """Return the distinct tokens of `text` to compare it with others by, in order of appearance.

    Stop words are left out, unless there is nothing else. A text with nothing that can be looked up
    (blank, punctuation) gives none.
    """
    return tuple(word.tokens[0] for word in query_words(text))


def query_words(text: str) -> tuple[QueryWord, ...]:
    """Return the distinct words to look `text` up by in an index, in order of appearance.

    As `query_terms`, with each word's tokens in all languages.
    """
    code, parts = language_of(text), _parts(text)
    words: dict[str, QueryWord] = {}
    # Stop words count where there is nothing else.
    for read_as, stops in ((code, _stop_words(code)), ("", frozenset[str]())):
        for part in parts:
            if not part.written and (part.unspaced or part.folded not in stops):
                for word in _lookups(part, read_as):
                    words.setdefault(word.tokens[0], word)
        if words:
            break
    return tuple(words.values())


def index_text(text: str, code: str | None = None, told_at: datetime | None = None) -> IndexedText:
    """Return the indexed form of `text`; `code` is its language, if the caller knows it.

    With `told_at`, in the zone of who told it, it has the days that the text means by that one.
    """
    code = language_of(text) if code is None else code
    language = languages().get(code)
    stemmer = language.stemmer if language is not None and code != ENGLISH else ""
    tokens: list[str] = []
    forms: dict[str, None] = {}
    beside = 0
    for part in _parts(text):
        if part.folded and SHORTEST_FORM <= len(part.folded) <= LONGEST_FORM:
            forms[part.folded] = None
        if part.unspaced:
            single_characters = _alone(part.token)
            tokens.extend((*_pairs(part.token), *single_characters))
            beside += len(single_characters)
        elif stemmer and part.folded and _LATIN.match(part.folded):
            tokens.append(_marked(part.raw, stemmer, code))
        else:
            tokens.append(part.token)
            tokens += part.held
            beside += len(part.held)
    if stemmer and tokens:
        tokens.append(language_token(code))
        beside += 1
    length = len(tokens) - beside
    if told_at is not None:
        tokens += _meant_tokens(text, told_at, code, tokens)
    return IndexedText(tuple(tokens), tuple(forms), length)


def _meant_tokens(
    text: str, told_at: datetime, code: str, tokens: Sequence[str]
) -> tuple[str, ...]:
    """The tokens of the days that a text means, and the mark of one that is of other days."""
    meant_tokens = told_tokens(text, told_at, code)
    named_days = {
        token for token in (*tokens, *meant_tokens) if "-" in token and _DAY_TOKEN.fullmatch(token)
    }
    if not named_days or named_days & {*told_at.strftime("%Y-%m-%d --%m-%d").split()}:
        return meant_tokens
    return (*meant_tokens, ELSEWHEN)


def language_token(code: str) -> str:
    """A token that every text of a language has in an index, except for English."""
    return f"~{code}"


def token_of(word: str, code: str) -> str:
    """The token of a word as it is written (folded) in the index of texts in one language."""
    language = languages().get(code)
    if language is None or not language.stemmer or code == ENGLISH:
        return _stem(word)
    return _marked(word, language.stemmer, code)


def _lookups(part: _TextPart, code: str) -> Iterator[QueryWord]:
    if part.unspaced:
        for run in _cut(part.token, code):
            if len(run) == 1 and run != part.token and not _HAN.match(run):
                # The index has other characters only in pairs.
                continue
            for pair in _pairs(run):
                # Of a Japanese verb only its first character stays the same.
                is_inflected = len(pair) == 2 and _HAN.match(pair) and _KANA.match(pair, 1)
                yield QueryWord((pair, pair[0]) if is_inflected else (pair,))
    elif part.folded and _LATIN.match(part.folded):
        language = languages().get(code)
        is_compound = (
            language is not None and language.compounds and len(part.folded) >= SHORTEST_FORM
        )
        compounds = code if is_compound else ""
        exact = _EXACT.fullmatch(part.token) is not None
        # Also without accents, which are often left out.
        spellings = (part.raw,) if part.raw == part.folded else (part.raw, part.folded)
        yield QueryWord((part.token,), part.folded, spellings, compounds, exact)
    else:
        exact = bool(part.others) or _EXACT.fullmatch(part.token) is not None
        yield QueryWord((part.token, *part.others), part.folded, exact=exact)
        for token in part.held:
            if _WITH_NUMBER in token:
                yield QueryWord((token,), exact=True)


@lru_cache(maxsize=65_536)
def _marked(word: str, stemmer: str, code: str) -> str:
    with _stemming:
        stem = _stemmer(stemmer)(word)
    return f"{fold_letters(stem or word)}~{code}"[:MAX_TOKEN]


def _stop_words(code: str) -> frozenset[str]:
    language = languages().get(code)
    return STOP_WORDS if language is None or not language.spaced else language.stop


def _cut(run: str, code: str) -> list[str]:
    """The pieces of a run between the function words of its language; the whole run if unknown."""
    pattern = _cuts(code)
    return [run] if pattern is None else [piece for piece in pattern.split(run) if piece]


@lru_cache(maxsize=64)
def _cuts(code: str) -> re.Pattern[str] | None:
    language = languages().get(code)
    if language is None or language.spaced:
        return None
    longest = sorted(language.stop, key=lambda word: (-len(word), word))
    return re.compile("|".join(map(re.escape, longest)))


def _make_plain_tokens(piece: str) -> tuple[str, ...]:
    return tuple(_tokens_of(_make_tokens(piece)))


def _tokens_of(parts: Iterable[_TextPart]) -> Iterator[str]:
    for part in parts:
        if part.unspaced:
            yield from _pairs(part.token)
            yield from _alone(part.token)
        else:
            yield part.token
            yield from part.held


_cached_plain_tokens = lru_cache(maxsize=65_536)(_make_plain_tokens)


def _parts(text: str) -> list[_TextPart]:
    parts: list[_TextPart] = []
    for stretch, moment in _stretches(compatible(text)):
        if moment is not None:
            parts += _moment_parts(stretch, moment)
            continue
        # No piece holds white space, and none looks beyond it: most runs were met before.
        noun = ""
        for run in stretch.split():
            # A cache of very long runs would hold megabytes and never hit.
            run_parts, run_noun = _cached_run(run) if len(run) <= MAX_TOKEN else _read_run(run)
            if noun and run[0].isdecimal() and _SHORT_NUMBER.fullmatch(run):
                # The number also has the token that it makes with the word before it: "locker 3".
                number = run_parts[0]
                numbered_noun = f"{noun}{_WITH_NUMBER}{number.token}"[:MAX_TOKEN]
                number = number._replace(held=(*number.held, numbered_noun))
                run_parts = (number, *run_parts[1:])
            noun = run_noun
            parts += run_parts
    return parts


@lru_cache(maxsize=1)
def _function_words() -> frozenset[str]:
    return frozenset().union(*(language.stop for language in languages().values()))


def _stretches(text: str) -> Iterator[tuple[str, WrittenTime | None]]:
    """A text cut at its dates and times of day: the text between them, and each of them."""
    end = 0
    for moment in moments_in(text, lambda: language_of(text)):
        yield text[end : moment.start], None
        yield text[moment.start : moment.end], moment
        end = moment.end
    yield text[end:] if end else text, None


def _moment_parts(written: str, moment: WrittenTime) -> Iterator[_TextPart]:
    """The token of a date or time of day, and its words; of a date not the bare numbers."""
    yield _moment_part(moment)
    for run in written.split():
        for part in _split_run(run):
            bare = moment.is_day and len(part.token) <= 2 and part.token.isdecimal()
            if not bare and part.token not in moment.held:
                yield part._replace(written=True)


def _moment_part(moment: WrittenTime) -> _TextPart:
    token, *other_tokens = moment.held
    return _TextPart(token, held=tuple(other_tokens), others=moment.looked_up[1:])


def _split_run(run: str) -> Iterator[_TextPart]:
    """Give the parts of a run without white space."""
    for piece in (_ASCII_PIECE if run.isascii() else _PIECE).findall(run):
        # A cache of very long pieces would hold megabytes and never hit.
        yield from _cached_tokens(piece) if len(piece) <= MAX_TOKEN else _make_tokens(piece)


def _read_run(run: str) -> tuple[tuple[_TextPart, ...], str]:
    """The parts of a run without white space; and of a plain word, which a number after it can
    specify, its token."""
    parts = tuple(_split_run(run))
    word = parts[0].folded if len(parts) == 1 and run.isalpha() else ""
    return parts, parts[0].token if word and word not in _function_words() else ""


_cached_run = lru_cache(maxsize=32_768)(_read_run)


def _make_tokens(piece: str) -> tuple[_TextPart, ...]:
    """Return the parts of a piece."""
    parts: Iterable[_TextPart]
    match = _KIND.match(piece)
    kind = match.lastgroup if match else "word"
    if kind == "word":
        parts = _split_compound(piece) if _JOINED.search(piece) else _split_plain(piece)
    elif kind == "url":
        parts = _split_compound(piece.rstrip(".,;:!?)]}'"))
    elif kind == "number":
        parts = [_TextPart(piece.replace(",", ""))]
    else:
        parts = [_TextPart(_DECORATION.sub("", piece).lower())]
    kept_parts: list[_TextPart] = []
    for part in parts:
        if part.token:
            is_whole = part.unspaced or len(part.token) <= MAX_TOKEN
            kept_parts.append(part if is_whole else part._replace(token=part.token[:MAX_TOKEN]))
    return tuple(kept_parts)


_cached_tokens = lru_cache(maxsize=32_768)(_make_tokens)


def _split_compound(piece: str, level: int = 0) -> Iterator[_TextPart]:
    """Give a compound whole, then each of its parts, which can be compounds of a tighter joint."""
    while level < len(_JOINTS) and not _JOINTS[level].search(piece):
        level += 1
    if level == len(_JOINTS):
        if (dotted_match := _DOTTED.fullmatch(piece)) is not None:
            # A version or another number with points, whole; what is before and behind it.
            before, number, behind = dotted_match.groups()
            alone = not behind and before.lower() in ("", "v")
            if not alone:
                yield _TextPart(fold_letters(piece))
            yield _TextPart(number)
            if before and not alone:
                yield from _split_plain(before)
            if behind:
                yield from _split_plain(behind)
        else:
            yield from _cached_plain(piece) if len(piece) <= MAX_TOKEN else _split_plain(piece)
        return
    parts = [part for part in _JOINTS[level].split(piece) if part]
    compound = piece.strip("/\\~")
    if len(parts) > 1 or (parts and parts[0] != compound):
        name_match = _NUMBERED.fullmatch(compound)
        yield _TextPart(
            fold_letters("".join(name_match.groups()) if name_match else compound).replace(
                "\u2019", "'"
            )
        )
    if level == len(_JOINTS) - 1 and (date_match := _ISO_DAY.search(piece)):
        yield from (_moment_part(moment) for moment in moments_in(date_match.group(), str))
        parts = [part for part in _JOINTS[level].split(_ISO_DAY.sub("-", piece, 1)) if part]
    for part in parts:
        yield from _split_compound(part, level + 1)


def _split_plain(piece: str) -> Iterator[_TextPart]:
    """Give the tokens of letters and digits without a joint; apostrophes can be among them.

    A word with inner capitals, or with digits among letters, also comes in its parts.
    """
    if _APOSTROPHE.search(piece):
        piece = piece.replace("\u2019", "'")
        if not _CONTRACTION.fullmatch(piece):
            for part in piece.split("'"):
                yield from _split_plain(part)
            return
    for run in _SCRIPT_RUN.split(piece):
        if run and _SCRIPT_RUN.fullmatch(run):
            yield _TextPart(fold_letters(run), unspaced=True)
        elif run:
            # What is longer than a token is no word: nothing is gained by stemming megabytes.
            word = run[:MAX_TOKEN]
            folded_word = fold_letters(word)
            simple = word.isdecimal() or _HEX.fullmatch(word)
            is_plain_case = word.islower() or word.isupper() or word[1:].islower()
            is_plain_case = is_plain_case or word.lower() == word.upper()
            one_hump = is_plain_case and _LETTERS.fullmatch(word)
            humps = [] if simple or one_hump else _HUMP.findall(word)
            if simple:
                is_long_hex = (
                    len(word) > _SHORT_HEX and not word.isdecimal() and word[1] not in "xX"
                )
                short_forms = (folded_word[:_SHORT_HEX],) if is_long_hex else ()
                yield _TextPart(folded_word, held=short_forms, others=short_forms)
            elif len(humps) > 1:
                yield _TextPart(folded_word)
                for hump in humps:
                    folded_word = fold_letters(hump)
                    yield _TextPart(_stem(folded_word), folded_word, hump.lower())
            else:
                yield _TextPart(_stem(folded_word), folded_word, word.lower())


@lru_cache(maxsize=16_384)
def _cached_plain(piece: str) -> tuple[_TextPart, ...]:
    return tuple(_split_plain(piece))


def _alone(run: str) -> list[str]:
    """The Chinese characters of a run that is more than one: each can be a word."""
    return _HAN.findall(run) if len(run) > 1 else []


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for start in range(len(run) - 1):
        yield run[start : start + 2]


def _stem(word: str) -> str:
    """Return the stem of a folded word, by the script of its first letter."""
    first_letter = word[:1]
    for low, high, language in _STEMMERS:
        if low <= first_letter <= high:
            # The library's stemmers keep their state in the object: one thread at a time.
            with _stemming:
                return _stemmer(language)(word) or word
    return word


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    import snowballstemmer

    stem: Callable[[str], str] = snowballstemmer.stemmer(language).stemWord
    return stem
