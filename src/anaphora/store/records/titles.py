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
    source_prefixes = {source.partition(":")[0] for source in record.sources}
    labels = (label for name in LABELS for label in _as_list(getattr(record, name)))
    # What an import marks all of its memories by says nothing of any of them.
    label_texts = (str(label) for label in labels if label and label not in source_prefixes)
    properties = (record.payload or {}).get("properties")
    properties = properties if isinstance(properties, dict) else {}
    # The names that a note gives itself.
    names = (
        text
        for fields in (record.payload or {}, properties)
        for name in _NAMES
        for text in _as_list(fields.get(name))
        if isinstance(text, str)
    )
    file, mark, part = (record.path or "").partition("#")
    for ending in (".md", ".markdown", ".mdown"):
        # It only says that this is a note.
        file = file.removesuffix(ending)
    title_lines = (
        f"{file}{mark}{part}",
        *names,
        *label_texts,
        *_other_properties(properties, record.text),
    )
    return "\n".join(dict.fromkeys(label for label in title_lines if label))


def _other_properties(properties: Mapping[str, object], text: str) -> Iterator[str]:
    """The other properties of a note, a line each, as far as its words do not say them."""
    room = _MOST
    for name, property_value in properties.items():
        values = [
            str(part) for part in _as_list(property_value) if isinstance(part, str | int | float)
        ]
        line = f"{name}: {', '.join(values)}"
        plain_line = line.replace("[[", "").replace("]]", "")
        if name not in _NAMES and values and plain_line not in text and room > 0:
            yield line[:room]
            room -= len(line)


def _as_list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]
