"""What a text says, and what a question asks, as far as their words tell: read once, then compared.

Of a text: its words, whether it asks or does not know, negates, speaks of the speaker. Of a
question: its words, and whether it asks for now, for the past, or for the first of all.
The known words are those of the text's language (`language/languages`). It needs no numpy.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from operator import attrgetter
from typing import Final
from zlib import crc32

from anaphora.language.analyser import QueryWord, analyse, query_words
from anaphora.language.dates import MONTH_OF, WEEKDAYS
from anaphora.language.folding import typed_text
from anaphora.language.languages.language import ENGLISH, Language, language_of, languages, loose
from anaphora.language.small_talk import QUESTION_MARKS

DAY, CLOCK, NUMBER, PATH = "day", "time", "number", "path"

READING: Final = "2"
"""The version of what is read of a text: what was kept of another one is read again."""

HEAD: Final = 600
"""Characters of a text that are read: what is pasted below says nothing of change."""
_LOOKED_AT: Final = 8_000
"""Characters of a text that are looked at, white space included."""
_FRAME: Final = 24
"""Words of a statement that are compared one by one: of more, too few are worded alike."""


_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
# A speaker's name before the text, and the mark with which a Spanish question opens.
_BEFORE_QUESTION: Final = re.compile(r"^(?:[^\W\d_]\w{1,20}: )?[¿¡\"“'(]*\s*")
_LAST_MARKS: Final = " .!?…。！？\n"
_END: Final = r"\b"
_WRITTEN: Final = re.compile(r"[^\W\d_]{2,}")
_OF_NOW: Final = ("now", "still", "unchanged", "several", "change")
_CLOCK: Final = re.compile(r"\b\d{1,2}[:.h]\d{2}\b(?![.,]\d)|\b\d{1,2} ?(?:am|pm|uhr)\b")
_PATH: Final = re.compile(r"[\w.-]*/[\w./-]+\w")
_MARKS: Final = (
    "asks",
    "personal",
    "negated",
    "unknown",
    "changes",
    "adds",
    "several",
    "tentative",
    "unchanged",
    "complains",
)
_UNMARKED: Final = dict.fromkeys(_MARKS, False)
_marks_of = attrgetter(*_MARKS)
_SAME: Final = "="
_CALENDAR: Final = frozenset((*MONTH_OF, *WEEKDAYS))
_CALENDAR_TOKENS: Final = frozenset(analyse(" ".join(sorted(_CALENDAR))))


@lru_cache(maxsize=64)
def _list_spoken(code: str) -> tuple[Language, ...]:
    """English, which is spoken everywhere, and the language of a text; any where none is known."""
    if code:
        return tuple(languages()[name] for name in dict.fromkeys((ENGLISH, code)))
    return tuple(language for language in languages().values() if language.spaced)


@lru_cache(maxsize=256)
def _compile_cue(name: str, code: str) -> re.Pattern[str]:
    """The pattern of a cue in a language, for texts in small letters, but for "personal"."""
    patterns = (language.any_of(language.cues.get(name, ())) for language in _list_spoken(code))
    # Not with IGNORECASE: that looks at every word twice as long.
    return re.compile("|".join(pattern for pattern in patterns if pattern) or "(?!)")


@lru_cache(maxsize=64)
def _compile_question_word(code: str) -> re.Pattern[str]:
    """How a question begins in a language."""
    openings = [
        f"(?:{loose(language.questions)}{_END if language.spaced else ''})"
        for language in _list_spoken(code)
        if language.questions
    ]
    return re.compile("|".join(openings), re.IGNORECASE)


@lru_cache(maxsize=64)
def _compile_question_inside(code: str) -> re.Pattern[str]:
    """How a question begins within a sentence of a language."""
    openings = [
        language.questions_inside for language in _list_spoken(code) if language.questions_inside
    ]
    return re.compile("|".join(openings) or "(?!)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StatementKeys:
    """What one statement says of what it is about.

    `attributes` are the kinds of value that it gives: "day", "time", "path", "number", and "number"
    with the word beside it ("number port"). `values` are the tokens of the values. Words are cut at
    the function words and verbs of the text's language (`language/languages`); a capital counts for
    nothing.
    """

    attributes: frozenset[str]
    values: frozenset[str]


@dataclass(frozen=True)
class StatementReading:
    """What is read of one text, independently of any question: each part when it is first needed.

    `text` is as it is compared (`typed_text`); its `head` is read, the first 600 characters.
    """

    text: str

    @cached_property
    def head(self) -> str:
        """The characters that are read."""
        return self.text[:HEAD]

    @cached_property
    def code(self) -> str:
        """The code of its language, "" if it does not show."""
        return language_of(self.head)

    @cached_property
    def _lower_head(self) -> str:
        return self.head.lower()

    @cached_property
    def all_tokens(self) -> list[str]:
        """Its tokens in their order, without stop words."""
        # In small letters: a capital within a word would part it.
        return analyse(self._lower_head, keep_stop_words=False, code=self.code)

    @cached_property
    def words(self) -> frozenset[str]:
        """Its tokens without stop words."""
        return frozenset(self.all_tokens)

    @cached_property
    def _told(self) -> tuple[frozenset[str], bool]:
        """The words outside its questions, and whether hardly any are."""
        asking = _find_questions(self._lower_head, self.code)
        if not asking:
            return self.words, False
        statements = " ".join(
            sentence for sentence in _split_sentences(self._lower_head) if sentence not in asking
        )
        telling = frozenset(analyse(statements, keep_stop_words=False, code=self.code))
        return telling, len(statements) <= len(self.head) / 3

    @cached_property
    def told(self) -> frozenset[str]:
        """Its words outside its questions."""
        return self._told[0]

    @cached_property
    def asks(self) -> bool:
        """It is a question and little else."""
        return self._told[1] or self._has_cue("asking")

    @cached_property
    def personal(self) -> bool:
        """It speaks in the first person."""
        return _compile_cue("personal", self.code).search(self.head) is not None

    @cached_property
    def negated(self) -> bool:
        """It holds a negation."""
        return self._has_cue("negation")

    @cached_property
    def unknown(self) -> bool:
        """It says that something is not known."""
        return self._has_cue("unknown")

    @property
    def length(self) -> int:
        """The number of its words, repetitions among them."""
        return len(self.all_tokens)

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Its first words in their order; what has digits and stands together is one, as "6:05"
        with its parts."""
        joined_parts: list[str] = []
        for token in self.all_tokens[:_FRAME]:
            digits = any(map(str.isdigit, token))
            if digits and joined_parts and any(map(str.isdigit, joined_parts[-1])):
                joined_parts[-1] = f"{joined_parts[-1]} {token}"
            else:
                joined_parts.append(token)
        return tuple(joined_parts)

    @cached_property
    def segments(self) -> list[tuple[str, ...]]:
        """Its tokens that stand together, between function words, verbs and marks."""
        return _split_segments(self._lower_head, self.code)

    @cached_property
    def _before_verb(self) -> list[tuple[str, ...]]:
        verb = _compile_cue("verb", self.code).search(self._lower_head, 1)
        return _split_segments(self._lower_head[: verb.start()], self.code) if verb else []

    @cached_property
    def subject(self) -> frozenset[str]:
        """The tokens before the verb, where a common one shows."""
        return frozenset(token for segment in self._before_verb for token in segment)

    @cached_property
    def head_noun(self) -> str:
        """The noun of the subject that others tell apart: "key" of "key of the garage", and of
        "garage key"."""
        return self._before_verb[0][-1] if self._before_verb else ""

    @cached_property
    def changes(self) -> bool:
        """It says that something is new."""
        return bool(self._cue_tokens["change"])

    @cached_property
    def adds(self) -> bool:
        """It says that it comes to what holds."""
        return self._has_cue("added")

    @cached_property
    def several(self) -> bool:
        """What it tells of may have several values at once, or happens again."""
        return bool(self._cue_tokens["several"])

    @cached_property
    def tentative(self) -> bool:
        """It is only thought of."""
        return self._has_cue("tentative")

    @cached_property
    def news(self) -> frozenset[str]:
        """Its told words without those that say that it still holds, or of what several values can
        hold."""
        return self._tell_without("now", "still", "unchanged", "several")

    @cached_property
    def unchanged(self) -> bool:
        """It says that something is as before."""
        return bool(self._cue_tokens["unchanged"])

    @cached_property
    def size(self) -> int:
        """Its characters without what ends it."""
        return len(self.text.rstrip(_LAST_MARKS))

    @cached_property
    def written(self) -> frozenset[str]:
        """Its words as they are written, folded."""
        return frozenset(word.casefold() for word in _WRITTEN.findall(self.head))

    @cached_property
    def lasting(self) -> frozenset[str]:
        """Its told words without words of change and of now."""
        return self._tell_without("now", "still", "unchanged", "change")

    @cached_property
    def complains(self) -> bool:
        """It tells what is wrong, and no value."""
        return self._has_cue("complaint")

    @cached_property
    def decided(self) -> bool:
        """It says in so many words that something was decided."""
        return self._has_cue("decided")

    @cached_property
    def settles(self) -> bool:
        """It tells how something is done from now on, as a decision does."""
        return self.decided or self._has_cue("settles")

    @cached_property
    def proposes(self) -> bool:
        """It proposes something."""
        return self._has_cue("proposes")

    @cached_property
    def assents(self) -> bool:
        """It begins with a word that takes what was proposed."""
        return _compile_cue("assents", self.code).match(self._lower_head) is not None

    @cached_property
    def keys(self) -> StatementKeys:
        """What it says of what it is about."""
        segments, paths = self.segments, _PATH.findall(self.text)
        days, attributes, numbers = self.told & _CALENDAR_TOKENS, set[str](), set[str]()
        if _CLOCK.search(self.text.casefold()):
            attributes.add(CLOCK)
        if days:
            attributes.add(DAY)
        if paths:
            attributes.add(PATH)
        for segment in segments:
            for index, token in enumerate(segment):
                if token[:1].isdigit():
                    numbers.add(token)
                    # With the word beside the number.
                    beside = (*segment[index + 1 : index + 2], *segment[max(0, index - 1) : index])
                    noun = next((word for word in beside if not word[:1].isdigit()), "")
                    attributes.add(f"{NUMBER} {noun}" if noun else NUMBER)
        values = days | numbers
        if len(segments) > 1:
            # Not what stands before the verb; if no verb is known, before the last words.
            before = self.subject or frozenset(chain(*segments[:-1]))
            values |= frozenset(segments[-1]) - before - {*map(str.casefold, paths)}
        return StatementKeys(frozenset(attributes), values & self.told)

    def _has_cue(self, name: str) -> bool:
        return _compile_cue(name, self.code).search(self._lower_head) is not None

    def _tell_without(self, *cues: str) -> frozenset[str]:
        return self.told.difference(*map(self._cue_tokens.__getitem__, cues))

    @cached_property
    def _cue_tokens(self) -> dict[str, frozenset[str]]:
        """The tokens of what each cue of now and of change matches."""
        return {
            name: frozenset(
                token
                for phrase in _find_phrases(name, self.code, self._lower_head)
                for token in _tokenise(phrase)
            )
            for name in _OF_NOW
        }


def words_of(text: str) -> frozenset[str]:
    """The `words` of `read_statement`."""
    return read_statement(text).words


def read_statement(text: str, line: str = "") -> StatementReading:
    """Read the first 600 characters of `text`; how it was typed changes nothing.

    `line` is what `keep_reading` made of the same text: what it holds is not read again.
    """
    return _read_statement(text[:_LOOKED_AT], line)


@lru_cache(maxsize=8192)
def _read_statement(text: str, line: str) -> StatementReading:
    reading = StatementReading(typed_text(text))
    # Of another text, or wiped meanwhile, it says nothing.
    with suppress(ValueError):
        if line:
            vars(reading).update(_unpack(text, line))
    return reading


def keep_reading(text: str) -> str:
    """What is read of `text` as one line: all that most questions need of it."""
    reading = read_statement(text)
    keys, subject, telling = reading.keys, reading.subject, reading.told
    words = (
        [name for name, is_marked in zip(_MARKS, _marks_of(reading), strict=True) if is_marked],
        reading.all_tokens,
        [_SAME] if telling == reading.words else sorted(telling),
        sorted(telling - reading.news),
        sorted(telling - reading.lasting),
        # The noun of the subject first.
        sorted(subject, key=lambda word: (word != reading.head_noun, word)),
        sorted(attribute.replace(" ", _SAME, 1) for attribute in keys.attributes),
        sorted(keys.values),
    )
    return "\t".join((_check(text[:_LOOKED_AT]), reading.code, *map(" ".join, words)))


def _unpack(text: str, line: str) -> dict[str, object]:
    """The parts of a reading by their names. Raises ValueError if `line` is not of `text`."""
    check, code, *words = line.split("\t")
    if check != _check(text):
        raise ValueError("the reading is of another text")
    marks, tokens, telling, idle, passing, about, kinds, values = map(str.split, words)
    all_words = frozenset(tokens)
    words_told = all_words if telling == [_SAME] else frozenset(telling)
    return {
        **_UNMARKED,
        **dict.fromkeys(marks, True),
        "code": code,
        "all_tokens": tokens,
        "words": all_words,
        "told": words_told,
        "news": words_told.difference(idle),
        "lasting": words_told.difference(passing),
        "subject": frozenset(about),
        "head_noun": about[0] if about else "",
        "keys": StatementKeys(
            frozenset(kind.replace(_SAME, " ", 1) for kind in kinds),
            frozenset(values),
        ),
    }


def _check(text: str) -> str:
    return f"{crc32(text.encode('utf-8', 'surrogatepass')):x}"


def _split_sentences(text: str) -> list[str]:
    return [
        sentence for sentence in _SENTENCE_END.split(text.rstrip(_LAST_MARKS)) if sentence.strip()
    ]


def _find_questions(text: str, code: str) -> list[str]:
    """The sentences that ask: those before a question mark, and the last one by its wording.

    What ends the text is left out: with a mark or without, it asks the same.
    """
    *earlier, last_sentence = _split_sentences(text) or [""]
    asking = [
        sentence for sentence in earlier if sentence.rstrip("\"')”’ ").endswith(QUESTION_MARKS)
    ]
    bare = _BEFORE_QUESTION.sub("", last_sentence.strip())
    opening = _compile_question_word(code).match(bare)
    # "Do not push" asks for nothing.
    if (
        opening and not _compile_cue("negation", code).match(bare.lower(), opening.end() + 1)
    ) or _compile_question_inside(code).search(bare):
        asking.append(last_sentence)
    return asking


def _split_segments(text: str, code: str) -> list[tuple[str, ...]]:
    parts = (_tokenise(part, code) for part in _compile_cut(code).split(text))
    return [part for part in parts if part]


@lru_cache(maxsize=16_384)
def _tokenise(part: str, code: str | None = None) -> tuple[str, ...]:
    """The tokens of a part of a text in a language, without stop words; None: all of them."""
    return tuple(analyse(part, keep_stop_words=code is None, code=code))


@lru_cache(maxsize=64)
def _compile_cut(code: str) -> re.Pattern[str]:
    words = {word for language in _list_spoken(code) for word in language.written}
    word_pattern = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    cues = "|".join(_compile_cue(name, code).pattern for name in ("verb", "change", "now", "still"))
    alone_pattern = rf"(?<![\w-])(?:{word_pattern}|{cues})(?![\w-])"
    # For small letters: IGNORECASE would try every word at every character.
    return re.compile(rf"{alone_pattern}|[^\w\s'’.,:/@-]|[.,:](?=\s|$)")


def tokens_of_time() -> frozenset[str]:
    """The tokens of weekdays and months: two statements that share no more are of two things."""
    return _CALENDAR_TOKENS


@dataclass(frozen=True, slots=True)
class QuestionCues:
    """What a question says of time, and its words.

    `past` is 0 for the present, 1 where only a tense speaks of the past ("was"), 2 where words do
    ("used to"; "before" and "in March" beside such a tense); `first` asks for the oldest ("at
    first"); `now` says so ("these days"); `order` asks in which order things happened. `temporal`
    are the tokens that may say any of this: statements that share nothing else are not about one
    thing.
    """

    terms: frozenset[str]
    past: int
    first: bool
    now: bool
    order: bool = False
    temporal: frozenset[str] = frozenset()


_TIMES: Final = ("first", "now", "order", "before", "past", "first_in_past", "before_in_past")


def _find_phrases(name: str, code: str, small: str) -> list[str]:
    """What of a text in small letters a cue matches."""
    pattern = _compile_tense(code) if name == "past" else _compile_cue(name, code)
    return [match.group() for match in pattern.finditer(small)]


@lru_cache(maxsize=64)
def _compile_tense(code: str) -> re.Pattern[str]:
    """What stands in the past, in the text's language alone: "was" is German for "what"."""
    language = languages().get(code)
    if language is None or not language.cues.get("past"):
        return _compile_cue("past", code)
    return re.compile(language.any_of(language.cues["past"]))


@lru_cache(maxsize=128)
def read_cues(question: str) -> QuestionCues:
    """Read what `question` says of time."""
    if not question:
        return QuestionCues(frozenset(), 0, first=False, now=False, temporal=_CALENDAR_TOKENS)
    code, lower_question = language_of(question), question.lower()
    timed_question = _compile_cue("no_time", code).sub(" , ", lower_question)
    matches = {name: _find_phrases(name, code, timed_question) for name in _TIMES}
    tense = bool(matches["past"])
    asks_first = bool(matches["first"] or (tense and matches["first_in_past"]))
    past = 0
    if asks_first or matches["before"] or (tense and matches["before_in_past"]):
        past = 2
    elif not matches["now"] and tense:
        past = 1
    phrases = " ".join(phrase for cue in matches.values() for phrase in cue)
    return QuestionCues(
        frozenset(word.tokens[0] for word in asked_words(question)),
        past,
        asks_first,
        bool(matches["now"]),
        bool(matches["order"]),
        frozenset(analyse(phrases)) | _CALENDAR_TOKENS,
    )


@lru_cache(maxsize=128)
def asked_words(question: str) -> tuple[QueryWord, ...]:
    """The words to look `question` up by: all but those that only say when.

    A text that holds "first" answers "which bank do I ask first?" no better; "the first floor" is a
    name. Where nothing else is left, they are looked up.
    """
    words = query_words(question)
    code, lower_question = language_of(question), question.lower()
    timed_question = _compile_cue("no_time", code).sub(" , ", lower_question)
    idle = {
        token for phrase in _find_phrases("idle", code, timed_question) for token in analyse(phrase)
    }
    without = _compile_cue("idle", code).sub(" , ", timed_question)
    if not idle or not analyse(without, keep_stop_words=False):
        return words
    other_tokens = frozenset(analyse(without))
    names = frozenset(analyse(" ".join(_find_phrases("no_time", code, lower_question))))
    remaining = tuple(word for word in words if word.tokens[0] not in idle - other_tokens - names)
    return remaining or words
