"""A memory that is broken, and requests that reach it: for tests of unexpected errors."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anaphora import Memory

SECRET = "Rosalind's heron nests at /srv/private/heron.txt"
"""What an error quotes, and no answer and no log may."""


class Panic(BaseException):
    """As a library in Rust raises one: no `Exception`."""


FAULTS: Mapping[str, Callable[[], BaseException]] = {
    "runtime": lambda: RuntimeError(SECRET),
    "key": lambda: KeyError(SECRET),
    "memory": lambda: MemoryError(SECRET),
    "recursion": lambda: RecursionError(SECRET),
    "group": lambda: ExceptionGroup(SECRET, [ValueError(SECRET)]),
    "panic": lambda: Panic(SECRET),
    "exit": lambda: SystemExit(SECRET),
}


@dataclass
class BrokenMemory:
    """A real memory whose calls raise `fault()`, or without one return what no code can use."""

    memory: Memory
    fault: Callable[[], BaseException] | None

    def __getattr__(self, name: str) -> Any:
        if name in {"tokens", "on", "namespace", "home", "close"}:
            return getattr(self.memory, name)
        if name == "scoped":
            return lambda namespace: self
        return Nonsense() if self.fault is None else Raising(self.fault)


@dataclass
class Raising:
    """A part of it: whatever is done with it raises."""

    fault: Callable[[], BaseException]

    def __call__(self, *_: object, **__: object) -> None:
        raise self.fault()

    def __getattr__(self, name: str) -> None:
        raise self.fault()


class Nonsense:
    """What no code can use."""

    def __call__(self, *_: object, **__: object) -> Nonsense:
        return self

    def __repr__(self) -> str:
        return SECRET


def minimal(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """A small value that a JSON schema allows, with what is required alone."""
    if "$ref" in schema:
        return minimal(schemas[schema["$ref"].rsplit("/", 1)[1]], schemas)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return minimal(schema[choice][0], schemas)
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type", "object")
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: minimal(properties[name], schemas) for name in schema.get("required", ())}
    if kind == "array":
        return [minimal(schema.get("items", {}), schemas)]
    if kind == "string":
        return "2026-01-01T00:00:00Z" if schema.get("format") == "date-time" else "id-1"
    if kind in {"integer", "number"}:
        return schema.get("minimum", 1)
    return False


@dataclass
class Wire:
    """A client of the stdio server: sends all requests at once, and collects their answers."""

    requests: Sequence[Mapping[str, Any]]
    answers: dict[int, dict[str, Any]] = field(default_factory=dict)
    _done: threading.Event = field(default_factory=threading.Event)

    def __iter__(self) -> Iterator[bytes]:
        for request in self.requests:
            yield json.dumps({"jsonrpc": "2.0", **request}).encode() + b"\n"
        self._done.wait(60)

    def write(self, line: Any) -> int:
        """Take one answer."""
        answer = json.loads(bytes(line))
        self.answers[answer["id"]] = answer
        if len(self.answers) == sum("id" in request for request in self.requests):
            self._done.set()
        return len(line)


HELLO: Mapping[str, Any] = {
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def texts_of(value: Any) -> str:
    """All of a JSON value as one text."""
    out = io.StringIO()
    json.dump(value, out, ensure_ascii=False)
    return out.getvalue()
