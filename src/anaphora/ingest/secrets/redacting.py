"""Takes secrets out of what is to be remembered, before anything touches a disk.

Each becomes a mark that says what it was, `[redacted:aws-access-key]`. Linear in the length of the
text; doing it twice changes nothing. Never keeps, logs or raises with the secret itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from anaphora.errors import InvalidInput
from anaphora.ingest.secrets.forms import DENSE, FORMS
from anaphora.ingest.secrets.signs import (
    COMMANDS,
    NAME_PARTS,
    SAID_PARTS,
    has_pin,
    matching,
    picked,
)

MAX_DEPTH: Final = 100
"""Objects and lists within one another that `redact_value` follows."""

_MOST_PASSES = 8
_Span = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class RedactedText:
    """A text without its secrets; `kinds` has one entry for each that was taken out.

    They are in order, those that only came free when another one was gone last.
    """

    text: str
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RedactedValue:
    """A value of the same shape without its secrets, and what was taken out, in order."""

    value: Any
    kinds: tuple[str, ...] = ()


def redact(text: str, *, keep_lines: bool = False) -> RedactedText:
    """Replace every secret in `text` by `[redacted:kind]`.

    With `keep_lines` the line feeds in a secret stay behind its mark: every other line keeps its
    number.
    """
    kinds: list[str] = []
    # A secret can stand free, and so be known, only when what it was joined to is gone.
    for _ in range(_MOST_PASSES):
        spans = _merge(_find_spans(text))
        if not spans:
            break
        text = _mark(text, spans, keep_lines=keep_lines)
        kinds.extend(kind for _, _, kind in spans)
    return RedactedText(text, tuple(kinds))


_JOINTS = re.compile(r"([./:#])")


def redact_path(path: str) -> RedactedText:
    """Replace the secrets in a path, also those that are one part of it.

    Such a part has a dot or a slash where words have a space.
    """
    redacted_path = redact(path)
    parts = [redact(part) for part in _JOINTS.split(redacted_path.text)]
    kinds = (kind for part in (redacted_path, *parts) for kind in part.kinds)
    return RedactedText("".join(part.text for part in parts), tuple(kinds))


def secrets_in(text: str) -> dict[str, str]:
    """The secrets that `redact` takes out of `text`, for callers that must find them elsewhere.

    They are in the caller's hands then: nothing of them is to be kept.
    """
    secrets: dict[str, str] = {}
    for _ in range(_MOST_PASSES):
        spans = _merge(_find_spans(text))
        if not spans:
            break
        secrets.update((text[start:end], kind) for start, end, kind in spans)
        text = _mark(text, spans, keep_lines=False)
    return secrets


def places_of_secrets(text: str) -> list[tuple[int, int]]:
    """Where the secrets in `text` stand, in order, none of them within another."""
    return [(start, end) for start, end, _ in _merge(_find_spans(text))]


def _mark(text: str, spans: list[_Span], *, keep_lines: bool) -> str:
    parts: list[str] = []
    at = 0
    for start, end, kind in spans:
        feeds = text.count("\n", start, end) if keep_lines else 0
        parts += (text[at:start], f"[redacted:{kind}]", "\n" * feeds)
        at = end
    return "".join((*parts, text[at:]))


def redact_value(value: Any) -> RedactedValue:
    """Replace the secrets in the texts of a JSON-like value: mappings, lists, tuples, scalars.

    Keys stay as they are, and a key that names a secret (`{"password": "…"}`) counts as the word
    before it. A whole number that is a card number becomes the mark, a text. Raises InvalidInput
    for what is nested deeper than `MAX_DEPTH`.
    """
    kinds: list[str] = []
    return RedactedValue(_walk(value, "", kinds, 0), tuple(kinds))


def _walk(value: Any, name: str, kinds: list[str], depth: int) -> Any:
    if isinstance(value, str):
        return _redact_field(name, value, kinds)
    if isinstance(value, int) and not isinstance(value, bool):
        # Python refuses to write out the largest numbers, and none of those is a card's.
        text = str(value) if abs(value) < 10**400 else ""
        # The field shows that the number is not a card's, although it looks like one.
        if bool(name) and not redact(f"{name}: {text}").kinds and bool(redact(text).kinds):
            return value
        redacted_text = _redact_field(name, text, kinds)
        return value if redacted_text == text else redacted_text
    if not isinstance(value, dict | list | tuple):
        return value
    if depth >= MAX_DEPTH:
        raise InvalidInput("payload", "…", f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        return {
            key: _walk(part, key if isinstance(key, str) else "", kinds, depth + 1)
            for key, part in value.items()
        }
    parts = [_walk(part, name, kinds, depth + 1) for part in value]
    return parts if isinstance(value, list) else tuple(parts)


def _redact_field(name: str, text: str, kinds: list[str]) -> str:
    from anaphora.ingest.secrets.assigned import is_secret_value

    redacted_text = redact(text)
    if not redacted_text.kinds and (kind := is_secret_value(name, text)) is not None:
        redacted_text = RedactedText(f"[redacted:{kind}]", (kind,))
    kinds.extend(redacted_text.kinds)
    return redacted_text.text


_DENSE_RUN = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{DENSE}}}")


# What is not seen may stand within a secret: joiners, marks of direction, soft hyphens, selectors.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]+"
)


def _find_spans(text: str) -> Iterator[_Span]:
    yield from _scan(text)
    if text.isascii() or _UNSEEN.search(text) is None:
        return
    # Once more without them; what stood between two others ends no secret.
    positions: list[int] = []
    at = 0
    for match in _UNSEEN.finditer(text):
        positions.extend(range(at, match.start()))
        at = match.end()
    positions.extend(range(at, len(text)))
    for start, end, kind in _scan("".join(map(text.__getitem__, positions))):
        yield positions[start], positions[end - 1] + 1, kind


_ASKED = tuple((form, form.hint, form.caseless) for form in FORMS)
_LOOSE = tuple(asked for asked in _ASKED if asked[0].loose)
_BLANK = 12
_HINTS = {
    *(hint.lower() for _, hint, _ in _LOOSE if hint),
    *("private key", "putty", "://", "login", "cookie"),
    *(hint.lower() for hint, _ in COMMANDS),
    *NAME_PARTS,
    *SAID_PARTS,
}
# What contains another one needs not be looked for.
_SIGNS = tuple(hint for hint in _HINTS if not any(part in hint for part in _HINTS - {hint}))
_PLAIN_SIGNS = tuple(filter(str.isascii, _SIGNS))
_DIGITS = re.compile(r"\d\d(?:\d\d[ -]?|[ -])\d{4}", re.ASCII)


def _scan(text: str) -> Iterator[_Span]:
    dense, lower_text = picked(text, matching(text, _DENSE_RUN)), text.lower()
    # Without any of these, a text holds no secret.
    signs = _PLAIN_SIGNS if text.isascii() else _SIGNS
    has_sign = dense.text or len(lower_text) != len(text) or _DIGITS.search(text)
    if not (has_sign or any(map(lower_text.__contains__, signs)) or has_pin(lower_text)):
        return
    from anaphora.ingest.secrets.assigned import assigned_secrets
    from anaphora.ingest.secrets.examples import is_example
    from anaphora.ingest.secrets.said import (
        command_secrets,
        cookie_secrets,
        said_keys,
        said_secrets,
    )

    # Most sentences have no line that could hold a key: then half of the table is not asked.
    for form, hint, in_lower in _ASKED if dense.text else _LOOSE:
        within = text if form.loose else dense.text
        if hint not in (lower_text if in_lower else within):
            continue
        for match in form.find(within):
            start, end = match.span(form.group)
            # Manuals write "ghp_xxxxxxxxxxxx" in the place of a secret.
            if len(set(within[end - _BLANK : end].rstrip("="))) == 1:
                continue
            if not form.loose:
                start, end = dense.place(start), dense.place(end)
            yield start, end, form.kind
    yield from _find_private_keys(text)
    for match in _URL_PASSWORD.finditer(text):
        if not _TEMPLATE.fullmatch(match.group(1)) and not is_example(match.group(1)):
            yield (*match.span(1), "basic-auth")
    yield from _find_numbers(text)
    yield from assigned_secrets(text, lower_text)
    for start, end, kind in said_keys(dense.text, dense.text.lower(), dense=True):
        yield dense.place(start), dense.place(end), kind
    yield from said_keys(text, lower_text, dense=False)
    yield from said_secrets(text, lower_text)
    yield from command_secrets(text)
    yield from cookie_secrets(text, lower_text)


def _merge(spans: Iterator[_Span]) -> list[_Span]:
    """Spans in order; overlapping ones become one span, of the kind that `_find_spans` gives first.

    Nothing of any of them may remain, so the joined span covers all of them; the kinds found first
    are the most specific ones.
    """
    ranked_spans = [(start, end, rank, kind) for rank, (start, end, kind) in enumerate(spans)]
    merged_spans: list[tuple[int, int, int, str]] = []
    for start, end, rank, kind in sorted(ranked_spans):
        if not merged_spans or start >= merged_spans[-1][1]:
            merged_spans.append((start, end, rank, kind))
            continue
        merged_start, merged_end, old_rank, old_kind = merged_spans[-1]
        best_kind = min((old_rank, old_kind), (rank, kind))
        merged_spans[-1] = (merged_start, max(merged_end, end), *best_kind)
    return [(start, end, kind) for start, end, _, kind in merged_spans]


_KEY_BEGINS = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_KEY_ENDS = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)? ?-{4,5}")
# The lines of a key without its end marker; a mention of the marker in a sentence has none.
_KEY_BODY = re.compile(r"(?:[\s\\>|]|[\w+/=]{16,}(?![\w+/=])|[A-Z][\w-]{1,20}: [^\n]{0,200}\n)+")
# What stands between the markers of a key: base64, by lines or with their feeds escaped.
_KEY_RUN = re.compile(r"[A-Za-z0-9+/=]{16,}")
_KEY_SHARE = 0.4
"""Of the characters between the markers; the rest is headers, quotes, escapes and indentation."""
_LONGEST_KEY = 20_000
"""Characters of a key of 16384 bits with every feed escaped twice."""
_PUTTY = re.compile(r"PuTTY-User-Key-File-\d")
_PUTTY_ENDS = re.compile(r"Private-MAC: ?[0-9a-fA-F]{16,}")


def _find_private_keys(text: str) -> Iterator[_Span]:
    for hint, begins, ends in (
        ("PRIVATE KEY", _KEY_BEGINS, _KEY_ENDS),
        ("PuTTY", _PUTTY, _PUTTY_ENDS),
    ):
        if hint not in text:
            continue
        at = 0
        last_start = last_end = -1
        while match := begins.search(text, at):
            if last_end != 0 and last_start < match.end():
                end_match = ends.search(text, match.end())
                # 0 means that there is none: the rest is not searched repeatedly.
                last_start, last_end = end_match.span() if end_match else (0, 0)
            is_key = False
            if last_end and last_start - match.end() <= _LONGEST_KEY:
                # Between the markers is a key, and not code that looks for them.
                runs = (run.group() for run in _KEY_RUN.finditer(text, match.end(), last_start))
                size = sum(len(run) for run in runs if len(set(run)) > 4)
                between = len(text[match.end() : last_start].strip())
                is_key = size >= 16 and size >= _KEY_SHARE * between
            if is_key:
                end = last_end
            else:
                body = _KEY_BODY.match(text, match.end())
                end = body.end() if body and len(body.group().strip()) >= 16 else match.end()
            if end > match.end():
                yield match.start(), end, "private-key"
            at = end


_URL_PASSWORD = re.compile(
    r"://[^\s:/?#@\[\]\"'<>]{0,256}:([^\s/?#@\"'<>]{1,256})@(?=[\w\[])", re.ASCII
)


_TEMPLATE = re.compile(r"\$\{?\w+\}?|\{+[^{}]*\}+|%\w*%?|\*+|x{3,}|\.{3}|\[.*", re.IGNORECASE)


# As printed on cards, or without a gap; the groups must have one separator throughout, so that
# columns of numbers and phone numbers are not read as one long number.
_CARD = re.compile(
    r"(?<![\w.,+$€£/-])(?:\d{14,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?"
    r"|3\d{3}([ -])\d{6}\2\d{4,5})(?![\w/-]|[.,]\d| \d)",
    re.ASCII,
)


_CARD_WORD = re.compile(
    r"card|kart|visa|amex|master|express|maestro|diners|discover|jcb|union|\bcc\b|\bpan\b|カード|卡",
    re.IGNORECASE,
)
_ASSIGNMENT = re.compile(r"(?:=|:|\(|\[|[\w\"'\])]\s{0,3},)\s{0,3}[\"']?\Z|[<>+*%&|^~=#-]\s?\Z")
_IN_A_ROW = re.compile(
    r"(?:(?<![^\W\d_])[MLHVCSQTAZ]|\d|(?<![^\W_])(?=[A-F]{0,3}\d)[\dA-F]{4})\s?\Z"
)
_EIGHT_DIGITS = re.compile(r"\d{4}[ -]?\d{4}", re.ASCII)


def _find_numbers(text: str) -> Iterator[_Span]:
    """The numbers of payment cards, then those of US social security."""
    for match in _CARD.finditer(text) if _EIGHT_DIGITS.search(text) else ():
        digits = re.sub(r"[ -]", "", match.group())
        # An issuer's prefix, its length and the Luhn sum (ISO/IEC 7812-1) agree.
        doubled = (int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(digits)))
        luhn = (number - 9 if number > 9 else number for number in doubled)
        issued = _is_issued(digits) and len(set(digits)) > 1 and sum(luhn) % 10 == 0
        if not issued:
            continue
        before = text[max(0, match.start() - 60) : match.start()]
        behind = text[match.end() : match.end() + 30]
        # Quantities, or a value in code with a name that is not a card's.
        is_plain = match.group().endswith("000000") or _ASSIGNMENT.search(before)
        if not match.group().isdigit():
            # Of a list of numbers, or of a path of a drawing, every group is one by itself.
            is_plain = _IN_A_ROW.search(before)
        if not is_plain or _CARD_WORD.search(before) or _CARD_WORD.search(behind):
            yield (*match.span(), "card-number")
    # No area 000, 666 or 9xx, no group 00, no serial 0000.
    for match in _SSN.finditer(text) if _SIX_DIGITS.search(text) else ():
        before = text[max(0, match.start() - 60) : match.start()]
        # With spaces they look like any three numbers: then the words must stand before them.
        if match.group(1) == "-" or _SSN_WORD.search(before):
            yield (*match.span(), "us-ssn")


def _is_issued(digits: str) -> bool:
    size = len(digits)
    two, three, four = (int(digits[:count]) for count in (2, 3, 4))
    if size == 16:
        discover = four == 6011 or two == 65 or 644 <= three <= 649
        mastercard = 51 <= two <= 55 or 2221 <= four <= 2720
        return digits[0] == "4" or mastercard or discover or 3528 <= four <= 3589 or two == 62
    if size == 15:
        return two in (34, 37)
    if size == 14:
        return two in (36, 38, 39) or 300 <= three <= 305
    return size in (17, 18, 19) and two == 62


_SSN = re.compile(
    r"(?<![\w.,+/-])(?!000|666|9)\d{3}([ -])(?!00)\d{2}\1(?!0000)\d{4}(?![\w/-]|[.,]\d| \d)",
    re.ASCII,
)
_SIX_DIGITS = re.compile(r"\d\d[ -]\d{4}", re.ASCII)
_SSN_WORD = re.compile(r"\bSSN|social security|\bsoc(?:\.|ial) sec", re.IGNORECASE)
