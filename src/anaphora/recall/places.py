"""Which sessions belong to a project: by the repository they were held in, else by the folder."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

from anaphora.language.names import composed
from anaphora.system.repositories import repository_of
from anaphora.values.sessions import SessionPlace

if TYPE_CHECKING:
    from anaphora.store.threads.sidecar import Sidecar

_SEPARATOR = re.compile(r"[/\\]")


@dataclass(slots=True)
class SessionPlaces:
    """The places of the sessions of one namespace, read again when one was written."""

    sidecar: Sidecar
    find_repository: Callable[[str], str] = repository_of
    _version: int = -1
    _known: dict[str, SessionPlace] = field(default_factory=dict)

    def all(self) -> dict[str, SessionPlace]:
        """Every session with a known place, by conversation id."""
        version = self.sidecar.places_version()
        if version != self._version:
            self._known, self._version = self.sidecar.places(), version
        return self._known

    def around(self, directory: str) -> frozenset[str]:
        """The sessions of the project that a folder lies in; of the folder, if it is in none."""
        locations = self.all()
        repository = self.find_repository(directory)
        if repository:
            return frozenset(
                i for i, location in locations.items() if location.repository == repository
            )
        return frozenset(
            i for i, location in locations.items() if _lies_in(location.directory, directory)
        )

    def of_project(self, project: str) -> frozenset[str]:
        """The sessions of a project by its folder, its repository, or the last part of either."""
        name = composed(project.casefold()).rstrip("/\\")
        sessions = set()
        for conversation_id, location in self.all().items():
            parts = (location.repository, location.directory)
            names = [composed(part.casefold()).rstrip("/\\") for part in parts]
            is_named = any(
                full_name and name in (full_name, _SEPARATOR.split(full_name)[-1])
                for full_name in names
            )
            if is_named or _lies_in(location.directory, project):
                sessions.add(conversation_id)
        return frozenset(sessions or self.around(project) if "/" in project else sessions)


def _lies_in(directory: str, folder: str) -> bool:
    if not directory or not folder:
        return False
    inner_path, outer_path = PurePath(directory), PurePath(folder)
    return inner_path == outer_path or outer_path in inner_path.parents
