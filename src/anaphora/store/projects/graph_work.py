"""One change to the graph: entities and relations brought in line with what was found.

In: a write transaction and drafts. Out: changed tables, each row with a number of its own. What is
no longer found is not deleted but closed: its relations become superseded, with the time until
which they held. Symbols that nothing speaks of are deleted, or a graph would grow with every edit.
It decides nothing about what is related. Importing this module imports SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Table, and_, bindparam, delete, select, update

from anaphora.store.codecs import to_micros
from anaphora.store.crypto.columns import CLEAR, Sealer, open_rows
from anaphora.store.db.engine import Write
from anaphora.store.db.heads import insert_into
from anaphora.store.db.schema import entity, entity_alias, relation
from anaphora.store.hashing import digest
from anaphora.store.projects.graph_rows import (
    ENTITY_COLUMNS,
    HISTORY_SOURCE,
    RELATION_COLUMNS,
    EntityDraft,
    NoteLink,
    RelationDraft,
    RelationRow,
    alias_of,
    note_key,
    relation_of,
)
from anaphora.values.projects import EntityType, RelationStatus

_AT_ONCE = 256
_INSERT = {table.name: table.insert() for table in (entity, relation)}
_ENTITY_CHANGES = ("kind", "summary", "file_id", "start_line", "end_line", "gone_at")
_RELATION_CHANGES = ("status", "strength", "valid_until", "detail")

Row = dict[str, Any]


class GraphTransaction:
    """What one write transaction does to the graph."""

    def __init__(self, write: Write, sealer: Sealer = CLEAR) -> None:
        self.write = write
        self.sealer = sealer

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
        at = to_micros(now) or 0
        known = self._entities(project)
        by_key, came = self._put_entities(project, entities, known, ids)
        went = self._let_go(known, {draft.key for draft in entities}, files, at)
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
        key = note_key(record_id)
        found = self._select(entity, ENTITY_COLUMNS, entity.c.record_id == record_id)
        own = found[0]["entity_id"] if found else ids()
        if not found:
            row = {"project_id": None, "kind": kind, "name": name, "entity_key": key}
            self._insert(entity, [_full_entity(row | {"entity_id": own, "record_id": record_id})])
        known = {_triple(row): row for row in self._of_source([record_id])}
        new: dict[tuple[str, ...], NoteLink] = {
            (own, link.predicate, link.entity, record_id): link for link in links
        }
        rows: dict[tuple[str, ...], Row] = {
            triple: {
                "project_id": None, "strength": link.strength, "valid_from": to_micros(now),
                "valid_until": None, "detail": link.detail or None,
            }
            for triple, link in new.items()
        }  # fmt: skip
        self._merge(known, rows, to_micros(now) or 0, ids)
        return own

    def supersede_note(self, old: str, new: str, at: datetime) -> int:
        """Close the relations of a note that another took the place of; how many were closed.

        Where the new one states the same of the same entity, its relation names the old one's.
        """
        before = [row for row in self._of_source([old]) if row["status"] == "active"]
        self._close(before, "superseded", to_micros(at) or 0)
        places = {(row["predicate"], row["object_id"]): row["relation_id"] for row in before}
        for row in self._of_source([new]):
            replaced = places.get((row["predicate"], row["object_id"]))
            if replaced is not None:
                self._write(relation, "relation_id", [row | {"supersedes": replaced}])
        return len(before)

    def invalidate(self, sources: Iterable[str], at: datetime) -> int:
        """Close what these notes or files state as having turned out wrong; how many."""
        active = [row for row in self._of_source(sources) if row["status"] == "active"]
        self._close(active, "invalidated", to_micros(at) or 0)
        return len(active)

    def erase(self, project: str, unwanted: Callable[[str], bool]) -> int:
        """Delete entities of a project by their names or summaries, with their relations."""
        doomed = [
            row["entity_id"]
            for row in self._entities(project).values()
            if unwanted(row["name"]) or unwanted(row["summary"] or "")
        ]
        for some in _portions(doomed):
            own = entity.c.namespace == self.write.namespace
            self.write.connection.execute(delete(entity).where(own, entity.c.entity_id.in_(some)))
        return len(doomed)

    def of_source(self, sources: Iterable[str]) -> tuple[RelationRow, ...]:
        """The relations that these state, as they stand in this transaction."""
        rows = self._of_source(sources)
        return tuple(relation_of([row[name] for name in RELATION_COLUMNS]) for row in rows)

    def _entities(self, project: str) -> dict[str, Row]:
        rows = self._select(entity, ENTITY_COLUMNS, entity.c.project_id == project)
        return {row["entity_key"]: row for row in rows}

    def _put_entities(
        self,
        project: str,
        drafts: Sequence[EntityDraft],
        known: Mapping[str, Row],
        ids: Callable[[], str],
    ) -> tuple[dict[str, str], bool]:
        by_key = {key: row["entity_id"] for key, row in known.items()}
        new: list[Row] = []
        changed: list[Row] = []
        named: list[tuple[str, EntityDraft]] = []
        for draft in drafts:
            row = {
                "project_id": project, "kind": draft.kind, "name": draft.name,
                "entity_key": draft.key, "summary": draft.summary, "file_id": draft.file,
                "start_line": draft.start_line, "end_line": draft.end_line,
                "gone_at": to_micros(draft.gone_at),
            }  # fmt: skip
            before = known.get(draft.key)
            if before is None:
                by_key[draft.key] = ids()
                new.append(_full_entity(row | {"entity_id": by_key[draft.key]}))
                named.append((by_key[draft.key], draft))
            elif any(before[n] != row[n] for n in _ENTITY_CHANGES):
                changed.append(_full_entity(row | {"entity_id": before["entity_id"]}))
                if before["summary"] != draft.summary or before["gone_at"] is not None:
                    named.append((before["entity_id"], draft))
        self._insert(entity, new)
        self._write(entity, "entity_id", changed)
        self._name(named)
        return by_key, bool(new) or any(known[row["entity_key"]]["gone_at"] for row in changed)

    def _name(self, named: Sequence[tuple[str, EntityDraft]]) -> None:
        """Write the names by which entities are found, in place of what they had."""
        for some in _portions(one for one, _ in named):
            own = entity_alias.c.namespace == self.write.namespace
            gone = delete(entity_alias).where(own, entity_alias.c.entity_id.in_(some))
            self.write.connection.execute(gone)
        rows: dict[tuple[str, str], Row] = {}
        for one, draft in named:
            for name, kind in draft.aliases:
                alias = alias_of(name)
                if alias:
                    rows.setdefault(
                        (alias, one),
                        {"alias_key": digest("alias", alias), "entity_id": one, "kind": kind},
                    )
        if rows:
            stored = self._numbered(entity_alias, list(rows.values()))
            statement = insert_into(self.write.connection, entity_alias).on_conflict_do_nothing()
            self.write.connection.execute(statement, stored)

    def _let_go(
        self, known: Mapping[str, Row], wanted: set[str], files: Collection[str] | None, at: int
    ) -> bool:
        """Delete symbols that are gone and that no note names; mark everything else as gone."""
        gone = [
            row
            for key, row in known.items()
            if key not in wanted
            and row["gone_at"] is None
            and (files is None or row["file_id"] in files)
        ]
        symbols = [row["entity_id"] for row in gone if row["kind"] == "symbol"]
        noted = self._noted(symbols)
        doomed = [one for one in symbols if one not in noted]
        for some in _portions(doomed):
            own = entity.c.namespace == self.write.namespace
            self.write.connection.execute(delete(entity).where(own, entity.c.entity_id.in_(some)))
        kept = [row | {"gone_at": at} for row in gone if row["entity_id"] not in set(doomed)]
        self._write(entity, "entity_id", kept)
        return bool(gone)

    def _noted(self, entity_ids: Iterable[str]) -> set[str]:
        found: set[str] = set()
        for some in _portions(entity_ids):
            here = and_(
                relation.c.namespace == self.write.namespace,
                relation.c.object_id.in_(some),
                relation.c.predicate.in_(("concerns", "applies_to")),
            )
            chosen = select(relation.c.object_id).where(here)
            found.update(self.write.connection.execute(chosen).scalars())
        return found

    def _put_relations(
        self,
        project: str,
        drafts: Sequence[RelationDraft],
        by_key: Mapping[str, str],
        files: Collection[str] | None,
        at: int,
        ids: Callable[[], str],
    ) -> None:
        where = relation.c.project_id == project
        stated = self._select(relation, RELATION_COLUMNS, where)
        if files is not None:
            stated = [row for row in stated if row["source_id"] in files]
        known = {_triple(row): row for row in stated}
        rows: dict[tuple[str, ...], Row] = {}
        for draft in drafts:
            if draft.subject in by_key and draft.object in by_key:
                ends = by_key[draft.subject], draft.predicate, by_key[draft.object], draft.source
                rows[ends] = {
                    "project_id": project, "strength": draft.strength, "detail": draft.detail,
                    "valid_from": min(to_micros(draft.valid_from) or at, at),
                    "valid_until": to_micros(draft.valid_to),
                }  # fmt: skip
        self._merge(known, rows, at, ids)

    def _merge(
        self,
        known: Mapping[tuple[str, ...], Row],
        wanted: Mapping[tuple[str, ...], Row],
        at: int,
        ids: Callable[[], str],
    ) -> None:
        new: list[Row] = []
        changed: list[Row] = []
        for triple, row in wanted.items():
            row["status"] = "active" if row["valid_until"] is None else "superseded"
            before = known.get(triple)
            if before is None:
                ends = zip(
                    ("subject_id", "predicate", "object_id", "source_id"), triple, strict=True
                )
                new.append({"relation_id": ids(), "supersedes": None} | dict(ends) | row)
            elif any(before[name] != row[name] for name in _RELATION_CHANGES):
                changed.append(before | {name: row[name] for name in _RELATION_CHANGES})
        self._insert(relation, new)
        self._write(relation, "relation_id", changed)
        # What the past states does not become untrue when it is not read again.
        closed = [
            row
            for triple, row in known.items()
            if triple not in wanted
            and row["status"] == "active"
            and row["source_id"] != HISTORY_SOURCE
        ]
        self._close(closed, "superseded", at)

    def _close(self, rows: Sequence[Row], status: RelationStatus, at: int) -> None:
        closed = [
            row | {"status": status, "valid_until": max(at, row["valid_from"])} for row in rows
        ]
        self._write(relation, "relation_id", closed)

    def _of_source(self, sources: Iterable[str]) -> list[Row]:
        rows: list[Row] = []
        for some in _portions(sources):
            rows += self._select(relation, RELATION_COLUMNS, relation.c.source_id.in_(some))
        return rows

    def _select(self, table: Table, columns: Sequence[str], where: Any) -> list[Row]:
        chosen = select(*(table.c[name] for name in columns))
        found = self.write.connection.execute(
            chosen.where(table.c.namespace == self.write.namespace, where)
        )
        rows = [tuple(row) for row in found]
        opened = open_rows(self.sealer, table.name, columns, self.write.namespace, rows)
        return [dict(zip(columns, row, strict=True)) for row in opened]

    def _insert(self, table: Table, rows: Sequence[Row]) -> None:
        if rows:
            self.write.connection.execute(_INSERT[table.name], self._numbered(table, rows))

    def _write(self, table: Table, key: str, rows: Sequence[Row]) -> None:
        if not rows:
            return
        names = [n for n in rows[0] if n != key]
        statement = (
            update(table)
            .where(table.c.namespace == bindparam("here"), table.c[key] == bindparam("of"))
            .values({name: bindparam(f"new_{name}") for name in names})
        )
        given = [
            {"here": self.write.namespace, "of": row[key]} | {f"new_{n}": row[n] for n in names}
            for row in self._numbered(table, rows)
        ]
        self.write.connection.execute(statement, given)

    def _numbered(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        numbers = self.write.take(len(rows))
        here = self.write.namespace
        return [
            self.sealer.seal_row(table.name, row | {"seq": seq, "namespace": here})
            for row, seq in zip(rows, numbers, strict=True)
        ]


def _full_entity(row: Row) -> Row:
    return dict.fromkeys(ENTITY_COLUMNS) | row


def _triple(row: Row) -> tuple[str, ...]:
    return row["subject_id"], row["predicate"], row["object_id"], row["source_id"]


def _portions(values: Iterable[str]) -> Iterator[list[str]]:
    wanted = list(dict.fromkeys(values))
    for start in range(0, len(wanted), _AT_ONCE):
        yield wanted[start : start + _AT_ONCE]
