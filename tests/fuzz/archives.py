"""The target of zip files: what they could become, and what lies in them, beyond any bound.

In: a private folder. Out: a room. An import ends with conversations and problems, and what it
holds at any moment is bounded: counted in bytes that are allocated, not in time.
"""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.ingest.imported import read

from anaphora import ImportedConversation, ImportProblem
from anaphora.errors import AnaphoraError, InvalidInput
from anaphora.features.importing.values import ImportedMemory
from anaphora.ingest.bounds import Bounds

from .mutating import Mutator
from .rooms import Room, expect, transcripts

__all__ = ["archives"]

_BOUNDS = Bounds(
    characters=1 << 16,
    parts=4_000,
    unpacked=8 << 20,
    times=20,
    messages=500,
    conversations=200,
    problems=50,
)
# What reading takes beside a value: buffers, the library's own, a few values of 64 Ki characters.
_HELD = 4 << 20
# What the list of its members takes for each byte of the file that it stands in.
_OF_THE_LIST = 24
_CENTRAL = b"PK\x01\x02"
_NAMES = (
    *("conversations.json", "a/chats.json", "log.jsonl", "s.ndjson", "inner.zip", "../up.json"),
    *("state.vscdb", "Note.md", "MyActivity.html", "agent.af", "conversation_1.txt"),
)
_KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


@contextmanager
def archives(folder: Path, shared: Path | None) -> Iterator[Room]:
    """Zip files with honest members and hostile ones, whole and damaged."""

    def check(data: bytes) -> None:
        path = folder / "export.zip"
        path.write_bytes(data)
        tracemalloc.start()
        try:
            _told(path)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        most = _HELD + _OF_THE_LIST * len(data)
        assert peak < most, f"{peak:,} bytes were held at once for {len(data):,}"

    yield Room(transcripts(shared)[:40], check, _archive)


def _told(path: Path) -> None:
    """Take what an import would, and hold nothing of it."""
    turns = problems = 0
    try:
        for item in read(path, bounds=_BOUNDS):
            if isinstance(item, ImportProblem):
                problems += 1
                assert item.reason
                assert len(item.place) + len(item.reason) < 1_000
            elif isinstance(item, ImportedMemory):
                assert len(item.memory.text) <= 2 * _BOUNDS.characters
            elif isinstance(item, ImportedConversation):
                turns += len(item.turns)
                assert all(len(turn.text) <= _BOUNDS.characters for turn in item.turns)
    except AnaphoraError as error:
        expect(isinstance(error, InvalidInput), repr(error))


def _archive(mutator: Mutator, corpus: Sequence[bytes]) -> bytes:
    """One to six members, honest or not; then sometimes damage to the file itself."""
    random = mutator.random
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for number in range(random.choice((1, 2, 3, 6))):
            name = random.choice(_NAMES)
            info = zipfile.ZipInfo(f"p{number}/{name}", (2026, 4, 30, 12, 0, 0))
            info.compress_type = random.choice((*_KINDS, *_KINDS[1:2] * 4))
            honest = random.random() < 0.3
            archive.writestr(info, mutator.choose(corpus) if honest else _hostile(mutator))
    data = target.getvalue()
    if random.random() < 0.3:
        data = _lying(mutator, data)
    return mutator.change(data, corpus) if random.random() < 0.2 else data


def _hostile(mutator: Mutator) -> bytes:
    """Contents that are small when packed and much when they are read."""
    random = mutator.random
    times = random.choice((10, 3_000, 40_000, 200_000, 6_000_000))
    unit = random.choice((b"a", b"\\u0041", b"\\\\", "🎉".encode(), b" ", b"\\n"))
    many = min(times, (6 << 20) // len(unit))
    long = b'{"role":"user","text":"' + unit * many + b'"}'
    few = min(times, 6_000)
    forms = (
        long + b"\n" + b'{"role":"user","text":"b"}\n',
        b'[{"id":"a","conversations":[{"from":"human","value":"' + unit * many + b'"}]},'
        b'{"id":"b","conversations":[{"from":"human","value":"b"}]}]',
        b'{"role":"user","text":"a"}\n' * few,
        b'{"conversation_id":"%d","role":"user","text":"a"}\n' * few,
        b"".join(
            b'{"conversation_id":"%d","role":"user","text":"a"}\n' % n for n in range(few // 4)
        ),
        b'{"role":\n' * few,
        b"[" + b"{}," * few + b"{}]",
        b'{"role":"user","text":"a","x":[' + b"{}," * (many // 3) + b"1]}\n",
        b'[{"messages":[' + b"null," * (many // 5) + b'{"role":"user","text":"a"}]}]',
        json.dumps({"id": "k" * many, "mapping": {"n" * many: 5}}).encode(),
        b"[" * many,
        b" " * many,
        b'{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"a"}}\n'
        * few,
        b'{"type":"response_item","payload":{"type":"message","role":"user","content":"a"}}\n'
        * few,
    )
    return random.choice(forms)


def _lying(mutator: Mutator, data: bytes) -> bytes:
    """A member's entry in the list with other sizes than it has, or another member's place."""
    at = data.rfind(_CENTRAL) if mutator.random.random() < 0.5 else data.find(_CENTRAL)
    if at < 0:
        return data
    field = mutator.random.choice((20, 24, 42))
    value = mutator.random.choice((0, 1, 1_000, 1 << 20, 0xFFFFFFFE))
    return data[: at + field] + struct.pack("<I", value) + data[at + field + 4 :]
