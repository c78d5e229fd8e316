"""The plugins of coding agents: their files, their commands, and a week that begins with one."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from tests.commands import program_folder
from tests.hooks.hook_desk import CLIENTS, Agent, environment, write_transcript
from tests.plugins.schemas import COMMAND, FILES, GEMINI_COMMAND, SKILL
from tests.tool_reference import documented_tools
from tools.plugins import PLUGINS, files

ROOT = PLUGINS.parent
BIN = Path(sys.executable).parent
DECISION = "We decided that ferry tickets are numbered by the harbour, never by the ship."
ASKED = "How are the ferry tickets numbered?"


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder with a short path."""
    folder = Path(tempfile.mkdtemp(prefix="anp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def head_of(path: Path) -> dict[str, str]:
    """The fields between the lines at the beginning of a Markdown file."""
    found = re.match(r"---\n(.*?)\n---\n", path.read_text("utf-8"), re.DOTALL)
    assert found is not None, path
    return dict(line.split(": ", 1) for line in found[1].splitlines())


def hooks_of(client: str) -> dict[str, str]:
    """The command that a plugin has its client run for each event."""
    told = json.loads((PLUGINS / client / "hooks" / "hooks.json").read_text("utf-8"))["hooks"]
    commands: dict[str, str] = {}
    for event, members in told.items():
        (member,) = members
        (hook,) = member.get("hooks", [member])
        commands[event] = hook["command"]
    return commands


@pytest.mark.promise("plugins.valid")
def test_the_plugins_are_what_their_description_makes() -> None:
    """No file is old, none is missing, and none is there that nothing made."""
    made = files()
    for path, text in made.items():
        assert (ROOT / path).read_text("utf-8") == text, f"{path}: run python -m tools.plugins"
    there = {
        path.relative_to(ROOT).as_posix()
        for path in PLUGINS.rglob("*")
        if path.is_file() and "texts" not in path.parts
    }
    assert there == {path for path in made if path.startswith("plugins/")}


@pytest.mark.promise("plugins.valid")
@pytest.mark.parametrize("path", FILES)
def test_each_file_is_what_its_client_takes(path: str) -> None:
    """Every manifest, list of servers, hooks and marketplace keeps to its client's schema."""
    value = json.loads((ROOT / path).read_text("utf-8"))
    jsonschema.validate(value, FILES[path], jsonschema.Draft202012Validator)
    wrong: dict[str, Any] = {**value, "surprise": 1}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, FILES[path], jsonschema.Draft202012Validator)


@pytest.mark.promise("plugins.valid")
def test_every_json_file_has_a_schema_and_every_place_exists() -> None:
    """No file goes unchecked; what a marketplace or a manifest points to is there."""
    assert set(FILES) == {path for path in files() if path.endswith(".json")}
    for name in (".claude-plugin", ".cursor-plugin", ".agents/plugins"):
        listed = json.loads((ROOT / name / "marketplace.json").read_text("utf-8"))["plugins"]
        for one in listed:
            source = one["source"]
            place = ROOT / (source if isinstance(source, str) else source["path"])
            assert place.is_dir(), place
    for manifest in (*PLUGINS.glob("*/.c*-plugin/plugin.json"),):
        for value in json.loads(manifest.read_text("utf-8")).values():
            if isinstance(value, str) and value.startswith("./"):
                assert (manifest.parents[1] / value).exists(), value


@pytest.mark.promise("plugins.valid")
def test_skills_and_commands_name_tools_that_are_there() -> None:
    """Heads keep to their schema, and every tool that is named is one of those by default."""
    skills = list(PLUGINS.glob("*/skills/*/SKILL.md"))
    assert len(skills) == 5
    for path in skills:
        head = head_of(path)
        jsonschema.validate(head, SKILL)
        assert head["name"] == path.parent.name
    commands = [path for path in PLUGINS.glob("*/commands/*") if "texts" not in path.parts]
    assert len(commands) == 9
    tools = {name for name, tool in documented_tools().items() if tool.by_default}
    for path in commands:
        if path.suffix == ".toml":
            value = tomllib.loads(path.read_text("utf-8"))
            jsonschema.validate(value, GEMINI_COMMAND)
            assert "{{args}}" in value["prompt"]
        else:
            jsonschema.validate(head_of(path), COMMAND)
            assert "$ARGUMENTS" in path.read_text("utf-8")
    for path in (*skills, *commands):
        called = set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", path.read_text("utf-8")))
        assert called - {"nearest"} <= tools, path


@pytest.mark.promise("plugins.valid")
@pytest.mark.parametrize("path", [one for one in FILES if "mcp" in one or "gemini-ext" in one])
@pytest.mark.enable_socket
def test_the_server_of_a_plugin_starts(path: str, root: Path) -> None:
    """The command of each plugin is started by a real client and lists its tools."""
    (server,) = json.loads((ROOT / path).read_text("utf-8"))["mcpServers"].values()
    environ = environment(root)
    environ["PATH"] = f"{BIN}{os.pathsep}{environ['PATH']}"
    command = shutil.which(server["command"], path=environ["PATH"])
    assert command is not None

    async def listed() -> set[str]:
        given = StdioServerParameters(command=command, args=server["args"], env=environ)
        async with stdio_client(given) as streams, ClientSession(*streams) as session:
            await session.initialize()
            return {tool.name for tool in (await session.list_tools()).tools}

    tools = {name for name, tool in documented_tools().items() if tool.by_default}
    assert anyio.run(listed) == tools


@pytest.mark.promise("plugins.alone")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_plugin_alone_reminds_the_next_day(client: str, root: Path) -> None:
    """Nothing but the plugin: a session is worked and closed; the next begins with what it said."""
    environ = environment(root)
    environ["PATH"] = f"{program_folder()}{os.pathsep}{environ['PATH']}"
    project = root / "ferries"
    project.mkdir()

    def session(number: int) -> Agent:
        name = f"{number}1111111-aaaa-4bbb-8ccc-00000000000{number}"
        place = root / "transcripts" / f"{name}.jsonl"
        return Agent(client, name, project, place, environ, commands=hooks_of(client))

    monday = session(1)
    assert monday.start() == ""
    write_transcript(client, monday.transcript, monday.session, project, [DECISION])
    monday.tell("end", {})
    tuesday = session(2)
    assert "numbered by the harbour" in tuesday.start()
    # It stands in the block at the start, and is not added again.
    assert tuesday.prompt(ASKED) == ""
    assert tuesday.prompt("rename the variable foo to bar") == ""


@pytest.mark.promise("plugins.alone")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_plugin_without_the_program_says_so_and_blocks_nothing(client: str, root: Path) -> None:
    """Where `anaphora` is not installed every hook ends well; the first says what is missing."""
    environ = {**environment(root), "PATH": "/usr/bin:/bin"}
    if shutil.which("anaphora", path=environ["PATH"]):
        pytest.skip("the program is installed for everybody here")
    agent = Agent(client, "s", root, root / "none", environ, commands=hooks_of(client))
    for event in agent.commands:
        out = agent.run(b"{}", event)
        if out.strip():
            told = json.loads(out)
            assert told.keys() <= {"systemMessage"}
            assert "uv tool install" in told.get("systemMessage", "uv tool install")
    first = agent.run(b"{}", CLIENTS[client]["start"])
    assert (b"systemMessage" in first) is (client != "cursor")
