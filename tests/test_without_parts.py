"""What works on a machine that lacks a part, and what is said there.

A part is one that has no package for every platform, or that an extra brings. A process of its own
stands for the machine: importing the part fails in it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PRELUDE = """
import json, sys
from pathlib import Path

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

MISSING = set(sys.argv[1].split(","))
sys.meta_path.insert(0, Missing())
import importlib.util
find = importlib.util.find_spec
def find_spec(name, *more):
    return None if name.split(".")[0] in MISSING else find(name, *more)
importlib.util.find_spec = find_spec

from anaphora import Memory
top = Path(sys.argv[2])
"""

GRAMMARS = ",".join(
    f"tree_sitter{language}"
    for language in (
        "", "_python", "_bash", "_c", "_c_sharp", "_cpp", "_go", "_java", "_javascript", "_php",
        "_ruby", "_rust", "_typescript",
    )
)  # fmt: skip


def run(missing: str, code: str, folder: Path) -> dict[str, Any]:
    """What the code prints as JSON where these modules cannot be imported."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("ANAPHORA_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PRELUDE + code, missing, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env={**environ, "ANAPHORA_RESIDENT": "0"},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


LANES = """
with Memory.open(top / "home", embedder="hashing") as memory:
    memory.remember("The ferry leaves at nine.")
    memory.conversations.append_user("chat", "Our cat is called Miso.")
    found = {
        "memory": memory.recall("when does the ferry leave?").hits[0].text,
        "turn": memory.recall_conversation(None, "what is the cat called?").hits[0].text,
        "truth": next(one.detail for one in memory.doctor() if one.name == "truth"),
    }
    made = memory.backup(top / "backup.zip")
Memory.restore(top / "backup.zip", top / "again")
with Memory.open(top / "again", embedder="hashing") as memory:
    found["restored"] = len(memory.list())
print(json.dumps(found))
"""


@pytest.mark.promise("platforms.parts")
def test_without_pysqlite3(tmp_path: Path) -> None:
    """The interpreter's SQLite keeps and finds everything, and `doctor` says that it is used."""
    found = run("pysqlite3", LANES, tmp_path)
    assert found["memory"] == "The ferry leaves at nine."
    assert found["turn"] == "Our cat is called Miso."
    assert found["restored"] == 1
    assert " of sqlite3; " in found["truth"]


@pytest.mark.promise("platforms.parts")
def test_without_onnxruntime(tmp_path: Path) -> None:
    """Words find alone, every answer says what is missing, and nothing is lost."""
    code = """
with Memory.open(top / "home") as memory:
    memory.remember("The ferry leaves at nine.")
    memory.conversations.append_user("chat", "Our cat is called Miso.")
    recalled = memory.recall("when does the ferry leave?")
    turns = memory.recall_conversation(None, "what is our cat called?")
    print(json.dumps({
        "memory": recalled.hits[0].text,
        "turn": turns.hits[0].text,
        "said": [str(one) for one in (*recalled.degraded, *turns.degraded)],
    }))
"""
    found = run("onnxruntime", code, tmp_path)
    assert (found["memory"], found["turn"]) == (
        "The ferry leaves at nine.",
        "Our cat is called Miso.",
    )
    assert any("onnxruntime" in one for one in found["said"])


@pytest.mark.promise("platforms.parts")
def test_without_numkong(tmp_path: Path) -> None:
    """Without its sums every vector is multiplied out: the same memories with the same scores."""
    code = """
from datetime import datetime, UTC
now = datetime(2026, 11, 2, tzinfo=UTC)
with Memory.open(top / "home", embedder="hashing", clock=lambda: now) as memory:
    for lake in ("Zurich", "Garda"):
        memory.remember_many([f"Ferry {n} crosses Lake {lake}." for n in range(150)])
    hits = memory.recall("which ferry crosses Lake Garda?", top_k=8).hits
    print(json.dumps({
        "hits": [(hit.text, hit.score) for hit in hits],
        "used": "numkong" in sys.modules,
    }))
"""
    without, having = run("numkong", code, tmp_path / "a"), run("nothing", code, tmp_path / "b")
    assert (without["used"], having["used"]) == (False, True)
    assert len(without["hits"]) == 8
    assert without["hits"] == having["hits"]


INDEX = """
with Memory.open(top / "home", embedder="hashing") as memory:
    report = memory.index_project(top / "project")
    package = memory.recall_context("how is the fare computed?", project=report.name)
    print(json.dumps({
        "degraded": [str(one) for one in report.degraded],
        "changed": report.changed,
        "text": str(package),
    }))
"""


@pytest.mark.promise("platforms.parts")
def test_without_parsers(tmp_path: Path) -> None:
    """Code is cut by its lines and the report names the extra; with it files are read again."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "fares.py").write_text("def fare(zones):\n    return 2 + zones\n")
    (project / "README.md").write_text("# Ferry\n\nA fare is computed from zones.\n")
    without = run(GRAMMARS, INDEX, tmp_path)
    assert "zones" in without["text"]
    assert any("no parsers" in one and "python" in one for one in without["degraded"])
    again = run(GRAMMARS, INDEX, tmp_path)
    assert again["changed"] == 0
    assert again["degraded"] == without["degraded"]
    with_parsers = run("nothing", INDEX, tmp_path)
    assert with_parsers["changed"] == 1
    assert with_parsers["degraded"] == []
    assert run(GRAMMARS, INDEX, tmp_path)["changed"] == 0


WITHOUT_HTTPX = """
from anaphora import RemoteMemory
from anaphora.errors import MissingExtra
try:
    RemoteMemory.connect("http://127.0.0.1:9")
    said = ""
except MissingExtra as error:
    said = str(error)
heavy = [name for name in ("sqlalchemy", "numpy") if name in sys.modules]
print(json.dumps({"said": said, "heavy": heavy}))
"""


@pytest.mark.promise("platforms.parts")
def test_without_httpx(tmp_path: Path) -> None:
    """A client of a server names the extra that it needs, and loads nothing that it does not."""
    found = run("httpx", WITHOUT_HTTPX, tmp_path)
    assert found["heavy"] == []
    said, _, command = found["said"].partition("; run: ")
    assert said == "httpx is not installed (extra client)"
    assert " install " in command
    assert "[client]" in command
