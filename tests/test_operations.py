"""Every call of the facade is described once, and runs in one wrapper."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest

from anaphora import AsyncMemory, Memory
from anaphora.calls.operation import local_members, operations_of, public_members
from anaphora.client.memory import RemoteMemory
from anaphora.errors import InvalidInput
from anaphora.surfaces.rest.calls import reads
from anaphora.testing import server_app

OPERATIONS = operations_of(Memory)
HERE = Path(__file__).resolve().parents[1] / "src" / "anaphora"


def test_every_public_method_is_an_operation() -> None:
    """Each is described under its own name, and so is its form on a server."""
    methods = {name for name, member in public_members(Memory) if not isinstance(member, property)}
    assert OPERATIONS.keys() == methods
    assert {name: described.name for name, described in OPERATIONS.items()} == {
        name: name for name in methods
    }
    assert {name for name, _ in public_members(AsyncMemory)} >= methods
    assert {name for name, _ in public_members(RemoteMemory)} >= methods


def test_a_request_is_a_route_of_the_server(tmp_path: Path) -> None:
    """Each request has its route, which changes nothing exactly where the call only reads."""
    with Memory.open(tmp_path / "home", embedder="hashing", warm=False) as memory:
        routes = {
            f"{method} {getattr(route, 'path', '')}": reads(route, method)
            for route in server_app(memory, page=None).routes
            for method in getattr(route, "methods", None) or ()
        }
    for name, described in OPERATIONS.items():
        if described.http is not None:
            does_read = routes[described.http.request]
            # A question costs money and may leave a gap: its token must allow changes.
            assert does_read == (described.right == "read" and name != "deep_recall"), name
            if does_read:
                assert described.http.repeatable or described.http.request.startswith("GET ")


def test_a_call_is_a_request_or_of_this_machine() -> None:
    """A server offers what is a request, and nothing that concerns the whole home."""
    offered = {name for name, described in OPERATIONS.items() if described.http is not None}
    refused = OPERATIONS.keys() & local_members(Memory).keys()
    assert OPERATIONS.keys() - offered - refused == {"scoped", "on", "close"}
    assert not offered & refused
    assert {name for name, one in OPERATIONS.items() if one.right == "admin"} <= refused


def test_a_question_is_a_parameter() -> None:
    """The parameter that holds the question is one of the method's own."""
    for described in OPERATIONS.values():
        if described.question:
            assert described.question in described.function.__code__.co_varnames
        assert not described.falls_back or described.question


@pytest.mark.parametrize(
    ("room", "call"),
    [
        ("memories", lambda memory: memory.recall("kettle", filters={"$no": 1})),
        ("memories", lambda memory: memory.remember(" ")),
        ("memory", lambda memory: memory.search("kettle", top_k=0)),
    ],
)
def test_a_trace_begins_with_two_frames(tmp_path: Path, room: str, call: Any) -> None:
    """The wrapper and the method: below them is the service that refused."""
    with (
        Memory.open(tmp_path / "home", embedder="hashing", warm=False) as memory,
        pytest.raises(InvalidInput) as refused,
    ):
        call(memory)
    frames = traceback.extract_tb(refused.value.__traceback__)
    ours = [Path(frame.filename) for frame in frames if HERE in Path(frame.filename).parents]
    assert ours[:2] == [HERE / "calls" / "operation.py", HERE / "api" / f"{room}.py"]
    assert ours[2].relative_to(HERE).parts[0] in {"recall", "ingest"}
