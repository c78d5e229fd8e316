"""What a loss of power leaves: images of the disk from the log of every call, opened and looked at.

An image keeps what was synced and any part of the rest (tests/durability/images.py).
"""

from __future__ import annotations

import random

import pytest
from tests.durability.campaign import Campaign, Tally
from tests.durability.faults import Call, Fault
from tests.durability.work import WORKS
from tests.sqlite_driver import IS_SAFE

pytestmark = pytest.mark.internal

POINTS = 3
LONG = ("encrypt", "decrypt", "rotate the key deeply")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.promise("durable.power")
@pytest.mark.parametrize("name", WORKS)
def test_a_power_cut(campaign: Campaign, name: str) -> None:
    """Whatever of the unsynced is lost or torn: all acknowledged is there, each thing whole."""
    points = 1 if name in LONG else POINTS
    tally = campaign.crash(name, random.Random(name), points)
    assert tally.flaws == []
    assert tally.images >= points


@pytest.mark.promise("durable.power")
@pytest.mark.parametrize("name", ["append", "redact", "backup", "restore", "encrypt", "remember"])
def test_the_log_is_all_that_happened(campaign: Campaign, name: str) -> None:
    """Played back, the logged calls give the folder as it is in the end, byte for byte."""
    logged, real = campaign.replayed(name)
    for tree in (logged, real):
        for path in [path for path in tree if path.endswith("-shm")]:
            del tree[path]
    assert sorted(logged) == sorted(real)
    assert [path for path in real if logged[path] != real[path]] == []


@pytest.mark.promise("durable.power")
@pytest.mark.parametrize(
    ("name", "lacking"),
    [
        ("append", "home/conversations/."),
        ("append", "home/conversations"),
        ("append first", "home/conversations"),
        ("remember", "home/anaphora.db-wal" if IS_SAFE else "home"),
        ("forget", "home/anaphora.db-wal" if IS_SAFE else "home"),
        ("forget", "home/anaphora.db"),
        ("restore", "."),
        ("rotate the key", "home"),
    ],
)
def test_a_missing_sync_would_be_seen(campaign: Campaign, name: str, lacking: str) -> None:
    """The images have teeth: without one of the syncs that are made, something would be lost."""

    def believed(call: Call) -> bool:
        mine = call.path.startswith(lacking) if lacking.endswith("/.") else call.path == lacking
        return not (call.syncs and mine)

    tally = campaign.crash(name, random.Random(1), 8, believed=believed)
    assert tally.flaws != []


@pytest.mark.promise("durable.power")
@pytest.mark.parametrize("name", ["append", "title", "remember", "update"])
def test_a_retry_after_a_failed_sync_is_on_the_disk(campaign: Campaign, name: str) -> None:
    """A failed sync loses its bytes for good: a retry writes them anew, and they last."""

    def hits(call: Call) -> bool:
        # A directory that failed leaves a turn that stands, and the retry adds another: D13.
        return call.syncs and not call.path.endswith(("home", "conversations"))

    run, tally = campaign.log(name), Tally()
    for number in range(sum(map(hits, run.calls[: run.point("done")]))):
        fault = Fault(number, hits, 5)
        tally.add(campaign.crash(name, random.Random(number), 1, fault=fault))
    assert tally.flaws == []
    assert tally.images > 0


@pytest.mark.promise("durable.power")
def test_an_append_keeps_to_its_order(campaign: Campaign) -> None:
    """Bytes are synced before the rename, the directory after it, both before the call returns."""
    run = campaign.log("append")
    done = run.point("done")
    names = [(call.name, call.path) for call in run.calls[:done]]
    rename = next(at for at, (name, _) in enumerate(names) if name == "exchange")
    temporary = names[rename][1]
    last_write = max(at for at, one in enumerate(names) if one == ("write", temporary))
    assert last_write < names.index(("fsync", temporary)) < rename
    assert ("fsync", "home/conversations") in names[rename:]


@pytest.mark.promise("durable.power")
def test_a_memory_is_synced_before_its_call_returns(campaign: Campaign) -> None:
    """The last write to the log of the database is followed by a sync of it, before the return.

    With a rollback journal its removal is followed by a sync of the folder.
    """
    run = campaign.log("remember")
    if not IS_SAFE:
        calls = [(call.name, call.path) for call in run.calls[: run.point("done")]]
        gone = max(at for at, (name, path) in enumerate(calls) if path.endswith("-journal"))
        assert calls[gone][0].startswith("unlink")
        assert ("fsync", "home") in calls[gone:] or ("fdatasync", "home") in calls[gone:]
        return
    log = [call.name for call in run.calls[: run.point("done")] if call.path.endswith("-wal")]
    assert log[-1] == "fsync"
    assert "pwrite64" in log
