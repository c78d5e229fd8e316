"""The secrets that have a form of their own: `patterns.json` has one row for each form.

A row has its kind, its pattern, and what a pattern cannot say (a checksum, a header that decodes)
by the name of a check. The first row of a kind names the page on which its vendor, or a scanner
that vendors work with, describes the form.

A pattern never looks far ahead and then fails: what repeats is bounded or cannot begin again
inside its own match, so a text of any length takes linear time.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class SecretForm:
    """A form: `group` of its pattern is the secret, if `check` accepts the match.

    `kind` is what the text says in its place: `[redacted:jwt]`. `hint` is a text without which
    nothing can match: the pattern is compiled when that is first met. So long as it is not `loose`,
    a match lies in one line and has `DENSE` letters, digits, "+", "/", "_" or "-" in a row.
    """

    kind: str
    pattern: str
    hint: str = ""
    group: int = 0
    check: str = ""
    loose: bool = False
    source: str = ""

    @property
    def caseless(self) -> bool:
        """Whether the pattern knows no case: its hint is looked for in the text in lower case."""
        return self.pattern.startswith("(?i)")

    def find(self, text: str) -> Iterator[re.Match[str]]:
        """Every match in a text that its check accepts."""
        matches = compiled(self.pattern).finditer(text)
        return filter(_CHECKS[self.check], matches) if self.check else matches


DENSE = 20
"""Characters in a row."""


# An escape ends in a letter or digit that is not the secret's: "\n" and "\u003d" in JSON, "%3D" in
# a URL, "=3D" in a mail. So does an option that is joined to its value: "-kAIza…".
_ESCAPES = (
    r"\\[nrtbf]",
    r"%[0-9A-Fa-f][0-9A-Fa-f]",
    r"\\u[0-9A-Fa-f]{4}",
    "=3D",
    r"[ \t]-[A-Za-z]",
)


def _make_start(*before: str, behind: int = 0) -> str:
    """None of these texts stands before a secret, or an escape does.

    `behind`: so many characters of the secret have been matched already.
    """
    gap = rf"[\s\S]{{{behind}}}" if behind else ""
    none = "".join(rf"(?<!{text}{gap})" for text in before)
    return rf"(?:{none}|{'|'.join(rf'(?<={text}{gap})' for text in _ESCAPES)})"


# What is no more than a few letters and a hash would be found in any name with hyphens, as in
# "cache-key-" and a hash: no word and "-" or "_" may stand before it. A form that has a prefix of
# its own, or letters of both cases and digits, is found there, too. A word may follow either.
_NO_NAME = ("[A-Za-z0-9]", "[A-Za-z0-9][_-]", "[A-Za-z0-9][_-][_-]")
_NO_WORD = ("[A-Za-z0-9]",)
START = _make_start(*_NO_NAME)
START_OF_WORD = _make_start(*_NO_WORD)

_LITERALS = re.compile(
    r"[A-Za-z0-9_-]+(?![A-Za-z0-9_-]*[{?*+|])|\(\?:[A-Za-z0-9_-]+(?:\|[A-Za-z0-9_-]+)+\)(?![{?*+])"
)


def _put_literal_first(pattern: str) -> str:
    """The same pattern with the letters that it begins with before what must not precede them.

    `re` looks for letters many times as fast as for a place between two characters.
    """
    for start, lookbehind in ((START_OF_WORD, _NO_WORD), (START, _NO_NAME)):
        if not pattern.startswith(start):
            continue
        body = pattern[len(start) :]
        literals = _LITERALS.match(body)
        if literals is None:
            return pattern
        several = literals.group().removeprefix("(?:").removesuffix(")").split("|")
        alternatives = "|".join(
            literal + _make_start(*lookbehind, behind=len(literal)) for literal in several
        )
        return (
            f"(?:{alternatives}){body[literals.end() :]}"
            if len(several) > 1
            else alternatives + body[literals.end() :]
        )
    return pattern


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of the file, its signs written out."""
    for sign, written in _SIGNS.items():
        pattern = pattern.replace(sign, written)
    return re.compile(_put_literal_first(pattern), re.ASCII)


def _decode_base64(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""


def is_jwt(match: re.Match[str]) -> bool:
    """RFC 7515 and 7516: the first part is a JSON object that names the algorithm."""
    try:
        header = json.loads(_decode_base64(match.group(1)))
    except (ValueError, RecursionError):
        return False
    return isinstance(header, dict) and "alg" in header


def is_basic(match: re.Match[str]) -> bool:
    """RFC 7617: the base64 of a user, a colon and a password."""
    from anaphora.ingest.secrets.examples import is_example

    _, colon, password = _decode_base64(match.group(1).translate(_URL_SAFE)).partition(b":")
    return bool(colon) and not is_example(password.decode("utf-8", "replace"))


def is_discord(match: re.Match[str]) -> bool:
    """The first part is the base64 of the bot's number."""
    return _decode_base64(match.group(1)).isdigit()


def has_digits(match: re.Match[str]) -> bool:
    """Two digits or more, as no word in capitals has them."""
    return sum(map(str.isdigit, match.group(match.lastindex or 0))) >= 2


_PREFIX = re.compile(
    START + r"(?!(?:sha\d|md5|pk|pub|cs_|css|ca_)[a-z\d]{0,12}[_-])"
    r"(?:[a-z][a-z0-9]{1,11}[_-]){0,3}(?P<last>[a-z][a-z0-9]{1,11})\Z"
)
_ROLES = re.compile(
    r"live|test|prod|sk|pat|key|api|secret|token|prv|priv|svc|admin|access|auth|bot"
)
_OF_HASHES = re.compile(r"key|test|prod|access|auth|bot")
_LONGEST_PREFIX = 52


def has_prefix(match: re.Match[str]) -> bool:
    """A name of small letters before a random part, as "zephyr_pat_" has it.

    32 characters of both cases and digits, or 20 with digits where the name ends in the role of a
    key. "cache-key-" and a hash is none.
    """
    part, at = match.group(1), match.start()
    prefix_match = _PREFIX.search(match.string, max(0, at - _LONGEST_PREFIX), at)
    if prefix_match is None:
        return False
    last_word = prefix_match.group("last")
    if _ROLES.fullmatch(last_word) and "_" in match.string[prefix_match.start() : at]:
        is_hash = _OF_HASHES.fullmatch(last_word) and re.fullmatch(r"[0-9a-f]+", part)
        digits = sum(map(str.isdigit, part))
        return not is_hash and (4 <= digits < len(part) or is_random(match))
    return len(part) >= 32 and is_random(match)


_CHANGES = 0.4
"""Of the characters of a random text, those of another class than the one before: 0.62 on average;
of joined words ("getUserById2") every fourth at most."""


def is_random(match: re.Match[str]) -> bool:
    """Small letters, capitals and digits in no order; it follows no "sha256="."""
    part = match.group(match.lastindex or 0)
    classes = [0 if character.isdigit() else 1 if character.islower() else 2 for character in part]
    changes = sum(first_class != second_class for first_class, second_class in pairwise(classes))
    is_mixed = classes.count(0) >= 2 and min(classes.count(1), classes.count(2)) >= 3
    text_before = match.string[max(0, match.start() - _LONGEST_PREFIX) : match.start()]
    return is_mixed and changes >= _CHANGES * len(part) and "sha" not in text_before


def is_openai(match: re.Match[str]) -> bool:
    """The mark in the middle, a prefix of newer keys, or the length of older ones."""
    key = match.group()
    is_marked = "T3BlbkFJ" in key  # "OpenAI" in base64, in the middle of every newer key
    newer = key.startswith(("sk-proj-", "sk-svcacct-", "sk-admin-")) and len(key) >= 48
    return is_marked or newer or re.fullmatch(r"sk-[A-Za-z0-9]{48}", key) is not None


def is_mixed(match: re.Match[str]) -> bool:
    """Small and capital letters and digits, as no word, hash or constant has them."""
    secret = match.group(match.lastindex or 0)
    return all(re.search(part, secret) for part in ("[a-z]", "[A-Z]", "[0-9]"))


def is_aws_secret(match: re.Match[str]) -> bool:
    """The words before it speak of a key, and it is no hash."""
    return re.search(r"(?i)key|pass|pwd|pw|token|secret", match.group(1)) is not None and (
        re.search(r"[A-Z/+]", match.group(2)) is not None
    )


def is_twilio(match: re.Match[str]) -> bool:
    """An article can have such a number too: what is said around it tells."""
    around = match.string[max(0, match.start() - 100) : match.end() + 100]
    return _TWILIO.search(around) is not None and _ARTICLE.search(around) is None


def is_bearer(match: re.Match[str]) -> bool:
    """A token has digits; the bearer of a message has none."""
    return re.search(r"[0-9]", match.group(1)) is not None


_TWILIO = re.compile(r"twilio|(?<![a-z])(?:key|token|secret|sid|auth|account)", re.IGNORECASE)
_ARTICLE = re.compile(r"\b(?:sku|article|product|item|part|order)s?\b", re.IGNORECASE)
_URL_SAFE = str.maketrans("+/", "-_")
_SIGNS: Final = {
    "{W}": START_OF_WORD,
    "{S}": START,
    "{E}": r"(?![A-Za-z0-9])",
    "{U}": r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    # What a command is given, and what stands before that.
    "{V}": r"(?:\"(?P<double>[^\"\n]{3,200})\"|'(?P<single>[^'\n]{3,200})'"
    r"|(?P<bare>[^\s\"'`|;<>]{3,200}))",
    "{I}": r"[^\n|;]{0,300}?[ \t]",
    # What stands between the name of a key and its value.
    "{Q}": r"[\"'`]?\]?[ \t]{0,3}(?:=>|:=|[=:]{1,3}|[ \t])[ \t]{0,3}[\"'`]?",
}
"""What patterns in the file write for: the start of a word, the start of a name, the end, a UUID,
and what joins a name to its value."""
_CHECKS: Final[dict[str, Callable[[re.Match[str]], bool]]] = {
    check.__name__: check
    for check in (
        *(has_digits, has_prefix, is_aws_secret, is_basic, is_bearer, is_discord, is_jwt),
        *(is_mixed, is_openai, is_random, is_twilio),
    )
}
DATA: Final[dict[str, Any]] = json.loads(
    Path(__file__).with_name("patterns.json").read_text("utf-8")
)
"""Everything that is looked for: `formats`, the `pages` that describe them, `words`, `commands`."""
FORMS: Final = tuple(SecretForm(**form) for form in DATA["formats"])
