"""Words on disk: the same answers as from memory, nothing that is gone, and no wrong manifest."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anaphora.features.projects.index.words import SectionWords, section_segments
from anaphora.index.memories.words import memory_segments
from anaphora.index.words import manifest as module
from anaphora.index.words.index import WordIndex
from anaphora.index.words.manifest import IndexedDocument, WordManifest, document_of
from anaphora.index.words.postings import idf
from anaphora.index.words.segment import signature
from anaphora.language.analyser import ANALYSER

pytestmark = pytest.mark.internal

WORDS = ["cat", "dog", "tea", "rust", "vienna", "lock", "budget"]
text = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
documents = st.lists(st.tuples(text, text, text), min_size=1, max_size=12)
Texts = list[tuple[str, str, str]]


def made(texts: Texts) -> list[IndexedDocument]:
    return [document_of(str(row), fields) for row, fields in enumerate(texts)]


def empty(folder: Path, key_tag: str = "") -> SectionWords:
    return SectionWords(WordIndex(section_segments(folder, key_tag)))


def in_memory(folder: Path, found: list[IndexedDocument]) -> SectionWords:
    words = empty(folder)
    for row, document in enumerate(found):
        words.index.put(row, document)
    return words


def on_disk(folder: Path, found: list[IndexedDocument], *, key_tag: str = "") -> SectionWords:
    written = section_segments(folder, key_tag).write(WordManifest(), 1, found)
    assert written is not None
    words = empty(folder, key_tag)
    assert words.open(written, int, 1)
    return words


def answers(words: SectionWords, rows: int) -> list[object]:
    """Everything that is said of all rows for one question."""
    weights = words.weights({"cat": 1.0, "dog": 0.5, "rust": 1.0, "absent": 1.0})
    found = words.scores(weights, np.arange(rows))
    columns = [found.path, found.title, found.body, found.held]
    best = sorted(words.best(weights, rows + 1).tolist())
    return [sorted(weights.items()), best, *[column.tolist() for column in columns]]


slow = settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.promise("context.words")
@slow
@given(documents, st.integers(0, 12))
def test_where_a_document_lies_does_not_count(
    tmp_path_factory: pytest.TempPathFactory, texts: Texts, cut: int
) -> None:
    """Words in memory, on disk, and half of them each, give the same rows and scores."""
    place, found = tmp_path_factory.mktemp("words"), made(texts)
    both = on_disk(place / "both", found[:cut]) if found[:cut] else empty(place / "both")
    for row, document in enumerate(found[cut:], cut):
        both.index.put(row, document)
    expected = answers(in_memory(place / "memory", found), len(found))
    assert answers(on_disk(place / "disk", found), len(found)) == expected
    assert answers(both, len(found)) == expected


@slow
@given(documents)
def test_rows_that_match_are_found_and_no_others(tmp_path: Path, texts: Texts) -> None:
    """A row is found exactly when a field holds a term; what it holds is a share of the mass."""
    words = in_memory(tmp_path, made(texts))
    weights = words.weights({"cat": 1.0, "tea": 2.0})
    found = words.scores(weights, np.arange(len(texts)))
    held = [{"cat", "tea"} & set(" ".join(fields).split()) for fields in texts]
    assert set(words.best(weights, 99).tolist()) == {row for row, some in enumerate(held) if some}
    total = sum(weights.values())
    expected = [sum(weights[term] for term in some) / total for some in held]
    assert found.held.tolist() == pytest.approx(expected, abs=1e-4)


@pytest.mark.promise("context.words")
def test_what_is_dropped_or_replaced_counts_no_more(tmp_path: Path) -> None:
    """A dropped row is not found, a replaced one by its new words only, and that is `stale`."""
    words = on_disk(tmp_path, made([("a.py", "cat", "cat"), ("b.py", "dog", "cat")]))
    before = (words.index.stale, words.index.gone)
    words.index.drop(0)
    words.index.put(1, document_of("1", ("b.py", "tea", "tea")))
    assert before == (False, 0)
    assert (words.index.stale, words.index.gone) == (True, 2)
    weights = words.weights({"cat": 1.0, "tea": 1.0})
    assert words.best(weights, 9).tolist() == [1]
    assert words.scores(weights, np.array([0, 1])).body.tolist()[0] == 0.0
    assert words.scores(words.weights({"cat": 1.0}), np.array([1])).held.tolist() == [0.0]


def test_a_files_own_name_is_no_common_word(tmp_path: Path) -> None:
    """A term is as rare as in bodies, however many sections of one file repeat it in their path."""
    words = in_memory(
        tmp_path, made([("budget.py", "", "tea" if n else "budget tea") for n in range(9)])
    )
    assert words.weights({"budget": 1.0})["budget"] == pytest.approx(idf(9, 1))
    assert words.weights({"tea": 1.0})["tea"] == pytest.approx(idf(9, 9))


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
