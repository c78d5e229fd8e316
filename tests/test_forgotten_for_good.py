"""What was forgotten for good is gone, whatever is done to have it back, and a deleted user is too.

The ways back are those of `tools.attacks`; here, too, is what must still work beside them.
"""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from tests.commands import python
from tests.killed_forgetting import killed_forgets
from tests.surfaces.rest_desk import in_namespace, served
from tests.sync.devices import devices
from tools.attacks import ATTACKS, Attack, forgotten

from anaphora import Memory
from anaphora.errors import InvalidInput, NotFound, RemoteError
from anaphora.testing import run_cli

OURS = [one for one in ATTACKS if one.run.__module__ == forgotten.__name__]


def memory_at(home: Path, namespace: str = "default") -> Memory:
    """A memory that loads no model."""
    return Memory.open(home, namespace=namespace, embedder="hashing", warm=False)


@pytest.mark.promise("forget.final", "namespace.deleted")
@pytest.mark.parametrize("attack", OURS, ids=lambda one: one.run.__name__)
def test_no_attack_has_anything_back(attack: Attack, tmp_path: Path) -> None:
    """Each raises where it succeeds."""
    attack.run(tmp_path)


@pytest.mark.promise("forget.final")
def test_kills_bring_nothing_back(tmp_path: Path) -> None:
    """Processes that forget, mirror and sync are killed; what they acknowledged stays forgotten."""
    tally = killed_forgets(tmp_path, acknowledged=12, chance=random.Random(7))
    assert tally.acknowledged >= 12
    assert not tally.back


_DIES = """
import os, signal, sys
from anaphora import Memory
memory = Memory.open(sys.argv[1], embedder="hashing", warm=False)
memory.forget(sys.argv[2], clean=False)
print([hit.id for hit in memory.recall("doctor Xanthopoulos").hits], memory.stats().cleaning_due)
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


def _holding(home: Path, words: bytes) -> list[Path]:
    return [file for file in home.rglob("*") if file.is_file() and words in file.read_bytes()]


@pytest.mark.promise("forget.final")
def test_who_does_not_wait_has_clean_files_behind(tmp_path: Path) -> None:
    """The memory is gone at once, its words from every file when `ready` says so."""
    with memory_at(tmp_path / "home") as memory:
        memory.remember("Mara likes tea.")
        mara = memory.remember("Mara sees doctor Xanthopoulos on Friday.").id
        memory.ready()
        assert memory.forget(mara, clean=False).ids == (mara,)
        assert mara not in [hit.id for hit in memory.recall("doctor Xanthopoulos")]
        assert memory.ready()
        assert memory.stats().cleaning_due == 0
        assert not _holding(tmp_path, b"anthopoulos")


@pytest.mark.promise("forget.final")
@pytest.mark.parametrize("finishes", ["ready", "forget"])
def test_cleaning_survives_a_kill(tmp_path: Path, finishes: str) -> None:
    """While another program reads, nothing can be cut; then the process dies."""
    home = tmp_path / "home"
    with memory_at(home) as memory:
        ids = [memory.remember(f"Tea number {number} is green.").id for number in range(40)]
        mara = memory.remember("Mara sees doctor Xanthopoulos on Friday.").id
        memory.ready()
    with closing(sqlite3.connect(home / "anaphora.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM record").fetchone()
        died = subprocess.run(
            [*python(), "-c", _DIES, str(home), mara], capture_output=True, text=True, check=False
        )
        assert died.stdout.split() == ["[]", "1"], died.stderr
        assert _holding(home, b"anthopoulos")
    with memory_at(home) as memory:
        assert memory.stats().cleaning_due == 1
        if finishes == "ready":
            assert memory.ready()
        else:
            memory.forget(ids[0])
        assert memory.stats().cleaning_due == 0
        assert not _holding(home, b"anthopoulos")


@pytest.mark.promise("forget.final")
def test_edited_words_of_a_forgotten_file_are_news(tmp_path: Path) -> None:
    """Other words in the file of a forgotten memory are a new one."""
    with memory_at(tmp_path / "home") as memory:
        vault = tmp_path / "vault"
        memory.mirror.init(str(vault))
        port = memory.remember("Staging listens on 5433", path="staging.port").id
        memory.mirror.now()
        memory.forget(port)
        file = vault / "memories/staging/port.md"
        file.write_text(file.read_text().replace("5433", "6000"))
        os.utime(file, (1e9, 1e9))
        memory.mirror.now()
        assert [item.text for item in memory.list().items] == ["Staging listens on 6000"]


@pytest.mark.promise("forget.final")
def test_what_was_packed_beside_the_forgotten_is_sent(tmp_path: Path) -> None:
    """The outbox is packed anew with all else in it, and later entries keep their order."""
    with devices(tmp_path, 2, lambda n: n * 10.0) as (first, second):
        first.sync.now()
        gone = first.remember("Passport X1234567").id
        first.remember("Tea is green")
        remote = (tmp_path / "remote").rename(tmp_path / "away")
        with pytest.raises(RemoteError):
            first.sync.now()
        first.remember("Packed later")
        with pytest.raises(RemoteError):
            first.sync.now()
        remote.rename(tmp_path / "remote")
        first.forget(gone)
        first.sync.now()
        second.sync.now()
        texts = {item.text for item in second.list().items}
        assert texts == {"Tea is green", "Packed later"}
        first.sync.now()
        assert first.sync.verify().entries == second.sync.verify().entries


@pytest.mark.promise("namespace.deleted")
def test_a_name_used_again_holds_nothing_old(tmp_path: Path) -> None:
    """Another process that had it open finds only what is new; others' tokens stay as they were."""
    home = tmp_path / "home"
    with memory_at(home) as owner, memory_at(home, "mara") as before:
        for n in range(5):
            before.remember(f"Old fact {n} of Mara")
        assert before.recall("fact of Mara").hits
        wide = owner.tokens.create("both", namespaces=["mara", "default"]).token
        owner.delete_namespace("mara")
        with memory_at(home, "mara") as again:
            for n in range(9):
                again.remember(f"New fact {n} of another Mara")
        found = {hit.text for hit in before.recall("fact of Mara", top_k=20).hits}
        assert found
        assert not any(text.startswith("Old") for text in found)
        (left,) = owner.tokens.list()
        assert (left.id, left.namespaces) == (wide.id, ("default",))


@pytest.mark.promise("namespace.deleted")
def test_deleting_is_refused_and_told(tmp_path: Path) -> None:
    """The default namespace and unknown ones are errors; the command says what is left outside."""
    home = tmp_path / "home"
    with memory_at(home) as owner, memory_at(home, "mara") as user:
        user.remember("Mara likes tea")
        user.mirror.init(str(tmp_path / "vault"))
        with pytest.raises(NotFound):
            owner.delete_namespace("nobody")
        with pytest.raises(InvalidInput):
            owner.delete_namespace("default")
        assert user.list().items
    done = run_cli("namespace", "delete", "mara", "--yes", home=home)
    assert done.exit_code == 0, done.output
    assert "vault" in done.output
    listed = run_cli("namespace", "list", home=home)
    assert "mara" not in listed.output


@pytest.mark.promise("namespace.deleted")
def test_over_http_it_takes_a_token_for_all(tmp_path: Path) -> None:
    """A token for the namespace itself, and one that only reads, delete nothing."""
    with memory_at(tmp_path / "home") as owner, memory_at(tmp_path / "home", "mara") as user:
        user.remember("Mara likes tea")
        narrow = owner.tokens.create("narrow", namespaces=["mara"]).secret
        reading = owner.tokens.create("reading", namespaces=["*"], read_only=True).secret
        whole = owner.tokens.create("whole", namespaces=["*"]).secret
        with served(tmp_path / "home") as (client, _):
            for secret, namespace in ((narrow, "mara"), (reading, "default")):
                headers = in_namespace(namespace, secret)
                assert client.delete("/v1/namespaces/mara", headers=headers).status_code == 403
            assert user.list().items
            headers = in_namespace("default", whole)
            done = client.delete("/v1/namespaces/mara", headers=headers)
            assert done.status_code == 200, done.text
            assert done.json()["tokens"] == 1
            assert client.delete("/v1/namespaces/mara", headers=headers).status_code == 404
        assert "mara" not in owner.namespaces()
