"""What a conversation store does for its caller when nothing goes wrong."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from anaphora import ConversationStore, NewTurn, conversations_dir
from anaphora.errors import StoreError
from anaphora.store.db.engine import open_database
from anaphora.store.threads.gojson import decode, encode
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
