"""Windows and macOS, as far as they can be simulated here: names, open files, encodings, times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.platforms import hide_file_numbers, ignore_case, refuse_open_files

from anaphora import ConversationStore, Memory
from anaphora.errors import InvalidId


def until(seen: Callable[[], bool]) -> None:
    """Wait for what happens behind; the test's own time-out ends it."""
    while not seen():
        time.sleep(0.01)


def with_pipes_of_windows(user: Path) -> dict[str, str]:
    """The environment of a process whose pipes are in cp1252."""
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith("ANAPHORA_")},
        "PYTHONIOENCODING": "cp1252",
        "ANAPHORA_EMBEDDER": "hashing",
        "ANAPHORA_READER": "off",
        "ANAPHORA_RESIDENT": "0",
        "HOME": str(user),
    }


linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.mark.promise("platforms.windows")
def test_threads_that_differ_by_case_are_not_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a disk that knows no case, "Abc" beside "abc" is refused and nothing is written."""
    ignore_case(monkeypatch)
    store = ConversationStore(tmp_path / "threads")
    store.append_user("abc", "This is abc.")
    for call in (store.get, store.delete, lambda name: store.append_user(name, "No.")):
        with pytest.raises(InvalidId, match="does not tell its file from"):
            call("Abc")
    thread = store.get("abc")
    assert thread is not None
    assert [turn.text for turn in thread.turns] == ["This is abc."]
    assert {summary.conversation_id for summary in store.list()} == {"abc"}


@linux
@pytest.mark.promise("platforms.windows")
@pytest.mark.parametrize("empty", [False, True])
def test_a_backup_is_restored_where_open_files_cannot_be_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty: bool
) -> None:
    """Nothing that is open is removed or renamed on the way into a new home or an empty one."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        memory.remember("The ferry leaves at nine.")
        memory.conversations.append_user("chat", "Our cat is called Miso.")
        refuse_open_files(monkeypatch)
        memory.backup(tmp_path / "backup.zip")
    if empty:
        (tmp_path / "again").mkdir()
    Memory.restore(tmp_path / "backup.zip", tmp_path / "again")
    monkeypatch.undo()
    with Memory.open(tmp_path / "again", embedder="hashing") as memory:
        assert memory.recall("when does the ferry leave?").hits[0].text == (
            "The ferry leaves at nine."
        )
    assert sorted(one.name for one in tmp_path.iterdir()) == ["again", "backup.zip", "home"]


@linux
@pytest.mark.promise("platforms.windows")
def test_a_day_where_open_files_cannot_be_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keeping, indexing, forgetting and backing up: all of it, and no word stays behind."""
    refuse_open_files(monkeypatch)
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        made = memory.remember("The zebrafinch sings at dawn.")
        for number in range(30):
            memory.conversations.append_user("chat", f"Turn {number} is about the quokka.")
        assert memory.recall_conversation(None, "what is about the quokka?").hits
        memory.forget(made.id)
        memory.conversations.delete("chat")
    kept = b"".join(f.read_bytes() for f in (tmp_path / "home").rglob("*") if f.is_file())
    assert b"zebrafinch" not in kept
    assert b"quokka" not in kept


@pytest.mark.promise("platforms.windows")
def test_files_without_numbers_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second question over all threads opens none of their files again."""
    hide_file_numbers(monkeypatch)
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        for number in range(12):
            memory.conversations.append_user(f"chat {number}", f"Bird {number} is a heron.")
        assert len(memory.recall_conversation(None, "which bird is a heron?").hits) > 1
        # What was written a moment ago may change again within one tick of the disk's clock.
        time.sleep(0.1)
        memory.recall_conversation(None, "which bird is a grey heron?")
        opened: list[str] = []
        path_open = Path.open

        def note(self: Path, *more: object, **named: object) -> object:
            opened.append(self.name)
            return path_open(self, *more, **named)  # type: ignore[call-overload]

        monkeypatch.setattr(Path, "open", note)
        memory.recall_conversation(None, "is there a heron, and which bird?")
    assert [name for name in opened if name.endswith(".json")] == []


@pytest.mark.promise("platforms.windows")
@pytest.mark.parametrize("words", [["recall", "東京 — where?"], ["recall", "東京?", "--json"]])
def test_a_pipe_of_windows_takes_every_letter(tmp_path: Path, words: list[str]) -> None:
    """What is written to a pipe whose encoding is cp1252 is UTF-8, and no letter fails it."""
    environ = with_pipes_of_windows(tmp_path)
    program = [sys.executable, "-m", "anaphora", "--home", str(tmp_path / "home")]
    for one in (["remember", "東京の店は九時に開く — 東京"], words, ["doctor"]):
        done = subprocess.run(
            [*program, *one], capture_output=True, check=False, env=environ, timeout=60
        )
        assert done.returncode == 0, done.stderr
        if one is words:
            assert "東京" in done.stdout.decode("utf-8")


@pytest.mark.promise("platforms.windows")
def test_a_hook_reads_utf8_whatever_the_pipe(tmp_path: Path) -> None:
    """A transcript in a folder with letters that cp1252 lacks is found and comes in."""
    folder = tmp_path / "Łukasz 東京"
    folder.mkdir()
    line = {
        "type": "user",
        "uuid": "u1",
        "sessionId": "s1",
        "timestamp": "2026-04-01T10:00:00Z",
        "message": {"role": "user", "content": "The quokka lives on Rottnest."},
    }
    (folder / "s1.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    environ = with_pipes_of_windows(tmp_path)
    told = {
        "hook_event_name": "SessionEnd",
        "session_id": "s1",
        "transcript_path": str(folder / "s1.jsonl"),
        "cwd": str(folder),
    }
    home = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, "-m", "anaphora", "--home", str(home), "hook", "claude-code"],
        input=json.dumps(told, ensure_ascii=False).encode(),
        capture_output=True,
        check=False,
        env=environ,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    with Memory.open(home, embedder="hashing") as memory:
        assert memory.recall_conversation(None, "where does the quokka live?").hits


def test_times_before_1970(tmp_path: Path) -> None:
    """They are counted, not asked of the system: that of Windows refuses them."""
    line = {"role": "user", "content": "A letter of my grandmother.", "timestamp": -86_400.5}
    (tmp_path / "letters.jsonl").write_text(json.dumps(line) + "\n")
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        memory.import_(tmp_path / "letters.jsonl")
        (hit, *_) = memory.recall_conversation(None, "who wrote a letter?").hits
        assert hit.ts == datetime(1969, 12, 30, 23, 59, 59, 500_000, tzinfo=UTC)


@linux
@pytest.mark.promise("platforms.windows")
def test_words_leave_files_that_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no open file can be deleted, forgotten words are overwritten in it."""
    home = tmp_path / "home"
    with monkeypatch.context() as patch, Memory.open(home, embedder="hashing") as memory:
        refuse_open_files(patch)
        for name in ("a", "b"):
            for number in range(60):
                memory.conversations.append_user(name, f"Turn {number} is of quokka{name}.")
        assert memory.recall_conversation(None, "who speaks about quokkaa, turn 7?").hits
        memory.conversations.delete("a")
        stored = b"".join(path.read_bytes() for path in (home / "index").rglob("*.sqlite*"))
        assert b"quokkab" in stored
        assert b"quokkaa" not in stored
        assert all(check.ok for check in memory.doctor() if check.name == "index")
