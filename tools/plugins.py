"""Makes the plugins of coding agents, from one description: `plugins/` and the marketplace files.

In: the texts in `plugins/texts`, and what `anaphora setup` writes for each client. Out: a folder a
client in `plugins/`, each whole in itself, as clients copy it: server, hooks, commands, skill; and
the files by which a client finds them in this repository. Run `python -m tools.plugins`; with
`--check` it only says what is not up to date.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from anaphora import __version__
from anaphora.features.coding_agents.setup.clients import SKILL, entries, skill_text
from anaphora.settings import ClientFolders

__all__ = ["PLUGINS", "files"]

ROOT: Final = Path(__file__).resolve().parents[1]
PLUGINS: Final = ROOT / "plugins"
TEXTS: Final = PLUGINS / "texts"
NAME: Final = "anaphora"
DESCRIPTION: Final = (
    "Memory that runs on your own machine: earlier sessions, decisions and preferences come back "
    "by themselves, and every word is kept."
)
AUTHOR: Final = {"name": "The Anaphora developers"}
KEYWORDS: Final = ["memory", "recall", "local", "mcp", "hooks"]
COMMANDS: Final = ("recall", "remember", "forget")
AGENT_PLUGINS: Final = "https://agent-plugins.org/schemas/1.0.0"
MISSING: Final = (
    "The plugin of Anaphora is on, but there is no program `anaphora` on the PATH. "
    "Install it (uv tool install anaphora, or pipx install) and start again."
)

Files = Iterator[tuple[str, str]]


def files() -> dict[str, str]:
    """Every file by its path in the repository."""
    made = [
        *_marketplaces(),
        *_within("claude-code", _claude_code()),
        *_within("codex", _codex()),
        *_within("cursor", _cursor()),
        *_within("gemini", _gemini()),
        *_within("agent-plugin", _agent_plugin()),
    ]
    return dict(made)


def _within(folder: str, made: Files) -> Files:
    return ((f"plugins/{folder}/{path}", text) for path, text in made)


def _marketplaces() -> Files:
    about = {"name": NAME, "owner": AUTHOR}
    entry = {"name": NAME, "description": DESCRIPTION}
    # VS Code reads this one, too.
    yield (
        ".claude-plugin/marketplace.json",
        _json(
            {
                **about,
                "description": DESCRIPTION,
                "plugins": [{**entry, "source": "./plugins/claude-code", "version": __version__}],
            }
        ),
    )
    yield (
        ".cursor-plugin/marketplace.json",
        _json({**about, "plugins": [{**entry, "source": "./plugins/cursor"}]}),
    )
    yield (
        ".agents/plugins/marketplace.json",
        _json(
            {
                "name": NAME,
                "interface": {"displayName": "Anaphora"},
                "plugins": [
                    {
                        "name": NAME,
                        "source": {"source": "local", "path": "./plugins/codex"},
                        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                        "category": "Productivity",
                    }
                ],
            }
        ),
    )


def _about() -> dict[str, Any]:
    return {
        "name": NAME,
        "version": __version__,
        "description": DESCRIPTION,
        "author": AUTHOR,
        "license": "Apache-2.0",
        "keywords": KEYWORDS,
    }


def _claude_code() -> Files:
    yield ".claude-plugin/plugin.json", _json(_about())
    yield ".mcp.json", _json({"mcpServers": {NAME: _server()}})
    yield "hooks/hooks.json", _hooks("claude-code")
    yield from _markdown_commands()
    yield _skill()


def _codex() -> Files:
    told = {
        "displayName": "Anaphora",
        "shortDescription": "Memory on your own machine",
        "longDescription": DESCRIPTION,
        "developerName": AUTHOR["name"],
        "category": "Productivity",
        "capabilities": ["Read", "Write"],
        "defaultPrompt": [
            "What did we decide about the queue?",
            "Remember that staging is on 5433.",
        ],
    }
    manifest = {**_about(), "skills": "./skills/", "mcpServers": "./.mcp.json", "interface": told}
    yield ".codex-plugin/plugin.json", _json(manifest)
    yield ".mcp.json", _json({"mcpServers": {NAME: _server()}})
    yield "hooks/hooks.json", _hooks("codex")
    yield _skill()


def _cursor() -> Files:
    places = {
        "commands": "./commands/",
        "skills": "./skills/",
        "hooks": "./hooks/hooks.json",
        "mcpServers": "./mcp.json",
    }
    yield ".cursor-plugin/plugin.json", _json({**_about(), "displayName": "Anaphora", **places})
    yield "mcp.json", _json({"mcpServers": {NAME: _server()}})
    yield "hooks/hooks.json", _hooks("cursor")
    yield from _markdown_commands()
    yield _skill()


def _gemini() -> Files:
    manifest = {name: _about()[name] for name in ("name", "version", "description")}
    yield "gemini-extension.json", _json({**manifest, "mcpServers": {NAME: _server()}})
    yield "hooks/hooks.json", _hooks("gemini")
    for name in COMMANDS:
        about, words = _read_command(name)
        prompt = words.replace("$ARGUMENTS", "{{args}}")
        text = f'description = {json.dumps(about["description"])}\nprompt = """\n{prompt}"""\n'
        yield f"commands/{name}.toml", text
    yield _skill()


def _agent_plugin() -> Files:
    yield "plugin.json", _json({"$schema": f"{AGENT_PLUGINS}/plugin.schema.json", **_about()})
    server = {"type": "stdio", **_server()}
    schema = f"{AGENT_PLUGINS}/mcp.schema.json"
    yield "mcp.json", _json({"$schema": schema, "mcpServers": {NAME: server}})
    yield _skill()


def _server() -> dict[str, Any]:
    return {"command": NAME, "args": ["mcp"]}


def _hooks(client: str) -> str:
    """The hooks that `anaphora setup` would write, which say so at the start if it is not there."""
    nowhere = Path("/")
    folders = ClientFolders(nowhere, nowhere, nowhere, nowhere, nowhere)
    hooks: dict[str, list[Any]] = {}
    for entry in entries(client, folders, [NAME]):
        if entry.keys[:1] == ("hooks",):
            value = _forgiving(entry.value, client, start=not hooks)
            hooks.setdefault(entry.keys[1], []).append(value)
    return _json({"version": 1, "hooks": hooks} if client == "cursor" else {"hooks": hooks})


def _forgiving(value: Mapping[str, Any], client: str, *, start: bool) -> dict[str, Any]:
    """The same hook, whose end is good also where the program is missing."""
    if "hooks" in value:
        return {**value, "hooks": [_forgiving(one, client, start=start) for one in value["hooks"]]}
    otherwise = "true"
    if start and client != "cursor":
        told = json.dumps({"systemMessage": MISSING}).replace("'", "\\u0027")
        otherwise = f"echo '{told}'"
    elif client in {"cursor", "gemini"}:
        otherwise = "echo '{}'"
    return {**value, "command": f"{value['command']} 2>/dev/null || {otherwise}"}


def _markdown_commands() -> Files:
    for name in COMMANDS:
        yield f"commands/{name}.md", (TEXTS / "commands" / f"{name}.md").read_text("utf-8")


def _read_command(name: str) -> tuple[dict[str, str], str]:
    """What stands between the lines of a command's head, and the words below."""
    text = (TEXTS / "commands" / f"{name}.md").read_text("utf-8")
    found = re.match(r"---\n(.*?)\n---\n\n(.*)\Z", text, re.DOTALL)
    assert found is not None, name
    lines = (line.partition(": ") for line in found[1].splitlines())
    return {key: value for key, _, value in lines}, found[2]


def _skill() -> tuple[str, str]:
    return f"skills/{SKILL}/SKILL.md", skill_text()


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    """Write every file, or say which are not up to date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing, say what is old")
    given = parser.parse_args()
    made = files()
    there = {
        PurePosixPath(path.relative_to(ROOT)).as_posix()
        for folder in PLUGINS.iterdir()
        if folder.is_dir() and folder != TEXTS
        for path in folder.rglob("*")
        if path.is_file()
    }
    old = sorted(there - set(made)) + [
        path
        for path, text in made.items()
        if not (ROOT / path).is_file() or (ROOT / path).read_text("utf-8") != text
    ]
    for path in old:
        print(f"{'not up to date' if given.check else 'wrote'}: {path}")
        if not given.check and path in made:
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(made[path], "utf-8")
        elif not given.check:
            (ROOT / path).unlink()
    return 1 if given.check and old else 0


if __name__ == "__main__":
    sys.exit(main())
