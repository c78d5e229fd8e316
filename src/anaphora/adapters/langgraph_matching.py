"""When a value passes a LangGraph filter, and a namespace a match condition.

In: values and filters as LangGraph's users write them. Out: whether they match, by the rules of its
own in-memory store: plain values are compared, objects member by member, lists in order, and
`$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte` are operators. Pure.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from anaphora.errors import FilterError

_ORDER: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class Condition(Protocol):
    """A `MatchCondition` of LangGraph."""

    @property
    def match_type(self) -> str:
        """Either "prefix" or "suffix"."""
        ...

    @property
    def path(self) -> tuple[str, ...]:
        """Labels; "*" stands for any."""
        ...


def matches(value: Any, wanted: Any) -> bool:
    """Whether a member of an item passes what the filter says of it. `FilterError` for a bad one.

    A value that has no order (None, a word) passes no comparison.
    """
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            return all(_holds(value, str(name), other) for name, other in wanted.items())
        if not isinstance(value, Mapping):
            return False
        return all(matches(value.get(name), other) for name, other in wanted.items())
    if isinstance(wanted, (list, tuple)):
        return (
            isinstance(value, (list, tuple))
            and len(value) == len(wanted)
            and all(matches(one, other) for one, other in zip(value, wanted, strict=True))
        )
    return bool(value == wanted)


def namespace_matches(condition: Condition, namespace: tuple[str, ...]) -> bool:
    """Whether a namespace begins or ends as the condition says."""
    path = condition.path
    if len(namespace) < len(path):
        return False
    if condition.match_type == "prefix":
        compared = namespace[: len(path)]
    elif condition.match_type == "suffix":
        compared = namespace[len(namespace) - len(path) :]
    else:
        raise FilterError("match_type", condition.match_type, "expected 'prefix' or 'suffix'")
    return all(label in {"*", own} for own, label in zip(compared, path, strict=True))


def _holds(value: Any, name: str, other: Any) -> bool:
    if name == "$eq":
        return bool(value == other)
    if name == "$ne":
        return bool(value != other)
    compare = _ORDER.get(name)
    if compare is None:
        raise FilterError("filter", name, f"expected one of $eq, $ne, {', '.join(_ORDER)}")
    try:
        return compare(float(value), float(other))
    except (TypeError, ValueError):
        return False
