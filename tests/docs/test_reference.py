"""The reference is built from the code, and has everything public in it."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from tests.docs.reference_pages import reference_page
from tests.docs.running import ROOT

import anaphora
from anaphora import Memory, errors
from anaphora import settings as config
from anaphora.surfaces.cli.app import app
from anaphora.surfaces.mcp_server.tools import all_tools
from anaphora.system import resident
from anaphora.system.incidents import TRACEBACK
from anaphora.testing import server_app


@pytest.mark.promise("docs.reference")
def test_what_is_built_matches_the_code() -> None:
    """The pages and the stub of the async API are committed: built again, they do not change."""
    done = subprocess.run(
        [sys.executable, "tools/reference.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _is_value(name: str) -> bool:
    kind = getattr(anaphora, name)
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


@pytest.mark.promise("docs.reference")
def test_every_public_call_is_described() -> None:
    """Each public name of the package, method of `Memory`, value and error is in the reference."""
    python = reference_page("python.md")
    headings = set(re.findall(r"^#+ (\w+)$", python, re.MULTILINE))
    assert {name for name in dir(Memory) if not name.startswith("_")} - headings == set()
    assert set(filter(_is_value, anaphora.__all__)) - headings == set()
    assert {name for name in anaphora.__all__ if name not in python} == set()
    described = reference_page("errors.md")
    assert {name for name in errors.__all__ if f"`{name}`" not in described} == set()


def _commands(group: Any, names: tuple[str, ...] = ()) -> Iterator[str]:
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from _commands(command, (*names, name))
        else:
            yield " ".join((*names, name))


@pytest.mark.promise("docs.reference")
def test_every_command_route_and_tool_is_described(tmp_path: Path) -> None:
    """Each command of the program, route of the HTTP API and MCP tool is in the reference."""
    cli = reference_page("cli.md")
    commands = list(_commands(typer.main.get_command(app)))
    assert len(commands) > 30
    assert [name for name in commands if f"anaphora {name}" not in cli] == []
    with Memory.open(tmp_path, warm=False, embedder="hashing") as memory:
        paths = server_app(memory, page=None).openapi()["paths"]
    routes = {f"## {verb.upper()} {path}\n" for path, item in paths.items() for verb in item}
    assert len(routes) > 30
    assert {route for route in routes if route not in reference_page("rest.md")} == set()
    mcp = reference_page("mcp.md")
    assert [name for name in all_tools() if f"## {name}\n" not in mcp] == []


@pytest.mark.promise("docs.reference")
def test_every_variable_is_described() -> None:
    """What the settings and the resident process read from the environment is what it describes."""
    source = (ROOT / "src" / "anaphora" / "settings.py").read_text("utf-8")
    code = source[source.index("def load_settings") :]
    read = set(re.findall(r'"((?:ANAPHORA|OPENAI|ANTHROPIC|GOOGLE|GEMINI)_\w+)"', code))
    read |= set(re.findall(r'"(CLAUDE_\w+|CODEX_\w+)"', code)) | set(config.CONVERSATIONS_VARIABLES)
    read |= {name for names in config.DECAY_VARIABLES.values() for name in names}
    read |= {resident.VARIABLE, TRACEBACK}
    assert read == {one.name for one in config.VARIABLES}
