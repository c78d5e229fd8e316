"""basic-memory: Markdown notes with a permalink, observations and relations.

An observation (`- [category] text #tag (context)`) is a memory, with the note's title before its
words; a relation (`- relation_type [[Target]]`) is one too. What else a note says is kept as any
Markdown is, in sections.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from anaphora.ingest.importers.base import Format, ImportFile, ImportItem, Malformed, Sample
from anaphora.ingest.importers.facts import key_of, payload_of, tags_of
from anaphora.ingest.importers.markdown import Note, account_of, read_note, sections
from anaphora.store.hashing import digest
from anaphora.values.imports import ImportedMemory
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
    facts, remainder = _split_facts(note)
    # What its program writes into each note is no news where the note says anything.
    alone = not facts or remainder.text.strip() or not set(note.properties) <= _OWN | note.dates
    items = (*facts, *(sections(remainder, _NAME) if alone else ()))
    yield from items
    yield from account_of(file, note, items, _NAME)


def _split_facts(note: Note) -> tuple[list[ImportedMemory], Note]:
    """The observations and relations of a note, and the note without them."""
    facts: dict[str, ImportedMemory] = {}
    other_lines: list[str] = []
    fenced = False
    for number, line in enumerate(note.text.split("\n"), start=1):
        fenced ^= _FENCE.match(line) is not None
        stripped = line.rstrip()
        fact = (
            None
            if fenced
            else _parse_observation(note, stripped) or _parse_relation(note, stripped)
        )
        if fact is None:
            other_lines.append(line)
        else:
            position = f"line {number + note.skipped}"
            facts.setdefault(fact.key, replace(fact, place=position))
    return list(facts.values()), replace(note, text=_drop_bare_headings(other_lines))


def _drop_bare_headings(lines: list[str]) -> str:
    """The text without headings under which nothing is left."""
    kept_lines: list[str] = []
    # What stands below: the level of a heading, 0 at the end, more than any level for words.
    below = 0
    for line in reversed(lines):
        heading = _HEADING.match(line)
        if heading is None:
            kept_lines.append(line)
            below = _WORDS if line.strip() else below
        elif below > len(heading[1]):
            kept_lines.append(line)
            below = len(heading[1])
    return "\n".join(reversed(kept_lines)).strip("\n")


def _parse_observation(note: Note, line: str) -> ImportedMemory | None:
    match = _OBSERVATION.match(line)
    if match is None:
        return None
    category, text = match[1].strip(), match[2]
    context = _CONTEXT.search(text)
    return ImportedMemory(
        _NAME,
        f"{note.key}#{key_of(category, digest(text)[:12])}",
        NewMemory(
            f"{note.title}: {text}",
            created_at=note.at,
            tags=tags_of(list(note.tags), _TAG.findall(text)),
            category=category,
            payload=payload_of(note=note.title, context=context[1] if context else ""),
        ),
        changed=note.changed,
    )


def _parse_relation(note: Note, line: str) -> ImportedMemory | None:
    match = _RELATION.match(line)
    if match is None:
        return None
    kind = (match[1] or match[2] or "").strip() or _LINKS_TO
    target, context = match[3].partition("|")[0].strip(), match[4].strip()
    text = f"{note.title} {kind} {target}" + (f" {context}" if context else "")
    return ImportedMemory(
        _NAME,
        f"{note.key}#{key_of('relation', digest(kind, target)[:12])}",
        NewMemory(
            text,
            created_at=note.at,
            tags=note.tags,
            category="relation",
            payload=payload_of(**{"from": note.title, "relation": kind, "to": target}),
        ),
        changed=note.changed,
    )


FORMAT = Format(_NAME, _detect, _read)
