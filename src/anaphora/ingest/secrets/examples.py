"""The stand-ins for secrets in manuals, tests and templates.

A value that only names what should stand there ("your-api-key", "testpassword"), a word that
programmers use for anything ("foobar"), a template ("${TOKEN}") and a resource ("arn:aws:…") open
nothing. A value with digits of its own is no example: people choose "password123", too.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

__all__ = ["is_example", "is_named_after_its_use", "is_resource"]

_ROLES: Final = (
    r"pass(?:word|wd|wort|phrase|code)?s?|p?ssword|pwd|secrets?|tokens?|keys?|api|credentials?"
    r"|o?auth|bearer|user(?:name)?|admin|login|client|values?|strings?|redacted|hidden"
)
_FILLERS: Final = (
    r"examples?|samples?|dummy|fake|mock|tests?|default|your|my|our|the|some|this|any|new|old|super"
    r"|very|wrong|bad|good|correct|incorrect|invalid|valid|secure|strong|weak|plain|text|real|not"
    r"|no|is|a|an|to|be|of|change|changed|me|here|insert|enter|matter|random|access"
    r"|refresh|private|encryption|signing|master|service|app|database|db|root|use|allow|goes|required|needed|missing|empty|none|provided|set|does|exists?|anonymous|anoncvs|pserver|guest"
)
# Names that stand for anything in programs.
_ANYTHING: Final = r"foo|bar|baz|qux|quux|spam|eggs|abc|xyz|blah|lorem|ipsum|whatever"
_EXAMPLE: Final = re.compile(rf"(?:{_ROLES}|{_FILLERS}|{_ANYTHING})+")
_LONGEST: Final = 120
_ESCAPE: Final = re.compile(r"\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}")


def is_example(value: str) -> bool:
    """Whether a value is made of the words that manuals write in the place of one."""
    if len(value) > _LONGEST:
        return False
    plain = unquote(_ESCAPE.sub("", value)) if "%" in value or "\\" in value else value
    letters = re.sub(r"[\W\d_]", "", plain).lower()
    digits = sum(map(str.isdigit, plain))
    if digits or len(letters) < 3:
        return len(letters) + digits <= 3
    bare = re.sub(rf"(?:{_ANYTHING}|pass)", "", letters) if len(plain) != len(letters) else letters
    return len(bare) < 3 or _EXAMPLE.fullmatch(letters) is not None


_FEEDS: Final = re.compile(r"(?:\\[rnt])+\Z")
# Words that are joined as names are; constants in capitals may have numbers: RSA_4096.
_CONSTANT: Final = re.compile(r"[A-Z]{2,}(?:[_-][A-Z\d]{1,12}){1,6}")
_ONE_WORD: Final = re.compile(r"[_.]?[A-Z]?[a-z]{2,15}[_?]?|\.[a-z.]{2,60}")


def is_named_after_its_use(text: str) -> bool:
    """Whether the value of a key or of a token is a word, a constant or an example of one."""
    text = _FEEDS.sub("", text)
    if _ONE_WORD.fullmatch(text) or _CONSTANT.fullmatch(text):
        return True
    letters = re.sub(r"\d", "", text)
    few_others = len(text) - len(letters) <= 3
    return few_others and (is_example(letters) or _WORDS_OF_A_NAME.fullmatch(text) is not None)


_WORDS_OF_A_NAME: Final = re.compile(
    r"(?=.*(?:secret|token|key|credential|auth|pass))_?[a-z]{1,20}\d?(?:[_.-](?:[a-z]{1,20}\d?|\d))+"
    r"|(?=.*(?:Secret|Token|Key|Credential|Auth|Pass))(?:[A-Z]{1,5}(?=[A-Z]))?[A-Za-z][a-z]{1,20}(?:[A-Z][a-z]{1,20})+",
)
_RESOURCE: Final = re.compile(
    # The name of a cloud resource, a path of words and numbers, a file, or the scope of a
    # signature: "key/20240131/us-east-1/s3/aws4_request".
    r"arn:[\w-]{2,20}:.*|/?[a-z]+(?:[_-][a-z]+)*\d?(?:/(?:[a-z]+(?:[_-][a-z]+)*\d?|\d{1,6})){1,12}"
    r"|(?:[~.]{0,2}/)?(?:[\w.-]{1,40}/){1,12}[\w-]{1,60}\.[a-z]{2,4}|[^/]+/\d{8}/[\w/-]+"
    r"|~?(?:/[A-Za-z._-]{1,40}){2,12}",
    re.DOTALL,
)


def is_resource(value: str) -> bool:
    """Whether a value says where a secret lies: the name of a resource, or a path."""
    return _RESOURCE.fullmatch(value) is not None
