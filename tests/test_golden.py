"""The golden recorder sees everything, and tells the last bit of a difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from tests.command_reference import documented_commands
from tests.conftest import Clock
from tools.golden.commands import play_commands
from tools.golden.recording import Recording, differences
from tools.golden.scenario import Script, play, write_project

from anaphora import Memory
from anaphora.testing import ScriptedModel

# How a memory is opened and closed, and what looks at the machine rather than at what is kept.
OF_THE_MACHINE = {
    "open", "close", "restore", "on", "doctor", "health", "home", "local_time", "namespace",
    "reindex",
}  # fmt: skip


def recorded(place: Path, **values: Any) -> Path:
    """A recording of these values."""
    record = Recording(place, {})
    for name, value in values.items():
        record.keep(name, value)
    record.close()
    return place


@pytest.mark.promise("package.golden")
def test_the_last_bit_of_a_score_is_told(tmp_path: Path) -> None:
    """Equal values are no difference; one bit of one float is one, and its place is named."""
    old = recorded(tmp_path / "old", hits=[{"score": 0.5}, {"score": 0.1}], text="é\udc80")
    same = recorded(tmp_path / "same", hits=[{"score": 0.5}, {"score": 0.1}], text="é\udc80")
    moved = recorded(tmp_path / "moved", hits=[{"score": 0.5}, {"score": 0.1 + 2e-17}], text="é")
    assert list(differences(old, same)) == []
    told = sorted(differences(old, moved))
    assert [line.split(":")[0] for line in told] == ["hits[1].score", "text"]


@pytest.mark.promise("package.golden")
def test_a_value_of_one_build_alone_is_told(tmp_path: Path) -> None:
    """What only one of the builds answers is a difference."""
    old, new = recorded(tmp_path / "old", a=1), recorded(tmp_path / "new", b=1)
    told = sorted(differences(old, new))
    assert told == ["a: only in the old build", "b: only in the new build"]


class Watched:
    """A memory that notes which of its members are asked for."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.members: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.members.add(name)
        return getattr(self._memory, name)

    def scoped(self, namespace: str) -> Watched:
        """The same over another namespace."""
        self.members.add("scoped")
        other = Watched(self._memory.scoped(namespace))
        other.members = self.members
        return other


@pytest.mark.slow
@pytest.mark.promise("package.golden")
def test_every_method_of_the_facade_is_recorded(tmp_path: Path, clock: Clock) -> None:
    """A new method of the facade must be called by the scenario."""
    record = Recording(tmp_path / "calls.jsonl", {str(tmp_path): "work"})
    with Memory.open(
        tmp_path / "home", embedder="hashing", model=ScriptedModel(Script()), clock=clock
    ) as memory:
        watched = Watched(memory)
        play(watched, write_project(tmp_path / "aviary"), tmp_path, record, "clear")
    record.close()
    public = {name for name in dir(Memory) if not name.startswith("_")}
    assert public - OF_THE_MACHINE - watched.members == set()


# They serve until they are stopped, read a terminal, or open a browser.
OF_A_TERMINAL = {
    "anaphora start", "anaphora mcp", "anaphora serve", "anaphora conversation watch",
    "anaphora mirror watch", "anaphora sync watch", "anaphora sync pair", "anaphora hook",
}  # fmt: skip


class ListedCommands:
    """A command line that runs nothing and notes the words of each call."""

    def __init__(self) -> None:
        self.calls: set[tuple[str, ...]] = set()

    def run(self, _name: str, words: Any, **_extra: Any) -> str:
        """Note the words."""
        self.calls.add(tuple(str(word) for word in words))
        return ""


@pytest.mark.promise("package.golden")
def test_every_command_is_recorded(tmp_path: Path) -> None:
    """A new command must be run by the recorder, with `--json` if it has that."""
    line = ListedCommands()
    play_commands(cast("Any", line), tmp_path)
    prefixes = {f"anaphora {' '.join(words[:length])}" for words in line.calls for length in (1, 2)}
    with_json = {
        f"anaphora {' '.join(words[:length])}"
        for words in line.calls
        if "--json" in words
        for length in (1, 2)
    }
    leaves = documented_commands()
    every = set(leaves)
    for_programs = {name for name, options in leaves.items() if "--json" in options}
    assert for_programs - OF_A_TERMINAL - with_json == set()
    assert every - OF_A_TERMINAL - prefixes == set()
    assert every >= OF_A_TERMINAL - {"anaphora hook"}
