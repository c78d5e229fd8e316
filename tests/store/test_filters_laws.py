"""Random filters over random records agree with plain Python, written here on its own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anaphora.store.filters import parse

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
