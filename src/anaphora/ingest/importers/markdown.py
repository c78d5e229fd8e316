"""Markdown: folders of notes, as of Obsidian, and single notes.

A short note is a memory; a longer one is a memory a section, in the words of the file. Its path is
that of the file ("Notes/Work/Staging.md#Ports"), so that an edited section is a new value of the
old one, and one that is no longer in its note ends. Tags come out of the front matter and the text,
links go beside the words. Times are those of the front matter, of a daily note's name, or the
file's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from anaphora.core.front_matter import Properties, split_front_matter
from anaphora.ingest.importers.base import Format, ImportFile, ImportItem, Malformed, Sample
from anaphora.ingest.importers.drafts import read_time
from anaphora.ingest.importers.facts import path_of, payload_of, tags_of
from anaphora.ingest.projects.files.reading import text_of
from anaphora.values.imports import ImportedMemory, ImportedWhole
from anaphora.values.memories import NewMemory

NAME: Final = "markdown"
ENDINGS: Final = (".md", ".markdown", ".mdown")

_SHORT = 1_500
_PART = "#"
_TAG = re.compile(r"(?<![\w#&/])#([^\W\d_][\w/-]*|\d[\w/-]*[^\W\d_][\w/-]*)")
_WIKI = re.compile(r"!?\[\[([^\[\]|#^]+)(?:[#^][^\[\]|]*)?(?:\|[^\[\]]*)?\]\]")
_LINK = re.compile(r"(?<!!)\[[^\[\]]*\]\(([^()\s]+)(?:\s+\"[^\"]*\")?\)")
_CODE = re.compile(r"^( {0,3})(`{3,}|~{3,}).*?(?:^ {0,3}\2|\Z)|`[^`\n]*`", re.M | re.S)
_DAY = re.compile(r"(?<!\d)(\d{4}-\d\d-\d\d)(?!\d)")
_CHANGED = ("updated", "modified", "last_modified", "updated_at", "date modified", "lastmod")
_BEGUN = ("created", "created_at", "date", "date created", "creation date")
_MOST_LINKS = 200


@dataclass(frozen=True, slots=True)
class Note:
    """A note that was read: its words without the front matter, and what that says.

    `key` is its path below the folder that was named; `at` when it was written, `changed` when it
    was changed last; `tags` are those of the front matter. `skipped` lines stood before the words.
    """

    key: str
    text: str
    properties: Properties
    at: datetime
    changed: datetime
    tags: tuple[str, ...]
    skipped: int

    @property
    def title(self) -> str:
        """What it is called."""
        named = self.properties.get("title")
        return named if isinstance(named, str) and named else self.key.rsplit("/", 1)[-1]


def _detect(sample: Sample) -> bool:
    if sample.file.name.lower().endswith(ENDINGS):
        return sample.shape != "database"
    if sample.shape == "database" or b"\0" in sample.head or sample.values:
        return False
    head = sample.head.decode("utf-8", "replace").replace("\r\n", "\n")
    return bool(split_front_matter(head).properties)


def _read(file: ImportFile) -> Iterator[ImportItem]:
    try:
        note = read_note(file)
    except Malformed as error:
        yield file.problem("file", str(error))
        return
    keys: set[str] = set()
    for item in sections(note, NAME):
        keys.add(item.key)
        yield item
    yield ImportedWhole(NAME, note.key, frozenset(keys), note.changed)


def read_note(file: ImportFile) -> Note:
    """The note in a file. Raises Malformed for what is no text, and OSError."""
    with file.open() as raw:
        data = raw.read(file.bounds.characters + 1)
    if len(data) > file.bounds.characters:
        raise Malformed(f"longer than {file.bounds.characters:,} bytes; it was skipped")
    text = text_of(data)
    if text is None:
        raise Malformed("it is no text; it was skipped")
    properties, body, skipped = split_front_matter(text)
    day = _DAY.search(file.stem)
    own = _time(properties, _BEGUN) or (_moment(day[1]) if day else None)
    changed = _time(properties, _CHANGED)
    return Note(
        key_of_note(file.relative),
        body.strip("\n"),
        properties,
        own or changed or file.modified,
        changed or file.modified,
        tags_of(_listed(properties.get("tags")), _listed(properties.get("tag"))),
        skipped,
    )


def key_of_note(relative: str) -> str:
    """What a note is known by: its path below the folder that was named, without the mark behind
    which a part of it is named."""
    return relative.replace(_PART, "%23")


def _listed(value: str | list[str] | None) -> list[str]:
    """Tags as they may be written: a list, or words with commas or spaces between them."""
    words = value if isinstance(value, list) else re.split(r"[,\s]+", value or "")
    return [word.strip().lstrip("#") for word in words if word.strip().lstrip("#")]


def _tags_in(text: str) -> list[str]:
    return [tag.rstrip("/-") for tag in _TAG.findall(_CODE.sub(" ", text))]


def links_in(text: str) -> list[str]:
    """What a text links to: other notes by name, files and pages by address; each once."""
    plain = _CODE.sub(" ", text)
    found = [*(name.strip() for name in _WIKI.findall(plain)), *_LINK.findall(plain)]
    return list(dict.fromkeys(one for one in found if one))[:_MOST_LINKS]


def _time(properties: Properties, names: Sequence[str]) -> datetime | None:
    values = (properties.get(name) for name in names)
    return next((at for v in values if isinstance(v, str) and (at := _moment(v))), None)


def _moment(text: str) -> datetime | None:
    try:
        return read_time(text)
    except Malformed:
        return None


def sections(note: Note, source: str) -> Iterator[ImportedMemory]:
    """The memories of a note: itself, or each of its sections. None where it has no words."""
    known = (*_CHANGED, *_BEGUN, "tags", "tag", "title", "permalink")
    properties = {n: v for n, v in note.properties.items() if n not in known}
    seen: Counter[str] = Counter()
    for title, text, line in _parts(note):
        if not text.strip():
            continue
        seen[title] += 1
        part = title if seen[title] == 1 else f"{title} ~{seen[title]}"
        key = f"{note.key}{_PART}{part}" if part else note.key
        yield ImportedMemory(
            source,
            key,
            NewMemory(
                text,
                created_at=note.at,
                path=path_of(key) or path_of(note.key[:500] + _PART + str(sum(seen.values()))),
                tags=tags_of(list(note.tags), _tags_in(text)),
                payload=payload_of(
                    title=_own_title(note), links=links_in(text), properties=properties
                ),
            ),
            f"line {line + note.skipped}",
            changed=note.changed,
        )
        # They are the note's: once is enough.
        properties = {}


def _own_title(note: Note) -> str:
    """The title that a note gives itself, where its path does not tell it."""
    named = note.properties.get("title")
    return named if isinstance(named, str) and named not in note.key else ""


def _parts(note: Note) -> Iterator[tuple[str, str, int]]:
    """The heading, words and first line of each section; one without a heading if it is short."""
    from anaphora.ingest.projects.sections import parse

    if len(note.text) <= _SHORT:
        yield "", note.text, 1
        return
    for section in parse("note.md", note.text + "\n").sections:
        titles = (*section.heading, section.title) if section.kind == "heading" else ()
        named = " > ".join(titles) if titles else ("" if section.start_line == 1 else "text")
        yield named, section.text.strip("\n"), section.start_line


FORMAT = Format(NAME, _detect, _read)
