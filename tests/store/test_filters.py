"""Filters: read strictly, and answered as plain Python would over any records."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


# Few values, so that filters and records meet.
WORDS = st.sampled_from(["", "a", "ab", "abc", "b", "B", "é", "10", "a.b", "\x00", "\ud800"])
TAGS = st.sampled_from(["x", "xy", "y", "Y", "z z"])
START = datetime(2026, 4, 30, tzinfo=UTC)
TIMES = st.builds(
    lambda hours, zone: (START + timedelta(hours=hours)).astimezone(
        timezone(timedelta(hours=zone))
    ),
    st.integers(-3, 3),
    st.sampled_from([0, 2, -7]),
)
NUMBERS = st.one_of(st.integers(-2, 3), st.sampled_from([0.5, 1.0, 2.5, 2**60]))
JSON_VALUES = st.one_of(WORDS, NUMBERS, st.booleans())
TEXT_NAMES = ["id", "category", "type", "path", "parent", "source"]
TIME_NAMES = ["created_at", "last_reinforced", "expires_at"]
PAYLOAD_NAMES = ["payload.p", "payload.q", "payload.q.r", "payload.q.r.s"]

records = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.none() | WORDS for name in TEXT_NAMES},
        **{name: st.none() | TIMES for name in TIME_NAMES},
        "tags": st.lists(TAGS, max_size=3).flatmap(
            lambda tags: st.sampled_from([tags, tuple(tags), frozenset(tags)])
        ),
        "reinforce_count": st.integers(0, 3),
        "payload": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "p": st.none() | JSON_VALUES | st.lists(JSON_VALUES, max_size=3),
                "q": JSON_VALUES
                | st.fixed_dictionaries(
                    {}, optional={"r": JSON_VALUES | st.just({"s": "a"}) | st.just({"s": 1})}
                ),
            },
        ),
    },
)


def one_or_many(name: st.SearchStrategy[str], one: Any, names: list[str]) -> Any:
    operator = st.sampled_from(names)
    pair = operator.flatmap(
        lambda op: st.tuples(
            st.just(op), st.lists(one, min_size=1, max_size=3) if op == "in" else one
        )
    )
    exists = st.tuples(st.just("exists"), st.booleans())
    ops = st.lists(pair | exists, min_size=1, max_size=2).map(dict)
    return st.tuples(name, one | ops).map(lambda entry: dict([entry]))


ORDER = ["eq", "ne", "gt", "gte", "lt", "lte", "in"]
text_conditions = one_or_many(
    st.sampled_from(TEXT_NAMES), WORDS, [*ORDER, "contains", "startswith"]
)
time_conditions = one_or_many(
    st.sampled_from(TIME_NAMES), TIMES | TIMES.map(lambda at: at.isoformat()), ORDER
)
count_conditions = one_or_many(st.just("reinforce_count"), NUMBERS, ORDER)
payload_conditions = st.one_of(
    one_or_many(st.sampled_from(PAYLOAD_NAMES), JSON_VALUES, ["eq", "ne", "in", "contains"]),
    one_or_many(st.sampled_from(PAYLOAD_NAMES), WORDS | NUMBERS, ["gt", "gte", "lt", "lte"]),
    one_or_many(st.sampled_from(PAYLOAD_NAMES), WORDS, ["startswith", "contains"]),
)
TAG_LISTS = st.lists(TAGS, min_size=1, max_size=3)
tag_operators = st.one_of(
    TAG_LISTS,
    st.tuples(st.sampled_from(["eq", "ne", "in"]), TAG_LISTS).map(lambda pair: dict([pair])),
    st.tuples(st.sampled_from(["contains", "startswith"]), TAGS).map(lambda pair: dict([pair])),
    st.booleans().map(lambda flag: {"exists": flag}),
)
tag_conditions = tag_operators.map(lambda value: {"tags": value})
conditions = st.one_of(
    text_conditions, time_conditions, count_conditions, payload_conditions, tag_conditions
)


def joined(inner: Any) -> Any:
    lists = st.lists(inner, min_size=1, max_size=3)
    both = st.tuples(inner, inner).map(lambda pair: {**pair[0], **pair[1]})
    return st.one_of(
        lists.map(lambda parts: {"AND": parts}),
        lists.map(lambda parts: {"OR": parts}),
        inner.map(lambda part: {"NOT": part}),
        both,
    )


filters = st.recursive(conditions, joined, max_leaves=6)


def oracle(given: dict[str, Any], record: dict[str, Any]) -> bool:
    """What the design says, straight from the object and as plainly as Python allows."""
    for key, value in given.items():
        if key == "AND":
            if False in [oracle(part, record) for part in value]:
                return False
        elif key == "OR":
            if True not in [oracle(part, record) for part in value]:
                return False
        elif key == "NOT":
            if oracle(value, record):
                return False
        else:
            ops = value if isinstance(value, dict) else {"eq": value}
            for op, operand in ops.items():
                if not holds(key, op, operand, record):
                    return False
    return True


def holds(name: str, op: str, want: Any, record: dict[str, Any]) -> bool:
    have: Any = record
    for step in name.split("."):
        have = have.get(step) if isinstance(have, dict) else None
    there = have is not None and not (name == "tags" and len(have) == 0)
    if op == "exists":
        return bool(there == want)
    if not there:
        return op == "ne"
    if name == "tags":
        return tags_hold(set(have), op, want)
    if name in TIME_NAMES:
        want = [instant(w) for w in want] if op == "in" else instant(want)
    return value_holds(have, op, want)


def tags_hold(mine: set[str], op: str, want: Any) -> bool:
    answers = {
        "eq": lambda: mine == set(want),
        "ne": lambda: mine != set(want),
        "in": lambda: len(mine & set(want)) > 0,
        "contains": lambda: want in mine,
        "startswith": lambda: [tag for tag in mine if tag[: len(want)] == want] != [],
    }
    return answers[op]()


def value_holds(have: Any, op: str, want: Any) -> bool:
    if op == "in":
        return any(equal(have, one) for one in want)
    if op in ("eq", "ne"):
        return equal(have, want) == (op == "eq")
    if op == "contains":
        if isinstance(have, list):
            return any(equal(one, want) for one in have)
        return isinstance(have, str) and isinstance(want, str) and have.find(want) >= 0
    if op == "startswith":
        return isinstance(have, str) and have[: len(want)] == want
    return ordered(have, op, want)


def instant(given: str | datetime) -> datetime:
    return datetime.fromisoformat(given) if isinstance(given, str) else given


def equal(one: Any, other: Any) -> bool:
    return family(one) == family(other) and bool(one == other)


def ordered(have: Any, op: str, want: Any) -> bool:
    if family(have) != family(want) or family(have) == "bool":
        return False
    if op in ("gt", "lte"):
        return bool(have > want) == (op == "gt")
    return bool(have < want) == (op == "lt")


def family(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return type(value).__name__


@pytest.mark.promise("recall.filters")
@settings(max_examples=600, deadline=None)
@given(filters, st.lists(records, min_size=1, max_size=8))
def test_filters_agree_with_plain_python(
    given_filter: dict[str, Any], given_records: list[dict[str, Any]]
) -> None:
    """What a filter lets through is what plain Python lets through, record by record."""
    read = parse(given_filter)
    assert [read.matches(r) for r in given_records] == [
        oracle(given_filter, r) for r in given_records
    ]


@settings(max_examples=100, deadline=None)
@given(filters, filters, records)
def test_the_laws_of_logic_hold(
    one: dict[str, Any], other: dict[str, Any], record: dict[str, Any]
) -> None:
    """NOT of an OR is the AND of NOTs, and NOT twice is nothing."""
    neither = parse({"NOT": {"OR": [one, other]}}).matches(record)
    assert neither == parse({"AND": [{"NOT": one}, {"NOT": other}]}).matches(record)
    assert parse({"NOT": {"NOT": one}}).matches(record) == parse(one).matches(record)
