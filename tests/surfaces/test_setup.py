"""Anaphora goes into a client's configuration, is shown first, and comes out without a trace."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.commands import program_folder, run_command

from anaphora import Memory
from anaphora.errors import InvalidInput
from anaphora.features.coding_agents.setup import jsonc, toml
from anaphora.features.coding_agents.setup.clients import CLIENTS, entries
from anaphora.features.coding_agents.setup.files import plan, plan_undo
from anaphora.features.coding_agents.setup.ours import COPY, RECORD
from anaphora.features.coding_agents.setup.trying import try_client
from anaphora.settings import ClientFolders, client_folders

COMMAND = ["/opt/my tools/anaphora", "--home", "/data/é"]
SHARED = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def folders(tmp_path: Path) -> ClientFolders:
    return client_folders({"HOME": str(tmp_path)}, "linux")


def server_of(client: str, folders: ClientFolders) -> dict[str, Any]:
    entry = entries(client, folders, COMMAND)[0]
    content = entry.path.read_text()
    value: Any = tomllib.loads(content) if entry.form == "toml" else json.loads(content)
    for key in entry.keys:
        value = value[key]
    assert isinstance(value, dict)
    return value


def make(client: str, folders: ClientFolders) -> None:
    for change in plan(entries(client, folders, COMMAND)):
        change.make()


def undo(client: str, folders: ClientFolders) -> None:
    for change in plan_undo(entries(client, folders, COMMAND)):
        change.make()


def everything(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.mark.promise("setup.clients")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_new_configuration_starts_the_server(
    client: str, folders: ClientFolders, tmp_path: Path
) -> None:
    """Where a client has no configuration yet, one is made, and undoing removes it again."""
    make(client, folders)
    server = server_of(client, folders)
    assert [server["command"], *server["args"]] == [*COMMAND, "mcp"]
    undo(client, folders)
    assert everything(tmp_path) == {}


@pytest.mark.promise("setup.clients")
def test_claude_code_gets_its_hooks(folders: ClientFolders) -> None:
    """Through the whole life of a session Claude Code calls the hook, quoted right."""
    make("claude-code", folders)
    hooks = json.loads((folders.claude / "settings.json").read_text())["hooks"]
    assert set(hooks) == {"SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"}
    for event in hooks:
        (group,) = hooks[event]
        (run,) = group["hooks"]
        assert run["command"] == "'/opt/my tools/anaphora' --home '/data/é' hook claude-code"


THEIRS = {
    "json": """{
\t"theme": "dark",
\t"mcpServers": {"other": {"command": "x"}},
\t"servers": {},
\t"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "mine"}]}]}
}""",
    "toml": """# my notes
model = "o9"  # best

[mcp_servers.other]
command = "x"
[profiles.a]
b = 1""",
    "text": "A skill of the same name.",
}


@pytest.mark.promise("setup.undo")
@pytest.mark.parametrize("client", CLIENTS)
def test_what_was_there_stays_and_comes_back(
    client: str, folders: ClientFolders, tmp_path: Path
) -> None:
    """Other settings are kept; doing it twice changes nothing; undoing gives the same bytes."""
    for entry in entries(client, folders, COMMAND):
        entry.path.parent.mkdir(parents=True, exist_ok=True)
        entry.path.write_text(THEIRS[entry.form])
    before = everything(tmp_path)
    make(client, folders)
    for entry in entries(client, folders, COMMAND):
        text = entry.path.read_text()
        if entry.form == "text":
            assert "name: anaphora-memory" in text
            continue
        assert "# my notes" in text or '"theme": "dark"' in text
        assert "other" in text
        if entry.form == "json":
            assert json.loads(text)["hooks"]["SessionEnd"][0] == {
                "hooks": [{"type": "command", "command": "mine"}]
            }
    after = everything(tmp_path)
    assert all(change.nothing for change in plan(entries(client, folders, COMMAND)))
    make(client, folders)
    assert everything(tmp_path) == after
    undo(client, folders)
    assert everything(tmp_path) == before


@pytest.mark.promise("setup.undo")
@pytest.mark.parametrize("client", CLIENTS)
def test_undoing_keeps_what_was_written_meanwhile(client: str, folders: ClientFolders) -> None:
    """Settings that the user changed after the setup are not taken back with it."""
    for entry in entries(client, folders, COMMAND):
        entry.path.parent.mkdir(parents=True, exist_ok=True)
        entry.path.write_text(THEIRS[entry.form])
    make(client, folders)
    for entry in {one.path: one for one in entries(client, folders, COMMAND)}.values():
        text = entry.path.read_text()
        changed = text.replace('"dark"', '"light"').replace('"o9"', '"o10"')
        changed = "My own skill." if entry.form == "text" else changed
        assert changed != text
        entry.path.write_text(changed)
    undo(client, folders)
    for entry in entries(client, folders, COMMAND):
        text = entry.path.read_text()
        assert '"light"' in text or '"o10"' in text or text == "My own skill."
        assert "anaphora" not in text
        kept = entry.path.with_name(entry.path.name + COPY).exists()
        # Of a text that is another one by now nothing is undone.
        assert kept is (entry.form == "text")


@pytest.mark.promise("setup.clients")
def test_an_older_setup_is_renewed(folders: ClientFolders) -> None:
    """Another command takes the place of the older one, in tables and lists too."""
    for client in CLIENTS:
        for change in plan(entries(client, folders, ["/old/anaphora"])):
            change.make()
        make(client, folders)
        for entry in entries(client, folders, COMMAND):
            assert "/old/anaphora" not in entry.path.read_text()
        assert server_of(client, folders)["command"] == COMMAND[0]
    skill = folders.claude / "skills" / "anaphora-memory" / "SKILL.md"
    renewed = skill.read_text()
    skill.write_text(renewed.replace("# Memory", "# Memory of last year"))
    # Builds of last year kept no record.
    skill.with_name(skill.name + RECORD).unlink()
    make("claude-code", folders)
    assert skill.read_text() == renewed
    undo("claude-code", folders)
    assert not skill.parent.exists()


@pytest.mark.promise("setup.undo")
@pytest.mark.parametrize(
    ("client", "content"),
    [
        ("vscode", '{\n  // my servers\n  "servers": []\n}'),
        ("cursor", '{"mcpServers": []}'),
        ("gemini", "[1, 2]"),
        ("claude-desktop", '{"mcpServers": {'),
        ("codex", 'mcp_servers = { other = { command = "x" } }\n'),
        ("codex", "[mcp_servers\n"),
        ("cursor", "\xff\xfe"),
    ],
)
def test_what_cannot_be_kept_is_left_alone(
    client: str, content: str, folders: ClientFolders, tmp_path: Path
) -> None:
    """A file that would lose something is refused with a clear word, and not a byte changes."""
    entry = entries(client, folders, COMMAND)[0]
    entry.path.parent.mkdir(parents=True)
    entry.path.write_text(content, encoding="latin-1")
    before = everything(tmp_path)
    with pytest.raises(InvalidInput, match="not changed"):
        make(client, folders)
    assert everything(tmp_path) == before


def test_a_file_written_meanwhile_is_not_overwritten(folders: ClientFolders) -> None:
    """Between showing and making a change somebody else's writing wins."""
    change = plan(entries("cursor", folders, COMMAND))[0]
    change.path.parent.mkdir(parents=True)
    change.path.write_text('{"new": 1}')
    with pytest.raises(InvalidInput, match="meanwhile"):
        change.make()
    assert change.path.read_text() == '{"new": 1}'


def test_a_linked_file_stays_a_link(folders: ClientFolders, tmp_path: Path) -> None:
    """Settings that are a link into somebody's dotfiles are changed where they lie."""
    real = tmp_path / "dotfiles" / "cursor.json"
    real.parent.mkdir()
    real.write_text("{}\n")
    link = folders.user / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    make("cursor", folders)
    assert link.is_symlink()
    assert "anaphora" in real.read_text()
    undo("cursor", folders)
    assert real.read_text() == "{}\n"


OWN = "'/opt/my tools/anaphora' --home '/data/é' hook {}"
SIMILAR = [
    "/usr/local/bin/webhook {} --url http://example.org", "webhook {}", "hook {}",
    "echo 'hook {}'", "/opt/not-anaphora hook {}", "/opt/anaphora hook {} && date",
    "/opt/anaphora hook {}; date", "/opt/anaphora hook {} | tee log", "/opt/anaphora hook {}-other",
    "anaphora hook {}", "sh -c '/opt/anaphora hook {}'", "X=1 /opt/anaphora hook {}",
    "/opt/anaphora --verbose hook {}", "/opt/anaphora --home $HOME hook {}",
    "/opt/anaphora doctor hook {}", "/opt/anaphora hook {} # mine", "python -m anaphora hook {}",
    "/usr/bin/python3 -m anaphora.other hook {}", "/bin/uvx anaphora hook {}",
    "/opt/anaphora/run hook {}", "/opt/anaphora hook {} --anaphora",
    "/opt/a:b/anaphora --home $HOME hook {}", "not 'closed hook {}",
]  # fmt: skip
"""Hooks of a user that only look like ours."""

OLDER = [
    "/old/anaphora hook {}", "/old/anaphora --namespace work hook {}",
    "/v/bin/python3.11 -m anaphora --home /h hook {}", "C:/tools/anaphora.exe hook {}",
    "/v/bin/python -P -m anaphora hook {}", "/bin/uvx --from 'anaphora[projects]' anaphora hook {}",
]  # fmt: skip
"""Hooks as earlier builds wrote them."""

SERVERS: list[dict[str, Any]] = [
    {"command": "anaphora", "args": ["mcp"]},
    {"command": "docker", "args": ["run", "anaphora", "mcp"], "env": {"A": "b"}},
    {"command": "mcp"},
    {"url": "http://127.0.0.1:7412/mcp"},
]
"""Servers of a user under our name."""

WITH_HOOKS = [client for client in CLIENTS if client != "claude-desktop"]


def hooks_of(client: str, folders: ClientFolders) -> tuple[Path, str, bool]:
    """The file with a client's hooks, its first event, and whether hooks come in groups."""
    entry = next(one for one in entries(client, folders, COMMAND) if one.hook)
    return entry.path, entry.keys[-1], "hooks" in entry.value


def commented(value: Any, draw: Callable[[int], int], depth: int = 0) -> str:
    """A value as JSON that a person wrote: comments, trailing commas, odd spaces."""
    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=bool(draw(2)))
    pairs = value.items() if isinstance(value, dict) else [("", item) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    spaced = draw(3)
    lines = []
    for n, (key, item) in enumerate(pairs):
        name = f"{json.dumps(key)}{' ' * draw(2)}: " if isinstance(value, dict) else ""
        comma = "," if n < len(value) - 1 or (spaced and draw(2)) else ""
        above = '/* { above " */ ' if draw(4) == 0 else ""
        beside = f" // beside, {n} }}" if spaced and draw(3) == 0 else ""
        lines.append(f"{above}{name}{commented(item, draw, depth + 1)}{comma}{beside}")
    if not spaced:
        return opening + " ".join(lines) + closing
    indent = "\n" + "\t" * (depth + 1)
    last = f"{indent}// the last word" if draw(4) == 0 else ""
    return opening + "".join(indent + line for line in lines) + f"{last}\n" + "\t" * depth + closing


@st.composite
def hook_files(draw: st.DrawFn, client: str, event: str, grouped: bool) -> dict[str, Any]:
    """Settings of a user, with hooks of theirs at the event that we use, and at others."""
    hook = st.builds(
        lambda line, more: {**more, "type": "command", "command": line.format(client)},
        st.sampled_from(SIMILAR),
        st.sampled_from([{}, {"timeout": 10}, {"name": "anaphora"}]),
    )
    group = st.fixed_dictionaries(
        {"hooks": st.lists(hook, max_size=3)}, optional={"matcher": st.just("Bash")}
    )
    members = st.lists(group if grouped else hook, max_size=3)
    return draw(
        st.fixed_dictionaries(
            {},
            optional={
                "hooks": st.dictionaries(st.sampled_from([event, "Other"]), members, max_size=2),
                "version": st.just(1),
                "theme": st.text(max_size=5),
                "a": st.lists(st.integers(), max_size=2),
            },
        )
    )


def without_ours(value: Any, client: str) -> Any:
    """Settings without our entries, and without what is empty."""
    if isinstance(value, dict):
        if value.get("command") in {COMMAND[0], OWN.format(client)}:
            return {}
        value = {key: without_ours(item, client) for key, item in value.items()}
        return {key: item for key, item in value.items() if item not in ({}, [], {"hooks": []})}
    if isinstance(value, list):
        return [item for one in value if (item := without_ours(one, client)) != {}]
    return value


@pytest.mark.promise("setup.others")
@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_others_settings_are_theirs(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Hooks that look like ours survive setup, a second one and undo, wherever they stand and
    whenever they came; undoing gives the bytes back; twice is once."""
    client = data.draw(st.sampled_from(WITH_HOOKS))
    root = tmp_path_factory.mktemp("home")
    folders = client_folders({"HOME": str(root)}, "linux")
    path, event, grouped = hooks_of(client, folders)
    theirs = data.draw(hook_files(client, event, grouped))
    if client == "cursor":
        theirs["version"] = 1
    numbers = data.draw(st.randoms(use_true_random=False))
    text = commented(theirs, numbers.randrange)
    text = (
        data.draw(st.sampled_from(["", "\ufeff"])) + text + data.draw(st.sampled_from(["", "\n"]))
    )
    text = text.replace("\n", data.draw(st.sampled_from(["\n", "\r\n"])))
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode())
    before = everything(root)
    undo(client, folders)
    assert everything(root) == before, "nothing of ours is in it"
    make(client, folders)
    assert without_ours(jsonc.read(path.read_text("utf-8-sig")), client) == without_ours(
        theirs, client
    )
    once = everything(root)
    make(client, folders)
    assert everything(root) == once
    undo(client, folders)
    assert everything(root) == before
    # They write their own hooks around and into ours, and a comment behind it all.
    make(client, folders)
    value = jsonc.read(path.read_text("utf-8-sig"))
    hook = {"type": "command", "command": data.draw(st.sampled_from(SIMILAR)).format(client)}
    members = value["hooks"][event]
    at = next(n for n, one in enumerate(members) if OWN.format(client) in str(one))
    place = data.draw(st.sampled_from(["before", "inside", "after"]))
    if place == "inside" and grouped:
        members[at]["hooks"].insert(data.draw(st.integers(0, 1)), hook)
    else:
        members.insert(at + (place == "after"), {"hooks": [hook]} if grouped else hook)
    added = without_ours(value, client)
    assert added != without_ours(theirs, client)
    path.write_text(json.dumps(value, indent=data.draw(st.sampled_from([None, 1]))) + " // end\n")
    edited = everything(root)
    make(client, folders)
    assert everything(root) == edited
    undo(client, folders)
    assert without_ours(jsonc.read(path.read_text()), client) == added
    # What was plain JSON stays plain.
    assert json.loads(path.read_text().replace(" // end\n", "")) is not None
    assert path.read_text().endswith(" // end\n")
    assert OWN.format(client) not in path.read_text()


@pytest.mark.promise("setup.others")
@pytest.mark.parametrize("client", WITH_HOOKS)
@pytest.mark.parametrize("line", OLDER)
def test_what_an_older_build_wrote_is_renewed_and_taken_out(
    client: str, line: str, folders: ClientFolders, tmp_path: Path
) -> None:
    """Without a record our own hooks are known by their form; a user's beside them stay."""
    path, event, grouped = hooks_of(client, folders)
    theirs = {"command": "/usr/local/bin/webhook " + client, "type": "command"}
    older = {"type": "command", "command": line.format(client), "timeout": 10}
    path.parent.mkdir(parents=True)
    member: Any = {"hooks": [theirs, older]} if grouped else older
    for again in (True, False):
        path.write_text(json.dumps({"hooks": {event: [theirs, member]}, "version": 1}))
        if again:
            make(client, folders)
            assert line.format(client) not in path.read_text()
            assert path.read_text().count(OWN.format(client)) >= 1
        undo(client, folders)
        left = [{"hooks": [theirs]}] if grouped else []
        assert json.loads(path.read_text()) == {"hooks": {event: [theirs, *left]}, "version": 1}
    version = {"version": 1} if client == "cursor" else {}
    only = {event: [{"hooks": [older]} if grouped else older]}
    path.write_text(json.dumps({**version, "hooks": only}))
    undo(client, folders)
    assert not path.exists()


@pytest.mark.promise("setup.others")
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("server", SERVERS)
def test_a_server_of_the_users_comes_back(
    client: str, server: dict[str, Any], folders: ClientFolders, tmp_path: Path
) -> None:
    """Under our own name, too: that it is replaced is said, and undoing brings it back."""
    entry = entries(client, folders, COMMAND)[0]
    entry.path.parent.mkdir(parents=True, exist_ok=True)
    form = toml if entry.form == "toml" else jsonc
    entry.path.write_text(form.put("", entry.keys, server))
    before = everything(tmp_path)
    undo(client, folders)
    assert everything(tmp_path) == before
    assert "your own server" in plan(entries(client, folders, COMMAND))[0].told
    make(client, folders)
    assert "renews" in plan(entries(client, folders, COMMAND))[0].told
    make(client, folders)
    undo(client, folders)
    assert everything(tmp_path) == before
    make(client, folders)
    text = form.put(entry.path.read_text(), ["other"], {"x": 1})
    entry.path.write_text(text)
    undo(client, folders)
    value: Any = form.read(entry.path.read_text())
    assert value.pop("other") == {"x": 1}
    for key in entry.keys:
        value = value[key]
    assert value == server


@pytest.mark.promise("setup.others")
@pytest.mark.parametrize("client", CLIENTS)
def test_what_a_user_adds_to_our_server_stays(client: str, folders: ClientFolders) -> None:
    """Variables and further arguments survive a second setup with another command."""
    entry = entries(client, folders, COMMAND)[0]
    for change in plan(entries(client, folders, ["/old/anaphora"])):
        change.make()
    form = toml if entry.form == "toml" else jsonc
    text = form.put(entry.path.read_text(), [*entry.keys, "args"], ["mcp", "--tools", "all"])
    entry.path.write_text(form.put(text, [*entry.keys, "cwd"], "/work"))
    make(client, folders)
    server = server_of(client, folders)
    assert [server["command"], *server["args"]] == [*COMMAND, "mcp", "--tools", "all"]
    assert server["cwd"] == "/work"


TABLES = [
    "# notes\nmodel = 'o9'  # best\n", "[mcp_servers.other]\ncommand = 'x'\n# of the next\n",
    "[profiles.a]\nb = 1\n\n\n", "[[rules]]\nx = ['[mcp_servers.anaphora]', 2]\n",
    "[mcp_servers.anaphora2]\ncommand = 'y'\n", "[mcp_servers]\n",
    "[other.mcp_servers.anaphora]\ncommand = 'z'\n", "# [mcp_servers.anaphora]\n",
]  # fmt: skip


@pytest.mark.promise("setup.others")
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    tables=st.lists(st.sampled_from(TABLES[1:]), unique=True),
    later=st.lists(st.sampled_from(["[later]\nc = 2 # kept\n", "# a note\n", "\n"]), unique=True),
    first=st.sampled_from(["", TABLES[0], "\n", "\ufeff"]),
    cut=st.booleans(),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_tables_of_others_are_theirs(
    tmp_path_factory: pytest.TempPathFactory,
    tables: list[str],
    later: list[str],
    first: str,
    cut: bool,
    end: str,
) -> None:
    """In TOML, too: the bytes come back, and what is added around our table stays."""
    root = tmp_path_factory.mktemp("home")
    folders = client_folders({"HOME": str(root)}, "linux")
    path = folders.codex / "config.toml"
    path.parent.mkdir()
    text = first + "".join(tables)
    content = (text.rstrip("\n") if cut else text).replace("\n", end).encode()
    path.write_bytes(content)
    before = everything(root)
    make("codex", folders)
    once = everything(root)
    make("codex", folders)
    assert everything(root) == once
    undo("codex", folders)
    assert everything(root) == before
    make("codex", folders)
    after = path.read_bytes() + "".join(later).replace("\n", end).encode()
    path.write_bytes(after)
    make("codex", folders)
    assert path.read_bytes() == after
    undo("codex", folders)
    kept = path.read_bytes().decode("utf-8-sig")
    for part in [*tables, *(one for one in later if one.strip())]:
        assert part.rstrip("\n").replace("\n", end) in kept
    assert COMMAND[0] not in kept


def test_folders_that_we_made_go(folders: ClientFolders, tmp_path: Path) -> None:
    """Where nothing was, nothing is left; the folders of a user stay, empty ones too."""
    (folders.claude / "skills").mkdir(parents=True)
    for client in CLIENTS:
        make(client, folders)
    for client in reversed([*CLIENTS]):
        undo(client, folders)
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == [
        Path(".claude"), Path(".claude/skills"),
    ]  # fmt: skip


def test_a_file_that_was_deleted_between_begins_anew(
    folders: ClientFolders, tmp_path: Path
) -> None:
    """What an earlier setup kept beside a file says nothing about a later one."""
    path = folders.user / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {}, "x": 1}')
    make("cursor", folders)
    path.unlink()
    make("cursor", folders)
    undo("cursor", folders)
    assert everything(tmp_path) == {}


def test_our_skill_that_the_user_rewrote_is_theirs(folders: ClientFolders) -> None:
    """Neither a second setup nor undoing takes their words."""
    make("claude-code", folders)
    skill = folders.claude / "skills" / "anaphora-memory" / "SKILL.md"
    theirs = skill.read_text() + "\nAlways in Welsh.\n"
    skill.write_text(theirs)
    make("claude-code", folders)
    undo("claude-code", folders)
    assert skill.read_text() == theirs


Tables = st.dictionaries(
    st.sampled_from(["a", "anaphora", "mcp_servers", "x.y"]), st.integers() | st.text(max_size=4)
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    settings_=st.fixed_dictionaries(
        {}, optional={"mcpServers": st.dictionaries(st.text(max_size=3), Tables), "hooks": Tables}
    ),
    indent=st.sampled_from([None, 2, "\t"]),
    end=st.sampled_from(["", "\n", "\r\n"]),
)
def test_any_json_comes_back(
    tmp_path_factory: pytest.TempPathFactory, settings_: dict[str, Any], indent: Any, end: str
) -> None:
    """Whatever a client's settings are, doing and undoing leaves the very same bytes."""
    folders = client_folders({"HOME": str(tmp_path_factory.mktemp("home"))}, "linux")
    entry = entries("cursor", folders, COMMAND)[0]
    entry.path.parent.mkdir(parents=True)
    content = (json.dumps(settings_, indent=indent) + end).encode()
    entry.path.write_bytes(content)
    make("cursor", folders)
    assert json.loads(entry.path.read_bytes())["mcpServers"]["anaphora"]["command"] == COMMAND[0]
    undo("cursor", folders)
    assert entry.path.read_bytes() == content


def run(home: Path, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "HOME": str(home)}
    return run_command("--home", home / "memory", *words, environ=environ, text=given)


@pytest.mark.promise("setup.clients")
def test_the_command_shows_asks_and_does(tmp_path: Path) -> None:
    """`--dry-run` writes nothing, "n" writes nothing, "y" writes, `--undo` takes back."""
    of = client_folders({"HOME": str(tmp_path)})
    dry = run(tmp_path, "setup", "cursor", "--dry-run")
    assert (dry.returncode, "mcpServers" in dry.stdout) == (0, True)
    for line, change in zip(
        dry.stdout.splitlines(), plan(entries("cursor", of, ["a"])), strict=False
    ):
        assert line.replace("\n", "") == f"{change.path}: {change.told}"
    refused = run(tmp_path, "setup", "cursor", given="n\n")
    assert (refused.returncode, refused.stdout[-20:]) == (0, "nothing was changed\n")
    unasked = run(tmp_path, "setup", "cursor")
    assert (unasked.returncode, unasked.stdout[-20:]) == (1, "nothing was changed\n")
    assert not (tmp_path / ".cursor").exists()
    done = run(tmp_path, "setup", "cursor", given="y\n")
    assert done.returncode == 0, done.stderr
    args = json.loads((tmp_path / ".cursor/mcp.json").read_text())["mcpServers"]["anaphora"]["args"]
    assert args == ["--home", str(tmp_path / "memory"), "mcp"]
    again = run(tmp_path, "setup", "cursor", "--json")
    assert json.loads(again.stdout) == {
        "client": "cursor",
        "made": False,
        "trials": [],
        "changes": [],
        "refused": [],
    }
    assert run(tmp_path, "setup", "cursor", "--undo", "--yes").returncode == 0
    assert not (tmp_path / ".cursor/mcp.json").exists()
    unknown = run(tmp_path, "setup", "emacs")
    assert (unknown.returncode, "claude-code" in unknown.stderr) == (2, True)


COMMENTED = """{
  // how it looks
  "theme": "dark", /* "quoted" // and more */
  "url": "http://example.org/*",
}
"""


@pytest.mark.promise("setup.undo")
def test_comments_stay_where_they_are(tmp_path: Path) -> None:
    """Settings with comments are changed where they must be, and come back to the byte."""
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(COMMENTED)
    done = run(tmp_path, "setup", "claude-code", "--yes")
    assert done.returncode == 0, done.stderr
    assert "the server answered" in done.stdout
    assert "the hook answered" in done.stdout
    text = path.read_text()
    for kept in COMMENTED.strip("{}\n").splitlines():
        assert kept.rstrip(",") in text
    assert "hook claude-code" in text
    again = run(tmp_path, "setup", "claude-code", "--yes")
    assert "nothing to change" in again.stdout
    path.write_text(text.replace("dark", "light"))
    assert run(tmp_path, "setup", "claude-code", "--undo", "--yes").returncode == 0
    left = path.read_text().replace(",", "")
    assert left.split() == COMMENTED.replace("dark", "light").replace(",", "").split()


@pytest.mark.promise("setup.clients")
def test_what_cannot_be_edited_is_shown_and_the_rest_is_written(tmp_path: Path) -> None:
    """A file in another form is left alone: what belongs in it is shown."""
    path = tmp_path / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text('mcp_servers = { other = { command = "x" } }\n')
    done = run(tmp_path, "setup", "codex", "--yes")
    assert done.returncode == 5, done.stderr
    assert "[mcp_servers.anaphora]" in done.stdout
    assert "hook codex" in (path.parent / "hooks.json").read_text()


@pytest.mark.promise("setup.clients")
def test_a_server_that_cannot_start_is_not_written(tmp_path: Path) -> None:
    """Without the server's package nothing is written, and the command that helps is named."""
    code = (
        "import sys, importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'mcp_types' else find(name, *a)\n"
        "from anaphora.surfaces.cli import main\n"
        "sys.argv = ['anaphora', 'setup', 'cursor', '--yes']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert done.returncode == 2
    assert f"{sys.executable}" in done.stderr
    assert "install" in done.stderr
    assert "mcp-types>=2" in done.stderr
    assert not (tmp_path / ".cursor").exists()


def transcript(folder: Path, turns: int) -> Path:
    lines = [
        {
            "type": "user" if n % 2 == 0 else "assistant",
            "uuid": f"u{n}",
            "parentUuid": f"u{n - 1}" if n else None,
            "sessionId": "s-1",
            "timestamp": f"2026-05-01T10:{n:02}:00.000Z",
            "message": {"role": "user" if n % 2 == 0 else "assistant", "content": f"said {n}"},
        }
        for n in range(turns)
    ]
    path = folder / "s-1.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.promise("setup.hooks")
def test_the_hook_brings_the_transcript_in(tmp_path: Path) -> None:
    """What Claude Code tells its hook is enough to keep every word of the session, once."""
    path = transcript(tmp_path, 4)
    for event, turns in (("PreCompact", 4), ("SessionEnd", 6)):
        transcript(tmp_path, turns)
        told = {"hook_event_name": event, "transcript_path": str(path), "session_id": "s-1"}
        done = run(tmp_path, "hook", "claude-code", given=json.dumps(told))
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
    listed = json.loads(run(tmp_path, "conversation", "list", "--json").stdout)
    assert [one["turn_count"] for one in listed] == [6]
    for bad in ("", "[]", "{}", "nonsense"):
        assert run(tmp_path, "hook", "claude-code", given=bad).returncode == 0


def holds(root: Path, words: bytes) -> list[Path]:
    """The files under a folder that hold these bytes."""
    return [path for path in root.rglob("*") if path.is_file() and words in path.read_bytes()]


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClientFolders:
    """A user of whom nothing is there yet; programs that are started see the same one."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ANAPHORA_EMBEDDER", "hashing")
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return client_folders()


def started() -> list[str]:
    """How a client is told to start the program."""
    return [str(program_folder() / "anaphora")]


def set_up(client: str, folders: ClientFolders) -> None:
    for change in plan(entries(client, folders, started())):
        change.make()


@pytest.mark.promise("setup.proved")
def test_a_sentence_goes_in_and_out_without_a_trace(
    user: ClientFolders, tmp_path: Path, new_database: Callable[[], str]
) -> None:
    """The written commands store and recall in the client's own home; nothing of it stays."""
    with Memory.open() as memory:
        memory.audit.on()
        memory.remember("Rafi owns the staging database.")
        home, before = memory.home, memory.stats()
        entries_before = memory.audit.status().entries
    set_up("claude-code", user)
    trials = try_client("claude-code", user, started())
    assert [(trial.what, trial.problem) for trial in trials] == [("server", ""), ("hook", "")]
    # A client whose only hook is the one at the start.
    set_up("vscode", user)
    hooks = [one for one in try_client("vscode", user, started()) if one.what == "hook"]
    assert [one.problem for one in hooks] == [""]
    with Memory.open() as memory:
        assert memory.namespaces() == ("default",)
        assert memory.audit.status().entries == entries_before
        assert (memory.stats().memories, memory.home) == (before.memories, home)
        memory.backup(tmp_path / "home.backup")
    assert holds(home, b"Wexham") == []
    assert holds(home, b"anaphora-trial") == []
    # On a server, too, whose address stands in the configuration.
    url = new_database()
    add_variable(user, "ANAPHORA_DATABASE", url)
    (server, _) = try_client("claude-code", user, started())
    assert server.problem == ""
    with Memory.open(database=url) as memory:
        assert memory.namespaces() == ("default",)
        # The server's tables are there: it was this database that was tried.
        assert any("0015" in check.detail for check in memory.doctor() if check.name == "truth")


def add_variable(folders: ClientFolders, name: str, value: str) -> None:
    """Give the server's entry in Claude Code's file a variable."""
    written = json.loads(folders.claude_servers.read_text())
    written["mcpServers"]["anaphora"].setdefault("env", {})[name] = value
    folders.claude_servers.write_text(json.dumps(written))


def without_program(folders: ClientFolders) -> None:
    written = json.loads(folders.claude_servers.read_text())
    written["mcpServers"]["anaphora"]["command"] = "/nowhere/anaphora"
    folders.claude_servers.write_text(json.dumps(written))


def with_another_server(folders: ClientFolders) -> None:
    """A server that shakes hands and knows of no trial: nothing may be stored in it."""
    code = (
        "import sys, json\n"
        "for line in sys.stdin:\n"
        "    told = json.loads(line)\n"
        "    open(sys.argv[1], 'a').write(told['method'] + chr(10))\n"
        "    about = {'name': 'anaphora', 'version': '0.0.9'}\n"
        "    result = {'serverInfo': about, 'capabilities': {}}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': told.get('id'), 'result': result}), "
        "flush=True)\n"
    )
    written = json.loads(folders.claude_servers.read_text())
    server = written["mcpServers"]["anaphora"]
    server["command"], server["args"] = sys.executable, ["-c", code, str(folders.user / "asked")]
    folders.claude_servers.write_text(json.dumps(written))


def without_database(folders: ClientFolders) -> None:
    add_variable(folders, "ANAPHORA_DATABASE", " ")


def with_failing_prompt_hook(folders: ClientFolders) -> None:
    path = folders.claude / "settings.json"
    written = json.loads(path.read_text())
    (group,) = written["hooks"]["UserPromptSubmit"]
    failing = folders.user / "anaphora"
    failing.write_text("#!/bin/sh\necho not JSON\n")
    failing.chmod(0o700)
    group["hooks"][0]["command"] = f"{failing} hook claude-code"
    path.write_text(json.dumps(written))


@pytest.mark.promise("setup.proved")
@pytest.mark.parametrize(
    ("damage", "step", "problem"),
    [
        (without_program, "start", "/nowhere/anaphora cannot be started"),
        (with_another_server, "initialize", "another version of Anaphora"),
        (without_database, "store", "must not be blank"),
        (with_failing_prompt_hook, "hook UserPromptSubmit", "no JSON"),
    ],
)
def test_the_step_that_fails_is_named(
    damage: Callable[[ClientFolders], None], step: str, problem: str, user: ClientFolders
) -> None:
    """What stands in the file is run, with its variables; the first step that fails is told."""
    set_up("claude-code", user)
    damage(user)
    failed = [trial for trial in try_client("claude-code", user, started()) if trial.problem]
    assert [trial.step for trial in failed] == [step]
    assert problem in failed[0].problem
    assert "anaphora" in failed[0].remedy
    asked = user.user / "asked"
    assert not asked.exists() or asked.read_text().split() == ["initialize"]


@pytest.mark.promise("setup.proved")
def test_doctor_names_a_command_that_mends(user: ClientFolders, tmp_path: Path) -> None:
    """A client whose program has gone is a finding; its command makes doctor content again."""
    quiet = json.loads(run(tmp_path, "doctor", "--json").stdout)
    assert "claude-code" not in {check["name"] for check in quiet["checks"]}
    set_up("claude-code", user)
    without_program(user)
    bad = run(tmp_path, "doctor", "--json")
    assert bad.returncode == 1
    first = json.loads(bad.stdout)["first"]
    assert first["name"] == "claude-code"
    mended = subprocess.run(
        shlex.split(first["remedy"]), capture_output=True, text=True, check=False
    )
    assert mended.returncode == 0, mended.stdout + mended.stderr
    good = run(tmp_path, "doctor")
    assert "recalled a test sentence" in good.stdout
    assert "BAD" not in "".join(line for line in good.stdout.splitlines() if "claude" in line)


@pytest.mark.promise("setup.transcripts")
def test_earlier_transcripts_are_named(user: ClientFolders, tmp_path: Path) -> None:
    """Sessions that are there already are told once, with a command that brings them in."""
    folder = user.claude / "projects" / "shop"
    folder.mkdir(parents=True)
    transcript(folder, 4)
    done = run(tmp_path, "setup", "claude-code", "--yes")
    (line,) = [line for line in done.stdout.splitlines() if "earlier transcript" in line]
    assert line.startswith("1 earlier transcript")
    assert shlex.split(line.partition("to import: ")[2])[-2:] == ["import", str(folder.parent)]
    assert run(tmp_path, "setup", "claude-code", "--undo", "--yes").returncode == 0
    asked = run(tmp_path, "setup", "claude-code", given="y\ny\n")
    assert "Import them now?" in asked.stdout
    listed = json.loads(run(tmp_path, "conversation", "list", "--json").stdout)
    assert [summary["turn_count"] for summary in listed] == [4]
    plain = run(tmp_path, "setup", "cursor", "--yes")
    assert "earlier transcript" not in plain.stdout


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        ("darwin", {"HOME": "/Users/a"}, "/Users/a/Library/Application Support"),
        ("linux", {"HOME": "/home/a"}, "/home/a/.config"),
        ("linux", {"HOME": "/home/a", "XDG_CONFIG_HOME": "/c"}, "/c"),
        ("win32", {"USERPROFILE": "/u", "APPDATA": "/u/Roaming"}, "/u/Roaming"),
    ],
)
def test_each_system_has_its_folders(platform: str, environ: dict[str, str], expected: str) -> None:
    """Desktop programs keep their settings where their system says; variables win."""
    assert str(client_folders(environ, platform).applications) == expected
    moved = client_folders({**environ, "CODEX_HOME": "/x", "CLAUDE_CONFIG_DIR": "/y"}, platform)
    assert (moved.codex, moved.claude_servers) == (Path("/x"), Path("/y/.claude.json"))
