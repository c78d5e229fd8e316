"""Changes to sections and notes in the database since a number, and the documents made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import Final

from anaphora.features.projects.index.rows import SectionRows
from anaphora.features.projects.store.notes import INDEXED_KINDS
from anaphora.features.projects.store.source import SectionSource
from anaphora.index.words.documents import IndexedDocument, TermOf, analyse_fields
from anaphora.index.words.table import StoredDocument
from anaphora.store.records.titles import is_part, part_heading
from anaphora.system.helper import with_helper
from anaphora.values.memories import MemoryRecord

NOTE_TOMBSTONES: Final = ("memory", *INDEXED_KINDS)
"""Kinds of tombstones of deleted notes; ids of other memories are not in the rows here."""

_AT_ONCE: Final = 500
# Sections from which helper processes are worth their start.
_HELPED: Final = 3_000
_SHARES: Final = (60, 300)


@dataclass(slots=True)
class Changed:
    """The changes found in the database.

    The words of `sections` (ids) and `notes` are to be indexed, those of the rows `gone`, with
    their keys, no longer count.
    """

    sections: list[str] = field(default_factory=list)
    notes: list[MemoryRecord] = field(default_factory=list)
    gone: list[tuple[int, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.sections) + len(self.notes)


def clear_document(keyed_fields: tuple[str, tuple[str, ...]]) -> tuple[str, IndexedDocument]:
    """The document of a key and its fields, with the key, in a home that is not sealed."""
    key, fields = keyed_fields
    return key, analyse_fields(fields)


class SectionChanges:
    """Brings rows in line with the database. One thread at a time, except for `documents`."""

    def __init__(self, source: SectionSource, term_of: TermOf | None) -> None:
        self._source = source
        self._term_of = term_of
        self._relations_at = -1

    def changed(self, rows: SectionRows, since: int) -> Changed:
        """Update rows that changed after `since` (-1: all); the changes for the words."""
        changes = Changed()
        if since >= 0:
            for tombstone_kind, owner, seq in self._source.tombstones(since):
                if tombstone_kind not in ("section", *NOTE_TOMBSTONES):
                    continue
                row = rows.delete(owner, seq)
                if row >= 0:
                    changes.gone.append((row, owner))
        files = self._source.files(since)
        files_are_new = any(file.id not in rows.files for file in files)
        rows.put_files(files)
        sections = self._source.sections(since)
        rows.put_sections(sections)
        changes.sections = [section.id for section in sections]
        for kind, record in self._source.notes(since):
            rows.put_note(kind, record)
            changes.notes.append(record)
        relations = self._source.relations_at()
        if since < 0 or files_are_new:
            rows.set_imports(self._source.imports(-1))
        elif relations != self._relations_at:
            rows.put_imports(self._source.imports(self._relations_at))
        self._relations_at = relations
        return changes

    def list_deleted(self, rows: SectionRows, since: int) -> Iterator[str]:
        """The keys of what was deleted after a number of the database, and did not come back."""
        for kind, owner, _ in self._source.tombstones(since):
            if kind in ("section", *NOTE_TOMBSTONES) and rows.row(owner) < 0:
                yield owner

    def list_keys(self, since: int) -> Iterator[str]:
        """The keys of what was changed or deleted after a number of the database."""
        yield from (owner for _, owner, _ in self._source.tombstones(since))
        yield from (section.id for section in self._source.sections(since))
        yield from (record.id for _, record in self._source.notes(since))

    def documents(self, rows: SectionRows, changed: Changed) -> Iterator[StoredDocument]:
        """The documents of changed sections and notes."""

        def store(key: str, document: IndexedDocument) -> StoredDocument:
            return StoredDocument(key, rows.mark(rows.row(key)), document)

        texts = self._texts(rows, changed.sections)
        if self._term_of is None:
            worth = len(changed.sections) >= _HELPED
            analysed = with_helper(clear_document, texts, worth=worth, shares=_SHARES)
            yield from starmap(store, analysed)
        else:
            # Keys of a sealed home must not leave this process.
            for key, fields in texts:
                yield store(key, analyse_fields(fields, self._term_of))
        for record in changed.notes:
            source = record.sources[0] if record.sources else ""
            subject = (record.payload or {}).get("subject")
            names = (record.type, *record.tags, subject if isinstance(subject, str) else "")
            if is_part(record):
                payload = record.payload or {}
                source = str(payload.get("name", ""))
                names = (str(payload.get("title", "")), *part_heading(payload))
            fields = (source, " ".join(names), record.text)
            yield store(record.id, analyse_fields(fields, self._term_of))

    def _texts(
        self, rows: SectionRows, sections: Sequence[str]
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        for start in range(0, len(sections), _AT_ONCE):
            for section in self._source.texts(sections[start : start + _AT_ONCE]).values():
                yield section.id, (rows.path_of(section.file), section.name, section.text)
