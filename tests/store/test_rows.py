"""Rows as they are read: projects, notes, records with their pages and vectors, escaped texts."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ingest.project_desk import sections_since
from tests.ingest.truth_desk import drop_vectors

from anaphora import MemoryRecord, NewMemory
from anaphora.errors import InvalidInput
from anaphora.features.projects.store.rows import FileRow, ProjectRow, SectionRow
from anaphora.features.projects.store.store import Projects
from anaphora.store.crypto.cipher import Keys
from anaphora.store.crypto.columns import ClearRows, SealedRows, Sealer
from anaphora.store.db.engine import Database
from anaphora.store.escaping import escape, unescape
from anaphora.store.filters import parse
from anaphora.store.hashing import hash_text
from anaphora.store.records.ids import RecordIds
from anaphora.store.records.store import Records
from anaphora.store.records.vectors import RecordVectors, VectorRow

pytestmark = pytest.mark.internal

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
ODD = "a \x00 b \ud800 c \x10 \U0001f600"


@pytest.fixture(params=["clear", "sealed"])
def sealer(request: pytest.FixtureRequest) -> Sealer:
    if request.param == "clear":
        return ClearRows()
    pytest.importorskip("cryptography")
    numbers = count(1)
    return SealedRows(Keys(bytes(range(32)), lambda size: next(numbers).to_bytes(size, "big")))


@pytest.fixture
def ids() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"id{next(numbers):04}"


@pytest.fixture
def projects(truth: Database, sealer: Sealer) -> Projects:
    return Projects(truth, "default", sealer)


FILE = FileRow(
    "f1", "p1", f"src/{ODD}.py", "code", "python", "0" * 64, None, 1, 3, -4, 2**62, NOW,
    {"symbols": [[ODD, "function", 1, 2]]},
)  # fmt: skip


def section(title: str, text: str) -> SectionRow:
    return SectionRow(
        "", "p1", FILE.path, "code", "python", "symbol", title, (ODD, "b"), ODD, text, 1, 2, NOW,
        f"hash of {text}",
    )  # fmt: skip


def fill(projects: Projects, ids: Callable[[], str], *sections: SectionRow) -> None:
    with projects.change() as work:
        work.add_project(ProjectRow("p1", ODD, f"/r/{ODD}", NOW, folders={ODD: 5}, head=ODD))
        work.put_file(FILE, known=False)
        work.put_sections(FILE, sections, ids, known=False)


@pytest.mark.promise("project.index")
def test_rows_come_back_as_they_were(projects: Projects, ids: Callable[[], str]) -> None:
    """Names, paths, texts, facts and times are the same after a round through any database."""
    fill(projects, ids, section(ODD, ODD), section("b", "words"))
    row = projects.row("p1")
    assert (row.name, row.root, row.folders, row.head) == (ODD, f"/r/{ODD}", {ODD: 5}, ODD)
    assert projects.find(f"/r/{ODD}") == projects.find(ODD) == row
    (file,) = projects.files("p1", facts=True).values()
    assert file.facts == FILE.facts
    assert (file.path, file.inode, file.mtime_ns) == (FILE.path, 2**62, -4)
    first, second = sections_since(projects, 0)
    assert (first.text, first.title, first.heading, first.symbol) == (ODD, ODD, (ODD, "b"), ODD)
    assert (first.path, first.role, first.changed_at) == (FILE.path, "code", NOW)
    assert projects.sections([second.id, "no"]) == {second.id: second}
    assert sections_since(projects, first.seq) == [second]
    assert projects.sections_of("p1", FILE.path) == (first, second)


OpenTruth = Callable[[], Database]


def keep(records: Records, *items: NewMemory) -> list[str]:
    """Put memories in one transaction and return their ids."""
    from anaphora.store.records.rules import draft_memory, put_all

    ids = RecordIds(lambda: NOW)
    with records.change() as work:
        drafts = [draft_memory(item, NOW, ids()) for item in items]
        return [done.id for done in put_all(work, drafts, ids)]


def texts(records: Any) -> list[str]:
    return [record.text for record in records]


@pytest.mark.promise("records.list")
def test_pages_cover_everything_once(truth: Database) -> None:
    """Pages of any size hold every record that the filter lets through, the last changed first."""
    records = Records(truth, "default")
    keep(records, *(NewMemory(str(n), category="odd" if n % 2 else "even") for n in range(400)))
    for keep_if, expected in (
        (None, range(400)),
        (parse({"category": "odd"}), range(1, 400, 2)),
        (parse({"AND": [{"category": "odd"}, {"id": {"exists": False}}]}), range(0)),
    ):
        for limit in (1, 7, 64, 400, 1000):
            found: list[str] = []
            cursor = None
            while True:
                page = records.list(keep_if, limit=limit, cursor=cursor)
                found += texts(page)
                cursor = page.cursor
                if cursor is None or len(found) > 400 or limit == 1:
                    break
                assert len(page) == limit
            wanted = [str(n) for n in reversed(expected)]
            assert found == (wanted[:1] if limit == 1 else wanted)


@pytest.mark.promise("records.follow")
def test_whether_there_is_any_is_told_after_every_change(
    truth: Database, open_again: OpenTruth
) -> None:
    """Whatever came and went before it was asked: records of other kinds are none."""
    from anaphora.store.records.forgetting import forget_for_good

    memories, others = Records(truth, "default"), Records(truth, "default", kinds=("other", "more"))
    asked = Records(open_again(), "default", kinds=others.kinds)
    for _ in range(2):
        assert not asked.holds_any()
        keep(memories, NewMemory("a memory"))
        assert not asked.holds_any()
        ids = keep(others, NewMemory("another"))
        assert asked.holds_any()
        keep(memories, NewMemory("a memory more"))
        assert asked.holds_any()
        with others.change() as work:
            forget_for_good(work, ids)
    truth.erase("default")
    assert not asked.holds_any()
    keep(others, NewMemory("new"))
    assert asked.holds_any()


@pytest.mark.promise("records.follow")
def test_following_by_number_gives_the_present(truth: Database, open_again: OpenTruth) -> None:
    """Who follows changes and tombstones in any portions holds what truth holds."""
    from anaphora.store.records.forgetting import forget_for_good

    records, follower = Records(truth, "default"), Records(open_again(), "default")
    known: dict[str, MemoryRecord] = {}
    seen = 0

    def follow(limit: int) -> None:
        nonlocal seen
        head = follower.version()
        while changed := follower.changed_since(seen, limit):
            assert [r.seq for r in changed] == sorted({r.seq for r in changed})
            known.update({r.id: r for r in changed})
            seen = changed[-1].seq
        for _, gone in follower.tombstones_since(0):
            known.pop(gone, None)
        seen = head

    for round_ in range(6):
        ids = keep(
            records, *(NewMemory(f"{n % 5}", path=f"p{n % 3}") for n in range(round_, round_ + 4))
        )
        if round_ % 2:
            with records.change() as work:
                forget_for_good(work, ids[:1])
        follow(limit=round_ % 3 + 1)
        assert known == {r.id: r for r in records.list(limit=999, history=True)}
    assert follower.changed_since(seen) == ()


@pytest.mark.promise("forget.bytes")
@pytest.mark.parametrize("seed", range(3))
def test_a_forgotten_text_is_in_no_byte_of_the_file(tmp_path: Path, seed: int) -> None:
    """However often rows are moved as pages fill and empty: SQLite leaves copies of some."""
    from anaphora.store.records.forgetting import forget_for_good

    rng, living, number = random.Random(seed), dict[str, str](), 0
    truth = Database(path=tmp_path / "anaphora.db")
    records = Records(truth, "default")
    for _ in range(40):
        words = [f"secret{number + more}word" for more in range(rng.randint(5, 40))]
        number += len(words)
        sizes = [rng.choice((rng.randint(0, 80), rng.randint(0, 900))) for _ in words]
        items = [
            NewMemory(f"{word} " + "x " * size) for word, size in zip(words, sizes, strict=True)
        ]
        living |= zip(keep(records, *items), words, strict=True)
        ids = rng.sample(sorted(living), len(living) // 2)
        gone = [living.pop(record_id) for record_id in ids]
        with records.change(scrub=True) as work:
            forget_for_good(work, ids)
        assert work.write.is_clean
        stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert not [word for word in gone if f"{word} ".encode() in stored]
    truth.close()


@pytest.mark.promise("vectors.truth")
def test_vectors_belong_to_their_records(truth: Database) -> None:
    """Vectors are kept by embedder and part, replaced whole, streamed in order, dropped alone."""
    records, vectors = Records(truth, "default"), RecordVectors(truth, "default")
    ids = keep(records, *(NewMemory(str(n)) for n in range(5)))
    data = [bytes([n]) * 8 for n in range(10)]

    def row(n: int, part: int) -> VectorRow:
        return VectorRow(ids[n], part, hash_text(str(n)), data[2 * n + part])

    assert vectors.put("e", [row(n, part) for n in range(4) for part in range(2)]) == 4
    assert vectors.put("f", [row(0, 0), VectorRow("nobody", 0, "h", b"x")]) == 1
    assert vectors.counts() == {"e": (4, 8), "f": (1, 1)}
    assert [o.record_id for o in vectors.owners_without("e")] == [ids[4]]
    assert [o.text for o in vectors.owners_without("f", limit=2)] == ["1", "2"]
    assert [o.text for o in vectors.owners_without("f", after=ids[2])] == ["3", "4"]
    for size in (1, 3, 100):
        batches = list(vectors.get_all("e", batch=size))
        assert [i for b in batches for i in b.record_ids] == [
            ids[n] for n in range(4) for _ in "ab"
        ]
        assert [p for b in batches for p in b.parts] == [0, 1] * 4
        assert b"".join(b.data for b in batches) == b"".join(data[:8])
    last = batches[-1].seq
    vectors.put("e", [VectorRow(ids[0], 0, "h", b"new")])
    (changed,) = vectors.get_all("e", since=last)
    assert (changed.record_ids, changed.data) == ((ids[0],), b"new")
    assert vectors.counts()["e"] == (4, 7)
    assert drop_vectors(vectors, "e") == 7
    assert vectors.counts() == {"f": (1, 1)}
    assert RecordVectors(truth, "other").counts() == {}


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=50), st.integers(0, 2**74 - 1))
def test_ids_rise_whatever_the_clock_does(steps: list[int], bits: int) -> None:
    """Ids of one source are unique and sort by their making, also when the clock goes back."""
    now = NOW

    def clock() -> datetime:
        return now

    ids = RecordIds(clock, lambda n: bits & (1 << n) - 1)
    made = []
    for step in steps:
        now += timedelta(milliseconds=step)
        made.append(ids())
    assert made == sorted(set(made))
    assert {len(one) for one in made} == {36}
    assert {(one[14], one[19] in "89ab") for one in made} == {("7", True)}


# Half of the characters are the ones that the rule is about, and the ones its codes are made of.
HARD = st.sampled_from("\x00\x10\ud800\udbff\udc00\udfff00D8F1a")
ANY_TEXT = st.text(alphabet=st.one_of(HARD, st.characters()), max_size=30)


@pytest.mark.promise("truth.round_trip")
@given(ANY_TEXT)
def test_every_string_comes_back(text: str) -> None:
    """Unescaping gives back exactly what was escaped."""
    assert unescape(escape(text)) == text


@given(ANY_TEXT)
def test_databases_take_the_escaped_form(text: str) -> None:
    """An escaped string is valid UTF-8 without NUL."""
    assert b"\x00" not in escape(text).encode("utf-8")


@given(ANY_TEXT, ANY_TEXT)
def test_two_strings_never_share_a_form(one: str, other: str) -> None:
    """Different strings have different escaped forms."""
    assert (escape(one) == escape(other)) == (one == other)


@given(ANY_TEXT, ANY_TEXT)
def test_prefixes_stay_prefixes(start: str, rest: str) -> None:
    """A string begins with another exactly when its escaped form begins with the other's."""
    assert escape(start + rest) == escape(start) + escape(rest)
    assert escape(rest).startswith(escape(start)) == rest.startswith(start)


@given(st.text(alphabet=st.characters(exclude_characters="\x00\x10", exclude_categories=["Cs"])))
def test_ordinary_text_is_unchanged(text: str) -> None:
    """Text without NUL, DLE and surrogates is stored as it is."""
    assert escape(text) == text
    assert unescape(text) == text


@pytest.mark.parametrize(
    "stored", ["\x10", "\x1000", "\x10000g", "\x100041", "\x10D80", "\x10d800"]
)
def test_what_no_escaping_wrote_is_refused(stored: str) -> None:
    """A stored text that holds a code of no refused character is an error, not a guess."""
    with pytest.raises(InvalidInput):
        unescape(stored)


def test_every_naughty_string_comes_back(naughty: list[str]) -> None:
    """Texts that trouble programs survive escaping."""
    assert len(naughty) > 400
    assert [unescape(escape(text)) for text in naughty] == naughty
