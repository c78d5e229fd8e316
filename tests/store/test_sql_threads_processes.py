"""Several processes write threads of one database, and are killed while they write."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.ingest.import_stores import import_into

from anaphora import ImportedConversation, ImportedTurn
from anaphora.store.db.engine import Database
from anaphora.store.threads.sidecar import Sidecar
from anaphora.store.threads.sql_store import SqlConversationStore

pytestmark = pytest.mark.internal

CHILD = Path(__file__).with_name("sql_thread_child.py")
OpenTruth = Callable[[], Database]


def start(
    database: Path | str, conversation_id: str, count: int, label: str
) -> subprocess.Popen[str]:
    arguments = [sys.executable, str(CHILD), str(database), conversation_id, str(count), label]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def opened(truth: Database) -> SqlConversationStore:
    return SqlConversationStore(truth, "default", sidecar=Sidecar(truth, "default"))


@pytest.mark.promise("threads.processes")
def test_eight_processes_lose_no_turn(database: Path | str, open_again: OpenTruth) -> None:
    """Eight processes append to one thread: every turn once, in each one's order, places dense."""
    children = [start(database, "shared", 12, f"p{n}") for n in range(8)]
    for child in children:
        child.communicate()
        assert child.returncode == 0
    truth = open_again()
    thread = opened(truth).get("shared")
    assert thread is not None
    for n in range(8):
        own = [turn.text for turn in thread.turns if turn.text.startswith(f"p{n} ")]
        assert own == [f"p{n} {number}" for number in range(12)]
    assert all(turn.speaker == turn.text.split()[0] for turn in thread.turns)
    places = truth.rows("SELECT position FROM turn ORDER BY position", {})
    assert [place for (place,) in places] == list(range(96))


@pytest.mark.promise("threads.durable")
@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is a signal")
def test_killed_processes_leave_every_acknowledged_turn(
    database: Path | str, open_again: OpenTruth
) -> None:
    """Whenever a writer is killed, what it acknowledged is there, once, and nothing is torn."""
    moments = random.Random(20260430)
    truth = open_again()
    store = opened(truth)
    acknowledged: list[str] = []
    for life in range(6):
        child = start(database, "thread", 2_000, f"life{life}")
        assert child.stdout is not None
        wanted = moments.randrange(2, 30)
        for line in child.stdout:
            if line.strip() != "ready":
                acknowledged.append(f"life{life} {line.strip()}")
            wanted -= 1
            if wanted <= 0:
                break
        child.kill()
        # Not `communicate` alone: it does not see what was read ahead line by line.
        rest = child.stdout.read()
        child.communicate()
        acknowledged += [f"life{life} {number}" for number in rest.split() if number != "ready"]
        found = store.recent("thread", 100_000)
        texts = [turn.text for turn in found]
        # What was written and not yet acknowledged may be there too, once.
        assert [text for text in texts if text in set(acknowledged)] == acknowledged
        assert len(texts) <= len(acknowledged) + life + 1
        assert all(turn.speaker == turn.text.split()[0] for turn in found)
        assert store.list()[0].turn_count == len(texts)
    assert store.append("thread", "user", "the next one")


def chat(number: int) -> ImportedConversation:
    turns = tuple(
        ImportedTurn(f"m{n}", f"m{n - 1}" if n else None, "user", f"chat {number} line {n}")
        for n in range(20)
    )
    return ImportedConversation("chatgpt", f"k{number}", f"c{number}", turns, title="Imported")


def test_two_imports_of_one_chat_bring_it_once(open_again: OpenTruth) -> None:
    """Importers on two connections wait for each other: every message comes in once."""
    stores = [opened(open_again()) for _ in range(4)]
    chats = [chat(number) for number in range(3)]
    with ThreadPoolExecutor(4) as pool:
        reports = list(
            pool.map(
                lambda store: import_into(chats, store, Sidecar(store.truth, "default")),
                stores,
            )
        )
    assert sum(report.added for report in reports) == 60
    assert sum(report.known for report in reports) == 180
    listed = stores[0].list()
    assert [(summary.turn_count, summary.title) for summary in listed] == [(20, "Imported")] * 3


def test_truth_that_was_put_back_is_listed_anew(open_again: OpenTruth) -> None:
    """When truth's numbers go back, as after a restore, nothing of what came after is listed."""
    truth = open_again()
    store = opened(truth)
    store.append_user("kept", "one")
    store.append_user("lost", "two")
    assert len(store.list()) == 2
    with truth.write("default") as write:
        from sqlalchemy import delete

        from anaphora.store.db.schema import metadata

        for table in (metadata.tables["turn"], metadata.tables["thread"]):
            write.connection.execute(delete(table).where(table.c.conversation_id == "lost"))
    assert [summary.conversation_id for summary in store.list()] == ["kept"]
