"""Targets that take whole memories in: exports as lines, and backups.

In: a private folder. Out: rooms. An import says what it could not read, and what came in can go out
again; a backup that was changed is refused, and nothing of it is left.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from anaphora import Memory, NewTurn
from anaphora.errors import AnaphoraError, InvalidInput, StoreError

from .mutating import Mutator
from .rooms import Room, dice, expect

__all__ = ["backups", "transfers"]

_WHEN = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)


def _clock() -> datetime:
    return _WHEN


def _filled(home: Path) -> None:
    """A small home that has a little of everything."""
    with Memory.open(home, embedder="hashing", clock=_clock) as memory:
        turns = [
            NewTurn("user", "a heron <stood> in the river", ts=_WHEN, speaker="Ada"),
            NewTurn("assistant", "it was grey \ud800\u2028", ts=_WHEN, intent_id="i1"),
        ]
        memory.conversations.extend("c1", turns)
        memory.conversations.append("C/2".replace("/", "."), "user", "nothing to see")
        memory.remember("The heron is grey.", tags=("bird",), category="birds", path="bird.heron")
        memory.remember("The heron is white.", path="bird.heron", payload={"a": [1, {"b": 2.5}]})
        memory.remember("Herons eat fish.", type="episodic", expires_at=_WHEN + timedelta(days=9))
        memory.remember("Herons eat fish.", type="episodic", source="book")
        memory.observe("the tests need a river", kind="blocker", importance=4, tags=("x",))
        memory.write_diary("We looked at herons.", subject="birds")
        memory.deep_recall("how often did the heron come, and when first?")
        gone = memory.remember("to be gone").id
        memory.forget(gone)
        kept = memory.scoped("other")
        kept.remember("Elsewhere it rains.")


@contextmanager
def transfers(folder: Path, shared: Path | None) -> Iterator[Room]:
    """Exports that were changed, each into a namespace of its own."""
    _filled(folder / "source")
    exports = []
    with Memory.open(folder / "source", embedder="hashing") as source:
        for number, view in enumerate((source, source.scoped("other"))):
            view.export(folder / f"export{number}.jsonl")
            exports.append((folder / f"export{number}.jsonl").read_bytes())
    lines = [line for line in exports[0].splitlines(keepends=True)[1:] if line.strip()]
    head = exports[0].splitlines(keepends=True)[0]
    # Files of one kind of line alone, so that a change meets each kind as often.
    kinds = {json.loads(line)["kind"]: line for line in lines}
    corpus = (*exports, *(head + line + line for line in kinds.values()), head + _linked(lines))
    numbers = itertools.count()
    with Memory.open(folder / "home", embedder="hashing") as whole:

        def check(data: bytes) -> None:
            number = next(numbers)
            memory, path = whole.scoped(f"n{number}"), folder / "changed.jsonl"
            path.write_bytes(data)
            try:
                memory.import_(path, format="anaphora", embed=dice(data, 4) == 0)
            except AnaphoraError as error:
                expect(isinstance(error, (InvalidInput, StoreError)), repr(error))
                assert not memory.list().items
                return
            _whole(memory)
            again = memory.import_(path, format="anaphora", embed=False)
            assert (again.added, again.memories_added, again.notes_added) == (0, 0, 0), again
            if memory.namespace not in whole.namespaces():
                return
            out = folder / "again.jsonl"
            memory.export(out)
            copy = whole.scoped(f"n{number}copy")
            report = copy.import_(out, format="anaphora", embed=False)
            out.unlink()
            assert not report.problems, report.problems[:3]
            assert _texts(copy) == _texts(memory)

        yield Room(corpus, check)


def _linked(lines: Sequence[bytes]) -> bytes:
    """The memories of an export, and a link between two of them."""
    memories = [line for line in lines if json.loads(line)["kind"] == "memory"]
    one, other = (json.loads(line) for line in memories[:2])
    link = {
        "kind": "link",
        "namespace": one["namespace"],
        "between": [one["id"], other["id"]],
        "relation": "near",
        "strength": 0.9,
    }
    return b"".join(memories[:2]) + json.dumps(link).encode() + b"\n"


def _whole(memory: Memory) -> None:
    """Everything that came in can be looked at."""
    for one in memory.list(limit=1_000):
        assert memory.get(one.id).text == one.text
    for thread in memory.conversations.list():
        assert memory.conversations.get(thread.conversation_id) is not None
    memory.gaps(None)
    memory.recall("heron")
    memory.recall_conversation(None, "heron")


def _texts(memory: Memory) -> tuple[list[str], list[tuple[str, ...]]]:
    threads = [memory.conversations.get(t.conversation_id) for t in memory.conversations.list()]
    return (
        sorted(one.text for one in memory.list(limit=1_000)),
        sorted(tuple(turn.text for turn in thread.turns) for thread in threads if thread),
    )


@contextmanager
def backups(folder: Path, shared: Path | None) -> Iterator[Room]:
    """Backups that were changed: byte by byte, or a member or the manifest and packed again."""
    _filled(folder / "source")
    with Memory.open(folder / "source", embedder="hashing") as source:
        source.backup(folder / "good.zip")
    good = (folder / "good.zip").read_bytes()
    (folder / "place").mkdir()
    numbers = itertools.count()

    def check(data: bytes) -> None:
        path, target = folder / "changed.zip", folder / "place" / f"home{next(numbers)}"
        path.write_bytes(data)
        beside = set((folder / "place").iterdir())
        try:
            Memory.restore(path, target)
        except AnaphoraError as error:
            expect(isinstance(error, (InvalidInput, StoreError)), repr(error))
            left = set((folder / "place").iterdir()) - beside
            assert not left, f"this is left: {left}"
            return
        assert target.is_dir()
        inside = {place.resolve() for place in target.rglob("*")}
        assert all(place.is_relative_to(target.resolve()) for place in inside)

    yield Room((good,), check, _repacked)


def _repacked(mutator: Mutator, corpus: Sequence[bytes]) -> bytes:
    """A backup with one member changed and named rightly, or with damage in the zip file itself."""
    good = mutator.random.choice(corpus)
    if mutator.random.random() < 0.4:
        return mutator.change(good, corpus)
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = mutator.random.choice([*members, "manifest.json", "manifest.json"])
    if name == "manifest.json":
        members[name] = mutator.change(members[name], [members[name]])
    elif mutator.random.random() < 0.5:
        _renamed(mutator, members, name)
    else:
        members[name] = mutator.change(members[name], list(members.values()))
        _listed(members, name)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for each, data in members.items():
            archive.writestr(zipfile.ZipInfo(each, (2026, 4, 30, 12, 0, 0)), data)
    return target.getvalue()


def _renamed(mutator: Mutator, members: dict[str, bytes], name: str) -> None:
    other = mutator.random.choice(
        ["../out", "/tmp/out", "conversations/../../out", "conversations/a/b/c", "x" * 300, "a\\b",
         "conversations/" + "y" * 300 + ".json", "namespaces/n/truth.db", "C:/out",
         "conversations/"]
    )  # fmt: skip
    members[other] = members.pop(name)
    _listed(members, other, name)


def _listed(members: dict[str, bytes], name: str, before: str | None = None) -> None:
    """Let the manifest say the truth of this member."""
    manifest: dict[str, Any] = json.loads(members["manifest.json"])
    manifest["members"].pop(before, None)
    digest = hashlib.sha256(members[name]).hexdigest()
    manifest["members"][name] = {"sha256": digest, "bytes": len(members[name])}
    members["manifest.json"] = json.dumps(manifest).encode()
