"""The clients that are known: where each keeps its configuration, and what belongs there."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from anaphora.core.config import ClientFolders
from anaphora.errors import InvalidInput

NAME: Final = "anaphora"
"""What the server is called in every client's configuration."""

HOOK_TIMEOUT: Final = 60
"""Seconds that a client waits for the hook that brings its transcript in."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value that belongs into one file: under `keys`, in the client's own `form`.

    `form` is "json" or "toml". With `member_of` the value is one member of the list under `keys`:
    the member that holds these words in its text is Anaphora's.
    """

    path: Path
    form: str
    keys: tuple[str, ...]
    value: Mapping[str, Any]
    member_of: str | None = None


Build = Callable[[ClientFolders, Sequence[str]], tuple[Entry, ...]]


def _stdio(command: Sequence[str], *, typed: bool = False) -> dict[str, Any]:
    server: dict[str, Any] = {"command": command[0], "args": [*command[1:], "mcp"]}
    return {"type": "stdio", **server} if typed else server


def _claude_code(folders: ClientFolders, command: Sequence[str]) -> tuple[Entry, ...]:
    hook = shlex.join([*command, "hook", "claude-code"])
    settings = folders.claude / "settings.json"
    run = {"hooks": [{"type": "command", "command": hook, "timeout": HOOK_TIMEOUT}]}
    servers = folders.claude_servers
    return (
        Entry(servers, "json", ("mcpServers", NAME), _stdio(command, typed=True)),
        # What a session said is brought in before it is compacted, and when it ends.
        Entry(settings, "json", ("hooks", "PreCompact"), run, member_of="hook claude-code"),
        Entry(settings, "json", ("hooks", "SessionEnd"), run, member_of="hook claude-code"),
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
    "codex": _server(lambda at: at.codex / "config.toml", "mcp_servers", "toml"),
    "cursor": _server(lambda at: at.user / ".cursor" / "mcp.json"),
    "vscode": _server(
        lambda at: at.applications / "Code" / "User" / "mcp.json", "servers", typed=True
    ),
    "gemini": _server(lambda at: at.user / ".gemini" / "settings.json"),
}


def entries(client: str, folders: ClientFolders, command: Sequence[str]) -> tuple[Entry, ...]:
    """What belongs where for `client`; `command` starts Anaphora. `InvalidInput` for another."""
    build = CLIENTS.get(client)
    if build is None:
        raise InvalidInput("client", client, f"expected one of {', '.join(CLIENTS)}")
    return build(folders, command)
