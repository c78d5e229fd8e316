"""What every store of conversations does: files, and the database on SQLite and on PostgreSQL."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from anaphora import ConversationStore, NewTurn
from anaphora.errors import InvalidId, InvalidTurn
from anaphora.store.db.engine import Database, open_database
from anaphora.store.hashing import stored_turn_hash
from anaphora.store.threads.conversations import Conversations
from anaphora.store.threads.gojson import decode
from anaphora.store.threads.sidecar import Sidecar, TurnNote
from anaphora.store.threads.sql_store import SqlConversationStore

Clock = Callable[[], datetime]
KINDS = ("files", "sqlite", "postgresql")


class Place:
    """Where conversations are kept, and any number of stores on it."""

    def __init__(self, kind: str, folder: Path, truth: Database) -> None:
        self.kind = kind
        self.folder = folder
        self.truth = truth
        self.sidecar = Sidecar(truth, "default")
        self.removed: list[str] = []

    def open(self, clock: Clock | None = None, *, notes: bool = True) -> Conversations:
        sidecar = self.sidecar if notes else None
        told = self.removed.append
        if self.kind == "files":
            return ConversationStore(
                self.folder, clock=clock, strict=True, sidecar=sidecar, on_removed=told
            )
        return SqlConversationStore(
            self.truth, "default", clock=clock, sidecar=sidecar, on_removed=told
        )


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    server = request.param == "postgresql"
    database = request.getfixturevalue("postgresql_url") if server else tmp_path / "truth.db"
    truth = open_database(database)
    yield Place(request.param, tmp_path / "conversations", truth)
    truth.close()


@pytest.fixture
def store(place: Place, clock: Clock) -> Conversations:
    return place.open(clock)


def texts(store: Conversations, conversation_id: str) -> list[str]:
    thread = store.get(conversation_id)
    return [turn.text for turn in thread.turns] if thread else []


class TestEveryStore:
    """The contract."""

    @pytest.mark.promise("threads.default_time")
    def test_a_turn_without_a_time_gets_the_clocks(self, place: Place) -> None:
        """The clock's time is written with the clock's offset: it tells the day of the speaker."""
        tehran = timezone(timedelta(hours=3, minutes=30))
        now = datetime(2026, 5, 1, 2, 0, 0, 120_000, tzinfo=tehran)
        store = place.open(lambda: now)
        store.append_user("c", "hello")
        turn = store.recent("c")[0]
        assert turn.ts_text == "2026-05-01T02:00:00.12+03:30"
        assert (turn.ts, turn.ts.utcoffset()) == (now, now.utcoffset())

    def test_updated_is_the_latest_time_in_utc(self, store: Conversations) -> None:
        """An older turn that comes late does not turn the thread's time back."""
        east = timezone(timedelta(hours=5, minutes=30))
        store.append("c", "user", "b", ts=datetime(2026, 3, 1, 19, 1, tzinfo=east))
        store.append("c", "user", "a", ts=datetime(2026, 2, 1, tzinfo=UTC))
        thread = store.get("c")
        assert thread is not None
        assert thread.updated_text == "2026-03-01T13:31:00Z"
        assert [turn.ts_text for turn in thread.turns] == [
            "2026-03-01T19:01:00+05:30",
            "2026-02-01T00:00:00Z",
        ]

    @pytest.mark.promise("threads.recent")
    def test_recent_gives_the_last_turns_oldest_first(self, store: Conversations) -> None:
        """`recent` gives 16 turns unless told otherwise, and none of an unknown conversation."""
        store.extend("c", [NewTurn("user", str(n)) for n in range(30)])
        assert [turn.text for turn in store.recent("c")] == [str(n) for n in range(14, 30)]
        assert [turn.text for turn in store.recent("c", 2)] == ["28", "29"]
        assert len(store.recent("c", 1000)) == 30
        assert store.recent("c", 0) == store.recent("c", -3) == store.recent("unknown") == ()

    @pytest.mark.promise("threads.get")
    def test_get_gives_the_whole_thread_or_none(self, store: Conversations) -> None:
        """`get` gives every turn of a conversation, and None where there is none."""
        assert store.get("c") is None
        store.append_user("c", "one")
        thread = store.get("c")
        assert thread is not None
        assert (thread.conversation_id, thread.title, len(thread.turns)) == ("c", "", 1)

    @pytest.mark.promise("threads.unbounded")
    def test_all_turns_are_retained(self, store: Conversations) -> None:
        """No cap drops old turns."""
        assert store.extend("c", [NewTurn("user", str(n)) for n in range(3000)]) == range(3000)
        assert store.extend("c", [NewTurn("user", "x"), NewTurn("user", "y")]) == range(3000, 3002)
        assert texts(store, "c")[:2] == ["0", "1"]
        assert len(texts(store, "c")) == 3002

    @pytest.mark.promise("threads.blank")
    def test_blank_text_is_ignored(self, store: Conversations) -> None:
        """Blank turns are not kept, alone or among others."""
        assert not store.append_user("c", " \n\u3000")
        assert store.get("c") is None
        turns = [NewTurn("user", ""), NewTurn("user", "kept"), NewTurn("user", "\t")]
        assert store.extend("c", turns) == range(1)
        assert texts(store, "c") == ["kept"]

    @pytest.mark.promise("threads.list")
    def test_list_is_newest_first_and_short(self, store: Conversations, clock: Clock) -> None:
        """Newest first; title of 60 and preview of 100 characters, white space collapsed."""
        store.append_user("old", "  the\n first   question " + "q" * 100)
        store.append_assistant("old", "an answer " + "a" * 200)
        later = clock() + timedelta(seconds=1)
        store.append("new", "user", "short", ts=later)
        new, old = store.list()
        assert (new.conversation_id, new.title, new.preview) == ("new", "short", "short")
        assert (new.turn_count, new.updated) == (1, later)
        assert old.title == "the first question " + "q" * 41 + "…"
        assert old.preview == "an answer " + "a" * 90 + "…"
        assert old.turn_count == 2
        store.append("old", "user", "again", ts=later + timedelta(seconds=1))
        assert [summary.preview for summary in store.list()] == ["again", "short"]
        store.delete("old")
        assert [summary.preview for summary in store.list()] == ["short"]

    @pytest.mark.promise("threads.title")
    def test_titles(self, store: Conversations) -> None:
        """A title is the explicit one, else the first user turn, else "New chat"."""
        store.append_assistant("c", "hello, how can I help?")
        assert store.list()[0].title == "New chat"
        store.append_user("c", "a question")
        assert store.list()[0].title == "a question"
        assert store.set_title("c", "  Named <here>\n")
        store.append_user("c", "another")
        assert store.list()[0].title == "Named <here>"
        assert store.set_title("c", "")
        assert store.list()[0].title == "a question"
        assert not store.set_title("unknown", "t")
        with pytest.raises(InvalidTurn):
            store.set_title("c", None)  # type: ignore[arg-type]

    @pytest.mark.promise("threads.delete")
    def test_delete_removes_a_thread(self, place: Place, store: Conversations) -> None:
        """A deleted thread is gone for every store, and an append starts a new one."""
        other = place.open()
        store.append_user("c", "words")
        store.append_user("d", "other words")
        assert len(other.list()) == 2
        assert store.delete("c")
        assert not store.delete("c")
        assert place.removed == ["c"]
        assert other.get("c") is None
        assert (store.recent("c"), len(other.list())) == ((), 1)
        assert not store.set_title("c", "t")
        store.append_user("c", "anew")
        assert (texts(other, "c"), texts(other, "d")) == (["anew"], ["other words"])

    @pytest.mark.promise("threads.redact")
    def test_redact_takes_the_words_out(self, place: Place, store: Conversations) -> None:
        """The words of a turn go wherever they stand in the thread; role, time, place stay."""
        secret = 'my "key" is <hunter2>'
        store.append_user("c", secret)
        store.append_assistant("c", f"I noted: {secret}.")
        store.append_user("c", "yes")
        store.append_user("c", "yes")
        store.append_user("d", f"and {secret}")
        store.set_title("c", f"{secret}!")
        before = store.recent("c")
        assert store.redact("c", 0)
        assert texts(store, "c") == ["[redacted]", "I noted: [redacted].", "yes", "yes"]
        after = [(turn.role, turn.ts_text) for turn in store.recent("c")]
        assert after == [(turn.role, turn.ts_text) for turn in before]
        assert {s.conversation_id: s.title for s in store.list()}["c"] == "[redacted]!"
        assert store.redact("c", 2)
        assert texts(store, "c")[2:] == ["[redacted]", "yes"]
        assert texts(store, "d") == [f"and {secret}"]
        assert place.removed == ["c", "c"]
        changes = [store.redact("c", 5), store.redact("c", -1), store.redact("unknown", 0)]
        assert not any(changes)
        store.append_user("c", "more")
        assert len(texts(store, "c")) == 5

    @pytest.mark.promise("threads.speakers")
    def test_speakers_are_kept_beside_the_turns(self, place: Place, store: Conversations) -> None:
        """A speaker comes back with the turn and goes with it; an import identity stays known."""
        store.append("c", "user", "hello", speaker="Nour")
        store.append("c", "assistant", "hello yourself")
        imported = NewTurn("user", "imported", "", None, "Kim", "chatgpt", "k", "m1")
        store.extend("c", [imported])
        assert [turn.speaker for turn in store.recent("c")] == ["Nour", None, "Kim"]
        assert store.recent("c", 1)[0].source == "chatgpt"
        assert not place.sidecar.known("chatgpt", "k")["m1"].forgotten
        assert store.redact("c", 0)
        assert [turn.speaker for turn in store.recent("c")] == [None, None, "Kim"]
        assert store.delete("c")
        assert place.sidecar.known("chatgpt", "k")["m1"].forgotten
        store.append("c", "user", "hello")
        assert store.recent("c")[0].speaker is None

    @pytest.mark.promise("threads.speakers")
    def test_a_note_whose_turn_never_came_is_void(self, place: Place, store: Conversations) -> None:
        """A note at the place of another turn gives its speaker to no turn."""
        note = TurnNote("c", 0, stored_turn_hash("user", "lost"), speaker="Nour")
        place.sidecar.note_turns([note])
        store.append("c", "user", "another turn")
        assert store.recent("c")[0].speaker is None

    @pytest.mark.parametrize(
        "turn",
        [
            NewTurn("", "text"),
            NewTurn("a\nb", "text"),
            NewTurn("user", "text", ts=datetime(2026, 1, 1)),  # noqa: DTZ001 - that is the mistake
            NewTurn("user", "text", ts=datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))),
            NewTurn("user", "text", speaker="Nour"),
            NewTurn("user", "text", source="chatgpt"),
            NewTurn("user", 5),  # type: ignore[arg-type]
            NewTurn("user", "text", intent_id=5),  # type: ignore[arg-type]
        ],
    )
    def test_turns_that_cannot_be_kept_are_refused(self, place: Place, turn: NewTurn) -> None:
        """What no store can hold raises InvalidTurn and keeps nothing."""
        store = place.open(notes=False)
        with pytest.raises(InvalidTurn):
            store.extend("c", [NewTurn("user", "fine"), turn])
        assert store.get("c") is None

    @pytest.mark.promise("threads.ids")
    @pytest.mark.parametrize("bad", ["", " ", "..", "a/b", "a\\b", "a\0b", "\ud800", "x" * 1025])
    def test_ids_that_name_nothing_are_refused(self, store: Conversations, bad: str) -> None:
        """Every call refuses an id that cannot name a conversation."""
        calls: list[Callable[[], object]] = [
            lambda: store.append_user(bad, "text"),
            lambda: store.get(bad),
            lambda: store.recent(bad),
            lambda: store.delete(bad),
            lambda: store.redact(bad, 0),
            lambda: store.set_title(bad, "t"),
            lambda: store.path(bad),
            lambda: store.read_file(bad),
        ]
        for call in calls:
            with pytest.raises(InvalidId):
                call()

    @pytest.mark.promise("threads.bad_input")
    def test_naughty_strings_as_texts_and_ids(
        self, naughty: list[str], place: Place, store: Conversations
    ) -> None:
        """Every troublesome text is kept verbatim as a turn, and is a good id or a refused one."""
        words = [text for text in naughty if text.strip()]
        assert store.extend("c", [NewTurn("user", text) for text in words])
        assert [turn.text for turn in place.open().recent("c", 10_000)] == words
        assert [turn.text for turn in decode(store.read_file("c")[0]).turns] == words
        kept = set()
        for number, name in enumerate(words[::4]):
            try:
                store.append_user(name, f"turn {number}")
            except InvalidId:
                continue
            kept.add(unicodedata.normalize("NFC", name))
            assert texts(store, name)[-1] == f"turn {number}"
        assert {key for key, _ in store.files()} == kept | {"c"}

    @pytest.mark.promise("truth.round_trip")
    def test_half_characters_and_nul_survive(self, store: Conversations) -> None:
        """Lone surrogates and NUL come back; halves of one character come back as it."""
        store.append_user("c", "a\ud83d b\udc00 \ud83e\udde0 \x00\x10")
        store.set_title("c", "\x00 \ud83d")
        assert texts(store, "c") == ["a\ud83d b\udc00 🧠 \x00\x10"]
        thread = decode(store.read_file("c")[0])
        assert (thread.turns[0].text, thread.title) == (texts(store, "c")[0], "\x00 \ud83d")

    @pytest.mark.promise("threads.bad_input")
    def test_a_large_turn(self, store: Conversations) -> None:
        """A turn of five megabytes is kept whole, and turns after it are kept too."""
        huge = "word é\x00" * 600_000
        store.append_user("c", huge)
        store.append_user("c", "small")
        assert texts(store, "c") == [huge, "small"]
        assert store.list()[0].preview == "small"

    @pytest.mark.promise("threads.processes")
    def test_threads_of_one_process_lose_no_turn(self, store: Conversations) -> None:
        """Threads of one process share a store, and every turn is there, once."""
        with ThreadPoolExecutor(8) as pool:
            kept = list(pool.map(lambda n: store.append("shared", "user", f"turn {n}"), range(64)))
        assert all(kept)
        found = [turn.text for turn in store.recent("shared", 100)]
        assert sorted(found) == sorted(f"turn {n}" for n in range(64))

    def test_what_is_read_as_a_file(self, store: Conversations) -> None:
        """`read_file` gives Go's bytes and tells states apart; a missing thread has no file."""
        store.append("c", "user", "why <so>?", ts=datetime(2026, 4, 30, 12, tzinfo=UTC))
        data, first = store.read_file("c")
        assert data == (
            rb'{"conversation_id":"c","turns":[{"role":"user","text":"why \u003cso\u003e?",'
            rb'"ts":"2026-04-30T12:00:00Z"}],"updated":"2026-04-30T12:00:00Z"}'
        )
        assert store.read_file("c")[1] == first
        store.append_user("c", "more")
        assert store.read_file("c")[1] != first
        with pytest.raises(FileNotFoundError):
            store.read_file("unknown")
