"""What is done to a home while its calls are watched, and what a home shows afterwards.

`work.py DESCRIPTOR` imports everything, and forks for each job that comes over the socket: the
process that does it stops at its calls (`faults.listen`) until the other side answers. Each of
`WORKS` is one thing that a user can do, on a world made by `make_world`; `look` says what a home
shows, as a mapping that two looks can be compared by. Marks ("begin", "done", "end") are written to
/dev/null, where the watching side reads them in their place among the calls.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.durability.faults import MARK, Unsupported, listen
from tests.memory_child import flaws

from anaphora import ImportedConversation, ImportedTurn, Memory, NewMemory, keys, ops
from anaphora.errors import AnaphoraError, StoreError
from anaphora.features.projects.services import ProjectServices
from anaphora.store.db import sqlite

__all__ = ["IGNORE", "WORKS", "Work", "look", "make_world", "memory_of", "other_folders"]

IGNORE = ("home/index",)
"""What is derived, and what is therefore neither refused nor kept in the image of a crash."""

Shown = dict[str, Any]
LONG = "the quick brown fox jumps over the lazy dog and comes back home " * 40


@dataclass(frozen=True, slots=True)
class Work:
    """One thing to do: `ready` gets it going where nothing is watched, `do` does it.

    `parts` says that it is several writes, each whole, rather than one; `adds` that doing it twice
    adds twice. `home` is False where no memory is open meanwhile; `sealed` wants a sealed world.
    """

    do: Callable[[Memory, Path], object]
    ready: Callable[[Memory, Path], object] | None = None
    parts: bool = False
    adds: bool = False
    home: bool = True
    sealed: bool = False


def memory_of(home: Path) -> Memory:
    """A memory on a world's home, with hashed words as vectors."""
    return Memory.open(home, conversations_dir=home / "conversations", embedder="hashing")


def _say(memory: Memory, thread: str, text: str, **given: Any) -> None:
    memory.conversations.append(thread, "user", text, **given)


def make_world(place: Path, *, sealed: bool) -> None:
    """A small home with something of everything, and what the works need beside it."""
    home = place / "home"
    place.mkdir(parents=True, exist_ok=True)
    project = place / "project"
    project.mkdir()
    (project / "README.md").write_text("# Tea\n\nBrews tea by `brew.py`.\n")
    (project / "brew.py").write_text("def brew(cups: int) -> str:\n    return 'tea' * cups\n")
    kind: Any = "file" if sealed else None
    with Memory.open(
        home, conversations_dir=home / "conversations", embedder="hashing", encrypt=kind
    ) as memory:
        for number in range(12):
            _say(memory, "talk", f"turn {number} of the talk {LONG[: number * 30]}")
        _say(memory, "talk", "the code is xylophone-7", speaker="Ann")
        _say(memory, "other", "nothing but small talk here", speaker="Bob")
        for number in range(6):
            memory.remember(f"memory {number} keeps token{number} for later")
        memory.remember("the kettle is blue", path="kettle.colour")
        memory.observe("tea is brewed by brew.py", kind="fact")
        memory.scoped("second").conversations.append("far", "user", "another namespace")
        memory.ready()
        memory.backup(place / "made.backup")


def _import(memory: Memory, _: Path) -> None:
    chats = [
        ImportedConversation(
            "test",
            f"chat{number}",
            f"imported{number}",
            (
                ImportedTurn("1", None, "user", f"imported question {number}", speaker="Cid"),
                ImportedTurn("2", "1", "assistant", f"imported answer {number}"),
            ),
            title=f"chat {number}",
        )
        for number in range(2)
    ]
    memory.import_(chats)


def _index(memory: Memory, place: Path) -> None:
    report = memory.index_project(place / "project")
    if report.skipped:
        # The call says what it could not read, and the next one tries again.
        raise StoreError("read", report.skipped[0].path, report.skipped[0].reason)


def _export(memory: Memory, place: Path) -> None:
    report = memory.export(place / "out.jsonl")
    if report.problems:
        # It says which thread it could not read. The rest has left, and is not wanted here.
        (place / "out.jsonl").unlink()
        raise StoreError("read", report.problems[0].path, report.problems[0].reason)


def _many(memory: Memory, _: Path) -> None:
    memory.remember_many([NewMemory(f"many {number} at once") for number in range(20)])


def _update(memory: Memory, _: Path) -> None:
    old = next(iter(memory.list({"path": "kettle.colour"})))
    memory.update(old.id, text="the kettle is green")


def _forget(memory: Memory, _: Path) -> None:
    memory.forget(filters={"path": "kettle.colour"})


def _forget_while_read(memory: Memory, place: Path) -> None:
    """The log cannot be cut, as long as something reads what was."""
    with memory._container.truth.read() as connection:
        connection.execute("SELECT COUNT(*) FROM record").fetchall()
        _forget(memory, place)


def _forget_softly(memory: Memory, _: Path) -> None:
    memory.forget(filters={"path": "kettle.colour"}, soft=True)


def _wait_little() -> None:
    sqlite._CUT_SECONDS = 0.02


WORKS: dict[str, Work] = {
    "append": Work(
        lambda memory, _: _say(memory, "talk", "one more turn"),
        lambda memory, _: _say(memory, "talk", "the turn before it"),
        adds=True,
    ),
    "append first": Work(lambda memory, _: _say(memory, "fresh", "a first turn"), adds=True),
    "append with a speaker": Work(
        lambda memory, _: _say(memory, "talk", "one more turn", speaker="Eve"), adds=True
    ),
    "title": Work(lambda memory, _: memory.conversations.set_title("talk", "About tea")),
    "redact": Work(lambda memory, _: memory.conversations.redact("talk", 12), parts=True),
    "delete": Work(lambda memory, _: memory.conversations.delete("other"), parts=True),
    "import": Work(_import, parts=True),
    "remember": Work(lambda memory, _: memory.remember("one more memory")),
    "remember many": Work(_many),
    "update": Work(_update),
    "forget": Work(_forget),
    "forget while it is read": Work(_forget_while_read, lambda _, __: _wait_little()),
    "forget softly": Work(_forget_softly),
    "observe": Work(lambda memory, _: memory.observe("brew.py is slow"), adds=True),
    "diary": Work(lambda memory, _: memory.write_diary("today tea was brewed"), adds=True),
    "index a project": Work(_index, parts=True),
    "make a token": Work(lambda memory, _: memory.tokens.create("ann"), adds=True),
    "reindex": Work(lambda memory, _: memory.reindex()),
    "backup": Work(lambda memory, place: memory.backup(place / "out.backup")),
    "export": Work(_export),
    "restore": Work(
        lambda _, place: Memory.restore(place / "made.backup", place / "new"), home=False
    ),
    "encrypt": Work(lambda _, place: keys.encrypt(place / "home", kept="file"), home=False),
    "decrypt": Work(lambda _, place: keys.decrypt(place / "home"), home=False, sealed=True),
    "rotate the key": Work(
        lambda _, place: keys.rotate_key(place / "home"), home=False, sealed=True
    ),
    "rotate the key deeply": Work(
        lambda _, place: keys.rotate_key(place / "home", deep=True), home=False, sealed=True
    ),
    "append, sealed": Work(
        lambda memory, _: _say(memory, "talk", "one more turn", speaker="Eve"),
        sealed=True,
        adds=True,
    ),
    "remember, sealed": Work(lambda memory, _: memory.remember("one more memory"), sealed=True),
}


def look(place: Path, memory: Memory | None = None) -> Shown:
    """What the world at `place` shows: every thread, memory and note by a key of its own, and
    what is wrong under "wrong"."""
    shown: Shown = {}
    if memory is not None:
        shown |= _seen(memory)
    elif (place / "home").exists():
        with memory_of(place / "home") as opened:
            shown |= _seen(opened)
    shown |= other_folders(place)
    return shown


def _seen(memory: Memory) -> Shown:
    shown: Shown = {}
    wrong = [*flaws(memory), *(str(one) for one in memory.conversations.problems())]
    for space in (memory, memory.scoped("second")):
        for summary in space.conversations.list():
            thread = space.conversations.get(summary.conversation_id)
            assert thread is not None
            turns = [[turn.role, turn.text] for turn in thread.turns]
            shown[f"thread {summary.conversation_id}"] = [thread.title, turns]
            speakers = [turn.speaker or "" for turn in thread.turns]
            if any(speakers):
                shown[f"speakers {summary.conversation_id}"] = speakers
    parts = memory._container.namespace("default")
    projects = parts.feature(ProjectServices)
    for one in parts.memory.records.changed_since(-1, 2**30):
        shown[f"memory {one.text}"] = [one.valid_to is None, one.forgotten, one.reinforce_count]
    for note in projects.note_store.changed_since(-1, 2**30):
        shown.setdefault(f"note {note.record.text}", 0)
        shown[f"note {note.record.text}"] += 1
    for project in memory.projects():
        files = projects.store.files(project.id)
        shown |= {f"file {path}": True for path in files}
    for token in memory.tokens.list():
        shown.setdefault(f"token {token.name}", 0)
        shown[f"token {token.name}"] += 1
    shown["wrong"] = wrong
    return shown


def other_folders(place: Path) -> Shown:
    """What stands beside the home: a backup, an export, a restored home."""
    shown: Shown = {}
    wrong = []
    try:
        if (place / "out.backup").exists():
            shown["backup"] = ops.verify(place / "out.backup").rows
        if (place / "out.jsonl").exists():
            shown["export"] = len((place / "out.jsonl").read_text().splitlines())
        if (place / "new").exists():
            with memory_of(place / "new") as restored:
                shown["restored"] = _seen(restored)
    except AnaphoraError as error:
        wrong.append(f"{type(error).__name__}: {error}")
    if wrong:
        shown["wrong beside"] = wrong
    return shown


def _mark(null: int, name: str, said: Any = None) -> None:
    rest = "" if said is None else ":" + json.dumps(said)
    os.write(null, MARK + f"{name}{rest}".encode())


@contextmanager
def _opened(work: Work, place: Path) -> Iterator[Memory | None]:
    if not work.home:
        yield None
        return
    with memory_of(place / "home") as memory:
        yield memory


def _perform(job: dict[str, Any], null: int) -> None:
    """Do the work; then, if asked, look at it, and do it once more without a fault."""
    place, work = Path(job["place"]), WORKS[job["work"]]
    said: dict[str, Any] = {"close": "done"}
    try:
        _in_memory(job, work, place, null, said)
    except AnaphoraError as error:
        said["close"] = f"{type(error).__name__}: {error}"
    _mark(null, "end", said)


def _in_memory(
    job: dict[str, Any], work: Work, place: Path, null: int, said: dict[str, Any]
) -> None:
    with _opened(work, place) as memory:
        if work.ready is not None:
            work.ready(memory, place)  # type: ignore[arg-type]
        _mark(null, "begin")
        if job.get("only_begin"):
            return
        said["first"] = _tried(work, memory, place)
        _mark(null, "done", said)
        if said["first"] != "done":
            _mark(null, "over")
            said["between"] = _looked(place, memory)
            said["again"] = _tried(work, memory, place)


def _tried(work: Work, memory: Memory | None, place: Path) -> str:
    try:
        work.do(memory, place)  # type: ignore[arg-type]
    except AnaphoraError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - an error that is none of ours is what is looked for
        import traceback

        where = traceback.extract_tb(error.__traceback__)
        frames = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(where[-6:]))
        return f"NOT OURS: {type(error).__name__}: {error} at {frames}"
    return "done"


def _looked(place: Path, memory: Memory | None) -> Any:
    try:
        return look(place, memory) if memory is not None else other_folders(place)
    except AnaphoraError as error:
        return {"wrong": [f"{type(error).__name__}: {error}"]}


def _child(job: dict[str, Any], ours: socket.socket) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        listener = listen(job["names"])
    except Unsupported as error:
        ours.send(str(error).encode())
        os._exit(3)
    socket.send_fds(ours, [str(os.getpid()).encode()], [listener])
    os.close(listener)
    _perform(job, null)


def _warm() -> None:
    """Import what the works import, so that a fork need not."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for sealed in (False, True):
            make_world(Path(folder, str(sealed)), sealed=sealed)
            look(Path(folder, str(sealed)))


def main() -> None:
    ours = socket.socket(fileno=int(sys.argv[1]))
    _warm()
    ours.send(b"ready")
    while job := ours.recv(100_000):
        process = os.fork()
        if process == 0:
            code = 1
            try:
                _child(json.loads(job), ours)
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(process, 0)
        ours.send(str(os.waitstatus_to_exitcode(status)).encode())


if __name__ == "__main__":
    main()
