"""Each call under each fault of the operating system, at some of the calls where it can strike."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from tests.durability.campaign import FAULTS, Campaign, Tally, chosen
from tests.durability.faults import Fault
from tests.durability.work import WORKS, look, memory_of

pytestmark = pytest.mark.internal

# Two of the many for each work and fault; the last call that a fault can hit is one. FAULT_POINTS=0
# strikes each work under each fault at every call: that takes hours.
POINTS = int(os.environ.get("FAULT_POINTS", "2"))
SECONDS = 300 if POINTS else 0
THREADS = ("append", "append first", "append with a speaker", "title", "redact", "delete", "import")
FORGETTING = ("forget", "forget while it is read", "forget softly")
MEMORIES = ("remember", "remember many", "update", *FORGETTING, "reindex")
NOTES = ("observe", "diary", "index a project", "make a token")
COPIES = ("backup", "restore", "export")
SEALED = ("encrypt", "decrypt", "rotate the key", "rotate the key deeply")
IN_SEALED = ("append, sealed", "remember, sealed")
KILLS = ("killed", "killed in a write")
FULL = ("full disk", "full disk in a write", "over quota", "file too large")
BROKEN = ("write fails", "name fails", "read fails")
SYNCS = ("sync fails", "sync fails from then on")
REFUSED = ("read-only", "no permission", "too many open files")


def struck(campaign: Campaign, works: tuple[str, ...], faults: tuple[str, ...]) -> Tally:
    """What came of these works under one fault at a time, each work meeting one of the kinds."""
    tally = Tally()
    for number, name in enumerate(works):
        # Every kind meets some of the works, and all of them where every call is struck.
        for what in faults[number % len(faults) :][:1] if POINTS else faults:
            chance = random.Random(f"{name} {what}")
            for at in chosen(campaign.calls(name, FAULTS[what]), POINTS, chance):
                tally.add(campaign.strike(name, what, at))
    return tally


def test_the_groups_are_everything() -> None:
    """No work and no fault is left out of the tests below."""
    works = {*THREADS, *MEMORIES, *NOTES, *COPIES, *SEALED, *IN_SEALED}
    assert works == set(WORKS)
    assert {*KILLS, *FULL, *BROKEN, *SYNCS, *REFUSED} == set(FAULTS)


def under(what: str, faults: tuple[str, ...], comes_of_it: str, mark: pytest.MarkDecorator) -> Any:
    """A row of the test below: these faults, and what at least one of the runs must come to."""
    return pytest.param(faults, comes_of_it, id=what, marks=mark)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("works", [THREADS, MEMORIES, NOTES, COPIES, (*SEALED, *IN_SEALED)])
@pytest.mark.parametrize(
    ("faults", "comes_of_it"),
    [
        # It opens with all that was acknowledged, each thing whole or not there.
        under("killed", KILLS, "killed", pytest.mark.promise("durable.killed")),
        # No room, a quota, a limit on sizes: all is as it was, and a retry works.
        under("full disk", FULL, "refused", pytest.mark.promise("durable.refused")),
        # A write, a name or a read fails once, and the next try does it.
        under("fails once", BROKEN, "refused", pytest.mark.promise("durable.refused")),
        # What was not synced is not acknowledged.
        under("sync fails", SYNCS, "refused", pytest.mark.promise("durable.refused")),
        # Read-only from some call on, rights lost, no descriptor left: all is kept.
        under("not writable", REFUSED, "refused", pytest.mark.promise("durable.refused")),
    ],
)
def test_a_fault_at_some_of_the_calls(
    campaign: Campaign, works: tuple[str, ...], faults: tuple[str, ...], comes_of_it: str
) -> None:
    """Killed there or refused with an error of ours, a home keeps all that was acknowledged."""
    tally = struck(campaign, works, faults)
    assert tally.flaws == []
    assert getattr(tally, comes_of_it) > 0


@pytest.mark.promise("durable.refused")
@pytest.mark.parametrize("name", ["append", "append with a speaker", "remember", *FORGETTING[:2]])
def test_nothing_is_acknowledged_after_a_failed_sync(campaign: Campaign, name: str) -> None:
    """Whichever sync before its return fails, the call does not return as if it had been kept."""
    run = campaign.log(name)
    syncs = [call for call in run.calls[: run.point("done")] if call.syncs]
    # SQLite does not tell when the directory cannot be synced for its new log: see D22.
    ours = [number for number, call in enumerate(syncs) if call.path != "home"]
    assert ours
    tally = Tally()
    for number in ours:
        tally.add(campaign.strike(name, "sync fails", number))
    assert tally.flaws == []
    assert tally.refused == len(ours)


@pytest.mark.promise("durable.refused")
@pytest.mark.parametrize("name", ["backup", "export", "restore"])
def test_what_could_not_be_synced_is_taken_back(campaign: Campaign, name: str) -> None:
    """Where the folder cannot be synced nothing stands there, and a retry works."""
    last = sum(call.syncs for call in campaign.log(name).calls[: campaign.log(name).point("done")])
    tally = campaign.strike(name, "sync fails", last - 1)
    assert tally.flaws == []
    assert (tally.refused, tally.kept) == (1, 0)


@pytest.mark.promise("durable.suspended")
def test_a_process_that_stands_still_in_the_middle_of_a_write(campaign: Campaign) -> None:
    """Others read that thread and write other ones meanwhile; it goes on and keeps its turn."""
    seen = []

    def meanwhile() -> None:
        with memory_of(campaign.place / "home") as other:
            thread = other.conversations.get("talk")
            assert thread is not None
            seen.append(thread.turns[-1].text)
            other.conversations.append("other", "user", "written meanwhile")

    fault = Fault(0, lambda call: call.name == "exchange", meanwhile=meanwhile)
    run = campaign.watched("append", fault)
    assert run.said["first"] == "done"
    assert seen == ["the turn before it"]
    shown = look(campaign.place)
    assert shown["thread talk"][1][-1] == ["user", "one more turn"]
    assert shown["thread other"][1][-1] == ["user", "written meanwhile"]


@pytest.mark.promise("durable.killed")
def test_the_watching_itself(campaign: Campaign) -> None:
    """A fault strikes where it should: a sync fails, a torn write leaves half, a kill ends."""
    once = campaign.watched("append", Fault(0, lambda call: call.syncs, 5))
    assert once.said["first"].startswith("StoreError")
    assert [call.name for call in once.struck] == ["fsync"]
    torn = campaign.watched("append", Fault(0, lambda call: bool(call.data), short=True, kill=True))
    assert (torn.status, len(torn.struck)) == (-9, 1)
    left = list((campaign.place / "home/conversations/.written").glob(".*.swap"))
    assert [path.stat().st_size for path in left] == [len(torn.struck[0].data) // 2]


@pytest.mark.promise("durable.killed")
def test_a_work_does_what_it_says(campaign: Campaign) -> None:
    """A work without a fault changes what it is about, and nothing else that is shown."""
    before, after = campaign.shown("remember")
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    assert changed == {"memory one more memory"}
