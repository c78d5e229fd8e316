"""Attacks on servers, on Claude's memory tool, on the audit trail, and by old libraries."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import tomllib
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path

from tools.attacks import attack
from tools.attacks._helpers import HELLO, ask, mcp_server, opened

from anaphora.errors import AnaphoraError

_LONG = "\n\n".join(f"# Part {n}\n" + f"The walrus of part {n} lives here. " * 12 for n in range(6))


@attack("F13", "medium", "a client that opens sessions without end keeps no other out")
def sessions(folder: Path) -> None:
    """220 sessions of one token, then one of another."""
    with opened(folder / "home") as memory:
        secrets = [memory.tokens.create(n, read_only=True).secret for n in ("flood", "owner")]
    flood, owner = (f"Bearer {secret}" for secret in secrets)
    with mcp_server(folder / "home") as (port, _):
        for _ in range(220):
            ask(port, "POST", "/mcp", HELLO, Authorization=flood)
        status, _ = ask(port, "POST", "/mcp", HELLO, Authorization=owner)
    assert status == 200, f"another client was refused with {status}"


@attack("F13", "medium", "who floods registration keeps no registered client from asking")
def registrations(folder: Path) -> None:
    """60 registrations and requests, then one of a client that was there before."""
    client = {"redirect_uris": ["https://client.example/back"], "client_name": "owner's"}
    challenge = "A" * 43
    with mcp_server(folder / "home", "--oauth", "https://memory.example.org") as (port, _):
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", "/register", json.dumps(client), {"Host": "memory.example.org"})
        registered = json.loads(connection.getresponse().read())["client_id"]
        for _ in range(60):
            ask(port, "POST", "/register", client, Host="memory.example.org")
            ask(port, "GET", "/authorize?client_id=x", Host="memory.example.org")
        query = (
            f"/authorize?response_type=code&client_id={registered}&code_challenge={challenge}"
            "&code_challenge_method=S256&redirect_uri=https%3A%2F%2Fclient.example%2Fback"
        )
        status, _ = ask(port, "GET", query, Host="memory.example.org")
    assert status == 302, f"the owner's client was answered {status}"


@attack("F14", "medium", "no name of a file in Claude's memory tool takes another's sections")
def sections(folder: Path) -> None:
    """Names that begin alike, or look like a section's."""
    from anaphora.adapters.memory_files import SECTION_CATEGORY, MemoryFiles

    for number, (long, short) in enumerate([("c#", "c"), ("notes#2", "notes"), ("c", "c#1")]):
        with opened(folder / str(number)) as memory:
            files = MemoryFiles(memory)
            for name, text in ((long, _LONG), (short, "x")):
                said = files.handle(
                    {"command": "create", "path": f"/memories/{name}", "file_text": text}
                )
                assert said.startswith("File created"), said
            left = len(memory.list({"category": SECTION_CATEGORY}, limit=100).items)
            assert left == 6, f"{left} sections are left of {long} beside {short}"


@attack("F14", "medium", "planted paths and layers of escapes end no edit of a memory file")
def planted_paths(folder: Path) -> None:
    """In the category of sections, at their paths, and 300,000 layers."""
    from anaphora.adapters.memory_files import SECTION_CATEGORY, MemoryFiles

    with opened(folder / "home") as memory:
        memory.remember("Planted.", path="/memories/c#abc", category=SECTION_CATEGORY)
        memory.remember("Planted.", path="/memories/c#1")
        memory.remember("Planted.", path="/memories/c#//1")
        files = MemoryFiles(memory)
        files.handle({"command": "create", "path": "/memories/c", "file_text": _LONG})
        files.handle({"command": "view", "path": "/memories/" + "%25" * 300_000})


@attack("F16", "medium", "no library's floor or pin has a published vulnerability")
def floors(folder: Path) -> None:
    """Of pyproject.toml and of the lock."""
    from anaphora.ops.doctor.advisories import affecting

    root = Path(__file__).resolve().parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    text = "\n".join(one for some in lists for one in some)
    found = re.findall(r"^([\w.-]+)(?:\[[^]]*\])?(?:>=|==)([\d.]+)", text, re.M)
    found += re.findall(r"^([\w.-]+)==([\w.]+)", (root / "requirements.lock").read_text(), re.M)
    assert len(found) > 100
    bad = [(name, floor) for name, floor in found if affecting(name.lower(), floor)]
    assert not bad, f"affected: {bad}"


@attack("F26", "low", "on a full disk recall answers from what is there")
def full_disk(folder: Path) -> None:
    """While the vectors are missing that it would make."""
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        raise RuntimeError("not tried: no file system can be mounted here")
    try:
        with opened(disk / "home") as memory:
            kept = memory.remember("the spare key lies under the blue pot").id
        _change(disk / "home", "DELETE FROM vector")
        with opened(disk / "home") as memory:
            memory.list()
            with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
                while True:
                    filler.write(bytes(4096))
            with suppress(AnaphoraError):
                for number in range(5_000):
                    memory.remember(f"note {number} {'x' * 300}")
            assert [hit.id for hit in memory.recall("where is the spare key?")][:1] == [kept]
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=False)


@attack("F28", "low", "an answer does not say that its sources support what they contradict")
def support(folder: Path) -> None:
    """It says 6666 with a source that says 1111."""
    from anaphora.deep.models.scripted import ScriptedModel
    from anaphora.surfaces.mcp_server.render import deep_text

    model = ScriptedModel(['```python\nsubmit("6666", ["chat#0"])\n```'] * 3)
    with opened(folder / "home", model=model) as memory:
        memory.conversations.append_user("chat", "The gate code is 1111.")
        said = deep_text(memory.deep_recall("what is the gate code?"))
    assert "6666" in said
    assert "supported" not in said, said.splitlines()[0]


@attack("F30", "low", "a damaged audit head is reported, and nothing goes untold")
def audit_head(folder: Path) -> None:
    """Texts that no head has."""
    for number, head in enumerate(["garbage", "on x y", "on", "off 3 zz"]):
        home = folder / str(number)
        with opened(home) as memory:
            memory.audit.on()
            memory.remember("Told.")
        _change(home, f"UPDATE head SET audit = '{head}'")
        with opened(home) as memory:
            assert memory.audit.verify().problem is not None
            try:
                memory.remember("Untold.")
            except AnaphoraError:
                continue
            raise AssertionError(f"{head}: a memory was kept that the trail was not told of")


@attack("F30", "low", "an emptied or switched head of an audit trail is reported")
def audit_switched(folder: Path) -> None:
    """Emptied, switched off, set back."""
    changes = ["NULL", "'off' || substr(audit, 3)", "replace(audit, 'on 2', 'on 1')"]
    for number, value in enumerate(changes):
        home = folder / str(number)
        with opened(home) as memory:
            memory.audit.on()
            memory.remember("Told.")
        _change(home, f"UPDATE head SET audit = {value}")
        with opened(home) as memory:
            assert memory.audit.verify().problem is not None, value


def _change(home: Path, statement: str) -> None:
    with closing(sqlite3.connect(home / "anaphora.db")) as database, database:
        database.execute(statement)
