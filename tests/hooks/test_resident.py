"""The resident process: started by the first hook, shared, gone when idle, and never needed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.hooks.hook_desk import PROGRAM, Agent, environment, write_transcript

from anaphora import Memory
from anaphora.container.view import cut_logs
from anaphora.embed.minilm import MiniLM
from anaphora.embed.resident import ResidentEmbedder
from anaphora.embed.service import spec_for
from anaphora.features.coding_agents.hooks.client import request_of
from anaphora.features.coding_agents.hooks.delivery import give
from anaphora.features.coding_agents.hooks.session import open_memory
from anaphora.system import resident
from anaphora.system.environment import caller_mark
from anaphora.system.heap import HeapWatch
from anaphora.system.incidents import incidents

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a named pipe there")

FACT = "The staging database of the ferry shop listens on port 5439, Rafi moved it there."
ASKED = "Which port is the staging database of the ferry shop on?"


@pytest.fixture
def environ() -> Iterator[dict[str, str]]:
    """A user of whom no resident process runs yet, and none when the test ends."""
    folder = Path(tempfile.mkdtemp(prefix="anr"))
    made = environment(folder, resident="1")
    yield made
    with_resident(made, lambda pid: os.kill(pid, signal.SIGKILL))
    shutil.rmtree(folder, ignore_errors=True)


def with_resident(environ: dict[str, str], act: Callable[[int], object]) -> int:
    """Do something with the id of the resident process that runs, if one does."""
    try:
        with resident.connect(environ) as connection:
            hello = {"call": "hello", "stamp": resident.program_stamp()}
            pid = int(resident.ask(connection, hello, 5.0)["pid"])
    except resident.NoResident:
        return 0
    act(pid)
    return pid


def pid_of(environ: dict[str, str]) -> int:
    """The id of the resident process, 0 where none runs."""
    return with_resident(environ, lambda _: None)


def agent(environ: dict[str, str], session: str, client: str = "claude-code") -> Agent:
    """A session, of Claude Code unless another client is named."""
    root = Path(environ["HOME"]).parent
    (root / "shop").mkdir(exist_ok=True)
    transcript = root / "transcripts" / f"{session}.jsonl"
    return Agent(client, session, root / "shop", transcript, environ)


def until(what: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Wait for something to be so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come to be so")


@pytest.mark.promise("resident.life")
def test_the_first_hook_starts_one_and_all_share_it(environ: dict[str, str]) -> None:
    """Hooks of two clients at once, a server and a command use one process and one model."""
    one = agent(environ, "s1")
    write_transcript("claude-code", one.transcript, "s1", one.directory, [FACT])
    one.tell("end", {})
    pid = until(lambda: pid_of(environ))
    until(lambda: agent(environ, "s2").prompt(ASKED))
    answers: dict[str, list[str]] = {}

    def session(name: str) -> None:
        client = agent(environ, name)
        answers[name] = [client.start(), *(client.prompt(ASKED) for _ in range(10))]

    threads = [threading.Thread(target=session, args=(f"t{n}",)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for said in answers.values():
        assert "5439" in said[0]
        assert said[1:] == [""] * 10
    assert pid_of(environ) == pid
    assert incidents(environ) == []


@pytest.mark.promise("resident.life")
@pytest.mark.parametrize("client", ["claude-code", "cursor"])
def test_a_whole_session_survives_a_crash_beside_another(
    client: str, environ: dict[str, str]
) -> None:
    """Start, ten prompts, a crash, a compaction and an end, while another client does the same."""
    before = agent(environ, "before", client)
    write_transcript(client, before.transcript, "before", before.directory, [FACT])
    before.tell("end", {})
    until(lambda: pid_of(environ))
    until(lambda: agent(environ, "ready", client).prompt(ASKED))
    half = threading.Barrier(3)
    given: dict[str, list[str]] = {}

    def work(name: str) -> None:
        one = agent(environ, name, client)
        said = [f"Part {number} of {name} is done with a table." for number in range(10)]
        found = [one.start()]
        for number, text in enumerate(said):
            if number == 5:
                half.wait(30)
                half.wait(30)
            found.append(one.prompt(ASKED if number in {2, 8} else text))
            write_transcript(client, one.transcript, name, one.directory, said[: number + 1])
        one.tell("compact", {})
        # One client begins anew after a compaction, the other goes on with the next prompt.
        anew = client == "claude-code"
        after = one.start("compact") if anew else one.prompt("Go on with the last part of it.")
        one.tell("end", {})
        given[name] = [*found, after]

    threads = [threading.Thread(target=work, args=(name,)) for name in ("left", "right")]
    for thread in threads:
        thread.start()
    half.wait(30)
    killed = with_resident(environ, lambda pid: os.kill(pid, signal.SIGKILL))
    half.wait(30)
    for thread in threads:
        thread.join()
    assert killed
    for name, texts in given.items():
        assert "Last sessions:" in texts[0]
        assert "5439" in texts[0]
        # Nothing twice, before the crash and after it.
        assert texts[3] == texts[9] == ""
        assert f"Part 9 of {name}" in texts[-1]
    with Memory.open(environ["ANAPHORA_HOME"], warm=False) as memory:
        kept = {one.conversation_id: one.turn_count for one in memory.conversations.list()}
    assert sorted(kept.values()) == [2, 20, 20]


@pytest.mark.promise("resident.life")
def test_killed_in_the_middle_the_next_hook_goes_on(environ: dict[str, str]) -> None:
    """A crash costs one start: nothing acknowledged is lost, and nothing is given twice."""
    one = agent(environ, "s1")
    write_transcript("claude-code", one.transcript, "s1", one.directory, [FACT])
    one.tell("end", {})
    two = agent(environ, "s2")
    assert "5439" in until(lambda: two.prompt(ASKED))
    first = with_resident(environ, lambda pid: os.kill(pid, signal.SIGKILL))
    assert two.prompt(ASKED) == ""
    assert until(lambda: pid_of(environ)) != first
    assert "5439" in until(lambda: agent(environ, "s3").prompt(ASKED))


@pytest.mark.promise("hooks.once")
@pytest.mark.parametrize("parts", [0, 1, 2], ids=["unread", "at-work", "answered"])
@pytest.mark.parametrize("client", ["claude-code", "gemini"])
def test_what_nobody_printed_was_not_given(
    client: str, parts: int, environ: dict[str, str]
) -> None:
    """A caller goes away before it printed the answer: the next hook gives it, and only once."""
    one = agent(environ, "s1")
    write_transcript("claude-code", one.transcript, "s1", one.directory, [FACT])
    one.tell("end", {})
    until(lambda: agent(environ, "ready").prompt(ASKED))
    two = agent(environ, "s2", client)
    told = {"session_id": "s2", "cwd": str(two.directory), "prompt": ASKED}
    name = "UserPromptSubmit" if client == "claude-code" else "BeforeAgent"
    body = json.dumps({"hook_event_name": name, **told}).encode()
    request = {**request_of({}, environ), "client": client, "body": body}
    request |= {"stamp": resident.program_stamp(), "caller": caller_mark(environ)}
    with resident.connect(environ) as caller:
        caller.send_bytes(resident.packed(request))
        answers = [resident.receive(caller, 20.0) for _ in range(parts)]
    assert len(answers) < 2 or b"5439" in answers[1]["body"]
    assert "5439" in two.prompt(ASKED)
    assert two.prompt(ASKED) == ""


@pytest.mark.promise("hooks.once")
def test_hooks_of_one_session_at_once_give_a_memory_once(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither an answer that another hook overtook gives it again, nor several at one moment."""
    one = agent(environ, "s1")
    write_transcript("claude-code", one.transcript, "s1", one.directory, [FACT])
    one.tell("end", {})
    until(lambda: agent(environ, "ready").prompt(ASKED))
    two, since = agent(environ, "s2"), time.time_ns()
    body = {"session_id": "s2", "cwd": str(two.directory), "prompt": ASKED}
    body |= {"hook_event_name": "UserPromptSubmit"}
    request = {
        **request_of({}, environ),
        "client": "claude-code",
        "body": json.dumps(body).encode(),
    }
    request |= {"stamp": resident.program_stamp(), "caller": caller_mark(environ)}
    with resident.connect(environ) as caller:
        caller.send_bytes(resident.packed(request))
        _, overtaken = (resident.receive(caller, 20.0) for _ in range(2))
    assert b"5439" in overtaken["body"]
    assert "5439" in two.prompt(ASKED)
    noted = give(overtaken["body"].decode(), overtaken["state_path"], overtaken["state"], since)
    assert noted > since
    assert capsys.readouterr().out == ""
    texts: list[str] = []
    threads = [
        threading.Thread(target=lambda: texts.append(agent(environ, "s3").prompt(ASKED)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ["5439" in text for text in sorted(texts)] == [False, False, True]


@pytest.mark.promise("hooks.once")
def test_a_hook_that_is_killed_loses_no_memory(environ: dict[str, str]) -> None:
    """Whatever it was at: what it did not print comes with the next hook, and only once."""
    one = agent(environ, "s1")
    write_transcript("claude-code", one.transcript, "s1", one.directory, [FACT])
    one.tell("end", {})
    until(lambda: agent(environ, "ready").prompt(ASKED))
    for number, waits in enumerate((0.0, 0.05, 0.1)):
        killed = agent(environ, f"k{number}")
        told = {"session_id": killed.session, "cwd": str(one.directory), "prompt": ASKED}
        hook = subprocess.Popen(
            [*PROGRAM, "hook", "claude-code"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environ,
        )
        assert hook.stdin
        hook.stdin.write(json.dumps({"hook_event_name": "UserPromptSubmit", **told}).encode())
        hook.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            hook.wait(waits)
        hook.kill()
        assert hook.stdout
        with hook.stdout:
            texts = [hook.stdout.read().decode(), killed.prompt(ASKED), killed.prompt(ASKED)]
        hook.wait()
        assert sum("5439" in text for text in texts) == 1


@pytest.mark.promise("hooks.once")
def test_a_process_that_hangs_costs_no_memory(environ: dict[str, str]) -> None:
    """The hook answers by itself; what the other answers when it goes on is given to nobody."""
    one = agent(environ, "s1")
    write_transcript("claude-code", one.transcript, "s1", one.directory, [FACT])
    one.tell("end", {})
    two = agent(environ, "s2")
    until(lambda: agent(environ, "ready").prompt(ASKED))
    pid = with_resident(environ, lambda pid: os.kill(pid, signal.SIGSTOP))
    assert "5439" in two.prompt(ASKED)
    os.kill(pid, signal.SIGCONT)
    assert until(lambda: pid_of(environ)) == pid
    assert two.prompt(ASKED) == ""


@pytest.mark.promise("resident.life")
@pytest.mark.parametrize("gone", ["memory", "run"])
def test_without_its_home_or_address_it_ends(gone: str, environ: dict[str, str]) -> None:
    """A home that was deleted, or a socket that nobody finds: no process stays behind."""
    one = agent(environ, "s1")
    write_transcript("claude-code", one.transcript, "s1", one.directory, [FACT])
    one.tell("end", {})
    until(lambda: agent(environ, "s2").prompt(ASKED))
    pid = pid_of(environ)
    shutil.rmtree(one.directory.parent / gone)
    until(lambda: not _is_running(pid))


@pytest.mark.promise("resident.life")
def test_an_older_version_makes_room(environ: dict[str, str], tmp_path: Path) -> None:
    """After an upgrade the process of before ends, and one of the new version answers."""
    agent(environ, "s1").start()
    first = until(lambda: pid_of(environ))
    with resident.connect(environ) as connection:
        told = resident.ask(connection, {"call": "hello", "stamp": "of another version"}, 5.0)
    assert "refused" in told
    until(lambda: not Path(f"/proc/{first}").exists() or not _is_running(first))
    agent(environ, "s1").start()
    assert until(lambda: pid_of(environ)) != first


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]


@pytest.mark.promise("resident.life")
def test_idle_it_ends(environ: dict[str, str]) -> None:
    """Nobody asked for as long as was said: it goes, and leaves no process behind."""
    environ["ANAPHORA_RESIDENT"] = "0.06"
    agent(environ, "s1").start()
    pid = until(lambda: pid_of(environ))
    until(lambda: not _is_running(pid))


@pytest.mark.promise("resident.private")
def test_only_its_user_may_speak(environ: dict[str, str]) -> None:
    """The socket lies in a folder that nobody else may enter; a foreign folder is not used."""
    agent(environ, "s1").start()
    until(lambda: pid_of(environ))
    place = Path(resident.address(environ))
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    place.parent.chmod(0o755)
    resident.address(environ)
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    elsewhere = Path(environ["HOME"]) / "link"
    elsewhere.mkdir()
    (elsewhere / "anaphora").symlink_to(place.parent)
    with pytest.raises((OSError, resident.NoResident)):
        resident.connect({**environ, "XDG_RUNTIME_DIR": str(elsewhere)})


@pytest.mark.promise("resident.private")
def test_garbage_on_the_socket_hurts_nobody(environ: dict[str, str]) -> None:
    """Who sends something else is left alone, and others are answered."""
    agent(environ, "s1").start()
    pid = until(lambda: pid_of(environ))
    for sent in (b"", b"\x00\x00\x00\x04nope", b"\xff" * 64, b"GET / HTTP/1.1\r\n\r\n"):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(resident.address(environ))
            stranger.sendall(sent)
    with resident.connect(environ) as connection:
        assert "failed" in resident.ask(connection, {"call": "nothing"}, 5.0)
    assert pid_of(environ) == pid


@pytest.mark.promise("resident.model")
def test_the_model_is_shared_and_its_vectors_are_the_same(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory that shares the model loads none, and goes on with its own when the process dies."""
    agent(environ, "s1").start()
    pid = until(lambda: pid_of(environ))
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    code = (
        "import sys\n"
        "from anaphora import Memory\n"
        "with Memory.open(sys.argv[1], share_model='running') as memory:\n"
        "    memory.remember('The heron stands in the reeds.')\n"
        "    assert memory.ready(60)\n"
        "    assert memory.recall('what stands in the reeds?')[0].text\n"
        "    assert 'onnxruntime' not in sys.modules\n"
    )
    shared = [PROGRAM[0], "-c", code, str(tmp_path / "home")]
    subprocess.run(shared, check=True, env=environ, timeout=60)
    texts = ["The heron stands in the reeds.", "word " * 900]
    embedder = spec_for("minilm", share="running").load()
    assert isinstance(embedder, ResidentEmbedder)
    own = MiniLM()
    for rows, alone in zip(embedder.embed(texts), own.embed(texts), strict=True):
        np.testing.assert_allclose(rows, alone, atol=1e-6)
    with Memory.open(tmp_path / "other", share_model="running") as memory:
        memory.remember("The heron stands in the reeds.")
        assert memory.ready(60)
        os.kill(pid, signal.SIGKILL)
        memory.remember("The coot dives for weed.")
        assert memory.recall("what dives for weed?")[0].text == "The coot dives for weed."


@pytest.mark.promise("resident.model", "remember.never_blocks")
def test_a_process_that_still_loads_the_model_holds_no_call(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It listens before it has the model: until then words answer, and say so."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    asked = threading.Event()

    def listen() -> None:
        with Listener(resident.address(environ), "AF_UNIX") as listener, listener.accept() as peer:
            while resident.unpacked(peer.recv_bytes())["call"] == "hello":
                peer.send_bytes(resident.packed({"pid": os.getpid()}))
            asked.wait(20)

    listening = threading.Thread(target=listen)
    listening.start()
    until(lambda: Path(resident.address(environ)).exists())
    with Memory.open(tmp_path / "home", share_model="running") as memory:
        memory.remember("The heron stands in the reeds.")
        answer = memory.recall("where does the heron stand?", timeout=0.3)
        assert [hit.text for hit in answer] == ["The heron stands in the reeds."]
        assert "meaning is still loading" in str(answer.degraded)
        asked.set()
        assert memory.ready(60)
        assert not memory.recall("where does the heron stand?").degraded
    listening.join()


@pytest.mark.promise("resident.life")
def test_without_one_everything_still_works(environ: dict[str, str]) -> None:
    """Where no process may be started, a hook answers by itself, and says so to the log alone."""
    blocked = Path(environ["XDG_RUNTIME_DIR"]) / "anaphora"
    blocked.write_text("a file where the folder of the socket should be")
    one = agent(environ, "s1")
    write_transcript("claude-code", one.transcript, "s1", one.directory, [FACT])
    one.tell("end", {})
    assert "5439" in agent(environ, "s2").prompt(ASKED)
    assert {incident.note for incident in incidents(environ)} == {
        "answered without the resident process"
    }


@pytest.mark.promise("resident.small")
def test_memory_goes_back_once_the_process_has_grown() -> None:
    """Not for little, seldom during work, and measured anew after it became smaller by itself."""
    sizes = iter([100, 60, 63, 80, 62, 90, 40, 60, 45])
    freed: list[bool] = []
    watch = HeapWatch(lambda: freed.append(True), growth=10, pause=5.0, size=lambda: next(sizes))
    assert watch.look(0.0, busy=False)
    assert not watch.look(1.0, busy=False)
    # While there is work it is not even measured before its time.
    assert not watch.look(4.9, busy=True)
    assert watch.look(5.0, busy=True)
    assert watch.look(6.0, busy=False)
    assert watch.look(7.0, busy=False)
    assert len(freed) == 4


@pytest.mark.internal
@pytest.mark.promise("resident.small")
def test_the_logs_of_the_databases_are_cut(environ: dict[str, str], tmp_path: Path) -> None:
    """In a quiet hour what was written is merged, and the logs are of no length; all is there."""
    variables = {**environ, "ANAPHORA_EMBEDDER": "hashing"}
    request = {
        "home": str(tmp_path / "home"),
        **{f"${name}": text for name, text in variables.items()},
    }
    with open_memory(request) as memory:
        memory.remember_many([f"Berth {number} is in quay {number % 7}." for number in range(400)])
        memory.conversations.append("yard", "user", "Which berth is free?")
        assert memory.ready(30)
        log = tmp_path / "home" / "anaphora.db-wal"
        assert log.stat().st_size > 1 << 18
        cut_logs(memory)
        assert log.stat().st_size == 0
        assert "quay 4" in memory.recall("Berth 123")[0].text
