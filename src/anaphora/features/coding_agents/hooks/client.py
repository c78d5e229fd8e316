"""What a client's hook runs: it asks the resident process, prints the answer, and exits with 0.

Errors never affect the client: they go to the log. Without a resident process the hook does the
work itself. Nothing heavy is imported before that.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from anaphora.system import resident
from anaphora.system.environment import environment, passed_on, trial_namespace

PATIENCE: Final = 1.0
"""Seconds that a hook waits for a resident process to start, and again for its answer."""

_MOST: Final = 4_000_000
# A prompt may be a pasted file, of which only the beginning and the end are used.
_PROMPT: Final = 20_000


def run_hook(client: str, place: Mapping[str, str]) -> None:
    """Answer one hook. `place` may have the options home, namespace and conversations."""
    environ = environment()
    event = ""
    try:
        payload = json.loads(sys.stdin.buffer.read(_MOST) or b"{}")
        if not isinstance(payload, dict):
            raise ValueError("the hook's JSON is not an object")
        event = str(payload.get("hook_event_name") or payload.get("hookEventName", ""))
        request = request_of(client, payload, place, environ)
        try:
            reply = resident.ask(resident.reach(environ, PATIENCE), request, PATIENCE)
        except resident.NoResident as error:
            if resident.idle_minutes(environ):
                hook = str(payload.get("hook_event_name", ""))
                note = "answered without the resident process"
                report_quietly(environ, error, client, hook, note=note)
            # Slower without the resident process, but with the same answer.
            from anaphora.features.coding_agents.hooks.session import answer_alone

            output = answer_alone(request)
        else:
            output = str(reply.get("out", ""))
        if output:
            sys.stdout.write(output + "\n")
            sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - nothing may fail the client
        report_quietly(environ, error, client, event)
        # What the client expects to read if there is nothing to say.
        silence = ""
        with suppress(Exception):
            from anaphora.features.coding_agents.hooks.protocols import PROTOCOLS

            silence = PROTOCOLS[client].silence
        if silence:
            sys.stdout.write(silence + "\n")


def request_of(
    client: str, payload: Mapping[str, Any], place: Mapping[str, str], environ: Mapping[str, str]
) -> dict[str, Any]:
    """The request to the resident process."""
    prompt = payload.get("prompt")
    if isinstance(prompt, str) and len(prompt) > _PROMPT:
        half = _PROMPT // 2
        payload = {**payload, "prompt": f"{prompt[:half]}\n{prompt[-half:]}"}
    # A relative path is relative to the folder of the hook, not to that of the resident process.
    options = {
        # Not with `pathlib`: its import would delay the hook.
        name: os.path.abspath(os.path.expanduser(option)) if name != "namespace" else option  # noqa: PTH100, PTH111
        for name, option in place.items()
    }
    if (trial := trial_namespace(environ)) is not None:
        options |= {"namespace": trial}
    return {
        "call": "hook",
        "client": client,
        "told": dict(payload),
        "environ": passed_on(environ),
        **options,
    }


def report_quietly(
    environ: Mapping[str, str], error: BaseException, client: str, event: str, *, note: str = ""
) -> None:
    """Log an error. If even the log cannot be imported, nothing is printed."""
    with suppress(Exception):
        # Loading these takes longer than a hook with nothing to report.
        from anaphora.features.coding_agents.hooks.protocols import operation_of
        from anaphora.system.incidents import report

        report(environ, error, surface="hook", operation=operation_of(client, event), note=note)
