"""Secrets that a sentence says, and those that a command or a header is given.

One rule for sentences: after a word that names a secret and a joint ("is", "=", ":", "changed …
to"), the value is taken out whatever it looks like, unless it describes the secret ("is stored in
the vault", "is too short"). A value with a digit, a sign or quotes is one; a plain word is one only
where the clause ends behind it and it is no word that people say of passwords. Keys and tokens are
made by machines, so a plain word is none of theirs. Every pattern is bounded: linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Final

from anaphora.ingest.secrets.assigned import is_literal, reads_as_password
from anaphora.ingest.secrets.examples import is_example, is_resource
from anaphora.ingest.secrets.forms import compiled
from anaphora.ingest.secrets.signs import COMMANDS, WORDS, first_of, has_pin, picked

__all__ = ["command_secrets", "cookie_secrets", "said_keys", "said_secrets"]

_Span = tuple[int, int, str]


def _sign(name: str) -> str:
    """The alternatives of a list of words in the file, for a pattern."""
    return "|".join(WORDS[name].split(";"))


_TO: Final = frozenset(WORDS["to"].split(";"))
_GAP: Final = r"[^\S\n]{1,2}"
_PLAIN: Final = r"[^\W_][\w.'’@/-]{0,24}"
_IS: Final = rf"(?:{_sign('is')})(?![\w'’])"
_VALUE: Final = r"[\"'`„“«»‘「『*]{0,3}[^\S\n]?(?P<value>[^\s\"“”«»]{3,200})"


@cache
def _parts_in(name: str, *, ascii_only: bool) -> tuple[str, ...]:
    """Of a list of parts of names, those that a text may have."""
    return tuple(part for part in WORDS[name].split(";") if not ascii_only or part.isascii())


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """Of what a sentence says, each with the groups `value` and, where one may be, `joint`."""
    pin = rf"(?<![^\W_])(?P<pin>(?-i:{_sign('pin')})|{_sign('pin_words')})"
    name = rf"(?:{_sign('password')})(?![s0-9_]\w)|{pin}"
    now = rf"(?:(?:{_sign('now')}){_GAP})?"
    # Nothing, or a phrase that names its owner: what follows is said of the password itself.
    whose = rf"(?:{_GAP}(?:{_sign('of')})(?:{_GAP}|(?<=['’]))(?:{_PLAIN}{_GAP}){{0,5}}?{_PLAIN})?"
    return (
        re.compile(
            rf"(?P<name>{name})"
            rf"(?:{whose}(?P<joint>{_GAP}{_IS}[^\S\n]?[:：]?{_GAP}|[^\S\n]{{0,2}}[:：=]{_GAP}"
            rf"|{_GAP}(?:[–—-]|->|→){_GAP}|{_GAP}(?:{_sign('to')}){_GAP})|{_GAP})"
            rf"{now}{_VALUE}",
            re.IGNORECASE,
        ),
        # If anything else stands between the two, a value that looks like a password is one.
        re.compile(
            rf"(?:{_sign('password')})(?![^\S\n]+(?:{_sign('about')})\b)(?:{_GAP}{_PLAIN}){{0,6}}?"
            rf"(?:{_GAP}{_IS}[:：]?|[^\S\n]{{0,2}}[:：])[^\S\n]{{0,2}}{now}"
            rf"[\"'`„“«»‘]?(?P<value>[^\s\"“”«»]{{6,200}})",
            re.IGNORECASE,
        ),
        # These languages write no space between words.
        re.compile(
            rf"(?:{_sign('close')})[^\n!-~]{{0,12}}?(?:は|が|是|为|為|는|은|：|:|「)"
            r"[^\S\n]{0,2}[\"'`「『“]?(?P<value>[!-~]{4,200})"
        ),
        # "quokka-42 is the wifi password".
        re.compile(
            rf"(?P<value>\d[^\s\"'`“”«»]{{0,63}})[\"'`“”»’]?{_GAP}{_IS}{_GAP}"
            rf"(?:{_sign('my')}){_GAP}(?:{_PLAIN}{_GAP}){{0,3}}?[\w-]{{0,12}}?(?:{name})(?!\w)",
            re.IGNORECASE,
        ),
    )


# Behind the value the clause ends, or goes on with something else.
_ENDS: Final = re.compile(
    rf"[\"'`”“»«’」』*]{{0,3}}(?:[.,;!)]?\s*\Z|\s*\n|[.,;!)]\s|\s(?:{_sign('and')}|{_sign('changed')})\b)"
)
_SAYS_OF: Final = re.compile(rf"(?:{_sign('said_of')})", re.IGNORECASE)
_SIGN_OF_VALUE: Final = re.compile(r"[\d!@#%^&*+?~$]")
_SENTENCES: Final = re.compile(r"[.!?;\"]")
_OF_A_BANK: Final = re.compile(rf"(?:{_sign('bank')})", re.IGNORECASE)
_OF_NOTHING: Final = re.compile(
    rf"\W*(?:(?:\w+\s+){{0,3}}?(?:{_sign('my')}|new|old|neue|nouveau|nuevo)\s*)?\W*(?:(?:{_sign('is')})\W*)?(?:(?:{_sign('now')})\s*)?",
    re.IGNORECASE,
)
_WORD_ENDS: Final = re.compile(r"[\s\"'`“”«»(]")
_COUNTED: Final = re.compile(rf"[\"'`”“»]?[^\S\n](?:{_sign('counted')})", re.IGNORECASE)
_CHANGES_IT: Final = re.compile(rf"(?:{_sign('changes')})[^\n.!?]{{0,80}}\Z", re.IGNORECASE)
_LETTERS_AND_DIGITS: Final = re.compile(r"(?=\D*\d)(?=[\W\d_]*[^\W\d_])[\w!@#$%^&+-]{6,64}")
_CHANGED: Final = re.compile(rf"[\"'`”“»]?[^\S\n](?:{_sign('changed')})\b", re.IGNORECASE)
_MANY_WORDS: Final = re.compile(
    r"(?:[a-z]{3,12}[ -]){3,23}[a-z]{3,12}(?=[\"'`”»]|[.;!]?\s*(?:\Z|\n))"
)
_FUNCTION: Final = re.compile(rf"\b(?:{_sign('function')})\b")
_ALGORITHM: Final = re.compile(
    r"(?:sha|md|base|utf|aes|rsa|bcrypt|scrypt|pbkdf|argon|hmac|blake|ed|secp|oauth|saml|x|http"
    r"|tls|ipv|python|java|es|rfc)[-_]?\d+\w{0,4}(?:[-_/.:]\S+)*",
    re.IGNORECASE,
)
# Times, dates, versions, counts, addresses, calls and templates are said of a password.
_NO_VALUE: Final = re.compile(
    r"v?\d{1,4}(?:[.:/-]\d{1,4})+\S{0,4}|\d+(?:st|nd|rd|th|[smhd]|ms|%)|\d+-[a-z-]+|.*://.*"
    r"|[^@\s]+@[\w-]+(?:\.[\w-]+)+|[\[<{($\\].*|\W*|.*\(.*|.*\.(?:pem|key|json|ya?ml|txt|md|py|env)"
    r"|[~.]{0,2}/.*|[\w-]+\.[a-z]\w*(?:\.\w+)*|.*…|\d{1,3}(?:[.,]\d{3})+",
    re.IGNORECASE | re.DOTALL,
)
# What goes on with another name and its value is an object or a call in code without spaces.
_SEVERAL: Final = re.compile(r"[,;{][A-Za-z_$][\w$]{0,40}[:=,(][^\s]*[,;{}(=:]")
_CLOSING: Final = "\"'`”“»«’」』.,;:!?)]}>*_。，、です"
_IN_CODE: Final = re.compile(r"[(){}=<>\"\[\]]")
_OF_SOMEBODY: Final = re.compile(rf"\s*(?:{_sign('my')})\s+", re.IGNORECASE)


def said_secrets(text: str, lowered: str) -> Iterator[_Span]:
    """Give (start, end, kind) of every password, PIN and key that a sentence says."""
    if len(lowered) != len(text):
        lowered = "".join(
            character if len(character.lower()) != 1 else character.lower() for character in text
        )
    parts = _parts_in("parts", ascii_only=lowered.isascii())
    lines = picked(text, first_of(lowered, (*parts, "pin") if has_pin(lowered) else parts))
    if not lines.text:
        return
    plainly, stated, close, before = _patterns()
    for match in plainly.finditer(lines.text):
        if (end := _end_of_said(lines.text, match)) > 0:
            start = match.start("value")
            yield lines.place(start), lines.place(end - 1) + 1, "password"
    # A word by itself is a value only where the first finds it.
    has_sign = _SIGN_OF_VALUE.search(lines.text) is not None
    further = (stated, before) if has_sign else ()
    for pattern in further if text.isascii() else (*further, close):
        for match in pattern.finditer(lines.text):
            start, end = match.span("value")
            if pattern is before:
                # It begins where the word does that has the digit.
                start -= len(_WORD_ENDS.split(lines.text[max(0, start - 64) : start])[-1])
            written = lines.text[start:end].rstrip(_CLOSING)
            is_value = reads_as_password(written) if pattern is stated else _looks_made(written)
            # As "clave", these words are of the codes of doors too.
            is_code = pattern is close and written.isdecimal() and len(written) < 6
            if is_value and not is_code and _is_one_value(written):
                yield lines.place(start), lines.place(start) + len(written), "password"


def _is_one_value(written: str) -> bool:
    return not (_ALGORITHM.fullmatch(written) or _SEVERAL.search(written) or written[:1] in "<")


def _looks_made(written: str) -> bool:
    """A value with letters and digits, or of four digits or more, that is nothing else."""
    if len(written) < 4 or _NO_VALUE.fullmatch(written) or _ALGORITHM.fullmatch(written):
        return False
    if not re.search(r"\d", written):
        return re.search(r"\w[!@#%^&*+?~$=]", written) is not None and is_literal(written)
    return written.isdecimal() or (is_literal(written) and _SEVERAL.search(written) is None)


def _end_of_said(text: str, match: re.Match[str]) -> int:
    """Where the value ends that this name is given, 0 where it is given none."""
    start, written = match.start("value"), match.group("value").rstrip(_CLOSING)
    end = start + len(written)
    joint = (match.group("joint") or "").strip()
    if _COUNTED.match(text, end):
        return 0
    if match.group("pin"):
        # The PIN of a door is a code of the house, like any other.
        before = _SENTENCES.split(_before(text, match.start()))[-1]
        behind = text[match.end("name") : start]
        is_of_bank = _OF_A_BANK.search(f"{before} {match.group('name')} {behind}")
        is_of_bank = is_of_bank or _OF_NOTHING.fullmatch(f"{before} {behind}")
        return end if is_of_bank and re.fullmatch(r"\d{4,8}", written) else 0
    if not joint:
        # "Password hunter2": nothing but the name and what a person would not say.
        is_one = _LETTERS_AND_DIGITS.fullmatch(written) and reads_as_password(written)
        return end if is_one and _is_one_value(written) else 0
    if joint in _TO:
        # "Changed the password to …", "das Passwort auf … geändert".
        begun = _CHANGES_IT.search(text, max(0, match.start() - 90), match.start())
        if not begun and not _CHANGED.match(text, end):
            return 0
    # An assignment is read elsewhere.
    return 0 if joint[-1] == "=" else _end_of_value(text, match, joint, written)


def _end_of_value(text: str, match: re.Match[str], joint: str, written: str) -> int:
    start = match.start("value")
    end = start + len(written)
    if text[start - 1] in '"“„«‘' and (quoted := _quoted(text, start)):
        return quoted
    if _looks_made(written):
        # In Spanish and Portuguese the code of a door is a "clave" as well.
        return 0 if match.group("name").lower() == "clave" and written.isdecimal() else end
    if not joint.rstrip(" :：").isalpha() and not _is_label(text, match, joint, end):
        return 0
    many = _MANY_WORDS.match(text, start)
    if many is not None and _FUNCTION.search(many.group()) is None:
        return many.end()
    is_word = len(written) >= 3 and written.isascii() and written.replace("-", "").isalpha()
    return end if is_word and _ENDS.match(text, end) and not _SAYS_OF.fullmatch(written) else 0


def _is_label(text: str, match: re.Match[str], joint: str, end: int) -> bool:
    """Whether a colon stands in a sentence or behind a label, and in no code or form."""
    before = _before(text, match.start())
    if joint[-1] not in ":：" or _IN_CODE.search(before):
        return False
    is_alone = re.fullmatch(r"\s*[\w.-]*\s*", before) is not None
    if not is_alone or _OF_SOMEBODY.fullmatch(before):
        return True
    is_written_out = (before.strip() or match.group("name"))[0].isupper()
    return is_written_out and re.compile(r"[.!]?\s*(?:\n|\Z)").match(text, end) is not None


def _quoted(text: str, start: int) -> int:
    """The end of a quoted value, 0 where the quotes hold a word that is said of passwords."""
    close = re.compile(r"[^\"”“»’\n]{3,80}(?=[\"”“»’])").match(text, start)
    if close is None or _SAYS_OF.fullmatch(close.group()) or is_example(close.group()):
        return 0
    return close.end() if is_literal(close.group()) or " " in close.group() else 0


def _before(text: str, at: int) -> str:
    """What stands before a place in its line, as far as it counts."""
    return text[max(0, at - 80) : at].rpartition("\n")[2]


_SAID_KEY: Final = (
    rf"(?P<name>(?<![a-z0-9])(?:{_sign('key_latin')})|{_sign('key_other')})"
    rf"(?P<link>(?:{_GAP}{_PLAIN}){{0,4}}?"
    rf"(?:{_GAP}{_IS}[:：]?|[^\S\n]{{0,2}}(?:[:：=—–-]|=>|:=|は|が|是|为|為|는|은|คือ)"
    r"|[\"'`][^\S\n]{0,2},|[^\S\n]{0,3}\||(?=[^\S\n]))"
    r"[^\S\n]{0,2}(?:now |jetzt )?[\"'`„“«»‘「『*]{0,3}[^\S\n]?)"
    r"(?P<value>(?=[\w+/=.~:-]{0,200}?\d)[A-Za-z0-9][\w+/=.~:-]{5,200})"
)
_OPENS_NOTHING: Final = re.compile(
    rf"(?:\A|[ _-])(?:{_sign('opens_nothing')})[ _-]?(?:key|token)s?\Z", re.IGNORECASE
)


_ALONE: Final = re.compile(r"(?:keys?|tokens?)\Z", re.IGNORECASE)
_OPENS: Final = re.compile(rf"(?:{_sign('opens')})\Z", re.IGNORECASE)
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_LINK: Final = re.compile(rf"[ \t](?:{_sign('is')})[:：]?[ \t]*\Z", re.IGNORECASE)
_CHANGES: Final = 6
"""From letters to digits, or from one case to the other."""


def said_keys(text: str, lower_text: str, *, dense: bool) -> Iterator[_Span]:
    """Give (start, end, kind) of every value that `text` calls a key and that a machine made.

    Of a key that opens something by its name ("api key", "client secret") a UUID and a short value
    count as well: those are asked for in a text that is not `dense`.
    """
    if len(lower_text) != len(text):
        return
    parts = _parts_in("key_parts" if dense else "open_parts", ascii_only=lower_text.isascii())
    lines = picked(text, first_of(lower_text, parts))
    if not lines.text:
        return
    for match in re.compile(_SAID_KEY, re.IGNORECASE).finditer(lines.text):
        name, written_key = match.group("name"), match.group("value").rstrip(".=-_~:")
        start = match.start("value")
        link = match.group("link")
        # "key = …" is a mapping's in most programs; "the key is …" is said of a secret.
        in_code = "=" in link or (link[0] in ":\"'`")
        if _OPENS_NOTHING.search(name) or (in_code and _ALONE.fullmatch(name)):
            continue
        # Words between the two need a sign that the one is the other.
        is_said = _LINK.search(link) is not None
        if link.strip() and link.strip()[-1].isalnum() and link.isascii() and not is_said:
            continue
        opens = _OPENS.search(name) is not None and (is_said or link.strip() in {":", "：", "="})
        if _is_made_by_machine(written_key) or (opens and _is_short_key(written_key)):
            position = lines.place(start)
            yield position, position + len(written_key), "secret"


def _is_short_key(value: str) -> bool:
    if _UUID.fullmatch(value):
        return True
    digits = sum(map(str.isdigit, value))
    return (
        len(value) >= 8
        and 2 <= digits < len(value)
        and _looks_made(value)
        and not is_resource(value)
        and re.fullmatch(r"[a-z]+(?:[_-][a-z]+)*[_-]?\d{0,4}|[A-Z]+(?:_[A-Z\d]+)*", value) is None
    )


def _is_made_by_machine(value: str) -> bool:
    if len(value) < 20 or is_example(value) or is_resource(value) or _UUID.fullmatch(value):
        return False
    classes = [
        0 if character.isdigit() else 1 if character.islower() else 2
        for character in value
        if character.isalnum()
    ]
    changes = sum(first_class != second_class for first_class, second_class in pairwise(classes))
    digits = classes.count(0)
    words = max(map(len, re.findall(r"[A-Za-z]?[a-z]+", value)), default=0)
    if words >= 12 or len(classes) - digits < 3 or changes < _CHANGES:
        return False
    # Both cases in no order, where joined words change with every fourth letter at most.
    return digits >= 3 or (digits >= 1 and changes >= len(classes) / 2)


_LETTERS_WITH_DIGITS: Final = re.compile(r"[^\W\d_].*\d|\d.*[^\W\d_]", re.DOTALL)
_EXAMPLE: Final = frozenset(WORDS["examples"].split(";"))


def command_secrets(text: str) -> Iterator[_Span]:
    """Give (start, end, kind) of every secret that a command or a variable is given."""
    for hint, pattern in COMMANDS:
        for match in compiled(pattern).finditer(text) if hint in text else ():
            name, value = next((name, part) for name, part in match.groupdict().items() if part)
            if value.lower() in _EXAMPLE or value.startswith(("-", "$", "@", "<", "%")):
                continue
            # A long option is followed by all kinds of words; a literal has a digit.
            is_one = hint != "--" or _LETTERS_WITH_DIGITS.search(value) is not None
            if is_one and is_literal(value):
                yield (*match.span(name), "password")


_COOKIES: Final = re.compile(
    r"(?:\b(?:set-)?cookie[\"']?[ \t]{0,2}:[ \t]{0,2}"
    r"|\bcurl\b[^\n|;]{0,300}?[ \t](?:-b|--cookie)[ =]?)"
    r"[\"']?(?P<pairs>[\w.$!~-]{1,64}=[^\n\"']{1,4000})",
    re.IGNORECASE,
)
_COOKIE: Final = re.compile(r"(?:\A|;[ \t]{0,2})([\w.$!~-]{1,64})=([^\s;,\"']{8,4000})")
_OF_A_COOKIE: Final = re.compile(r"expires|path|domain|max-age|samesite", re.IGNORECASE)


def cookie_secrets(text: str, lowered: str) -> Iterator[_Span]:
    """Give (start, end, kind) of every session in the cookies of a header or of curl."""
    if "cookie" not in lowered and "curl" not in lowered:
        return
    for match in _COOKIES.finditer(text):
        for cookie in _COOKIE.finditer(match.group("pairs")):
            name, value = cookie.groups()
            digits = sum(map(str.isdigit, value))
            # A setting of the page is a word or a number, a session is neither.
            is_random = digits >= 2 and not value.isdecimal() and re.search("[A-Za-z]", value)
            if is_random and not _OF_A_COOKIE.fullmatch(name) and is_literal(value):
                start = match.start("pairs") + cookie.start(2)
                yield start, start + len(value), "cookie"
