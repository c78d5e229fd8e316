"""A home of many threads is looked at cheaply, and still synced."""

from __future__ import annotations

import pytest

from anaphora.index.turns.records import ThreadCheckpoint
from anaphora.index.turns.source import FileThreadSource

from .conftest import Bench

pytestmark = pytest.mark.internal

SECOND = 1_000_000_000


def test_writes_are_seen_at_once_and_edits_in_place_soon(bench: Bench) -> None:
    """Among many files a renamed one shows at once, one edited in place within two seconds."""
    bench.store.append("t0", "user", "hello there")
    model = bench.store.path("t0").read_bytes()
    for number in range(1, 300):
        bench.store.path(f"t{number}").write_bytes(model.replace(b'"t0"', b'"t%d"' % number))
    now = [max(bench.store.path(f"t{n}").stat().st_ctime_ns for n in range(300)) + SECOND]
    follower = FileThreadSource(bench.store, None, lambda: now[0])
    marks: dict[str, ThreadCheckpoint] = {}
    index = bench.index()
    index.sync(embed="none")
    assert len(index.view().table) == 300
    assert len(follower.differing(marks, None)) == 300
    for key in follower.differing(marks, None):
        status = bench.store.path(key).stat()
        identity = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        marks[key] = ThreadCheckpoint(identity, now[0], 1, b"")
    assert follower.differing(marks, None) == []
    path = bench.store.path("t7")
    path.write_bytes(model.replace(b'"t0"', b'"t7"').replace(b"hello", b"HELLO!"))
    assert follower.differing(marks, "t7") == ["t7"]
    now[0] += 2 * SECOND
    assert follower.differing(marks, None) == ["t7"]
    bench.store.append("t9", "user", "one more")
    bench.store.delete("t8")
    assert sorted(follower.differing(marks, None)) == ["t7", "t8", "t9"]
