"""Markdown: folders of notes, as of Obsidian, and single notes.

A short note is a memory; a longer one is a memory a section, in the words of the file. Its path is
that of the file ("Notes/Work/Staging.md#Ports"), so that an edited section is a new value of the
old one, and one that is no longer in its note ends. Tags come out of the front matter and the text,
links and other properties go beside the words; a note of properties alone has those as its words.
Times are those of the front matter, of a daily note's name, or the file's. A canvas is a note of
the texts on it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from anaphora.features.importing.formats.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    Sample,
)
from anaphora.features.importing.formats.canvas import CANVAS, read_canvas
from anaphora.features.importing.formats.facts import path_of, payload_of, tags_of
from anaphora.features.importing.formats.noted_dates import ReadsTwoWays, date_of_name, dates_of
from anaphora.features.importing.values import ImportedElse, ImportedMemory, ImportedWhole
from anaphora.ingest.files.reading import text_of
from anaphora.text.front_matter import Properties, split_front_matter
from anaphora.values.memories import NewMemory

NAME: Final = "markdown"
ENDINGS: Final = (".md", ".markdown", ".mdown")
NOTES: Final = (*ENDINGS, CANVAS)
"""Endings of the files of a vault that hold notes."""
EMPTY: Final = "empty note"

_SHORT = 1_500
_PART = "#"
_TAG = re.compile(r"(?<![\w#&/])#([^\W\d_][\w/-]*|\d[\w/-]*[^\W\d_][\w/-]*)")
_WIKI = re.compile(r"!?\[\[([^\[\]|#^]+)(?:[#^][^\[\]|]*)?(?:\|[^\[\]]*)?\]\]")
_SHOWN = re.compile(r"!?\[\[([^\[\]|]+)(?:\|([^\[\]]*))?\]\]")
_LINK = re.compile(r"(?<!!)\[[^\[\]]*\]\(([^()\s]+)(?:\s+\"[^\"]*\")?\)")
_CODE = re.compile(r"^( {0,3})(`{3,}|~{3,}).*?(?:^ {0,3}\2|\Z)|`[^`\n]*`", re.M | re.S)
_MOST_LINKS = 200


@dataclass(frozen=True, slots=True)
class Note:
    """A note that was read: its words without the front matter, and what that says.

    `key` is its path below the folder that was named; `at` when it was written, `changed` when it
    was changed last; `tags` are those of the front matter. `skipped` lines stood before the words.
    `dates` are the names of the properties that the times were read of, `unread` says which dates
    were not read, and why.
    """

    key: str
    text: str
    properties: Properties
    at: datetime
    changed: datetime
    tags: tuple[str, ...]
    skipped: int
    dates: frozenset[str] = frozenset()
    unread: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The title in its properties, else the name of its file."""
        title_property = self.properties.get("title")
        return (
            title_property
            if isinstance(title_property, str) and title_property
            else self.key.rsplit("/", 1)[-1]
        )


def _detect(sample: Sample) -> bool:
    if sample.file.name.lower().endswith(NOTES):
        return sample.shape != "database"
    if sample.shape == "database" or b"\0" in sample.head or sample.values:
        return False
    head = sample.head.decode("utf-8", "replace").replace("\r\n", "\n")
    return bool(split_front_matter(head).properties)


def _read(file: ImportFile) -> Iterator[ImportItem]:
    try:
        if file.name.lower().endswith(CANVAS):
            key = key_of_note(file.relative)
            note = Note(key, "", {}, file.modified, file.modified, (), 0)
            items = []
            for card in read_canvas(_read_text(file)):
                card_key = f"{key}{_PART}{card.key}" if card.key else key
                card_note = replace(note, key=card_key, text=card.text.strip("\n"))
                items += [replace(m, place=card.place) for m in sections(card_note, NAME)]
        else:
            note = read_note(file)
            items = list(sections(note, NAME))
    except Malformed as error:
        yield file.problem("file", str(error))
        return
    yield from items
    yield from account_of(file, note, items, NAME)


def account_of(
    file: ImportFile, note: Note, items: Iterable[ImportedMemory], source: str
) -> Iterator[ImportItem]:
    """The items after the memories of a note: dates that were not read, and the keys it has now."""
    yield from (file.problem("front matter", reason) for reason in note.unread)
    keys = frozenset(memory.key for memory in items)
    if not keys:
        yield ImportedElse(EMPTY)
    yield ImportedWhole(source, note.key, keys, note.changed)


def read_note(file: ImportFile) -> Note:
    """The note in a file. Raises Malformed for what is no text, and OSError."""
    properties, body, skipped_lines, stray = split_front_matter(_read_text(file))
    # Programs put their front matter before that of the user, which stays in the text.
    second = split_front_matter(body.lstrip("\n"))
    if properties and not second.stray:
        properties = {**second.properties, **properties}
    dates = dates_of(properties)
    unread = dates.unread
    begun = dates.begun
    if begun is None:
        try:
            begun = date_of_name(file.stem)
        except ReadsTwoWays as error:
            unread = (*unread, f"its name: {error}")
    return Note(
        key_of_note(file.relative),
        (f"{stray}\n\n{body}" if stray else body).strip("\n"),
        properties,
        begun or dates.changed or file.modified,
        dates.changed or file.modified,
        tags_of(_split_tags(properties.get("tags")), _split_tags(properties.get("tag"))),
        skipped_lines,
        dates.names,
        unread,
    )


def _read_text(file: ImportFile) -> str:
    """All of a file. Raises Malformed for what is no text or too long, and OSError."""
    with file.open() as raw:
        content = raw.read(file.bounds.characters + 1)
    if len(content) > file.bounds.characters:
        raise Malformed(f"longer than {file.bounds.characters:,} bytes; it was skipped")
    text = text_of(content)
    if text is None:
        raise Malformed("it is no text; it was skipped")
    return text


def key_of_note(relative: str) -> str:
    """What a note is known by: its path below the folder that was named, without the mark behind
    which a part of it is named."""
    return relative.replace(_PART, "%23")


def _split_tags(value: str | list[str] | None) -> list[str]:
    """Tags as they may be written: a list, or words with commas or spaces between them."""
    words = value if isinstance(value, list) else re.split(r"[,\s]+", value or "")
    return [word.strip().lstrip("#") for word in words if word.strip().lstrip("#")]


def links_in(text: str) -> list[str]:
    """What a text links to: other notes by name, files and pages by address; each once."""
    plain = _CODE.sub(" ", text)
    targets = [*(name.strip() for name in _WIKI.findall(plain)), *_LINK.findall(plain)]
    return list(dict.fromkeys(target for target in targets if target))[:_MOST_LINKS]


def sections(note: Note, source: str) -> Iterator[ImportedMemory]:
    """The memories of a note: itself, or each of its sections; its properties if it has no words.

    None if it has neither.
    """
    # Those that a memory has a field of its own for are not repeated.
    title = note.properties.get("title")
    beside = {
        "tags",
        "tag",
        "permalink",
        *note.dates,
        *(["title"] if isinstance(title, str) else []),
    }
    properties = {n: v for n, v in note.properties.items() if n not in beside}
    # A title that the path already contains adds nothing.
    own_title = title if isinstance(title, str) and title not in note.key else ""
    counts: Counter[str] = Counter()
    for heading, words, line in _split_parts(note):
        text = words if words.strip() else describe_properties(note)
        if not text:
            continue
        counts[heading] += 1
        part = heading if counts[heading] == 1 else f"{heading} ~{counts[heading]}"
        key = f"{note.key}{_PART}{part}" if part else note.key
        yield ImportedMemory(
            source,
            key,
            NewMemory(
                text,
                created_at=note.at,
                path=path_of(key) or path_of(note.key[:500] + _PART + str(sum(counts.values()))),
                tags=tags_of(
                    list(note.tags),
                    [tag.rstrip("/-") for tag in _TAG.findall(_CODE.sub(" ", text))],
                ),
                payload=payload_of(title=own_title, links=links_in(text), properties=properties),
            ),
            f"line {line + note.skipped}",
            changed=note.changed,
        )
        # They are the note's: once is enough.
        properties = {}


def describe_properties(note: Note) -> str:
    """The properties of a note as a text, one a line, its links by what they show."""
    lines = []
    for name, property_value in note.properties.items():
        values = property_value if isinstance(property_value, list) else [property_value]
        line = ", ".join(_SHOWN.sub(lambda link: link[2] or link[1], text) for text in values)
        lines.append(f"{name}: {line}")
    return "\n".join(lines)


def _split_parts(note: Note) -> Iterator[tuple[str, str, int]]:
    """The heading, words and first line of each section; one without a heading if it is short."""
    from anaphora.ingest.sections import parse

    if len(note.text) <= _SHORT:
        yield "", note.text, 1
        return
    for section in parse("note.md", note.text + "\n").sections:
        titles = (*section.heading, section.title) if section.kind == "heading" else ()
        part_name = " > ".join(titles) if titles else ("" if section.start_line == 1 else "text")
        yield part_name, section.text.strip("\n"), section.start_line


FORMAT = Format(NAME, _detect, _read)
