"""What happens to a memory when processes die, and when many use it at once.

In: a folder, a number of rounds or seconds, a source of chance. Out: tallies, in which everything
but the counts of what was done must be nought. `killed` ends a process by `kill -9` at random
moments of one kind of work and looks at what is left; `together` lets processes remember, restate,
supersede, recall and forget on one truth, each checking what the others were told. Used by
tests/test_memory_faults.py and bench/memory_faults.py.
"""

from __future__ import annotations

import itertools
import random
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.memory_child import Child, answers, flaws, holding, texts_of

from anaphora import Memory, keys, ops
from anaphora.errors import AnaphoraError

Answer = list[tuple[str, float]]

KINDS = ("remember", "remember_many", "forget", "reindex", "backup")

MINILM = "minilm"
SHARED = "everybody here says that the kettle is blue"


@dataclass(slots=True)
class Killed:
    """`rounds` kills during one kind of work; `acknowledged` is how much of it was."""

    kind: str
    rounds: int = 0
    acknowledged: int = 0
    lost: int = 0
    revived: int = 0
    in_part: int = 0
    half_written: list[str] = field(default_factory=list)
    wrong_answers: list[str] = field(default_factory=list)
    without_vectors: int = 0
    bad_backups: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def well(self) -> bool:
        """Whether everything was acknowledged, kept, whole and found."""
        wrong = self.lost + self.revived + self.in_part + self.without_vectors + self.bad_backups
        return wrong == 0 and not (self.half_written or self.wrong_answers or self.errors)


@dataclass(slots=True)
class _World:
    """What was acknowledged over the rounds on one home: sealed, or with truth on a server."""

    home: Path
    database: str | None = None
    sealed: bool = False
    kept: dict[str, None] = field(default_factory=dict)
    standing: dict[str, str] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    groups: list[set[str]] = field(default_factory=list)
    backups: dict[Path, int] = field(default_factory=dict)

    def child(self) -> Child:
        """A process with a memory of its own."""
        return Child(self.home, self.database)

    def open(self, embedder: str | None = "hashing") -> Memory:
        """The home, as the next program would open it."""
        return Memory.open(self.home, database=self.database, embedder=embedder)


_Round = Callable[[_World, str, random.Random], tuple[list[Any], list[str]]]


def killed(
    kind: str,
    place: Path,
    rounds: int,
    chance: random.Random,
    *,
    database: str | None = None,
    sealed: bool = False,
) -> Killed:
    """Kill a process `rounds` times during `kind` of work on one home under `place`.

    With `database` truth is on that PostgreSQL, whose server goes on; `sealed` seals the home.
    """
    tally, world = Killed(kind), _World(place / "home", database, sealed)
    if sealed:
        Memory.open(world.home, database=database, encrypt="file", embedder="hashing").close()
    for number in range(rounds):
        replies, errors = _ROUNDS[kind](world, f"r{number}", chance)
        tally.rounds += 1
        tally.acknowledged += len(replies)
        tally.errors += errors
        _inspect(world, tally)
    if kind == "reindex":
        _finish_reindex(world, tally)
    return tally


def _cut_short(
    world: _World,
    commands: Sequence[dict[str, Any]],
    chance: random.Random,
    *,
    replies: int | None = None,
    within: float = 0.01,
) -> list[Any]:
    """Give work to a process, kill it after some of its replies, return all it acknowledged."""
    child = world.child().started()
    child.send(*commands)
    wanted = chance.randrange(len(commands) if replies is None else replies)
    seen = [child.answer() for _ in range(wanted)]
    # Anywhere within the next calls, not only just after an acknowledgement.
    time.sleep(chance.uniform(0, within))
    return seen + child.kill()


def _sentence(name: str, number: int) -> str:
    return f"{name} keeps token{name}x{number:03} for later"


def _remember_commands(world: _World, name: str, count: int) -> list[dict[str, Any]]:
    """New memories; every fourth is the next value of a path, every fifth said before."""
    before = list(world.standing)[-20:]
    commands: list[dict[str, Any]] = []
    for number in range(count):
        one: dict[str, Any] = {"do": "remember", "text": _sentence(name, number)}
        if number % 4 == 3:
            one["path"] = f"place.{number % 3}"
        elif number % 5 == 4 and before:
            one["text"] = before[number % len(before)]
        commands.append(one)
    return commands


def _note(world: _World, commands: Sequence[dict[str, Any]], replies: Sequence[Any]) -> list[str]:
    """Take what was acknowledged into the world; the errors among the replies."""
    for command, reply in zip(commands, replies, strict=False):
        if command["do"] == "remember" and "id" in reply:
            world.kept[reply["text"]] = None
            if "path" not in command:
                world.standing[reply["text"]] = reply["id"]
    return [f"{one['error']}: {one['says']}" for one in replies if "error" in one]


def _during_remember(
    world: _World, name: str, chance: random.Random
) -> tuple[list[Any], list[str]]:
    commands = _remember_commands(world, name, 60)
    replies = _cut_short(world, commands, chance)
    return replies, _note(world, commands, replies)


def _during_many(world: _World, name: str, chance: random.Random) -> tuple[list[Any], list[str]]:
    texts = [_sentence(name, number) for number in range(700)]
    commands = [{"do": "remember_many", "texts": texts}]
    # It reports after each of three transactions, and once more when it returns.
    replies = _cut_short(world, commands, chance, replies=4, within=0.5)
    kept = max((one.get("kept", 0) for one in replies), default=0)
    world.kept.update(dict.fromkeys(texts[:kept]))
    return replies, _note(world, commands, replies)


def _during_forget(world: _World, name: str, chance: random.Random) -> tuple[list[Any], list[str]]:
    new: list[dict[str, Any]] = [
        {"do": "remember", "text": _sentence(name, n), "tags": [f"{name}tag{n // 5}"]}
        for n in range(40)
    ]
    with world.child() as child:
        child.send(*new)
        made = [child.answer() for _ in new]
    errors = _note(world, new, made)
    text_of = {one["id"]: one["text"] for one in made}
    ids = list(text_of)
    # One by one, then by filters that take five at a time: all of them or none.
    world.groups = [{one} for one in ids[:20]] + [set(ids[n : n + 5]) for n in (20, 25, 30)]
    commands: list[dict[str, Any]] = [{"do": "forget", "id": one} for one in ids[:20]]
    for group in (4, 5, 6):
        tags = {"tags": {"contains": f"{name}tag{group}"}}
        commands.append({"do": "forget", "filters": tags})
    replies = _cut_short(world, commands, chance, within=0.03)
    world.gone |= {i: text_of[i] for reply in replies for i in reply.get("forgotten", ())}
    # What was told to go without an acknowledgement may be there or not.
    for one in set[str]().union(*world.groups):
        world.kept.pop(text_of[one], None)
        world.standing.pop(text_of[one], None)
    return replies, errors + _note(world, [], replies)


def _during_reindex(world: _World, name: str, chance: random.Random) -> tuple[list[Any], list[str]]:
    errors: list[str] = []
    new = _remember_commands(world, name, 40)
    with world.child() as child:
        child.send(*new)
        errors += _note(world, new, [child.answer() for _ in new])
    commands: list[dict[str, Any]] = [
        {"do": "reindex", "embedder": MINILM},
        {"do": "reindex", "embedder": "hashing"},
    ]
    replies = _cut_short(world, commands, chance, replies=1, within=2.5)
    return replies, errors + _note(world, [], replies)


def _during_backup(world: _World, name: str, chance: random.Random) -> tuple[list[Any], list[str]]:
    shelf = world.home.parent / "backups"
    commands: list[dict[str, Any]] = []
    for number in range(6):
        commands += _remember_commands(world, f"{name}part{number}", 4)
        commands.append({"do": "backup", "path": str(shelf / f"{name}-{number}.zip")})
    replies = _cut_short(world, commands, chance, within=0.1)
    errors = _note(world, commands, replies)
    world.backups = {}
    for place in shelf.glob(f"{name}-*.zip"):
        asked = commands.index({"do": "backup", "path": str(place)})
        world.backups[place] = len(world.kept) - len(
            {one["text"] for one in commands[asked:] if one.get("text") in world.kept}
        )
    return replies, errors


_ROUNDS: dict[str, _Round] = {
    "remember": _during_remember,
    "remember_many": _during_many,
    "forget": _during_forget,
    "reindex": _during_reindex,
    "backup": _during_backup,
}


def _inspect(world: _World, tally: Killed) -> None:
    """Look at what is left, as the next program would: no repair, nothing but opening it."""
    words = [text.split()[2] for text in (*list(world.standing)[-2:], *list(world.kept)[-1:])]
    with world.open() as memory:
        there = texts_of(memory)
        tally.lost += len(world.kept.keys() - there)
        tally.revived += len(set(world.gone.values()) & there)
        tally.half_written += flaws(memory)
        if world.sealed:
            clear = [w for w in words if holding(world.home, w)]
            tally.half_written += [f"in clear in a sealed home: {word}" for word in clear]
        for group in world.groups:
            left = {i for i in group if memory._container.truth.rows(_IS_THERE, {"id": i})}
            tally.in_part += left not in (set(), group)
        for text in list(world.standing)[-2:]:
            # Among ten: what was said again and again may stand before what was said once.
            if text not in [hit.text for hit in memory.recall(text, top_k=10)]:
                tally.wrong_answers.append(f"not recalled: {text}")
        for text in list(world.gone.values())[-3:]:
            tally.revived += text in [hit.text for hit in memory.recall(text, mode="words")]
            tally.revived += bool(holding(world.home, text.split()[2]))
        memory.ready()
        parts = memory._container.namespace("default")
        tally.without_vectors += len(parts.memory.vectors.owners_without(memory.stats().embedder))
        found = answers(memory, words)
    shutil.rmtree(world.home / "index", ignore_errors=True)
    with world.open() as memory:
        if not _alike(fresh := answers(memory, words), found):
            tally.wrong_answers.append(f"{words}: {found}, and from a fresh index {fresh}")
    for place, memories in world.backups.items():
        tally.bad_backups += not _is_good(world, place, memories)


def _alike(one: list[Answer], other: list[Answer]) -> bool:
    """Whether two indexes say the same; what is on disk is summed in single precision."""
    return all(
        len(a) == len(b) and all(abs(x - y) < 1e-4 for (_, x), (_, y) in zip(a, b, strict=True))
        for a, b in zip(one, other, strict=True)
    )


_IS_THERE = "SELECT 1 FROM record WHERE record_id = :id"


def _is_good(world: _World, backup: Path, memories: int) -> bool:
    """Whether a file that stands where a backup was wanted is one, with all that came before."""
    home = backup.with_suffix(".home")
    try:
        known = ops.verify(backup)
        Memory.restore(backup, home)
        if world.sealed:
            keys.import_key(home, keys.export_key(world.home, raw=True), kept="file")
        with Memory.open(home, embedder="hashing") as memory:
            return known.rows["record"] >= memories and len(texts_of(memory)) >= memories
    except AnaphoraError:
        return False
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _finish_reindex(world: _World, tally: Killed) -> None:
    """What was interrupted so often can be finished, and every memory has both vectors."""
    with world.open() as memory:
        done = memory.reindex(MINILM)
        parts = memory._container.namespace("default")
        counts = parts.memory.vectors.counts()
        tally.without_vectors += done.left + len(parts.memory.vectors.owners_without(done.embedder))
        if len(counts) != 2:
            tally.wrong_answers.append(f"vectors of {counts}")
    with world.open(embedder=None) as memory:
        last = list(world.standing)[-1]
        if memory.stats().embedder != done.embedder:
            tally.wrong_answers.append(f"opened with {memory.stats().embedder}")
        if last not in [hit.text for hit in memory.recall(last, top_k=10)]:
            tally.wrong_answers.append(f"not recalled: {last}")


@dataclass(slots=True)
class Together:
    """What processes did on one truth, and what went wrong."""

    processes: int
    remembered: int = 0
    recalled: int = 0
    forgotten: int = 0
    seconds: float = 0.0
    unseen: int = 0
    seen_after_forgetting: int = 0
    lost: int = 0
    lost_restatements: int = 0
    wrong_lines: int = 0
    half_written: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    took: dict[str, list[float]] = field(default_factory=dict)

    @property
    def well(self) -> bool:
        """Whether nothing was lost, unseen, half-written or refused."""
        wrong = self.unseen + self.seen_after_forgetting + self.lost + self.lost_restatements
        return wrong + self.wrong_lines + len(self.half_written) + len(self.errors) == 0


def together(
    homes: Sequence[Path], seconds: float, chance: random.Random, database: str | None = None
) -> Together:
    """One process for each of `homes` (all the same, or each its own with a `database`)."""
    tally = Together(len(homes))
    with ExitStack() as stack:
        children = [stack.enter_context(Child(home, database)) for home in homes]
        crowd = _Crowd(children, time.monotonic() + seconds)
        began = time.monotonic()
        with ThreadPoolExecutor(len(children)) as pool:
            seeds = [chance.random() for _ in children]
            done = [pool.submit(crowd.work, n, random.Random(s)) for n, s in enumerate(seeds)]
            parts = [one.result() for one in done]
        tally.seconds = time.monotonic() - began
    for part in parts:
        for name in ("remembered", "recalled", "forgotten", "unseen", "seen_after_forgetting"):
            setattr(tally, name, getattr(tally, name) + getattr(part, name))
        tally.errors += part.errors
        for do, seconds_each in part.took.items():
            tally.took.setdefault(do, []).extend(seconds_each)
    _inspect_crowd(homes[0], database, crowd, tally)
    return tally


class _Crowd:
    """Processes that take turns in telling one another."""

    def __init__(self, children: Sequence[Child], until: float) -> None:
        self._children = children
        self._locks = [threading.Lock() for _ in children]
        self._until = until
        self._guard = threading.Lock()
        self.kept: set[str] = set()
        self.gone: set[str] = set()
        self.shared = 0
        self.values = 0

    def work(self, number: int, chance: random.Random) -> Together:
        """What one of them does until the time is up; it must begin after the others have."""
        tally, own = Together(1), dict[str, str]()
        count = 0
        while time.monotonic() < self._until:
            count += 1
            other = (number + 1 + chance.randrange(max(1, len(self._children) - 1))) % len(
                self._children
            )
            match chance.randrange(10):
                case 0:
                    self._restate(number, tally)
                case 1:
                    self._set_value(number, other, tally)
                case 2 if own:
                    self._forget(number, other, own.popitem(), tally)
                case _:
                    text = f"process{number} keeps token{number}x{count} for later"
                    own[text] = self._remember(number, other, text, tally)
        return tally

    def _ask(self, number: int, tally: Together, do: str, **given: Any) -> dict[str, Any]:
        with self._locks[number]:
            began = time.perf_counter()
            reply: dict[str, Any] = self._children[number].ask(do, **given)
            tally.took.setdefault(do, []).append(time.perf_counter() - began)
        if "error" in reply:
            tally.errors.append(f"{reply['error']}: {reply['says']}")
        tally.recalled += do == "recall"
        tally.remembered += do == "remember"
        return reply

    def _texts(self, number: int, tally: Together, query: str) -> list[str]:
        found = self._ask(number, tally, "recall", query=query).get("hits", ())
        return [hit["text"] for hit in found]

    def _remember(self, number: int, other: int, text: str, tally: Together) -> str:
        reply = self._ask(number, tally, "remember", text=text)
        with self._guard:
            self.kept.add(text)
        tally.unseen += text not in self._texts(other, tally, text.split()[2])
        return str(reply.get("id"))

    def _restate(self, number: int, tally: Together) -> None:
        self._ask(number, tally, "remember", text=SHARED)
        with self._guard:
            self.shared += 1

    def _set_value(self, number: int, other: int, tally: Together) -> None:
        """The next value of a path that all share; the other sees it, or one that came since."""
        with self._guard:
            self.values += 1
            value = self.values
        text = f"the common number is value{value}"
        self._ask(number, tally, "remember", text=text, path="common.number")
        filters = {"path": "common.number"}
        found = self._ask(other, tally, "recall", query="common number", filters=filters)
        tally.unseen += len(found.get("hits", ())) != 1

    def _forget(self, number: int, other: int, which: tuple[str, str], tally: Together) -> None:
        text, record_id = which
        with self._guard:
            self.kept.discard(text)
        reply = self._ask(number, tally, "forget", id=record_id)
        tally.lost += reply.get("count") != 1
        tally.forgotten += 1
        with self._guard:
            self.gone.add(text)
        tally.seen_after_forgetting += text in self._texts(other, tally, text.split()[2])


def _inspect_crowd(home: Path, database: str | None, crowd: _Crowd, tally: Together) -> None:
    with Memory.open(home, database=database, embedder="hashing") as memory:
        there = texts_of(memory)
        tally.lost += len(crowd.kept - there)
        tally.seen_after_forgetting += len(crowd.gone & there)
        tally.half_written += flaws(memory)
        same = [one for one in memory.list(limit=100_000) if one.text == SHARED]
        said = sum(one.reinforce_count + 1 for one in same)
        tally.lost_restatements += abs(crowd.shared - said) + (len(same) > 1)
        line = memory.history("common.number")
        tally.wrong_lines += len(line) != crowd.values
        tally.wrong_lines += sum(
            one.valid_to != later.valid_from for one, later in itertools.pairwise(line)
        )
