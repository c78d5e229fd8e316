"""Words on disk: the same answers as from memory, nothing that is gone, and no wrong manifest."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anaphora.features.projects.index.words import FIELDS, SectionWords
from anaphora.index.words import file as module
from anaphora.index.words.documents import document_in_language, document_of
from anaphora.index.words.file import WordFile
from anaphora.index.words.index import WordIndex
from anaphora.index.words.postings import idf, numbers_of
from anaphora.index.words.segment import Segment
from anaphora.index.words.writing import IndexedDocument

pytestmark = pytest.mark.internal

WORDS = ["cat", "dog", "tea", "rust", "vienna", "lock", "budget"]
text = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
documents = st.lists(st.tuples(text, text, text), min_size=1, max_size=12)
Texts = list[tuple[str, str, str]]


def made(texts: Texts) -> list[IndexedDocument]:
    return [document_of(str(row), fields) for row, fields in enumerate(texts)]


def file_in(folder: Path, **options: Any) -> WordFile:
    return WordFile(folder, "some.words", fields=len(FIELDS), **options)


def empty(folder: Path) -> SectionWords:
    return SectionWords(WordIndex(file_in(folder)))


def in_memory(folder: Path, found: list[IndexedDocument]) -> SectionWords:
    words = empty(folder)
    for row, document in enumerate(found):
        words.index.put(row, document)
    return words


def write(words: SectionWords, upto: int = 1) -> None:
    """What waits, into the file; and answer from it."""
    assert words.index.file.write(words.index.plan(upto))
    assert words.index.open(int, upto)


def on_disk(folder: Path, found: list[IndexedDocument]) -> SectionWords:
    words = in_memory(folder, found)
    write(words)
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
    """A dropped row is not found, a replaced one by its new words only."""
    words = on_disk(tmp_path, made([("a.py", "cat", "cat"), ("b.py", "dog", "cat")]))
    before = words.index.gone
    words.index.drop(0)
    words.index.put(1, document_of("1", ("b.py", "tea", "tea")))
    assert (before, words.index.gone) == (0, 2)
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


@slow
@given(documents, st.lists(st.integers(0, 11), max_size=8), st.integers(0, 12))
def test_what_is_erased_leaves_a_file_as_if_it_had_never_come(
    tmp_path_factory: pytest.TempPathFactory, texts: Texts, gone: list[int], cut: int
) -> None:
    """After any erasing and writing the file answers, counts and scores as one of the rest."""
    place, found = tmp_path_factory.mktemp("words"), made(texts)
    words = on_disk(place / "erased", found[:cut]) if found[:cut] else empty(place / "erased")
    for row, document in enumerate(found[cut:], cut):
        words.index.put(row, document)
    for row in {row for row in gone if row < len(found)}:
        words.index.drop(row)
        words.index.purge()
    rest = in_memory(place / "rest", [])
    for row, document in enumerate(found):
        if row not in gone:
            rest.index.put(row, document)
    assert answers(words, len(found)) == answers(rest, len(found))
    write(words)
    write(rest)
    assert words.index.statistics.documents == rest.index.count
    assert answers(words, len(found)) == answers(rest, len(found))
    stored = [words.index.segment, rest.index.segment]
    columns = [{n: c.tolist() for n, c in s.columns.items()} for s in stored if s is not None]
    for of_terms in ("terms", "starts", "places", "counts", "lengths"):
        assert columns[0][of_terms] == columns[1][of_terms]


def test_no_word_of_what_is_erased_stays(tmp_path: Path) -> None:
    """Words as written, keys and terms that nothing else has are overwritten; shared ones stay."""
    file = WordFile(tmp_path, "some.words")
    index = WordIndex(file)
    for row, text in enumerate(("the safe opens with xylograph", "the safe is red")):
        index.put(row, document_in_language(f"id-{row}", text))
    assert file.write(index.plan(1))
    path = tmp_path / "some.words"
    before = path.read_bytes()
    file.erase(["id-0"])
    after = path.read_bytes()
    assert b"xylograph" in before
    assert b"xylograph" not in after
    assert b"id-0" not in after
    assert b"id-1" in after
    segment = file.open()
    assert segment is not None
    assert (segment.count, segment.keys) == (1, ["", "id-1"])
    holding = segment.holding(numbers_of(("safe", "xylograph"))).tolist()
    assert holding == [1, 0]
    assert "safe" in segment.vocabulary._words
    assert len(set(segment.columns["terms"].tolist())) < len(segment.columns["terms"])


def test_a_write_that_the_disk_refuses_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last file answers on, and half a new one is not left beside it."""
    words = on_disk(tmp_path, made([("a", "b", "cat")]))

    def refuses(path: Path, *_given: Any) -> Any:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "write_columns", refuses)
    words.index.put(1, document_of("1", ("", "", "dog")))
    assert not words.index.file.write(words.index.plan(2))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["erase.lock", "some.words"]
    assert words.index.open(int, 2)


def test_what_changes_while_a_file_is_written_is_erased_from_it(tmp_path: Path) -> None:
    """A document that was forgotten after a write had begun is not in the file it leaves."""
    file = file_in(tmp_path, changed=lambda upto: ["1"] if upto == 5 else [])
    index = WordIndex(file)
    for row, document in enumerate(made([("a", "", "cat"), ("b", "", "dog")])):
        index.put(row, document)
    assert file.write(index.plan(5))
    segment = file.open()
    assert segment is not None
    assert segment.keys == ["0", ""]


@pytest.mark.parametrize("torn", [b"", b"short", bytes(64)], ids=["empty", "short", "zeros"])
def test_a_file_that_cannot_be_read_is_removed(tmp_path: Path, torn: bytes) -> None:
    """Words may be left in it that were being erased when a process was killed."""
    words = on_disk(tmp_path, made([("a", "b", "cat")]))
    path = tmp_path / "some.words"
    for stored in (torn, path.read_bytes()[:-8]):
        (tmp_path / "torn").write_bytes(stored)
        (tmp_path / "torn").replace(path)
        assert words.index.file.problem()
        assert words.index.file.open() is None
        assert not path.exists()
        # It answers on from what it has open, and writes that again.
        assert words.index.file.write(words.index.plan(1))


def test_words_of_another_key_are_not_read(tmp_path: Path) -> None:
    """A file of another form or key counts as none."""
    on_disk(tmp_path, made([("a", "b", "cat")]))
    assert file_in(tmp_path, key_tag="key").open() is None


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    """Any part of a file that was overwritten is found out when it is opened."""
    on_disk(tmp_path, made([("a", "b", "cat")]))
    path = tmp_path / "some.words"
    stored = path.read_bytes()
    form = file_in(tmp_path)._form
    for at in range(0, len(stored), 7):
        (tmp_path / "torn").write_bytes(stored[:at] + bytes([stored[at] ^ 1]) + stored[at + 1 :])
        with pytest.raises(ValueError, match="torn"):
            Segment(tmp_path / "torn", form)
