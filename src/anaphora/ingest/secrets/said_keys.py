"""Keys of no known form that a sentence or a setting calls one: "der Schlüssel lautet …".

A value counts if a machine made it: 20 characters or more, in which letters and digits alternate.
A hash does so as well, so the word before it must be of a key that opens something: keys of a
cache, of a row or of an object, and public keys, are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from anaphora.ingest.secrets.examples import is_example, is_resource
from anaphora.ingest.secrets.patterns import first_of, picked

__all__ = ["said_keys"]

_LATIN: Final = (
    r"(?:[a-z0-9]{2,20}[ _-]){0,2}(?:key|token|secret|credential)s?"
    r"|(?:api[ -]?)?(?:schlüssel|clé|clef|clave|llave|chave|chiave|sleutel|nyckel|nøgle|nøkkel"
    r"|avain|klucz|klíč|kľúč|kulcs|cheie|anahtar|jeton|khóa)\w{0,3}"
)
_OTHER: Final = (
    r"ключ|токен|секрет|κλειδί|مفتاح|رمز|מפתח|कुंजी|कुंजी|टोकन"
    r"|密钥|密鑰|金鑰|金钥|令牌|密匙|秘钥|キー|トークン|シークレット|鍵|키|토큰|คีย์|โทเค็น"
)
_IS: Final = (
    r"is|was|ist|war|lautet|hei(?:ß|ss)t|est|était|es|era|é|è|foi|jest|to|je|är|er|on|este|a"
    r"|là|είναι|это|есть|هو|هي|היא|הוא|है"
)
_SAID: Final = re.compile(
    rf"(?P<name>(?<![a-z0-9])(?:{_LATIN})|{_OTHER})"
    r"(?P<link>(?:[^\S\n]{1,2}[^\W_][\w.'’@/-]{0,24}){0,4}?"
    rf"(?:[^\S\n]{{1,2}}(?:{_IS})[:：]?|[^\S\n]{{0,2}}(?:[:：=—–-]|=>|:=|は|が|是|为|為|는|은|คือ)"
    r"|[\"'`][^\S\n]{0,2},|[^\S\n]{0,3}\||(?=[^\S\n]))"
    r"[^\S\n]{0,2}(?:now |jetzt )?[\"'`„“«»‘「『*]{0,3}[^\S\n]?)"
    r"(?P<value>[A-Za-z0-9][\w+/=.~-]{19,200})",
    re.IGNORECASE,
)
_PARTS: Final = (
    *("key", "token", "secret", "credential", "schlüssel", "clé", "clef", "clave", "llave"),
    *("chave", "chiave", "sleutel", "nyckel", "nøgle", "nøkkel", "avain", "klucz", "klíč", "kľúč"),
    *("kulcs", "cheie", "anahtar", "jeton", "khóa", "ключ", "токен", "секрет", "κλειδί", "مفتاح"),
    *("رمز", "מפתח", "कुंजी", "टोकन", "密钥", "密鑰", "金鑰", "金钥", "令牌", "密匙", "秘钥"),
    *("キー", "トークン", "シークレット", "鍵", "키", "토큰", "คีย์", "โทเค็น"),
)
_OPENS_NOTHING: Final = re.compile(
    r"(?:\A|[ _-])(?:public|pub|cache|partition|primary|foreign|sort|idempotency|object|s3|row|host"
    r"|page|next|starting"
    r"|translation|dedupe|routing|group|state|registry|unique|index|ssh|map|lookup|hash|etag|file"
    r"|blob|item|node|job|query|known|restore|store|sync|change|lock|request|continuation|csrf"
    r"|count|max|min|pad|eos|bos|sep|cls|mask|special|publishable|anon|site|measurement)"
    r"[ _-]?(?:key|token)s?\Z",
    re.IGNORECASE,
)
_ALONE: Final = re.compile(r"(?:keys?|tokens?)\Z", re.IGNORECASE)
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_LINK: Final = re.compile(rf"[ \t](?:{_IS})[:：]?[ \t]*\Z", re.IGNORECASE)
_CHANGES: Final = 6
"""From letters to digits, or from one case to the other."""


def said_keys(text: str) -> Iterator[tuple[int, int, str]]:
    """Give (start, end, kind) of every value that `text` calls a key and that a machine made."""
    lower_text = text.lower()
    if len(lower_text) != len(text):
        return
    lines = picked(text, first_of(lower_text, _PARTS))
    for match in _SAID.finditer(lines.text):
        name, written_key = match.group("name"), match.group("value").rstrip(".=-_~")
        start = match.start("value")
        link = match.group("link")
        # "key = …" is a mapping's in most programs; "the key is …" is said of a secret.
        in_code = "=" in link or (link[0] in ":\"'`")
        if _OPENS_NOTHING.search(name) or (in_code and _ALONE.fullmatch(name)):
            continue
        # Words between the two need a sign that the one is the other.
        if (
            link.strip()
            and link.strip()[-1].isalnum()
            and link.isascii()
            and not _LINK.search(link)
        ):
            continue
        if _is_made_by_machine(written_key):
            position = lines.place(start)
            yield position, position + len(written_key), "secret"


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
