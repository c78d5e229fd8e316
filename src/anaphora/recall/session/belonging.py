"""Which project a memory belongs to: by where it was said, where it came from, and its label.

A memory without any of these is general. So is what is said of the user alone, wherever it was
said; its label ("kestrel: …", a path "kestrel.style") still tells a project.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Final

from anaphora.language.names import label_of
from anaphora.recall.places import last_part
from anaphora.system.repositories import folder_key, lies_in
from anaphora.values.memories import MemoryRecord
from anaphora.values.sessions import SessionPlace

if TYPE_CHECKING:
    from anaphora.recall.places import SessionPlaces

_OF_USER: Final = re.compile(r"\b(?:I|[Mm]y|me|[Tt]he user)\b")


@dataclass(frozen=True, slots=True)
class Belonging:
    """The project around a session, and the others that are known.

    `own` are its sessions, None where no project is meant: then nothing is foreign. `homes` are its
    repositories and folders, `foreign` sessions, repositories and folders of others, `names` and
    `others` what the one and the others are called, in small letters: two may have one name.
    """

    own: frozenset[str] | None = None
    homes: frozenset[str] = frozenset()
    foreign: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    def is_foreign(self, record: MemoryRecord) -> bool:
        """Whether a memory belongs to another project."""
        if self.own is None:
            return False
        labels = set()
        if label := label_of(record.text):
            labels.add(label)
        if record.path:
            labels.add(re.split(r"[./]", record.path)[0].casefold())
        if record.payload and (project_name := record.payload.get("project")):
            labels.add(_name_of(str(project_name)))
        if labels & (self.names ^ self.others):
            return not labels & self.names
        if labels & self.names:
            # Another project has this name, too: the label tells neither.
            return not self._is_from_here(record)
        if self._is_from_here(record) or _OF_USER.search(record.text):
            return False
        return self.is_from_elsewhere(record)

    def is_from_elsewhere(self, record: MemoryRecord) -> bool:
        """Whether it was said in a session of another project, or names its folder as a source."""
        if self.own is None or self._is_from_here(record):
            return False
        if self.foreign & {record.conversation_id or "", *record.sources}:
            return True
        # A source can be a folder of any machine: absolute, and no file.
        kinds = (PurePosixPath, PureWindowsPath)
        paths = (kind(source) for source in record.sources for kind in kinds)
        return any(path.is_absolute() and not path.suffix and len(path.parts) > 1 for path in paths)

    def _is_from_here(self, record: MemoryRecord) -> bool:
        if (record.conversation_id or "") in (self.own or ()):
            return True
        sources = map(folder_key, record.sources)
        return any(lies_in(source, home) for source in sources for home in self.homes)


EVERYTHING: Final = Belonging()
"""No project in particular."""


def project_around(directory: str, places: SessionPlaces, indexed: Mapping[str, bool]) -> Belonging:
    """The project that a folder lies in, by the places of sessions and the indexed folders.

    `indexed` are the names of projects, each with whether it is the one.
    """
    sessions, session_places = places.around(directory), places.all()
    checkout = places.look(directory)
    own_places = [session_places[session] for session in sessions]
    elsewhere = [session_places[session] for session in session_places.keys() - sessions]
    names = {_name_of(checkout.name or directory), *map(_project_name, own_places)}
    other_names = set(map(_project_name, elsewhere))
    for name, is_own in indexed.items():
        (names if is_own else other_names).add(name.casefold())
    homes = {checkout.remote, directory, *checkout.folders, *_locations(own_places)}
    return Belonging(
        sessions,
        frozenset(map(folder_key, homes)) - {""},
        frozenset(session_places.keys() - sessions | _locations(elsewhere)) - {"", *homes},
        frozenset(names) - {""},
        frozenset(other_names) - {""},
    )


def _locations(places: Iterable[SessionPlace]) -> set[str]:
    return {
        name
        for session_place in places
        for name in (session_place.repository, session_place.directory)
    }


def _project_name(place: SessionPlace) -> str:
    return _name_of(place.repository or place.directory)


def _name_of(location: str) -> str:
    """What a folder or a repository is called, in small letters."""
    return last_part(location).casefold()
