"""Which sentences tell a rule for all work to come, as far as their words tell.

"Never drop a column", "no init() functions, ever", "JSON is snake_case everywhere": the words are
those of all languages (`cues.rules` of `language/languages`). What asks, what is only thought of,
and what complains tells none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from functools import lru_cache
from typing import Final

from anaphora.language.folding import typed_text
from anaphora.language.languages.language import languages
from anaphora.language.small_talk import QUESTION_MARKS, is_small_talk
from anaphora.rank.pairs import REPLACED, JudgePairs, StatementPair, statement_of
from anaphora.rank.statements import read_statement, words_of

LONGEST: Final = 200
"""Characters of a sentence that is a rule; what is longer explains something."""
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+|;\s+")
_LOOKED: Final = 2_000
_AGAIN: Final = 0.8
_ENDED: Final = 0.5
"""The words of a rule, as a share, of which a later sentence says that it is so no longer."""
_LATER: Final = 86_400.0
_LISTED: Final = re.compile(r",\s*(?:and\s+)?")
_CONJUNCTION: Final = re.compile(r"(?:and|und|et|y|e)\s+", re.IGNORECASE)
_OF_RULES: Final = words_of("rule rules house always never ever use everywhere convention from on")
_ABOUT_SELF: Final = re.compile(r"\bI\b|\bi (?:always|never)\b|\bit (?:always|never)\b")


def tells_rule(text: str) -> bool:
    """Whether a text, its first 2,000 characters, is worded as a rule anywhere."""
    typed_words = typed_text(text[:_LOOKED])
    return (
        not typed_words.endswith(QUESTION_MARKS)
        and _cue_pattern("rules").search(typed_words) is not None
    )


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, each without white space around it."""
    return [part.strip() for part in _SENTENCE.split(text[:_LOOKED]) if part.strip()]


@lru_cache(maxsize=8192)
def is_rule(sentence: str) -> bool:
    """Whether a sentence is a rule and nothing else: short, no question, not of the speaker."""
    if len(sentence) > LONGEST or not tells_rule(sentence) or _ABOUT_SELF.search(sentence):
        return False
    read = read_statement(sentence)
    return bool(read.words) and not (read.asks or read.unknown or read.tentative or read.complains)


def rule_of(sentence: str) -> str:
    """A rule without small talk or a command before it: "commit it, and never …"; others as they
    are."""
    talk, comma, rule = sentence.partition(",")
    rule = _CONJUNCTION.sub("", rule.strip())
    return rule if comma and is_small_talk(talk) and is_rule(rule) else sentence


def repeats_rule(later: str, rule: str) -> bool:
    """Whether a later sentence says a rule again: nearly all of its words, with the same sense."""
    words, later_words = words_of(rule), words_of(later)
    if not words or len(words & later_words) < _AGAIN * len(words):
        return False
    return read_statement(later).negated == read_statement(rule).negated


def drop_ended_parts(rule: str, later: Collection[str], judge: JudgePairs) -> str:
    """A rule without the parts that later sentences end; "" if nothing of it is left.

    Parts are listed after a colon, between commas: "two rules: no emojis, always use uv".
    """
    head, colon, rule_list = rule.partition(":")
    parts = _LISTED.split(rule_list) if colon and rule_list.strip() else []
    if len(parts) < 2:
        return "" if any(takes_back(text, rule, judge) for text in later) else rule
    remaining = [part for part in parts if not any(takes_back(text, part, judge) for text in later)]
    if len(remaining) == len(parts):
        return rule
    return f"{head}: {', '.join(map(str.strip, remaining))}" if remaining else ""


def takes_back(later: str, rule: str, judge: JudgePairs) -> bool:
    """Whether a later sentence ends a rule: it tells another one about the same, or says so."""
    rule_words, later_words = words_of(rule) - _OF_RULES, words_of(later) - _OF_RULES
    ends = _cue_pattern("withdrawn").search(later) is not None
    read = read_statement(later)
    if ends or not rule_words & later_words or later.rstrip().endswith(QUESTION_MARKS):
        return ends and bool(rule_words & later_words)
    if read.changes and read.negated and not read_statement(rule).negated:
        # "We no longer …": of most of what the rule says.
        return len(rule_words & later_words) >= _ENDED * len(rule_words)
    if rule_words <= later_words or not (tells_rule(later) or read.changes):
        return False
    pair = StatementPair(statement_of(rule, 0.0), statement_of(later, _LATER), math.nan)
    return judge([pair])[0].replaces >= REPLACED


@lru_cache(maxsize=2)
def _cue_pattern(cue: str) -> re.Pattern[str]:
    """The wordings of a cue in all languages: a sentence is too short to tell its own."""
    patterns = (language.any_of(language.cues.get(cue, ())) for language in languages().values())
    return re.compile("|".join(filter(None, patterns)) or "(?!)", re.IGNORECASE)
