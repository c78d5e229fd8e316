"""Shared by importers of memories: a fact out of the fields of another program.

Words stay as they are. What is not there is left away; what makes no sense raises Malformed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from anaphora.features.importing.formats.base import ImportFile, Malformed
from anaphora.features.importing.formats.drafts import read_time
from anaphora.store.hashing import digest

_MAX_KEY = 500
_MAX_PATH = 1_000


def words_at(value: Mapping[str, object], *names: str) -> str:
    """The first of these fields that has words. Raises Malformed if none has."""
    for name in names:
        words = value.get(name)
        if isinstance(words, str) and words.strip():
            return words
    raise Malformed(f"no words: {' and '.join(map(repr, names))} are missing or blank")


def text_or(value: Mapping[str, object], *names: str) -> str:
    """The first of these fields that has words, or ""."""
    return next((v for n in names if isinstance(v := value.get(n), str) and v.strip()), "")


def when(file: ImportFile, value: Mapping[str, object], *names: str) -> datetime:
    """The first of these times that is set, else the file's. Raises Malformed."""
    return moment(value, *names) or file.modified


def moment(value: Mapping[str, object], *names: str) -> datetime | None:
    """The first of these times that is set. Raises Malformed for an unreadable one."""
    return next((at for name in names if (at := read_time(value.get(name))) is not None), None)


def key_of(*parts: object) -> str:
    """A key out of parts that are never the same for two things; a long one by its digest."""
    key = "/".join(map(str, parts))
    return key if len(key) <= _MAX_KEY and key.isprintable() else digest(*map(str, parts))


def path_of(*parts: str) -> str | None:
    """A memory's path; None if these cannot be one."""
    path = "/".join(part.strip() for part in parts)
    return path if path.isprintable() and path.strip() == path and len(path) <= _MAX_PATH else None


def tags_of(*groups: object) -> tuple[str, ...]:
    """Tags out of texts and lists of texts; anything else is ignored."""
    tags: dict[str, None] = {}
    for group in groups:
        for tag in (
            [group]
            if isinstance(group, str)
            else (group if isinstance(group, list | tuple) else ())
        ):
            if isinstance(tag, str) and tag.strip():
                tags[tag.strip()] = None
    return tuple(tags)


def payload_of(**fields: object) -> Mapping[str, Any] | None:
    """The fields with content; None if there are none."""
    filled_fields = {
        name: field for name, field in fields.items() if field not in (None, "", [], {}, ())
    }
    return filled_fields or None


def json_list(value: object) -> list[str]:
    """The texts of a list that a column holds as JSON; what is no JSON is one text."""
    if isinstance(value, str) and value.strip():
        try:
            parsed_json = json.loads(value)
        except (ValueError, RecursionError):
            return [value]
        if isinstance(parsed_json, list):
            return [text for text in parsed_json if isinstance(text, str) and text.strip()]
        return [parsed_json] if isinstance(parsed_json, str) and parsed_json.strip() else []
    return []
