"""The ranking of sections for a focus: names, the six signals, and what is chosen of the ranked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anaphora import Intent, SourceRole
from anaphora.features.projects.ranking.choice import prune, shingles, spread
from anaphora.features.projects.ranking.names import PathNames
from anaphora.features.projects.ranking.scores import (
    SIGNALS,
    FieldScores,
    FocusNeeds,
    RowScores,
    Signals,
    TargetScores,
    holdable,
    quality_of,
    rank_rows,
    rank_targets,
)
from anaphora.features.projects.ranking.table import DOCUMENT_KINDS, ROLES, SectionTable, file_table

FILES = (
    "src/flask/app.py",
    "src/flask/config.py",
    "src/flask/json/__init__.py",
    "tests/test_config.py",
    "docs/config.rst",
    "web/app/frame.ts",
    "src/flask/sansio/app.py",
    "Makefile",
)


def named(text: str, kind: str = "path") -> set[str]:
    return {FILES[code] for code in PathNames(FILES).named([(text, kind, 1.0)])}


@pytest.mark.parametrize(
    ("text", "kind", "files"),
    [
        ("config.py", "path", {"src/flask/config.py"}),
        ("flask/config.py", "path", {"src/flask/config.py"}),
        ("SRC\\Flask\\Config.py", "path", {"src/flask/config.py"}),
        ("Makefile", "path", {"Makefile"}),
        ("app.py", "path", {"src/flask/app.py", "src/flask/sansio/app.py"}),
        ("sansio/app.py", "path", {"src/flask/sansio/app.py"}),
        ("/usr/lib/python3/site-packages/flask/app.py", "frame", {"src/flask/app.py"}),
        ("/usr/lib/python3/site-packages/pandas/core/frame.ts", "frame", set()),
        ("flask.config.Config.from_file", "dotted", {"src/flask/config.py"}),
        ("flask.json", "dotted", {"src/flask/json/__init__.py"}),
        ("os.path.join", "dotted", set()),
        ("nothing/of/ours.py", "path", set()),
        ("", "path", set()),
        ("...", "dotted", set()),
    ],
)
def test_names_find_their_files(text: str, kind: str, files: set[str]) -> None:
    """A name means the files that agree with it in whole components, and nothing else."""
    assert named(text, kind) == files


def test_the_last_frame_counts_most() -> None:
    """Of a traceback's frames in the project the last one is where it was raised."""
    found = PathNames(FILES).named(
        [
            ("/x/flask/app.py", "frame", 0.4),
            ("/x/flask/config.py", "frame", 0.4),
            ("/lib/os.py", "frame", 0.4),
        ]
    )
    assert found[1] == pytest.approx(0.4)
    assert 0.0 < found[0] < found[1]


def test_an_ambiguous_name_says_less() -> None:
    """A name that fits several files says less of each than one that fits one."""
    names = PathNames(FILES)
    both = names.named([("app.py", "path", 1.0)])
    assert set(both) == {0, 6}
    assert max(both.values()) < names.named([("config.py", "path", 1.0)])[1]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text(max_size=30), st.sampled_from(["path", "dotted", "frame"]), st.floats(0.01, 1.0)
        ),
        max_size=8,
    )
)
def test_any_names_are_bounded(names: list[tuple[str, str, float]]) -> None:
    """Whatever is named, each file's share lies between 0 and the greatest weight given."""
    found = PathNames(FILES).named(names)
    most = max((weight for _, _, weight in names), default=0.0)
    assert all(0 <= code < len(FILES) and 0.0 < share <= most for code, share in found.items())


DAY = 86_400.0
NOW = 1_000 * DAY
unit = st.floats(0.0, 1.0)


@dataclass(frozen=True)
class Row:
    """A candidate: where it is and what is known of it."""

    path: str | None
    role: SourceRole = "code"
    days: float = 100.0
    tokens: int = 200
    importance: int = 0
    in_path: float = 0.0
    title: float = 0.0
    body: float = 1.0
    held: float = 0.3
    cosine: float = 0.2


rows = st.builds(
    Row,
    path=st.sampled_from(["a.py", "b/a.py", "docs/c.md", "tests/test_a.py", "CHANGES.md", None]),
    role=st.sampled_from(ROLES),
    days=st.floats(-5.0, 400.0),
    tokens=st.integers(0, 20_000),
    importance=st.integers(0, 5),
    in_path=st.floats(0.0, 9.0),
    title=st.floats(0.0, 9.0),
    body=st.floats(0.0, 9.0),
    held=unit,
    cosine=st.floats(-1.0, 1.0) | st.just(float("nan")),
)


def table_of(given_rows: list[Row]) -> SectionTable:
    role_of = {row.path: ROLES.index(row.role) for row in given_rows if row.path}
    files, count = list(role_of), len(given_rows)
    kinds = [DOCUMENT_KINDS.index("section" if r.path else "observation") for r in given_rows]
    roles = np.array(list(role_of.values()), np.int8)
    return SectionTable(
        ids=tuple(map(str, range(count))),
        kind=np.array(kinds, np.int8),
        role=np.array([ROLES.index(row.role) for row in given_rows], np.int8),
        project=np.zeros(count, np.int16),
        file=np.array([files.index(r.path) if r.path else -1 for r in given_rows], np.int32),
        tokens=np.array([row.tokens for row in given_rows], np.int32),
        changed_at=np.array([NOW - row.days * DAY for row in given_rows], np.float64),
        importance=np.array([row.importance for row in given_rows], np.int8),
        start_line=np.zeros(count, np.int32),
        end_line=np.zeros(count, np.int32),
        files=file_table([("", path) for path in files], [""], roles, ()),
        projects=("",),
    )


def signals_of(given_rows: list[Row], order: list[int] | None = None) -> Signals:
    at = list(range(len(given_rows))) if order is None else order
    mine = [given_rows[n] for n in at]

    def column(name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return np.array([getattr(row, name) for row in mine], np.float64)

    return Signals(
        np.array(at, np.int64),
        FieldScores(column("in_path"), column("title"), column("body"), column("held")),
        10.0,
        column("cosine"),
    )


def scored(given_rows: list[Row], needs: FocusNeeds | None = None) -> RowScores:
    return rank_rows(table_of(given_rows), signals_of(given_rows), needs or FocusNeeds(now=NOW))


def targets(given_rows: list[Row], needs: FocusNeeds | None = None) -> TargetScores:
    needs = needs or FocusNeeds(now=NOW)
    table, signals = table_of(given_rows), signals_of(given_rows)
    return rank_targets(table, signals, needs, rank_rows(table, signals, needs))


@pytest.mark.promise("context.signals")
@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("in_path", lambda row, by: row.in_path + by),
        ("title", lambda row, by: row.title + by),
        ("body", lambda row, by: row.body + by),
        ("cosine", lambda row, by: min(1.0, row.cosine + by)),
        ("importance", lambda row, by: min(5, row.importance + 1) if row.importance else 0),
        ("days", lambda row, by: row.days - 10 * by),
        ("tokens", lambda row, by: int(row.tokens / (1.0 + by))),
    ],
)
@settings(deadline=None)
@given(row=rows, by=st.floats(0.0, 3.0))
def test_each_signal_counts_in_its_direction(
    name: str, better: Callable[[Row, float], float], row: Row, by: float
) -> None:
    """More match, meaning, importance or freshness, or a smaller size, never costs."""
    raised = replace(row, **{name: better(row, by)})  # type: ignore[arg-type]
    assert scored([raised]).score[0] >= scored([row]).score[0]


@settings(deadline=None)
@given(st.lists(rows, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_candidates_does_not_count(given_rows: list[Row], random: Random) -> None:
    """Rows and targets come out the same in whatever order the candidates came."""
    table, needs = table_of(given_rows), FocusNeeds(("docs", "tests"), NOW)
    order = list(range(len(given_rows)))
    random.shuffle(order)
    found = []
    for at in (None, order):
        signals = signals_of(given_rows, at)
        ranked = rank_rows(table, signals, needs)
        aims = rank_targets(table, signals, needs, ranked)
        found.append(
            (
                ranked.rows[ranked.order].tolist(),
                ranked.score[ranked.order].tolist(),
                aims.files.tolist(),
                aims.score.tolist(),
                ranked.rows[aims.best].tolist(),
            )
        )
    assert found[0] == found[1]


@settings(deadline=None)
@given(st.lists(rows, min_size=1, max_size=8))
def test_scores_are_orderly(given_rows: list[Row]) -> None:
    """Scores are finite and not negative, the order follows them, and all six signals are shown."""
    found = scored(given_rows)
    assert np.isfinite(found.score).all()
    assert (found.score >= 0.0).all()
    assert np.isfinite(
        np.array([list(found.explain(n).values()) for n in range(len(given_rows))])
    ).all()
    assert tuple(found.explain(0)) == SIGNALS
    ranked = found.score[found.order]
    assert (np.diff(ranked) <= 0.0).all()
    assert sorted(found.order.tolist()) == list(range(len(given_rows)))


@pytest.mark.promise("context.grounded")
@settings(deadline=None)
@given(st.lists(rows, min_size=1, max_size=6))
def test_meaning_alone_is_no_evidence(given_rows: list[Row]) -> None:
    """What has no word in common with the focus scores nothing, is no target, and stays weak."""
    near = [
        replace(row, held=0.0, in_path=0.0, title=0.0, body=0.0, cosine=1.0) for row in given_rows
    ]
    assert scored(near).score.tolist() == [0.0] * len(near)
    assert len(targets(near)) == 0
    assert quality_of(targets(near), 9) == "weak"


@pytest.mark.promise("context.grounded")
@settings(deadline=None)
@given(st.lists(rows, min_size=1, max_size=6), unit)
def test_meaning_never_lifts_the_label(given_rows: list[Row], cosine: float) -> None:
    """The label of a focus does not depend on how close in meaning its targets are."""
    bare = [replace(row, cosine=0.0) for row in given_rows]
    near = [replace(row, cosine=cosine) for row in bare]
    assert quality_of(targets(near), 9) == quality_of(targets(bare), 9)


def test_recency_breaks_ties_and_no_more() -> None:
    """The fresher of two equal matches comes first, but never before a clearly better one."""
    assert scored([Row("a.py", days=300), Row("b.py", days=1)]).order.tolist() == [1, 0]
    assert scored([Row("a.py", days=300, body=1.5), Row("b.py", days=0)]).order.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("intents", "first"),
    [
        ((), "src/cli.py"),
        (("implementation",), "src/cli.py"),
        (("docs",), "docs/cli.md"),
        (("setup",), "setup.cfg"),
    ],
)
def test_roles_fit_intents(intents: tuple[Intent, ...], first: str) -> None:
    """Of equal matches the one comes first whose role fits what the task appears to need."""
    roles: dict[str, SourceRole] = {
        "docs/cli.md": "docs",
        "src/cli.py": "code",
        "tests/test_cli.py": "test",
    }
    if "setup" in intents:
        roles["setup.cfg"] = "package_config"
    pair = [Row(path, role=role) for path, role in roles.items()]
    found = targets(pair, FocusNeeds(intents, NOW))
    assert list(roles)[found.files[0]] == first


def test_asked_for_tests_stand_equal() -> None:
    """A test gives way to what it tests unless the focus is about tests."""
    pair = [Row("src/cli.py", body=1.0), Row("tests/test_cli.py", role="test", body=1.1)]
    assert targets(pair).files.tolist() == [0, 1]
    assert targets(pair, FocusNeeds(("tests",), NOW)).files.tolist() == [1, 0]


def test_change_logs_give_way() -> None:
    """A change log that matches better comes behind, unless it is asked for."""
    pair = [Row("CHANGES.rst", role="docs", body=2.0), Row("src/cli.py", body=1.0)]
    assert targets(pair).files.tolist() == [1, 0]
    assert targets(pair, FocusNeeds((), NOW, log=True)).files.tolist() == [0, 1]


def test_a_named_file_is_meant() -> None:
    """A file that the focus calls by its name comes before one that matches better."""
    pair = [Row("a.py", body=4.0), Row("b.py", body=1.0)]
    assert targets(pair).files.tolist() == [0, 1]
    assert targets(pair, FocusNeeds((), NOW, {1: 1.0})).files.tolist() == [1, 0]


def test_many_places_count_but_saturate() -> None:
    """A file that matches in many places beats one with one place, and never by their number."""
    once, often = Row("a.py", body=3.0), [Row("b.py", body=3.0)] * 3
    assert targets([once, *often]).files.tolist()[0] == 1
    many = targets([Row("a.py", body=9.0), *[Row("b.py", body=3.0)] * 300])
    assert many.files.tolist()[0] == 0


def test_a_note_is_its_own_target() -> None:
    """Notes stand among the files, each with its own score and place."""
    found = targets([Row(None, body=9.0, held=1.0), Row("a.py"), Row(None, body=0.5)])
    assert found.files.tolist() == [-1, 0, -1]
    assert found.best.tolist() == [0, 1, 2]


@given(st.lists(rows, min_size=1, max_size=8), st.floats(1.0, 40.0))
def test_a_long_focus_is_not_asked_for_whole(given_rows: list[Row], mass: float) -> None:
    """Measured by what a section can hold, words count for more and never for less; the evidence
    that the label rests on stays that of the whole focus."""
    whole = replace(signals_of(given_rows), mass=mass)
    part = replace(whole, most=mass / 2)
    table = table_of(given_rows)
    less, more = rank_rows(table, whole, FocusNeeds()), rank_rows(table, part, FocusNeeds())
    assert more.signals["words"] == pytest.approx(2 * less.signals["words"])
    assert (more.score >= less.score).all()
    assert (more.grounded == less.grounded).all()
    before, after = (
        rank_targets(table, seen, FocusNeeds(), ranked)
        for seen, ranked in ((whole, less), (part, more))
    )
    assert sorted(after.grounded) == pytest.approx(sorted(before.grounded), abs=2e-6)


def test_a_short_focus_is_asked_for_whole() -> None:
    """Up to 24 terms the mass of a focus is what one section can hold; of more, the greatest 24."""
    assert holdable([2.0] * 24) == 48.0
    assert holdable([*[1.0] * 50, *[3.0] * 23]) == 70.0
    assert holdable([]) == 0.0


texts = st.lists(
    st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta"]), max_size=12), max_size=10
)


@pytest.mark.promise("context.spread")
def test_a_near_duplicate_goes() -> None:
    """Of two texts that are nearly the same the better ranked stays; a summary stands beside."""
    words = [f"w{n}" for n in range(40)]
    sketches = {
        0: shingles(words),
        1: shingles([*words[:39], "other"]),
        2: shingles(words[:8]),
        3: shingles([f"x{n}" for n in range(40)]),
    }
    assert prune([0, 1, 2, 3], sketches) == [0, 2, 3]
    assert prune([1, 0, 2, 3], sketches) == [1, 2, 3]


@settings(deadline=None)
@given(texts)
def test_pruning_keeps_the_best_and_repeats_nothing(found: list[list[str]]) -> None:
    """The first stays, equal texts come once, the order stays; pruning again changes nothing."""
    sketches = {n: shingles(text) for n, text in enumerate(found)}
    kept = prune(range(len(found)), sketches)
    assert kept == sorted(kept)
    assert kept[:1] == list(range(len(found)))[:1]
    assert prune(kept, sketches) == kept
    full = [sketches[n] for n in kept if sketches[n]]
    assert len(full) == len(set(full))


@pytest.mark.promise("context.spread")
@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("smod"), st.sampled_from(["a", "b", "c", None])), max_size=30
    ),
    st.integers(0, 12),
)
def test_a_spread_is_bounded_and_in_order(found: list[tuple[str, str | None]], limit: int) -> None:
    """It never exceeds the limit nor two of a file, keeps the order, and wastes no room."""
    kinds = {n: kind for n, (kind, _) in enumerate(found)}
    owners = {n: owner for n, (_, owner) in enumerate(found)}
    kept = spread(range(len(found)), kinds, owners, limit)
    assert kept == sorted(set(kept))
    assert len(kept) <= limit
    of_file = Counter(owners[n] for n in kept if owners[n] is not None)
    assert max(of_file.values(), default=0) <= 2
    left = [n for n in range(len(found)) if n not in kept]
    if len(kept) < limit:
        assert all(of_file[owners[n]] == 2 for n in left)


def test_four_of_a_kind_before_more() -> None:
    """A kind that fills the ranking leaves room for others, and takes what they do not need."""
    kinds = dict.fromkeys(range(10), "section") | {10: "diary", 11: "observation"}
    assert spread(range(12), kinds, {}, 6) == [0, 1, 2, 3, 10, 11]
    assert spread(range(12), kinds, {}, 8) == [0, 1, 2, 3, 4, 5, 10, 11]
