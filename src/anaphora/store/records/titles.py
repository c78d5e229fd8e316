"""What a record is called beside its words: a path, tags, a category, the title of its note.

People name a thing by these and do not say it again in its words: a note of its file's name, a
value of its path. The properties of a note are of this kind: who directed a film, what it is rated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from anaphora.values.memories import LABELS, MemoryRecord

_NAMES = ("title", "aliases", "alias")
_MOST: Final = 4_000
"""Characters of a note's properties that are searched."""


def record_title(record: MemoryRecord) -> str:
    """All of it, a line each; "" where it has none."""
    imported = {source.partition(":")[0] for source in record.sources}
    labels = (one for name in LABELS for one in _listed(getattr(record, name)))
    # What an import marks all of its memories by says nothing of any of them.
    named = (str(one) for one in labels if one and one not in imported)
    properties = _properties(record)
    called = (
        _without_ending(record.path or ""),
        *_noted(record, properties),
        *named,
        *_told(properties, record.text),
    )
    return "\n".join(dict.fromkeys(one for one in called if one))


def _without_ending(path: str) -> str:
    """A path without what only says that it is a note."""
    file, mark, part = path.partition("#")
    for ending in (".md", ".markdown", ".mdown"):
        file = file.removesuffix(ending)
    return f"{file}{mark}{part}"


def _properties(record: MemoryRecord) -> Mapping[str, object]:
    properties = (record.payload or {}).get("properties")
    return properties if isinstance(properties, dict) else {}


def _noted(record: MemoryRecord, properties: Mapping[str, object]) -> Iterator[str]:
    """The names that a note gives itself."""
    for told in (record.payload or {}, properties):
        for name in _NAMES:
            value = told.get(name)
            yield from (one for one in _listed(value) if isinstance(one, str))


def _told(properties: Mapping[str, object], text: str) -> Iterator[str]:
    """The other properties of a note, a line each, as far as its words do not say them."""
    room = _MOST
    for name, value in properties.items():
        values = [str(one) for one in _listed(value) if isinstance(one, str | int | float)]
        line = f"{name}: {', '.join(values)}"
        if name not in _NAMES and values and _unlinked(line) not in text and room > 0:
            yield line[:room]
            room -= len(line)


def _unlinked(line: str) -> str:
    return line.replace("[[", "").replace("]]", "")


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]
