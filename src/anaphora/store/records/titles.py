"""What a record is called beside its words: a path, tags, a category, the title of its note.

People name a thing by these and do not say it again in its words: a note of its file's name, a
value of its path.
"""

from __future__ import annotations

from collections.abc import Iterator

from anaphora.values.memories import LABELS, MemoryRecord

_NAMES = ("title", "aliases", "alias")


def record_title(record: MemoryRecord) -> str:
    """All of it, a line each; "" where it has none."""
    imported = {source.partition(":")[0] for source in record.sources}
    labels = (one for name in LABELS for one in _listed(getattr(record, name)))
    # What an import marks all of its memories by says nothing of any of them.
    named = (str(one) for one in labels if one and one not in imported)
    called = (_without_ending(record.path or ""), *_noted(record), *named)
    return "\n".join(dict.fromkeys(one for one in called if one))


def _without_ending(path: str) -> str:
    """A path without what only says that it is a note."""
    file, mark, part = path.partition("#")
    for ending in (".md", ".markdown", ".mdown"):
        file = file.removesuffix(ending)
    return f"{file}{mark}{part}"


def _noted(record: MemoryRecord) -> Iterator[str]:
    """The names that a note gives itself."""
    payload = record.payload or {}
    properties = payload.get("properties")
    for told in (payload, properties if isinstance(properties, dict) else {}):
        for name in _NAMES:
            value = told.get(name)
            yield from (one for one in _listed(value) if isinstance(one, str))


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]
