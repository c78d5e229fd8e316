"""Everything that is fuzzed, by name, and how one target is fuzzed for a while.

In: a target, a seed, seconds or a number of inputs. Out: a `Tally`. The first input that does not
end as it must is written to a file, and told with what makes it again.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .archives import archives
from .documents import documents
from .files import importers, recalled, thread_files
from .homes import backups, transfers
from .mutating import Mutator
from .rooms import Target, held
from .servers import mcp, rest
from .shapes import shapes
from .times import times
from .values import filters, names_and_times, sandbox

__all__ = ["FOUND", "TARGETS", "Extent", "Tally", "fuzz", "known", "replay"]

FOUND = Path(__file__).parent / "found"
TARGETS = {
    target.name: target
    for target in (
        Target("importers", importers),
        Target("archives", archives),
        Target("documents", documents),
        Target("shapes", shapes, least=250),
        Target("recalled", recalled),
        Target("threads", thread_files),
        Target("transfers", transfers),
        Target("backups", backups),
        Target("filters", filters),
        Target("sandbox", sandbox),
        Target("names", names_and_times),
        Target("rest", rest),
        Target("mcp", mcp),
        Target("times", times, least=300),
    )
}


@dataclass(frozen=True, slots=True)
class Extent:
    """How far a run goes: for some seconds, or for a number of `calls`.

    `counting`: it goes on after a failure, and the tally has them.
    """

    seconds: float
    calls: int | None = None
    counting: bool = False

    def over(self, tried: int, since: float, least: int) -> bool:
        """Whether a run that began at `since` is over after `tried` inputs."""
        if self.calls is not None:
            return tried >= self.calls
        return tried >= least and time.monotonic() - since >= self.seconds


@dataclass(frozen=True, slots=True)
class Tally:
    """What a run did, and the failures by what was raised, where they were counted."""

    inputs: int
    seconds: float
    failures: Counter[str] = field(default_factory=Counter)


def known(target: Target) -> Iterator[Path]:
    """The inputs that failed once."""
    yield from sorted((FOUND / target.name).glob("*"))


def replay(target: Target, folder: Path, shared: Path | None, paths: list[Path]) -> None:
    """Check inputs that lie in files."""
    with target.open(folder, shared) as room:
        for path in paths:
            held(room.check, path.read_bytes())


def fuzz(target: Target, folder: Path, shared: Path | None, seed: int, extent: Extent) -> Tally:
    """Check worse and worse inputs to the end of `extent`."""
    mutator, tried = Mutator(seed), 0
    failures: Counter[str] = Counter()
    with target.open(folder, shared) as room:
        start = time.monotonic()
        while not extent.over(tried, start, target.least):
            data = room.change(mutator, room.corpus)
            tried += 1
            try:
                held(room.check, data)
            except Exception as error:
                failing = folder / f"{target.name}-{seed}-{tried}"
                failing.write_bytes(data)
                if extent.counting:
                    failures[type(error).__name__] += 1
                    continue
                sys.stderr.write(
                    f"input {tried} of seed {seed} fails; it is in {failing}\n"
                    f"again: pytest -n 0 tests/fuzz -k {target.name} --fuzz-input {failing}\n"
                    f"or: pytest -n 0 tests/fuzz -k {target.name} --fuzz-seed {seed}\n"
                )
                raise
        return Tally(tried, time.monotonic() - start, failures)
