"""Threads in the database: byte for byte those of files, with what is noted beside them."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.commands import python
from tests.ingest.import_stores import import_into

from anaphora import ConversationStore, ImportedConversation, ImportedTurn, NewTurn
from anaphora.errors import StoreError
from anaphora.store.db.engine import Database, open_database
from anaphora.store.db.statements import delete
from anaphora.store.threads.gojson import decode
from anaphora.store.threads.sidecar import ConversationNote, Sidecar, TurnNote
from anaphora.store.threads.sql_store import SqlConversationStore

pytestmark = pytest.mark.internal

OpenTruth = Callable[[], Database]
ids = st.sampled_from(["a", "b", "Ünï cödé"])
texts = st.sampled_from(
    ["yes", "a longer secret", "it is: a longer secret!", "<&>\u2028", "\x00\ud800", "  "]
) | st.text(max_size=12)
times = st.datetimes(
    datetime(1990, 1, 1),  # noqa: DTZ001 - the zone comes below
    datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=-9, minutes=-30))]),
)
turns = st.builds(
    NewTurn,
    st.sampled_from(["user", "assistant", "Ann"]),
    texts,
    intent_id=st.sampled_from(["", "i<1>"]),
    ts=times,
    speaker=st.none() | st.just("Nour"),
)


class Parity(RuleBasedStateMachine):
    """One store of files and one of rows are told the same things."""

    @initialize()
    def begin(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.truths = [open_database(self.root / "files.db"), open_database(self.root / "rows.db")]
        beside, within = (Sidecar(truth, "default") for truth in self.truths)
        self.files = ConversationStore(self.root / "threads", strict=True, sidecar=beside)
        self.rows = SqlConversationStore(self.truths[1], "default", sidecar=within)

    def teardown(self) -> None:
        if hasattr(self, "root"):
            for truth in self.truths:
                truth.close()
            shutil.rmtree(self.root)

    @rule(key=ids, news=st.lists(turns, max_size=4))
    def extend(self, key: str, news: list[NewTurn]) -> None:
        assert self.files.extend(key, news) == self.rows.extend(key, news)

    @rule(key=ids, index=st.integers(-1, 6))
    def redact(self, key: str, index: int) -> None:
        assert self.files.redact(key, index) == self.rows.redact(key, index)

    @rule(key=ids)
    def delete(self, key: str) -> None:
        assert self.files.delete(key) == self.rows.delete(key)

    @rule(key=ids, title=texts)
    def entitle(self, key: str, title: str) -> None:
        assert self.files.set_title(key, title) == self.rows.set_title(key, title)

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "root"):
            return
        assert self.files.list() == self.rows.list()
        listed = {summary.conversation_id for summary in self.rows.list()}
        assert {key for key, _ in self.rows.files()} == listed
        for key in ("a", "b", "Ünï cödé"):
            assert self.files.get(key) == self.rows.get(key)
            assert self.files.recent(key, 2) == self.rows.recent(key, 2)
            file = self.files.path(key)
            if file.exists():
                assert self.rows.read_file(key)[0] == file.read_bytes()
            else:
                assert self.rows.stored(key) is None


TestParity = Parity.TestCase
TestParity.settings = settings(
    max_examples=15,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.mark.promise("threads.go_bytes")
@pytest.mark.promise("threads.database")
def test_threads_that_go_wrote_round_trip(go_threads: list[Path], open_again: OpenTruth) -> None:
    """A Go file goes into the database and comes out again byte for byte, nanoseconds and all."""
    store = SqlConversationStore(open_again(), "default")
    assert go_threads
    for number, file in enumerate(go_threads):
        thread = decode(file.read_bytes())
        key = thread.conversation_id or f"t{number}"
        middle = len(thread.turns) // 2
        whole = {"title": thread.title, "updated_text": thread.updated_text}
        assert store.add_exact(key, thread.turns[:middle], 0, **whole)
        assert not store.add_exact(key, thread.turns[middle:], middle + 1, **whole)
        assert store.add_exact(key, thread.turns[middle:], middle)
        assert store.read_file(key)[0] == file.read_bytes()


def test_there_is_no_file(open_again: OpenTruth) -> None:
    """`path` says clearly that there is none; `files` has the names that an export would write."""
    store = SqlConversationStore(open_again(), "default")
    store.append_user("Ünï", "text")
    with pytest.raises(StoreError, match="in its database"):
        store.path("Ünï")
    assert [(key, path.suffix) for key, path in store.files()] == [("Ünï", ".json")]
    assert (store.enabled, store.directory, store.failures) == (True, None, 0)
    assert store.problems() == ()


def test_deleted_words_leave_the_file(tmp_path: Path) -> None:
    """After a deletion and a redaction, no file of a SQLite home holds the words."""
    truth = open_database(tmp_path / "truth.db")
    store = SqlConversationStore(truth, "default")
    store.append_user("a", "the secret is xylophone")
    store.append_user("b", "another zeppelinword here")
    assert store.redact("a", 0)
    assert store.delete("b")
    data = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"xylophone" not in data
    assert b"zeppelinword" not in data
    truth.close()


CHILD = Path(__file__).with_name("sql_thread_child.py")


def start(
    database: Path | str, conversation_id: str, count: int, label: str
) -> subprocess.Popen[str]:
    arguments = [*python(), str(CHILD), str(database), conversation_id, str(count), label]
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
        for table in ("turn", "thread"):
            delete(write.connection, table, (("conversation_id", 1),), ("lost",))
    assert [summary.conversation_id for summary in store.list()] == ["kept"]


ANY_TEXT = st.text(alphabet=st.characters(), max_size=20)


def imported(index: int, conversation: str = "c", message: str | None = None) -> TurnNote:
    key = message or f"m{index}"
    return TurnNote(conversation, index, f"hash{index}", "Ada", "chatgpt", "chat", key)


def test_a_forgotten_message_stays_forgotten_when_its_place_is_taken(truth: Database) -> None:
    """A new turn at the place of a forgotten one does not let an import bring the old one back."""
    sidecar = Sidecar(truth, "default")
    sidecar.note_turns([imported(0)])
    sidecar.forget("c")
    by_hand = TurnNote("c", 0, "new", "Grace")
    sidecar.note_turns([by_hand])
    assert sidecar.turn_notes("c") == {0: by_hand}
    assert sidecar.known("chatgpt", "chat")["m0"].forgotten


def test_a_message_noted_again_is_no_longer_forgotten(truth: Database) -> None:
    """Importing a forgotten message on purpose makes it known as living."""
    sidecar = Sidecar(truth, "default")
    sidecar.note_turns([imported(0)])
    sidecar.forget("c")
    sidecar.note_turns([imported(4, message="m0")])
    assert sidecar.known("chatgpt", "chat") == {"m0": imported(4, message="m0")}
    assert list(sidecar.turn_notes("c")) == [4]


def test_a_living_copy_outlives_a_forgotten_one(truth: Database) -> None:
    """A message that lies in a branch, too, is forgotten only when both copies are."""
    sidecar = Sidecar(truth, "default")
    sidecar.note_turns([imported(0), imported(0, "branch")])
    sidecar.forget("c", 0)
    assert sidecar.known("chatgpt", "chat") == {"m0": imported(0, "branch")}
    sidecar.forget("branch", 0)
    assert sidecar.known("chatgpt", "chat")["m0"].forgotten


def test_the_version_tells_what_changed(truth: Database) -> None:
    """Every change moves the version and names its conversation; what changes nothing does not."""
    sidecar = Sidecar(truth, "default")
    steps: list[tuple[str, Callable[[], object]]] = [
        ("a", lambda: sidecar.note_turns([imported(0, "a")])),
        ("b", lambda: sidecar.note_conversation(ConversationNote("b"))),
        ("d", lambda: sidecar.note_turns([TurnNote("d", 0, "h", "Ada")])),
        ("a", lambda: sidecar.forget("a")),
        ("d", lambda: sidecar.forget("d", 0)),
    ]
    for conversation, change in steps:
        before = sidecar.version()
        change()
        assert sidecar.version() > before
        assert sidecar.changed_since(before) == {conversation}
    before = sidecar.version()
    sidecar.note_turns([])
    assert sidecar.version() == before
    # A turn without a note may be one that is being judged: that has to see it.
    sidecar.forget("a")
    assert sidecar.version() > before
    sidecar.forget("nowhere", 3)
    assert sidecar.version() > before + 1
    assert sidecar.changed_since(before) == frozenset()


def test_a_failed_write_leaves_nothing(truth: Database) -> None:
    """When one note of a call cannot be written, none of them is, and no number is used up."""
    sidecar = Sidecar(truth, "default")
    sidecar.note_turns([imported(0)])
    before = sidecar.version()
    impossible = TurnNote("c", 2, None)  # type: ignore[arg-type]
    with pytest.raises(StoreError):
        sidecar.note_turns([imported(1), impossible])
    assert sidecar.turn_notes("c") == {0: imported(0)}
    assert sidecar.version() == before


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(texts=st.lists(ANY_TEXT, min_size=7, max_size=7))
def test_any_text_comes_back(truth: Database, texts: list[str]) -> None:
    """Every string, NUL and lone surrogates too, is kept exactly and found again by itself."""
    namespace, conversation, turn_hash, speaker, source, chat, message = texts
    sidecar = Sidecar(truth, namespace)
    note = TurnNote(conversation, 0, turn_hash, speaker, source, chat, message)
    sidecar.note_turns([note])
    assert sidecar.turn_notes(conversation)[0] == note
    assert sidecar.known(source, chat)[message] == note
    place = ConversationNote(conversation, source, chat, branch_of=speaker, branch_at=3)
    sidecar.note_conversation(place)
    assert sidecar.conversation_notes().get(conversation) == place


@pytest.mark.promise("truth.round_trip")
def test_every_naughty_string_comes_back(truth: Database, naughty: list[str]) -> None:
    """Texts that trouble programs are kept exactly, as speakers and as keys."""
    strings = naughty
    sidecar = Sidecar(truth, "default")
    notes = [TurnNote(s, i, "h", s, "sharegpt", "chat", s) for i, s in enumerate(strings)]
    sidecar.note_turns(notes)
    for note in notes:
        assert sidecar.turn_notes(note.conversation_id)[note.index] == note
    assert set(sidecar.known("sharegpt", "chat")) == set(strings)
