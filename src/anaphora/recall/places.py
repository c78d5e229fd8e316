"""Which sessions belong to a project: those of its repository, wherever that lay, else its folder.

Sessions are of one checkout if they were held in one folder, or in repositories with a mark in
common (one was moved). Checkouts are of one project if the remote that one has now is, or was, the
other's: a fork of a template has another one. What a person said of two projects comes first.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from anaphora.errors import InvalidInput
from anaphora.language.names import composed
from anaphora.store.records.rows import MARKS_KEY, PAIRS_KEY
from anaphora.system.repositories import (
    Checkout,
    checkout_of,
    folder_key,
    is_folder,
    lies_in,
    remote_name,
    users_folder,
)
from anaphora.values.sessions import SessionPlace

if TYPE_CHECKING:
    from anaphora.store.records.store import Records
    from anaphora.store.threads.sidecar import Sidecar

Pairs: TypeAlias = dict[frozenset[str], bool]
"""Pairs of keys of which a person said that they are one project, or that they are not."""

_SEPARATOR: Final = re.compile(r"[/\\]")


@dataclass(frozen=True, slots=True)
class _Held:
    """Where a session was held, as keys: its folder, what that belonged to, the marks of this."""

    id: str
    folder: str
    name: str
    marks: frozenset[str]
    place: SessionPlace


@dataclass(slots=True)
class SessionPlaces:
    """The places of the sessions of one namespace, read again when one was written.

    `facts` are the records of what was said of two projects, and of marks.
    """

    sidecar: Sidecar
    facts: Records
    look: Callable[[str], Checkout] = checkout_of
    _version: int = -1
    _known: dict[str, SessionPlace] = field(default_factory=dict)
    _held: tuple[_Held, ...] = ()

    def all(self) -> dict[str, SessionPlace]:
        """Every session with a known place, by conversation id."""
        version = self.sidecar.places_version()
        if version != self._version:
            self._known, self._version = self.sidecar.places(), version
            self._held = tuple(_without_users_folder(self._known, self.marks(), self.look))
        return self._known

    def marks(self) -> dict[str, str]:
        """What the repositories of sessions keep when they are moved, by conversation id."""
        records = self.facts.with_same_key(MARKS_KEY)
        return {record.path: record.text for record in records if record.path}

    def around(self, directory: str) -> frozenset[str]:
        """The sessions of the project that a folder lies in; of the folder, if it is in none."""
        return self._around(self.look(directory)) if directory else frozenset()

    def of_project(self, project: str) -> frozenset[str]:
        """The sessions of a project by its folder, its repository, or the last part of either."""
        name = _comparable(project)
        sessions = set()
        for conversation_id, location in self.all().items():
            names = map(_comparable, (location.repository, location.directory))
            is_named = any(
                full_name and name in (full_name, _SEPARATOR.split(full_name)[-1])
                for full_name in names
            )
            if is_named or lies_in(folder_key(location.directory), folder_key(project)):
                sessions.add(conversation_id)
        return frozenset(sessions or self.around(project) if "/" in project else sessions)

    def said(self) -> Pairs:
        """What was said last of each pair of projects."""
        records = self.facts.with_same_key(PAIRS_KEY)
        return {
            frozenset(map(str, (record.payload or {}).values())): record.text == "same"
            for record in sorted(records, key=lambda record: (record.created_at, record.id))
        }

    def key_of(self, project: str) -> str:
        """What a project is kept by that a person names: its folder, its remote, or a last part.

        `InvalidInput` where no session was held, and for a name that several have.
        """
        self.all()
        # A repository is kept by its folder: its remote may change.
        key = self.look(project).key if is_folder(project) else remote_name(project)
        if self.of_key(key) or Path(project).is_dir():
            return key
        name = _comparable(project)
        keys = {
            held.name or held.folder
            for held in self._held
            if name == _comparable(last_part(held.name or held.folder))
        }
        if len(keys) > 1:
            raise InvalidInput("project", project, f"name one of {', '.join(sorted(keys))}")
        if not keys:
            raise InvalidInput("project", project, "no session was held there")
        return keys.pop()

    def of_key(self, key: str) -> frozenset[str]:
        """The sessions of a project by what it is kept by."""
        return self._around(self._named(key))

    def question(self, directory: str) -> str:
        """A line about sessions that may be of the project around a folder, which has none; or "".

        Of a repository that this one was copied from; of another one that lay here; of a folder of
        this name, or beside it, that is gone.
        """
        here = self.look(directory)
        if self._around(here):
            return ""
        name, beside = last_part(here.key).casefold(), _parent(here.key)
        # The last written first, and those of the same name before others.
        ways: tuple[Callable[[_Held], object], ...] = (
            lambda held: held.marks & here.marks or self._is_at(held, here),
            lambda held: last_part(held.folder).casefold() == name,
            lambda held: not held.marks and _parent(held.folder) == beside,
        )
        for is_asked in ways:
            for held in reversed(self._held):
                if held.folder and is_asked(held) and (line := self._asked(held, here)):
                    return line
        return ""

    def _asked(self, held: _Held, here: Checkout) -> str:
        there = held.place.directory
        if frozenset((held.folder, here.key)) in self.said():
            return ""
        if self._is_at(held, here):
            told, other = "Sessions of another repository that lay in this folder", "."
        elif not Path(there).is_dir():
            told = f"Sessions of a folder named {last_part(there)} at {there} (no longer there)"
            other = there
        elif held.marks & here.marks:
            told, other = f"Sessions of {there}, of which this repository is a copy,", there
        else:
            return ""
        quoted = f"'{other}'" if re.search(r"[\s\\]", other) else other
        return f"{told} are stored; if this is the same project: anaphora project same {quoted} ."

    def _around(self, here: Checkout) -> frozenset[str]:
        """The sessions of a project, with those that were said to be of it."""
        self.all()
        pairs = self.said()
        sessions = self._project(here, pairs)
        waiting = [pair for pair, is_same in pairs.items() if is_same]
        count = -1
        while count != len(waiting):
            count = len(waiting)
            for pair in tuple(waiting):
                sides = [self._project(self._named(key), pairs) for key in pair]
                if pair & _keys(here) or any(side & sessions for side in sides):
                    waiting.remove(pair)
                    sessions = sessions.union(*sides)
        return sessions - self._apart(here, pairs)

    def _apart(self, here: Checkout, pairs: Pairs) -> frozenset[str]:
        """The sessions of projects that were said not to be this one."""
        own = list(self._checkout(here, pairs))
        keys = _keys(here).union(held.folder for held in own)
        others = {
            held.id
            for pair, is_same in pairs.items()
            if not is_same and pair & keys
            for key in pair - keys
            for held in self._checkout(self._named(key), pairs)
        }
        return frozenset(others.difference(held.id for held in own))

    def _project(self, here: Checkout, pairs: Pairs) -> frozenset[str]:
        """The sessions of a checkout, and those of others that have its remote."""
        own = list(self._checkout(here, pairs))
        sessions = {held.id for held in own}
        # A folder that is no repository may hold several.
        names = {held.name for held in own if here.home or held.folder in here.folders}
        names = {name for name in names if not is_folder(name)} | {_key(here.remote)}
        others: dict[str, list[_Held]] = defaultdict(list)
        for held in self._held:
            if held.id not in sessions and held.name:
                others[min(held.marks, default=held.folder)].append(held)
        count = -1
        while count != len(others):
            count = len(others)
            for key, group in tuple(others.items()):
                known = {held.name for held in group}
                if known <= names or _key(here.remote) in known:
                    sessions |= {held.id for held in others.pop(key)}
                    names |= known
        return frozenset(sessions)

    def _named(self, key: str) -> Checkout:
        """The project that a person named by this key."""
        if not is_folder(key):
            return Checkout(frozenset((key,)), remote=key)
        here = self.look(key)
        return replace(here, folders=here.folders | {key})

    def _checkout(self, here: Checkout, pairs: Pairs) -> Iterator[_Held]:
        """The sessions that were held in a checkout, under all folders that it had."""
        own = [held for held in self._held if self._is_of(held, here, pairs)]
        yield from own
        moved = [held for held in own if here.marks & held.marks]
        former = {held.folder for held in moved} | {held.name for held in moved}
        former = {folder for folder in former if is_folder(folder)} - here.folders
        ids = {held.id for held in own}
        for held in self._held:
            # Before marks were kept, or before there was a repository.
            if held.id not in ids and not held.marks and former & {held.folder, held.name}:
                yield held

    def _is_of(self, held: _Held, here: Checkout, pairs: Pairs) -> bool:
        if held.marks & here.marks:
            # Of a copy the other one is still there, and is another one.
            if held.folder in here.folders or held.name in here.folders:
                return True
            there = self.look(held.place.directory)
            return not there.marks & here.marks or bool(there.folders & here.folders)
        if not self._is_at(held, here):
            return False
        is_other = bool(held.marks and here.marks) and held.name != _key(here.remote)
        return not is_other or any(pairs.get(frozenset((key,))) for key in here.folders)

    def _is_at(self, held: _Held, here: Checkout) -> bool:
        """Whether a session was held in the folders of a checkout, in no repository below it."""
        if held.folder in here.folders or (held.name and held.name in here.folders):
            return True
        if not any(lies_in(held.folder, folder) for folder in here.folders):
            return False
        if not here.home:
            return True
        if held.name in (_key(here.remote), "") or Path(held.place.directory).is_dir():
            return bool(self.look(held.place.directory).folders & here.folders)
        return False


def _without_users_folder(
    known: dict[str, SessionPlace], marks: dict[str, str], look: Callable[[str], Checkout]
) -> Iterator[_Held]:
    """The places as keys. One in a repository of the user's whole folder is a folder alone."""
    home = users_folder()
    of_user = {_key(look(home).name), _key(home)}
    for conversation_id, place in known.items():
        folder, name = folder_key(place.directory), _key(place.repository)
        if name in of_user and folder != folder_key(home):
            name = ""
        yield _Held(
            conversation_id, folder, name, frozenset(marks.get(conversation_id, "").split()), place
        )


def _keys(here: Checkout) -> frozenset[str]:
    """What stands for a checkout: its remote, and its folders."""
    return (here.folders | {_key(here.remote)}) - {""}


def _key(repository: str) -> str:
    return folder_key(repository) if repository else ""


def _parent(key: str) -> str:
    return key.rpartition("/")[0]


def last_part(location: str) -> str:
    """The last part of a folder or of a repository's name."""
    return _SEPARATOR.split(location.rstrip("/\\"))[-1]


def _comparable(name: str) -> str:
    return composed(name.casefold()).rstrip("/\\")
