"""Tests a setup the way the client will use it: a sentence is stored, and must be recalled.

The commands in the client's configuration are run with the variables there, and with the client's
own home, database, keys and model: a temporary home would only prove that the program works, not
this memory. Only the namespace is a new one for each trial. Its server deletes it at its end, with
rows, files, index and name, so that it appears in no listing, count, audit trail, backup or export.
A server of another version would ignore the trial and store the sentence among the user's own, so
it must first confirm the trial's namespace.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from typing import Any, Final

from anaphora import __version__
from anaphora.errors import InvalidInput, StoreError
from anaphora.features.coding_agents.hooks.protocols import PROTOCOLS
from anaphora.features.coding_agents.setup.dialogue import ServerDialogue, TrialFailed
from anaphora.features.coding_agents.setup.written import WrittenServer, WrittenSetup, written_setup
from anaphora.installing import install_command
from anaphora.settings import ClientFolders
from anaphora.surfaces.cli.words import command_line
from anaphora.system.environment import TRIAL_META, TRIAL_PREFIX, TRIAL_VARIABLE, environment
from anaphora.system.incidents import incidents

PATIENCE: Final = 20.0
"""Seconds within which a server or a hook must answer."""

_SESSION: Final = "anaphora-setup"
_STORE, _RECALL = "store_memory", "recall"
_SENTENCE: Final = "The lighthouse of the setup trial is called {}."
_QUESTION: Final = "What is the lighthouse of the setup trial called?"
_MISSING: Final = re.compile(r"No module named '([A-Za-z_][\w]*)")
_OF_THE_HOME: Final = frozenset({"store", "recall", "end"})
_OTHER_VERSION: Final = "the command starts another version of Anaphora, which cannot be tried ({})"


@dataclass(frozen=True, slots=True)
class Trial:
    """What was tried, for how many seconds, and what went wrong, if anything.

    `step` is the step that failed, and `remedy` the command that repairs it.
    """

    what: str
    seconds: float
    problem: str = ""
    step: str = ""
    remedy: str = ""


def refuse_dead_server() -> None:
    """`InvalidInput` if the server could not start from here, with the command that helps."""
    if find_spec("mcp_types") is None:
        remedy = install_command(packages=requirements_of("mcp-types"))
        reason = f"the server needs a package that is not installed here; run: {remedy}"
        raise InvalidInput("setup", "mcp", reason)


def requirements_of(package: str) -> list[str]:
    """The requirement for a package as Anaphora declares it."""
    try:
        requirements = requires("anaphora") or []
    except PackageNotFoundError:
        requirements = []
    lines = [line for line in requirements if line.startswith(package) and "extra ==" not in line]
    return lines or [package]


def try_client(client: str, folders: ClientFolders, program: Sequence[str]) -> tuple[Trial, ...]:
    """Test everything configured for a client. Failures become trials with a problem.

    `program` are the words that start this Anaphora, for the commands that repair failures. The
    hooks run while the server does, since they must recall the sentence that it stored.
    """
    try:
        setup = written_setup(client, folders)
    except (InvalidInput, StoreError) as error:
        remedy = command_line([*program, "setup", client])
        return (Trial("configuration", 0.0, str(error), "read", remedy),)
    word = f"Wexham{secrets.token_hex(3)}"
    variables = {TRIAL_VARIABLE: secrets.token_hex(8)}
    hooks: list[Trial] = []

    def try_hooks(stored: str) -> None:
        if setup.hooks and not hooks:
            hooks.append(_try_hooks(setup, variables, stored))

    server = setup.server
    servers = [] if server is None else [_try_server(server, variables, word, try_hooks)]
    # Without a server there is no sentence to recall; the hooks must still answer.
    try_hooks("")
    return tuple(
        replace(trial, remedy=_remedy(trial, setup, program)) if trial.problem else trial
        for trial in (*servers, *hooks)
    )


def _remedy(trial: Trial, setup: WrittenSetup, program: Sequence[str]) -> str:
    """The command that repairs what a trial found."""
    missing = _MISSING.search(trial.problem)
    server = setup.server
    is_own_server = server is not None and server.words[: len(program)] == tuple(program)
    if missing is not None and is_own_server:
        return install_command(missing[1])
    if trial.step in _OF_THE_HOME and is_own_server and server is not None:
        # The program works but its home does not, which doctor can repair.
        return command_line([*server.words[:-1], "doctor", "--repair"])
    return command_line([*program, "setup", setup.client, "--yes"])


def _try_server(
    server: WrittenServer, trial: Mapping[str, str], word: str, meanwhile: Callable[[str], None]
) -> Trial:
    """Store a sentence and recall it; then `meanwhile`, before the server ends."""
    began, step = time.monotonic(), "start"
    problem = ""
    environ = {**environment(), **server.variables, **trial}
    dialogue: ServerDialogue | None = None
    try:
        dialogue = ServerDialogue(server.words, environ, server.folder, PATIENCE)
        step = "initialize"
        client = {"name": _SESSION, "version": __version__}
        versions = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        answer = dialogue.ask("initialize", versions)
        if (answer.get("_meta") or {}).get(TRIAL_META) != TRIAL_PREFIX + trial[TRIAL_VARIABLE]:
            about = answer.get("serverInfo") or {}
            name = f"{about.get('name', 'unknown')} {about.get('version', '')}".strip()
            raise TrialFailed(_OTHER_VERSION.format(name))
        dialogue.notify("notifications/initialized")
        step = "tools/list"
        tools = {tool.get("name") for tool in dialogue.ask("tools/list", {}).get("tools", ())}
        if missing := {_STORE, _RECALL} - tools:
            raise TrialFailed(f"the server does not list {' and '.join(sorted(missing))}")
        step = "store"
        dialogue.call(_STORE, {"content": _SENTENCE.format(word)})
        step = "recall"
        if word not in json.dumps(dialogue.call(_RECALL, {"question": _QUESTION})):
            raise TrialFailed("the sentence that was just stored was not recalled")
    except TrialFailed as error:
        problem = str(error)
    seconds = time.monotonic() - began
    if not problem:
        meanwhile(word)
    if dialogue is not None and not dialogue.finish():
        # It may not have deleted its namespace: another server does at its end.
        with suppress(TrialFailed):
            ServerDialogue(server.words, environ, server.folder, PATIENCE).finish()
        if not problem:
            step, problem = "end", "it did not end as it should when its client went"
    return _trial("server", seconds, step, problem)


def _trial(what: str, seconds: float, step: str, problem: str) -> Trial:
    return Trial(what, seconds, problem, step if problem else "")


def _try_hooks(setup: WrittenSetup, trial: Mapping[str, str], word: str) -> Trial:
    """Run a client's hooks at the start of a session, and with a prompt about the sentence."""
    began, at = time.monotonic(), time.time()
    protocol, step, problem = PROTOCOLS[setup.client], "", ""
    environ = {**environment(), **trial}
    try:
        for kind, fields in (("start", {"source": "startup"}), ("prompt", {"prompt": _QUESTION})):
            events = (name for name, of in protocol.events.items() if of == kind)
            event = next(events, "")
            if (line := setup.hooks.get(event)) is None:
                continue
            step = f"hook {event}"
            answer = _run_hook(line, event, fields, environ)
            # A hook never fails its client; errors are in the log of incidents.
            logged_lines = [
                incident
                for incident in incidents(environ, at)
                if incident.operation.startswith(f"{setup.client} ") and not incident.note
            ]
            if logged_lines:
                raise TrialFailed(f"{logged_lines[-1].summary} (incident {logged_lines[-1].id})")
            if kind == "prompt" and kind in protocol.answered and word not in answer:
                raise TrialFailed("it did not recall the sentence that was just stored")
    except TrialFailed as error:
        problem = str(error)
    return _trial("hook", time.monotonic() - began, step, problem)


def _run_hook(line: str, event: str, fields: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """What a hook prints, which must be JSON or nothing. Raises `TrialFailed`."""
    folder = os.getcwd()  # noqa: PTH109
    payload: dict[str, Any] = {
        "hook_event_name": event,
        "session_id": _SESSION,
        "conversation_id": _SESSION,
        "cwd": folder,
        "workspace_roots": [folder],
        **fields,
    }
    try:
        process = subprocess.run(  # noqa: S602 - clients hand this line to a shell, too
            line,
            shell=True,
            input=json.dumps(payload).encode(),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            env=dict(environ),
        )
        if process.stdout.strip():
            json.loads(process.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TrialFailed(str(error)) from error
    except ValueError as error:
        text = process.stdout.decode(errors="replace").strip()[:200]
        raise TrialFailed(f"it printed what is no JSON: {text}") from error
    if process.returncode:
        errors = process.stderr.decode(errors="replace").strip().splitlines()
        raise TrialFailed(errors[-1] if errors else f"it exited with {process.returncode}")
    return process.stdout.decode(errors="replace")
