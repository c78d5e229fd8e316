"""Attacks of the same kinds that no review has: names, archives, pages, programs.

K1 to K11 are their numbers in `findings.py`.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from email.message import Message
from functools import partial
from pathlib import Path
from typing import Any, Final

from tools.attacks import attack
from tools.attacks._helpers import (
    HELLO,
    ask,
    command,
    environ,
    mcp_server,
    on_a_terminal,
    opened,
    rest_server,
)

from anaphora import Memory
from anaphora.errors import AnaphoraError

_CANARY: Final = "zyxquill"
_OLD: Final = (1_000_000_000, 1_000_000_000)
_ESCAPES: Final = "\x1b]0;PWNED\x07\x9b31m\u202e\u2066\x1b]8;;http://evil\x1b\\\r\x08\U000e0041"
_RAW: Final = [
    *(b"\x1b]0;PWN", b"\xc2\x9b31m", b"\x1b]8;;", b"\x08"),
    *(letter.encode() for letter in ("\u202e", "\u2066", "\U000e0041")),
]


def _nest(folder: Path, count: int) -> None:
    """Folders in folders, with a note in the last; longer than any path can be."""
    before = Path.cwd()
    try:
        os.chdir(folder)
        for _ in range(count):
            Path("d").mkdir()
            os.chdir("d")
        Path("x.md").write_text("very deep")
    finally:
        os.chdir(before)


def _remove_nested(folder: Path) -> None:
    # The library's own way is as deep as the folders are.
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def _ended(work: Callable[[], object], seconds: float) -> object:
    """What a call gave or raised. Raises AssertionError where it has not ended in time."""
    outcome: list[object] = []

    def call() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - it is looked at by the caller
            outcome.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    assert outcome, f"it has not ended within {seconds} s"
    return outcome[0]


@attack("K1", "medium", "folders nested 1,500 deep end neither a mirror nor an import")
def nested_folders(folder: Path) -> None:
    """What else lies there is read; what is too deep is named."""
    vault, export = folder / "vault", folder / "export"
    for place in (vault / "facts", export):
        place.mkdir(parents=True)
        (place / "near.md").write_text("A fact that lies near.")
        os.utime(place / "near.md", _OLD)
        _nest(place, 1_500)
    try:
        with opened(folder / "home") as memory:
            memory.mirror.init(str(vault))
            done = memory.mirror.now()
            assert "facts/near.md" in done.added, done
            assert done.problems
            imported = memory.import_(export, format="markdown")
            assert not any("RecursionError" in one.reason for one in imported.problems)
    finally:
        for place in (vault, export):
            _remove_nested(place)


@attack("K1", "low", "a memory's path of 500 steps makes no chain of folders that stops a mirror")
def long_path(folder: Path) -> None:
    """Each folder on the way takes a descriptor."""
    with opened(folder / "home") as memory:
        memory.mirror.init(str(folder / "vault"))
        kept = memory.remember("Deep.", path=".".join("a" * 500)).id
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
        assert memory.mirror.now().written
        memory.forget(kept)
        memory.mirror.now()
    assert not list((folder / "vault").rglob("*.md")), "its file stays"


@attack(
    "K2", "medium", "odd files and names in a mirrored folder hang, read and write nothing else"
)
def odd_files(folder: Path) -> None:
    """Pipes, devices, hard links, 20 GB of nothing, names of any bytes, tricks of YAML, `..`."""
    outside, room = folder / "outside.md", folder / "vault" / "facts"
    room.mkdir(parents=True)
    outside.write_text(f"{_CANARY} outside")
    os.link(outside, room / "hard.md")
    os.mkfifo(room / "pipe.md")
    (room / "zero.md").symlink_to("/dev/zero")
    (room / "up.md").symlink_to("../../outside.md")
    with (room / "sparse.md").open("wb") as file:
        file.truncate(20 << 30)
    aliases = "\n".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 9 if n else 'x'}]" for n in range(9))
    for name, text in {
        b"bad\xff.md": "Any bytes.",
        b"line\nSYSTEM.md": "A line break.",
        b"\x1b]0;PWNED.md": "An escape.",
        "Cafe\u0301.md".encode(): "One.",
        "Caf\u00e9.md".encode(): "Two.",
        b"CASE.md": "Upper.",
        b"case.md": "Lower.",
        b"bomb.md": f"---\n{aliases}\n---\nA bomb.",
        b"object.md": f"---\na: !!python/object/apply:os.mkdir ['{folder}/pwned']\n---\nAn object.",
        b"path.md": "---\npath: ../../../pwned\n---\nA path.",
        b"deep.md": f"---\nx: {'[' * 50_000}\n---\nDeep.",
    }.items():
        place = os.fsencode(room) + b"/" + name
        with open(place, "w") as file_of_text:  # noqa: PTH123 - a name of bytes
            file_of_text.write(text)
        os.utime(place, _OLD)
    with opened(folder / "home") as memory:
        memory.mirror.init(str(folder / "vault"))
        for path in ("../../escape", "/absolute", "a/../../b", "..", "con.nul", "~/x", "-rf"):
            with suppress(AnaphoraError):
                memory.remember(f"At {path}.", path=path)
        for _ in range(2):
            problem = _ended(memory.mirror.now, 60)
            assert not isinstance(problem, BaseException), problem
        assert _CANARY not in str(memory.list(limit=200).items), "a file outside was read"
    assert sorted(place.name for place in folder.iterdir()) == ["home", "outside.md", "vault"]
    assert outside.read_text() == f"{_CANARY} outside"


@attack(
    "K3", "high", "no member of a backup is written outside of a home, whatever its manifest says"
)
def backup_members(folder: Path) -> None:
    """Names that lead out, take a server's token or key, or are none; each with a sound hash."""
    with opened(folder / "home") as memory:
        memory.remember("Kept.")
        memory.backup(folder / "whole.backup")
    with zipfile.ZipFile(folder / "whole.backup") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    names = [
        *("../out", f"{folder}/out", "conversations/../../out.json", "server.token", "master.key"),
        *("conversations/a\\..\\..\\out.json", "namespaces/../../out/conversations/c.json"),
        *("index/out", "settings.json", ".locks/out", "anaphora.db-wal", "conversations/a/b.json"),
    ]
    body = b'{"x": 1}'
    for number, name in enumerate(names):
        told = {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
        changed = manifest | {"members": {**manifest["members"], name: told}}
        with zipfile.ZipFile(folder / "changed.backup", "w") as archive:
            for known, data in {**members, name: body}.items():
                archive.writestr(zipfile.ZipInfo(known), data)
            archive.writestr("manifest.json", json.dumps(changed))
        before = {place for place in folder.rglob("*") if "restored" not in place.parts}
        with suppress(AnaphoraError):
            Memory.restore(folder / "changed.backup", folder / f"restored{number}")
            raise AssertionError(f"{name} was restored")
        assert not (folder / f"restored{number}").exists(), f"{name}: a part of it is there"
        assert {place for place in folder.rglob("*") if "restored" not in place.parts} == before


@attack(
    "K3", "medium", "no archive that is imported writes a file, and nested ones are not unpacked"
)
def archive_members(folder: Path) -> None:
    """Names that lead out, links, one name twice, archives in archives, a length that lies."""
    inner = folder / "inner.zip"
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"[" + b" " * 200_000_000 + b"]")
    link = zipfile.ZipInfo("link.md")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(folder / "outer.zip", "w") as archive:
        archive.writestr("../../../../slipped.md", "# A\n\nslipped")
        archive.writestr(f"{folder}/slipped.md", "# A\n\nslipped")
        archive.writestr(link, "/etc/passwd")
        for number in range(20):
            archive.write(inner, f"{number}.zip")
    data = bytearray((folder / "outer.zip").read_bytes())
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = b"\xfe\xff\xff\xff"
    (folder / "lies.zip").write_bytes(data)
    inner.unlink()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with opened(folder / "home") as memory:
        for name in ("outer.zip", "lies.zip"):
            with suppress(AnaphoraError):
                memory.import_(folder / name, format="markdown")
            with suppress(AnaphoraError):
                memory.import_(folder / name)
        assert "root:" not in str(memory.list(limit=100).items)
    most = max(
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak,
        resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss,
    )
    assert most < 600_000, f"{most // 1024} MB were taken"
    assert sorted(one.name for one in folder.iterdir()) == ["home", "lies.zip", "outer.zip"]


_QUERIES: Final = [
    *('"', "'", 'a"b', "words:heron", "-heron", "heron AND", "NOT heron", "(((", "heron~", "he*"),
    *("heron^5", "[a TO z]", "heron\\", "/.*/", "/(a+)+$/", "heron:*", "'; DROP TABLE record; --"),
    *("%", "_", "\0heron", "heron\u202e", "(" * 3_000, '"' * 3_000, "heron " * 600),
]


@attack(
    "K4", "medium", "no word of a question or a filter is read as syntax of a database or index"
)
def query_syntax(folder: Path) -> None:
    """Of SQL, FTS, patterns; nested and endless filters. Each is answered or refused."""
    deep: dict[str, Any] = {"path": "x"}
    for _ in range(5_000):
        deep = {"not": deep}
    filters: list[Any] = [
        *({"path": "a' OR 1=1 --"}, {"path": {"startswith": "%"}}, {"path": {"contains": "_"}}),
        *({"path": {"regex": "(a+)+$"}}, {"text'": 1}, {"a.b": 1}, {1: 2}, deep),
        *({"type": {"in": ["a"] * 50_000}}, {"created_at": {"gt": 10**400}}),
        {"lineage": {"descendant_of": "' OR 1=1"}},
    ]
    with opened(folder / "home") as memory:
        kept = memory.remember("The heron wades.").id
        memory.conversations.append_user("chat", "The heron wades.")
        memory.ready()
        asks: list[Callable[[str], object]] = [
            memory.recall, memory.search, memory.deep_recall,
            lambda question: memory.recall_conversation(None, question),
        ]  # fmt: skip
        began = time.monotonic()
        for question in _QUERIES:
            for ask in asks:
                with suppress(AnaphoraError):
                    ask(question)
        for wanted in filters:
            with suppress(AnaphoraError):
                assert not memory.recall("heron", filters=wanted).hits, str(wanted)[:60]
            with suppress(AnaphoraError):
                assert not memory.forget(filters=wanted, dry_run=True).count, str(wanted)[:60]
        assert time.monotonic() - began < 60
        assert memory.get(kept).text == "The heron wades."


@attack("K5", "high", "no page of another site reaches the server by a name, a form or its address")
def foreign_pages(folder: Path) -> None:
    """Rebound and odd names of hosts, origins that look like ours, forms without a preflight."""
    hosts = [
        *("evil.com", "127.0.0.1.evil.com", "localhost.evil.com", "127.0.0.1@evil.com", "127.1"),
        *("0x7f.1", "2130706433", "[::ffff:7f00:1]", "0.0.0.0", "[::]", "a.localhost", "", "x:80"),
        *("127.0.0.1:80:80", "127.0.0.1, evil.com"),
    ]
    origins = [
        *("null", "http://evil.com", "https://localhost", "http://localhost:9", "file://"),
        *("http://127.0.0.1.evil.com", "http://[::1]", "chrome-extension://x"),
    ]
    forms = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
    with rest_server(folder / "home") as (port, memory):
        memory.remember(f"The {_CANARY} wades.")

        call = partial(ask, port)
        question = {"query": _CANARY}
        assert call("POST", "/v1/recall", question)[0] == 200
        for host in hosts:
            status, _, said = call("POST", "/v1/recall", question, Host=host)
            assert status == 421, f"{host}: {status}"
            assert _CANARY.encode() not in said
        for origin in origins:
            status, headers, said = call("POST", "/v1/recall", question, Origin=origin)
            assert status == 403, f"{origin}: {status}"
            assert "access-control-allow-origin" not in headers
            assert _CANARY.encode() not in said
        for form in forms:
            away = {"Content-Type": form, "Sec-Fetch-Site": "cross-site"}
            assert call("POST", "/v1/memories", {"text": "Planted."}, **away)[0] == 403, form
        asked = {"Origin": "http://evil.com", "Access-Control-Request-Method": "POST"}
        assert "access-control-allow-origin" not in call("OPTIONS", "/v1/recall", None, **asked)[1]
        for path in ("/%2e%2e/%2e%2e/etc/passwd", "/v1/conversations/..%2fanaphora.db", "/%00"):
            assert call("GET", path, None)[0] in {400, 404, 422}, path
        assert "Planted." not in str(memory.list().items)


@attack("K6", "medium", "no command brings an escape of any field or argument to a terminal")
def every_field(folder: Path) -> None:
    """Texts, tags, payloads, speakers, documents, names of files, and what a caller typed."""
    home, project = folder / "home", folder / "proj\x1b]0;PWNED\x07"
    project.mkdir()
    (project / "heron\x1b]0;PWNED\x07.py").write_text(f"def heron():\n    '''{_ESCAPES}'''\n")
    with opened(home) as memory:
        memory.remember(
            f"heron {_ESCAPES}", tags=[f"t{_ESCAPES}"], category=f"c{_ESCAPES}",
            payload={f"k{_ESCAPES}": _ESCAPES},
        )  # fmt: skip
        memory.conversations.append("chat", "user", f"heron {_ESCAPES}", speaker=f"s{_ESCAPES}")
        memory.index_project(project, name=f"p{_ESCAPES}")
        memory.write_diary(f"heron {_ESCAPES}")
        memory.deep_recall(f"heron {_ESCAPES}?")
    for words in (
        ["list"], ["conversation", "show", "chat"], ["project", "list"], ["gaps"],
        ["project", "recall", "heron"], ["import", f"/no{_ESCAPES}"],
        ["list", "--filters", f'{{"x{_ESCAPES}": 1}}'],
    ):  # fmt: skip
        shown = on_a_terminal(command(home, *words))
        assert not [raw for raw in _RAW if raw in shown], words[:2]


@attack("K9", "medium", "no word, token or path is in a server's log, at its finest level either")
def finest_logs(folder: Path) -> None:
    """All libraries log at DEBUG while calls succeed, are refused and fail."""
    home = folder / "home"
    program = f"""
import logging, os, sys
from contextlib import suppress
from fastapi.testclient import TestClient
from anaphora import Memory
from anaphora.surfaces.logs import server_logs
from anaphora.features.server.serving import create_app
W = {_CANARY!r}
logging.getLogger().setLevel(logging.DEBUG)
for name in ("anaphora", "uvicorn", "asyncio", "sqlalchemy.engine", "filelock", "pypdf", "httpx"):
    logging.getLogger(name).setLevel(logging.DEBUG)
with server_logs(os.environ, "serve"), Memory.open(sys.argv[1], embedder="hashing") as memory:
    token = memory.tokens.create("t").secret
    memory.remember(W, path=W)
    memory.on("remember", lambda _: 1 / 0)
    memory.remember(W + " again")
    for data, name in ((b"%PDF-1.7 " + W.encode(), W + ".pdf"), (b"PK" + W.encode(), W + ".docx")):
        with suppress(Exception):
            memory.add_document(data, name=name)
    for call in (memory.search, memory.deep_recall, memory.recall_context, memory.import_):
        with suppress(Exception):
            call(W)
    app = create_app(memory)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        allowed = {{"Authorization": "Bearer " + token}}
        for path in ("/v1/recall", "/v1/memories", "/v1/deep", "/" + W):
            client.post(path, json={{"query": W, "text": W, "question": W}}, headers=allowed)
            client.post(path + "?x=" + W, content=b'{{"' + W.encode(), headers=allowed)
            client.get(path + "/" + W, headers={{"Authorization": "Bearer " + W}})
    print(token)
"""
    words = [sys.executable, "-c", program, str(home)]
    state = environ() | {"XDG_STATE_HOME": str(folder / "state")}
    done = subprocess.run(words, capture_output=True, text=True, env=state, check=True)
    assert done.stderr.count("\n") > 100, "nothing was logged"
    kept = "".join(file.read_text() for file in (folder / "state").rglob("*") if file.is_file())
    for secret in (_CANARY, done.stdout.strip(), str(folder)):
        assert secret not in done.stderr + kept, secret


@attack("K10", "medium", "a resident process that is stopped or killed keeps no client waiting")
def stopped_resident(folder: Path) -> None:
    """Hooks and commands end in time, with an answer or without."""
    from anaphora.system import resident

    # The path of a socket must be short.
    place = Path(tempfile.mkdtemp(prefix="anr"))
    user = environ() | {
        "HOME": str(place), "XDG_RUNTIME_DIR": str(place), "XDG_STATE_HOME": str(place),
        "ANAPHORA_HOME": str(folder / "home"), "ANAPHORA_RESIDENT": "1",
    }  # fmt: skip
    program = [sys.executable, "-m", "anaphora"]
    event = {
        "hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": str(folder),
        "transcript_path": str(folder / "t.jsonl"), "prompt": "where does the heron wade?",
    }  # fmt: skip

    def ask(*words: str) -> float:
        began = time.monotonic()
        said = subprocess.run(
            [*program, *words], input=json.dumps(event), capture_output=True, text=True, env=user,
            timeout=60, check=False,
        )  # fmt: skip
        assert said.returncode == 0, said.stderr
        return time.monotonic() - began

    def process() -> int:
        with resident.reach(user, 20.0) as connection:
            hello = {"call": "hello", "stamp": resident.program_stamp()}
            return int(resident.ask(connection, hello, 5.0)["pid"])

    with opened(folder / "home") as memory:
        memory.remember("The heron wades at dawn.")
    pid = 0
    try:
        pid = process()
        os.kill(pid, signal.SIGSTOP)
        for words in (("hook", "claude-code"), ("recall", "heron")):
            assert ask(*words) < 20, f"{words[0]} waits for a stopped process"
        os.kill(pid, signal.SIGKILL)
        hooks = [threading.Thread(target=ask, args=("hook", "claude-code")) for _ in range(4)]
        for hook in hooks:
            hook.start()
        pid = process()
        os.kill(pid, signal.SIGKILL)
        for hook in hooks:
            hook.join(20)
            assert not hook.is_alive(), "a hook waits for a killed process"
    finally:
        with suppress(Exception):
            os.kill(process(), signal.SIGKILL)
        shutil.rmtree(place, ignore_errors=True)


@attack(
    "K11", "medium", "no request over HTTP hangs or ends the MCP server, nor does a bad database"
)
def odd_requests(folder: Path) -> None:
    """Deep and endless JSON, headers of megabytes, a body that never comes, a locked database."""
    home = folder / "home"
    with opened(home) as memory:
        token = memory.tokens.create("client").secret
        memory.remember("The heron wades.")
    with mcp_server(home) as (port, _):
        allowed = {"Authorization": f"Bearer {token}"}
        status, headers, _ = ask(port, "POST", "/mcp", HELLO, **allowed)
        assert status == 200
        allowed["mcp-session-id"] = headers["mcp-session-id"]

        def post(body: Any) -> tuple[int, Message, bytes]:
            return ask(port, "POST", "/mcp", body, **allowed)

        def call(arguments: str) -> bytes:
            return (
                '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":'
                f'{{"name":"recall_memory","arguments":{arguments}}}}}'
            ).encode()

        post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        for arguments in (
            '{"question":' + "[" * 100_000 + "]" * 100_000 + "}",
            '{"question":"x","topK":Infinity}',
            '{"question":"x","topK":' + "9" * 5_000 + "}", '{"question":"\\ud800"}', "[]", '"x"',
        ):  # fmt: skip
            status, _, words = post(call(arguments))
            assert status in {200, 400}, status
            assert b"Traceback" not in words
        start = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        for raw in (start + b"X: " + b"a" * 2_000_000, start + b"X: a\r\n" * 100_000):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 30) as caller:
                caller.sendall(raw)
                caller.recv(1_000)
        status, _, words = post(call('{"question":"heron"}'))
        assert status == 200
        assert b"wades" in words
    damaged = folder / "damaged"
    with opened(damaged) as memory:
        token = memory.tokens.create("client").secret
    with mcp_server(damaged) as (port, _):
        for file in damaged.glob("anaphora.db*"):
            file.write_bytes(b"none" * 1_000)
        assert ask(port, "POST", "/mcp", HELLO, Authorization=f"Bearer {token}")[0] == 503
