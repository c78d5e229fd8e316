"""Which project a memory belongs to: by where it was said, where it came from, and its label.

A memory without any of these is general. So is what is said of the user alone, wherever it was
said; its label ("kestrel: …", a path "kestrel.style") still tells a project.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Final

from anaphora.values.memories import MemoryRecord

if TYPE_CHECKING:
    from anaphora.recall.places import SessionPlaces

_LABEL: Final = re.compile(r"\s*([^\W_][\w.-]{1,40})\s*[:：]\s")
_OF_USER: Final = re.compile(r"\b(?:I|[Mm]y|me|[Tt]he user)\b")
_SEPARATORS: Final = re.compile(r"[/\\]")


@dataclass(frozen=True, slots=True)
class Belonging:
    """The project around a session, and the others that are known.

    `own` are its sessions, None where no project is meant: then nothing is foreign. `place` is its
    repository or folder, `foreign` are sessions, repositories and folders of others, `names` and
    `others` what the one and the others are called, in small letters; `shared` is what both are.
    """

    own: frozenset[str] | None = None
    place: str = ""
    foreign: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()

    def is_foreign(self, record: MemoryRecord) -> bool:
        """Whether a memory belongs to another project."""
        if self.own is None:
            return False
        labels = set()
        if match := _LABEL.match(record.text):
            labels.add(match[1].casefold())
        if record.path:
            labels.add(re.split(r"[./]", record.path)[0].casefold())
        if record.payload and (project_name := record.payload.get("project")):
            labels.add(_project_name(str(project_name)))
        if labels & self.names and not labels & self.shared:
            return False
        if labels & (self.others | self.shared):
            # Of two projects of one name the label tells neither.
            return not (labels & self.names and self._is_from_here(record))
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
        return bool(self.place) and any(_lies_in(source, self.place) for source in record.sources)


EVERYTHING: Final = Belonging()
"""No project in particular."""


def project_around(directory: str, places: SessionPlaces, indexed: Mapping[str, str]) -> Belonging:
    """The project that a folder lies in, by the places of sessions and the indexed folders.

    `indexed` are the names of projects by their folders.
    """
    sessions, locations = places.around(directory), places.all()
    home = places.find_repository(directory) or directory
    elsewhere = [locations[session] for session in locations.keys() - sessions]
    names = {_project_name(home)}
    other_names = {
        _project_name(location.repository or location.directory) for location in elsewhere
    }
    for root, name in indexed.items():
        (names if _lies_in(directory, root) else other_names).add(name.casefold())
    foreign = {name for location in elsewhere for name in (location.repository, location.directory)}
    return Belonging(
        sessions,
        home,
        frozenset(locations.keys() - sessions | foreign) - {"", home, directory},
        frozenset(names) - {""},
        frozenset(other_names - names) - {""},
        frozenset(other_names & names) - {""},
    )


def _project_name(location: str) -> str:
    """What a folder or a repository is called: its last part, in small letters."""
    return _SEPARATORS.split(location.rstrip("/\\"))[-1].casefold()


def _lies_in(path: str, outer: str) -> bool:
    inner_path, folder = PurePath(path), PurePath(outer)
    return inner_path == folder or folder in inner_path.parents
