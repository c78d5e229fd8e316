"""Callers whose variables differ: each has its own memory, whichever resident process answers."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.hooks.hook_desk import Agent, environment, write_transcript

from anaphora import Memory
from anaphora.features.coding_agents.hooks.client import request_of
from anaphora.settings import VARIABLES, load_settings
from anaphora.system import resident
from anaphora.system.incidents import incidents

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a named pipe there")


def passed_on(environ: dict[str, str]) -> dict[str, str]:
    """The variables that go to the resident process with a hook."""
    request = request_of({}, environ)
    return {name[1:]: text for name, text in request.items() if name.startswith("$")}


PORTS = ("5439", "7711")
FACT = "The staging database of the ferry shop listens on port {}, Rafi moved it there."
ASKED = "Which port is the staging database of the ferry shop on?"


def two_homes(root: Path, first: dict[str, str]) -> list[dict[str, str]]:
    return [{**first, "HOME": str(root / name)} for name in ("alice", "bob")]


def two_data_folders(root: Path, first: dict[str, str]) -> list[dict[str, str]]:
    return [{**first, "XDG_DATA_HOME": str(root / name)} for name in ("alice", "bob")]


def two_relative_homes(root: Path, first: dict[str, str]) -> list[dict[str, str]]:
    """The same words, which mean another folder wherever the client works."""
    return [{**first, "ANAPHORA_HOME": "./memory"} for _ in range(2)]


def two_homes_by_tilde(root: Path, first: dict[str, str]) -> list[dict[str, str]]:
    return [
        {**first, "ANAPHORA_HOME": "~/memory", "HOME": str(root / name)}
        for name in ("alice", "bob")
    ]


Split = Callable[[Path, dict[str, str]], list[dict[str, str]]]
SPLITS: list[Split] = [two_homes, two_data_folders, two_relative_homes, two_homes_by_tilde]


@pytest.fixture
def root() -> Iterator[Path]:
    """A short path, as a socket needs."""
    folder = Path(tempfile.mkdtemp(prefix="anr"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def agents_of(root: Path, environs: list[dict[str, str]]) -> list[AgentInFolder]:
    """A session for each environment, each in a folder of its own."""
    made = []
    for number, environ in enumerate(environs):
        folder = root / f"shop{number}"
        folder.mkdir()
        Path(environ["HOME"]).mkdir(exist_ok=True)
        transcript = root / f"transcripts{number}" / f"s{number}.jsonl"
        made.append(AgentInFolder("codex", f"s{number}", folder, transcript, environ))
    return made


class AgentInFolder(Agent):
    """A client that runs its hooks in the folder of the session, as clients do."""

    def run(self, stdin: bytes, event: str = "") -> bytes:
        with_folder = os.getcwd()  # noqa: PTH109
        os.chdir(self.directory)
        try:
            return super().run(stdin, event)
        finally:
            os.chdir(with_folder)


def until(what: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Wait for something to be so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if result := what():
            return result
        time.sleep(0.05)
    raise AssertionError("it did not come to be so")


def end_residents(environs: list[dict[str, str]]) -> None:
    for environ in environs:
        try:
            with resident.connect(environ) as connection:
                hello = {"call": "hello", "stamp": resident.program_stamp()}
                pid = int(resident.ask(connection, hello, 5.0)["pid"])
        except resident.NoResident:
            continue
        os.kill(pid, signal.SIGKILL)


@pytest.mark.promise("resident.separate")
@pytest.mark.parametrize("split", SPLITS)
def test_no_word_crosses_between_two_environments(
    split: Split, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interleaved hooks of two environments: each keeps its sessions, and recalls from them."""
    first = environment(root, resident="1")
    del first["ANAPHORA_HOME"]
    first["ANAPHORA_EMBEDDER"] = "hashing"
    environs = split(root, first)
    agents = agents_of(root, environs)
    before = Path.cwd()
    try:
        for agent in agents:
            agent.start()
        for agent, port in zip(agents, PORTS, strict=True):
            write_transcript("codex", agent.transcript, agent.session, agent.directory, [
                FACT.format(port)
            ])  # fmt: skip
            agent.tell("end", {})
        for agent, port, other in zip(agents, PORTS, reversed(PORTS), strict=True):
            later = AgentInFolder(
                "codex", "later", agent.directory, agent.transcript, agent.environ
            )
            asked = iter(range(1000))

            def answered(later: AgentInFolder = later, asked: Iterator[int] = asked) -> str:
                later.session = f"later{next(asked)}"
                return later.prompt(ASKED)

            assert port in until(answered)
            assert other not in later.start() + later.prompt(ASKED)
        for agent, port, environ in zip(agents, PORTS, environs, strict=True):
            with monkeypatch.context() as patch:
                patch.chdir(agent.directory)
                for name, value in environ.items():
                    patch.setenv(name, value)
                with Memory.open(warm=False) as memory:
                    kept = [thread.conversation_id for thread in memory.conversations.list()]
                    assert len(kept) == 1
                    thread = memory.conversations.get(kept[0])
                    assert thread is not None
                    assert port in thread.turns[0].text
        assert [incident for incident in incidents(first) if not incident.note] == []
    finally:
        for agent in agents:
            os.chdir(agent.directory)
            end_residents([agent.environ])
        os.chdir(before)


@pytest.mark.promise("resident.separate")
def test_one_environment_shares_one_process(root: Path) -> None:
    """What differs from window to window does not start a second process."""
    environ = environment(root, resident="1")
    windows = [
        {**environ, "TERM": "xterm", "PWD": "/a", "XDG_SESSION_ID": "1"},
        {**environ, "TERM": "dumb", "PWD": "/b", "XDG_SESSION_ID": "2", "EDITOR": "vi"},
    ]
    assert len({resident.address(window) for window in windows}) == 1
    assert len({str(passed_on(window)) for window in windows}) == 1


@pytest.mark.promise("resident.separate")
@pytest.mark.parametrize(
    "name",
    ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "TMPDIR",
     "APPDATA", "LOCALAPPDATA", "USERPROFILE", "TZ", "PGHOST", "DBUS_SESSION_BUS_ADDRESS"],
)  # fmt: skip
def test_what_a_process_reads_for_itself_separates(name: str, root: Path) -> None:
    """A variable that decides paths, times, keys or a server has a process for each value."""
    environ = environment(root, resident="1")
    here = {**environ, name: str(root / "a")}
    there = {**environ, name: str(root / "b")}
    assert resident.address(here) != resident.address(there)
    assert resident.address(here) == resident.address(dict(here))


@pytest.mark.promise("resident.separate")
def test_two_roots_with_the_same_paths_are_two(root: Path) -> None:
    """A folder that took the place of another of the same name, as in a second container."""
    environ = environment(root, resident="1")
    before = resident.address(environ)
    Path(environ["HOME"]).rename(root / "aside")
    Path(environ["HOME"]).mkdir()
    assert resident.address(environ) != before


@pytest.mark.promise("resident.separate")
def test_every_variable_travels_with_a_hook() -> None:
    """Each variable that is documented reaches the process that answers, as the caller has it."""
    environ = {variable.name: "/value" for variable in VARIABLES}
    assert passed_on(environ).keys() == environ.keys()
    assert "PATH" not in passed_on({"PATH": "/bin"})


@pytest.mark.promise("resident.separate")
def test_settings_come_from_the_variables_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home without options is resolved by what was passed, not by this process."""
    monkeypatch.setenv("HOME", str(tmp_path / "mine"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "mine"))
    data = load_settings(environ={"HOME": "/x", "XDG_DATA_HOME": str(tmp_path / "theirs")})
    assert data.home == tmp_path / "theirs" / "anaphora"
    by_home = load_settings(environ={"HOME": str(tmp_path / "theirs")})
    assert by_home.home.is_relative_to(tmp_path / "theirs")
    relative = load_settings(environ={"HOME": str(tmp_path / "theirs"), "XDG_DATA_HOME": "data"})
    assert relative.home == by_home.home
