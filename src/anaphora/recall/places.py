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
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from anaphora.errors import InvalidInput
from anaphora.language.names import composed
from anaphora.store.records.rows import FOLDERS_KEY, MARKS_KEY, PAIRS_KEY
from anaphora.system.repositories import (
    Checkout,
    checkout_of,
    folder_key,
    is_folder,
    lies_in,
    real_folder,
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
    """Where a session was held, or a project indexed, as keys: its folder, what that belonged to,
    the marks of this; `within` is the indexed part of a repository, None for a session."""

    id: str
    folder: str
    name: str
    marks: frozenset[str]
    place: SessionPlace
    within: str | None


@dataclass(slots=True)
class SessionPlaces:
    """The places of the sessions of one namespace, read again when one was written.

    `facts` are the records of what was said of two projects, of marks and of indexed folders.
    """

    sidecar: Sidecar
    facts: Records
    look: Callable[[str], Checkout] = checkout_of
    _version: tuple[int, ...] = ()
    _known: dict[str, SessionPlace] = field(default_factory=dict)
    _held: tuple[_Held, ...] = ()

    def all(self) -> dict[str, SessionPlace]:
        """Every session with a known place, by conversation id."""
        indexed = self.facts.with_same_key(FOLDERS_KEY)
        version = (self.sidecar.places_version(), *sorted(folder.seq for folder in indexed))
        if version != self._version:
            self._known, self._version = self.sidecar.places(), version
            payloads = {str(folder.path): folder.payload or {} for folder in indexed}
            places = {
                str(folder.path): SessionPlace(
                    directory=folder.text, repository=payloads[str(folder.path)]["repository"]
                )
                for folder in indexed
            }
            marks = self.marks() | {key: payload["marks"] for key, payload in payloads.items()}
            home = users_folder()
            of_user = {_key(self.look(home).name), _key(home)}
            self._held = tuple(
                _Held(
                    held_id,
                    folder := folder_key(where.directory),
                    # In a repository of the user's whole folder it is a folder alone.
                    name
                    if (name := _key(where.repository)) not in of_user or folder == _key(home)
                    else "",
                    frozenset(marks.get(held_id, "").split()),
                    where,
                    payloads.get(held_id, {}).get("within"),
                )
                for held_id, where in (places | self._known).items()
            )
        return self._known

    def marks(self) -> dict[str, str]:
        """What the repositories of sessions keep when they are moved, by conversation id."""
        records = self.facts.with_same_key(MARKS_KEY)
        return {record.path: record.text for record in records if record.path}

    def around(self, directory: str) -> frozenset[str]:
        """The sessions of the project that a folder lies in; of the folder, if it is in none."""
        around = self._around(self.look(directory)) if directory else frozenset()
        return around.intersection(self._known)

    def folders_around(self, directory: str) -> dict[str, str]:
        """The folders, as keys, in which projects may have been indexed that a folder is of.

        Each with the way to it within such a project.
        """
        checkout = self.look(directory)
        ids = self._around(checkout)
        # An indexed folder tells its part of a repository, before a session that was held there.
        folders = {session.folder: session for session in reversed(self._held) if session.id in ids}
        own_folder = folder_key(real_folder(directory))
        ways = {own_folder: ""}
        for folder, session in folders.items():
            within = session.within
            if within is None:
                within = self.look(session.place.directory).within
            if lies_in(f"/{checkout.within}", f"/{within}") and not lies_in(folder, own_folder):
                ways[folder] = checkout.within[len(within) :].strip("/")
        return ways

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
            frozenset(str((record.payload or {}).get(end)) for end in ("one", "other")): (
                record.text == "same"
            )
            for record in sorted(records, key=lambda record: (record.created_at, record.id))
        }

    def after_all_said(self, now: datetime) -> datetime:
        """A time after all that was said of projects: by a clock that is ahead of this one, too."""
        records = self.facts.with_same_key(PAIRS_KEY)
        return max((now, *(record.created_at + timedelta(microseconds=1) for record in records)))

    def key_of(self, project: str) -> str:
        """What a project is kept by that a person names: its folder, its remote, or a last part.

        `InvalidInput` where no session was held, and for a name that several have.
        """
        # A repository is kept by its folder: its remote may change.
        key = self.look(project).key if is_folder(project) else remote_name(project)
        if self._around(self._named(key)) or _is_there(project):
            return key
        name = _comparable(project)
        keys = {
            session.name or session.folder
            for session in self._held
            if name == _comparable(last_part(session.name or session.folder))
        }
        if len(keys) > 1:
            raise InvalidInput("project", project, f"name one of {', '.join(sorted(keys))}")
        if not keys:
            raise InvalidInput("project", project, "no session was held there")
        return keys.pop()

    def of_key(self, key: str) -> frozenset[str]:
        """The sessions of a project by what it is kept by."""
        return self._around(self._named(key)).intersection(self._known)

    def question(self, directory: str) -> str:
        """A line about what may be of the project around a folder, which has no session; or "".

        Of a repository that this one was copied from; of another one that lay here; of a folder of
        this name, or beside it, that is gone.
        """
        checkout = self.look(directory)
        own_ids = self._around(checkout)
        if own_ids.intersection(self._known):
            return ""
        name, beside = last_part(checkout.key).casefold(), _parent(checkout.key)
        # The last written first, and those of the same name before others.
        ways: tuple[Callable[[_Held], object], ...] = (
            lambda session: session.marks & checkout.marks or self._is_at(session, checkout),
            lambda session: last_part(session.folder).casefold() == name,
            lambda session: not session.marks and _parent(session.folder) == beside,
        )
        for is_asked in ways:
            for session in reversed(self._held):
                if (
                    session.folder
                    and session.id not in own_ids
                    and is_asked(session)
                    and (line := self._asked(session, checkout))
                ):
                    return line
        return ""

    def _asked(self, session: _Held, checkout: Checkout) -> str:
        folder = session.place.directory
        if frozenset((session.folder, checkout.key)) in self.said():
            return ""
        if self._is_at(session, checkout):
            subject, argument = "another repository that lay in this folder", "."
        elif not _is_there(folder):
            subject = f"a folder named {last_part(folder)} at {folder} (no longer there)"
            argument = folder
        elif session.marks & checkout.marks:
            subject, argument = f"{folder}, of which this repository is a copy,", folder
        else:
            return ""
        quoted = f"'{argument}'" if re.search(r"[\s\\]", argument) else argument
        kind = "Sessions" if session.within is None else "Files and notes"
        return (
            f"{kind} of {subject} are stored; "
            f"if this is the same project: anaphora project same {quoted} ."
        )

    def _around(self, checkout: Checkout) -> frozenset[str]:
        """The sessions of a project, with those that were said to be of it."""
        self.all()
        pairs = self.said()
        sessions = self._project(checkout, pairs)
        waiting = [pair for pair, is_same in pairs.items() if is_same]
        count = -1
        while count != len(waiting):
            count = len(waiting)
            for pair in tuple(waiting):
                sides = [self._project(self._named(key), pairs) for key in pair]
                if pair & _keys(checkout) or any(side & sessions for side in sides):
                    waiting.remove(pair)
                    sessions = sessions.union(*sides)
        return sessions - self._apart(checkout, pairs)

    def _apart(self, checkout: Checkout, pairs: Pairs) -> frozenset[str]:
        """The sessions of projects that were said not to be this one."""
        own_sessions = list(self._checkout(checkout, pairs))
        keys = _keys(checkout).union(session.folder for session in own_sessions)
        other_ids = {
            session.id
            for pair, is_same in pairs.items()
            if not is_same and pair & keys
            for key in pair - keys
            for session in self._checkout(self._named(key), pairs)
        }
        return frozenset(other_ids.difference(session.id for session in own_sessions))

    def _project(self, checkout: Checkout, pairs: Pairs) -> frozenset[str]:
        """The sessions of a checkout, and those of others that have its remote."""
        own_sessions = list(self._checkout(checkout, pairs))
        sessions = {session.id for session in own_sessions}
        # A folder that is no repository may hold several.
        names = {
            session.name
            for session in own_sessions
            if checkout.home or session.folder in checkout.folders
        }
        names = {name for name in names if not is_folder(name)} | {_key(checkout.remote)}
        other_checkouts: dict[str, list[_Held]] = defaultdict(list)
        for session in self._held:
            if session.id not in sessions and session.name:
                other_checkouts[min(session.marks, default=session.folder)].append(session)
        count = -1
        while count != len(other_checkouts):
            count = len(other_checkouts)
            for key, group in tuple(other_checkouts.items()):
                group_names = {session.name for session in group}
                if group_names <= names or _key(checkout.remote) in group_names:
                    sessions |= {session.id for session in other_checkouts.pop(key)}
                    names |= group_names
        return frozenset(sessions)

    def _named(self, key: str) -> Checkout:
        """The project that a person named by this key."""
        if not is_folder(key):
            return Checkout(frozenset((key,)), remote=key)
        checkout = self.look(key)
        return replace(checkout, folders=checkout.folders | {key})

    def _checkout(self, checkout: Checkout, pairs: Pairs) -> Iterator[_Held]:
        """The sessions that were held in a checkout, under all folders that it had."""
        own_sessions = [session for session in self._held if self._is_of(session, checkout, pairs)]
        yield from own_sessions
        moved = [session for session in own_sessions if checkout.marks & session.marks]
        former = {session.folder for session in moved} | {session.name for session in moved}
        former = {folder for folder in former if is_folder(folder)} - checkout.folders
        ids = {session.id for session in own_sessions}
        for session in self._held:
            # Before marks were kept, or before there was a repository.
            if (
                session.id not in ids
                and not session.marks
                and former & {session.folder, session.name}
            ):
                yield session

    def _is_of(self, session: _Held, checkout: Checkout, pairs: Pairs) -> bool:
        if session.marks & checkout.marks:
            # Of a copy the other one is still there, and is another one.
            if session.folder in checkout.folders or session.name in checkout.folders:
                return True
            present = self.look(session.place.directory)
            return not present.marks & checkout.marks or bool(present.folders & checkout.folders)
        if not self._is_at(session, checkout):
            return False
        is_other = bool(session.marks and checkout.marks) and session.name != _key(checkout.remote)
        return not is_other or any(pairs.get(frozenset((key,))) for key in checkout.folders)

    def _is_at(self, session: _Held, checkout: Checkout) -> bool:
        """Whether a session was held in the folders of a checkout, in no repository below it."""
        if session.folder in checkout.folders or (
            session.name and session.name in checkout.folders
        ):
            return True
        if not any(lies_in(session.folder, folder) for folder in checkout.folders):
            return False
        if not checkout.home:
            return True
        if session.name in (_key(checkout.remote), "") or _is_there(session.place.directory):
            return bool(self.look(session.place.directory).folders & checkout.folders)
        return False


def _keys(checkout: Checkout) -> frozenset[str]:
    """What stands for a checkout: its remote, and its folders."""
    return (checkout.folders | {_key(checkout.remote)}) - {""}


def _key(repository: str) -> str:
    return folder_key(repository) if repository else ""


def _parent(key: str) -> str:
    return key.rpartition("/")[0]


def last_part(location: str) -> str:
    """The last part of a folder or of a repository's name."""
    return _SEPARATOR.split(location.rstrip("/\\"))[-1]


def _comparable(name: str) -> str:
    return composed(name.casefold()).rstrip("/\\")


def _is_there(folder: str) -> bool:
    try:
        return Path(folder).is_dir()
    except OSError:
        # No folder can have so long a name.
        return False
