"""Masks the secrets in values that leave a home: for a prompt or another program.

Turns are stored word for word, and so are their titles. `mask` gives what a surface may hand on:
the same value with `[redacted:kind]` where a secret stood. Memories, notes and documents were
redacted before they were stored, but for a secret that the owner kept on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

from anaphora.ingest.secrets.redacting import (
    places_of_secrets,
    redact,
    redact_path,
    redact_value,
    secrets_in,
)
from anaphora.text.hidden_ids import hidden_id
from anaphora.values.conversations import ThreadSummary, Turn
from anaphora.values.search import SearchHit

__all__ = ["cut_between_secrets", "mask", "mask_handle", "mask_text", "seems_to_hold_secrets"]

ValueT = TypeVar("ValueT")

_HANDLES: Final = frozenset((
    *("id", "conversation_id", "kind", "role", "type", "status", "name", "home", "namespace"),
    *("ts_text", "updated_text", "intent_id", "part", "action", "created_at", "project"),
    *("older_than", "thread", "key"),
))  # fmt: skip
"""Fields that identify a value, and words of our own."""
_IDS: Final = frozenset(("id", "conversation_id", "older_than", "thread", "key"))
"""Those of them that may have been chosen outside of this program."""
# A word of letters and digits together, or one that begins like a key: "ghp_", "sk-proj-".
_FRAGMENT: Final = re.compile(
    r"(?=[^\s…]{0,200}\d)(?=[^\s…]{0,200}[A-Za-z])[A-Za-z0-9_+/=.:-]{8,}\Z|[A-Za-z0-9]{2,12}[_-]\S{0,40}\Z"
)
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:#\d+)?")
_FIELDS_BY_NAME: Final = frozenset(("payload", "details"))
_LEAST_SHOWN: Final = 6
"""Characters of a secret at the edge of a cut text that give it away."""


def mask(value: ValueT) -> ValueT:
    """The value with the secrets masked in each text of its turns, hits, answers and titles.

    Values are frozen: what changes is replaced, what holds no secret is the same object.
    """
    return cast("ValueT", _mask(value))


def mask_text(text: str) -> str:
    """The text with `[redacted:kind]` for each secret in it."""
    return redact(text).text


_LOOKED_AT: Final = 4_000
"""Characters on both sides of a cut: a private key of 4096 bits has 3,300."""
_BEFORE: Final = 120
_AFTER: Final = 100
"""Characters around a secret by which it may be known, as "password:" is."""


@lru_cache(maxsize=1024)
def mask_handle(name: str) -> str:
    """An id as it may leave the home: where it holds a secret, a name that stands for it.

    The place of a turn, `id#7`, keeps its number.
    """
    if _UUID.fullmatch(name) or not redact_path(name).kinds:
        return name
    stem, mark, index = name.rpartition("#")
    return f"{hidden_id(stem)}#{index}" if mark and index.isdecimal() else hidden_id(name)


def cut_between_secrets(text: str, start: int, end: int) -> tuple[int, int]:
    """Where to cut a passage out of a text, so that no secret loses what it is known by.

    Half a key is no longer known as one, nor is a password without the word before it: a cut that
    falls there moves into the passage. Where the passage lies in one secret alone, what stands
    before that comes in its place.
    """
    size = end - start
    for secret_start, secret_end in _find_around(text, start) if start > 0 else ():
        if secret_start - _BEFORE < start < secret_end:
            start = secret_end
    for secret_start, secret_end in reversed(_find_around(text, end) if end < len(text) else []):
        if secret_start < end < secret_end + _AFTER:
            end = secret_start
    if start < end:
        return start, end
    return (max(0, end - size), end) if end > 0 else (start, min(len(text), start + size))


def _find_around(text: str, position: int) -> list[tuple[int, int]]:
    begin = max(0, position - _LOOKED_AT)
    window = text[begin : position + _LOOKED_AT]
    return [(begin + start, begin + end) for start, end in places_of_secrets(window)]


def seems_to_hold_secrets(turns: Iterable[Turn]) -> list[int]:
    """The indexes of the turns that seem to contain a secret."""
    return [index for index, turn in enumerate(turns) if redact(turn.text).kinds]


def _mask(value: Any) -> Any:
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, SearchHit):
        return _mask_hit(value)
    if isinstance(value, ThreadSummary):
        title, preview = _mask_label(value.title), _mask_label(value.preview)
        name = mask_handle(value.conversation_id)
        is_unchanged = (title, preview, name) == (value.title, value.preview, value.conversation_id)
        if is_unchanged:
            return value
        return replace(value, title=title, preview=preview, conversation_id=name)
    if isinstance(value, tuple):
        parts = tuple(map(_mask, value))
        is_same = all(a is b or a == b for a, b in zip(parts, value, strict=True))
        return value if is_same else parts
    if isinstance(value, list):
        return [_mask(part) for part in value]
    if isinstance(value, Mapping):
        return {key: _mask_member(key, member) for key, member in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return _mask_fields(value)
    return value


def _mask_member(key: str, value: Any) -> Any:
    if key in _FIELDS_BY_NAME:
        # Here the name of a field counts, as it did before the value was stored.
        return redact_value(value).value
    if key not in _HANDLES:
        return _mask(value)
    return mask_handle(value) if key in _IDS and isinstance(value, str) else value


def _mask_fields(value: Any) -> Any:
    changed_fields = {}
    for field in fields(value):
        if not field.init:
            continue
        field_value = getattr(value, field.name)
        if field.name in _HANDLES or field.name in _FIELDS_BY_NAME:
            if (name := _mask_member(field.name, field_value)) != field_value:
                changed_fields[field.name] = name
            continue
        if isinstance(field_value, str | tuple | list | Mapping) or is_dataclass(field_value):
            masked_value = _mask(field_value)
            if masked_value is not field_value and masked_value != field_value:
                changed_fields[field.name] = masked_value
    return replace(value, **changed_fields) if changed_fields else value


def _mask_hit(hit: SearchHit) -> SearchHit:
    """A hit of a search; its snippet may begin or end within a secret of the whole text."""
    names = ("id", "conversation_id", "older_than")
    originals = {name: getattr(hit, name) for name in names}
    masked_fields = {name: _mask_member(name, original) for name, original in originals.items()}
    hit = hit if masked_fields == originals else replace(hit, **masked_fields)
    secrets = secrets_in(hit.text)
    if not secrets and not redact(hit.title).kinds and not redact(hit.snippet).kinds:
        versions = _mask(hit.versions)
        return hit if versions == hit.versions else replace(hit, versions=versions)
    snippet = hit.snippet
    for secret, kind in sorted(secrets.items(), key=lambda pair: -len(pair[0])):
        mark = f"[redacted:{kind}]"
        snippet = snippet.replace(secret, mark)
        # It was cut out of a longer text: the part of a secret at its edges goes too.
        bare = snippet.strip("… ")
        for length in range(min(len(secret), len(bare)) - 1, _LEAST_SHOWN - 1, -1):
            if bare.startswith(secret[-length:]):
                snippet = snippet.replace(secret[-length:], mark, 1)
            if bare.endswith(secret[:length]):
                head, _, tail = snippet.rpartition(secret[:length])
                snippet = f"{head}{mark}{tail}"
    snippet = mask_text(snippet)
    return replace(
        hit,
        text=mask_text(hit.text),
        snippet=snippet,
        title=mask_text(hit.title),
        versions=_mask(hit.versions),
        # Places of words in a text that is another one now.
        matches=hit.matches if snippet == hit.snippet else (),
    )


def _mask_label(text: str) -> str:
    """The beginning of a text; the word at which it was cut may be the beginning of a secret."""
    masked_text = mask_text(text)
    fragment = _FRAGMENT.search(masked_text.removesuffix("…")) if text.endswith("…") else None
    return masked_text if fragment is None else f"{masked_text[: fragment.start()]}…"
