"""What a client's hook runs: it asks the resident process, prints the answer, and exits with 0.

Errors never affect the client: they go to the log. Without a resident process the hook does the
work itself. Nothing heavy is imported before that.
"""

from __future__ import annotations

import os
import sys

from anaphora.system import resident
from anaphora.system.environment import environment, passed_on, trial_namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

PATIENCE: Final = 1.0
"""Seconds that a hook waits for a resident process to start."""

_MOST: Final = 4_000_000


def run_hook(client: str, place: Mapping[str, str]) -> None:
    """Answer one hook. `place` may have the options home, namespace and conversations."""
    environ = environment()
    request: dict[str, Any] = {"client": client}
    try:
        request["body"] = sys.stdin.buffer.read(_MOST)
        request |= request_of(place, environ)
        try:
            output = str(resident.greet(environ, request, PATIENCE)[1]["body"], "utf-8")
        except resident.NoResident as error:
            if resident.idle_minutes(environ):
                report_quietly(
                    environ, error, request, note="answered without the resident process"
                )
            # Slower without the resident process, but with the same answer.
            from anaphora.features.coding_agents.hooks.session import answer_alone

            output = answer_alone(request)
        if output:
            sys.stdout.write(output + "\n")
            sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - nothing may fail the client
        report_quietly(environ, error, request)
        # What the client expects to read if there is nothing to say.
        from anaphora.features.coding_agents.hooks.protocols import PROTOCOLS

        if client in PROTOCOLS and (silence := PROTOCOLS[client].silence):
            sys.stdout.write(silence + "\n")


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
