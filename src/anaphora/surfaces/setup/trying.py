"""Trying what was set up, as the client will: does the server start, does the hook answer?"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from typing import Final

from anaphora import __version__
from anaphora.core.environment import environment
from anaphora.core.hook_log import failures
from anaphora.errors import InvalidInput
from anaphora.installing import install_command
from anaphora.surfaces.hooks.protocols import PROTOCOLS

PATIENCE: Final = 20.0
"""Seconds that a server or a hook has to answer."""

_SESSION: Final = "anaphora-setup"


@dataclass(frozen=True, slots=True)
class Trial:
    """What was tried, how long it took in seconds, and what went wrong; "" where nothing did."""

    what: str
    seconds: float
    problem: str = ""


def refuse_dead_server() -> None:
    """`InvalidInput` where the server could not start from here, with the command that helps."""
    if find_spec("mcp_types") is None:
        remedy = install_command(packages=requirements_of("mcp-types"))
        reason = f"the server needs a package that is not installed here; run: {remedy}"
        raise InvalidInput("setup", "mcp", reason)


def requirements_of(package: str) -> list[str]:
    """A package of the base as Anaphora requires it."""
    try:
        listed = requires("anaphora") or []
    except PackageNotFoundError:
        listed = []
    wanted = [line for line in listed if line.startswith(package) and "extra ==" not in line]
    return wanted or [package]


def try_hook(client: str, command: Sequence[str]) -> Trial:
    """Run a client's hook as at the start of a session, and look whether it said what it should."""
    name = next(n for n, kind in PROTOCOLS[client].events.items() if kind == "start")
    told = {"hook_event_name": name, "session_id": _SESSION, "cwd": os.getcwd()}  # noqa: PTH109
    began, at = time.monotonic(), time.time()
    problem = ""
    try:
        done = subprocess.run(  # noqa: S603 - what the client will run
            [*command, "hook", client],
            input=json.dumps(told).encode(),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        if done.stdout.strip():
            json.loads(done.stdout)
        if done.returncode:
            problem = done.stderr.decode(errors="replace").strip() or f"it exited {done.returncode}"
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        problem = str(error)
    # A hook fails nobody: what went wrong is in its log.
    logged = [one for one in failures(environment(), at) if "note" not in one]
    if not problem and logged:
        problem = str(logged[-1]["error"])
    return Trial("hook", time.monotonic() - began, problem)


def try_server(command: Sequence[str]) -> Trial:
    """Start the server and shake hands with it."""
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": _SESSION, "version": __version__},
        },
    }
    began, problem = time.monotonic(), ""
    try:
        done = subprocess.run(  # noqa: S603 - as above
            [*command, "mcp"],
            input=json.dumps(hello).encode() + b"\n",
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        answers = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
        if not any("result" in one for one in answers):
            problem = done.stderr.decode(errors="replace").strip() or "it did not answer"
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        problem = str(error)
    return Trial("server", time.monotonic() - began, problem)
