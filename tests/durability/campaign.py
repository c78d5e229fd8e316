"""Every work of `work.py` under every fault, at chosen calls, and what must hold after each.

In: a folder to work in and a `Zygote`. Out: a `Tally`, in which `flaws` must be empty. A call that
meets a fault succeeds or raises an error of ours; what was acknowledged is there, nothing half-done
is; the same call made again, the fault being over, does its work. Used by
tests/durability.
"""

from __future__ import annotations

import errno
import random
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.durability.faults import CHANGES, READS, Call, Fault, Run, Zygote
from tests.durability.images import Disk, Tree, folder_of, read_folder
from tests.durability.work import IGNORE, WORKS, Work, look, make_world

from anaphora.errors import AnaphoraError

__all__ = ["FAULTS", "Campaign", "Kind", "Tally", "chosen"]


def _room(call: Call) -> bool:
    return call.writes or call.made or call.name in {"mkdir", "ftruncate", "fallocate"}


def _changes(call: Call) -> bool:
    opens = call.name == "open" and not (call.made or call.cut)
    return not (opens or call.syncs or call.name in READS)


def _names(call: Call) -> bool:
    return call.made or call.name in {
        "rename",
        "exchange",
        "link",
        "unlink",
        "rmdir",
        "mkdir",
    }


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: at which calls, and what happens there."""

    hits: Callable[[Call], bool]
    error: int = 0
    lasting: bool = False
    short: bool = False
    kill: bool = False
    reads: bool = False

    def fault(self, at: int) -> Fault:
        """The fault at the call number `at` of those that it hits."""
        return Fault(at, self.hits, self.error, self.lasting, self.short, self.kill)


FAULTS: dict[str, Kind] = {
    "killed": Kind(lambda call: True, kill=True),
    "killed in a write": Kind(lambda call: len(call.data) > 1, kill=True, short=True),
    "full disk": Kind(_room, errno.ENOSPC, lasting=True),
    "full disk in a write": Kind(
        lambda call: len(call.data) > 1, errno.ENOSPC, lasting=True, short=True
    ),
    "over quota": Kind(_room, errno.EDQUOT, lasting=True),
    "file too large": Kind(lambda call: call.writes, errno.EFBIG, lasting=True),
    "write fails": Kind(lambda call: call.writes, errno.EIO),
    "sync fails": Kind(lambda call: call.syncs, errno.EIO),
    "sync fails from then on": Kind(lambda call: call.syncs, errno.EIO, lasting=True),
    "name fails": Kind(_names, errno.EIO),
    "read fails": Kind(lambda call: call.name in READS, errno.EIO, reads=True),
    "read-only": Kind(_changes, errno.EROFS, lasting=True),
    "no permission": Kind(_names, errno.EACCES, lasting=True),
    "too many open files": Kind(lambda call: call.name == "open", errno.EMFILE, lasting=True),
}


@dataclass(slots=True)
class Tally:
    """Runs under faults, or images of crashes looked at; and what was wrong, in words.

    `refused` runs raised an error of ours, `survived` did their work all the same; of the refused,
    `kept` had kept the thing though they raised (the last sync failed).
    """

    runs: int = 0
    refused: int = 0
    survived: int = 0
    killed: int = 0
    kept: int = 0
    images: int = 0
    flaws: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count another one's runs here too."""
        for name in ("runs", "refused", "survived", "killed", "kept", "images"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flaws += other.flaws


@dataclass(frozen=True, slots=True)
class _Known:
    """What a work's world shows before it and after it, and the calls of a run without fault."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    run: Run
    start: Tree
    end: Tree


class Campaign:
    """Worlds to try faults on, in `folder`."""

    def __init__(self, folder: Path, zygote: Zygote) -> None:
        self._folder = folder
        self._zygote = zygote
        self._known: dict[tuple[str, bool], _Known] = {}

    def calls(self, name: str, kind: Kind) -> int:
        """At how many calls of a work this kind of fault can strike."""
        known = self._look_at(name, reads=kind.reads)
        return sum(kind.hits(call) for call in known.run.calls)

    def strike(self, name: str, what: str, at: int) -> Tally:
        """A work with one fault: what came of it."""
        kind, known = FAULTS[what], self._look_at(name, reads=FAULTS[what].reads)
        place = self._world(WORKS[name].sealed)
        run = self._run(name, place, kind.fault(at), reads=kind.reads)
        tally = Tally(runs=1)
        if run.struck:
            for flaw in _Judge(WORKS[name], known, run, tally).flaws(place):
                tally.flaws.append(f"{name}, {what} at {at} ({_words(run.struck[0])}): {flaw}")
        return tally

    @property
    def place(self) -> Path:
        """The world of the last run."""
        return self._folder / "world"

    def watched(self, name: str, fault: Fault | None = None) -> Run:
        """A work on a new world, with a fault, as it went; nothing is judged."""
        return self._run(name, self._world(WORKS[name].sealed), fault)

    def shown(self, name: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """What the world of a work shows before it and after it."""
        known = self._look_at(name)
        return known.before, known.after

    def crash(
        self,
        name: str,
        chance: random.Random,
        points: int,
        *,
        fault: Fault | None = None,
        believed: Callable[[Call], bool] = lambda _: True,
    ) -> Tally:
        """A work recorded, and images of power cuts at `points` of its calls looked at (0: all).

        With a `fault` the work is done again after it, and only that is acknowledged. Syncs that
        are not `believed` count as not made: what is looked at must then show flaws.
        """
        known = self._look_at(name)
        run, start = known.run, known.start
        if fault is not None:
            run, start = self._recorded(name, fault)
        calls = [one if believed(one) else replace(one, name="none") for one in run.calls]
        disk, tally = Disk.of(start, calls), Tally()
        every = range(disk.calls + 1)
        chosen = sorted(chance.sample(every, points)) if 0 < points < len(every) else every
        done = run.point("done") if run.said.get("first") == "done" else run.point("end")
        assert done is not None
        for point in {*chosen, done, disk.calls}:
            for tree in disk.images(point, chance):
                place = self._folder / "image"
                folder_of(tree, place)
                tally.images += 1
                acknowledged = point >= done
                for flaw in _seen_flaws(known, _looked(place), acknowledged, WORKS[name]):
                    tally.flaws.append(f"{name}, power cut after {point} calls: {flaw}")
        return tally

    def replayed(self, name: str) -> tuple[Tree, Tree]:
        """The folder as the log of calls has it in the end, and as it was."""
        known = self._look_at(name)
        return Disk.of(known.start, known.run.calls).live(), known.end

    def log(self, name: str) -> Run:
        """The calls of a work without a fault."""
        return self._look_at(name).run

    def _look_at(self, name: str, *, reads: bool = False) -> _Known:
        known = self._known.get((name, reads))
        if known is None:
            known = self._known[name, reads] = self._learnt(name, reads=reads)
        return known

    def _learnt(self, name: str, *, reads: bool) -> _Known:
        sealed = WORKS[name].sealed
        place = self._world(sealed)
        self._zygote.run({"work": name, "place": str(place), "only_begin": True}, place)
        before = look(place)
        place = self._world(sealed)
        start: Tree = {}
        run = self._run(
            name, place, reads=reads, begun=lambda: start.update(read_folder(place, IGNORE))
        )
        assert run.said.get("first") == "done", (name, run.said, run.status)
        end = read_folder(place, IGNORE)
        after = look(place)
        assert not [*before["wrong"], *after["wrong"]], (before["wrong"], after["wrong"])
        return _Known(before, after, run, start, end)

    def _recorded(self, name: str, fault: Fault) -> tuple[Run, Tree]:
        place, start = self._world(WORKS[name].sealed), Tree()
        run = self._run(name, place, fault, begun=lambda: start.update(read_folder(place, IGNORE)))
        return run, start

    def _run(
        self,
        name: str,
        place: Path,
        fault: Fault | None = None,
        *,
        reads: bool = False,
        begun: Callable[[], object] | None = None,
    ) -> Run:
        job = {"work": name, "place": str(place)}
        names = CHANGES | READS if reads else CHANGES
        return self._zygote.run(job, place, fault, names=names, ignore=IGNORE, begun=begun)

    def _world(self, sealed: bool) -> Path:
        made = self._folder / ("sealed" if sealed else "clear")
        if not made.exists():
            make_world(made, sealed=sealed)
        place = self._folder / "world"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(made, place)
        return place


class _Judge:
    """Says what is wrong with a run, and counts how it ended."""

    def __init__(self, work: Work, known: _Known, run: Run, tally: Tally) -> None:
        self._work = work
        self._known = known
        self._run = run
        self._tally = tally

    def flaws(self, place: Path) -> Iterator[str]:
        """What must not be, in words."""
        run, first = self._run, str(self._run.said.get("first", ""))
        if run.hung:
            yield "it never ended"
        if "end" not in dict(run.marks):
            self._tally.killed += 1
            if run.status != -9:
                yield f"the process ended with {run.status}"
            yield from _seen_flaws(self._known, _looked(place), first == "done", self._work)
        elif first == "done":
            self._tally.survived += 1
            yield from _seen_flaws(self._known, _looked(place), True, self._work)
        else:
            self._tally.refused += 1
            yield from self._refused(first, place)

    def _refused(self, first: str, place: Path) -> Iterator[str]:
        if first.startswith("NOT OURS"):
            yield first
        between = self._run.said["between"]
        shows = self._work.home
        if shows:
            yield from _seen_flaws(self._known, between, False, self._work)
        again = self._run.said["again"]
        found, after = _looked(place), self._known.after
        there = not any(_differs(key, found, after) for key in {*found, *after})
        # A home that is sealed in spite of the error says that it is sealed already.
        if again != "done" and not (there and again.startswith("InvalidInput: home: it is")):
            yield f"made again after {first!r}, it fails: {again}"
        kept = {key for key in between if shows and _differs(key, between, self._known.before)}
        self._tally.kept += bool(kept)
        for key in sorted({*found, *after}):
            # What had been kept though it was refused is there twice, or reinforced, now.
            if _differs(key, found, after) and key not in kept:
                yield f"made again, {key}: {_short(found.get(key))}, not {_short(after.get(key))}"


def _seen_flaws(
    known: _Known, found: Mapping[str, Any], acknowledged: bool, work: Work
) -> Iterator[str]:
    """Each thing is as it was or as it will be; all as they will be once acknowledged."""
    before, after = known.before, known.after
    for what in ("wrong", "wrong beside"):
        if found.get(what):
            yield f"{what}: {found[what]}"
    changed = [key for key in {*before, *after} if _differs(key, before, after)]
    for key in sorted({*found, *before, *after} - {"wrong", "wrong beside"}):
        new, old = not _differs(key, found, after), not _differs(key, found, before)
        if not (new if acknowledged else new or old):
            wanted = _short(after.get(key))
            yield f"{key}: {_short(found.get(key))}, not {wanted}; acknowledged: {acknowledged}"
    moved = [key for key in changed if not _differs(key, found, after)]
    if not work.parts and moved and len(moved) < len(changed):
        yield f"in part: {moved} of {changed}"


def _differs(key: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool(one.get(key) != other.get(key)) and key not in {"wrong", "wrong beside"}


def _looked(place: Path) -> Mapping[str, Any]:
    try:
        return look(place)
    except (AnaphoraError, OSError, AssertionError) as error:
        return {"wrong": [f"it does not open: {type(error).__name__}: {error}"]}


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 160 else f"{shown[:60]} … {shown[-90:]}"


def _words(call: Call) -> str:
    return f"{call.name} {call.path}{f' {call.other}' if call.other else ''}"


def chosen(count: int, wanted: int, chance: random.Random) -> Iterable[int]:
    """`wanted` of the numbers below `count`, the last one always; all of them for 0."""
    if not wanted or wanted >= count:
        return range(count)
    return sorted({count - 1, *chance.sample(range(count), wanted)})
