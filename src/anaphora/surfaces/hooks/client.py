"""What a client's hook runs: it asks the resident process, prints the answer, and ends with 0.

Whatever happens, the client goes on: what went wrong goes to the log. Without a resident process
the work is done here. Nothing heavy is imported before that.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from anaphora.core import resident
from anaphora.core.environment import environment, passed_on, trial_namespace

PATIENCE: Final = 1.0
"""Seconds that a hook waits for a resident process that starts, and as long again for an answer."""

_MOST: Final = 4_000_000
# A prompt may be a pasted file; what is read of it is its beginning and its end.
_PROMPT: Final = 20_000


def run_hook(client: str, place: Mapping[str, str]) -> None:
    """Answer one hook. `place` has the options home, namespace and conversations, where given."""
    environ = environment()
    event = ""
    try:
        told = json.loads(sys.stdin.buffer.read(_MOST) or b"{}")
        if not isinstance(told, dict):
            raise ValueError("the hook's JSON is not an object")
        event = str(told.get("hook_event_name") or told.get("hookEventName", ""))
        out = _asked(client, told, place, environ)
        if out:
            sys.stdout.write(out + "\n")
            sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - nothing may fail the client
        report_quietly(environ, error, client, event)
        silence = _silence(client)
        if silence:
            sys.stdout.write(silence + "\n")


def request_of(
    client: str, told: Mapping[str, Any], place: Mapping[str, str], environ: Mapping[str, str]
) -> dict[str, Any]:
    """What the resident process is asked."""
    prompt = told.get("prompt")
    if isinstance(prompt, str) and len(prompt) > _PROMPT:
        half = _PROMPT // 2
        told = {**told, "prompt": f"{prompt[:half]}\n{prompt[-half:]}"}
    # A folder that was given as the shell sees it means that there.
    here = {
        # As `pathlib` has it, whose import a hook would wait for.
        name: os.path.abspath(os.path.expanduser(value)) if name != "namespace" else value  # noqa: PTH100, PTH111
        for name, value in place.items()
    }
    if (trial := trial_namespace(environ)) is not None:
        here |= {"namespace": trial}
    return {
        "call": "hook",
        "client": client,
        "told": dict(told),
        "environ": passed_on(environ),
        **here,
    }


def _asked(
    client: str, told: Mapping[str, Any], place: Mapping[str, str], environ: Mapping[str, str]
) -> str:
    request = request_of(client, told, place, environ)
    try:
        found = resident.ask(resident.reach(environ, PATIENCE), request, PATIENCE)
    except resident.NoResident as error:
        if resident.idle_minutes(environ):
            event = str(told.get("hook_event_name", ""))
            note = "answered without the resident process"
            report_quietly(environ, error, client, event, note=note)
        return _alone(request)
    return str(found.get("out", ""))


def _alone(request: dict[str, Any]) -> str:
    """The answer without a resident process: slower, and the same."""
    from anaphora.surfaces.hooks.session import answer_alone

    return answer_alone(request)


def report_quietly(
    environ: Mapping[str, str], error: BaseException, client: str, event: str, *, note: str = ""
) -> None:
    """Log an error. Even where the log itself cannot be imported, the client is told nothing."""
    with suppress(Exception):
        # Loading these takes longer than a hook does that has nothing to report.
        from anaphora.core.incidents import report
        from anaphora.surfaces.hooks.protocols import operation_of

        report(environ, error, surface="hook", operation=operation_of(client, event), note=note)


def _silence(client: str) -> str:
    """What the client reads where there is nothing to say."""
    with suppress(Exception):
        from anaphora.surfaces.hooks.protocols import PROTOCOLS

        return PROTOCOLS[client].silence
    return ""
