"""Words on disk: a manifest is read as it was written, and what is wrong with it is no manifest."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from anaphora.core.analyser import ANALYSER
from anaphora.index.memories.words import memory_segments
from anaphora.index.sections.words import section_segments
from anaphora.index.words import manifest as module
from anaphora.index.words.manifest import WordManifest, document_of, remove_all_but
from anaphora.index.words.segment import signature

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
def test_a_manifest_is_that_of_its_form_and_key(
    tmp_path: Path, segments: Any, name: str, given: dict[str, Any]
) -> None:
    """It says what it said; one of another key, or of an earlier version, says nothing."""
    (tmp_path / name).write_text(json.dumps(given), encoding="utf-8")
    found = segments(tmp_path, "key").read()
    assert (found.meta.generation, found.meta.count, found.meta.signature) == ("generation", 2, 99)
    assert (found.upto, found.ids, found.digests) == (12, ("a", "b"), "0" * 16 + "1" * 16)
    assert segments(tmp_path, "other").read() == segments(tmp_path).read() == WordManifest()
    earlier = {**given, "form": f"4/{ANALYSER}key"}
    (tmp_path / name).write_text(json.dumps(earlier), encoding="utf-8")
    assert segments(tmp_path, "key").read() == WordManifest()


@BOTH
@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        ("meta", ["generation", 2]),
        ("meta", ["generation", 2, 2, [1, 2], 99]),
        ("meta", "generation"),
        ("ids", ["a"]),
        ("ids", None),
        ("digests", "0" * 16),
        ("upto", ...),
        ("form", ...),
    ],
)
def test_a_manifest_that_is_wrong(
    tmp_path: Path, segments: Any, name: str, given: dict[str, Any], entry: str, wrong: object
) -> None:
    """What does not fit together, or lacks an entry, is no manifest; nothing raises."""
    torn = {**given, entry: wrong}
    if wrong is ...:
        del torn[entry]
    (tmp_path / name).write_text(json.dumps(torn), encoding="utf-8")
    assert segments(tmp_path, "key").read() == WordManifest()


@BOTH
def test_a_manifest_as_it_is_written(
    tmp_path: Path, segments: Any, name: str, given: dict[str, Any]
) -> None:
    """What was written is read again, and the segment holds it."""
    folder = segments(tmp_path, "key")
    texts = ["tea.py", "", "tea with cats"][-len(given["meta"][3]) :]
    document = document_of("a", texts)
    written = folder.write(WordManifest(), 12, [document])
    assert written is not None
    assert folder.read() == written
    assert (written.upto, written.ids, written.digests) == (12, ("a",), document.digest)
    assert written.meta.tokens == tuple(len(one.split()) for one in document.texts)
    assert folder.open(written).holding("tea", len(texts) - 1) == 1
    assert folder.problem() is None


def test_other_generations_are_removed(tmp_path: Path) -> None:
    """Folders of other names go; those named and plain files stay; no folder is no trouble."""
    for name in ("old", "older", "new"):
        (tmp_path / name).mkdir()
    (tmp_path / "memories.json").write_text("{}", encoding="utf-8")
    remove_all_but(tmp_path, {"new"})
    assert sorted(one.name for one in tmp_path.iterdir()) == ["memories.json", "new"]
    remove_all_but(tmp_path / "gone", {"new"})


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
