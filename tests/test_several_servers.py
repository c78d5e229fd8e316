"""Several servers on one database: killed under load, started at once, with clocks that differ.

What one database and one process can show is shown without processes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Table, UniqueConstraint, text
from tests.commands import program
from tests.conftest import Clock

from anaphora import Memory
from anaphora.errors import InvalidInput
from anaphora.store.db.engine import Database, open_database
from anaphora.store.db.faults import BUSY_SECONDS, IDLE_SECONDS
from anaphora.store.db.revision import REVISION
from anaphora.store.db.schema import metadata, revision

pytestmark = pytest.mark.internal

OpenOn = Callable[[str], Database]


@pytest.fixture
def truth_on() -> Iterator[OpenOn]:
    """Opens truths, and closes them at the end."""
    with ExitStack() as stack:

        def one(url: str) -> Database:
            truth = open_database(url)
            stack.callback(truth.close)
            return truth

        yield one


def server(home: Path, url: str, clock: Clock | None = None) -> Memory:
    return Memory.open(home, database=url, embedder="hashing", clock=clock)


class Serving:
    """A server with a home of its own, and what it acknowledged while it was written to."""

    def __init__(self, folder: Path, number: int, url: str) -> None:
        self.number, self._environment = (
            number,
            os.environ
            | {
                "ANAPHORA_HOME": str(folder / f"home-{number}"),
                "ANAPHORA_DATABASE": url,
                "ANAPHORA_EMBEDDER": "hashing",
                "PYTHONUNBUFFERED": "1",
            },
        )
        self.acknowledged: list[str] = []
        self.turns: list[str] = []
        self.launch()

    def launch(self) -> None:
        command = [*program(), "serve", "--no-token", "--port", "0"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=self._environment
        )
        assert self.process.stdout is not None
        address = re.search(r"http://\S+?:\d+", self.process.stdout.readline())
        assert address
        self.at = address[0]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=30)

    def write(self, enough: int) -> None:
        """Remember and append until it is killed, or has done enough."""
        with suppress(httpx.HTTPError):
            for n in range(enough):
                text = f"Server {self.number} keeps crate {n} in room {n * 7}."
                memory = httpx.post(f"{self.at}/v1/memories", json={"text": text}, timeout=30)
                if memory.is_success:
                    self.acknowledged.append(text)
                turn = {"turns": [{"role": "user", "text": text}]}
                path = f"/v1/conversations/chat-{self.number}/turns"
                if httpx.post(self.at + path, json=turn, timeout=30).is_success:
                    self.turns.append(text)


@pytest.mark.slow
@pytest.mark.enable_socket
@pytest.mark.timeout(300)
@pytest.mark.promise("servers.killed")
def test_killed_servers_lose_double_and_revive_nothing(tmp_path: Path, postgresql_url: str) -> None:
    """Of three servers that are written to, two are killed, and one comes back without its indexes:
    what was acknowledged is on every server, one time and in order, and what was forgotten is
    not."""
    servers = [Serving(tmp_path, number, postgresql_url) for number in range(3)]
    try:
        with ThreadPoolExecutor(3) as pool:
            writing = [pool.submit(one.write, 40) for one in servers]
            for killed in servers[:2]:
                while len(killed.turns) < 5:
                    time.sleep(0.01)
                killed.kill()
            for done in writing:
                done.result(200)
        shutil.rmtree(tmp_path / "home-1" / "index", ignore_errors=True)
        for back in servers[:2]:
            back.launch()
        first = httpx.get(f"{servers[2].at}/v1/memories?limit=500", timeout=30).json()["items"][0]
        httpx.delete(f"{servers[2].at}/v1/memories/{first['id']}", timeout=30).raise_for_status()
        acknowledged = {text for one in servers for text in one.acknowledged} - {first["text"]}
        for reader in servers:
            items = httpx.get(f"{reader.at}/v1/memories?limit=500", timeout=30).json()["items"]
            texts = [item["text"] for item in items]
            assert acknowledged <= set(texts)
            assert len(set(texts)) == len(texts)
            assert first["text"] not in texts
            for writer in servers:
                path = f"/v1/conversations/chat-{writer.number}"
                said = [t["text"] for t in httpx.get(reader.at + path, timeout=30).json()["turns"]]
                assert [text for text in said if text in writer.turns] == writer.turns
    finally:
        for one in servers:
            one.kill()


@pytest.mark.promise("servers.start")
@pytest.mark.parametrize("isolation", ["read committed", "serializable"])
def test_servers_that_start_at_once_make_the_tables_once(
    postgresql_url: str, truth_on: OpenOn, isolation: str
) -> None:
    """Six opening an empty database at one moment all succeed, whatever its default isolation."""
    level = isolation.replace(" ", "%5C%20")
    url = f"{postgresql_url}%20-cdefault_transaction_isolation%3D{level}"
    truths = [truth_on(url) for _ in range(6)]
    together = threading.Barrier(len(truths))

    def start(truth: Database) -> None:
        together.wait(30)
        truth.ensure()

    with ThreadPoolExecutor(len(truths)) as pool:
        list(pool.map(start, truths))
    for truth in truths:
        found = truth.rows("SELECT version_num FROM anaphora_schema", {})
        assert found == [(REVISION,)]
        assert truth.rows("SHOW default_transaction_isolation", {}) == [(isolation,)]


@pytest.mark.promise("servers.clocks")
def test_a_server_whose_clock_is_late_still_has_the_last_word(
    tmp_path: Path, postgresql_url: str
) -> None:
    """What is said now replaces what is there, by whichever server's clock that was noted."""
    early, late = Clock(), Clock()
    early.advance(seconds=40)
    with (
        server(tmp_path / "one", postgresql_url, early) as one,
        server(tmp_path / "two", postgresql_url, late) as two,
    ):
        one.remember("Rafi owns staging.", path="staging.owner")
        assert two.remember("Ines owns staging.", path="staging.owner").action == "superseded"
        kept = one.remember("The heron is grey.", path="heron")
        two.update(kept.id, text="The heron is blue.")
        plain = one.remember("The kite is red.")
        two.update(plain.id, text="The kite is green.")
        assert two.remember("The kite is red.").action == "added"
        for asked, wanted in (
            ("who owns staging?", {"Ines owns staging."}),
            ("what colour is the heron?", {"The heron is blue."}),
            ("what colour is the kite?", {"The kite is green.", "The kite is red."}),
        ):
            for memory in (one, two):
                found = {hit.text for hit in memory.recall(asked)}
                assert wanted <= found
                assert not found & {"Rafi owns staging.", "The heron is grey."}
        assert [r.text for r in one.history("heron")] == [
            "The heron is grey.",
            "The heron is blue.",
        ]


@pytest.mark.promise("servers.clocks")
def test_what_is_said_now_replaces_a_value_for_a_time_to_come(
    tmp_path: Path, postgresql_url: str, clock: Clock
) -> None:
    """A value that was given a later time than clocks may differ by does not outlive today's."""
    with server(tmp_path / "one", postgresql_url, clock) as one:
        tomorrow = Clock().advance(days=1)
        one.remember("The price is 7.", path="price", created_at=tomorrow)
        one.remember("The price is 5.", path="price")
        assert [r.text for r in one.history("price")] == ["The price is 7.", "The price is 5."]


@pytest.mark.promise("servers.conflicts")
@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_write_that_was_in_the_way_of_another_is_begun_again(
    postgresql_url: str, level: str
) -> None:
    """Where a database refuses who waited (40001), every write succeeds all the same, in order."""

    class Strict(Database):
        """A database without READ COMMITTED."""

        def _isolation(self, operation: str) -> str | None:
            return level

    truth = Strict(url="postgresql+psycopg://" + postgresql_url.split("://", 1)[1])
    truth.ensure()
    taken: list[int] = []

    def write(_: int) -> None:
        for _ in range(10):
            with truth.write("one") as write:
                taken.extend(write.take())

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(write, range(5)))
    assert sorted(taken) == list(range(1, 51))
    assert truth.version("one") == 50
    truth.close()


@pytest.mark.promise("servers.conflicts")
def test_a_write_is_begun_again_however_often_it_is_refused(
    postgresql_url: str, truth_on: OpenOn
) -> None:
    """A writer that loses against others a hundred times in a row succeeds all the same."""
    truth = truth_on(postgresql_url)
    with truth.write("one") as write:
        write.take()
        # A sequence counts on even where the transaction that counted is undone.
        for statement in (
            "CREATE SEQUENCE refused",
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " IF nextval('refused') <= 100 THEN RAISE EXCEPTION 'in the way'"
            " USING ERRCODE = '40001'; END IF; RETURN NEW; END $$",
        ):
            write.connection.execute(text(statement))
    with truth.write("one") as write:
        write.connection.execute(
            text(
                "CREATE TRIGGER refusing BEFORE INSERT ON head"
                " FOR EACH ROW EXECUTE FUNCTION refuse()"
            )
        )
    with truth.write("one") as write:
        assert write.connection.execute(text("SELECT last_value FROM refused")).scalar() == 101
        assert list(write.take()) == [2]
    assert truth.version("one") == 2


@pytest.mark.promise("servers.waiting")
def test_no_write_waits_for_ever_for_a_machine_that_is_gone(
    postgresql_url: str, truth_on: OpenOn
) -> None:
    """A write limits its own waiting and its own silence; its connection keeps nothing of that."""
    truth = truth_on(f"{postgresql_url}&pool_size=1")
    settings = text(
        "SELECT current_setting('lock_timeout'),"
        " current_setting('idle_in_transaction_session_timeout')"
    )
    before = truth.rows(str(settings), {})
    with truth.write("one") as write:
        found = tuple(write.connection.execute(settings).one())
    assert found == (f"{BUSY_SECONDS}s", "1min")
    assert IDLE_SECONDS == 60
    assert truth.rows(str(settings), {}) == before != [found]


@pytest.mark.promise("servers.poolers")
@pytest.mark.parametrize(("setting", "kept"), [("", True), ("&prepare_threshold=none", False)])
def test_no_statement_is_kept_in_a_connection_that_a_pooler_shares(
    postgresql_url: str, truth_on: OpenOn, setting: str, kept: bool
) -> None:
    """With `prepare_threshold=none` in the URL nothing stays behind in the database's session."""
    truth = truth_on(postgresql_url + setting)
    for _ in range(10):
        with truth.write("one") as write:
            write.take()
        truth.version("one")
    left = truth.rows("SELECT count(*) FROM pg_prepared_statements", {})[0][0]
    assert (left > 0) == kept


@pytest.mark.promise("servers.poolers")
@pytest.mark.parametrize("setting", ["pool_size=many", "prepare_threshold=never"])
def test_a_setting_in_the_url_that_means_nothing_is_named(
    postgresql_url: str, truth_on: OpenOn, setting: str
) -> None:
    """It raises InvalidInput with the setting's name, when the database is first needed."""
    with pytest.raises(InvalidInput, match=setting.split("=", maxsplit=1)[0]):
        truth_on(f"{postgresql_url}&{setting}").ensure()


@pytest.mark.promise("servers.keys")
@pytest.mark.parametrize("table", metadata.sorted_tables, ids=lambda table: table.name)
def test_the_namespace_leads_every_key(table: Table) -> None:
    """Each table but that of the schema's revision can be distributed by namespace."""
    if table is revision:
        assert list(table.columns.keys()) == ["version_num"]
        return
    keys = [[column.name for column in table.primary_key.columns]]
    keys += [[column.name for column in index.columns] for index in table.indexes]
    keys += [
        [column.name for column in one.columns]
        for one in table.constraints
        if isinstance(one, UniqueConstraint)
    ]
    assert {key[0] for key in keys} == {"namespace"}
    for foreign in table.foreign_key_constraints:
        first = foreign.elements[0]
        assert (first.parent.name, first.column.name) == ("namespace", "namespace")


@pytest.mark.promise("servers.roles")
def test_a_role_that_may_not_change_the_schema_can_serve(
    tmp_path: Path, postgresql_url: str, truth_on: OpenOn
) -> None:
    """Once the tables are there, SELECT, INSERT, UPDATE and DELETE are all that a server needs."""
    import psycopg

    truth_on(postgresql_url).ensure()
    schema = postgresql_url.rsplit("%3D", 1)[1]
    role = f"serving_{schema}"
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        for statement in (
            f"CREATE ROLE {role} LOGIN",
            f"GRANT USAGE ON SCHEMA {schema} TO {role}",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
        ):
            connection.execute(statement)
    try:
        url = postgresql_url.replace("://postgres:@", f"://{role}:@")
        assert role in url
        with server(tmp_path / "home", url) as memory:
            kept = memory.remember("The heron is grey.", path="heron")
            memory.update(kept.id, text="The heron is blue.")
            memory.conversations.append("chat", "user", "Staging listens on 5433.")
            assert memory.recall_conversation("chat", "staging")
            found = memory.recall("heron")[0]
            assert memory.forget(found.id).count == 2
            assert memory.conversations.delete("chat")
    finally:
        with psycopg.connect(postgresql_url, autocommit=True) as connection:
            connection.execute(f"DROP OWNED BY {role}")
            connection.execute(f"DROP ROLE {role}")
