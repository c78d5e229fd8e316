"""One change to the graph: entities and relations brought in line with what was found.

What is no longer found is not deleted but closed: its relations become superseded, with the time
until which they held. Symbols that nothing speaks of are deleted, or a graph would grow with every
edit. It decides nothing about what is related.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime

from anaphora.features.projects.store.graph_rows import (
    DRAFT_MAPPING,
    HISTORY_SOURCE,
    EntityDraft,
    NoteLink,
    RelationDraft,
    alias_of,
)
from anaphora.features.projects.tables import ENTITY, ENTITY_ALIAS, RELATION
from anaphora.features.projects.values import EntityType, RelationStatus
from anaphora.store.codecs import to_micros
from anaphora.store.hashing import digest
from anaphora.store.namespace import NamespaceTransaction, Row

_ENTITY_CHANGES = ("kind", "summary", "file_id", "start_line", "end_line", "gone_at")
_RELATION_CHANGES = ("status", "strength", "valid_until", "detail")


class GraphTransaction(NamespaceTransaction):
    """What one write transaction does to the graph."""

    def sync(
        self,
        project: str,
        entities: Sequence[EntityDraft],
        relations: Sequence[RelationDraft],
        *,
        now: datetime,
        ids: Callable[[], str],
        files: Collection[str] | None = None,
    ) -> bool:
        """Make these the entities and relations of a project; whether any entity came or went.

        `files` are ids: then the drafts are those of these files alone, and what others state is
        left as it is.
        """
        at = to_micros(now)
        if files is None:
            rows = self.find_rows(ENTITY, project_id=project)
        else:
            # The entities of these files, and all that the drafts name.
            keys = {draft.key for draft in entities}
            keys.update(end for draft in relations for end in (draft.subject, draft.object))
            stored_keys = [self._lookup("entity_key", key) for key in sorted(keys)]
            rows = self.find_rows(ENTITY, file_id=sorted(files))
            rows += self.find_rows(ENTITY, entity_key=stored_keys)
        stored_rows = {row["entity_key"]: row for row in rows if row["project_id"] == project}
        by_key, came = self._put_entities(project, entities, stored_rows, ids)
        went = self._mark_gone(stored_rows, {draft.key for draft in entities}, files, at)
        self._put_relations(project, relations, by_key, files, at, ids)
        return came or went

    def link_note(
        self,
        note: tuple[str, EntityType, str],
        links: Iterable[NoteLink],
        *,
        now: datetime,
        ids: Callable[[], str],
    ) -> str:
        """Make a note (its id, "memory" or "diary", its beginning) an entity that concerns these.

        Links that it had and has no longer are closed. Returns the entity's id.
        """
        record_id, kind, name = note
        rows_of_note = self._found(ENTITY, record_id=record_id)
        entity_id = rows_of_note[0][0] if rows_of_note else ids()
        if not rows_of_note:
            draft = EntityDraft(digest("entity", "note", record_id), kind, name)
            row = DRAFT_MAPPING.row(
                draft, entity_id=entity_id, record_id=record_id, project_id=None
            )
            self._insert(ENTITY, [row])
        stored_rows = {_triple(row): row for row in self._of_source([record_id])}
        new_links: dict[tuple[str, ...], NoteLink] = {
            (entity_id, link.predicate, link.entity, record_id): link for link in links
        }
        rows: dict[tuple[str, ...], Row] = {
            triple: {
                "project_id": None, "strength": link.strength, "valid_from": to_micros(now),
                "valid_until": None, "detail": link.detail or None,
            }
            for triple, link in new_links.items()
        }  # fmt: skip
        self._merge(stored_rows, rows, to_micros(now), ids)
        return entity_id

    def supersede_note(self, old: str, new: str, at: datetime) -> int:
        """Close the relations of a note that another took the place of; how many were closed.

        Where the new one states the same of the same entity, its relation names the old one's.
        """
        active_rows = [row for row in self._of_source([old]) if row["status"] == "active"]
        self._close(active_rows, "superseded", to_micros(at))
        replaced_ids = {
            (row["predicate"], row["object_id"]): row["relation_id"] for row in active_rows
        }
        for row in self._of_source([new]):
            replaced_id = replaced_ids.get((row["predicate"], row["object_id"]))
            if replaced_id is not None:
                self._update(RELATION, [row | {"supersedes": replaced_id}])
        return len(active_rows)

    def invalidate(self, sources: Iterable[str], at: datetime) -> int:
        """Close what these notes or files state as having turned out wrong; how many."""
        active = [row for row in self._of_source(sources) if row["status"] == "active"]
        self._close(active, "invalidated", to_micros(at))
        return len(active)

    def _put_entities(
        self,
        project: str,
        drafts: Sequence[EntityDraft],
        stored: Mapping[str, Row],
        ids: Callable[[], str],
    ) -> tuple[dict[str, str], bool]:
        by_key = {key: row["entity_id"] for key, row in stored.items()}
        new_rows: list[Row] = []
        changed_rows: list[Row] = []
        named_drafts: list[tuple[str, EntityDraft]] = []
        for draft in drafts:
            row = DRAFT_MAPPING.row(draft, record_id=None, project_id=project)
            stored_row = stored.get(draft.key)
            if stored_row is None:
                by_key[draft.key] = ids()
                new_rows.append(row | {"entity_id": by_key[draft.key]})
                named_drafts.append((by_key[draft.key], draft))
            elif any(stored_row[n] != row[n] for n in _ENTITY_CHANGES):
                changed_rows.append(row | {"entity_id": stored_row["entity_id"]})
                if stored_row["summary"] != draft.summary or stored_row["gone_at"] is not None:
                    named_drafts.append((stored_row["entity_id"], draft))
        self._insert(ENTITY, new_rows)
        self._update(ENTITY, changed_rows)
        self._delete(ENTITY_ALIAS, entity_id=[entity_id for entity_id, _ in named_drafts])
        rows: dict[tuple[str, str], Row] = {}
        for entity_id, draft in named_drafts:
            for name, kind in draft.aliases:
                alias = alias_of(name)
                if alias:
                    rows.setdefault(
                        (alias, entity_id),
                        {"alias_key": digest("alias", alias), "entity_id": entity_id, "kind": kind},
                    )
        if rows:
            # One name twice is one row.
            self._insert(ENTITY_ALIAS, list(rows.values()), once=True)
        return by_key, bool(new_rows) or any(
            stored[row["entity_key"]]["gone_at"] for row in changed_rows
        )

    def _mark_gone(
        self, stored: Mapping[str, Row], keys: set[str], files: Collection[str] | None, at: int
    ) -> bool:
        """Delete symbols that are gone and that no note names; mark everything else as gone."""
        missing = [
            row
            for key, row in stored.items()
            if key not in keys
            and row["gone_at"] is None
            and (files is None or row["file_id"] in files)
        ]
        symbols = [row["entity_id"] for row in missing if row["kind"] == "symbol"]
        notes = ["concerns", "applies_to"]
        rows = self._rows(RELATION, ("object_id",), object_id=symbols, predicate=notes)
        unlinked_ids = set(symbols) - {row[0] for row in rows}
        self._delete(ENTITY, entity_id=[symbol for symbol in symbols if symbol in unlinked_ids])
        gone_rows = [
            row | {"gone_at": at} for row in missing if row["entity_id"] not in unlinked_ids
        ]
        self._update(ENTITY, gone_rows)
        return bool(missing)

    def _put_relations(
        self,
        project: str,
        drafts: Sequence[RelationDraft],
        by_key: Mapping[str, str],
        files: Collection[str] | None,
        at: int,
        ids: Callable[[], str],
    ) -> None:
        if files is None:
            stated_rows = self.find_rows(RELATION, project_id=project)
        else:
            stated_rows = self._of_source(sorted(files))
        stored_rows = {_triple(row): row for row in stated_rows}
        rows: dict[tuple[str, ...], Row] = {}
        for draft in drafts:
            if draft.subject in by_key and draft.object in by_key:
                ends = by_key[draft.subject], draft.predicate, by_key[draft.object], draft.source
                rows[ends] = {
                    "project_id": project, "strength": draft.strength, "detail": draft.detail,
                    "valid_from": min(to_micros(draft.valid_from) or at, at),
                    "valid_until": to_micros(draft.valid_to),
                }  # fmt: skip
        self._merge(stored_rows, rows, at, ids)

    def _merge(
        self,
        stored: Mapping[tuple[str, ...], Row],
        relations: Mapping[tuple[str, ...], Row],
        at: int,
        ids: Callable[[], str],
    ) -> None:
        new_rows: list[Row] = []
        changed_rows: list[Row] = []
        for triple, row in relations.items():
            row["status"] = "active" if row["valid_until"] is None else "superseded"
            stored_row = stored.get(triple)
            if stored_row is None:
                ends = zip(
                    ("subject_id", "predicate", "object_id", "source_id"), triple, strict=True
                )
                new_rows.append({"relation_id": ids(), "supersedes": None} | dict(ends) | row)
            elif any(stored_row[name] != row[name] for name in _RELATION_CHANGES):
                changed_rows.append(stored_row | {name: row[name] for name in _RELATION_CHANGES})
        self._insert(RELATION, new_rows)
        self._update(RELATION, changed_rows)
        # What the past states does not become untrue when it is not read again.
        closed_rows = [
            row
            for triple, row in stored.items()
            if triple not in relations
            and row["status"] == "active"
            and row["source_id"] != HISTORY_SOURCE
        ]
        self._close(closed_rows, "superseded", at)

    def _close(self, rows: Sequence[Row], status: RelationStatus, at: int) -> None:
        closed_rows = [
            row | {"status": status, "valid_until": max(at, row["valid_from"])} for row in rows
        ]
        self._update(RELATION, closed_rows)

    def _of_source(self, sources: Iterable[str]) -> list[Row]:
        return self.find_rows(RELATION, source_id=list(sources))


def _triple(row: Row) -> tuple[str, ...]:
    return row["subject_id"], row["predicate"], row["object_id"], row["source_id"]
