"""Transcripts that grow come in by themselves: once, in order, whatever happens meanwhile."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from anaphora import Memory
from anaphora.ingest.transcripts import IDLE, TranscriptWatch


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 5, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing") as opened:
        yield opened


def line(session: str, n: int) -> str:
    role = "user" if n % 2 == 0 else "assistant"
    return json.dumps(
        {
            "type": role,
            "uuid": f"{session}-{n}",
            "parentUuid": f"{session}-{n - 1}" if n else None,
            "sessionId": session,
            "timestamp": f"2026-05-01T10:{n:02}:00.000Z",
            "message": {"role": role, "content": f"{session} says {n}"},
        }
    )


def write(path: Path, session: str, turns: int, torn: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line(session, n) + "\n" for n in range(turns)) + torn)


def watch(memory: Memory, folder: Path, clock: Clock) -> TranscriptWatch:
    marks = folder.parent / "marks.json"
    return TranscriptWatch([folder], memory.import_, clock=clock, stamps=marks)


@pytest.mark.promise("watch.follows")
def test_what_is_written_comes_in(memory: Memory, tmp_path: Path) -> None:
    """New files, new lines and new folders are found; nothing is read or kept twice."""
    folder, clock = tmp_path / "projects", Clock()
    following = watch(memory, folder, clock)
    assert following.look().files == 0
    write(folder / "a" / "s1.jsonl", "s1", 3)
    looked = following.look()
    assert (looked.files, looked.added) == (1, 3)
    assert following.look().files == 0
    write(folder / "a" / "s1.jsonl", "s1", 5)
    write(folder / "b" / "deep" / "s2.jsonl", "s2", 2)
    (folder / "b" / "notes.txt").write_text("no transcript")
    looked = following.look()
    assert (looked.files, looked.added) == (2, 4)
    counts = {s.conversation_id: s.turn_count for s in memory.conversations.list()}
    assert sorted(counts.values()) == [2, 5]


@pytest.mark.promise("watch.follows")
def test_a_line_that_is_still_written_is_waited_for(memory: Memory, tmp_path: Path) -> None:
    """Half a line is no turn; it becomes one when the rest is there."""
    folder, clock = tmp_path / "projects", Clock()
    following = watch(memory, folder, clock)
    rest = line("s1", 2)
    write(folder / "s1.jsonl", "s1", 2, torn=rest[:40])
    assert following.look().added == 2
    write(folder / "s1.jsonl", "s1", 2, torn=rest + "\n")
    assert following.look().added == 1


@pytest.mark.promise("watch.ends")
def test_a_quiet_session_has_ended_once(memory: Memory, tmp_path: Path) -> None:
    """A session that was left alone for half an hour ends, once; one that goes on does not."""
    folder, clock = tmp_path / "projects", Clock()
    following = watch(memory, folder, clock)
    write(folder / "s1.jsonl", "s1", 2)
    write(folder / "s2.jsonl", "s2", 2)
    assert following.look().ended == ()
    clock.now += IDLE / 2
    write(folder / "s2.jsonl", "s2", 3)
    assert following.look().ended == ()
    clock.now += IDLE / 2
    (ended,) = following.look().ended
    assert "s1" in ended
    clock.now += IDLE
    (other,) = following.look().ended
    assert "s2" in other
    clock.now += timedelta(days=1)
    assert following.look().ended == ()


@pytest.mark.promise("watch.follows")
def test_it_goes_on_where_it_stopped(memory: Memory, tmp_path: Path) -> None:
    """Another process reads only what changed; without its marks it reads all and adds nothing."""
    folder, clock = tmp_path / "projects", Clock()
    write(folder / "s1.jsonl", "s1", 3)
    watch(memory, folder, clock).look()
    assert watch(memory, folder, clock).look().files == 0
    assert b"s1.jsonl" not in (tmp_path / "marks.json").read_bytes()
    for damage in ("", "[", '{"a": 1}', '["x"]'):
        (tmp_path / "marks.json").write_text(damage)
        looked = watch(memory, folder, clock).look()
        assert (looked.files, looked.added) == (1, 0)


@pytest.mark.promise("watch.follows")
def test_other_files_do_no_harm(memory: Memory, tmp_path: Path) -> None:
    """Files of another kind, empty ones and ones that vanish neither stop it nor come in."""
    folder, clock = tmp_path / "projects", Clock()
    folder.mkdir()
    (folder / "empty.jsonl").write_text("")
    (folder / "other.jsonl").write_text('{"a": 1}\n[1, 2]\n')
    (folder / "bytes.jsonl").write_bytes(bytes(range(256)))
    (folder / "gone.jsonl").symlink_to(folder / "nowhere.jsonl")
    write(folder / "s1.jsonl", "s1", 2)
    following = watch(memory, folder, clock)
    assert following.look().added == 2
    assert following.look().files == 0
    (folder / "s1.jsonl").unlink()
    assert following.look().files == 0
    assert len(memory.conversations.list()) == 1


@pytest.mark.promise("watch.follows")
def test_transcripts_come_in_as_they_grow(
    memory: Memory, tmp_path: Path, transcripts: Path
) -> None:
    """Transcripts that grow give what importing them at once gives."""
    real = [
        path
        for name in ("claude_code", "codex")
        for path in sorted((transcripts / name).glob("*.jsonl"))
    ]
    folder, clock = tmp_path / "projects", Clock()
    folder.mkdir()
    following = watch(memory, folder, clock)
    for path in real:
        lines = path.read_bytes().splitlines(keepends=True)
        for upto in sorted({len(lines) // 3, 2 * len(lines) // 3, len(lines)}):
            (folder / path.name).write_bytes(b"".join(lines[:upto]))
            following.look()
    grown = {t.conversation_id: t.turn_count for t in memory.conversations.list()}
    whole = tmp_path / "whole"
    whole.mkdir()
    for path in real:
        shutil.copy(path, whole)
    with Memory.open(tmp_path / "other", embedder="hashing") as other:
        watch(other, whole, clock).look()
        assert grown == {t.conversation_id: t.turn_count for t in other.conversations.list()}
    assert sum(grown.values()) > 10
