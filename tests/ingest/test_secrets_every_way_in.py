"""Secrets are taken out alike whichever way a memory or note comes in; turns are kept verbatim."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.deep.asking import Script
from tests.surfaces.rest_desk import served

from anaphora import Memory, NewMemory

# Made up, in the forms of ten kinds; written in two pieces so that no scanner takes them for real.
SECRETS = (
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "glpat-" + "ABCDEFGHIJ1234567890",
    "xoxb-" + "123456789012-123456789012-abcdefghijABCDEFGHIJabcd",
    "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "4111 1111 1111 1111",
    "postgres://ada:" + "sw0rdfish77@db.example.org/x",
    "npm_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "eyJhbGciOiJIUzI1NiJ9."
    + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
)
# What must be nowhere: of a URL the password alone.
CORES = tuple("sw0rdfish77" if "sw0rdfish77" in one else one for one in SECRETS)

Way = Callable[[Memory, str], object]


def imported(memory: Memory, secret: str) -> None:
    """An export in which somebody wrote a secret wherever there is room for one."""
    folder = memory.home_folder  # type: ignore[attr-defined]
    with Memory.open(folder / "source", embedder="hashing") as source:
        source.remember("CANARY", tags=("CANARY",), category="CANARY", path="a.CANARY",
                        payload={"CANARY": ["CANARY"]}, source="CANARY",
                        conversation_id="CANARY")  # fmt: skip
        source.remember("CANARY", tags=("CANARY",), category="CANARY", path="a.CANARY",
                        payload={"CANARY": ["CANARY"]}, source="CANARY again")  # fmt: skip
        source.observe("CANARY is noted", tags=("CANARY",), source="CANARY")
        source.write_diary("CANARY is written", subject="CANARY")
        source.export(folder / "export.jsonl")
    text = (folder / "export.jsonl").read_text().replace("CANARY", secret)
    (folder / "changed.jsonl").write_text(text)
    report = memory.import_(folder / "changed.jsonl")
    assert report.memories_added == 1
    assert report.notes_added == 2


def updated(memory: Memory, secret: str) -> None:
    one = memory.remember("before").id
    for change in (
        {"text": f"key {secret}"},
        {"payload": {"deep": [{"er": f"key {secret}"}]}},
        {"path": f"keys.{secret}"},
        {"tags": [secret]},
        {"category": secret},
    ):
        one = memory.update(one, **change).id


WAYS: dict[str, Way] = {
    "text": lambda memory, secret: memory.remember(f"The key is {secret} today."),
    "tag": lambda memory, secret: memory.remember("a", tags=(f"key {secret}",)),
    "path": lambda memory, secret: memory.remember("b", path=f"keys.{secret}"),
    "category": lambda memory, secret: memory.remember("c", category=secret),
    "source": lambda memory, secret: memory.remember("d", source=f"from {secret}"),
    "conversation": lambda memory, secret: memory.remember("e", conversation_id=secret),
    "payload": lambda memory, secret: memory.remember(
        "f", payload={"a": [{"b": f"key {secret}"}, [secret]], secret: {f"x {secret}": 1}}
    ),
    "many": lambda memory, secret: memory.remember_many(
        [NewMemory(f"g {secret}"), NewMemory("h", payload={"k": secret})]
    ),
    "update": updated,
    "observe": lambda memory, secret: memory.observe(
        f"i {secret}", tags=(secret,), source=secret
    ),
    "diary": lambda memory, secret: memory.write_diary(
        f"j {secret}", subject=secret, tags=(secret,)
    ),
    "export": imported,
}  # fmt: skip


def holding(folder: Path, secret: str) -> Iterator[Path]:
    """The files in which the secret stands, as it is or escaped in JSON."""
    forms = {secret.encode(), json.dumps(secret)[1:-1].encode(), secret.lower().encode()}
    for path in folder.rglob("*"):
        if path.is_file() and any(form in path.read_bytes() for form in forms):
            yield path


@pytest.mark.promise("remember.every_way")
@pytest.mark.parametrize("way", WAYS)
def test_no_way_in_keeps_a_secret(way: str, tmp_path: Path) -> None:
    """Ten secrets through every field of every way: none stands in any file of the home."""
    home = tmp_path / "home"
    with Memory.open(home, embedder="hashing") as memory:
        object.__setattr__(memory, "home_folder", tmp_path)
        for number, secret in enumerate(SECRETS):
            view = memory.scoped(f"n{number}")
            object.__setattr__(view, "home_folder", tmp_path / f"f{number}")
            (tmp_path / f"f{number}").mkdir()
            WAYS[way](view, secret)
            view.ready()
    for core in CORES:
        assert not list(holding(home, core)), core


@pytest.mark.promise("remember.every_way")
def test_no_surface_keeps_a_secret(tmp_path: Path) -> None:
    """Over HTTP, and as a fact that a model takes out of a conversation, the same ten are gone."""
    home = tmp_path / "home"
    with served(home) as (client, memory):
        for secret in SECRETS:
            given: dict[str, Any] = dict.fromkeys(("category", "source", "conversation_id"), secret)
            given |= {"text": f"key {secret}", "tags": [secret], "path": f"k.{secret}"}
            given["payload"] = {secret: [secret]}
            done = client.post("/v1/memories", json=given)
            assert done.status_code == 201, done.text
            changed = client.patch(f"/v1/memories/{done.json()['id']}", json={"text": secret})
            assert changed.status_code == 200, changed.text
        memory.ready()
    for core in CORES:
        assert not list(holding(home, core)), core


@pytest.mark.promise("remember.every_way")
def test_a_fact_that_a_model_takes_out_has_no_secret(tmp_path: Path) -> None:
    """The turn keeps its words, and the fact that is made of it has the mark in their place."""
    said = [{"fact": f"The key is {secret}.", "turns": [0]} for secret in SECRETS]
    with ExitStack() as held:
        script = Script(json.dumps(said))
        memory = held.enter_context(
            Memory.open(tmp_path / "home", embedder="hashing", model=script.model)
        )
        memory.conversations.append_user("keys", "The keys are " + ", ".join(SECRETS) + ". " * 20)
        added = memory.extract("keys").added
        texts = [memory.get(one).text for one in added]
        assert texts
        assert all(re.search(r"\[redacted:", text) for text in texts)
        assert not any(core in text for core in CORES for text in texts)
        thread = memory.conversations.get("keys")
        assert thread is not None
        assert all(secret in thread.turns[0].text for secret in SECRETS)


@pytest.mark.promise("remember.every_way")
def test_items_of_a_store_come_back_as_they_were_put(tmp_path: Path) -> None:
    """What an adapter keeps word for word goes out by an export and comes in again the same."""
    secret = SECRETS[0]
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        item = NewMemory("k", payload={"key": secret}, dedupe=False, redact=False)
        memory.remember_many([item])
        memory.export(tmp_path / "export.jsonl")
        other = memory.scoped("other")
        other.import_(tmp_path / "export.jsonl")
        assert [one.payload for one in other.list()] == [{"key": secret}]
