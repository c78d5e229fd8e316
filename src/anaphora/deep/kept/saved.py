"""Deep recall's values as JSON, and back: what truth keeps of answers and traces.

In: frozen values of `deep_values`. Out: JSON text, and equal values again. Fields that a later
program adds are left out by an older one, and have their defaults where an older one wrote them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, TypeVar

from anaphora.values.conversations import Degraded
from anaphora.values.deep import CostSnapshot, DeepAnswer, DeepSource, DeepStep, SubCall, TokenCount

ValueT = TypeVar("ValueT")


def as_json(value: Any) -> str:
    """A value, a list or a mapping of values as JSON. Every character is kept as it is."""
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))


def from_json(text: str) -> Any:
    """What JSON text stands for, in JSON's own types."""
    return json.loads(text)


def answer_from(text: str) -> DeepAnswer:
    """The answer that `as_json` wrote."""
    return _made(
        DeepAnswer,
        json.loads(text),
        sources=_each(_source),
        steps=_each(_step),
        cost=_cost,
        degraded=_each(lambda one: _made(Degraded, one)),
    )


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _made(kind: type[ValueT], found: Mapping[str, Any], **readers: Callable[[Any], Any]) -> ValueT:
    known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    given = {
        name: readers[name](value) if name in readers else value
        for name, value in found.items()
        if name in known
    }
    return kind(**given)


def _each(read: Callable[[Any], ValueT]) -> Callable[[Iterable[Any]], tuple[ValueT, ...]]:
    return lambda found: tuple(read(one) for one in found)


def _source(found: Mapping[str, Any]) -> DeepSource:
    return _made(DeepSource, found, ts=lambda ts: ts and datetime.fromisoformat(ts))


def _step(found: Mapping[str, Any]) -> DeepStep:
    return _made(DeepStep, found, sub_calls=_each(lambda one: _made(SubCall, one)), cost=_cost)


def _cost(found: Mapping[str, Any]) -> CostSnapshot:
    def count(one: Mapping[str, Any]) -> TokenCount:
        return _made(TokenCount, one)

    return _made(CostSnapshot, found, code=count, sub=count)
