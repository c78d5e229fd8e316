"""Imports the transcripts of sessions that are under way: soon, but a long one not all the time.

Turns that end within some seconds after a transcript was read are put off and read together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from anaphora.values.conversations import ImportReport
from anaphora.values.sessions import AgentSession

CATCH_UP: Final = timedelta(days=7)
"""Maximum age of a transcript that is imported without an event of its own."""
REREAD: Final = 30.0
"""Seconds between two readings of a transcript at the end of turns; until then it is put off."""
REST: Final = 20.0
"""Pause before a transcript is read again, as a multiple of the time that reading it took."""
LONGEST_REST: Final = 300.0
LARGEST_AT_ONCE: Final = 1 << 20
"""Maximum bytes of a transcript that is read before the answer at the start of a session."""

_AT_ONCE: Final = 20

Later = Callable[[float, Callable[[], object]], None]
"""Runs work after some seconds."""


class TranscriptMemory(Protocol):
    """What is asked of the facade."""

    @property
    def import_(self) -> Callable[..., ImportReport]:
        """Import a transcript."""

    @property
    def note_session(self) -> Callable[..., None]:
        """Note where sessions took place."""

    @property
    def end_session(self) -> Callable[[str], int]:
        """Note that a session has ended."""


class SessionTranscripts:
    """The transcripts of sessions over one memory. `folder` is where it notes what it has read.

    Without `later` each transcript is read at once.
    """

    def __init__(
        self,
        memory: TranscriptMemory,
        folder: Path,
        *,
        clock: Callable[[], float],
        later: Later | None = None,
        reread: float = REREAD,
    ) -> None:
        self._memory = memory
        self._folder = folder
        self._clock = clock
        self._later = later
        self._reread = reread
        # When each transcript may be read again, and the transcripts that are to be read later.
        self._read_again: dict[str, float] = {}
        self._waiting: set[str] = set()
        # The conversations in which sessions began, and the places that they have come to: those of
        # forks and of what they left lie in several.
        self._went: dict[str, tuple[str, tuple[str, int | None]]] = {}

    def conversation_of(self, session: AgentSession) -> str:
        """The id of the conversation that a session's transcript becomes."""
        return self._find_course(session)[0]

    def end_of(self, session: AgentSession) -> tuple[str, int | None]:
        """The conversation and the index of a session's last turn; None for the last there."""
        return self._find_course(session)[1]

    def _find_course(self, session: AgentSession) -> tuple[str, tuple[str, int | None]]:
        from anaphora.store.threads.ids import safe_id

        conversation = safe_id(session.format, session.id)
        return self._went.get(conversation, (conversation, (conversation, None)))

    def bring_in(
        self, session: AgentSession, *, can_wait: bool = False, has_ended: bool = False
    ) -> None:
        """Import the session's transcript if it can be read; vectors follow later."""
        from anaphora.store.threads.ids import safe_id

        transcript, now = session.transcript, self._clock()
        wait = self._read_again.get(transcript, 0.0) - now
        if can_wait and wait > 0 and self._later is not None:
            self.put_off(session, wait)
            return
        self._waiting.discard(transcript)
        locked_paths = {known_path: at for known_path, at in self._read_again.items() if at > now}
        self._read_again = {**locked_paths, transcript: now + self._reread}
        path = Path(transcript).expanduser() if transcript else None
        if path is None or not path.is_file():
            return
        report = self._memory.import_(path, format=session.format, embed=False)
        # A long transcript is read less often, since each reading is of the whole file.
        pause = min(max(self._reread, REST * (self._clock() - now)), LONGEST_REST)
        self._read_again[transcript] = now + pause
        ids, conversation = report.conversation_ids, safe_id(session.format, session.id)
        if ids:
            # A branch has the id of what it left, and more.
            began = conversation if conversation in ids else min(ids, key=len)
            self._went[conversation] = (began, (ids[-1], report.last_index))
        self._memory.note_session(ids, client=session.client, directory=session.directory or None)
        if has_ended:
            for conversation_id in ids:
                self._memory.end_session(conversation_id)

    def put_off(self, session: AgentSession, seconds: float | None = None) -> None:
        """Read the session's transcript once, in `seconds` or more, if `later` is available."""
        transcript = session.transcript
        if self._later is None or not transcript or transcript in self._waiting:
            return
        self._waiting.add(transcript)
        wait = max(
            self._reread if seconds is None else seconds,
            self._read_again.get(transcript, 0.0) - self._clock(),
        )
        self._later(wait, partial(self._read_put_off, session))

    def _read_put_off(self, session: AgentSession) -> None:
        """Import new turns, unless the transcript was read meanwhile."""
        if session.transcript in self._waiting:
            self._read_again.pop(session.transcript, None)
            self.bring_in(session)

    def look(
        self,
        folder: Path,
        pattern: str,
        session: str,
        *,
        most: int = _AT_ONCE,
        largest: int | None = None,
    ) -> None:
        """Import transcripts in a folder, of other sessions, that ended without an event.

        The `most` that changed last, except those larger than `largest` bytes.
        """
        from anaphora.ingest.transcripts import TranscriptWatch

        oldest = self._clock() - CATCH_UP.total_seconds()
        recent = []
        for path in folder.glob(pattern):
            with suppress(OSError):
                if path.stem != session and path.stat().st_mtime >= oldest:
                    recent.append(path)
        if recent:
            name = hashlib.blake2b(str(folder).encode(), digest_size=8).hexdigest()
            watch = TranscriptWatch(
                recent,
                lambda path: self._memory.import_(path, embed=False),
                clock=lambda: datetime.now(UTC),
                stamps=self._folder / f"seen-{name}.json",
                most=most,
                largest=largest,
            )
            watch.look()
