"""What each client takes for a plugin, as far as ours go: restated from what the clients publish.

Each schema is closed: a field that the published one does not have is refused here. Sources, read
in November 2026: SchemaStore's `claude-code-plugin-manifest` and `claude-code-marketplace`; the
field guide of Codex's `plugin-creator` and its `hooks` schemas; `schemas/plugin.schema.json` of
`cursor/plugins`; the extension reference of Gemini CLI; the Agent Plugins specification 1.0.0.
"""

from __future__ import annotations

from typing import Any, Final

_TEXT: Final = {"type": "string", "minLength": 1}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_VERSION: Final = {"type": "string", "pattern": r"^\d+\.\d+\.\d+([-+][0-9A-Za-z.-]+)?$"}
_KEBAB: Final = {"type": "string", "pattern": r"^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$"}
_WITHIN: Final = {"type": "string", "pattern": r"^\./"}


def _closed(needed: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": needed.split(),
        "additionalProperties": False,
        "properties": properties,
    }


_PERSON: Final = _closed("name", name=_TEXT, email=_TEXT, url=_TEXT)
_ABOUT: Final[dict[str, Any]] = {
    "name": _KEBAB,
    "version": _VERSION,
    "description": {"type": "string", "minLength": 1, "maxLength": 1024},
    "author": _PERSON,
    "homepage": _TEXT,
    "repository": _TEXT,
    "license": _TEXT,
    "keywords": _TEXTS,
}
_SERVER: Final = _closed("command", command=_TEXT, args=_TEXTS, env={"type": "object"}, cwd=_TEXT)
_SERVERS: Final = {"type": "object", "minProperties": 1, "additionalProperties": _SERVER}


def _hooks(events: str, hook: dict[str, Any]) -> dict[str, Any]:
    """Hooks in groups with a matcher, as Claude Code began them."""
    group = _closed("hooks", matcher=_TEXT, hooks={"type": "array", "items": hook, "minItems": 1})
    groups = {"type": "array", "items": group}
    return _closed("hooks", hooks=_closed("", **dict.fromkeys(events.split(), groups)))


_COMMAND: Final[dict[str, Any]] = {
    "type": {"const": "command"},
    "command": _TEXT,
    "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 600},
    "statusMessage": _TEXT,
}

CLAUDE_PLUGIN: Final = _closed("name", **_ABOUT)
CLAUDE_MARKETPLACE: Final = _closed(
    "name owner plugins",
    name=_KEBAB,
    version=_VERSION,
    description=_TEXT,
    owner=_PERSON,
    plugins={
        "type": "array",
        "minItems": 1,
        "items": _closed("name source", **_ABOUT, source=_WITHIN, category=_TEXT),
    },
)
CLAUDE_SERVERS: Final = _closed("mcpServers", mcpServers=_SERVERS)
CLAUDE_HOOKS: Final = _hooks(
    "PreToolUse PostToolUse Notification UserPromptSubmit SessionStart SessionEnd Stop "
    "SubagentStop PreCompact PostCompact",
    _closed("type command", **_COMMAND),
)
CODEX_PLUGIN: Final = _closed(
    "name version description author interface",
    **_ABOUT,
    skills=_WITHIN,
    mcpServers=_WITHIN,
    interface=_closed(
        "displayName shortDescription longDescription developerName category capabilities",
        displayName=_TEXT,
        shortDescription=_TEXT,
        longDescription=_TEXT,
        developerName=_TEXT,
        category=_TEXT,
        capabilities=_TEXTS,
        defaultPrompt={"type": "array", "maxItems": 3, "items": {**_TEXT, "maxLength": 128}},
    ),
)
CODEX_MARKETPLACE: Final = _closed(
    "name plugins",
    name=_KEBAB,
    interface=_closed("displayName", displayName=_TEXT),
    plugins={
        "type": "array",
        "minItems": 1,
        "items": _closed(
            "name source policy category",
            name=_KEBAB,
            source=_closed("source path", source={"const": "local"}, path=_WITHIN),
            policy=_closed(
                "installation authentication",
                installation={"enum": ["NOT_AVAILABLE", "AVAILABLE", "INSTALLED_BY_DEFAULT"]},
                authentication={"enum": ["ON_INSTALL", "ON_USE"]},
            ),
            category=_TEXT,
        ),
    },
)
CODEX_HOOKS: Final = _hooks(
    "PreToolUse PermissionRequest PostToolUse PreCompact PostCompact SessionStart "
    "UserPromptSubmit Stop",
    _closed("type command", **_COMMAND),
)
CURSOR_PLUGIN: Final = _closed(
    "name",
    **{**_ABOUT, "author": _closed("name", name=_TEXT, email=_TEXT)},
    displayName=_TEXT,
    commands=_WITHIN,
    skills=_WITHIN,
    hooks=_WITHIN,
    mcpServers=_WITHIN,
)
CURSOR_MARKETPLACE: Final = _closed(
    "name owner plugins",
    name=_KEBAB,
    owner=_PERSON,
    plugins={
        "type": "array",
        "minItems": 1,
        "items": _closed("name source", name=_KEBAB, source=_TEXT, description=_TEXT),
    },
)
CURSOR_HOOKS: Final = _closed(
    "version hooks",
    version={"const": 1},
    hooks=_closed(
        "",
        **{
            event: {
                "type": "array",
                "items": _closed("command", command=_TEXT, timeout={"type": "number"}),
            }
            for event in ("sessionStart", "beforeSubmitPrompt", "preCompact", "stop", "sessionEnd")
        },
    ),
)
GEMINI_EXTENSION: Final = _closed(
    "name version",
    name=_KEBAB,
    version=_VERSION,
    description=_TEXT,
    mcpServers=_SERVERS,
    contextFileName=_TEXT,
    excludeTools=_TEXTS,
)
GEMINI_HOOKS: Final = _hooks(
    "SessionStart SessionEnd BeforeAgent AfterAgent BeforeModel AfterModel BeforeTool AfterTool "
    "PreCompress Notification",
    _closed(
        "type command",
        type={"const": "command"},
        command=_TEXT,
        name=_TEXT,
        description=_TEXT,
        # Milliseconds.
        timeout={"type": "integer", "minimum": 1000, "maximum": 60_000},
    ),
)
GEMINI_COMMAND: Final = _closed("prompt", prompt=_TEXT, description=_TEXT)
_STANDARD: Final = "https://agent-plugins.org/schemas/1.0.0"
AGENT_PLUGIN: Final = _closed(
    "$schema name",
    **{"$schema": {"const": f"{_STANDARD}/plugin.schema.json"}},
    **_ABOUT,
    extensions={"type": "object"},
)
AGENT_SERVERS: Final = _closed(
    "$schema mcpServers",
    **{"$schema": {"const": f"{_STANDARD}/mcp.schema.json"}},
    mcpServers={
        "type": "object",
        "additionalProperties": _closed(
            "type command", type={"const": "stdio"}, command=_TEXT, args=_TEXTS
        ),
    },
)
SKILL: Final = _closed(
    "name description",
    name={"type": "string", "pattern": r"^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$"},
    description={"type": "string", "minLength": 1, "maxLength": 1024},
)
COMMAND: Final = _closed(
    "description", **{"description": _TEXT, "argument-hint": _TEXT, "allowed-tools": _TEXT}
)

FILES: Final[dict[str, dict[str, Any]]] = {
    ".claude-plugin/marketplace.json": CLAUDE_MARKETPLACE,
    ".cursor-plugin/marketplace.json": CURSOR_MARKETPLACE,
    ".agents/plugins/marketplace.json": CODEX_MARKETPLACE,
    "plugins/claude-code/.claude-plugin/plugin.json": CLAUDE_PLUGIN,
    "plugins/claude-code/.mcp.json": CLAUDE_SERVERS,
    "plugins/claude-code/hooks/hooks.json": CLAUDE_HOOKS,
    "plugins/codex/.codex-plugin/plugin.json": CODEX_PLUGIN,
    "plugins/codex/.mcp.json": CLAUDE_SERVERS,
    "plugins/codex/hooks/hooks.json": CODEX_HOOKS,
    "plugins/cursor/.cursor-plugin/plugin.json": CURSOR_PLUGIN,
    "plugins/cursor/mcp.json": CLAUDE_SERVERS,
    "plugins/cursor/hooks/hooks.json": CURSOR_HOOKS,
    "plugins/gemini/gemini-extension.json": GEMINI_EXTENSION,
    "plugins/gemini/hooks/hooks.json": GEMINI_HOOKS,
    "plugins/agent-plugin/plugin.json": AGENT_PLUGIN,
    "plugins/agent-plugin/mcp.json": AGENT_SERVERS,
}
"""The schema of every JSON file of the plugins."""
