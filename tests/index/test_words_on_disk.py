"""Words on disk: the same answers as from memory, nothing that is gone, and no wrong row."""

from __future__ import annotations

import errno
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anaphora.errors import ReadOnly
from anaphora.features.projects.index.words import FIELDS, SectionWords
from anaphora.index.cells import CellTable, cell_name, write_anew
from anaphora.index.file import IndexFile
from anaphora.index.words import index as word_index
from anaphora.index.words import postings
from anaphora.index.words.documents import (
    IndexedDocument,
    analyse_fields,
    analyse_text,
    numbers_of,
)
from anaphora.index.words.index import WordIndex
from anaphora.index.words.postings import GrowingWords, idf
from anaphora.index.words.table import DocumentTable, StoredDocument

pytestmark = pytest.mark.internal

WORDS = ["cat", "dog", "tea", "rust", "vienna", "lock", "budget"]
text = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
documents = st.lists(st.tuples(text, text, text), min_size=1, max_size=12)
Texts = list[tuple[str, str, str]]


def made(texts: Texts) -> list[IndexedDocument]:
    return [analyse_fields(fields) for fields in texts]


def empty(folder: Path) -> SectionWords:
    return SectionWords(WordIndex(DocumentTable(folder), fields=len(FIELDS)))


def put(words: SectionWords, row: int, document: IndexedDocument, mark: int = 1) -> None:
    words.index.put_all({row: StoredDocument(str(row), mark, document)})


def in_memory(folder: Path, found: list[IndexedDocument]) -> SectionWords:
    words = empty(folder)
    for row, document in enumerate(found):
        put(words, row, document)
    return words


def write(words: SectionWords, changed: Iterable[str] = ()) -> None:
    assert words.index.write(lambda: changed)


def reopened(words: SectionWords, folder: Path, rows: int = 12, mark: int = 1) -> SectionWords:
    """What another process answers from the disk."""
    words.index.table.close()
    again = empty(folder)
    again.index.open(int, np.full(rows, mark))
    return again


def on_disk(folder: Path, found: list[IndexedDocument]) -> SectionWords:
    words = in_memory(folder, found)
    write(words)
    return reopened(words, folder)


def answers(words: SectionWords, rows: int) -> list[object]:
    """Everything that is said of all rows for one question."""
    weights = words.weights({"cat": 1.0, "dog": 0.5, "rust": 1.0, "absent": 1.0})
    found = words.scores(weights, np.arange(rows))
    columns = [found.path, found.title, found.body, found.held]
    best = sorted(words.best(weights, rows + 1).tolist())
    return [sorted(weights.items()), best, *[column.tolist() for column in columns]]


def stored_bytes(folder: Path) -> bytes:
    return b"".join(one.read_bytes() for one in folder.rglob("*") if one.is_file())


slow = settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(params=[500, 2], ids=["beside columns", "in columns"])
def late(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With documents beside the columns, and with most of them joined."""
    monkeypatch.setattr(postings, "_LATE", request.param)


@pytest.mark.promise("context.words")
@pytest.mark.usefixtures("late")
@slow
@given(documents, st.integers(0, 12))
def test_where_a_document_lies_does_not_count(
    tmp_path_factory: pytest.TempPathFactory, texts: Texts, cut: int
) -> None:
    """Words in memory, from the disk, and half of them each, give the same rows and scores."""
    place, found = tmp_path_factory.mktemp("words"), made(texts)
    both = on_disk(place / "both", found[:cut])
    for row, document in enumerate(found[cut:], cut):
        put(both, row, document)
    expected = answers(in_memory(place / "memory", found), len(found))
    assert answers(on_disk(place / "disk", found), len(found)) == expected
    assert answers(both, len(found)) == expected


@pytest.mark.usefixtures("late")
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
    words.index.drop(0, "0")
    put(words, 1, analyse_fields(("b.py", "tea", "tea")))
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


@pytest.mark.usefixtures("late")
@slow
@given(documents, st.lists(st.integers(0, 11), max_size=8), st.integers(0, 12))
def test_what_is_erased_leaves_the_words_as_if_it_had_never_come(
    tmp_path_factory: pytest.TempPathFactory, texts: Texts, gone: list[int], cut: int
) -> None:
    """After any erasing and writing they answer and count as those of the rest, here and anew."""
    place, found = tmp_path_factory.mktemp("words"), made(texts)
    words = on_disk(place / "erased", found[:cut])
    for row, document in enumerate(found[cut:], cut):
        put(words, row, document)
    for row in {row for row in gone if row < len(found)}:
        words.index.drop(row, str(row))
        assert words.index.purge()
    rest = in_memory(place / "rest", [])
    for row, document in enumerate(found):
        if row not in gone:
            put(rest, row, document)
    expected = answers(rest, len(found))
    assert answers(words, len(found)) == expected
    assert words.index.known == rest.index.known == rest.index.statistics.documents
    write(words)
    assert answers(reopened(words, place / "erased"), len(found)) == expected


@slow
@given(st.lists(st.tuples(st.integers(0, 20), text), max_size=30), st.sets(st.integers(0, 20)))
def test_some_of_the_words_count_as_those_alone(
    told: list[tuple[int, str]], kept: set[int]
) -> None:
    """What a view keeps of words is as if the others had never come; the others stay for views."""
    texts = dict(told)
    whole, alone = GrowingWords(), GrowingWords()
    whole.add({key: analyse_text(text) for key, text in texts.items()})
    before = whole.statistics
    some = whole.only(np.array(sorted(kept), np.int64))
    alone.add({key: analyse_text(text) for key, text in texts.items() if key in kept})
    numbers = numbers_of(WORDS)
    for part, other in ((some, alone), (whole, before)):
        statistics = part.statistics if part is some else whole.statistics
        expected = other.statistics if isinstance(other, GrowingWords) else other
        assert statistics.holding(numbers).tolist() == expected.holding(numbers).tolist()
        pairs = zip(statistics.occurrences(numbers), expected.occurrences(numbers), strict=True)
        assert all(sorted(a.tolist()) == sorted(b.tolist()) for a, b in pairs)


def test_no_word_of_what_is_erased_stays(tmp_path: Path) -> None:
    """Words as written, keys and the numbers of terms are overwritten; those of others stay."""
    index = WordIndex(DocumentTable(tmp_path))
    texts = ("the safe opens with xylograph", "the safe is red")
    index.put_all(
        {row: StoredDocument(f"id-{row}", 1, analyse_text(one)) for row, one in enumerate(texts)}
    )
    assert index.write(tuple)
    number = numbers_of(["xylograph"]).tobytes()
    before = stored_bytes(tmp_path)
    assert b"xylograph" in before
    assert number in before
    index.drop(0, "id-0")
    assert index.purge()
    after = stored_bytes(tmp_path)
    assert not [one for one in (b"xylograph", b"id-0", number) if one in after]
    assert b"id-1" in after
    assert index.statistics.holding(numbers_of(("safe", "xylograph"))).tolist() == [1, 0]


def test_what_changes_before_it_is_written_is_left_out(tmp_path: Path) -> None:
    """What another process forgot or changed since does not come back to the disk."""
    words = in_memory(tmp_path, made([("a", "", "cat"), ("b", "", "dog")]))
    write(words, changed=["1"])
    assert [one.key for one in words.index.table.read()] == ["0"]


def test_an_item_that_changed_since_is_made_anew(tmp_path: Path) -> None:
    """A document counts only while its mark is that of the item, and its item exists."""
    words = in_memory(tmp_path, made([("a", "", "cat"), ("b", "", "dog"), ("c", "", "tea")]))
    write(words)
    again = empty(tmp_path)
    again.index.open(lambda key: -1 if key == "2" else int(key), np.array([1, 7]))
    assert again.index.find_missing(np.arange(2)).tolist() == [1]
    assert b"tea" in stored_bytes(tmp_path) or again.index.purge()
    assert again.index.purge()
    assert [one.key for one in again.index.table.read()] == ["0", "1"]


@pytest.mark.parametrize("torn", [b"", b"short", bytes(64)], ids=["empty", "short", "zeros"])
def test_a_file_that_cannot_be_read_is_made_anew(tmp_path: Path, torn: bytes) -> None:
    """Memory answers, and writes a new one."""
    words = on_disk(tmp_path, made([("a", "b", "cat")]))
    words.index.table.close()
    path = tmp_path / "words.sqlite"
    for stored in (torn, path.read_bytes()[:-8]):
        path.write_bytes(stored)
        again = empty(tmp_path)
        again.index.open(int, np.ones(1, np.int64))
        put(again, 0, analyse_fields(("a", "b", "cat")))
        write(again)
        assert answers(again, 1) == answers(reopened(again, tmp_path), 1)


def test_words_of_another_key_are_not_read(tmp_path: Path) -> None:
    """A file of another form or key counts as none, and is made anew in place."""
    on_disk(tmp_path, made([("a", "b", "xylograph")]))
    other = DocumentTable(tmp_path, form="other")
    assert other.read() == []
    assert other.problem is None
    assert b"xylograph" not in stored_bytes(tmp_path)


def test_a_row_that_is_wrong_or_misplaced_is_noticed(tmp_path: Path) -> None:
    """No row counts that was changed, or stands in the place of another one."""
    words = on_disk(tmp_path, made([("a", "", "cat"), ("b", "", "dog")]))
    words.index.table.close()
    path = tmp_path / "words.sqlite"
    whole = path.read_bytes()
    first, second = "(SELECT min(id) FROM documents)", "(SELECT max(id) FROM documents)"
    for change in (
        f"UPDATE documents SET content = substr(content, 1, 40) || x'00' WHERE id = {first}",
        f"UPDATE documents SET content = x'00' WHERE id = {first}",
        f"UPDATE documents SET content = (SELECT content FROM documents WHERE id = {second})"
        f" WHERE id = {first}",
    ):
        path.write_bytes(whole)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(change)
        table = DocumentTable(tmp_path)
        assert table.read() == []
        assert table.problem


def test_words_of_an_older_version_leave_the_disk(tmp_path: Path) -> None:
    """They may have been forgotten since."""
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "memories.words").write_bytes(b"xylograph")
    (tmp_path / "rows.bin").write_bytes(b"xylograph")
    assert DocumentTable(tmp_path).read() == []
    assert not list(tmp_path.iterdir())


READER = """
import sqlite3, sys, time
file = sqlite3.connect(sys.argv[1])
file.execute("BEGIN")
file.execute("SELECT * FROM documents").fetchone()
print("reading", flush=True)
time.sleep(60)
"""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Another process that has the file in use, and does not go on."""
    with subprocess.Popen([sys.executable, "-c", READER, path], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline()
        try:
            yield
        finally:
            other.kill()


def test_a_stopped_reader_keeps_no_forgotten_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a process that stands still keeps the journal, the file itself goes."""
    monkeypatch.setattr(word_index, "ERASING", 0.1)
    words = on_disk(tmp_path, made([("a", "", "xylograph"), ("b", "", "dog")]))
    with reading(tmp_path / "words.sqlite"):
        words.index.drop(0, "0")
        assert not words.index.purge()
        words.index.purge_surely()
        assert b"xylograph" not in stored_bytes(tmp_path)
        put(words, 2, analyse_fields(("c", "", "tea")))
        write(words)
    assert [one.key for one in words.index.table.read()] == ["2"]


def test_who_cannot_erase_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody hears that a word is gone while it lies in a file."""
    words = on_disk(tmp_path, made([("a", "", "xylograph")]))
    words.index.drop(0, "0")
    monkeypatch.setattr(word_index, "ERASING", 0.1)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with reading(tmp_path / "words.sqlite"):
        monkeypatch.setattr(Path, "unlink", refuse)
        with pytest.raises(ReadOnly, match=r"words\.sqlite"):
            words.index.purge_surely()
    monkeypatch.undo()
    words.index.purge_surely()
    assert b"xylograph" not in stored_bytes(tmp_path)


# Cells: rows that are never moved.

CELLS = CellTable("cells")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[IndexFile]:
    file = IndexFile(tmp_path / "some.sqlite", CELLS.schema, "1")
    yield file
    file.close()


def _name(number: int) -> int:
    return cell_name(number.to_bytes(8, "little"))


def _content(number: int, rng: random.Random) -> bytes:
    return b"<secret %d>" % number + b" x" * rng.choice(
        (rng.randint(0, 200), rng.randint(0, 4_000))
    )


def _count(path: Path, number: int) -> int:
    return path.read_bytes().count(b"<secret %d>" % number)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_wiped_is_in_no_byte_and_what_stays_is_there_once(
    file: IndexFile, seed: int
) -> None:
    """Also where pages fill up and a file is written anew: SQLite keeps no copy of a cell."""
    rng, living, gone = random.Random(seed), dict[int, bytes](), list[int]()
    assert file.path is not None
    number = 0
    for _ in range(60):
        new = {number + more: _content(number + more, rng) for more in range(rng.randint(1, 30))}
        number += len(new)
        with file.writing():
            CELLS.add(file.db, ((_name(one), content) for one, content in new.items()))
        living |= new
        wiped = rng.sample(sorted(living), min(len(living), rng.randint(0, 20)))
        with file.writing():
            CELLS.wipe(file.db, map(_name, wiped))
        gone += wiped
        for one in wiped:
            del living[one]
        if rng.random() < 0.2:
            write_anew(file, [CELLS], least=20)
        assert file.purge()
        assert not [one for one in wiped if _count(file.path, one)]
    assert not [one for one in gone if _count(file.path, one)]
    assert {_count(file.path, one) for one in living} == {1}
    assert dict(CELLS.read(file.db)) == {_name(one): content for one, content in living.items()}


def test_sqlite_alone_keeps_copies(tmp_path: Path) -> None:
    """The reason: of rows that are deleted, `secure_delete` leaves what was moved before."""
    rng, left = random.Random(1), 0
    path = tmp_path / "plain.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA secure_delete = ON")
        db.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, content BLOB)")
        living: list[int] = []
        for number in range(3_000):
            db.execute("INSERT INTO rows VALUES (?, ?)", (number, _content(number, rng)))
            living.append(number)
            if rng.random() < 0.7:
                gone = living.pop(rng.randrange(len(living)))
                db.execute("DELETE FROM rows WHERE id = ?", (gone,))
                left += _count(path, gone) if number % 7 == 0 else 0
    assert left


def test_room_comes_back(file: IndexFile) -> None:
    """A file is not written anew for a few cells, and shrinks when many were wiped."""
    assert file.path is not None
    with file.writing():
        CELLS.add(file.db, ((_name(one), bytes(2_000)) for one in range(1_000)))
    file.purge()
    whole = file.path.stat().st_size
    with file.writing():
        CELLS.wipe(file.db, map(_name, range(200)))
    write_anew(file, [CELLS], least=100)
    assert file.path.stat().st_size == whole
    with file.writing():
        CELLS.wipe(file.db, map(_name, range(200, 900)))
    write_anew(file, [CELLS], least=100)
    assert file.path.stat().st_size < whole / 5
    assert len(CELLS.read(file.db)) == 100


def test_a_kill_before_all_is_written_anew_is_made_good(file: IndexFile) -> None:
    """Deleted wiped rows leave copies of others until the whole file is written."""
    file.db.execute("PRAGMA user_version = 1")
    with file.writing():
        CELLS.add(file.db, [(_name(1), b"one")])
    write_anew(file, [CELLS])
    assert file.db.execute("PRAGMA user_version").fetchone() == (0,)
    assert CELLS.read(file.db) == [(_name(1), b"one")]
