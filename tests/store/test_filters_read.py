"""Filters are read strictly: what cannot be meant is an error that names its place."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from anaphora.errors import FilterError, InvalidInput
from anaphora.store.filters import MAX_DEPTH, MAX_NODES, Filter, parse

RECORD: dict[str, Any] = {
    "id": "m1",
    "text": "vitest over jest",
    "category": "development",
    "tags": ("testing", "tools"),
    "type": "semantic",
    "path": "user.preferences.testing",
    "parent": None,
    "source": "chat",
    "payload": {"framework": "vitest", "stars": 5, "nested": {"on": True}, "list": ["a", 1]},
    "created_at": datetime(2026, 4, 30, 12, tzinfo=UTC),
    "last_reinforced": datetime(2026, 5, 1, tzinfo=UTC),
    "expires_at": None,
    "reinforce_count": 2,
}


def nested(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"id": "m1"}
    for _ in range(levels):
        inner = {"AND": [inner]}
    return inner


GOOD: list[tuple[Any, bool]] = [
    (None, True),
    ({}, True),
    ({"AND": [{"category": "development"}, {"tags": {"contains": "testing"}}]}, True),
    ({"AND": [{"category": "development"}, {"tags": {"contains": "test"}}]}, False),
    ({"category": "development", "type": "episodic"}, False),
    ({"category": {"startswith": "dev", "ne": "devices"}}, True),
    ({"OR": [{"type": "episodic"}, {"path": {"startswith": "user."}}]}, True),
    ({"NOT": {"category": "Development"}}, True),
    ({"tags": ["tools", "testing"]}, True),
    ({"tags": ["tools"]}, False),
    ({"tags": {"in": ["cooking", "tools"]}}, True),
    ({"tags": {"startswith": "test"}}, True),
    ({"parent": {"exists": False}}, True),
    ({"parent": "m0"}, False),
    ({"parent": {"ne": "m0"}}, True),
    ({"NOT": {"parent": "m0"}}, True),
    ({"expires_at": {"gt": "2026-01-01T00:00:00Z"}}, False),
    ({"created_at": "2026-04-30T14:00:00+02:00"}, True),
    ({"created_at": {"gte": datetime(2026, 4, 30, 12, tzinfo=UTC)}}, True),
    ({"created_at": {"lt": "2026-04-30T12:00:00Z"}}, False),
    ({"reinforce_count": {"gt": 1, "lte": 2}}, True),
    ({"payload.framework": "vitest"}, True),
    ({"payload.nested.on": True}, True),
    ({"payload.nested.on": 1}, False),
    ({"payload.stars": {"gt": "4"}}, False),
    ({"payload.stars": 5.0}, True),
    ({"payload.list": {"contains": 1}}, True),
    ({"payload.list": {"contains": True}}, False),
    ({"payload.absent.deep": {"exists": False}}, True),
    ({"payload.framework.deep": {"exists": False}}, True),
    ({"payload.stars": {"in": ["5", 5]}}, True),
    (nested(MAX_DEPTH), True),
    ({"OR": [{"id": "m1"}] * (MAX_NODES - 1)}, True),
    ({"id": {"in": [str(n) for n in range(20_000)] + ["m1"]}}, True),
]

BAD: list[tuple[Any, str]] = [
    ([], "filters"),
    ("category", "filters"),
    ({"colour": "red"}, "filters.colour"),
    ({"text": {"contains": "jest"}}, "filters.text"),
    ({"payload": {"framework": "vitest"}}, "filters.payload"),
    ({"payload.": 1}, "filters.payload."),
    ({"payload.a..b": 1}, "filters.payload.a..b"),
    ({"and": [{"id": "a"}]}, "filters.and"),
    ({"AND": []}, "filters.AND"),
    ({"OR": []}, "filters.OR"),
    ({"AND": {"id": "a"}}, "filters.AND"),
    ({"AND": [{"id": "a"}, 3]}, "filters.AND[1]"),
    ({"AND": [{"id": "a"}, {}]}, "filters.AND[1]"),
    ({"NOT": {}}, "filters.NOT"),
    ({"NOT": [{"id": "a"}]}, "filters.NOT"),
    ({1: "a"}, "filters"),
    ({"category": {}}, "filters.category"),
    ({"category": {"like": "dev%"}}, "filters.category.like"),
    ({"category": {"$eq": "dev"}}, "filters.category.$eq"),
    ({"category": None}, "filters.category"),
    ({"category": 3}, "filters.category"),
    ({"category": ["a"]}, "filters.category"),
    ({"category": {"gt": 3}}, "filters.category.gt"),
    ({"category": {"in": "abc"}}, "filters.category.in"),
    ({"category": {"in": []}}, "filters.category.in"),
    ({"category": {"in": ["a", 3]}}, "filters.category.in[1]"),
    ({"category": {"contains": 1}}, "filters.category.contains"),
    ({"category": {"exists": "no"}}, "filters.category.exists"),
    ({"category": {"exists": 0}}, "filters.category.exists"),
    ({"tags": "testing"}, "filters.tags"),
    ({"tags": []}, "filters.tags"),
    ({"tags": {"gt": "a"}}, "filters.tags.gt"),
    ({"tags": {"contains": ["a"]}}, "filters.tags.contains"),
    ({"AND": [{"id": "a"}, {"tags": {"contains": 3}}]}, "filters.AND[1].tags.contains"),
    ({"created_at": 1_777_000_000}, "filters.created_at"),
    ({"created_at": "2026-04-30"}, "filters.created_at"),
    ({"created_at": "2026-04-30T12:00:00"}, "filters.created_at"),
    ({"created_at": {"gt": "yesterday"}}, "filters.created_at.gt"),
    ({"created_at": datetime(2026, 4, 30)}, "filters.created_at"),  # noqa: DTZ001
    ({"created_at": {"startswith": "2026"}}, "filters.created_at.startswith"),
    ({"expires_at": None}, "filters.expires_at"),
    ({"reinforce_count": "2"}, "filters.reinforce_count"),
    ({"reinforce_count": True}, "filters.reinforce_count"),
    ({"reinforce_count": {"gt": float("nan")}}, "filters.reinforce_count.gt"),
    ({"reinforce_count": {"contains": 2}}, "filters.reinforce_count.contains"),
    ({"payload.a": None}, "filters.payload.a"),
    ({"payload.a": [1]}, "filters.payload.a"),
    ({"payload.a": {"gt": True}}, "filters.payload.a.gt"),
    ({"payload.a": {"lt": float("inf")}}, "filters.payload.a.lt"),
    ({"payload.a": {"startswith": 1}}, "filters.payload.a.startswith"),
    ({"payload.a": datetime(2026, 4, 30, tzinfo=UTC)}, "filters.payload.a"),
    ({"payload.a": {"in": [1, None]}}, "filters.payload.a.in[1]"),
    ({"OR": [{"NOT": {"AND": [{"tag": "x"}]}}]}, "filters.OR[0].NOT.AND[0].tag"),
    (nested(MAX_DEPTH + 1), "filters" + ".AND[0]" * (MAX_DEPTH + 1)),
    ({"OR": [{"id": "a"}] * MAX_NODES}, f"filters.OR[{MAX_NODES - 1}].id"),
]


@pytest.mark.parametrize(("given", "let_through"), GOOD)
def test_a_good_filter_answers(given: Any, let_through: bool) -> None:
    """Each form of the language lets the example through, or not, as the design says."""
    assert parse(given).matches(RECORD) is let_through


@pytest.mark.promise("filters.language")
@pytest.mark.parametrize(("given", "place"), BAD)
def test_a_bad_filter_names_its_place(given: Any, place: str) -> None:
    """What cannot be meant raises a FilterError whose `what` and message name the place."""
    with pytest.raises(FilterError) as caught:
        parse(given)
    assert caught.value.what == place
    assert str(caught.value).startswith(f"{place}: ")
    assert isinstance(caught.value, InvalidInput)


def test_a_near_miss_is_helped() -> None:
    """A misspelt field or operator comes with the nearest one there is."""
    with pytest.raises(FilterError, match="did you mean category"):
        parse({"catgory": "a"})
    with pytest.raises(FilterError, match="did you mean startswith"):
        parse({"path": {"startsWith": "a"}})


def test_what_never_ends_is_refused() -> None:
    """A value nested without end, or within itself, gives a FilterError and no overrun."""
    endless: dict[str, Any] = {}
    endless["AND"] = [endless]
    with pytest.raises(FilterError):
        parse(endless)
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(FilterError):
        parse({"category": deep})


def test_a_filter_names_its_fields() -> None:
    """`fields` are the names that were asked about, however deep they stand."""
    given = {"NOT": {"OR": [{"tags": ["a"]}, {"payload.a.b": 1}, {"id": {"exists": True}}]}}
    assert parse(given).fields == {"tags", "payload.a.b", "id"}
    assert parse({}) == Filter()
    assert parse(None).fields == frozenset()


def test_a_filter_does_not_follow_its_source() -> None:
    """Changing the object after it was read changes nothing."""
    given: dict[str, Any] = {"tags": {"in": ["tools"]}}
    read = parse(given)
    given["tags"]["in"][0] = "cooking"
    assert read.matches(RECORD)
