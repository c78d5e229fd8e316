"""Several programs write one thread: processes, killed ones, the daemon, earlier releases."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.commands import python
from tests.store.daemon_child import append as append_as_daemon

from anaphora import ConversationStore
from anaphora.errors import InvalidId
from anaphora.store.threads.files import ThreadFolder, ThreadLocks
from anaphora.store.threads.gojson import ThreadDocument, parse
from anaphora.store.threads.ids import unfit_for_windows
from anaphora.store.threads.written import WrittenCopy

CHILD = Path(__file__).with_name("thread_child.py")


def start(directory: Path, conversation_id: str, count: int, label: str) -> subprocess.Popen[str]:
    arguments = [*python(), str(CHILD), str(directory), conversation_id, str(count), label]
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


HERE = Path(__file__).parent
IDS = (
    "abc",
    "Session-A",
    "01HZX3ULIDUPPER",
    "gespräch",
    "漢字",
    "a b",
    "%41bc",
    "Abc",
    ".dot",
    "con",
)


def texts(directory: Path, conversation_id: str) -> list[str]:
    thread = ConversationStore(directory, strict=True).get(conversation_id)
    return [] if thread is None else [turn.text for turn in thread.turns]


def json_names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir() if path.name.endswith(".json")}


@pytest.mark.promise("threads.one_file")
@pytest.mark.parametrize("conversation_id", IDS)
@pytest.mark.parametrize("first", ["ours", "daemon"])
def test_either_program_goes_on_where_the_other_stopped(
    tmp_path: Path, conversation_id: str, first: str
) -> None:
    """Whoever begins, the other finds the same file, and each reads all turns in order."""
    store = ConversationStore(tmp_path, strict=True)
    writers: list[Callable[[str], object]] = [
        partial(store.append, conversation_id, "user"),
        partial(append_as_daemon, tmp_path, conversation_id),
    ]
    order = writers if first == "ours" else writers[::-1]
    for number in range(4):
        order[number % 2](f"turn {number}")
    wanted = [f"turn {number}" for number in range(4)]
    assert texts(tmp_path, conversation_id) == wanted
    assert json_names(tmp_path) == {f"{conversation_id}.json"}
    record = json.loads((tmp_path / f"{conversation_id}.json").read_bytes())
    assert [turn["text"] for turn in record["turns"]] == wanted


@pytest.mark.promise("threads.one_file")
def test_an_update_that_a_program_without_locks_lost_is_put_back(tmp_path: Path) -> None:
    """The daemon reads, we append, the daemon writes: the file has both, in each later look."""
    store = ConversationStore(tmp_path, strict=True)
    store.append("Chat-1", "user", "first")
    path = store.path("Chat-1")
    for number in range(3):
        before = path.read_bytes()
        store.append("Chat-1", "user", f"ours {number}")
        after = path.read_bytes()
        # What the daemon would write from what it had read.
        old = tmp_path / "old"
        old.write_bytes(before)
        old.replace(path)
        append_as_daemon(tmp_path, "Chat-1", f"theirs {number}")
        assert path.read_bytes() != after
    listed = ConversationStore(tmp_path, strict=True).list()
    assert [summary.turn_count for summary in listed] == [7]
    expected = {"first", *(f"{who} {number}" for who in ("ours", "theirs") for number in range(3))}
    assert set(texts(tmp_path, "Chat-1")) == expected


@pytest.mark.promise("threads.one_file")
@pytest.mark.parametrize("change", ["cut", "edit", "delete"])
def test_what_a_person_takes_out_of_the_file_stays_out(tmp_path: Path, change: str) -> None:
    """A turn that was cut, edited or deleted with its file is no lost update."""
    store = ConversationStore(tmp_path, strict=True)
    for text in ("one", "two", "a secret"):
        store.append("Chat", "user", text)
    path = store.path("Chat")
    record = json.loads(path.read_bytes())
    path.unlink()
    if change == "cut":
        record["turns"].pop()
    elif change == "edit":
        record["turns"][-1]["text"] = "changed"
    if change != "delete":
        path.write_text(json.dumps(record), "utf-8")
    left = {"cut": ["one", "two"], "edit": ["one", "two", "changed"], "delete": []}[change]
    assert texts(tmp_path, "Chat") == left
    store.append("Chat", "user", "more")
    assert texts(tmp_path, "Chat") == [*left, "more"]


@pytest.mark.promise("threads.one_file")
def test_nothing_forgotten_is_kept_under_the_second_name(tmp_path: Path) -> None:
    """Redacting, deleting and encrypting leave no byte of the words in the folder."""
    store = ConversationStore(tmp_path, strict=True)
    store.append("Abc", "user", "the heron nests here")
    store.append("Abc", "user", "goodbye")
    store.redact("Abc", 0)
    assert not files_with(tmp_path, b"heron")
    store.delete("Abc")
    assert not files_with(tmp_path, b"goodbye")


@pytest.mark.promise("threads.one_file")
@pytest.mark.parametrize("moments", [range(1), range(4), range(1, 3)])
def test_a_program_that_writes_at_the_last_moment_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moments: range
) -> None:
    """The daemon writes when ours is about to take the place, and again while both are joined."""
    store = ConversationStore(tmp_path, strict=True)
    store.append("Hot", "user", "first")
    writes = iter(range(9))
    keep = WrittenCopy._keep

    def keep_while_the_daemon_writes(copy: WrittenCopy, temporary: Path) -> None:
        keep(copy, temporary)
        if (number := next(writes)) in moments:
            append_as_daemon(tmp_path, "Hot", f"theirs {number}")

    monkeypatch.setattr(WrittenCopy, "_keep", keep_while_the_daemon_writes)
    store.append("Hot", "user", "ours")
    store.append("Hot", "user", "last")
    expected = ["first", "ours", "last", *(f"theirs {number}" for number in moments)]
    assert sorted(texts(tmp_path, "Hot")) == sorted(expected)
    assert not list((tmp_path / ".written").glob(".*.swap"))


def files_with(directory: Path, word: bytes) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file() and word in path.read_bytes()]


def running(program: str, *arguments: object) -> subprocess.Popen[str]:
    words = [*python(), str(HERE / program), *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, encoding="utf-8")


def acknowledged(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    for line in process.stdout:
        yield line.rstrip("\n")


@pytest.mark.promise("threads.one_file")
def test_both_write_at_once_and_are_killed(tmp_path: Path) -> None:
    """A daemon and ours, which is killed in between: every acknowledged turn is there."""
    ids = ("Hot-Chat", "gespräch")
    moments = random.Random(20)
    written: set[tuple[str, str]] = set()
    with running("daemon_child.py", tmp_path, "300", "theirs", *ids) as daemon:
        for life in range(3):
            for conversation_id in ids:
                wanted = moments.randrange(20, 60)
                with running("thread_child.py", tmp_path, conversation_id, "80", life) as ours:
                    for line in acknowledged(ours):
                        if line != "ready":
                            written.add((conversation_id, f"{life} {line}"))
                            wanted -= 1
                        if not wanted:
                            ours.kill()
        for line in acknowledged(daemon):
            conversation_id, _, text = line.partition("\t")
            written.add((conversation_id, text))
    assert daemon.returncode == 0
    present = {(key, text) for key in ids for text in texts(tmp_path, key)}
    assert written <= present
    assert len(written) > 400


@pytest.mark.promise("threads.one_file")
def test_a_disk_that_confuses_two_ids_refuses_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the disk takes Abc for abc, writing it raises InvalidId and changes nothing."""
    store = ConversationStore(tmp_path, strict=True)
    store.append("abc", "user", "lower case")
    before = (tmp_path / "abc.json").read_bytes()

    def ignoring_case(path: str | os.PathLike[str]) -> bool:
        entries = Path(path).parent.glob("*")
        return Path(path).name.casefold() in {entry.name.casefold() for entry in entries}

    monkeypatch.setattr(os.path, "lexists", ignoring_case)
    for call in (store.append, ConversationStore(tmp_path).append):
        with pytest.raises(InvalidId, match=r"does not tell its file from 'abc\.json'"):
            call("Abc", "user", "capital")
    assert store.append("abc", "user", "again")
    assert json_names(tmp_path) == {"abc.json"}
    assert (tmp_path / "abc.json").read_bytes().startswith(before[:60])


@pytest.mark.promise("threads.one_file")
@pytest.mark.parametrize(
    "conversation_id", ["con", "NUL", "com1.txt", "a:b", "what?", "<x>", "aux "]
)
def test_names_that_windows_reserves(conversation_id: str) -> None:
    """The reason that InvalidId gives on Windows; other ids are fit."""
    assert unfit_for_windows(conversation_id)
    assert unfit_for_windows(f"my{conversation_id.strip('?:<>')}".replace(":", "")) is None
