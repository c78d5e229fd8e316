"""basic-memory: Markdown notes with a permalink, observations and relations.

An observation (`- [category] text #tag (context)`) is a memory, with the note's title before its
words; a relation (`- relation_type [[Target]]`) is one too. What else a note says is kept as any
Markdown is, in sections.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from anaphora.features.importing.formats.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    Sample,
)
from anaphora.features.importing.formats.facts import key_of, payload_of, tags_of
from anaphora.features.importing.formats.markdown import Note, account_of, read_note, sections
from anaphora.features.importing.values import ImportedMemory
from anaphora.store.hashing import digest
from anaphora.values.memories import NewMemory

_NAME = "basic_memory"
_HEAD = re.compile(rb"\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n(.*?)^---", re.M | re.S)
_PERMALINK = re.compile(rb"^permalink[ \t]*:", re.M)
# "[ ]" and "[x]" are tasks, "[[…]]" a link, "[text](…)" one too.
# Of lines without blanks at the end. No run of blanks is looked at from each of its places.
_OBSERVATION = re.compile(r"\s*+[-*]\s++\[([^\[\]()]{2,80}|[^\[\]()xX \-])\](?!\()\s++(\S.*)$")
_RELATION = re.compile(
    r"\s*+[-*]\s++(?:\"([^\"]{1,200})\"|([^\[\]\"]{0,200}?))\s*+\[\[([^\[\]]+)\]\](.*)$"
)
_TAG = re.compile(r"(?<!\S)#([\w/-]+)")
_CONTEXT = re.compile(r"\(([^()]+)\)$")
_OWN = frozenset(("title", "type", "permalink", "tags", "tag"))
_WORDS = 7
_HEADING = re.compile(r" {0,3}(#{1,6})(?=\s|$)")
_FENCE = re.compile(r"\s*(```|~~~)")
_LINKS_TO = "links to"


def _detect(sample: Sample) -> bool:
    match = _HEAD.match(sample.head)
    return match is not None and _PERMALINK.search(match[1]) is not None


def _read(file: ImportFile) -> Iterator[ImportItem]:
    try:
        note = read_note(file)
    except Malformed as error:
        yield file.problem("file", str(error))
        return
    facts: dict[str, ImportedMemory] = {}
    other_lines: list[str] = []
    is_fenced = False
    for number, line in enumerate(note.text.split("\n"), start=1):
        is_fenced ^= _FENCE.match(line) is not None
        fact = None if is_fenced else _parse_fact(note, line.rstrip())
        if fact is None:
            other_lines.append(line)
        else:
            position = f"line {number + note.skipped}"
            facts.setdefault(fact.key, replace(fact, place=position))
    # A heading under which nothing is left is dropped. What stands below: the level of a heading,
    # 0 at the end, more than any level for words.
    kept_lines: list[str] = []
    heading_level = 0
    for line in reversed(other_lines):
        heading = _HEADING.match(line)
        if heading is None:
            kept_lines.append(line)
            heading_level = _WORDS if line.strip() else heading_level
        elif heading_level > len(heading[1]):
            kept_lines.append(line)
            heading_level = len(heading[1])
    remainder = replace(note, text="\n".join(reversed(kept_lines)).strip("\n"))
    # What its program writes into each note is no news where the note says anything.
    stands_alone = (
        not facts or remainder.text.strip() or not set(note.properties) <= _OWN | note.dates
    )
    items = (*facts.values(), *(sections(remainder, _NAME) if stands_alone else ()))
    yield from items
    yield from account_of(file, note, items, _NAME)


def _parse_fact(note: Note, line: str) -> ImportedMemory | None:
    """The observation or the relation that a line is, if it is one."""
    if match := _OBSERVATION.match(line):
        category, observation = match[1].strip(), match[2]
        key = key_of(category, digest(observation)[:12])
        text = f"{note.title}: {observation}"
        tags = tags_of(list(note.tags), _TAG.findall(observation))
        context = _CONTEXT.search(observation)
        payload = payload_of(note=note.title, context=context[1] if context else "")
    elif match := _RELATION.match(line):
        kind = (match[1] or match[2] or "").strip() or _LINKS_TO
        target, comment = match[3].partition("|")[0].strip(), match[4].strip()
        category, key = "relation", key_of("relation", digest(kind, target)[:12])
        text = f"{note.title} {kind} {target}" + (f" {comment}" if comment else "")
        tags = note.tags
        payload = payload_of(**{"from": note.title, "relation": kind, "to": target})
    else:
        return None
    new_memory = NewMemory(text, created_at=note.at, tags=tags, category=category, payload=payload)
    return ImportedMemory(_NAME, f"{note.key}#{key}", new_memory, changed=note.changed)


FORMAT = Format(_NAME, _detect, _read)
