"""Removing a device is final: in whatever order devices read, and whoever was away."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest
from tests.sync import thieves
from tests.sync.devices import Clock, devices, settle, state_of, words_of

from anaphora import Memory
from anaphora.errors import DeviceRemoved

pytestmark = pytest.mark.internal

FIRST, LAST = "0" * 16, "f" * 16
GATE = "The gate code is 1111."


def say(thief: Memory) -> None:
    """Another value, and news."""
    thief.remember("The gate code is 6666.", path="gate.code")
    thief.remember("Evil is at the door.")
    thief.conversations.append("talk", "user", "Evil words")
    thieves.send(thief)


def forget(thief: Memory) -> None:
    """Everything goes."""
    for record in thief.list():
        thief.forget(record.id)
    thief.conversations.delete("talk")
    thieves.send(thief)


def update(thief: Memory) -> None:
    """Memories are changed in place and said again elsewhere."""
    for record in thief.list():
        thief.update(record.id, tags=["evil"], path="evil.path", text=f"Evil: {record.text}")
    thieves.send(thief)


def remove_all(thief: Memory) -> None:
    """The others are removed, and the key is a new one."""
    for device in thief.sync.devices():
        if not device.this and not device.removed:
            thieves.remove(thief, device.device)
    say(thief)


def compact(thief: Memory) -> None:
    """All that was said is said again, and what it was said in is emptied."""
    say(thief)
    with thieves.deaf():
        thief.sync.compact()


ACTS: list[Callable[[Memory], None]] = [say, forget, update, remove_all, compact]


def clean(memory: Memory, place: Path) -> None:
    """Nothing of the thief behind the mark is there."""
    said = "\n".join(state_of(memory, place))
    assert "is 6666" not in said
    assert "vil" not in said


@pytest.mark.promise("sync.removal")
@pytest.mark.parametrize(
    ("act", "name"),
    [(act, "") for act in ACTS] + [(act, (FIRST, LAST)[at % 2]) for at, act in enumerate(ACTS)],
)
def test_a_thief_writes_on(tmp_path: Path, act: Callable[[Memory], None], name: str) -> None:
    """Under the same or a new name, read before or behind the removal, by whoever was away."""
    chance = random.Random(f"{act.__name__} {name}")
    apart = [chance.choice([0.0, 3.0, -86_400.0, 4e8]) for _ in range(5)]
    with devices(tmp_path, 4, lambda n: apart[n]) as (one, thief, away, near):
        one.remember(GATE, path="gate.code")
        one.conversations.append("talk", "user", "The kettle is blue")
        away.remember("The stool is brown")
        settle([one, thief, away, near])
        thief.remember("The cup is green")
        settle([one, thief, near])
        gone = thief.sync.status().device
        early = chance.random() < 0.5
        if early:
            one.sync.remove(gone)
        if name:
            thieves.forge(thief, name)
        act(thief)
        joiner = Memory.open(
            tmp_path / "joiner", embedder="hashing", clock=Clock(apart[4]), warm=False
        )
        with joiner:
            joiner.sync.init(str(tmp_path / "remote"), key=away.sync.export_key())
            joiner.remember("The bell is small")
            if not early:
                # It has read what the remover read: the mark is before what the thief does now.
                with thieves.deaf():
                    one.sync.remove(gone)
            readers = [away, near, joiner]
            chance.shuffle(readers)
            told = []
            for reader in [*readers, one, *readers]:
                try:
                    reader.sync.now()
                except DeviceRemoved as error:
                    assert reader is joiner
                    told.append(error)
            assert "join it again" in str(told[-1])
            assert "join it again" in (joiner.sync.status().stopped or "")
            settle([one, away, near])
            joiner.sync.leave()
            joiner.sync.init(str(tmp_path / "remote"), key=one.sync.export_key())
            honest = [one, away, near, joiner]
            settle(honest)
            states = [state_of(memory, tmp_path) for memory in honest]
            assert states[0] == states[1] == states[2] == states[3]
            for memory in honest:
                clean(memory, tmp_path)
                assert words_of(memory, tmp_path) == {
                    GATE, "The stool is brown", "The cup is green", "The bell is small",
                    "The kettle is blue",
                }  # fmt: skip
            one.remember("The gate code is 2222.", path="gate.code")
            settle(honest)
            for memory in honest:
                assert memory.list(filters={"path": "gate.code"}).items[0].text.endswith("2222.")
                memory.sync.verify()


def relabel(thief: Memory) -> None:
    """Values of fields are replaced by others: a title, labels."""
    thief.conversations.set_title("talk", "An evil title")
    for record in thief.list():
        thief.update(record.id, category="evil", tags=["evil"])
    thieves.send(thief)


@pytest.mark.promise("sync.removal")
@pytest.mark.parametrize("name", ["", FIRST, LAST])
@pytest.mark.parametrize("act", [relabel, say, forget])
def test_a_device_believed_it_and_compacted(
    tmp_path: Path, act: Callable[[Memory], None], name: str
) -> None:
    """It has emptied the entries with the values that were replaced: these are said again."""
    with devices(tmp_path, 3, float) as (one, thief, away):
        one.remember(GATE, path="gate.code", category="house", tags=["gate"])
        one.conversations.append("talk", "user", "The kettle is blue")
        one.conversations.set_title("talk", "About a kettle")
        settle([one, thief, away])
        before = state_of(one, tmp_path)
        with thieves.unread_removal(tmp_path / "remote", one, thief.sync.status().device):
            if name:
                thieves.forge(thief, name)
            act(thief)
            away.sync.now()
            away.sync.compact()
        settle([away, one])
        for memory in (one, away):
            clean(memory, tmp_path)
            thread = memory.conversations.get("talk")
            assert thread is not None
            assert thread.title == "About a kettle"
            (record,) = memory.list(filters={"path": "gate.code"})
            assert (record.text, record.category, record.tags) == (GATE, "house", ("gate",))
        assert state_of(one, tmp_path) == state_of(away, tmp_path)
        assert words_of(one, tmp_path) == {GATE, "The kettle is blue"}
        assert len(state_of(one, tmp_path)) == len(before)


@pytest.mark.promise("sync.removal")
@pytest.mark.parametrize("founder", [True, False])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_two_remove_each_other(tmp_path: Path, order: tuple[int, ...], *, founder: bool) -> None:
    """The first device of the project wins, in whatever order all read; else both are out."""
    with devices(tmp_path, 3, float) as (first, second, third):
        first.remember(GATE, path="gate.code")
        settle([first, second, third])
        one, other, witness = (first, second, third) if founder else (second, third, first)
        names = {memory: memory.sync.status().device for memory in (one, other)}
        with thieves.unread_removal(tmp_path / "remote", one, names[other]):
            other.sync.remove(names[one])
        told: dict[int, str] = {}
        for place in (*order, *order):
            memory = (one, other, witness)[place]
            try:
                memory.sync.now()
            except DeviceRemoved as error:
                told[place] = str(error)
        assert set(told) == ({1} if founder else {0, 1})
        for words in told.values():
            assert "join again" in words
        assert ("project's first device" in told[1]) == founder
        known = {device.device for device in witness.sync.devices() if device.removed}
        assert known == ({names[other]} if founder else set(names.values()))
