"""One contract for every remote: a folder, a server, S3 storage."""

from __future__ import annotations

import json
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from tests.surfaces.page_desk import serving
from tests.sync.devices import History, devices, settle, state_of, words_of

from anaphora import Memory
from anaphora.errors import Diverged, InvalidInput, RemoteError
from anaphora.features.sync.remotes.opening import open_remote

pytestmark = pytest.mark.enable_socket
WEED = Path(sys.executable).with_name("weed")
KEY = "test-key:test-secret"


@dataclass(frozen=True)
class Place:
    """Where a remote is."""

    address: str
    token: str | None = None


def _free_ports(count: int) -> list[int]:
    """Ports that are free together with those ten thousand above, where the program has its calls.

    Both lie below the ports that connections of other tests are given.
    """
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(10_000, 22_000)
        with socket.socket() as own, socket.socket() as above:
            try:
                own.bind(("127.0.0.1", port))
                above.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            found.append(port)
    return found


@contextmanager
def s3_server(folder: Path) -> Iterator[str]:
    """A real S3 server with a bucket."""
    folder.mkdir(parents=True, exist_ok=True)
    keys = folder / "s3.json"
    access, secret = KEY.split(":")
    keys.write_text(
        '{"identities": [{"name": "t", "credentials": [{"accessKey": "' + access + '", '
        '"secretKey": "' + secret + '"}], "actions": ["Admin", "Read", "Write", "List"]}]}'
    )
    master, volume, filer, port = _free_ports(4)
    command = [
        str(WEED), "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
        f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}",
        "-s3", f"-s3.port={port}",
        "-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.config={keys}", "-volume.max=20",
        "-master.volumeSizeLimitMB=64",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        program = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield _with_bucket(f"http://127.0.0.1:{port}", program, folder / "log")
    finally:
        # What it holds is thrown away: an orderly end takes it half a minute.
        program.kill()
        program.wait(30)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same, where the program is installed."""
    if not WEED.exists() and shutil.which("weed") is None:
        pytest.skip("seaweedfs is not installed")
    with s3_server(tmp_path_factory.mktemp("weed")) as url:
        yield url


def _with_bucket(url: str, program: subprocess.Popen[bytes], log: Path) -> str:
    remote = open_remote(f"s3://memory/begin?endpoint={url}&region=us-east-1", KEY)
    for _ in range(240):
        assert program.poll() is None, log.read_text("utf-8", "replace")[-2000:]
        try:
            httpx.get(url)
            remote.write("begin", "device", 1, b"{}")
        except (httpx.HTTPError, RemoteError):
            time.sleep(0.25)
            continue
        return url
    raise AssertionError(log.read_text("utf-8", "replace")[-2000:])


@pytest.fixture(params=["folder", "server", "storage"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A remote that is empty."""
    if request.param == "folder":
        (tmp_path / "shared").mkdir()
        yield Place(str(tmp_path / "shared"))
    elif request.param == "server":
        with (
            Memory.open(tmp_path / "server", embedder="hashing", warm=False) as memory,
            serving(memory, {"page": None, "rate": 10_000, "burst": 10_000}) as url,
        ):
            yield Place(url)
    else:
        url = request.getfixturevalue("storage")
        name = f"{random.getrandbits(48):x}"
        yield Place(f"s3://memory/{name}?endpoint={url}&region=us-east-1", KEY)


@pytest.mark.promise("sync.remotes")
def test_a_remote_keeps_what_it_was_given(tmp_path: Path, place: Place) -> None:
    """Devices see one another's entries, in order, once each, under their own names."""
    with (
        closing(open_remote(place.address, place.token)) as remote,
        devices(tmp_path, 2, float, place.address, place.token) as (one, other),
    ):
        remote.check()
        project = one.sync.status().project
        assert remote.heads(project) == {}
        for text in ("The kettle is blue", "The cup is green"):
            one.remember(text)
            one.sync.now()
        device = one.sync.status().device
        assert remote.heads(project) == {device: 3}
        first, second, third = remote.read(project, device, 1, 10)
        assert remote.read(project, device, 2, 1) == [second]
        assert list(remote.read(project, device, 4, 5)) == []
        remote.write(project, device, 3, third)
        with pytest.raises(Diverged):
            remote.write(project, device, 3, json.dumps(json.loads(first) | {"number": 3}).encode())
        assert remote.read(project, device, 3, 1) == [third]
        assert other.sync.now().received == 3
        assert remote.heads("another") == {}


@pytest.mark.promise("sync.converges")
@pytest.mark.parametrize("seed", [200])
def test_devices_agree_over_every_remote(tmp_path: Path, place: Place, seed: int) -> None:
    """One state everywhere, whatever is between them."""
    chance = random.Random(seed)
    with devices(tmp_path, 3, lambda n: 7.0 * n, place.address, place.token) as made:
        history = History(made, chance, tmp_path)
        history.run(25)
        settle(made)
        states = [state_of(memory, tmp_path) for memory in made]
        assert all(state == states[0] for state in states)
        assert history.said - history.forgotten <= words_of(made[0], tmp_path)


@pytest.mark.promise("sync.remotes")
def test_an_address_that_is_none_is_refused(storage: str) -> None:
    """A kind that nobody knows, a bucket without a name, an option that is none, a wrong key."""
    for wrong in ("ftp://there", "relative/folder", "s3://", "s3://memory/x?colour=blue"):
        with pytest.raises(InvalidInput, match="remote"):
            open_remote(wrong)
    remote = open_remote(f"s3://memory/x?endpoint={storage}&region=us-east-1", "test-key:wrong")
    with pytest.raises(RemoteError):
        remote.heads("p")


@pytest.mark.promise("sync.converges")
def test_devices_agree_whatever_database_they_have(
    tmp_path: Path, new_database: Callable[[], str]
) -> None:
    """One with files, two on a PostgreSQL, and a server that keeps the logs on another one."""
    chance = random.Random(7)
    with (
        Memory.open(
            tmp_path / "server", database=new_database(), embedder="hashing", warm=False
        ) as memory,
        serving(memory, {"page": None, "rate": 10_000, "burst": 10_000}) as url,
    ):
        databases = [None, new_database(), new_database()]
        with devices(tmp_path, 3, lambda n: 7.0 * n, url, databases=databases) as made:
            history = History(made, chance, tmp_path)
            history.run(14)
            made[1].sync.compact()
            history.run(6)
            settle(made)
            states = [state_of(memory, tmp_path) for memory in made]
            assert all(state == states[0] for state in states)
            assert history.said - history.forgotten <= words_of(made[0], tmp_path)
            made[2].sync.verify()
