"""Forgetting a project: nothing of it is left in the files of the home, whoever has them open."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.commands import python
from tests.ingest.project_files import git, write

from anaphora import Memory

FILES = {
    "xylophagous.py": '"""Wombats."""\n\n\ndef quokka_of(marsupial):\n    return "numbatwords"\n',
    "docs/README.md": "# Platypusdoc\n\nEchidnatext here.\n",
}
WORDS = (b"xylophagous", b"quokka_of", b"numbatwords", b"latypusdoc", b"chidnatext", b"bilbycommit")
KILLED = """
import os, sys
from anaphora import Memory
memory = Memory.open(sys.argv[1], embedder="hashing")
memory.remove_project("gone")
os.kill(os.getpid(), 9)
"""


def left(home: Path) -> list[tuple[str, bytes]]:
    """The files of a home that hold any of the project's words."""
    files = [place for place in home.rglob("*") if place.is_file()]
    return [(place.name, word) for place in files for word in WORDS if word in place.read_bytes()]


@pytest.mark.promise("project.removed")
@pytest.mark.parametrize("killed", [False, True])
def test_a_removed_project_leaves_no_file(tmp_path: Path, killed: bool) -> None:
    """When `remove_project` returns its words are in no file: open elsewhere, or killed after."""
    gone, kept = write(tmp_path / "gone", FILES), write(tmp_path / "kept", {"a.md": "# Herons\n"})
    git(gone, "init")
    git(gone, "add", ".")
    git(gone, "commit", "-m", "bilbycommit")
    home = tmp_path / "home"
    with Memory.open(home, embedder="hashing") as memory:
        memory.index_project(gone)
        memory.index_project(kept)
        memory.observe("Herons are fed at noon.")
        assert memory.recall_context("quokka_of").primary_targets
        assert {name for name, _ in left(home)}
        if killed:
            done = subprocess.run([*python(), "-c", KILLED, str(home)], check=False)
            assert done.returncode == -9
        else:
            memory.remove_project("gone")
        assert left(home) == []
        (check,) = [one for one in memory.doctor() if one.name == "section index"]
        assert check.ok
        assert check.detail.startswith("2 sections and notes")
        assert memory.recall_context("herons").primary_targets
        assert not memory.recall_context("quokka_of").primary_targets
