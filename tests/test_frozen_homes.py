"""Homes that earlier builds wrote are opened in place and lose nothing: see tools/frozen_homes."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import DATA, Clock
from tests.sqlite_driver import dbapi2
from tests.sync.devices import exchange
from tools.frozen_homes.answers import ask, home_answers, lost

from anaphora import Memory
from anaphora.errors import EncryptionError

pytestmark = pytest.mark.promise("truth.frozen")

HOMES = DATA / "homes"
FULL = ("plain", "sealed", "postgresql")
SCHEMA = "anaphora_frozen_home"
NEW = "A heliograph stands on the breakwater."
Open = Callable[[], Memory]


class Frozen:
    """A copy of a frozen home, and what it answered when it was made."""

    def __init__(self, name: str, folder: Path) -> None:
        with tarfile.open(HOMES / f"{name}.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        told = json.loads((HOMES / f"{name}.json").read_text("ascii"))
        self.folder = folder
        self.made_in: str = told["folder"]
        self.answers: dict[str, Any] = told["answers"]
        self._questions: list[dict[str, str]] = told["questions"]
        self._embedder = None if name == "plain" else "hashing"
        self.url: str | None = None
        self._clock = Clock()

    def open(self, home: str = "home") -> Memory:
        return Memory.open(
            self.folder / home,
            database=self.url,
            embedder=self._embedder,
            clock=self._clock,
            warm=False,
        )

    def check(self, memory: Memory) -> None:
        """It has all that it had, and nothing else; what is asked is found."""
        now = home_answers(memory)
        assert list(lost(self.answers, now)) == []
        added = {key for key in now.keys() - self.answers.keys() if "/audit/" not in key}
        assert added == set()
        self.ask(memory)

    def ask(self, memory: Memory) -> None:
        """What was found for each question is found again."""
        for one in self._questions:
            found = ask(memory.scoped(one["namespace"]), one["lane"], one["words"])
            assert one["found"] in found, one


@pytest.fixture
def thaw(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Frozen]]:
    """Unpacks a frozen home; its database on a server is made anew there."""
    with contextmanager(_server)(request) as load:

        def unpack(name: str) -> Frozen:
            frozen = Frozen(name, tmp_path)
            if name == "postgresql":
                frozen.url = load((tmp_path / "truth.sql").read_bytes())
            return frozen

        yield unpack


def _server(request: pytest.FixtureRequest) -> Iterator[Callable[[bytes], str]]:
    servers: list[str] = []

    def run(server: str, statements: bytes) -> None:
        import psycopg

        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(statements)

    def load(dump: bytes) -> str:
        servers.append(request.getfixturevalue("postgresql_server"))
        run(servers[0], dump)
        joint = "&" if "?" in servers[0] else "?"
        return f"{servers[0]}{joint}options=-csearch_path%3D{SCHEMA}"

    yield load
    for server in servers:
        run(server, f"DROP SCHEMA {SCHEMA} CASCADE".encode())


@pytest.mark.parametrize("indexed", [True, False], ids=["as it was", "without its index"])
@pytest.mark.parametrize("name", [*FULL, "go"])
def test_it_opens_in_place_and_loses_nothing(
    thaw: Callable[[str], Frozen], name: str, indexed: bool
) -> None:
    """It answers as when it was made, takes in more, and opened again answers the same."""
    frozen = thaw(name)
    if not indexed:
        shutil.rmtree(frozen.folder / "home" / "index")
    with frozen.open() as memory:
        frozen.check(memory)
        # An index of another form is no damage.
        assert [check for check in memory.doctor() if not check.ok] == []
        thread = memory.conversations.list()[0].conversation_id
        memory.conversations.append(thread, "user", NEW, speaker="Later")
        memory.remember(NEW, path="later")
        written = home_answers(memory)
    with frozen.open() as memory:
        assert [check for check in memory.doctor() if not check.ok] == []
        again = home_answers(memory)
        assert list(lost(written, again)) == []
        # Of what there was, only the thread that goes on has changed, and the numbers.
        changed = {one.split(".")[0].split(":")[0] for one in lost(frozen.answers, again)}
        assert changed == {f"default/thread/{thread}", "default/counts"}
        frozen.ask(memory)
        assert ask(memory, "memories", NEW)[0] == memory.history("later")[0].id


@pytest.mark.parametrize("name", FULL)
def test_an_indexed_folder_that_was_moved_stays_its_project(
    thaw: Callable[[str], Frozen], name: str
) -> None:
    """Its remote tells which one it is, though no build noted that when it was indexed."""
    frozen = thaw(name)
    with frozen.open() as memory:
        (project,) = [one for one in memory.projects() if one.name == "cloned-tides"]
        notes = memory.notes("cloned-tides")
        assert memory.notes(str(frozen.folder / "cloned")) == notes != ()
        report = memory.index_project(frozen.folder / "cloned")
        assert (report.project, report.name, report.unchanged) == (project.id, "cloned-tides", 3)
        assert (report.added, report.changed, report.degraded) == (0, 0, ())
        assert memory.notes("cloned-tides") == notes


@pytest.mark.parametrize("name", FULL)
def test_what_was_forgotten_stays_forgotten(thaw: Callable[[str], Frozen], name: str) -> None:
    """Neither the transcripts nor an export of before bring back what was deleted since."""
    frozen = thaw(name)
    with frozen.open() as memory:
        memory.import_(frozen.folder / "transcripts")
        memory.import_(frozen.folder / "before.jsonl")
        frozen.check(memory)


def test_the_bytes_of_go_are_left_alone(thaw: Callable[[str], Frozen]) -> None:
    """Opening, asking and looking write nothing into threads, and Go's are still Go's."""
    frozen = thaw("go")
    threads = frozen.folder / "home" / "conversations"
    before = {path.name: path.read_bytes() for path in threads.glob("*.json")}
    with frozen.open() as memory:
        frozen.check(memory)
    assert {path.name: path.read_bytes() for path in threads.glob("*.json")} == before
    of_go = {path.name: path.read_bytes() for path in (DATA / "threads").glob("*.json")}
    assert len(before.items() & of_go.items()) == len(of_go) - 1


def test_a_sealed_home_is_refused_without_its_key(thaw: Callable[[str], Frozen]) -> None:
    """The key is one of a test, and lies in the home."""
    frozen = thaw("sealed")
    key = frozen.folder / "home" / "master.key"
    kept = key.read_bytes()
    key.unlink()
    with pytest.raises(EncryptionError):
        frozen.open()
    key.write_bytes(kept)
    with frozen.open() as memory:
        frozen.check(memory)


def test_devices_go_on_with_their_folder(thaw: Callable[[str], Frozen]) -> None:
    """Both devices have what they had, exchange what was not sent yet, and a third one joins."""
    frozen = thaw("synced")
    _move_remote(frozen)
    with frozen.open("laptop") as laptop, frozen.open("desktop") as desktop:
        for name, memory in (("laptop", laptop), ("desktop", desktop)):
            assert list(lost(frozen.answers[name], home_answers(memory))) == []
        laptop.remember(NEW)
        for _ in range(2):
            for memory in (laptop, desktop):
                exchange(memory)
        texts = {
            record["text"]
            for answers in frozen.answers.values()
            for key, record in answers.items()
            if "/memory/" in key
        }
        with frozen.open("third") as third:
            third.sync.init(str(frozen.folder / "remote"), key=laptop.sync.export_key())
            exchange(third)
            for memory in (laptop, desktop, third):
                now = home_answers(memory)
                assert {v["text"] for k, v in now.items() if "/memory/" in k} == texts | {NEW}
                for answers in frozen.answers.values():
                    turns = {k: v for k, v in answers.items() if "/turn/" in k or "/note/" in k}
                    assert list(lost(turns, now)) == []
                memory.sync.verify()
                assert memory.sync.status().stopped is None


def _move_remote(frozen: Frozen) -> None:
    """Tell both devices where the copy of their folder lies."""
    for device in ("laptop", "desktop"):
        with closing(dbapi2.connect(str(frozen.folder / device / "anaphora.db"))) as connection:
            ((value,),) = connection.execute("SELECT value FROM sync_state WHERE name = 'remote'")
            moved = value.replace(frozen.made_in, str(frozen.folder))
            assert moved != value
            connection.execute("UPDATE sync_state SET value = ? WHERE name = 'remote'", (moved,))
            connection.commit()


def test_a_changed_row_is_told(thaw: Callable[[str], Frozen]) -> None:
    """The comparison names a word that is another one, and a turn that is not there."""
    frozen = thaw("plain")
    with closing(dbapi2.connect(str(frozen.folder / "home" / "anaphora.db"))) as connection:
        changed = "UPDATE record SET text = replace(text, 'Vienna', 'Venice') WHERE text LIKE ?"
        assert connection.execute(changed, ("%Vienna%",)).rowcount == 1
        connection.commit()
    (frozen.folder / "home" / "namespaces" / "work" / "conversations" / "shed.json").unlink()
    shutil.rmtree(frozen.folder / "home" / "namespaces" / "work" / "conversations" / ".written")
    with frozen.open() as memory:
        told = list(lost(frozen.answers, home_answers(memory)))
    assert any("Vienna now" in one and "Venice now" in one for one in told)
    assert "work/turn/shed#0 is gone" in told
