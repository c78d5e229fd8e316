"""Words on disk: homes written by earlier versions are read, and theirs read ours."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from anaphora.core.text import ANALYSER
from anaphora.index.memories import words
from anaphora.index.sections import words as section_files
from anaphora.index.words.manifest import digest_of, remove_all_but
from anaphora.index.words.segment import signature

# As they stand on disk since the first release of each form.
MEMORIES: dict[str, Any] = {
    "analyser": f"{ANALYSER}key",
    "meta": ["generation", 2, 2, 7, 99],
    "upto": 12,
    "ids": ["a", "b"],
    "digests": f"{'0' * 16}{'1' * 16}",
}
SECTIONS: dict[str, Any] = {
    "form": f"2/{ANALYSER}key",
    "meta": ["generation", 2, [1, 2, 3], 99],
    "upto": 12,
    "ids": ["a", "b"],
    "digests": f"{'0' * 16}{'1' * 16}",
}
BOTH = pytest.mark.parametrize(
    ("files", "name", "manifest"),
    [
        (words.FILES, "memories.json", MEMORIES),
        (section_files.FILES, "sections.json", SECTIONS),
    ],
)


@BOTH
def test_a_manifest_as_it_was_written_before(
    tmp_path: Path, files: Any, name: str, manifest: dict[str, Any]
) -> None:
    """A manifest of an earlier version says the same now; one of another key says nothing."""
    (tmp_path / name).write_text(json.dumps(manifest), encoding="utf-8")
    found = files.read(tmp_path, "key")
    assert (found.meta.generation, found.meta.count, found.meta.signature) == ("generation", 2, 99)
    assert (found.upto, found.ids, found.digests) == (12, ("a", "b"), ("0" * 16, "1" * 16))
    assert files.read(tmp_path, "other") == files.read(tmp_path) == files.bulk()


@BOTH
@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        ("meta", ["generation", 2]),
        ("meta", "generation"),
        ("ids", ["a"]),
        ("ids", None),
        ("digests", "0" * 16),
        ("upto", ...),
    ],
)
def test_a_manifest_that_is_wrong(
    tmp_path: Path, files: Any, name: str, manifest: dict[str, Any], entry: str, wrong: object
) -> None:
    """What does not fit together, or lacks an entry, is no bulk; nothing raises."""
    torn = {**manifest, entry: wrong}
    if wrong is ...:
        del torn[entry]
    (tmp_path / name).write_text(json.dumps(torn), encoding="utf-8")
    assert files.read(tmp_path, "key") == files.bulk()


def test_a_manifest_as_it_is_written(tmp_path: Path) -> None:
    """What is written has the entries that earlier versions read, in their order."""
    memory = words.document_of("a", "tea with cats")
    bulk = words.write_bulk(tmp_path / "m", words.Bulk(), 12, [memory], "key")
    section = section_files.document_of("a", "tea.py", "", "cats")
    other = section_files.write_bulk(
        tmp_path / "s", section_files.SectionBulk(), 12, [section], "key"
    )
    assert bulk is not None
    assert other is not None
    common = {"upto": 12, "ids": ["a"]}
    assert json.loads((tmp_path / "m" / "memories.json").read_text(encoding="utf-8")) == {
        "analyser": f"{ANALYSER}key",
        "meta": [bulk.meta.generation, 1, 1, memory.length, bulk.meta.signature],
        "digests": memory.digest,
        **common,
    }
    assert json.loads((tmp_path / "s" / "sections.json").read_text(encoding="utf-8")) == {
        "form": f"2/{ANALYSER}key",
        "meta": [other.meta.generation, 1, list(section.lengths), other.meta.signature],
        "digests": section.digest,
        **common,
    }
    assert memory.digest == digest_of(memory.tokens)


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
    tmp_path: Path, files: Any, name: str, manifest: dict[str, Any]
) -> None:
    """A generation that cannot be extended goes with its list, and the next write begins anew."""
    (tmp_path / "generation").mkdir()
    sign = signature(tmp_path / "generation")
    given = {**manifest, "meta": [*manifest["meta"][:-1], sign]}
    (tmp_path / name).write_text(json.dumps(given), encoding="utf-8")
    (tmp_path / f"{name}.new").write_text("half", encoding="utf-8")

    def refuses(_place: Path) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    seen = files.read(tmp_path, "key")
    assert seen.meta.generation == "generation"
    assert files.write(tmp_path, seen, 13, [], "key", refuses) is None
    assert list(tmp_path.iterdir()) == []
    assert files.read(tmp_path, "key") == files.bulk()
