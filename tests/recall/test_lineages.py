"""Memories are selected by what they were derived from, and by what was derived from them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anaphora import Memory
from anaphora.errors import FilterError

OUTSIDE = """
import sqlite3, sys
rows = sqlite3.connect(sys.argv[1])
rows.execute(sys.argv[2])
rows.commit()
rows.close()
"""


def selected(memory: Memory, lineage: Any) -> set[str]:
    """The ids that a filter selects, the same in recall, in a listing and in a forgetting."""
    filters = {"lineage": lineage}
    listed = {record.id for record in memory.list(filters, limit=100)}
    recalled = {hit.id for hit in memory.recall("fact", top_k=100, filters=filters)}
    assert listed == recalled
    return listed


@pytest.fixture(params=["files", "sealed", "server"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    options: dict[str, Any] = {"sealed": {"encrypt": "file"}, "files": {}}.get(request.param, {})
    if request.param == "server":
        options = {"database": request.getfixturevalue("postgresql_url")}
    with Memory.open(tmp_path / "home", embedder="hashing", **options) as opened:
        yield opened


@pytest.mark.promise("recall.lineages")
def test_generations_are_selected_in_every_store(memory: Memory) -> None:
    """Grandchildren and grandparents, soft and hard forgetting among them, other namespaces not."""
    first = memory.remember("The first fact.").id
    second = memory.remember("The second fact.", parent=first).id
    third = memory.remember("The third fact.", parent=second).id
    fourth = memory.remember("The fourth fact.", parent=third).id
    aside = memory.remember("A fact aside.", parent=first).id
    alone = memory.remember("A fact alone.").id
    assert selected(memory, {"descendant_of": first}) == {second, third, fourth, aside}
    assert selected(memory, {"descendant_of": third}) == {fourth}
    assert selected(memory, {"ancestor_of": fourth}) == {first, second, third}
    assert selected(memory, second) == {first, second, third, fourth}
    assert selected(memory, {"ne": second}) == {aside, alone}
    assert selected(memory, {"in": [aside, alone]}) == {first, aside, alone}
    assert selected(memory, {"descendant_of": first, "ancestor_of": fourth}) == {second, third}
    assert selected(memory, {"descendant_of": "nothing"}) == set()
    assert memory.scoped("other").list({"lineage": first}).items == ()

    other = {"AND": [{"lineage": {"descendant_of": first}}, {"NOT": {"id": aside}}]}
    assert {record.id for record in memory.list(other)} == {second, third, fourth}
    later = memory.remember("The fifth fact.", parent=fourth).id
    assert selected(memory, {"descendant_of": third}) == {fourth, later}

    memory.update(second, text="The second fact, told anew.")
    assert later in selected(memory, {"descendant_of": first})
    below = {"lineage": {"descendant_of": third}}
    assert set(memory.forget(filters=below, dry_run=True).ids) == {fourth, later}
    assert memory.forget(filters=below).count == 2
    assert selected(memory, {"descendant_of": third}) == set()


@pytest.mark.promise("recall.lineages")
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(parents=st.lists(st.none() | st.integers(0, 9), min_size=1, max_size=10))
def test_lineages_agree_with_a_walk(
    tmp_path_factory: pytest.TempPathFactory, parents: list[int | None]
) -> None:
    """For any forest, ancestors and descendants are what a walk by `parent` finds."""
    with Memory.open(tmp_path_factory.mktemp("forest"), embedder="hashing") as memory:
        ids: list[str] = []
        above: dict[str, set[str]] = {}
        for number, place in enumerate(parents):
            parent = ids[place % len(ids)] if ids and place is not None else None
            done = memory.remember(f"The fact with number {number} of them.", parent=parent)
            ids.append(done.id)
            above[done.id] = {parent, *above[parent]} if parent else set()
        for one in ids:
            below = {other for other in ids if one in above[other]}
            assert selected(memory, {"ancestor_of": one}) == above[one]
            assert selected(memory, {"descendant_of": one}) == below
            assert selected(memory, one) == {one} | above[one] | below


@pytest.mark.promise("recall.lineages")
def test_a_circle_ends(tmp_path: Path) -> None:
    """No writer makes one, but rows may have been changed by hand."""
    with Memory.open(tmp_path, embedder="hashing") as memory:
        first = memory.remember("The first fact.").id
        second = memory.remember("The second fact.", parent=first).id
        change = f"UPDATE record SET parent = '{second}' WHERE record_id = '{first}'"
        subprocess.run(
            [sys.executable, "-c", OUTSIDE, str(tmp_path / "anaphora.db"), change], check=True
        )
        assert selected(memory, {"descendant_of": first}) == {second}
        assert selected(memory, {"ancestor_of": first}) == {second}
        assert selected(memory, first) == {first, second}


@pytest.mark.promise("recall.lineages")
@pytest.mark.parametrize(
    ("filters", "place"),
    [
        ({"lineage": {"exists": True}}, "filters.lineage.exists"),
        ({"lineage": {"descendant_of": 3}}, "filters.lineage.descendant_of"),
        ({"lineage": None}, "filters.lineage"),
        ({"lineage": {"in": []}}, "filters.lineage.in"),
        ({"lineage": {"contains": "x"}}, "filters.lineage.contains"),
        ({"OR": [{"path": {"ancestor_of": "x"}}]}, "filters.OR[0].path.ancestor_of"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, filters: dict[str, Any], place: str
) -> None:
    """By its place."""
    with Memory.open(tmp_path, embedder="hashing") as memory:
        for ask in (lambda: memory.list(filters), lambda: memory.recall("x", filters=filters)):
            with pytest.raises(FilterError) as refused:
                ask()
            assert refused.value.what == place
