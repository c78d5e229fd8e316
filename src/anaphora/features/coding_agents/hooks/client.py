"""What a client's hook runs: it asks the resident process, prints the answer, and exits with 0.

Errors never affect the client: they go to the log. Without a resident process the hook does the
work itself. Nothing heavy is imported before that. One request is answered once: only what this
process printed counts as given, however many processes worked at it.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import allocate_lock

from anaphora.features.coding_agents.hooks.delivery import give
from anaphora.system import resident
from anaphora.system.environment import environment, passed_on, trial_namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

LIMIT: Final = 8.0
"""Seconds until a hook says nothing: clients wait 10, and would lose what comes later. On a busy
machine the interpreter's start and end take the rest."""
PATIENCE: Final = 4.0
"""Seconds that a hook waits for a resident process that starts. Doing the work beside it would take
the processor from it: on a busy machine, with a cold disk, neither would answer in time."""

REST: Final = 0.5
"""Seconds after that for what is left to do: the client would end the hook soon after."""

_PART: Final = 0.2
"""The part of its time that a hook waits for its own model."""
_MOST: Final = 4_000_000


def run_hook(client: str, place: Mapping[str, str]) -> None:
    """Answer one hook. `place` may have the options home, namespace and conversations."""
    ends, environ, deliver = time.monotonic() + LIMIT, environment(), _Delivery()
    request: dict[str, Any] = {"client": client}
    try:
        request["body"] = sys.stdin.buffer.read(_MOST)
        request |= request_of(place, environ)
        try:
            is_delivered = False
            while not is_delivered:
                answer = _ask_resident(environ, request, ends)
                body = str(answer["body"], "utf-8")
                is_delivered = deliver(body, answer["state_path"], answer["state"])
        except resident.NoResident as error:
            is_wanted = resident.idle_minutes(environ) > 0
            if is_wanted:
                report_quietly(
                    environ, error, request, note="answered without the resident process"
                )
            _answer_alone(request, deliver, ends, waits=not is_wanted)
    except BaseException as error:  # noqa: BLE001 - nothing may fail the client
        report_quietly(environ, error, request)
        # What the client expects to read if there is nothing to say.
        from anaphora.features.coding_agents.hooks.protocols import PROTOCOLS

        deliver(PROTOCOLS[client].silence if client in PROTOCOLS else "")
        if time.monotonic() > ends:
            # What is still at work here must not hold the client up.
            os._exit(0)


class _Delivery:
    """Prints an answer, but only one, and then notes what it gave.

    False for one that is not printed, since the session was given something while it was made.
    """

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._done = False
        self._began = time.time_ns()
        self._known = 0

    def __call__(self, output: str, state_path: str = "", state: str = "") -> bool:
        with self._lock:
            if not self._done:
                self._known = give(output, state_path, state, self._began, self._known)
                self._done = not self._known
            return self._done


def _ask_resident(
    environ: Mapping[str, str], request: Mapping[str, Any], ends: float
) -> dict[str, Any]:
    """The answer of the resident process, which says before that it is at work. `NoResident`."""
    with resident.greet(environ, request, PATIENCE)[0] as connection:
        # What keeps it would keep this process as long, beside it.
        return resident.receive(connection, max(0.0, ends - time.monotonic()))


def _answer_alone(
    request: Mapping[str, Any], deliver: _Delivery, ends: float, *, waits: bool
) -> None:
    """Answer in this process, if that can be done in time; `waits`: for the model, too.

    Raises TimeoutError, and what goes wrong.
    """
    import threading

    from anaphora.features.coding_agents.hooks.session import HookAnswer, answer_alone

    def left() -> float:
        return max(0.0, ends - time.monotonic())

    answered, errors = threading.Event(), list[BaseException]()

    def take(answer: HookAnswer) -> bool:
        is_delivered = deliver(answer.output, answer.state_path, answer.state)
        if is_delivered:
            answered.set()
        return is_delivered

    def work() -> None:
        try:
            answer_alone(request, take, patience=_PART * left() if waits else 0.0)
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)
        answered.set()

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    if not answered.wait(left()):
        raise TimeoutError(f"no answer within {LIMIT:g} s")
    worker.join(left() + REST)
    if worker.is_alive():
        os._exit(0)
    if errors:
        raise errors[0]


def request_of(place: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The request to the resident process, without what the client told."""
    # A relative path is relative to the folder of the hook, not to that of the resident process.
    options = {
        # Not with `pathlib`: its import would delay the hook.
        name: os.path.abspath(os.path.expanduser(option)) if name != "namespace" else option  # noqa: PTH100, PTH111
        for name, option in place.items()
    }
    if (trial := trial_namespace(environ)) is not None:
        options |= {"namespace": trial}
    variables = {f"${name}": text for name, text in passed_on(environ).items()}
    return {"call": "hook", **options, **variables}


def report_quietly(
    environ: Mapping[str, str], error: BaseException, request: Mapping[str, Any], *, note: str = ""
) -> None:
    """Log an error. If even the log cannot be imported, nothing is printed."""
    try:
        # Loading these takes longer than a hook with nothing to report.
        from anaphora.features.coding_agents.hooks.protocols import operation_of
        from anaphora.system.incidents import report

        report(environ, error, surface="hook", operation=operation_of(request), note=note)
    except Exception:  # noqa: BLE001, S110 - the client is answered all the same
        pass
