"""Secrets in memories that were stored before their form was known: counted, and taken out."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from tests.sqlite_driver import dbapi2

from anaphora import Memory, NewMemory
from anaphora.api.rendering import render_hits
from anaphora.ingest.secrets.masking import mask
from anaphora.testing import run_cli

SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
STAND_IN = "stand-in for a token that is known today"
MARK = "[redacted:github-token]"


def holding(folder: Path) -> list[str]:
    """The files below a folder in which the secret stands, whole or as a word of an index."""
    forms = [
        form.encode(coding)
        for form in (SECRET, SECRET.lower(), SECRET[4:].lower())
        for coding in ("utf-8", "utf-16-le")
    ]
    forms.append(SECRET.encode().hex().encode())
    return [
        path.name
        for path in folder.rglob("*")
        if path.is_file() and any(form in path.name.encode() + path.read_bytes() for form in forms)
    ]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home of a version that knew no secret: in every field, in versions and in notes."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        memory.audit.on()
        old = memory.remember(f"The token is {STAND_IN} today.", path="ferry.token")
        memory.remember("The token is kept by Ann.", path="ferry.token")
        memory.update(memory.history("ferry.token")[-1].id, tags=(f"key {STAND_IN}",))
        memory.update(memory.history("ferry.token")[-1].id, tags=("key",))
        memory.remember(
            "The ferry shop", payload={"token": STAND_IN}, source=f"from {STAND_IN}",
            category=STAND_IN, conversation_id=f"chat.{STAND_IN}", parent=old.id,
        )  # fmt: skip
        memory.remember("The ferry leaves at nine.", tags=("ferry",))
        memory.remember_many(
            [NewMemory("kept", payload={"key": SECRET + "x"}, dedupe=False, redact=False)]
        )
        memory.observe(f"The deploy token {STAND_IN} is in the vault.")
        memory.ready()
    # It was made for the links, of texts without a secret.
    shutil.rmtree(tmp_path / "home" / "index")
    grow_old(tmp_path / "home")
    assert holding(tmp_path / "home")
    return tmp_path / "home"


def grow_old(home: Path) -> None:
    """Put the secret where its stand-in is in the database: there are no files of an index yet."""
    with closing(dbapi2.connect(str(home / "anaphora.db"))) as connection:
        tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
        for (table,) in connection.execute(tables).fetchall():
            for column in [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]:
                connection.execute(
                    f'UPDATE "{table}" SET "{column}" = REPLACE("{column}", ?, ?)'
                    f' WHERE typeof("{column}") = \'text\' AND INSTR("{column}", ?)',
                    (STAND_IN, SECRET, STAND_IN),
                )
        connection.commit()


@pytest.mark.promise("secrets.stored")
def test_doctor_counts_them_and_the_command_takes_them_out(home: Path) -> None:
    """No byte is left but what an adapter put; ids, versions, links and other words stay."""
    with Memory.open(home, embedder="hashing") as memory:
        (adapters,) = [one for one in memory.list() if one.text == "kept"]
        memory.forget(adapters.id)
        before = {one.id for one in (*memory.list(), *memory.history("ferry.token"))}
        (check,) = [one for one in memory.doctor() if one.name == "stored secrets"]
        assert check.ok
        assert check.detail.startswith("4 memories and notes seem to hold a secret")
        assert check.detail.endswith("anaphora redact-memories")
        assert SECRET not in check.detail
    looked = run_cli("redact-memories", "--dry-run", home=home)
    assert "4 memories would be redacted" in looked.output
    done = run_cli("redact-memories", "--yes", "--json", home=home)
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.output)["redacted"]) == 4
    assert holding(home) == []
    with Memory.open(home, embedder="hashing") as memory:
        after = {one.id: one for one in (*memory.list(), *memory.history("ferry.token"))}
        assert after.keys() == before
        past, now = memory.history("ferry.token")
        assert (past.text, now.text) == (
            f"The token is {MARK} today.",
            "The token is kept by Ann.",
        )
        assert past.superseded_by == now.id
        (shop,) = [one for one in after.values() if one.text == "The ferry shop"]
        assert (shop.payload, shop.sources, shop.category, shop.parent) == (
            {"token": MARK}, (f"from {MARK}",), MARK, past.id,
        )  # fmt: skip
        assert (
            memory.recall("when does the ferry leave?").hits[0].text == "The ferry leaves at nine."
        )
        assert memory.redact_memories() == ()
        (check,) = [one for one in memory.doctor() if one.name == "stored secrets"]
        assert check.detail == "no memory or note seems to hold a secret"
    assert holding(home) == []


@pytest.mark.promise("secrets.stored")
def test_what_an_adapter_put_word_for_word_is_left(home: Path) -> None:
    """It must come back as it was put."""
    with Memory.open(home, embedder="hashing") as memory:
        assert len(memory.redact_memories()) == 4
        (kept,) = [one for one in memory.list() if one.text == "kept"]
        assert kept.payload == {"key": SECRET + "x"}


KEPT = "The wifi password at the cabin is quokka-42"


@pytest.mark.promise("secrets.kept")
def test_the_owner_can_keep_one_on_purpose(tmp_path: Path) -> None:
    """It is marked, found and left alone, and masked in everything that goes to others."""
    home = tmp_path / "home"
    said = run_cli("remember", KEPT, "--path", "wifi.cabin", "--keep-secret", home=home)
    assert "secret kept" in said.output
    plain = run_cli("remember", "The ferry leaves at nine", "--keep-secret", home=home)
    assert "nothing in it looks like a secret" in plain.output
    assert "secret kept" in run_cli("list", home=home).output
    assert KEPT in run_cli("recall", "wifi password at the cabin", home=home).output
    with Memory.open(home, embedder="hashing") as memory:
        (kept,) = [one for one in memory.list() if one.path == "wifi.cabin"]
        assert (kept.text, kept.keep_secret) == (KEPT, True)
        (ferry,) = [one for one in memory.list() if one.path is None]
        assert not ferry.keep_secret
        for leaving in (kept, memory.recall("wifi password cabin"), memory.search("wifi cabin")):
            assert "quokka-42" not in str(mask(leaving))
        assert "quokka-42" not in render_hits(memory.search("wifi password cabin").hits)
        memory.export(tmp_path / "own.jsonl")
        memory.export(tmp_path / "shared.jsonl", masked=True)
        assert memory.redact_memories() == ()
        (check,) = [one for one in memory.doctor() if one.name == "stored secrets"]
        assert check.detail.endswith("1 kept on purpose")
    assert (
        "1 with a secret kept on purpose" in run_cli("redact-memories", "--yes", home=home).output
    )
    assert "quokka-42" in (tmp_path / "own.jsonl").read_text("utf-8")
    assert "quokka-42" not in (tmp_path / "shared.jsonl").read_text("utf-8")
    with Memory.open(tmp_path / "other", embedder="hashing") as other:
        other.import_(tmp_path / "own.jsonl")
        (moved,) = [one for one in other.list() if one.path == "wifi.cabin"]
        assert (moved.text, moved.keep_secret) == (KEPT, True)


@pytest.mark.promise("secrets.kept")
def test_only_the_one_who_asks_keeps_one(tmp_path: Path) -> None:
    """Of many each for itself; a new value that is not kept is redacted, its old one stays."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        first, second = memory.remember_many(
            [
                NewMemory(KEPT, path="wifi", payload={"password": "quokka-42"}, keep_secret=True),
                NewMemory("My bank PIN is 8832"),
            ]
        )
        assert memory.get(second.id).text == "My bank PIN is [redacted:password]"
        assert mask(memory.get(first.id)).payload == {"password": "[redacted:password]"}
        memory.remember("The wifi password at the cabin is heron-77", path="wifi")
        past, now = memory.history("wifi")
        assert (past.text, past.keep_secret, now.keep_secret) == (KEPT, True, False)
        assert "heron-77" not in now.text
