"""Memories and notes of a namespace as pages, and what a person changes in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, cast

from anaphora.errors import NotFound
from anaphora.mirror.page import HomePage, PageKind, Said
from anaphora.values.memories import LABELS, MEMORY_FIELDS, MemoryRecord, NewMemory

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_PAGE: Final = 1000
_ALL: Final = 1_000_000_000
_EMPTY: Final[Mapping[str, Any]] = {"tags": (), "text": None}


class HomePages:
    """The pages of one namespace."""

    def __init__(self, services: NamespaceServices) -> None:
        self._services = services
        self._gone: frozenset[str] | None = None

    def version(self) -> int:
        """A number that every change to the namespace raises."""
        return self._services.sidecar.version()

    def all(self) -> dict[str, HomePage]:
        """What holds now, by id."""
        found: dict[str, HomePage] = {}
        cursor: str | None = None
        now = self._services.clock()
        while True:
            page = self._services.records.list(limit=_PAGE, cursor=cursor, now=now)
            for record in page:
                found[record.id] = _page("memory", record)
            cursor = page.cursor
            if cursor is None:
                break
        for row in self._services.notes.list(kind="observation", limit=_ALL):
            found[row.record.id] = _page("note", row.record)
        return found

    def related(self, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The ids of memories that are close to each of these, the closest first."""
        wanted = set(ids)
        near: dict[str, list[str]] = {}
        for link in self._services.records.links(wanted):
            for one, other in (
                (link.record_id, link.other_id),
                (link.other_id, link.record_id),
            ):
                if one in wanted and other not in near.setdefault(one, []):
                    near[one].append(other)
        return {one: tuple(others) for one, others in near.items()}

    def forgotten(self) -> frozenset[str]:
        """The ids of what was forgotten for good, or is to be once its time to undo is over.

        What sync has made one with another memory is not among them while that one is there.
        """
        if self._gone is None:
            services = self._services
            kinds = (services.records, services.notes)
            gone = {one for kind in kinds for _, one in kind.tombstones_since(0)}
            for merged, into in services.records.merged().items():
                if merged in gone and self._is_there(into):
                    gone.discard(merged)
            gone |= {str(job["conversation_id"]) for job in services.jobs.list_pending("erase")}
            self._gone = frozenset(gone)
        return self._gone

    def _is_there(self, record_id: str) -> bool:
        return bool(self._services.records.many([record_id]))

    def present(self, old: str) -> str | None:
        """The id of the version that took the place of `old`; None where it is not known."""
        services = self._services
        seen: set[str] = set()
        found: str | None = old
        while found is not None and found not in seen:
            seen.add(found)
            record = services.records.many([found]).get(found)
            if record is None:
                note = services.notes.many([found]).get(found)
                record = None if note is None else note.record
            if record is None or record.superseded_by is None:
                return None if record is None else found
            found = record.superseded_by
        return None

    def edit(self, page: HomePage, said: Said) -> str:
        """Let a page say something else: a new version if its words differ; its present id.

        Raises InvalidInput for a type or tag that cannot be, or where it has changed meanwhile.
        """
        services = self._services
        if page.kind == "note":
            payload = page.payload or {}
            made = services.note_taking.observe(
                said.text,
                kind=cast("Any", said.type),
                importance=int(payload.get("importance", 3)),
                tags=said.labels.get("tags", ()),
                source=page.source,
                supersedes=page.id,
                project=payload.get("project"),
            )
            return made.id
        changes: dict[str, Any] = {
            name: said.labels.get(name, _EMPTY[MEMORY_FIELDS[name].kind])
            for name in LABELS
            if said.labels.get(name) != page.said.labels.get(name)
        }
        if said.type != page.said.type:
            changes["type"] = said.type
        if replace(said, type=page.said.type, labels=page.said.labels).digest != page.said.digest:
            changes["text"] = said.text
        return services.remember.update(page.id, **changes).id if changes else page.id

    def add(self, kind: PageKind, path: str | None, said: Said, source: str) -> str:
        """Keep what a new file says; the id. Raises InvalidInput."""
        services = self._services
        if kind == "note":
            note = services.note_taking.observe(
                said.text,
                kind=cast("Any", said.type),
                tags=said.labels.get("tags", ()),
                source=source,
            )
            return note.id
        new = NewMemory(
            said.text, type=cast("Any", said.type), path=path, source=source, **said.labels
        )
        return services.remember.remember(new).id

    def hide(self, page: HomePage) -> None:
        """Forget a page softly: `undo_forget` brings it back."""
        try:
            self._services.forget_any(page.id, None, soft=True)
        except NotFound:
            # It went by itself meanwhile.
            return

    def one(self, record_id: str) -> HomePage:
        """A page as it stands now. Raises NotFound."""
        record = self._services.records.many([record_id]).get(record_id)
        if record is not None:
            return _page("memory", record)
        return _page("note", self._services.notes.get(record_id).record)


def _page(kind: PageKind, record: MemoryRecord) -> HomePage:
    return HomePage(
        record.id,
        kind,
        Said(
            record.text,
            record.type,
            {name: value for name in LABELS if (value := getattr(record, name))},
        ),
        record.created_at,
        _last_said(record),
        record.path,
        record.sources[0] if record.sources else None,
        record.payload,
    )


def _last_said(record: MemoryRecord) -> datetime:
    return max(record.valid_from, record.last_reinforced)
