"""Words on disk: a manifest is read as it was written, and what is wrong with it is no manifest."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from anaphora.features.projects.index.words import section_segments
from anaphora.index.memories.words import memory_segments
from anaphora.index.words import manifest as module
from anaphora.index.words.manifest import WordManifest
from anaphora.index.words.segment import signature
from anaphora.language.analyser import ANALYSER

pytestmark = pytest.mark.internal

GIVEN: dict[str, Any] = {
    "form": f"5/{ANALYSER}key",
    "upto": 12,
    "ids": ["a", "b"],
    "digests": f"{'0' * 16}{'1' * 16}",
}
MEMORIES: dict[str, Any] = {
    **GIVEN,
    "meta": ["generation", 2, 2, [7], 99],
    "parts": [[1, 2, [7], [["segment", 2]], [], 5]],
}
SECTIONS: dict[str, Any] = {**GIVEN, "meta": ["generation", 2, 2, [1, 2, 3], 99]}
BOTH = pytest.mark.parametrize(
    ("segments", "name", "given"),
    [
        (memory_segments, "memories.json", MEMORIES),
        (section_segments, "sections.json", SECTIONS),
    ],
)


@BOTH
def test_a_write_that_the_disk_refuses_leaves_no_list_of_what_is_gone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    segments: Any,
    name: str,
    given: dict[str, Any],
) -> None:
    """A generation that cannot be extended goes with its list, and the next write begins anew."""
    (tmp_path / "generation").mkdir()
    sign = signature(tmp_path / "generation")
    given = {**given, "meta": [*given["meta"][:-1], sign]}
    (tmp_path / name).write_text(json.dumps(given), encoding="utf-8")
    (tmp_path / f"{name}.new").write_text("half", encoding="utf-8")

    def refuses(*_given: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "write_segment", refuses)
    folder = segments(tmp_path, "key")
    seen = folder.read()
    assert seen.meta.generation == "generation"
    assert folder.write(seen, 13, []) is None
    assert list(tmp_path.iterdir()) == []
    assert folder.read() == WordManifest()


def test_a_file_that_changed_changes_the_signature(tmp_path: Path) -> None:
    """Other bytes of the same length, another name, one file more or less: all are noticed."""
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(name.encode() * 50)
    seen = {signature(tmp_path)}
    (tmp_path / "one").write_bytes(b"owe" * 50)
    seen.add(signature(tmp_path))
    (tmp_path / "two").rename(tmp_path / "too")
    seen.add(signature(tmp_path))
    (tmp_path / "too").unlink()
    seen.add(signature(tmp_path))
    assert len(seen) == 4
