"""The known clients: where each keeps its configuration, and what belongs there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from anaphora.errors import InvalidInput
from anaphora.features.coding_agents.hooks.protocols import PROTOCOLS
from anaphora.settings import ClientFolders
from anaphora.surfaces.cli.words import command_line

NAME: Final = "anaphora"
"""The name of the server in every client's configuration."""

SKILL: Final = "anaphora-memory"
"""The skill that tells agents when to recall and when to store (see agentskills.io)."""

HOOK_TIMEOUT: Final = 10
"""Seconds that a client waits for a hook; none takes more than a few."""


@dataclass(frozen=True, slots=True)
class SettingsEntry:
    """A value that belongs into one file: under `keys`, in the client's own `form`.

    `form` is "json" or "toml"; with "text" the value is the whole file, and there are no keys. With
    `hook` (a client) the value is a hook, or a group of one, in the list under `keys`. A `given`
    entry is a prerequisite: it is added if missing, and never removed.
    """

    path: Path
    form: str
    keys: tuple[str, ...]
    value: Any
    hook: str = ""
    given: bool = False


Build = Callable[[ClientFolders, Sequence[str]], tuple[SettingsEntry, ...]]


def _stdio(command: Sequence[str], *, typed: bool = False) -> dict[str, Any]:
    server: dict[str, Any] = {"command": command[0], "args": [*command[1:], "mcp"]}
    return {"type": "stdio", **server} if typed else server


def _hooks(
    client: str, path: Path, command: Sequence[str], *, milliseconds: bool = False
) -> tuple[SettingsEntry, ...]:
    """A hook for each event of a client, in the form that Claude Code introduced."""
    run = command_line([*command, "hook", client])
    timeout = HOOK_TIMEOUT * (1000 if milliseconds else 1)
    name_field = {"name": NAME} if milliseconds else {}
    hook = {**name_field, "type": "command", "command": run, "timeout": timeout}
    return tuple(
        SettingsEntry(path, "json", ("hooks", event), {"hooks": [hook]}, hook=client)
        for event in PROTOCOLS[client].events
    )


def skill_text() -> str:
    """The text of the skill, the same for every client."""
    return Path(__file__).with_name("SKILL.md").read_text("utf-8")


def _skill(folder: Path) -> SettingsEntry:
    """The skill in a client's folder: most clients read `skills/NAME/SKILL.md` there."""
    return SettingsEntry(folder / "skills" / SKILL / "SKILL.md", "text", (), skill_text())


def _claude_code(folders: ClientFolders, command: Sequence[str]) -> tuple[SettingsEntry, ...]:
    return (
        SettingsEntry(
            folders.claude_servers, "json", ("mcpServers", NAME), _stdio(command, typed=True)
        ),
        *_hooks("claude-code", folders.claude / "settings.json", command),
        _skill(folders.claude),
    )


def _codex(folders: ClientFolders, command: Sequence[str]) -> tuple[SettingsEntry, ...]:
    return (
        SettingsEntry(
            folders.codex / "config.toml", "toml", ("mcp_servers", NAME), _stdio(command)
        ),
        *_hooks("codex", folders.codex / "hooks.json", command),
        _skill(folders.codex),
    )


def _gemini(folders: ClientFolders, command: Sequence[str]) -> tuple[SettingsEntry, ...]:
    settings = folders.user / ".gemini" / "settings.json"
    return (
        SettingsEntry(settings, "json", ("mcpServers", NAME), _stdio(command)),
        *_hooks("gemini", settings, command, milliseconds=True),
        _skill(settings.parent),
    )


def _cursor(folders: ClientFolders, command: Sequence[str]) -> tuple[SettingsEntry, ...]:
    hooks = folders.user / ".cursor" / "hooks.json"
    run = {"command": command_line([*command, "hook", "cursor"])}
    return (
        SettingsEntry(
            folders.user / ".cursor" / "mcp.json", "json", ("mcpServers", NAME), _stdio(command)
        ),
        SettingsEntry(hooks, "json", ("version",), 1, given=True),
        *(
            SettingsEntry(hooks, "json", ("hooks", event), run, hook="cursor")
            for event in PROTOCOLS["cursor"].events
        ),
        _skill(hooks.parent),
    )


def _vscode(folders: ClientFolders, command: Sequence[str]) -> tuple[SettingsEntry, ...]:
    copilot = folders.user / ".copilot"
    run = command_line([*command, "hook", "vscode"])
    hook = {"type": "command", "command": run, "timeout": HOOK_TIMEOUT}
    hooks = copilot / "hooks" / f"{NAME}.json"
    return (
        SettingsEntry(
            folders.applications / "Code" / "User" / "mcp.json",
            "json",
            ("servers", NAME),
            _stdio(command, typed=True),
        ),
        *(
            SettingsEntry(hooks, "json", ("hooks", event), hook, hook="vscode")
            for event in PROTOCOLS["vscode"].events
        ),
        _skill(copilot),
    )


def _claude_desktop(folders: ClientFolders, command: Sequence[str]) -> tuple[SettingsEntry, ...]:
    path = folders.applications / "Claude" / "claude_desktop_config.json"
    return (SettingsEntry(path, "json", ("mcpServers", NAME), _stdio(command)),)


CLIENTS: Final[Mapping[str, Build]] = {
    "claude-code": _claude_code,
    "claude-desktop": _claude_desktop,
    "codex": _codex,
    "cursor": _cursor,
    "vscode": _vscode,
    "gemini": _gemini,
}

_AUTOMATIC: Final = (
    "Each session starts with your rules, decisions and recent sessions; relevant memories are "
    "added to your prompts; sessions are saved automatically."
)
_RESTORED: Final = "After a compaction, what you said earlier in the session is restored."
_ON_DEMAND: Final = (
    "It has no hooks: memory is read and written only when it, or you, call the memory's tools."
)
ABILITIES: Final[Mapping[str, str]] = {
    "claude-code": f"{_AUTOMATIC} {_RESTORED}",
    "claude-desktop": _ON_DEMAND,
    "codex": (
        f"{_AUTOMATIC} {_RESTORED} Codex runs hooks only after you trust them once: enter `/hooks`."
    ),
    "cursor": (
        "Each session starts with your rules, decisions and recent sessions, and sessions are "
        "saved automatically. Memories for a prompt are added only if your version of Cursor "
        "accepts them; the memory's tools always work."
    ),
    "vscode": (
        "Each session starts with your rules, decisions and recent sessions. VS Code accepts no "
        "memories with a prompt and its chats are not saved automatically: for these, call the "
        "memory's tools."
    ),
    "gemini": (
        f"{_AUTOMATIC} After a compression, what was lost is restored with the next prompt."
    ),
}
"""What each client does automatically once it is set up, and what not."""


def entries(
    client: str, folders: ClientFolders, command: Sequence[str]
) -> tuple[SettingsEntry, ...]:
    """The entries for `client`; `command` starts Anaphora. `InvalidInput` for an unknown client."""
    build = CLIENTS.get(client)
    if build is None:
        raise InvalidInput("client", client, f"expected one of {', '.join(CLIENTS)}")
    return build(folders, command)
