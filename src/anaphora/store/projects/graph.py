"""The graph in truth: what projects consist of, what notes concern, and since when.

In: names, ids. Out: frozen values. Names are compared by `alias_of`. Reads are plain SQL that both
databases know, without SQLAlchemy on SQLite; every walk is bounded. A change begins with
`change()`. It never decides what is related: `anaphora.ingest` does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from anaphora.store.crypto.columns import CLEAR, Sealer, open_rows
from anaphora.store.db.in_lists import ids_named
from anaphora.store.hashing import digest
from anaphora.store.projects.graph_rows import (
    ENTITY_COLUMNS,
    RELATION_COLUMNS,
    EntityRow,
    Neighbour,
    RelationRow,
    alias_of,
    entity_key,
    entity_of,
    relation_of,
)
from anaphora.values.projects import EntityType, Predicate, RelationStatus

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database
    from anaphora.store.projects.graph_work import GraphTransaction

__all__ = ["EntityRow", "Graph", "Neighbour", "RelationRow", "alias_of"]

_ENTITIES = (
    f"SELECT {', '.join('e.' + name for name in ENTITY_COLUMNS)} "  # noqa: S608 - names of ours
    "FROM entity e WHERE e.namespace = :namespace "
)
_NAMED = (
    f"SELECT {', '.join('e.' + name for name in ENTITY_COLUMNS)}, "  # noqa: S608
    "a.alias_key, a.entity_id, a.kind "
    "FROM entity_alias a JOIN entity e ON e.namespace = a.namespace "
    "AND e.entity_id = a.entity_id WHERE a.namespace = :namespace AND a.alias_key IN ({names}) "
)
_ALIAS = ("alias_key", "entity_id", "kind")
_RELATIONS = (
    f"SELECT {', '.join(RELATION_COLUMNS)} FROM relation "  # noqa: S608 - names of ours
    "WHERE namespace = :namespace "
)
# One half for each end: an OR of both would read the whole namespace.
_OF_ENDS = (
    f"SELECT {', '.join(RELATION_COLUMNS)} FROM ("  # noqa: S608 - names of ours
    + " UNION ALL ".join(
        f"SELECT {', '.join(RELATION_COLUMNS)}, ROW_NUMBER() OVER ("  # noqa: S608
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
    _ENTITIES + "AND e.project_id = :project AND e.gone_at IS NULL AND e.kind IN ({names})"
)
_LINKS = (
    "SELECT subject_id, object_id FROM relation WHERE namespace = :namespace "
    "AND project_id = :project AND predicate = :predicate AND status = 'active'"
)
_IDS = 100
_ALL: tuple[RelationStatus, ...] = ("active", "superseded", "invalidated")
_ACTIVE: tuple[RelationStatus, ...] = ("active",)


class Graph:
    """The entities and relations of one namespace."""

    def __init__(self, truth: Database, namespace: str, sealer: Sealer = CLEAR) -> None:
        self.truth = truth
        self.namespace = namespace
        self.sealer = sealer

    @contextmanager
    def change(self) -> Iterator[GraphTransaction]:
        """One write transaction: what was done in it is kept whole or not."""
        from anaphora.store.projects.graph_work import GraphTransaction

        with self.truth.write(self.namespace) as write:
            self.sealer.check()
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
        wanted: dict[str, list[str]] = {}
        for name in names:
            alias = alias_of(name)
            if alias:
                wanted.setdefault(self.alias_key(alias), []).append(name)
        found: dict[str, list[EntityRow]] = {}
        for key, row in self._aliased(wanted):
            fits = project is None or row.project in (None, project)
            fits = fits and (kinds is None or row.kind in kinds) and (gone or row.gone_at is None)
            if fits:
                found.setdefault(key, []).append(row)
        result: dict[str, tuple[EntityRow, ...]] = {}
        for key, rows in found.items():
            for name in wanted[key]:
                result[name] = tuple(_own_first(rows, alias_of(name))[:limit])
        return result

    def entities_at(self, project: str, paths: Iterable[str]) -> dict[str, EntityRow]:
        """The file, document or configuration entities at these paths, by path; gone ones too."""
        keys = [
            self.sealer.lookup("entity_key", self.namespace, entity_key(project, "file", path))
            for path in paths
        ]
        return {row.name: row for row in self._entities_by("entity_key", keys)}

    def entities_of_files(self, file_ids: Iterable[str]) -> tuple[EntityRow, ...]:
        """What these files are and define."""
        return tuple(self._entities_by("file_id", file_ids))

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
        hops: int = 2,
        limit: int = 8,
        statuses: tuple[RelationStatus, ...] = _ACTIVE,
    ) -> tuple[Neighbour, ...]:
        """Relations within `hops` steps (1 to 5) of these entities, the nearest first.

        Of each entity at most `limit` relations are followed, of every kind in turn: a file that
        defines a hundred symbols still shows what it imports. Each relation is given once.
        """
        seen = set(entity_ids)
        border, found = list(seen), dict[str, Neighbour]()
        for depth in range(1, max(1, min(hops, 5)) + 1):
            if not border:
                break
            # Of one kind an entity follows `limit` at most, past those that others followed to it.
            rows = self._of_ends(border, statuses, limit + len(border))
            room = dict.fromkeys(border, limit)
            followed = [
                (row, far) for row in _in_turn(rows, room) for far in _follow(row, room, found)
            ]
            relations = self._relation_rows([row for row, _ in followed])
            for relation, (_, far) in zip(relations, followed, strict=True):
                found[relation.id] = Neighbour(relation, far, depth)
            border = [far for far in dict.fromkeys(far for _, far in followed) if far not in seen]
            seen.update(border)
        return tuple(found.values())

    def counts(self, project: str) -> tuple[int, int]:
        """(entities that are there, active relations) of a project, notes not counted."""
        rows = self._rows(_COUNTS, project=project)
        return (int(rows[0][0]), int(rows[0][1])) if rows else (0, 0)

    def of_project(self, project: str, kinds: Iterable[EntityType]) -> tuple[EntityRow, ...]:
        """The entities of these kinds that a project has now."""
        return tuple(
            row
            for some, names in ids_named(kinds, _IDS)
            for row in self._opened(
                self._rows(_OF_PROJECT.format(names=names), project=project, **some)
            )
        )

    def links_of_project(self, project: str, predicate: Predicate) -> tuple[tuple[str, str], ...]:
        """(subject, object) of every active relation of this kind that a project has."""
        rows = self._rows(_LINKS, project=project, predicate=predicate)
        return tuple((str(row[0]), str(row[1])) for row in rows)

    def of_source(
        self, source: str, statuses: tuple[RelationStatus, ...] = _ALL
    ) -> tuple[RelationRow, ...]:
        """The relations that one file or note states, those of the past too."""
        return tuple(self._relations("AND source_id = :source ", statuses, {"source": source}))

    def alias_key(self, alias: str) -> str:
        """What `alias_key` columns hold for a normalised name."""
        return self.sealer.lookup("alias_key", self.namespace, digest("alias", alias))

    def _aliased(self, keys: Iterable[str]) -> Iterator[tuple[str, EntityRow]]:
        for some, names in ids_named(keys, _IDS):
            rows = self._rows(_NAMED.format(names=names), **some)
            # Only a name that is the entity's own opens.
            own = [row[-3:] for row in rows]
            open_rows(self.sealer, "entity_alias", _ALIAS, self.namespace, own, only=())
            for row, whole in zip(self._opened([r[:-3] for r in rows]), rows, strict=True):
                yield whole[-3], row

    def _entities_by(self, column: str, values: Iterable[str]) -> Iterator[EntityRow]:
        for some, names in ids_named(values, _IDS):
            yield from self._opened(self._rows(_ENTITIES + f"AND e.{column} IN ({names})", **some))

    def _opened(self, rows: Sequence[tuple[Any, ...]]) -> Iterator[EntityRow]:
        opened = open_rows(self.sealer, "entity", ENTITY_COLUMNS, self.namespace, rows)
        return map(entity_of, opened)

    def _relations(
        self, where: str, statuses: tuple[RelationStatus, ...], values: dict[str, Any]
    ) -> Iterator[RelationRow]:
        given, among = _among(statuses)
        rows = self._rows(_RELATIONS + where + f"AND status IN ({among})", **values, **given)
        return self._relation_rows(rows)

    def _of_ends(
        self, entity_ids: Iterable[str], statuses: tuple[RelationStatus, ...], most: int
    ) -> list[tuple[Any, ...]]:
        """Rows that have one of these at either end, the strongest first.

        Of each end, direction and kind at most `most`.
        """
        found: dict[str, tuple[Any, ...]] = {}
        given, among = _among(statuses)
        for some, names in ids_named(entity_ids, _IDS):
            statement = _OF_ENDS.format(names=names, statuses=among)
            for row in self._rows(statement, **some, **given, most=most):
                found[row[_ID]] = row
        return sorted(found.values(), key=_strongest)

    def _relation_rows(self, rows: Sequence[tuple[Any, ...]]) -> Iterator[RelationRow]:
        opened = open_rows(self.sealer, "relation", RELATION_COLUMNS, self.namespace, rows)
        return map(relation_of, opened)

    def _rows(self, statement: str, **values: str | int | None) -> Sequence[tuple[Any, ...]]:
        self.sealer.check()
        return self.truth.rows(statement, {"namespace": self.namespace, **values})


def _own_first(rows: Iterable[EntityRow], alias: str) -> list[EntityRow]:
    return sorted(rows, key=lambda row: (alias_of(row.name) != alias, row.name, row.id))


# What says most comes first.
_ORDER: tuple[Predicate, ...] = (
    "applies_to", "concerns", "supersedes", "covers", "imports", "contains", "uses_package",
    "defines",
)  # fmt: skip


_ID, _SUBJECT, _PREDICATE, _OBJECT, _STRENGTH = map(
    RELATION_COLUMNS.index, ("relation_id", "subject_id", "predicate", "object_id", "strength")
)
_NO_LIMIT = 2**31 - 1


def _in_turn(rows: Iterable[tuple[Any, ...]], border: Collection[str]) -> Iterator[tuple[Any, ...]]:
    """For each entity of the border the strongest of every kind, then the second, and so on."""
    counts: dict[tuple[str, str], int] = {}
    ranked: list[tuple[int, int, int, tuple[Any, ...]]] = []
    for number, row in enumerate(rows):
        predicate, rank = row[_PREDICATE], _NO_LIMIT
        for end in (row[_SUBJECT], row[_OBJECT]):
            if end in border:
                nth = counts.get((end, predicate), 0)
                counts[end, predicate] = nth + 1
                rank = min(rank, nth)
        ranked.append((rank, _ORDER.index(predicate), number, row))
    # Numbers differ: rows themselves are never compared.
    ranked.sort()
    return (row for *_, row in ranked)


def _follow(row: tuple[Any, ...], room: dict[str, int], known: Collection[str]) -> Iterator[str]:
    """The far end of a relation that is not known, where an entity has room for one more."""
    ends = (row[_SUBJECT], row[_OBJECT])
    for near, far in (ends, ends[::-1]):
        if room.get(near, 0) > 0 and row[_ID] not in known:
            room[near] -= 1
            yield far
            return


def _strongest(row: tuple[Any, ...]) -> tuple[float, str, str]:
    return -row[_STRENGTH], row[_PREDICATE], row[_ID]


def _among(statuses: Iterable[RelationStatus]) -> tuple[dict[str, str], str]:
    """Parameters for some statuses, and their names for an IN."""
    given: dict[str, str] = {f"status{number}": one for number, one in enumerate(statuses)}
    return given, ", ".join(f":{name}" for name in given) or "''"
