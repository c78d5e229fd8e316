"""Memories and notes of a namespace as pages, and the edits of pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from anaphora.container.forgetting import forget_any
from anaphora.errors import InvalidInput, NotFound
from anaphora.features.mirror.page import HomePage, PageContent, PageKind
from anaphora.ingest.secrets.masking import mask
from anaphora.values.memories import LABELS, MEMORY_FIELDS, MemoryRecord, NewMemory

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices
    from anaphora.container.pages import NotePages

_PAGE: Final = 1000
_EMPTY: Final[Mapping[str, Any]] = {"tags": (), "text": None}


class HomePages:
    """The pages of one namespace."""

    def __init__(self, services: NamespaceServices) -> None:
        self._services = services
        by_feature = (feature.pages() for feature in services.features)
        self._notes = next((notes for notes in by_feature if notes is not None), None)
        self._forgotten_ids: frozenset[str] | None = None

    def version(self) -> int:
        """A number that every change to the namespace raises."""
        return self._services.conversation.sidecar.version()

    def list_all(self) -> dict[str, HomePage]:
        """The current pages, by id."""
        pages: dict[str, HomePage] = {}
        cursor: str | None = None
        now = self._services.clock()
        while True:
            page = self._services.memory.records.list(limit=_PAGE, cursor=cursor, now=now)
            for record in page:
                pages[record.id] = _page("memory", record)
            cursor = page.cursor
            if cursor is None:
                break
        for note in self._notes.list_all() if self._notes is not None else ():
            pages[note.id] = _page("note", note)
        return pages

    def related(self, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The ids of memories that are close to each of these, the closest first."""
        record_ids = set(ids)
        neighbours_by_id: dict[str, list[str]] = {}
        for link in self._services.memory.records.links(record_ids):
            for record_id, neighbour in (
                (link.record_id, link.other_id),
                (link.other_id, link.record_id),
            ):
                if record_id in record_ids and neighbour not in neighbours_by_id.setdefault(
                    record_id, []
                ):
                    neighbours_by_id[record_id].append(neighbour)
        return {record_id: tuple(neighbours) for record_id, neighbours in neighbours_by_id.items()}

    def forgotten(self) -> frozenset[str]:
        """The ids of pages that were forgotten for good, or will be once undoing expires.

        A page that sync has merged into another is not among them while that one exists.
        """
        if self._forgotten_ids is None:
            services = self._services
            forgotten_ids = {
                record_id for _, record_id in services.memory.records.tombstones_since(0)
            }
            if self._notes is not None:
                forgotten_ids.update(self._notes.list_tombstones())
            for merged_id, target_id in services.memory.records.merged().items():
                if merged_id in forgotten_ids and services.memory.records.many([target_id]):
                    forgotten_ids.discard(merged_id)
            forgotten_ids |= {
                str(job["conversation_id"]) for job in services.jobs.list_pending("erase")
            }
            self._forgotten_ids = frozenset(forgotten_ids)
        return self._forgotten_ids

    def find_current(self, old: str) -> str | None:
        """The id of the version that replaced `old`; None if it is unknown."""
        services = self._services
        visited_ids: set[str] = set()
        version: str | None = old
        while version is not None and version not in visited_ids:
            visited_ids.add(version)
            record = services.memory.records.many([version]).get(version) or self._find_note(
                version
            )
            if record is None or record.superseded_by is None:
                return None if record is None else version
            version = record.superseded_by
        return None

    def edit(self, page: HomePage, said: PageContent) -> str:
        """Edit a page, with a new version if the text differs; its present id.

        Raises InvalidInput for a bad type or tag, or if it was changed meanwhile.
        """
        services = self._services
        if page.kind == "note":
            return self._require_notes().write(
                said.text,
                kind=said.type,
                tags=said.labels.get("tags", ()),
                source=page.source,
                supersedes=page.id,
                payload=page.payload,
            )
        changes: dict[str, Any] = {
            name: said.labels.get(name, _EMPTY[MEMORY_FIELDS[name].kind])
            for name in LABELS
            if said.labels.get(name) != page.said.labels.get(name)
        }
        if said.type != page.said.type:
            changes["type"] = said.type
        if replace(said, type=page.said.type, labels=page.said.labels).digest != page.said.digest:
            changes["text"] = said.text
        return services.memory.writer.update(page.id, **changes).id if changes else page.id

    def add(self, kind: PageKind, path: str | None, said: PageContent, source: str) -> str:
        """Add the page of a new file; its id. Raises InvalidInput."""
        services = self._services
        if kind == "note":
            return self._require_notes().write(
                said.text, kind=said.type, tags=said.labels.get("tags", ()), source=source
            )
        return services.memory.writer.remember(
            NewMemory(
                said.text, type=cast("Any", said.type), path=path, source=source, **said.labels
            )
        ).id

    def hide(self, page: HomePage) -> None:
        """Forget a page softly: `undo_forget` brings it back."""
        try:
            forget_any(self._services, page.id, None, soft=True)
        except NotFound:
            # It expired or was forgotten meanwhile.
            return

    def get(self, record_id: str) -> HomePage:
        """A page as it stands now. Raises NotFound."""
        record = self._services.memory.records.many([record_id]).get(record_id)
        if record is not None:
            return _page("memory", record)
        note = self._find_note(record_id)
        if note is None:
            raise NotFound("note", record_id)
        return _page("note", note)

    def _find_note(self, record_id: str) -> MemoryRecord | None:
        return None if self._notes is None else self._notes.find(record_id)

    def _require_notes(self) -> NotePages:
        if self._notes is None:
            raise InvalidInput("kind", "note", "no registered feature keeps notes")
        return self._notes


def _page(kind: PageKind, record: MemoryRecord) -> HomePage:
    if record.keep_secret:
        # A folder of files is outside of the home.
        record = mask(record)
    return HomePage(
        record.id,
        kind,
        PageContent(
            record.text,
            record.type,
            {name: label for name in LABELS if (label := getattr(record, name))},
        ),
        record.created_at,
        max(record.valid_from, record.last_reinforced),
        record.path,
        record.sources[0] if record.sources else None,
        record.payload,
    )
