"""What a record is called beside its words: a path, tags, a category, the title of its note.

People name a thing by these and do not say it again in its words: a note of its file's name, a
value of its path. The properties of a note are of this kind: who directed a film, what it is rated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any, Final

from anaphora.store.records.rows import DOCUMENT
from anaphora.values.files import place_of
from anaphora.values.memories import LABELS, MemoryRecord

_labels_of = attrgetter(*LABELS)
_NAMES = ("title", "aliases", "alias")
_MOST: Final = 4_000
"""Characters of a note's properties that are searched."""


def record_title(record: MemoryRecord) -> str:
    """All of it, a line each; "" where it has none."""
    if not (record.path or record.payload or any(_labels_of(record))):
        return ""
    source_prefixes = {source.partition(":")[0] for source in record.sources}
    labels = (label for value in _labels_of(record) for label in _as_list(value))
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


def is_part(record: MemoryRecord) -> bool:
    """Whether a record is a part of another, as a section is of its document."""
    return record.parent is not None and str(record.type) == DOCUMENT


def part_title(record: MemoryRecord) -> str:
    """What a part is called: the title of the whole, the page, the headings above the part."""
    payload = record.payload or {}
    page, title = payload.get("page"), str(payload.get("title") or "")
    heading = part_heading(payload)
    # The first heading of a document is often its title.
    parent_titles = heading[1:] if heading[:1] == (title,) else heading
    location = place_of(page if isinstance(page, int) else None, parent_titles)
    return ", ".join(text for text in (title, location) if text)


def part_heading(payload: Mapping[str, Any]) -> tuple[str, ...]:
    """The headings above a part, as its payload names them."""
    heading = payload.get("heading")
    return tuple(map(str, heading)) if isinstance(heading, list) else ()


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
