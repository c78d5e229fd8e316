"""The conversation store: one file a thread, as Go writes it, durable and never fatal."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from tests.conformance.desk import NOW, Desk
from tests.conformance.table import Seed, refusal
from tests.conformance.threads import append as append_as_daemon
from tests.conformance.threads import as_go_writes, listed, not_of_go
from tests.docs.reference_pages import reference_page

import anaphora
from anaphora import ConversationStore, conversations_dir
from anaphora.errors import InvalidId, StoreError
from anaphora.values.conversations import NewTurn

SEED = Seed("001", "conversation store")
row = SEED.row

TEXTS = (
    "plain",
    '<b>&amp;</b> \u2028\u2029 "q" \\ \n\r\t',
    "emoji 🐶 漢字 é",
    "tail space ",
    "a" * 5000,
    "\ufeffbom",
    "\u0085 nel \x7f",
)


def folder_of(desk: Desk) -> Path:
    """Where the threads of a bare store lie."""
    return desk.folder / "threads"


def store(desk: Desk, **options: Any) -> ConversationStore:
    """A bare store with the desk's clock."""
    return ConversationStore(folder_of(desk), **{"clock": desk.clock, **options})


def texts(desk: Desk, conversation_id: str) -> list[str]:
    """The texts of a thread, read by a store that has not seen it."""
    thread = store(desk).get(conversation_id)
    return [] if thread is None else [turn.text for turn in thread.turns]


@row("7", "one JSON file a conversation; it survives a restart")
def one_file(desk: Desk) -> str:
    store(desk).append_user("conv_1", "kept")
    assert [path.name for path in folder_of(desk).glob("*.json")] == ["conv_1.json"]
    assert store(desk).recent("conv_1")[0].text == "kept"
    return "conv_1.json; all there when opened again"


@row("14", "byte-compatible with the daemon, in threads of either and of both")
def bytes_of_go(desk: Desk) -> str:
    kept = store(desk, clock=None)
    for number, text in enumerate(TEXTS):
        if number % 2:
            kept.append_assistant("neo1", text, intent_id=f"int_{number}")
        else:
            kept.append_user("neo1", text)
        append_as_daemon(folder_of(desk), "daemon1", text)
    kept.append_user("daemon1", "ours <after> & it")
    append_as_daemon(folder_of(desk), "daemon1", "theirs again", role="assistant", intent="i9")
    kept.append_assistant("daemon1", "ours 2", intent_id="x")
    kept.set_title("neo1", "A <title>")
    assert not_of_go(folder_of(desk)) == []
    assert texts(desk, "daemon1") == [*TEXTS, "ours <after> & it", "theirs again", "ours 2"]
    assert texts(desk, "neo1") == list(TEXTS)
    return "escapes, order and times as Go writes them, byte for byte"


@row("14 listed", "the daemon's threads and one's own are one list, on the command line too")
def one_list(desk: Desk) -> str:
    cortex = desk.folder / "data" / "cortex"
    cortex.mkdir(parents=True)
    (cortex / "chain").write_text("replay")
    folder = conversations_dir(None, cortex)
    assert folder is not None
    append_as_daemon(folder, "daemon1", "hello from the daemon")
    with desk.memory(conversations_dir=folder) as memory:
        memory.conversations.append_user("neo1", "own")
        ids = {summary.conversation_id for summary in memory.conversations.list()}
    printed = items(desk.json("--conversations-dir", str(folder), "conversation", "list"))
    assert ids == {item["conversation_id"] for item in printed} == set(listed(folder))
    assert ids == {"daemon1", "neo1"}
    assert (cortex / "chain").read_text() == "replay"
    assert [path.name for path in cortex.iterdir()] == ["chain"]
    return "daemon1 and neo1, in Python, on the command line and for the daemon"


def items(printed: Any) -> list[dict[str, Any]]:
    """The rows of a list that the command line printed."""
    rows: list[dict[str, Any]] = printed if isinstance(printed, list) else printed["items"]
    return rows


@row("14 capitals", "ids with capitals and letters beyond ASCII share one file with the daemon")
def one_file_for_every_id(desk: Desk) -> str:
    for conversation_id in ("Conv_ABC", "01HZX3ULIDUPPER", "gespräch"):
        store(desk).append_user(conversation_id, "ours first")
        append_as_daemon(folder_of(desk), conversation_id, "theirs second")
        assert texts(desk, conversation_id) == ["ours first", "theirs second"]
        counts = {one.conversation_id: one.turn_count for one in store(desk).list()}
        assert counts[conversation_id] == listed(folder_of(desk))[conversation_id] == 2
    assert not store(desk).problems()
    return "Conv_ABC, a ULID, gespräch: ours and theirs in one thread, listed by both"


@row("14 capitals reversed", "the same where the daemon wrote first")
def one_file_after_the_daemon(desk: Desk) -> str:
    append_as_daemon(folder_of(desk), "Conv_ABC", "theirs first")
    store(desk).append_user("Conv_ABC", "ours second")
    append_as_daemon(folder_of(desk), "Conv_ABC", "theirs third")
    assert texts(desk, "Conv_ABC") == ["theirs first", "ours second", "theirs third"]
    return "three turns in order"


@row("16", "a pure side channel: nothing is written beside the folder of conversations")
def side_channel(desk: Desk) -> str:
    store(desk).append_user("a", "x")
    assert [path.name for path in desk.folder.iterdir()] == ["threads"]
    return "only the folder of threads"


APPENDING = """
import sys
from anaphora import ConversationStore
kept = ConversationStore(sys.argv[1])
thread = kept.get("a")
number = len(thread.turns) if thread else 0
while True:
    assert kept.append_user("a", f"turn {number} " + "x" * 200)
    print(number, flush=True)
    number += 1
"""


@row("18", "atomic: a crash never leaves a corrupt file, nor loses what was acknowledged")
def atomic(desk: Desk) -> str:
    turns = 0
    for _ in range(6):
        child = subprocess.Popen(
            [sys.executable, "-c", APPENDING, str(folder_of(desk))],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(20)]
        os.kill(child.pid, signal.SIGKILL)
        rest, _ = child.communicate()
        whole = [line for line in [*lines, *rest.splitlines(keepends=True)] if line.endswith("\n")]
        kept = store(desk)
        thread = kept.get("a")
        assert thread is not None
        turns = len(thread.turns)
        assert turns >= int(whole[-1]) + 1
        assert not kept.problems()
    return f"killed six times while it appended: {turns} turns, none lost, no problem"


@row("20", "IO errors are logged, never fatal")
def never_fatal(desk: Desk) -> str:
    folder_of(desk).write_text("a file in the way")
    records: list[logging.LogRecord] = []

    class Collecting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    handler = Collecting()
    logging.getLogger("anaphora").addHandler(handler)
    try:
        kept = store(desk)
        assert kept.append_user("a", "x") is False
    finally:
        logging.getLogger("anaphora").removeHandler(handler)
    assert kept.failures == 1
    assert (kept.recent("a"), kept.get("a"), kept.list()) == ((), None, ())
    assert records
    return f"False, one failure counted; reads give nothing; logged: {records[0].getMessage()}"


@row(
    "20 inside a Memory",
    "the same",
    on_purpose="docs/seeds.md#a-memory-does-not-swallow-errors-of-the-disk",
)
def strict(desk: Desk) -> str:
    desk.home.mkdir()
    (desk.home / "conversations").write_text("a file in the way")
    said = refusal(StoreError, lambda: desk.memory().conversations.append_user("a", "x"))
    return f"a Memory's conversations are strict: {said}"


@row("20 text", "a blank text is ignored")
def blank_text(desk: Desk) -> str:
    assert [store(desk).append_user("c", text) for text in ("", "  ", "\n")] == [False] * 3
    assert store(desk).get("c") is None
    return "False, and no thread"


@row(
    "20 id",
    "a blank conversation id is ignored",
    on_purpose="docs/seeds.md#a-blank-id-is-refused",
)
def blank_id(desk: Desk) -> str:
    assert not ConversationStore("").append_user("", "x")
    return refusal(InvalidId, lambda: store(desk).append_user("", "x"))


@row("20 corrupt", "a file that does not parse is set aside, never fatal, never lost")
def corrupt(desk: Desk) -> str:
    folder_of(desk).mkdir()
    damaged = '{"conversation_id":"x","turns":[{"ro'
    (folder_of(desk) / "x.json").write_text(damaged)
    kept = store(desk)
    assert kept.get("x") is None
    assert kept.recent("x") == ()
    assert kept.append_user("x", "new")
    assert kept.problems()
    copies = (folder_of(desk) / ".corrupt").iterdir()
    assert [path.read_text() for path in copies] == [damaged]
    return "set aside whole; an append begins a new file; problems() names it"


@row("25-29", "without a directory a store that does nothing")
def disabled(desk: Desk) -> str:
    del desk
    for directory in ("", None, "  "):
        kept = ConversationStore(directory)
        assert not kept.enabled
        assert not kept.append_user("a", "x")
        assert (kept.recent("a"), kept.get("a"), kept.list(), kept.problems()) == ((), None, (), ())
        assert not kept.delete("a")
        assert not kept.set_title("a", "b")
        assert not kept.redact("a", 0)
    return "enabled False; writes False; reads empty"


@row("33", "role is user or assistant; others are kept as they are, a blank one is refused")
def roles(desk: Desk) -> str:
    kept = store(desk)
    assert kept.append("a", "system", "x")
    assert kept.recent("a")[0].role == "system"
    refusal(anaphora.errors.InvalidTurn, lambda: kept.append("a", "", "x"))
    refusal(anaphora.errors.InvalidTurn, lambda: kept.append("a", " ", "x"))
    return "system kept; blank: InvalidTurn"


@row("33-38", "a turn: role, text, intent_id if any, ts")
def turn_shape(desk: Desk) -> str:
    desk.now = datetime(2026, 1, 2, 3, 4, 5, 120000, tzinfo=UTC)
    kept = store(desk)
    kept.append_user("a", "x")
    kept.append_assistant("a", "y", intent_id="i1")
    assert json.loads((folder_of(desk) / "a.json").read_text())["turns"] == [
        {"role": "user", "text": "x", "ts": "2026-01-02T03:04:05.12Z"},
        {"role": "assistant", "text": "y", "intent_id": "i1", "ts": "2026-01-02T03:04:05.12Z"},
    ]
    turns = json.loads((folder_of(desk) / "a.json").read_text())["turns"]
    assert [*turns[1]] == ["role", "text", "intent_id", "ts"]
    return "in that order; intent_id only where there is one"


@row("42-47", "a record: conversation_id, title if any, turns, updated")
def record_shape(desk: Desk) -> str:
    kept = store(desk)
    kept.append_user("a", "x")
    path = folder_of(desk) / "a.json"
    assert [*json.loads(path.read_text())] == ["conversation_id", "turns", "updated"]
    kept.set_title("a", "A title")
    assert [*json.loads(path.read_text())] == ["conversation_id", "title", "turns", "updated"]
    return "in that order; title only where there is one"


@row("45", "a thread that was never filled (turns null) is read, listed and extended")
def never_filled(desk: Desk) -> str:
    folder_of(desk).mkdir()
    empty = {"conversation_id": "e1", "turns": None, "updated": "2026-01-02T03:04:05Z"}
    (folder_of(desk) / "e1.json").write_bytes(as_go_writes(empty))
    thread = store(desk).get("e1")
    assert thread is not None
    assert thread.turns == ()
    (summary,) = store(desk).list()
    assert (summary.conversation_id, summary.turn_count) == ("e1", 0)
    assert store(desk).append_user("e1", "now")
    assert texts(desk, "e1") == ["now"]
    assert not_of_go(folder_of(desk)) == []
    return "no turns; then one"


@row("53", "Append(id, turn)")
def append(desk: Desk) -> str:
    kept = store(desk)
    moment = datetime(2025, 5, 5, 5, 5, 5, tzinfo=timezone(timedelta(hours=2)))
    assert kept.append("a", "user", "x", intent_id="i", ts=moment)
    (turn,) = kept.recent("a")
    assert (turn.role, turn.intent_id, turn.ts) == ("user", "i", moment)
    assert turn.ts_text == "2025-05-05T05:05:05+02:00"
    return "role, intent and time as they were given"


@row("54", "AppendUser(id, text)")
def append_user(desk: Desk) -> str:
    assert store(desk).append_user("a", "x")
    assert store(desk).recent("a")[0].role == "user"
    return "as said"


@row(
    "55",
    "AppendAssistant(id, intentID, text)",
    on_purpose="docs/seeds.md#the-intent-by-keyword",
)
def append_assistant(desk: Desk) -> str:
    kept = store(desk)
    refusal(TypeError, lambda: kept.append_assistant("a", "i1", "the text"))  # type: ignore[call-arg]
    assert kept.append_assistant("a", "x", intent_id="i")
    assert kept.recent("a")[0].intent_id == "i"
    return "the text second, the intent by keyword; the seed's order is refused"


@row("57", "a turn without a time gets now, in UTC")
def default_time(desk: Desk) -> str:
    kept = store(desk)
    kept.append_user("a", "x")
    turn = kept.recent("a")[0]
    assert turn.ts == NOW
    assert turn.ts_text.endswith("Z")
    before = datetime.now(UTC)
    ConversationStore(folder_of(desk)).append_user("b", "x")
    assert before <= kept.recent("b")[0].ts <= datetime.now(UTC)
    return turn.ts_text


@row("57 unbounded", "all turns are retained")
def unbounded(desk: Desk) -> str:
    kept = store(desk)
    kept.extend("a", [NewTurn("user", f"turn {n}") for n in range(5000)])
    kept.append_user("a", "5001")
    assert len(texts(desk, "a")) == 5001
    return "5,001 turns kept"


@row("61-63", "Recent: the last n, oldest first; none: nil")
def recent(desk: Desk) -> str:
    kept = store(desk)
    for number in range(20):
        kept.append_user("a", str(number))
    assert [turn.text for turn in kept.recent("a", 3)] == ["17", "18", "19"]
    assert kept.recent("unknown") == ()
    assert len(kept.recent("a", 100)) == 20
    return "17, 18, 19; an unknown id gives none"


@row("63", "16 by default")
def sixteen(desk: Desk) -> str:
    kept = store(desk)
    for number in range(20):
        kept.append_user("a", str(number))
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


FIELDS = ["conversation_id", "title", "preview", "turn_count", "updated"]


@row("73-83", "List: newest first, with id, title, preview, count, updated")
def summaries(desk: Desk) -> str:
    with desk.memory() as memory:
        kept = memory.conversations
        kept.append_user("old", "the first")
        desk.later(minutes=1)
        kept.append_user("new", "hello")
        kept.append_assistant("new", "there")
        newest, oldest = kept.list()
    assert (newest.conversation_id, oldest.conversation_id) == ("new", "old")
    assert (newest.title, newest.preview, newest.turn_count) == ("hello", "there", 2)
    assert newest.updated == NOW + timedelta(minutes=1)
    first = items(desk.json("conversation", "list"))[0]
    assert set(FIELDS) <= set(first)
    assert first["conversation_id"] == "new"
    return "as said; the same fields from the command line"


@row("73, 100", "the shapes of the web client, over HTTP")
def web_client(desk: Desk) -> str:
    with desk.memory() as memory:
        memory.conversations.append_user("a", "x <b>")
        memory.conversations.append_assistant("a", "y", intent_id="i")
    client = desk.client()
    (summary,) = client.get("/conversations").json()["items"]
    assert [*summary] == FIELDS
    record = client.get("/conversations/a").json()
    assert [*record] == ["conversation_id", "turns", "updated"]
    assert [*record["turns"][1]] == ["role", "text", "intent_id", "ts"]
    assert client.get("/conversations/other").status_code == 404
    return "/conversations and /conversations/{id}, key for key"


@row("85", "title: first user turn, 60 runes; preview: last turn, 100")
def labels(desk: Desk) -> str:
    kept = store(desk)
    kept.append_assistant("a", "assistant first")
    kept.append_user("a", "🐶" + "x" * 150)
    kept.append_assistant("a", "  last\n line  " + "y" * 150)
    (summary,) = kept.list()
    assert summary.title == "🐶" + "x" * 59 + "…"
    assert summary.preview == "last line " + "y" * 90 + "…"
    return "cut after 60 and 100 runes, white space folded"


@row("90-91", "NEO_CONVERSATIONS_DIR wins")
def environment(desk: Desk) -> str:
    neo, own = desk.folder / "neo", desk.folder / "own"
    ConversationStore(neo).append_user("in_neo", "x")
    ConversationStore(own).append_user("in_own", "x")

    def ids(**settings: str) -> set[str]:
        return {one["conversation_id"] for one in items(desk.json(*words, settings=settings))}

    words = ("conversation", "list")
    assert ids(NEO_CONVERSATIONS_DIR=str(neo)) == {"in_neo"}
    assert ids(NEO_CONVERSATIONS_DIR="") == set()
    settings = {"NEO_CONVERSATIONS_DIR": str(neo), "ANAPHORA_CONVERSATIONS_DIR": str(own)}
    assert ids(**settings) == {"in_own"}
    return "its threads are listed; our own variable goes before it, an empty one is not set"


@row("92-93", "Dir(override, cortexRoot): else the sibling of the root, else none")
def directory(desk: Desk) -> str:
    del desk
    assert "conversations_dir" in anaphora.__all__
    assert conversations_dir("/chats", "/data/cortex") == Path("/chats")
    assert conversations_dir(None, "/data/cortex") == Path("/data/conversations")
    assert conversations_dir("  ", "/data/cortex/") == Path("/data/conversations")
    assert conversations_dir(None, "cortex") == Path("conversations")
    assert conversations_dir(None, None) is None
    assert conversations_dir("", "") is None
    page = reference_page("python.md")
    assert re.search(r"def conversations_dir\(", page)
    return "anaphora.conversations_dir, on the page of the Python reference"


@row("98-100", "a file written by either is readable by the other, and recall sees each turn")
def both_ways(desk: Desk) -> str:
    memory = desk.memory("minilm", clock=None)  # the daemon's time is the machine's
    folder = desk.home / "conversations"
    for number, text in enumerate(("zeppelin <x>", "harpsichord", "xylophone", "bassoon")):
        if number % 2:
            memory.conversations.append_user("conv_0a1b", f"we say {text}")
        else:
            append_as_daemon(folder, "conv_0a1b", f"the daemon says {text}")
    asked = ("zeppelin", "harpsichord", "xylophone", "bassoon")
    indexes = [memory.recall_conversation("conv_0a1b", word)[0].index for word in asked]
    assert indexes == [0, 1, 2, 3]
    assert not_of_go(folder) == []
    return "theirs, ours, theirs, ours: four turns in order, recall sees each"


@row("18 modes", "no temporary file is listed, and files are the user's alone")
def private(desk: Desk) -> str:
    store(desk).append_user("a", "x")
    assert listed(folder_of(desk)) == {"a": 1}
    assert [path.name for path in folder_of(desk).iterdir() if path.name[0] != "."] == ["a.json"]
    if os.name == "posix":
        assert stat.S_IMODE((folder_of(desk) / "a.json").stat().st_mode) == 0o600
        assert stat.S_IMODE(folder_of(desk).stat().st_mode) == 0o700
    return "a.json alone; 0600 in 0700"
