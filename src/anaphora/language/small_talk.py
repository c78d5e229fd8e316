"""Detects small talk: texts without words to look up besides thanks, greetings and commands.

There is no list of sentences: the phrases of each language (`cues.phatic`, `cues.commands`) and
function words are removed wherever they occur, and the remaining words count. Small talk mixes
languages, so that the phrases of all languages are removed. A question is not a command: "how do we
run the tests?" keeps its words. Pure; only texts up to `LONGEST` characters can be small talk.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from anaphora.language.analyser import analyse, query_words
from anaphora.language.folding import typed_text
from anaphora.language.languages.language import ENGLISH, language_of, languages, loose

LONGEST: Final = 240
"""A longer text is never small talk."""
LEAST_WORDS: Final = 2
"""A prompt with fewer words to look up asks nothing of the memory."""

QUESTION_MARKS: Final = ("?", "？")
_NAME: Final = r"[^\W\d_]+(?:[ ](?-i:[A-ZÀ-Þ])\w+)?(?=\s*(?:[.!,;:…-]|$))"


def asks_nothing(prompt: str) -> bool:
    """Whether a prompt is small talk or a plain command, with nothing that could be looked up."""
    if len(prompt) > LONGEST:
        return False
    if len(set(analyse(prompt, keep_stop_words=False))) < LEAST_WORDS:
        return True
    remaining = _without(typed_text(prompt), "phatic")
    asks = _asks(remaining)
    if len(_words(remaining, prompt)) < (1 if asks else LEAST_WORDS):
        return True
    return not asks and not _words(_without(remaining, "commands"), prompt)


def is_small_talk(text: str, most: int = 0) -> bool:
    """Whether a turn has nothing to search for later: "ok", "good night, Noor".

    It has at most so many words beside that.
    """
    if len(text) > LONGEST:
        return False
    remaining = _without(typed_text(text), "phatic")
    if not _asks(remaining):
        remaining = _without(remaining, "commands")
    return len(_words(remaining, text)) <= most


def begins_as_question(text: str) -> bool:
    """Whether a text begins as a question does, with a mark or without, in any language."""
    return _question().match(_without(typed_text(text), "phatic").strip(" ,.;:!…-")) is not None


def _asks(text: str) -> bool:
    """Whether the remaining text is a question; a request ("can you …") is not."""
    text = text.strip(" ,.;:!…-")
    if _request().search(text):
        return False
    return any(mark in text for mark in QUESTION_MARKS) or _question().match(text) is not None


def _without(text: str, name: str) -> str:
    text = _phrases(name).sub(" ", _addressed().sub(" ", text) if name == "phatic" else text)
    return _request().sub(" ", text) if name == "commands" else text


def _words(remaining: str, text: str) -> set[str]:
    """The words to look up in the remaining part of a text."""
    if not analyse(remaining, keep_stop_words=False):
        return set()
    stops = _stops(language_of(text))
    forms = {word.form or word.tokens[0] for word in query_words(remaining)}
    return {form for form in forms - stops if any(map(str.isalnum, form))}


@lru_cache(maxsize=64)
def _stops(code: str) -> frozenset[str]:
    """Function words of a language and of English; of all languages if it is unknown."""
    all_languages = languages()
    chosen_languages = (
        (all_languages[ENGLISH], all_languages[code]) if code else all_languages.values()
    )
    return frozenset(word for language in chosen_languages for word in language.stop)


@lru_cache(maxsize=4)
def _phrases(name: str) -> re.Pattern[str]:
    """The phrases of all languages for a cue; those of several words first: they contain others."""
    patterns = [
        language.any_of(phrases)
        for several in (True, False)
        for language in languages().values()
        if (
            phrases := [
                phrase for phrase in language.cues.get(name, ()) if (" " in phrase) is several
            ]
        )
    ]
    return re.compile("|".join(patterns) or "(?!)", re.IGNORECASE)


@lru_cache(maxsize=1)
def _request() -> re.Pattern[str]:
    patterns = (
        language.any_of(language.cues.get("requests", ())) for language in languages().values()
    )
    return re.compile("|".join(filter(None, patterns)) or "(?!)", re.IGNORECASE)


@lru_cache(maxsize=1)
def _question() -> re.Pattern[str]:
    """The beginnings of questions, without a mark, in all languages with spaces."""
    beginnings = (
        loose(language.questions)
        for language in languages().values()
        if language.spaced and language.questions
    )
    return re.compile(rf"[¿\s]*(?:and\b\s*)?(?:{'|'.join(beginnings)})\b", re.IGNORECASE)


@lru_cache(maxsize=1)
def _addressed() -> re.Pattern[str]:
    """A greeting with a name."""
    patterns = (
        language.any_of(language.people.get("greetings", ()))
        for language in languages().values()
        if language.spaced
    )
    return re.compile(rf"(?:{'|'.join(filter(None, patterns))}),?[ ]+{_NAME}", re.IGNORECASE)
