"""What a conversation store does when nothing goes wrong, and when files or places are broken."""

from __future__ import annotations

import json
import logging
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

from anaphora import ConversationStore, NewTurn, conversations_dir
from anaphora.errors import CorruptThread, DiskFull, ReadOnly, StoreError
from anaphora.store.db.engine import open_database
from anaphora.store.threads.gojson import NotAThread, decode, encode
from anaphora.store.threads.sidecar import Sidecar

Clock = Callable[[], datetime]


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> ConversationStore:
    return ConversationStore(tmp_path / "conversations", clock=clock, strict=True)


@pytest.fixture
def sidecar(tmp_path: Path) -> Iterator[Sidecar]:
    truth = open_database(tmp_path / "truth.db")
    yield Sidecar(truth, "default")
    truth.close()


def texts(store: ConversationStore, conversation_id: str) -> list[str]:
    thread = store.get(conversation_id)
    return [turn.text for turn in thread.turns] if thread else []


@pytest.mark.promise("threads.go_bytes")
def test_the_bytes_of_a_new_thread(store: ConversationStore, clock: Clock) -> None:
    """A new thread is written exactly as Go would write it."""
    store.append_user("c", "why <so>?")
    store.append_assistant("c", "because", intent_id="neo_1")
    assert store.path("c").read_bytes() == (
        rb'{"conversation_id":"c","turns":[{"role":"user","text":"why \u003cso\u003e?",'
        rb'"ts":"2026-04-30T12:00:00Z"},{"role":"assistant","text":"because",'
        rb'"intent_id":"neo_1","ts":"2026-04-30T12:00:00Z"}],"updated":"2026-04-30T12:00:00Z"}'
    )


@pytest.mark.promise("threads.disabled")
@pytest.mark.parametrize("directory", [None, "", "  "])
def test_a_store_without_a_directory_does_nothing(directory: str | None) -> None:
    """Every call of a disabled store is safe and keeps nothing."""
    store = ConversationStore(directory, strict=True)
    assert not store.enabled
    assert not store.append("../x", "", "text")
    assert store.extend("c", [NewTurn("user", "x")]) == range(0)
    assert store.get("c") is None
    assert (store.recent("c"), store.list(), store.problems()) == ((), (), ())
    assert list(store.files()) == []
    changes = [store.delete("c"), store.redact("c", 0), store.set_title("c", "t")]
    assert not any(changes)
    with pytest.raises(StoreError):
        store.path("c")


@pytest.mark.promise("threads.directory")
def test_where_conversations_lie() -> None:
    """An explicit directory wins, else the sibling of the root, else there is none."""
    assert conversations_dir("/data/x", "/data/cortex") == Path("/data/x")
    assert conversations_dir("", "/data/cortex") == Path("/data/conversations")
    assert conversations_dir(None, Path("/data/cortex/")) == Path("/data/conversations")
    assert conversations_dir(" ", None) is None


@pytest.mark.promise("threads.delete")
def test_delete_removes_a_thread(store: ConversationStore, sidecar: Sidecar) -> None:
    """A deleted thread is gone, with what was set aside of it, and an append starts a new one."""
    store.append_user("c", "secret words")
    store.append_user("d", "other words")
    (store.path("c").parent / ".corrupt").mkdir()
    (store.path("c").parent / ".corrupt" / "c.json.1").write_text("secret wo")
    assert store.delete("c")
    assert not store.delete("c")
    assert store.get("c") is None
    assert everything(store.path("c").parent).count(b"secret") == 0
    store.append_user("c", "anew")
    assert texts(store, "c") == ["anew"]
    assert texts(store, "d") == ["other words"]


@pytest.mark.promise("threads.redact")
def test_redact_takes_the_words_out(store: ConversationStore) -> None:
    """The words of a turn leave the file wherever they stand; role, time and place stay."""
    secret = 'my "key" is <hunter2>'
    store.append_user("c", secret)
    store.append_assistant("c", f"I noted: {secret}.")
    store.append_user("c", "yes")
    store.append_user("c", "yes")
    store.set_title("c", secret)
    folder = store.path("c").parent
    (folder / ".corrupt").mkdir()
    (folder / ".corrupt" / "c.json.1").write_bytes(store.path("c").read_bytes()[:-5])
    before = store.recent("c")
    assert store.redact("c", 0)
    assert texts(store, "c") == ["[redacted]", "I noted: [redacted].", "yes", "yes"]
    assert [(t.role, t.ts_text) for t in store.recent("c")] == [(t.role, t.ts_text) for t in before]
    assert b"hunter2" not in everything(folder)
    assert store.redact("c", 2)
    assert texts(store, "c")[2:] == ["[redacted]", "yes"]
    store.append_user("c", "more")
    data = store.path("c").read_bytes()
    assert encode(decode(data)) == data
    assert not store.redact("c", 5)
    assert not store.redact("c", -1)
    assert not store.redact("unknown", 0)


@pytest.mark.promise("threads.redact")
def test_redact_reaches_members_of_other_programs(store: ConversationStore) -> None:
    """Members that Go does not know go if they hold the words, and stay if they do not."""
    path = store.path("c")
    path.parent.mkdir()
    path.write_text(
        '{"turns":[{"text":"hunter2 is it","ts":"2026-01-01T00:00:00Z","draft":"hunter2"},'
        '{"text":"ok","ts":"2026-01-01T00:00:00Z","about":"hunter2 \\u0069s it"},'
        '{"text":"ok","ts":"2026-01-01T00:00:00Z","mood":1}],'
        '"preview":"hunter2 is it","colour":"red"}'
    )
    assert store.redact("c", 0)
    assert texts(store, "c") == ["[redacted]", "ok", "ok"]
    assert b"hunter2" not in path.read_bytes()
    assert b'"mood":1' in path.read_bytes()
    assert b'"colour":"red"' in path.read_bytes()


@pytest.mark.promise("threads.speakers")
def test_speakers_are_kept_beside_the_file(tmp_path: Path, sidecar: Sidecar) -> None:
    """A speaker comes back with the turn, is not in the file, and goes with the turn."""
    store = ConversationStore(tmp_path / "threads", strict=True, sidecar=sidecar)
    store.append("c", "user", "hello", speaker="Nour")
    store.append("c", "assistant", "hello yourself")
    imported = NewTurn("user", "imported", "", None, "Kim", "chatgpt", "k", "m1")
    store.extend("c", [imported])
    assert [turn.speaker for turn in store.recent("c")] == ["Nour", None, "Kim"]
    assert store.recent("c", 1)[0].source == "chatgpt"
    assert b"Nour" not in store.path("c").read_bytes()
    assert store.redact("c", 0)
    assert [turn.speaker for turn in store.recent("c")] == [None, None, "Kim"]
    assert store.delete("c")
    assert sidecar.known("chatgpt", "k")["m1"].forgotten
    store.append("c", "user", "hello")
    assert store.recent("c")[0].speaker is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_files_are_private_but_keep_an_older_mode(store: ConversationStore) -> None:
    """Our own files are for their owner alone; a file that others could read stays readable."""
    store.append_user("c", "one")
    path = store.path("c")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    store.append_user("c", "two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions and limits")


@pytest.fixture(params=[False, True], ids=["bare", "strict"])
def strict(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def spoil(directory: Path, name: str = "c.json", data: bytes = b'{"turns":[{"te') -> bytes:
    directory.mkdir(exist_ok=True)
    (directory / name).write_bytes(data)
    return data


@pytest.mark.promise("threads.corrupt")
def test_reading_sets_a_corrupt_file_aside(tmp_path: Path, strict: bool) -> None:
    """A corrupt file is moved, kept and reported by whoever reads it first."""
    data = spoil(tmp_path)
    store = ConversationStore(tmp_path, strict=strict)
    if strict:
        with pytest.raises(CorruptThread) as caught:
            store.get("c")
        assert caught.value.set_aside == tmp_path / ".corrupt" / "c.json.1"
    else:
        assert store.get("c") is None
        assert store.failures == 1
    assert store.get("c") is None
    assert store.recent("c") == ()
    assert (tmp_path / ".corrupt" / "c.json.1").read_bytes() == data
    [problem] = store.problems()
    assert problem.conversation_id == "c"
    assert problem.set_aside == str(tmp_path / ".corrupt" / "c.json.1")
    assert problem.reason
    assert ConversationStore(tmp_path).problems() == (problem,)


@pytest.mark.promise("threads.corrupt")
def test_appending_to_a_corrupt_file_starts_a_new_one(tmp_path: Path, strict: bool) -> None:
    """A bare append starts anew at once; a strict one says so first; no copy is overwritten."""
    store = ConversationStore(tmp_path, strict=strict)
    kept = []
    for life in range(3):
        kept.append(spoil(tmp_path, data=b"broken %d" % life))
        if strict:
            with pytest.raises(CorruptThread):
                store.append_user("c", "not yet")
        assert store.append_user("c", f"life {life}")
        assert [turn.text for turn in store.recent("c")] == [f"life {life}"]
    copies = sorted((tmp_path / ".corrupt").iterdir())
    assert [copy.read_bytes() for copy in copies] == kept
    assert len(store.problems()) == 3


@pytest.mark.promise("threads.corrupt")
def test_a_corrupt_file_hides_no_other_thread(tmp_path: Path, strict: bool) -> None:
    """`list` goes on past what it cannot read."""
    store = ConversationStore(tmp_path, strict=strict)
    store.append_user("a", "fine")
    spoil(tmp_path)
    (tmp_path / "folder.json").mkdir()
    assert [summary.conversation_id for summary in store.list()] == ["a"]
    assert [problem.conversation_id for problem in store.problems()] == ["c"]


@pytest.mark.promise("threads.corrupt")
@pytest.mark.promise("threads.bad_input")
def test_broken_json_as_threads(broken: Path, tmp_path: Path, strict: bool) -> None:
    """Each file either reads as Go would read it or is set aside with its bytes; none is lost."""
    files = sorted(broken.iterdir())
    assert len(files) > 300
    store = ConversationStore(tmp_path, strict=strict)
    set_aside = {}
    for number, file in enumerate(files):
        conversation_id = f"case{number}"
        data = file.read_bytes()
        (tmp_path / f"{conversation_id}.json").write_bytes(data)
        try:
            expected = decode(data)
        except NotAThread:
            set_aside[conversation_id] = data
            if strict:
                with pytest.raises(CorruptThread):
                    store.get(conversation_id)
            else:
                assert store.get(conversation_id) is None
            continue
        thread = store.get(conversation_id)
        assert thread is not None
        assert thread.turns == expected.turns == ()
        assert store.append_user(conversation_id, "a turn")
        written = (tmp_path / f"{conversation_id}.json").read_bytes()
        assert [turn.text for turn in decode(written).turns] == ["a turn"]
    assert len(set_aside) > 250
    assert {problem.conversation_id for problem in store.problems()} == set(set_aside)
    for conversation_id, data in set_aside.items():
        assert (tmp_path / ".corrupt" / f"{conversation_id}.json.1").read_bytes() == data


@contextmanager
def no_permission(directory: Path) -> Iterator[None]:
    """The directory can be read and not written, for root as well."""
    directory.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        directory.chmod(0o755)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter; pytest's own are closed to others than its user."""
    folder = Path(tempfile.mkdtemp(prefix="anaphora-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@POSIX
@pytest.mark.promise("threads.full_disk")
@pytest.mark.promise("threads.best_effort")
@pytest.mark.promise("threads.strict")
def test_a_read_only_place(
    open_folder: Path, strict: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Where nothing can be written, strict raises ReadOnly, bare returns False; reading works."""
    place = open_folder / "threads"
    store = ConversationStore(place, strict=strict)
    assert store.append_user("c", "before")
    spoil(place, "broken.json")
    for path in (place / "c.json", place / "broken.json"):
        path.chmod(0o644)
    before = (place / "c.json").read_bytes()
    calls: list[Callable[[], bool]] = [
        partial(store.append_user, "c", "lost"),
        partial(store.append_user, "new", "lost"),
        partial(store.set_title, "c", "title"),
        partial(store.redact, "c", 0),
        partial(store.delete, "c"),
    ]
    with no_permission(place), caplog.at_level(logging.ERROR, "anaphora"):
        for call in calls:
            if strict:
                with pytest.raises(ReadOnly) as caught:
                    call()
                assert str(place) in str(caught.value)
            else:
                assert call() is False
        assert [turn.text for turn in store.recent("c")] == ["before"]
        assert [summary.conversation_id for summary in store.list()] == ["c"]
        if strict:
            with pytest.raises(CorruptThread) as corrupt:
                store.get("broken")
            assert corrupt.value.set_aside is None
        else:
            assert store.get("broken") is None
            assert store.failures == len(calls) + 1
            assert len(caplog.records) >= len(calls)
        [problem] = store.problems()
        assert (problem.conversation_id, problem.set_aside) == ("broken", None)
    assert (place / "c.json").read_bytes() == before
    assert sorted(path.name for path in place.glob("*.json")) == ["broken.json", "c.json"]
    assert store.append_user("c", "after")
    # Now that it can be moved, it is.
    list(store.list())
    assert [problem.set_aside is None for problem in store.problems()] == [False]


@POSIX
@pytest.mark.promise("threads.full_disk")
def test_a_file_that_may_not_be_opened(open_folder: Path, strict: bool) -> None:
    """A file without permission is no corrupt file: it stays, and is reported as what it is."""
    place = open_folder / "threads"
    store = ConversationStore(place, strict=strict)
    store.append_user("c", "before")
    place.chmod(0o777)
    (place / "c.json").chmod(0)
    with no_permission(open_folder):
        if strict:
            with pytest.raises(StoreError):
                store.get("c")
        else:
            assert store.get("c") is None
            assert store.recent("c") == ()
        assert store.list() == ()
        assert [problem.conversation_id for problem in store.problems()] == ["c"]
    assert [turn.text for turn in store.recent("c")] == ["before"]
    assert not (place / ".corrupt").exists()


@POSIX
@pytest.mark.promise("threads.full_disk")
def test_a_directory_that_cannot_be(tmp_path: Path, strict: bool) -> None:
    """A file in the place of the directory is an error of ours, not a crash."""
    (tmp_path / "file").write_text("in the way")
    store = ConversationStore(tmp_path / "file" / "threads", strict=strict)
    if strict:
        with pytest.raises(StoreError):
            store.append_user("c", "lost")
    else:
        assert not store.append_user("c", "lost")
        assert store.failures == 1
    assert store.list() == ()


FILL = """
import json, sys
from pathlib import Path
from anaphora.errors import DiskFull
from anaphora.store.threads.file_store import ConversationStore

place, strict, size = Path(sys.argv[1]), sys.argv[2] == "strict", int(sys.argv[3])
store = ConversationStore(place, strict=strict)
kept, refused = 0, 0
for number in range(400):
    try:
        done = store.append("c", "user", f"{number} " + "x" * size)
    except DiskFull:
        done = False
    kept, refused = kept + done, refused + (not done)
    if refused == 3:
        break
turns = json.loads((place / "c.json").read_bytes())["turns"]
store.redact("c", 0)
print(json.dumps({
    "kept": kept, "refused": refused, "failures": store.failures,
    "numbers": [turn["text"].split()[0] for turn in turns],
    "left": [path.name for path in place.iterdir() if path.name.endswith(".tmp")],
    "after": store.append("other", "user", "small"),
}))
"""


def check_filled(command: list[str], strict: bool) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["kept"] > 3
    assert report["refused"] == 3
    assert report["failures"] >= (0 if strict else 3)
    assert report["numbers"] == [str(number) for number in range(report["kept"])]
    assert report["left"] == []


LIMIT = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))\n"


@POSIX
@pytest.mark.promise("threads.full_disk")
def test_no_room_for_a_larger_file(tmp_path: Path, strict: bool) -> None:
    """When a file may not grow, the error is DiskFull, and the turns before it stay."""
    kind = "strict" if strict else "bare"
    check_filled([sys.executable, "-c", LIMIT + FILL, str(tmp_path), kind, "3000"], strict)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a tmpfs")
@pytest.mark.promise("threads.full_disk")
def test_a_full_disk(tmp_path: Path, strict: bool) -> None:
    """On a full tmpfs the error is DiskFull, the turns before it stay, no rest is left."""
    mount = f"mount -t tmpfs -o size=256k tmpfs {tmp_path}"
    # A mount namespace of its own: nothing is left mounted whatever happens.
    own = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    probe = subprocess.run([*own, "sh", "-c", mount], capture_output=True, text=True, check=False)
    if probe.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {probe.stderr.strip()}")
    script = tmp_path.parent / f"fill-{tmp_path.name}.py"
    script.write_text(FILL)
    kind = "strict" if strict else "bare"
    run = f"{mount} && exec {sys.executable} {script} {tmp_path} {kind} 3000"
    check_filled([*own, "sh", "-c", run], strict)


def test_disk_full_is_one_of_ours() -> None:
    """Whoever catches StoreError catches every way in which a disk can refuse."""
    assert issubclass(DiskFull, StoreError)
    assert issubclass(ReadOnly, StoreError)
    assert issubclass(CorruptThread, StoreError)
