"""One entry that a server gave, opened by a device: its words, and what is refused."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.sync.devices import devices
from tests.sync.test_server import Hosting, hosting
from tests.sync.test_surfaces import run, told

from anaphora import Memory
from anaphora.errors import InvalidInput, RemoteTampered, WrongKey

__all__ = ["hosting"]

pytestmark = pytest.mark.enable_socket
PATH = "guest.habit"


def answer_of(hosting: Hosting, memory: Memory, name: str) -> dict[str, Any]:
    """What the server answers to a `query_hash`."""
    import httpx

    params = {"project_id": memory.sync.status().project, "query_hash": memory.sync.hash_of(name)}
    headers = {"Authorization": f"Bearer {hosting.token}"}
    found = httpx.get(f"{hosting.url}/v2/agent-state", params=params, headers=headers).json()
    assert isinstance(found, dict)
    return found


@pytest.mark.promise("sync.opens")
def test_a_payload_is_opened_by_any_device_of_the_project(tmp_path: Path, hosting: Hosting) -> None:
    """A memory with its payload, a thread with its turns; before and after the first exchange."""
    with devices(tmp_path, 2, float, hosting.url, hosting.token) as (one, other):
        one.remember("Zanzibar likes quiet mornings", path=PATH, payload={"framework": "vitest"})
        one.conversations.append("lobby", "user", "Wisteria blooms", speaker="Ophelia")
        one.sync.now()
        answer = answer_of(hosting, one, PATH)
        entry = one.sync.open(answer)
        assert one.sync.open(answer["payload"]) == entry == one.sync.open(json.dumps(answer))
        (memory,) = [item for item in entry.items if item.kind == "memory"]
        assert memory.values["text"] == "Zanzibar likes quiet mornings"
        assert memory.values["payload"] == {"framework": "vitest"}
        assert memory.id == one.list().items[0].id
        threads = one.sync.open(answer_of(hosting, one, "lobby")).items
        (turn,) = [part for item in threads if item.id == "lobby" for part in item.added.values()]
        assert turn["text"] == "Wisteria blooms"
        assert entry.signed

        unread = other.sync.open(answer)
        assert (unread.items, unread.signed) == (entry.items, False)
        assert other.list().items == ()
        other.sync.now()
        assert other.sync.open(answer).signed


@pytest.mark.promise("sync.opens")
def test_what_cannot_be_opened_is_refused_by_type(tmp_path: Path, hosting: Hosting) -> None:
    """Another project, a key that is not here, an altered or torn payload, and what is none."""
    with devices(tmp_path, 2, float, hosting.url, hosting.token) as (one, other):
        one.remember("The kettle is blue", path=PATH)
        one.sync.now()
        other.sync.now()
        payload = answer_of(hosting, one, PATH)["payload"]
        with Memory.open(tmp_path / "stranger", embedder="hashing", warm=False) as stranger:
            with pytest.raises(InvalidInput, match="sync init"):
                stranger.sync.open(payload)
            stranger.sync.init(hosting.url, token=hosting.token)
            with pytest.raises(WrongKey, match="project"):
                stranger.sync.open(payload)
            renamed = payload | {"project": stranger.sync.status().project}
            with pytest.raises(WrongKey, match="does not have the key"):
                stranger.sync.open(renamed)
        sealed = bytearray(base64.b64decode(payload["sealed"]))
        sealed[40] ^= 1
        for torn in (bytes(sealed), bytes(sealed[:300]), b""):
            with pytest.raises(RemoteTampered):
                one.sync.open(payload | {"sealed": base64.b64encode(torn).decode()})
        with pytest.raises(RemoteTampered):
            one.sync.open(payload | {"sealed": payload["sealed"][:301]})
        with pytest.raises(RemoteTampered):
            one.sync.open(payload | {"number": payload["number"] + 1})
        forged = base64.b64encode(bytes(64)).decode()
        for device in (one, other):
            with pytest.raises(RemoteTampered, match="not signed"):
                device.sync.open(payload | {"signature": forged})
        nothings: tuple[Any, ...] = ({}, {"payload": None}, "{", b"\xff", {"device": 1})
        for nothing in nothings:
            with pytest.raises(InvalidInput):
                one.sync.open(nothing)


@pytest.mark.promise("sync.opens")
def test_an_entry_whose_words_were_forgotten_has_no_content(
    tmp_path: Path, hosting: Hosting
) -> None:
    """It opens, says so, and holds nothing."""
    with devices(tmp_path, 1, float, hosting.url, hosting.token) as (one,):
        kept = one.remember("The kettle is blue", path=PATH)
        one.sync.now()
        number = answer_of(hosting, one, PATH)["payload"]["number"]
        one.forget(kept.id)
        one.sync.now()
        status = one.sync.status()
        (gone,) = hosting.memory.hosted_logs.read(status.project, status.device, number - 1, 1)
        entry = one.sync.open(gone)
        assert (entry.without_content, entry.items) == (True, ())


@pytest.mark.promise("sync.opens")
def test_a_payload_is_opened_on_the_command_line(tmp_path: Path) -> None:
    """From a file or standard input, in words and as JSON."""
    remote = tmp_path / "remote"
    remote.mkdir()
    home = tmp_path / "home"
    run(home, "remember", "The kettle is blue", "--path", PATH)
    run(home, "sync", "init", str(remote))
    run(home, "sync", "now")
    file = max(remote.rglob("*.entry"))
    (item,) = told(home, "sync", "open", str(file))["items"]
    assert item["values"]["text"] == "The kettle is blue"
    assert "The kettle is blue" in run(home, "sync", "open", "-", given=file.read_text())
    run(home, "sync", "open", "-", given="nonsense", code=2)
