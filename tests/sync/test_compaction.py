"""Saying everything again in few entries, reading everything again, and going back in time."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.sync.devices import History, devices, settle, state_of, words_of

from anaphora import Memory
from anaphora.errors import InvalidInput, NotFound, RemoteTampered


def sealed(remote: Path) -> int:
    """How many entries have content."""
    return sum("sealed" in json.loads(file.read_bytes()) for file in remote.rglob("*.entry"))


@pytest.mark.promise("sync.compacted")
def test_a_new_device_begins_from_a_checkpoint(tmp_path: Path) -> None:
    """It reads a few entries instead of all, and has the same; what was forgotten is nowhere."""
    with devices(tmp_path, 2, float) as (one, two):
        for number in range(30):
            memory = (one, two)[number % 2]
            memory.remember(f"Fact number {number}", path=f"place.{number % 5}")
            memory.conversations.append("talk", "user", f"turn {number}")
            memory.sync.now()
        settle([one, two])
        remote = tmp_path / "remote"
        before = sealed(remote)
        one.sync.compact()
        settle([one, two])
        assert sealed(remote) < before / 3
        with Memory.open(tmp_path / "new", embedder="hashing", warm=False) as new:
            new.sync.init(str(remote), key=one.sync.export_key())
            assert new.sync.now().received < 12
            settle([one, two, new])
            assert state_of(new, tmp_path) == state_of(one, tmp_path) == state_of(two, tmp_path)
            (record,) = [one for one in new.list() if one.path == "place.1"]
            new.forget(record.id)
            settle([one, two, new])
            assert state_of(new, tmp_path) == state_of(one, tmp_path) == state_of(two, tmp_path)
            for memory in (one, two, new):
                memory.sync.verify()


@pytest.mark.promise("sync.compacted")
@pytest.mark.parametrize("seed", range(3))
def test_devices_agree_however_often_it_is_compacted(tmp_path: Path, seed: int) -> None:
    """By several devices at once, while others were away; and so does one that joins then."""
    chance = random.Random(seed)
    with devices(tmp_path, 3, lambda n: 5.0 * n) as made:
        history = History(made, chance, tmp_path)
        for _ in range(5):
            history.run(10)
            for memory in made:
                if chance.random() < 0.5:
                    memory.sync.compact()
        settle(made)
        with Memory.open(tmp_path / "new", embedder="hashing", warm=False) as new:
            new.sync.init(str(tmp_path / "remote"), key=made[0].sync.export_key())
            settle([*made, new])
            states = [state_of(memory, tmp_path) for memory in (*made, new)]
            assert all(state == states[0] for state in states)
        left = words_of(made[0], tmp_path)
        assert history.said - history.forgotten <= left
        for memory in made:
            memory.sync.verify()


@pytest.mark.promise("sync.hostile")
def test_all_is_verified_again(tmp_path: Path) -> None:
    """What was read before and is another one now is named; what is whole is counted."""
    with devices(tmp_path, 2, float) as (one, two):
        for text in ("The kettle is blue", "The cup is green"):
            one.remember(text)
            settle([one, two])
        found = two.sync.verify()
        assert (found.entries, found.without_content, found.devices) == (4, 0, 2)
        first = min((tmp_path / "remote").glob(f"*/{one.sync.status().device}/*.entry"))
        second = first.with_name("00000002.entry")
        kept = second.read_bytes()
        second.write_bytes(kept.replace(b'"sealed":"', b'"sealed":"AAAA'))
        for memory in (one, two):
            with pytest.raises(RemoteTampered) as caught:
                memory.sync.verify()
            assert caught.value.number == 2
        second.write_bytes(kept)
        assert two.sync.verify() == found


@pytest.mark.promise("sync.rollback")
def test_what_held_holds_again_everywhere(tmp_path: Path) -> None:
    """Values as they were, new memories hidden, hidden ones back; the history is kept."""
    with devices(tmp_path, 2, lambda n: n * 600.0) as (one, two):
        one.remember("Staging listens on port 5433", path="staging.port")
        one.remember("The kettle is blue")
        hidden = one.remember("The cup is green").id
        settle([one, two])
        before = one.sync.devices()
        (at,) = [device.last_written for device in before if device.this]
        assert at is not None
        two.remember("Staging listens on port 6000", path="staging.port")
        two.remember("The moon is made of cheese")
        two.forget(hidden, soft=True)
        settle([one, two])
        told = two.sync.rollback(at + timedelta(seconds=1), dry_run=True)
        assert (len(told.restated), len(told.hidden), len(told.shown)) == (1, 1, 1)
        assert "The moon is made of cheese" in {record.text for record in one.list()}
        assert two.sync.rollback(at + timedelta(seconds=1)) == told
        settle([one, two])
        for memory in (one, two):
            texts = {record.text for record in memory.list()}
            assert texts == {
                "Staging listens on port 5433", "The kettle is blue", "The cup is green",
            }  # fmt: skip
            values = [record.text for record in memory.history("staging.port")]
            assert values == [
                "Staging listens on port 5433", "Staging listens on port 6000",
                "Staging listens on port 5433",
            ]  # fmt: skip
        with pytest.raises(InvalidInput, match="past"):
            one.sync.rollback(datetime(2031, 1, 1))  # noqa: DTZ001
        with pytest.raises(NotFound):
            one.sync.rollback("0" * 64)
