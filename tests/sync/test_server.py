"""A server as a remote: real HTTP, its own home, and the seed's request."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from tests.surfaces.page_desk import serving
from tests.sync.devices import History, devices, settle, state_of, words_of

from anaphora import Memory
from anaphora.errors import Diverged, RemoteError, RemoteTampered

pytestmark = pytest.mark.enable_socket


@dataclass(frozen=True)
class Hosting:
    """A server that keeps logs."""

    memory: Memory
    url: str
    token: str


@pytest.fixture
def hosting(tmp_path: Path) -> Iterator[Hosting]:
    """A server with a home of its own, that lets in who has a token."""
    with Memory.open(tmp_path / "server", embedder="hashing", warm=False) as memory:
        token = memory.tokens.create("devices", namespaces=["default"]).secret
        options = {"require_token": True, "page": None, "rate": 10_000, "burst": 10_000}
        with serving(memory, options) as url:
            yield Hosting(memory, url.rstrip("/"), token)


@pytest.mark.promise("sync.converges")
@pytest.mark.parametrize("seed", range(100, 102))
def test_devices_agree_over_a_server(tmp_path: Path, hosting: Hosting, seed: int) -> None:
    """As over a folder."""
    chance = random.Random(seed)
    with devices(tmp_path, 3, lambda n: 7.0 * n, hosting.url, hosting.token) as made:
        history = History(made, chance, tmp_path)
        history.run(30)
        settle(made)
        states = [state_of(memory, tmp_path) for memory in made]
        assert all(state == states[0] for state in states)
        assert history.said - history.forgotten <= words_of(made[0], tmp_path)


@pytest.mark.promise("sync.sealed")
def test_a_server_answers_and_reads_nothing(tmp_path: Path, hosting: Hosting) -> None:
    """The seed's request is answered with ciphertext and status; nothing stands in its home."""
    with devices(tmp_path, 2, float, hosting.url, hosting.token) as (one, other):
        one.remember("Zanzibar prefers quiet mornings", path="guest.habit", tags=["breakfast"])
        one.conversations.append("lobby-talk", "user", "Wisteria blooms", speaker="Ophelia")
        one.sync.now()
        project = one.sync.status().project
        params = {"project_id": project, "query_hash": one.sync.hash_of("guest.habit")}
        headers = {"Authorization": f"Bearer {hosting.token}"}
        place = f"{hosting.url}/v2/agent-state"
        answer = httpx.get(place, params=params, headers=headers).json()
        assert answer["status"] == "active"
        assert answer["heads"][one.sync.status().device]["number"] == 2
        assert len(base64.b64decode(answer["payload"]["sealed"])) >= 1024
        unknown = params | {"query_hash": "5e883"}
        assert httpx.get(place, params=unknown, headers=headers).json()["payload"] is None
        other.sync.now()
        assert [record.text for record in other.list()] == ["Zanzibar prefers quiet mornings"]
    kept = b"".join(
        file.read_bytes() for file in (tmp_path / "server").rglob("*") if file.is_file()
    )
    kept += json.dumps(answer).encode()
    words = ["Zanzibar", "guest.habit", "breakfast", "lobby-talk", "Wisteria", "Ophelia"]
    assert [word for word in words if word.encode() in kept] == []


@pytest.mark.promise("sync.hostile")
def test_a_server_refuses_what_does_not_follow(tmp_path: Path, hosting: Hosting) -> None:
    """Without a token 401; another entry under a number, or one behind a gap, 409; nonsense 422."""
    place = f"{hosting.url}/v2/agent-state"
    assert httpx.get(place, params={"project_id": "p"}).status_code == 401
    headers = {"Authorization": f"Bearer {hosting.token}"}
    with devices(tmp_path, 1, float, hosting.url, hosting.token) as (one,):
        for text in ("The kettle is blue", "The cup is green"):
            one.remember(text)
            one.sync.now()
        status = one.sync.status()
        params = {"project_id": status.project, "device": status.device}
        found = httpx.get(f"{place}/entries", params=params, headers=headers).json()["entries"]
        assert [entry["number"] for entry in found] == [1, 2, 3]
        body = {"project_id": status.project, "entries": found}
        assert httpx.post(place, json=body, headers=headers).json()["accepted"] == 0
        for changed, code in (
            (found[2] | {"sealed": found[0]["sealed"]}, 409),
            (found[2] | {"number": 5}, 409),
            (found[2] | {"number": 4}, 409),
            (found[2] | {"project": "another"}, 422),
            (found[2] | {"sealed": "?"}, 422),
            (found[2] | {"signature": "?"}, 422),
            ({}, 422),
        ):
            body = {"project_id": status.project, "entries": [changed]}
            assert httpx.post(place, json=body, headers=headers).status_code == code, changed


@pytest.mark.promise("sync.forgets")
def test_a_server_drops_what_was_forgotten(tmp_path: Path, hosting: Hosting) -> None:
    """The content goes from the server's home; one that goes by itself is named."""
    with devices(tmp_path, 2, float, hosting.url, hosting.token) as (one, other):
        one.remember("Zanzibar prefers quiet mornings")
        settle([one, other])
        project, device = one.sync.status().project, one.sync.status().device
        _, entry = hosting.memory.hosted_logs.read(project, device, limit=2)
        assert entry["sealed"].encode() in _bytes_of(tmp_path / "server")
        one.forget(next(iter(one.list())).id)
        one.remember("The cup is green")
        settle([one, other])
        assert entry["sealed"].encode() not in _bytes_of(tmp_path / "server")
        with Memory.open(tmp_path / "new", embedder="hashing", warm=False) as new:
            new.sync.init(hosting.url, token=hosting.token, key=one.sync.export_key())
            new.sync.now()
            assert [record.text for record in new.list()] == ["The cup is green"]
        one.remember("The plate is white")
        one.sync.now()
        last = hosting.memory.hosted_logs.heads(project)[device]
        (entry,) = hosting.memory.hosted_logs.read(project, device, last.number - 1, 1)
        gone = {name: value for name, value in entry.items() if name != "sealed"}
        hosting.memory.hosted_logs.drop(project, [gone | {"dropped": last.snapshot_id}])
        with pytest.raises(RemoteTampered, match="no device has said so"):
            other.sync.now()


def _bytes_of(home: Path) -> bytes:
    return b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())


@pytest.mark.promise("sync.interrupted")
def test_a_server_that_is_away_or_refuses(tmp_path: Path, hosting: Hosting) -> None:
    """What cannot be sent waits; a token that was revoked stops it, with a plain word."""
    with devices(tmp_path, 1, float, hosting.url, hosting.token) as (one,):
        one.remember("The kettle is blue")
        hosting.memory.tokens.revoke(hosting.memory.tokens.list()[0].id)
        with pytest.raises(RemoteError, match="token") as caught:
            one.sync.now()
        assert caught.value.lasting
        assert "token" in (one.sync.status().stopped or "")
        assert one.sync.status().waiting == 1
    with Memory.open(tmp_path / "other", embedder="hashing", warm=False) as memory:
        memory.remember("The cup is green")
        with serving(hosting.memory, {"page": None}) as url:
            memory.sync.init(url)
        with pytest.raises(RemoteError) as away:
            memory.sync.now()
        assert not away.value.lasting
        assert memory.sync.status().stopped is None


@pytest.mark.promise("sync.copies")
def test_two_copies_of_a_device_at_once(tmp_path: Path, hosting: Hosting) -> None:
    """The second to send is told, and nothing of the first is overwritten."""
    with devices(tmp_path, 1, float, hosting.url, hosting.token) as (one,):
        one.remember("The kettle is blue")
        one.sync.now()
        one.backup(tmp_path / "backup.zip")
        Memory.restore(tmp_path / "backup.zip", tmp_path / "copy")
        with Memory.open(tmp_path / "copy", embedder="hashing", warm=False) as copy:
            copy.remember("The cup is green")
            copy.sync.now()
            one.remember("The plate is white")
            with pytest.raises(Diverged, match="sync fork"):
                one.sync.now()
            one.sync.fork()
            settle([one, copy])
            assert len(one.list()) == len(copy.list()) == 3
