"""Checks new memories, and takes the secrets out of them.

`InvalidInput` names the field. Words are never shortened, trimmed or normalised; names (path, tags,
category) are kept in one Unicode form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, Final, get_args

from anaphora.calls.arguments import MOST
from anaphora.calls.moments import checked_moment
from anaphora.errors import InvalidInput
from anaphora.ingest.secrets.redacting import RedactedText, redact, redact_path, redact_value
from anaphora.language.names import composed
from anaphora.values.memories import LABELS, MEMORY_FIELDS, MemoryType, NewMemory

MAX_PATH: Final = 1_024
"""Characters in a path."""
MAX_DEPTH: Final = 100
"""Objects and lists within one another in a payload."""
VERSIONED: Final = tuple(n for n, field in MEMORY_FIELDS.items() if field.changes == "version")
"""The fields with versions: another value of these supersedes the memory."""

MemoryInput = NewMemory | str | Mapping[str, Any]
"""The accepted forms of a new memory."""

_FIELDS = tuple(field.name for field in fields(NewMemory))
_KNOWN = ", ".join(_FIELDS)
_TYPES = get_args(MemoryType)
_CHANGEABLE: Final = (
    *VERSIONED,
    *(name for name in _FIELDS if MEMORY_FIELDS[name].changes == "in_place"),
)
_CLEANED: Final[Mapping[str, Callable[[str], RedactedText]]] = {
    "path": redact_path,
    **{n: redact for n in _FIELDS[1:] if MEMORY_FIELDS[n].kind == "text"},
    "conversation_id": redact_path,
}
"""How secrets are taken out of the fields that hold one text, beside the text itself."""


def as_new(item: object) -> NewMemory:
    """What one item of many stands for: a memory, its text alone, or a mapping of its fields.

    Raises InvalidInput about "item" for anything else, and about a field that there is not.
    """
    if isinstance(item, NewMemory):
        return item
    if isinstance(item, str):
        return NewMemory(item)
    if not isinstance(item, Mapping):
        raise InvalidInput("item", item, "expected a string, a mapping of fields, or a NewMemory")
    for name in item:
        if name not in _FIELDS:
            raise InvalidInput(str(name), item[name], f"unknown field; expected one of {_KNOWN}")
    if "text" not in item:
        raise InvalidInput("text", None, "is required")
    return NewMemory(**item)


def checked(new: NewMemory) -> NewMemory:
    """The memory with tags as a tuple and payload as plain JSON values.

    Raises InvalidInput with the name of the field that cannot be used.
    """
    values = dict[str, Any]()
    for name in _BY_KIND:
        field_value = getattr(new, name)
        if field_value is not _DEFAULTS[name]:
            kind = MEMORY_FIELDS[name].kind
            is_name = name in LABELS and kind == "text"
            values[name] = (
                _check_name(name, field_value) if is_name else _CHECKS[kind](name, field_value)
            )
    path = values.get("path")
    # The paths of an adapter's files (`dedupe` off) are kept as they are.
    if path is not None and new.dedupe and path.endswith("."):
        raise InvalidInput("path", path, "must not end with a dot")
    return _replace_changed(new, values)


def checked_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes of an update, each checked as for `remember`.

    Raises InvalidInput for a field that cannot change, or a value that it cannot have.
    """
    if not changes:
        raise InvalidInput("changes", changes, f"needs at least one of {', '.join(_CHANGEABLE)}")
    for name in changes:
        if name not in _CHANGEABLE:
            raise InvalidInput("changes", name, f"expected {', '.join(_CHANGEABLE)}")
    memory = checked(NewMemory(**({"text": "-"} | dict(changes))))
    return {name: getattr(memory, name) for name in changes}


def without_secrets(new: NewMemory) -> tuple[NewMemory, tuple[str, ...]]:
    """The memory without its secrets, and the kinds of them, each once, in order."""
    kinds: list[str] = []

    def clean(text: str, how: Callable[[str], RedactedText] = redact) -> str:
        redacted_text = how(text)
        kinds.extend(redacted_text.kinds)
        return redacted_text.text

    clean_values: dict[str, Any] = {"text": clean(new.text)}
    if new.payload is not None:
        values = redact_value(new.payload)
        kinds.extend(values.kinds)
        clean_values["payload"] = _clean_names(values.value, kinds)
    if new.tags:
        clean_values["tags"] = tuple(map(clean, new.tags))
    for name, how in _CLEANED.items():
        if (field_value := getattr(new, name)) is not None:
            clean_values[name] = clean(field_value, how)
    return _replace_changed(new, clean_values), tuple(dict.fromkeys(kinds))


def _replace_changed(new: NewMemory, values: Mapping[str, Any]) -> NewMemory:
    """The memory with these values: the same one if they are its own, as nearly always."""
    changed_fields = {
        name: field_value
        for name, field_value in values.items()
        if field_value is not getattr(new, name)
    }
    return replace(new, **changed_fields) if changed_fields else new


def _clean_names(value: Any, kinds: list[str]) -> Any:
    """The same JSON value without secrets in the names of its fields."""
    if isinstance(value, list):
        return [_clean_names(member, kinds) for member in value]
    if not isinstance(value, dict):
        return value
    clean_members: dict[str, Any] = {}
    for name, member in value.items():
        redacted_name = redact(name)
        kinds.extend(redacted_name.kinds)
        free_name, number = redacted_name.text, 2
        while free_name in clean_members:
            free_name, number = f"{redacted_name.text} ({number})", number + 1
        clean_members[free_name] = _clean_names(member, kinds)
    return clean_members


def _check_text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(name, value, "must be a text")
    if not value.strip():
        raise InvalidInput(name, value, "must not be blank")
    return value


def _check_type(name: str, value: object) -> MemoryType:
    for memory_type in _TYPES:
        if value == memory_type:
            return memory_type  # type: ignore[no-any-return]
    raise InvalidInput(name, value, f"expected one of {', '.join(_TYPES)}")


def _check_path(name: str, value: object) -> str:
    path = _check_text(name, value)
    if path != path.strip():
        raise InvalidInput(name, path, "must not begin or end with white space")
    if len(path) > MAX_PATH:
        raise InvalidInput(name, path, f"must be at most {MAX_PATH} characters long")
    if not path.isprintable():
        raise InvalidInput(name, path, "must not contain control characters or lone surrogates")
    return composed(path)


def _check_name(name: str, value: object) -> str:
    return composed(_check_text(name, value))


def _check_tags(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise InvalidInput(name, value, "must be a list of strings")
    return tuple(dict.fromkeys(_check_name(name, tag) for tag in value))


def _check_whole(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
        raise InvalidInput(name, value, "must be a number, 0 or more")
    return value


def _check_flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(name, value, "expected True or False")
    return value


def _check_payload(name: str, value: object) -> Any:
    if not isinstance(value, Mapping):
        raise InvalidInput(name, type(value).__name__, "must be a JSON object")
    return _copy_json(value, name, 0)


# Of several mistakes the first in this order is named.
_CHECKS: Final[Mapping[str, Callable[[str, object], Any]]] = {
    "text": _check_text,
    "id": _check_text,
    "time": checked_moment,
    "number": _check_whole,
    "flag": _check_flag,
    "type": _check_type,
    "path": _check_path,
    "tags": _check_tags,
    "payload": _check_payload,
}
_BY_KIND: Final = [n for kind in _CHECKS for n in _FIELDS if MEMORY_FIELDS[n].kind == kind]
_DEFAULTS: Final = {field.name: field.default for field in fields(NewMemory)}


def _copy_json(value: object, place: str, depth: int) -> Any:
    """The JSON value that `value` is, in fresh dicts and lists."""
    if depth > MAX_DEPTH:
        raise InvalidInput(place[:200], "...", f"must not be nested deeper than {MAX_DEPTH} levels")
    # Python itself refuses to read longer ones back from a text.
    if isinstance(value, int) and value.bit_length() > 13_000:
        raise InvalidInput(place, "...", "must be a number of at most 3,900 digits")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(place, value, "must be a finite number")
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Mapping):
        fields: dict[str, Any] = {}
        for name, member in value.items():
            if not isinstance(name, str):
                raise InvalidInput(place, name, "field names must be strings")
            fields[name] = _copy_json(member, f"{place}.{name}", depth + 1)
        return fields
    if isinstance(value, (list, tuple)):
        return [_copy_json(member, f"{place}[{n}]", depth + 1) for n, member in enumerate(value)]
    raise InvalidInput(place, value, "must be a JSON value")
