"""The clients that are known: where each keeps its configuration, and what belongs there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from anaphora.core.config import ClientFolders
from anaphora.errors import InvalidInput
from anaphora.surfaces.hooks.protocols import PROTOCOLS
from anaphora.surfaces.setup.program import command_line

NAME: Final = "anaphora"
"""What the server is called in every client's configuration."""

HOOK_TIMEOUT: Final = 10
"""Seconds that a client waits for a hook before it goes on; none takes more than a few."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value that belongs into one file: under `keys`, in the client's own `form`.

    `form` is "json" or "toml". With `member_of` the value is one member of the list under `keys`:
    the member that holds these words in its text is Anaphora's. A `given` one is what the file must
    have beside it: it is put where nothing stands, and never taken out.
    """

    path: Path
    form: str
    keys: tuple[str, ...]
    value: Any
    member_of: str | None = None
    given: bool = False


Build = Callable[[ClientFolders, Sequence[str]], tuple[Entry, ...]]


def _stdio(command: Sequence[str], *, typed: bool = False) -> dict[str, Any]:
    server: dict[str, Any] = {"command": command[0], "args": [*command[1:], "mcp"]}
    return {"type": "stdio", **server} if typed else server


def _hooks(
    client: str, path: Path, command: Sequence[str], *, milliseconds: bool = False
) -> tuple[Entry, ...]:
    """A hook for each event of a client that has them, in the form that Claude Code began."""
    run = command_line([*command, "hook", client])
    timeout = HOOK_TIMEOUT * (1000 if milliseconds else 1)
    named = {"name": NAME} if milliseconds else {}
    hook = {**named, "type": "command", "command": run, "timeout": timeout}
    return tuple(
        Entry(path, "json", ("hooks", event), {"hooks": [hook]}, member_of=f"hook {client}")
        for event in PROTOCOLS[client].events
    )


def _claude_code(folders: ClientFolders, command: Sequence[str]) -> tuple[Entry, ...]:
    server = _stdio(command, typed=True)
    return (
        Entry(folders.claude_servers, "json", ("mcpServers", NAME), server),
        *_hooks("claude-code", folders.claude / "settings.json", command),
    )


def _codex(folders: ClientFolders, command: Sequence[str]) -> tuple[Entry, ...]:
    return (
        Entry(folders.codex / "config.toml", "toml", ("mcp_servers", NAME), _stdio(command)),
        *_hooks("codex", folders.codex / "hooks.json", command),
    )


def _gemini(folders: ClientFolders, command: Sequence[str]) -> tuple[Entry, ...]:
    settings = folders.user / ".gemini" / "settings.json"
    return (
        Entry(settings, "json", ("mcpServers", NAME), _stdio(command)),
        *_hooks("gemini", settings, command, milliseconds=True),
    )


def _cursor(folders: ClientFolders, command: Sequence[str]) -> tuple[Entry, ...]:
    hooks = folders.user / ".cursor" / "hooks.json"
    run = {"command": command_line([*command, "hook", "cursor"])}
    return (
        Entry(folders.user / ".cursor" / "mcp.json", "json", ("mcpServers", NAME), _stdio(command)),
        Entry(hooks, "json", ("version",), 1, given=True),
        *(
            Entry(hooks, "json", ("hooks", event), run, member_of="hook cursor")
            for event in PROTOCOLS["cursor"].events
        ),
    )


def _server(
    path: Callable[[ClientFolders], Path],
    key: str = "mcpServers",
    form: str = "json",
    *,
    typed: bool = False,
) -> Build:
    """A client that has nothing but a table of servers, under `key`."""
    return lambda folders, command: (
        Entry(path(folders), form, (key, NAME), _stdio(command, typed=typed)),
    )


CLIENTS: Final[Mapping[str, Build]] = {
    "claude-code": _claude_code,
    "claude-desktop": _server(lambda at: at.applications / "Claude" / "claude_desktop_config.json"),
    "codex": _codex,
    "cursor": _cursor,
    "vscode": _server(
        lambda at: at.applications / "Code" / "User" / "mcp.json", "servers", typed=True
    ),
    "gemini": _gemini,
}

_ALL_BY_ITSELF: Final = (
    "By itself it is reminded of rules, decisions and the last sessions at its start, gets what "
    "bears on a prompt, and its sessions are kept. After a compaction it gets back what was said."
)
_ON_DEMAND: Final = (
    "It has no hooks: it recalls and keeps only when it, or you, call the memory's tools."
)
ABILITIES: Final[Mapping[str, str]] = {
    "claude-code": _ALL_BY_ITSELF,
    "claude-desktop": _ON_DEMAND,
    "codex": f"{_ALL_BY_ITSELF} Codex asks you once to trust the hooks: `/hooks` shows them.",
    "cursor": (
        "By itself it is reminded of rules, decisions and the last sessions at its start, and its "
        "sessions are kept. With each prompt it gets what bears on it only where Cursor takes text "
        "there, which it does not promise; else the memory's tools are there."
    ),
    "vscode": _ON_DEMAND,
    "gemini": (
        "By itself it is reminded of rules, decisions and the last sessions at its start, gets "
        "what bears on a prompt, and its sessions are kept. What a compression took comes back "
        "with the next prompt."
    ),
}
"""What each client does of its own accord once it is set up, and what not."""


def entries(client: str, folders: ClientFolders, command: Sequence[str]) -> tuple[Entry, ...]:
    """What belongs where for `client`; `command` starts Anaphora. `InvalidInput` for another."""
    build = CLIENTS.get(client)
    if build is None:
        raise InvalidInput("client", client, f"expected one of {', '.join(CLIENTS)}")
    return build(folders, command)
