"""The graph in the database: what projects consist of, what notes concern, and since when.

Names are compared by `alias_of`. Every walk is bounded. It never decides what is related:
`anaphora.ingest` does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from anaphora.features.projects.store.graph_rows import (
    ENTITY_MAPPING,
    RELATION_MAPPING,
    EntityRow,
    Neighbour,
    RelationRow,
    alias_of,
    entity_key,
)
from anaphora.features.projects.tables import ENTITY, ENTITY_ALIAS, RELATION
from anaphora.features.projects.values import EntityType, Predicate, RelationStatus
from anaphora.store.hashing import digest
from anaphora.store.namespace import NamespaceReader, Rows, ids_named

if TYPE_CHECKING:
    from anaphora.features.projects.store.graph_transaction import GraphTransaction

_NAMED = (
    f"SELECT {ENTITY.listed('e')}, a.alias_key, a.entity_id, a.kind "  # noqa: S608 - names of ours
    "FROM entity_alias a JOIN entity e ON e.namespace = a.namespace "
    "AND e.entity_id = a.entity_id WHERE a.namespace = :namespace AND a.alias_key IN ({names}) "
)
_ALIAS = ("alias_key", "entity_id", "kind")
# One half for each end: an OR of both would read the whole namespace.
_OF_ENDS = (
    f"SELECT {RELATION.listed()} FROM ("  # noqa: S608 - names of ours
    + " UNION ALL ".join(
        f"SELECT {RELATION.listed()}, ROW_NUMBER() OVER ("  # noqa: S608
        f"PARTITION BY {end}, predicate ORDER BY strength DESC, relation_id) AS nth "
        f"FROM relation WHERE namespace = :namespace AND {end} IN ({{names}}) "
        "AND status IN ({statuses})"
        for end in ("subject_id", "object_id")
    )
    + ") AS ended WHERE nth <= :most"
)
_COUNTS = (
    "SELECT (SELECT COUNT(*) FROM entity WHERE namespace = :namespace "
    "AND project_id = :project AND gone_at IS NULL), "
    "(SELECT COUNT(*) FROM relation WHERE namespace = :namespace "
    "AND project_id = :project AND status = 'active')"
)
_OF_PROJECT = (
    ENTITY.select() + "AND project_id = :project AND gone_at IS NULL AND kind IN ({names})"
)
_LINKS = (
    "SELECT subject_id, object_id FROM relation WHERE namespace = :namespace "
    "AND project_id = :project AND predicate = :predicate AND status = 'active'"
)
_IDS = 100
_ACTIVE: tuple[RelationStatus, ...] = ("active",)


class Graph(NamespaceReader):
    """The entities and relations of one namespace."""

    @contextmanager
    def change(self) -> Iterator[GraphTransaction]:
        """One write transaction: what was done in it is kept whole or not."""
        from anaphora.features.projects.store.graph_transaction import GraphTransaction

        with self._writing() as write:
            yield GraphTransaction(write, self.sealer)

    def entities(self, entity_ids: Iterable[str]) -> dict[str, EntityRow]:
        """The entities of these ids that exist, by id."""
        return {row.id: row for row in self._entities_by("entity_id", entity_ids)}

    def entities_named(
        self,
        names: Iterable[str],
        *,
        project: str | None = None,
        kinds: Collection[EntityType] | None = None,
        gone: bool = False,
        limit: int = 20,
    ) -> dict[str, tuple[EntityRow, ...]]:
        """For each name the entities that go by it, at most `limit`, those by their own name first.

        `project` leaves out entities of other projects (notes have none and stay); `gone` brings in
        what is no longer there. Names without entities are left out.
        """
        names_by_key: dict[str, list[str]] = {}
        for name in names:
            alias = alias_of(name)
            if alias:
                alias_key = self._lookup("alias_key", digest("alias", alias))
                names_by_key.setdefault(alias_key, []).append(name)
        rows_by_key: dict[str, list[EntityRow]] = {}
        for key, row in self._entities_by_alias(names_by_key):
            fits = project is None or row.project in (None, project)
            fits = fits and (kinds is None or row.kind in kinds) and (gone or row.gone_at is None)
            if fits:
                rows_by_key.setdefault(key, []).append(row)
        return {
            name: tuple(_sort_own_first(rows, alias_of(name))[:limit])
            for key, rows in rows_by_key.items()
            for name in names_by_key[key]
        }

    def entities_at(self, project: str, paths: Iterable[str]) -> dict[str, EntityRow]:
        """The file, document or configuration entities at these paths, by path; gone ones too."""
        keys = [self._lookup("entity_key", entity_key(project, "file", path)) for path in paths]
        return {row.name: row for row in self._entities_by("entity_key", keys)}

    def entities_of_notes(self, record_ids: Iterable[str]) -> dict[str, EntityRow]:
        """The entities that notes are, by the ids of the notes."""
        return {row.record or "": row for row in self._entities_by("record_id", record_ids)}

    def relations(
        self, entity_ids: Iterable[str], statuses: tuple[RelationStatus, ...] = _ACTIVE
    ) -> tuple[RelationRow, ...]:
        """The relations that have one of these entities at either end, the strongest first."""
        return tuple(self._relation_rows(self._of_ends(entity_ids, statuses, _NO_LIMIT)))

    def neighbours(
        self,
        entity_ids: Iterable[str],
        *,
        limit: int = 8,
        statuses: tuple[RelationStatus, ...] = _ACTIVE,
    ) -> tuple[Neighbour, ...]:
        """Relations of these entities, the strongest of each kind first, each with its far end.

        Of each entity at most `limit` relations are followed, of every kind in turn: a file that
        defines a hundred symbols still shows what it imports. Each relation is given once.
        """
        room = dict.fromkeys(entity_ids, limit)
        # Of one kind an entity follows `limit` at most, past those that others followed to it.
        rows = self._of_ends(room, statuses, limit + len(room))
        followed_rows = [
            (row, far_end) for row in _take_turns(rows, room) if (far_end := _far_end(row, room))
        ]
        relations = self._relation_rows([row for row, _ in followed_rows])
        pairs = zip(relations, followed_rows, strict=True)
        return tuple(Neighbour(relation, far_end) for relation, (_, far_end) in pairs)

    def counts(self, project: str) -> tuple[int, int]:
        """(entities that are there, active relations) of a project, notes not counted."""
        rows = self._rows(_COUNTS, project=project)
        return (int(rows[0][0]), int(rows[0][1])) if rows else (0, 0)

    def of_project(self, project: str, kinds: Iterable[EntityType]) -> tuple[EntityRow, ...]:
        """The entities of these kinds that a project has now."""
        return tuple(
            row
            for batch, names in ids_named(kinds, _IDS)
            for row in self._entities(_OF_PROJECT.format(names=names), project=project, **batch)
        )

    def links_of_project(self, project: str, predicate: Predicate) -> tuple[tuple[str, str], ...]:
        """(subject, object) of every active relation of this kind that a project has."""
        rows = self._rows(_LINKS, project=project, predicate=predicate)
        return tuple((str(row[0]), str(row[1])) for row in rows)

    def _entities_by_alias(self, keys: Iterable[str]) -> Iterator[tuple[str, EntityRow]]:
        for batch, names in ids_named(keys, _IDS):
            rows = self._rows(_NAMED.format(names=names), **batch)
            # Only a name that is the entity's own opens.
            self._opened(ENTITY_ALIAS, [row[-3:] for row in rows], _ALIAS, only=())
            entities = self._opened(ENTITY, [row[:-3] for row in rows])
            for entity, row in zip(entities, rows, strict=True):
                yield row[-3], ENTITY_MAPPING.value(entity)

    def _entities_by(self, column: str, values: Iterable[str]) -> Iterator[EntityRow]:
        for batch, names in ids_named(values, _IDS):
            yield from self._entities(ENTITY.select() + f"AND {column} IN ({names})", **batch)

    def _entities(self, statement: str, **values: str | int | None) -> Iterator[EntityRow]:
        return map(ENTITY_MAPPING.value, self._found(ENTITY, statement, **values))

    def _of_ends(
        self, entity_ids: Iterable[str], statuses: tuple[RelationStatus, ...], most: int
    ) -> list[tuple[Any, ...]]:
        """Rows that have one of these at either end, the strongest first.

        Of each end, direction and kind at most `most`.
        """
        rows_by_id: dict[str, tuple[Any, ...]] = {}
        # Names of ours, never a caller's words.
        among = ", ".join(f"'{status}'" for status in statuses) or "''"
        for batch, names in ids_named(entity_ids, _IDS):
            statement = _OF_ENDS.format(names=names, statuses=among)
            for row in self._rows(statement, **batch, most=most):
                rows_by_id[row[_ID]] = row
        return sorted(
            rows_by_id.values(), key=lambda row: (-row[_STRENGTH], row[_PREDICATE], row[_ID])
        )

    def _relation_rows(self, rows: Rows) -> Iterator[RelationRow]:
        return map(RELATION_MAPPING.value, self._opened(RELATION, rows))


def _sort_own_first(rows: Iterable[EntityRow], alias: str) -> list[EntityRow]:
    return sorted(rows, key=lambda row: (alias_of(row.name) != alias, row.name, row.id))


# What says most comes first.
_ORDER: tuple[Predicate, ...] = (
    "applies_to", "concerns", "supersedes", "covers", "imports", "contains", "uses_package",
    "defines",
)  # fmt: skip


_ID, _SUBJECT, _PREDICATE, _OBJECT, _STRENGTH = map(
    RELATION.names.index, ("relation_id", "subject_id", "predicate", "object_id", "strength")
)
_NO_LIMIT = 2**31 - 1


def _take_turns(
    rows: Iterable[tuple[Any, ...]], border: Collection[str]
) -> Iterator[tuple[Any, ...]]:
    """For each entity of the border the strongest of every kind, then the second, and so on."""
    counts: dict[tuple[str, str], int] = {}
    ranked_rows: list[tuple[int, int, int, tuple[Any, ...]]] = []
    for number, row in enumerate(rows):
        predicate, rank = row[_PREDICATE], _NO_LIMIT
        for end in (row[_SUBJECT], row[_OBJECT]):
            if end in border:
                nth = counts.get((end, predicate), 0)
                counts[end, predicate] = nth + 1
                rank = min(rank, nth)
        ranked_rows.append((rank, _ORDER.index(predicate), number, row))
    # Numbers differ: rows themselves are never compared.
    ranked_rows.sort()
    return (row for *_, row in ranked_rows)


def _far_end(row: tuple[Any, ...], room: dict[str, int]) -> str | None:
    """The far end of a relation, where an entity has room for one more."""
    ends: tuple[str, str] = (row[_SUBJECT], row[_OBJECT])
    for near_end, far_end in (ends, ends[::-1]):
        if room.get(near_end, 0) > 0:
            room[near_end] -= 1
            return far_end
    return None
