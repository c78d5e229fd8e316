"""Several processes write one thread, and processes are killed while they write."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from anaphora import ConversationStore
from anaphora.store.threads.files import ThreadFolder, ThreadLocks
from anaphora.store.threads.gojson import ThreadDocument, parse

CHILD = Path(__file__).with_name("thread_child.py")


def start(directory: Path, conversation_id: str, count: int, label: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, str(CHILD), str(directory), conversation_id, str(count), label]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


@pytest.mark.promise("threads.processes")
def test_eight_processes_lose_no_turn(tmp_path: Path) -> None:
    """Eight processes append to one thread, and every turn is there, in each one's own order."""
    children = [start(tmp_path, "shared", 12, f"p{n}") for n in range(8)]
    for child in children:
        child.communicate()
        assert child.returncode == 0
    thread = ConversationStore(tmp_path, strict=True).get("shared")
    assert thread is not None
    for n in range(8):
        own = [turn.text for turn in thread.turns if turn.text.startswith(f"p{n} ")]
        assert own == [f"p{n} {number}" for number in range(12)]
    assert len(thread.turns) == 96


@pytest.mark.promise("threads.durable")
@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is a signal")
def test_killed_processes_leave_every_acknowledged_turn(tmp_path: Path) -> None:
    """Whenever a writer is killed, what it acknowledged is there and every file parses."""
    moments = random.Random(20260430)
    acknowledged: list[str] = []
    for life in range(10):
        child = start(tmp_path, "thread", 200, f"life{life}")
        assert child.stdout is not None
        wanted = moments.randrange(1, 20)
        for line in child.stdout:
            if line.strip() != "ready":
                acknowledged.append(f"life{life} {line.strip()}")
                wanted -= 1
            if wanted <= 0:
                break
        spin(moments.randrange(20_000))
        child.kill()
        # Not `communicate` alone: it does not see what was read ahead line by line.
        rest = child.stdout.read()
        child.communicate()
        acknowledged += [f"life{life} {number}" for number in rest.split()]
        texts = [
            turn["text"] for turn in json.loads((tmp_path / "thread.json").read_bytes())["turns"]
        ]
        # What was written and not yet acknowledged may be there too, once.
        assert [text for text in texts if text in set(acknowledged)] == acknowledged
        assert len(texts) <= len(acknowledged) + life + 1
    store = ConversationStore(tmp_path, strict=True)
    assert store.append("thread", "user", "the next one")
    assert store.problems() == ()
    assert left_behind(tmp_path) == []


def spin(rounds: int) -> None:
    """Let some microseconds pass, so that the kill lands anywhere in a write."""
    for _ in range(rounds):
        pass


@pytest.mark.promise("threads.durable")
def test_what_an_interrupted_write_left_is_removed(tmp_path: Path) -> None:
    """A later write removes stale temporary files, but not those of a thread being written."""
    store = ConversationStore(tmp_path, strict=True)
    store.append("a", "user", "one")
    store.append("b", "user", "one")
    key_of = ThreadFolder(tmp_path).key
    stale = tmp_path / f".{key_of('a')}.999999.0.tmp"
    busy = tmp_path / f".{key_of('b')}.999999.0.tmp"
    stale.write_text("half a thr")
    busy.write_text("half a thr")
    with ThreadLocks(tmp_path).hold(key_of("b")):
        ConversationStore(tmp_path, strict=True).append("a", "user", "two")
        assert left_behind(tmp_path) == [busy]


def left_behind(directory: Path) -> list[Path]:
    return list(directory.glob(".*.tmp"))


@pytest.mark.promise("threads.processes")
def test_another_programs_rewrite_is_built_upon(tmp_path: Path) -> None:
    """A program that knows no lock rewrites the file between two appends: its turns stay."""
    store = ConversationStore(tmp_path, strict=True)
    store.append("c", "user", "ours")
    path = store.path("c")
    rewrite_as_daemon(path, lambda turns: turns.append({"role": "assistant", "text": "theirs"}))
    store.append("c", "user", "ours again")
    assert [turn.text for turn in store.recent("c")] == ["ours", "theirs", "ours again"]


def rewrite_as_daemon(path: Path, change: Callable[[list[dict[str, str]]], None]) -> None:
    record = json.loads(path.read_bytes())
    change(record["turns"])
    for turn in record["turns"]:
        turn.setdefault("ts", record["updated"])
    temporary = path.with_suffix(".daemon")
    temporary.write_text(json.dumps(record))
    temporary.replace(path)


@pytest.mark.promise("threads.incremental")
def test_an_append_does_not_read_what_this_process_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first append of a process to a thread parses it; those after it do not."""
    parsed: list[int] = []

    def counting(data: bytes) -> ThreadDocument:
        parsed.append(len(data))
        return parse(data)

    ConversationStore(tmp_path, strict=True).append("d", "user", "by another process")
    monkeypatch.setattr("anaphora.store.threads.files.parse", counting)
    store = ConversationStore(tmp_path, strict=True)
    for number in range(20):
        store.append("d", "user", f"turn {number}")
    assert len(parsed) == 1
    store.set_title("d", "Titled")
    store.append("d", "user", "after the title")
    assert len(parsed) == 2
