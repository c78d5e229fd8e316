"""What a session of a coding agent contains already: what it was given unasked, and its transcript.

What a session was given is noted as digests in a small file, by whoever delivered it and after it
did: what was not delivered was not given. If that file cannot be read or written, the session may
be given something twice, which is no reason to fail.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anaphora.system.environment import is_trial

if TYPE_CHECKING:
    from anaphora.recall.session.rendering import Told
    from anaphora.values.search import SearchHit
    from anaphora.values.sessions import AgentSession

STATES: Final = timedelta(days=30)
"""How long the state file of a session is kept after its last change."""

_MOST_GIVEN: Final = 400
_LIVE: Final = 1 << 19
_COMPACTION: Final = re.compile(r'"(?:compact_boundary|compacted|isCompactSummary)"')


@dataclass(frozen=True, slots=True)
class SessionState:
    """Digests of what a session was given, and whether it was compacted since."""

    given: tuple[str, ...] = ()
    compacted: bool = False

    def add(self, hits: Iterable[SearchHit | Told]) -> SessionState:
        """The state after these hits were given; beyond a limit, the oldest is dropped."""
        return SessionState((*self.given, *map(_mark, hits))[-_MOST_GIVEN:], self.compacted)

    def contains(self, hit: SearchHit) -> bool:
        """Whether the session was given the hit."""
        return _mark(hit) in self.given


class SessionStates:
    """The state files of sessions in one folder, for one answer: nothing is written here.

    `noted` is the file to write once the answer was delivered, and its content; ("", "") for none.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.noted = ("", "")

    def read(self, session: AgentSession) -> SessionState:
        """The state of a session after this answer; that of a new one if there is none."""
        path, content = self._path(session), self.noted[1]
        try:
            stored_state = json.loads(content or path.read_bytes())
            return SessionState(
                tuple(str(mark) for mark in stored_state["given"]), bool(stored_state["compacted"])
            )
        except (OSError, ValueError, KeyError, TypeError):
            return SessionState()

    def write(self, session: AgentSession, state: SessionState) -> None:
        """Note the state of a session, unless it is that of a new one and none is stored."""
        path = self._path(session)
        if state != SessionState() or self.noted[0] or path.exists():
            content = json.dumps({"given": state.given, "compacted": state.compacted})
            self.noted = (str(path), content)

    def clean(self, now: float) -> None:
        """Delete files of inactive sessions, and unfinished temporary files."""
        for path in self._folder.glob("*"):
            with suppress(OSError):
                if path.stat().st_mtime < now - STATES.total_seconds():
                    path.unlink()

    def _path(self, session: AgentSession) -> Path:
        return self._folder / f"{_digest(session.client, session.id)}.json"


def states_folder(home: Path, namespace: str) -> Path:
    """The folder of what is noted about sessions; that of a trial is deleted with its namespace."""
    index = home / "index"
    return (index / namespace if is_trial(namespace) else index) / "hooks"


def live_texts(transcript: str) -> Iterator[str]:
    """The texts in a transcript's last `_LIVE` bytes after its last compaction, in lower case."""
    try:
        with Path(transcript).expanduser().open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LIVE))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return
    last_index = max((at for at, line in enumerate(lines) if _COMPACTION.search(line)), default=-1)
    for line in lines[last_index + 1 :]:
        try:
            yield from _texts_in(json.loads(line))
        except (ValueError, RecursionError):
            yield line.lower()


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value.lower()
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(part)


def _mark(hit: SearchHit | Told) -> str:
    return _digest(hit.kind, hit.id)


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()
