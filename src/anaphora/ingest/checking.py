"""What may be remembered: checks a memory, and takes the secrets out of it.

In: what the caller passed. Out: a `NewMemory` that truth can hold, and the kinds of secrets that
were removed. `InvalidInput` names the field. It never shortens, trims or normalises words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, Final, get_args

from anaphora.core.arguments import MOST, checked_moment
from anaphora.errors import InvalidInput
from anaphora.ingest.secrets.redacting import redact, redact_value
from anaphora.values.memories import MemoryType, NewMemory

MAX_PATH: Final = 1_024
"""Characters in a path."""
MAX_DEPTH: Final = 100
"""Objects and lists within one another in a payload."""
CHANGEABLE: Final = ("text", "payload", "path", "type", "tags", "category", "expires_at")
"""What `update` can change."""

Given = NewMemory | str | Mapping[str, Any]
"""What many memories may be given as."""

_FIELDS = tuple(field.name for field in fields(NewMemory))
_KNOWN = ", ".join(_FIELDS)
_TYPES = get_args(MemoryType)
_SEPARATORS = re.compile(r"([./:#])")


def as_new(item: object) -> NewMemory:
    """What one item of many stands for: a memory, its text alone, or a mapping of its fields.

    Raises InvalidInput about "item" for anything else, and about a field that there is not.
    """
    if isinstance(item, NewMemory):
        return item
    if isinstance(item, str):
        return NewMemory(item)
    if not isinstance(item, Mapping):
        raise InvalidInput("item", item, "expected a text, a mapping of fields, or a NewMemory")
    for name in item:
        if name not in _FIELDS:
            raise InvalidInput(str(name), item[name], f"no such field; there are {_KNOWN}")
    if "text" not in item:
        raise InvalidInput("text", None, "is required")
    return NewMemory(**item)


def checked(new: NewMemory) -> NewMemory:
    """The memory with tags as a tuple and payload as plain JSON values.

    Raises InvalidInput with the name of the field that cannot be used.
    """
    _text("text", new.text)
    for name in ("category", "source", "conversation_id", "parent", "supersedes"):
        _optional_text(name, getattr(new, name))
    for name in ("expires_at", "created_at"):
        _time(name, getattr(new, name))
    _turn(new.turn_index)
    for name in ("dedupe", "redact"):
        if not isinstance(getattr(new, name), bool):
            raise InvalidInput(name, getattr(new, name), "expected True or False")
    return replace(
        new,
        type=_type(new.type),
        path=_path(new.path),
        tags=_tags(new.tags),
        payload=_payload(new.payload),
    )


def checked_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes of an update, each checked as for `remember`.

    Raises InvalidInput for a field that cannot change, or a value that it cannot have.
    """
    if not changes:
        raise InvalidInput("changes", changes, f"needs at least one of {', '.join(CHANGEABLE)}")
    for name in changes:
        if name not in CHANGEABLE:
            raise InvalidInput("changes", name, f"expected {', '.join(CHANGEABLE)}")
    whole = checked(NewMemory(**({"text": "-"} | dict(changes))))
    return {name: getattr(whole, name) for name in changes}


def without_secrets(new: NewMemory) -> tuple[NewMemory, tuple[str, ...]]:
    """The memory without its secrets, and the kinds of them, each once, in order."""
    kinds: list[str] = []

    def clean(text: str | None) -> str | None:
        if text is None:
            return None
        found = redact(text)
        kinds.extend(kind.value for kind in found.kinds)
        return found.text

    payload = new.payload
    text = clean(new.text) or ""
    if payload is not None:
        found = redact_value(payload)
        kinds.extend(kind.value for kind in found.kinds)
        payload = _clean_names(found.value, kinds)
    cleaned = replace(
        new,
        text=text,
        payload=payload,
        tags=tuple(clean(tag) or tag for tag in new.tags),
        # A secret that is a part of a path has a dot or a slash where words have a space.
        path=None
        if new.path is None
        else "".join(clean(part) or "" for part in _SEPARATORS.split(clean(new.path) or "")),
        category=clean(new.category),
        source=clean(new.source),
        conversation_id=clean(new.conversation_id),
    )
    return cleaned, tuple(dict.fromkeys(kinds))


def _clean_names(value: Any, kinds: list[str]) -> Any:
    """The same JSON value without secrets in the names of its fields."""
    if isinstance(value, list):
        return [_clean_names(item, kinds) for item in value]
    if not isinstance(value, dict):
        return value
    cleaned: dict[str, Any] = {}
    for name, item in value.items():
        found = redact(name)
        kinds.extend(kind.value for kind in found.kinds)
        free, number = found.text, 2
        while free in cleaned:
            free, number = f"{found.text} ({number})", number + 1
        cleaned[free] = _clean_names(item, kinds)
    return cleaned


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(name, value, "must be a text")
    if not value.strip():
        raise InvalidInput(name, value, "must not be blank")
    return value


def _optional_text(name: str, value: object) -> None:
    if value is not None:
        _text(name, value)


def _type(value: object) -> MemoryType:
    for known in _TYPES:
        if value == known:
            return known  # type: ignore[no-any-return]
    raise InvalidInput("type", value, f"expected one of {', '.join(_TYPES)}")


def _path(value: object) -> str | None:
    if value is None:
        return None
    path = _text("path", value)
    if path != path.strip():
        raise InvalidInput("path", path, "must not begin or end with white space")
    if len(path) > MAX_PATH:
        raise InvalidInput("path", path, f"must have at most {MAX_PATH} characters")
    if not path.isprintable():
        raise InvalidInput("path", path, "must have no control characters or lone surrogates")
    return path


def _tags(value: object) -> tuple[str, ...]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise InvalidInput("tags", value, "must be a list of texts")
    return tuple(dict.fromkeys(_text("tags", tag) for tag in value))


def _time(name: str, value: object) -> None:
    if value is not None:
        checked_moment(name, value)


def _turn(value: object) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
        raise InvalidInput("turn_index", value, "must be a number from 0")


def _payload(value: object) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InvalidInput("payload", type(value).__name__, "must be a JSON object")
    plain = _plain(value, "payload", 0)
    assert isinstance(plain, dict)
    return plain


def _plain(value: object, place: str, depth: int) -> Any:
    """The JSON value that `value` is, in fresh dicts and lists."""
    if depth > MAX_DEPTH:
        raise InvalidInput(place[:200], "...", f"must not be nested more than {MAX_DEPTH} deep")
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (int, float)):
        return _number(value, place)
    if isinstance(value, Mapping):
        fields: dict[str, Any] = {}
        for name, item in value.items():
            if not isinstance(name, str):
                raise InvalidInput(place, name, "names of fields must be texts")
            fields[name] = _plain(item, f"{place}.{name}", depth + 1)
        return fields
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{place}[{n}]", depth + 1) for n, item in enumerate(value)]
    raise InvalidInput(place, value, "must be a JSON value")


def _number(value: int | float, place: str) -> int | float:
    if isinstance(value, int):
        # Python itself refuses to read longer ones back from a text.
        if value.bit_length() > 13_000:
            raise InvalidInput(place, "...", "must be a number of at most 3,900 digits")
    elif not math.isfinite(value):
        raise InvalidInput(place, value, "must be a finite number")
    return value
