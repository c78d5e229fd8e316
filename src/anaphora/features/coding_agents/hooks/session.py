"""Answers the events of clients' sessions: reads the event, asks the memory, writes the answer.

- At the start and with each prompt the session is given what `session_context` decides;
  after a compaction what it lost.
- Before a compaction and at the end the transcript is imported, after the answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from anaphora.calls.caller import CallOrigin, called_from
from anaphora.container.view import services_of
from anaphora.features.coding_agents.hooks.delivery import note_given
from anaphora.features.coding_agents.hooks.protocols import (
    PROTOCOLS,
    HookEvent,
    answer,
    operation_of,
    other_transcripts,
    read_event,
    read_payload,
)
from anaphora.features.coding_agents.session_context import MODEL_PATIENCE, SessionContext
from anaphora.features.coding_agents.session_state import SessionStates, states_folder
from anaphora.features.coding_agents.session_transcripts import (
    LARGEST_AT_ONCE,
    REREAD,
    Later,
    SessionTranscripts,
)
from anaphora.system.incidents import report
from anaphora.system.zones import times_shown_in
from anaphora.values.sessions import AgentSession

if TYPE_CHECKING:
    from anaphora.api.memory import Memory
    from anaphora.values.search import SearchHit

Background = Callable[[Callable[[], object]], None]

_TRANSCRIPT: Final = 1.5
"""Of the time for which an answer waits for the model, that for which it waits for a transcript."""


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What to print for the client, and the state file to write (`note_given`) once it is printed.

    Both are "" for nothing.
    """

    output: str
    state_path: str = ""
    state: str = ""


class SessionHooks:
    """Answers the events of sessions over one memory. `background` runs work after the answer.

    `later` does so after some seconds. With it, turns that end within `reread` seconds after a
    transcript was read are put off and read together; without it each is read at once. `patience`
    is how many seconds a prompt waits for the model before words answer alone, and the answer after
    a compaction for the transcript (0: it is not read then).
    """

    def __init__(
        self,
        memory: Memory,
        *,
        user: Path,
        background: Background,
        clock: Callable[[], float],
        later: Later | None = None,
        reread: float = REREAD,
        patience: float = MODEL_PATIENCE,
    ) -> None:
        self._memory = memory
        self._patience = patience
        self._user = user
        self._clock = clock
        # Background work belongs to the same caller.
        self._background: Background = lambda work: background(partial(copy_context().run, work))
        self._folder = states_folder(memory.home, memory.namespace)
        self._transcripts = SessionTranscripts(
            memory,
            self._folder,
            clock=clock,
            later=later and (lambda wait, work: later(wait, partial(copy_context().run, work))),
            reread=reread,
        )

    def answer(self, client: str, body: bytes) -> str:
        """The output for the client that told this as JSON, which is given with it.

        Raises ValueError for another form, and `AnaphoraError` if memory fails.
        """
        prepared = self.prepare(client, body)
        note_given(prepared.state_path, prepared.state)
        return prepared.output

    def prepare(self, client: str, body: bytes) -> HookAnswer:
        """The same for a caller that delivers the output and notes that itself."""
        event = read_event(client, read_payload(body), self._user)
        if event is None:
            return HookAnswer(PROTOCOLS[client].silence)
        origin, states = CallOrigin("hook", agent=client), SessionStates(self._folder)
        with called_from(origin), times_shown_in(lambda: self._memory.local_time.tzinfo or UTC):
            output = answer(event, self._read(event, self._context(states)))
        return HookAnswer(output, *states.noted)

    def bearing(self, event: HookEvent) -> list[SearchHit]:
        """What is likely to be relevant to a prompt."""
        context = self._context(SessionStates(self._folder))
        return list(context.bearing(_session(event), event.prompt).hits)

    def _context(self, states: SessionStates) -> SessionContext:
        return SessionContext(
            self._memory,
            states,
            _mask,
            self._transcripts,
            # Looked up when it is called: most events ask for none of it, and the services of a
            # home that was restored or sealed anew are others.
            lambda: services_of(self._memory).conversation,
            patience=self._patience,
        )

    def _read(self, event: HookEvent, context: SessionContext) -> str:
        """The text for an event; "" for none."""
        session, transcripts = _session(event), self._transcripts
        if event.kind == "start":
            self._background(lambda: SessionStates(self._folder).clean(self._clock()))
            # The last session is part of the block that this one starts with.
            self._catch_up(event, most=1, largest=LARGEST_AT_ONCE)
            self._background(lambda: self._catch_up(event))
            return context.start(session)
        if event.kind == "prompt":
            restores = "after_compaction" not in PROTOCOLS[event.client].answered
            if restores and context.has_lost(session, event.prompt):
                text = self._restore(session, context)
            else:
                text = context.prompt(session, event.prompt)
            # The window of a session may be closed without an event.
            transcripts.put_off(session)
            return text
        if event.kind == "after_compaction":
            return self._restore(session, context)
        if event.kind == "before_compaction":
            context.compact(session)
        self._background(
            lambda: transcripts.bring_in(
                session, can_wait=event.kind == "turn_end", has_ended=event.kind == "end"
            )
        )
        return ""

    def _restore(self, session: AgentSession, context: SessionContext) -> str:
        errors = list[BaseException]()

        def read() -> None:
            try:
                self._transcripts.bring_in(session)
            except BaseException as error:  # noqa: BLE001 - raised below
                errors.append(error)

        reading = Thread(target=copy_context().run, args=(read,), daemon=True)
        if self._patience > 0:
            # A long transcript comes in beside the answer: the rules must not wait for it.
            reading.start()
            reading.join(_TRANSCRIPT * self._patience)
        if errors:
            raise errors[0]
        is_read = self._patience > 0 and not reading.is_alive()
        text = context.restore(session)
        if not (text or is_read):
            # The next prompt tries it again.
            context.compact(session)
        return text

    def _catch_up(self, event: HookEvent, **limits: int) -> None:
        """Import transcripts of other sessions that ended without an event."""
        transcripts = other_transcripts(event)
        if transcripts is not None:
            folder, pattern, own_name = transcripts
            self._transcripts.look(folder, pattern, own_name, **limits)


def _session(event: HookEvent) -> AgentSession:
    form = PROTOCOLS[event.client].format
    return AgentSession(event.client, event.session, form, event.directory, event.transcript)


def _mask(recalled: Any) -> Any:
    from anaphora.ingest.secrets.masking import mask

    return mask(recalled)


def open_memory(request: Mapping[str, Any]) -> Memory:
    """Open the memory that a hook's request names. Raises `AnaphoraError`."""
    from anaphora.api.memory import Memory

    return Memory.open(
        request.get("home"),
        namespace=request.get("namespace") or "default",
        conversations_dir=request.get("conversations"),
        environ=variables_of(request),
        warm=False,
    )


def variables_of(request: Mapping[str, Any]) -> dict[str, str]:
    """The variables of the program that sent a request."""
    return {name[1:]: text for name, text in request.items() if name.startswith("$")}


def answer_alone(
    request: Mapping[str, Any],
    deliver: Callable[[HookAnswer], object],
    *,
    patience: float = MODEL_PATIENCE,
) -> None:
    """Answer one hook in this process, and do then what it leaves to do. Raises `AnaphoraError`.

    While `deliver` is False, since the session was given something meanwhile, it is answered anew.
    """
    from anaphora.settings import client_folders

    environ = variables_of(request)
    waiting: list[Callable[[], object]] = []
    with open_memory(request) as memory:
        hooks = SessionHooks(
            memory,
            user=client_folders(environ).user,
            background=waiting.append,
            clock=time.time,
            patience=patience,
        )
        while deliver(hooks.prepare(request["client"], request["body"])) is False:
            waiting.clear()
        for work in waiting:
            try:
                work()
            except Exception as error:  # noqa: BLE001 - the answer is ready, and later work goes on
                report(environ, error, surface="hook", operation=operation_of(request))
