"""What a session of Codex repeats of the one that it was forked or resumed from.

Such a rollout names its parent, or begins with the heads of its ancestors behind its own. What it
repeats was written anew at the moment of the fork, all at once: it ends where a pause begins, where
a record is of this session, or where a turn began after the fork.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final

from anaphora.features.importing.formats.base import ImportFile, Malformed
from anaphora.features.importing.formats.drafts import read_time
from anaphora.store.disk import open_regular

_LARGEST_INDEX: Final = 16 << 20
_PAUSE: Final = timedelta(seconds=1)
_TIMED_ID: Final = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


class Fork:
    """The copied beginning of the rollout of the session `key`, while it is read; `head` is its
    first record's payload.

    `of` are the sessions that it was forked from, the first of all first; `when` is the time of
    what is repeated, as far as it tells one: of its turn, of its session, else of the fork.
    """

    def __init__(self, key: str, head: Mapping[str, object], written: object) -> None:
        self._key = key
        self._last = _read_time(written) or _read_time(head.get("timestamp"))
        times = [time for time in (self._last, _read_time(head.get("timestamp"))) if time]
        self._began = min(times, default=None)
        self.when = self._began
        self.of: tuple[str, ...] = ()
        self._has_ended = False
        parent = head.get("forked_from_id")
        if isinstance(parent, str) and parent and parent != key:
            self.of = (parent,)
            self._take_time(_time_of_id(parent))

    @property
    def is_copying(self) -> bool:
        """Whether what comes now is a repetition."""
        return bool(self.of) and not self._has_ended

    def end(self) -> None:
        """Take what comes from now on for said in this session."""
        self._has_ended = True

    def follow(self, record: Mapping[str, object], payload: Mapping[str, object]) -> None:
        """Look at the next record, before its words are taken."""
        if self._has_ended:
            return
        written = _read_time(record.get("timestamp"))
        if record.get("type") == "session_meta":
            key = payload.get("id")
            if isinstance(key, str) and key and key != self._key:
                if key not in self.of:
                    self.of = (key, *self.of)
                self._take_time(_time_of_id(key))
                self._take_time(_read_time(payload.get("timestamp")))
        elif self.of:
            self._follow_copy(payload, written)
        self._last = written or self._last

    def _follow_copy(self, payload: Mapping[str, object], written: datetime | None) -> None:
        if written and self._began and written < self._began:
            # It kept its own time.
            self.when = written
            return
        turn_time = _time_of_id(payload.get("turn_id")) or _read_time(payload.get("started_at"))
        is_later = bool(turn_time and self._began and turn_time >= self._began)
        paused = bool(written and self._last and written - self._last >= _PAUSE)
        if payload.get("thread_id") == self._key or is_later or paused:
            self._has_ended = True
        else:
            self._take_time(turn_time)

    def _take_time(self, time: datetime | None) -> None:
        if time and (self._began is None or time < self._began):
            self.when = time


def is_of_agent(head: Mapping[str, object]) -> bool:
    """Whether a session is that of an agent which a program started, not of the user."""
    source = head.get("source")
    kinds = [*(source if isinstance(source, dict) else (source,)), head.get("thread_source")]
    return any(str(kind).lower().startswith(("subagent", "internal")) for kind in kinds)


def read_names(file: ImportFile, key: str) -> tuple[str, ...]:
    """The names that the program's list of sessions has for a session, the last one last."""
    path = file.path
    # Below `sessions/YYYY/MM/DD`, or in `archived_sessions`.
    homes = [above for above in path.parents[:5] if above.name.endswith("sessions")]
    if file.member is not None or not homes:
        return ()
    with suppress(OSError):
        index = homes[-1].parent / "session_index.jsonl"
        status = index.stat()
        return _read_index(index, status.st_mtime_ns, status.st_size).get(key, ())
    return ()


@lru_cache(maxsize=4)
def _read_index(path: Path, _changed: int, _size: int) -> Mapping[str, tuple[str, ...]]:
    names: dict[str, tuple[str, ...]] = {}
    with open_regular(path) as file:
        for line in file.read(_LARGEST_INDEX).splitlines():
            with suppress(ValueError, AttributeError, TypeError):
                entry = json.loads(line)
                key, name = entry.get("id"), entry.get("thread_name")
                if isinstance(key, str) and isinstance(name, str):
                    names[key] = (*names.get(key, ()), name)
    return names


def _time_of_id(value: object) -> datetime | None:
    """The time in an id that carries one (UUID of version 7)."""
    match = _TIMED_ID.fullmatch(value.lower()) if isinstance(value, str) else None
    if match is None:
        return None
    with suppress(OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(int(match[1] + match[2], 16) / 1000, UTC)
    return None


def _read_time(value: object) -> datetime | None:
    with suppress(Malformed):
        return read_time(value)
    return None
