"""The conversation store: one file a thread, as Go writes it, durable and never fatal."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from datetime import timedelta
from pathlib import Path

from tests.conformance.desk import NOW, Desk
from tests.conformance.table import Seed, refusal

from anaphora import ConversationStore, Memory, conversations_dir
from anaphora.errors import InvalidId, StoreError
from anaphora.values.conversations import NewTurn

SEED = Seed("001", "conversation store")
row = SEED.row

# What Go's encoding/json writes for the seed's structs.
DAEMON = (
    '{"conversation_id":"daemon1","turns":[{"role":"user","text":"from the daemon \\u003cb\\u003e",'
    '"ts":"2026-01-02T03:04:05.1Z"}],"updated":"2026-01-02T03:04:05.1Z"}'
)


def store(desk: Desk) -> ConversationStore:
    """A bare store with the desk's clock."""
    return ConversationStore(desk.folder / "threads", clock=desk.clock)


@row("7", "one JSON file a conversation; it survives a restart")
def one_file(desk: Desk) -> str:
    store(desk).append_user("conv_1", "kept")
    assert [p.name for p in (desk.folder / "threads").glob("*.json")] == ["conv_1.json"]
    assert store(desk).recent("conv_1")[0].text == "kept"
    return "conv_1.json; all there when opened again"


@row("14", "byte-compatible with the daemon")
def bytes_of_go(desk: Desk) -> str:
    folder = desk.folder / "threads"
    folder.mkdir()
    (folder / "daemon1.json").write_text(DAEMON)
    desk.now = NOW
    store(desk).append_user("daemon1", "from here & there")
    told = json.loads((folder / "daemon1.json").read_text())
    first = (folder / "daemon1.json").read_text()
    assert "\\u003cb\\u003e" in first
    assert "\\u0026" in first
    assert list(told) == ["conversation_id", "turns", "updated"]
    return "escapes, order and times as Go writes them"


@row("14 listed", "the daemon's threads and one's own are one list")
def one_list(desk: Desk) -> str:
    folder = desk.folder / "threads"
    folder.mkdir()
    (folder / "daemon1.json").write_text(DAEMON)
    memory = desk.memory(conversations_dir=folder)
    memory.conversations.append_user("neo1", "own")
    assert {one.conversation_id for one in memory.conversations.list()} == {"daemon1", "neo1"}
    return "daemon1 and neo1"


@row("16", "a pure side channel")
def side_channel(desk: Desk) -> str:
    cortex = desk.folder / "cortex"
    cortex.mkdir()
    (cortex / "chain").write_text("replay")
    folder = conversations_dir(None, cortex)
    assert folder is not None
    ConversationStore(folder).append_user("a", "x")
    assert [p.name for p in cortex.iterdir()] == ["chain"]
    assert (cortex / "chain").read_text() == "replay"
    return "the cortex beside it is untouched"


def _append_for_ever(folder: str, told: str) -> None:
    kept = ConversationStore(folder)
    with Path(told).open("a") as log:
        for place in range(100_000):
            kept.append_user("a", f"turn {place}")
            log.write(f"{place}\n")
            log.flush()


@row("18", "atomic: a crash never leaves a corrupt file")
def atomic(desk: Desk) -> str:
    told = desk.folder / "told"
    child = multiprocessing.get_context("spawn").Process(
        target=_append_for_ever, args=(str(desk.folder / "threads"), str(told))
    )
    child.start()
    while not told.exists() or len(told.read_text().split()) < 20:
        child.join(0.01)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    acknowledged = len(told.read_text().split())
    kept = store(desk)
    thread = kept.get("a")
    assert thread is not None
    assert len(thread.turns) >= acknowledged
    assert not kept.problems()
    return "killed while it appended: all that was acknowledged is there, no problem"


@row("20", "IO errors are logged, never fatal")
def never_fatal(desk: Desk) -> str:
    (desk.folder / "threads").write_text("a file in the way")
    kept = store(desk)
    assert not kept.append_user("a", "x")
    assert kept.failures == 1
    assert kept.recent("a") == ()
    return "False, one failure counted; reads give nothing"


@row(
    "20 inside a Memory",
    "the same",
    on_purpose=("docs/reference/python.md", "raises"),
)
def strict(desk: Desk) -> str:
    desk.home.mkdir()
    (desk.home / "conversations").write_text("a file in the way")
    said = refusal(StoreError, lambda: desk.memory().conversations.append_user("a", "x"))
    return f"a Memory's conversations are strict: {said}"


@row("20 text", "a blank text is ignored")
def blank_text(desk: Desk) -> str:
    assert not store(desk).append_user("c", "  ")
    return "False"


@row(
    "20 id",
    "a blank conversation id is ignored",
    on_purpose=("docs/decisions/0003-thread-files.md", "blank"),
)
def blank_id(desk: Desk) -> str:
    return refusal(InvalidId, lambda: store(desk).append_user("", "x"))


@row("25-29", "without a directory a store that does nothing")
def disabled(desk: Desk) -> str:
    for directory in ("", None, "  "):
        kept = ConversationStore(directory)
        assert not kept.enabled
        assert not kept.append_user("a", "x")
        assert (kept.recent("a"), kept.get("a"), kept.list()) == ((), None, ())
    return "enabled False; append False; reads empty"


@row("33-38", "a turn: role, text, intent_id if any, ts")
def turn_shape(desk: Desk) -> str:
    kept = store(desk)
    kept.append_user("a", "x")
    kept.append_assistant("a", "y", intent_id="i1")
    turns = json.loads((desk.folder / "threads/a.json").read_text())["turns"]
    assert [list(t) for t in turns] == [["role", "text", "ts"], ["role", "text", "intent_id", "ts"]]
    return "in that order; intent_id only where there is one"


@row("42-47", "a record: conversation_id, title if any, turns, updated")
def record_shape(desk: Desk) -> str:
    kept = store(desk)
    kept.append_user("a", "x")
    kept.set_title("a", "A title")
    record = json.loads((desk.folder / "threads/a.json").read_text())
    assert list(record) == ["conversation_id", "title", "turns", "updated"]
    return "in that order"


@row("53", "Append(id, turn)")
def append(desk: Desk) -> str:
    kept = store(desk)
    assert kept.append("a", "user", "x", ts=NOW, intent_id="i")
    assert len(kept.recent("a")) == 1
    return "True; one turn more"


@row("54", "AppendUser(id, text)")
def append_user(desk: Desk) -> str:
    assert store(desk).append_user("a", "x")
    assert store(desk).recent("a")[0].role == "user"
    return "as said"


@row(
    "55",
    "AppendAssistant(id, intentID, text)",
    on_purpose=("docs/reference/python.md", "intent_id: str = ''"),
)
def append_assistant(desk: Desk) -> str:
    assert store(desk).append_assistant("a", "x", intent_id="i")
    assert store(desk).recent("a")[0].intent_id == "i"
    return "the text second, the intent by keyword"


@row("57", "a turn without a time gets now, in UTC")
def default_time(desk: Desk) -> str:
    kept = store(desk)
    kept.append_user("a", "x")
    turn = kept.recent("a")[0]
    assert turn.ts == NOW
    assert turn.ts_text.endswith("Z")
    return turn.ts_text


@row("57 unbounded", "all turns are retained")
def unbounded(desk: Desk) -> str:
    kept = store(desk)
    kept.extend("a", [NewTurn("user", f"turn {n}") for n in range(5000)])
    thread = kept.get("a")
    assert thread is not None
    assert len(thread.turns) == 5000
    return "5,000 turns kept"


@row("61-63", "Recent: the last n, oldest first; none: nil")
def recent(desk: Desk) -> str:
    kept = store(desk)
    for place in range(5):
        kept.append_user("a", str(place))
    assert [t.text for t in kept.recent("a", 3)] == ["2", "3", "4"]
    assert kept.recent("nobody") == ()
    return "2, 3, 4; an unknown id gives none"


@row("63", "16 by default")
def sixteen(desk: Desk) -> str:
    kept = store(desk)
    for place in range(20):
        kept.append_user("a", str(place))
    assert len(kept.recent("a")) == 16
    return "16 of 20"


@row("67-69", "Get: the whole log, or nil")
def get(desk: Desk) -> str:
    kept = store(desk)
    kept.append_user("a", "x")
    thread = kept.get("a")
    assert thread is not None
    assert thread.conversation_id == "a"
    assert kept.get("b") is None
    return "a Thread; None"


@row("73-83", "List: newest first, with id, title, preview, count, updated")
def listed(desk: Desk) -> str:
    kept = store(desk)
    kept.append_user("old", "the first")
    desk.later(minutes=1)
    kept.append_user("new", "hello")
    kept.append_assistant("new", "there")
    newest, oldest = kept.list()
    assert (newest.conversation_id, oldest.conversation_id) == ("new", "old")
    assert (newest.title, newest.preview, newest.turn_count) == ("hello", "there", 2)
    assert newest.updated == NOW + timedelta(minutes=1)
    return "as said"


@row("85", "title: first user turn, 60 runes; preview: last turn, 100")
def labels(desk: Desk) -> str:
    kept = store(desk)
    kept.append_user("a", "🐶" + "x" * 150)
    (one,) = kept.list()
    assert (one.title, one.preview) == ("🐶" + "x" * 59 + "…", "🐶" + "x" * 99 + "…")
    return "cut after 60 and 100 runes"


@row("90-91", "NEO_CONVERSATIONS_DIR wins")
def environment(desk: Desk) -> str:
    folder = desk.folder / "neo"
    ConversationStore(folder).append_user("there", "x")
    done = desk.anaphora("conversation", "list", NEO_CONVERSATIONS_DIR=str(folder))
    assert "there" in done.stdout
    return "its threads are listed"


@row("92-93", "Dir(override, cortexRoot): else the sibling of the root, else none")
def directory(desk: Desk) -> str:
    assert conversations_dir("/chats", "/data/cortex") == Path("/chats")
    assert conversations_dir(None, "/data/cortex") == Path("/data/conversations")
    assert conversations_dir(None, None) is None
    return "anaphora.conversations_dir"


@row("100", "a file written by either is readable by the other")
def both_ways(desk: Desk) -> str:
    folder = desk.folder / "threads"
    folder.mkdir()
    (folder / "daemon1.json").write_text(DAEMON)
    with Memory.open(desk.home, conversations_dir=folder, embedder="hashing") as memory:
        memory.conversations.append_user("daemon1", "our turn")
        record = json.loads((folder / "daemon1.json").read_text())
        record["turns"].append({"role": "user", "text": "a zeppelin", "ts": "2026-02-01T00:00:00Z"})
        (folder / "daemon1.json").write_text(json.dumps(record))
        hits = memory.recall_conversation("daemon1", "zeppelin")
    assert hits[0].index == 2
    return "theirs, ours, theirs: three turns in order, recall sees each"
