"""What a target of the fuzzing is made of, and where inputs to begin with come from.

In: a private folder, and the folder of real data where there is one. Out: a `Room`: a corpus and a
check, which raises for every input that does not end as it must. Real data is only read.
"""

from __future__ import annotations

import json
import resource
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.hostile import broken_json, naughty_strings, write_transcripts
from tests.ingest.memory_sources import BUILT

from .mutating import Mutator

__all__ = [
    "OWN",
    "Change",
    "Room",
    "Target",
    "as_json",
    "dice",
    "expect",
    "held",
    "read_all",
    "suite",
    "transcripts",
]

OWN = Path(__file__).parents[1]
_SECONDS = 20.0
_KILOBYTES = 512 * 1024
_LARGE = 16 * 1024
_LINES, _KEPT = 12, 20
_SOURCES = (".json", ".jsonl", ".af", ".html", ".txt", ".md")

Change = Callable[[Mutator, Sequence[bytes]], bytes]


def _plainly(mutator: Mutator, corpus: Sequence[bytes]) -> bytes:
    return mutator.choose(corpus)


@dataclass(frozen=True, slots=True)
class Room:
    """Inputs to begin with, what is done with each, and how a worse one is made."""

    corpus: tuple[bytes, ...]
    check: Callable[[bytes], None]
    change: Change = _plainly


@dataclass(frozen=True, slots=True)
class Target:
    """What is fuzzed: `open(folder, shared data or None)` makes the room.

    At least `least` inputs are tried, however long they take.
    """

    name: str
    open: Callable[[Path, Path | None], AbstractContextManager[Room]]
    least: int = 1


def held(check: Callable[[bytes], None], data: bytes) -> None:
    """Check one input, within bounds of processor time (20 s) and of memory (512 MB more)."""
    seconds, peak = time.process_time(), _peak()
    check(data)
    seconds, peak = time.process_time() - seconds, _peak() - peak
    assert seconds < _SECONDS, f"it took {seconds:.1f} s of processor time"
    assert peak < _KILOBYTES, f"it took {peak // 1024} MB of memory"


def expect(holds: bool, otherwise: object) -> None:
    """Fail with `otherwise` unless it holds: for what an error must be like."""
    assert holds, otherwise


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def dice(data: bytes, sides: int) -> int:
    """A number from 0 on that only this input decides, so that a replay does the same."""
    return zlib.crc32(data) % sides


def as_json(*values: object) -> tuple[bytes, ...]:
    """Inputs of values."""
    return tuple(json.dumps(value).encode() for value in values)


def read_all(folder: Path, *endings: str) -> tuple[bytes, ...]:
    """The files of a folder; large ones as smaller ones of the same shape."""
    places = sorted(place for place in folder.rglob("*") if place.suffix in endings)
    return tuple(piece for place in places for piece in _pieces(place.read_bytes()))


def _pieces(data: bytes) -> Iterator[bytes]:
    if len(data) <= _LARGE:
        yield data
        return
    try:
        yield json.dumps(_pruned(json.loads(data))).encode()
    except (ValueError, RecursionError):
        lines = data.splitlines(keepends=True)
        for at in range(0, len(lines), _LINES):
            yield b"".join(line[:_LARGE] for line in lines[at : at + _LINES])


def _pruned(value: Any) -> Any:
    """The same shape with fewer values."""
    if isinstance(value, dict):
        return {name: _pruned(part) for name, part in list(value.items())[:_KEPT]}
    if isinstance(value, list):
        return [_pruned(part) for part in value[:_KEPT]]
    return value[:500] if isinstance(value, str) else value


def transcripts(shared: Path | None) -> tuple[bytes, ...]:
    """Files of every format that is imported: our own, and real ones."""
    with TemporaryDirectory() as folder:
        write_transcripts(Path(folder))
        for name, build in BUILT.items():
            build(Path(folder, name))
        made = read_all(Path(folder), ".json", ".jsonl", ".db", ".vscdb")
    own = read_all(OWN / "ingest" / "fixtures", ".json", ".jsonl") + made
    own += read_all(OWN / "ingest" / "fixtures_memories", *_SOURCES)
    return own if shared is None else own + read_all(shared / "transcripts", ".json", ".jsonl")


def suite(shared: Path | None) -> tuple[bytes, ...]:
    """What is known to trouble readers of JSON, and texts that trouble programs."""
    strings = naughty_strings()
    documents = tuple(broken_json().values())
    if shared is not None:
        folder = shared / "adversarial"
        strings += json.loads((folder / "blns" / "blns.json").read_bytes())
        documents += read_all(folder / "jsontestsuite", ".json")
    turns = [
        json.dumps({"role": "user", "text": text}).encode() for text in strings if text.strip()
    ]
    lines = tuple(b"\n".join(turns[at : at + 8]) for at in range(0, len(turns), 8))
    return documents + lines
