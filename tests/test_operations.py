"""Every call of the facade is described once, and runs in one wrapper."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest

from anaphora import AsyncMemory, Memory
from anaphora.calls.operation import IN_PROCESS, local_members, operations_of, public_members
from anaphora.client.memory import RemoteMemory
from anaphora.errors import InvalidInput
from anaphora.surfaces.mcp_server.tools import all_tools
from anaphora.surfaces.rest.calls import reads
from anaphora.testing import server_app

OPERATIONS = operations_of(Memory)
# Tools that have another name than their call.
_CALLS = {"recall": "search", "recall_memory": "recall", "save_diary": "write_diary"}
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


def test_a_route_has_the_parameters_of_its_call(tmp_path: Path) -> None:
    """Their names, meanings, bounds and defaults are those of the call's description."""
    with Memory.open(tmp_path / "home", embedder="hashing", warm=False) as memory:
        document = server_app(memory, page=None).openapi()
    derived = {n: one for n, one in OPERATIONS.items() if one.http and one.http.summary}
    assert len(derived) > 30
    compared = 0
    for name, described in derived.items():
        http = described.http
        assert http is not None
        route = document["paths"][http.path][http.method.lower()]
        members = {
            parameter["name"]: {**parameter.get("schema", {}), **parameter}
            for parameter in route["parameters"]
            if parameter["in"] != "header"
        }
        if "requestBody" in route:
            body = route["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            members |= document["components"]["schemas"][body.rpartition("/")[2]]["properties"]
        asked = {
            http.renamed.get(parameter, parameter): one
            for parameter, one in described.parameters.items()
            if parameter not in {*IN_PROCESS, *http.folders}
        }
        assert members.keys() == asked.keys(), name
        for parameter, one in asked.items():
            schema = members[parameter]
            assert schema.get("description", "") == one.described.meaning, (name, parameter)
            bounds = next((part for part in schema.get("anyOf", ()) if "minimum" in part), schema)
            if one.annotation in (int, float) and one.described.least is not None:
                assert bounds["minimum"] == one.described.least, (name, parameter)
                assert bounds.get("maximum") == one.described.most, (name, parameter)
                compared += 1
            if isinstance(one.default, bool) or type(one.default) in (int, str):
                assert schema["default"] == one.default, (name, parameter)
    assert compared > 15


def test_a_tool_stays_within_the_bounds_of_its_call() -> None:
    """What a tool lets a client ask is what the call of its name takes, or less."""
    compared = 0
    for name, tool in all_tools().items():
        for argument, schema in tool.parameters.items():
            described = OPERATIONS.get(_CALLS.get(name, name))
            parameter = described and described.parameters.get(tool.parameter(argument))
            if not parameter or parameter.annotation not in (int, float):
                continue
            bounds = parameter.described
            assert schema["minimum"] >= (bounds.least or 0), (name, argument)
            assert bounds.most is None or schema["maximum"] <= bounds.most, (name, argument)
            compared += 1
    assert compared > 8


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("traces", {"limit": 0}),
        ("list", {"limit": 0}),
        ("contradictions", {"limit": -1}),
        ("notes", {"limit": 0}),
        ("documents", {"limit": 0}),
        ("pin", {"id": "m_none", "position": 0}),
        ("recall", {"question": "ferry", "timeout": -1.0}),
    ],
)
def test_a_number_below_the_least_is_refused(
    tmp_path: Path, name: str, arguments: dict[str, Any]
) -> None:
    """In the same process, too, by the name of the parameter and before anything is done."""
    with Memory.open(tmp_path / "home", embedder="hashing", warm=False) as memory:
        least = OPERATIONS[name].describe(parameter := list(arguments)[-1]).least
        with pytest.raises(InvalidInput, match=f"^{parameter}: expected a .*{least} or more"):
            getattr(memory, name)(**arguments)


def test_a_question_is_a_parameter() -> None:
    """The parameter that holds the question is one of the method's own, and has one name."""
    for described in OPERATIONS.values():
        if described.question:
            assert described.question in described.function.__code__.co_varnames
        assert "query" not in described.parameters
        assert not described.falls_back or described.question


@pytest.mark.parametrize(
    ("room", "call"),
    [
        ("memories", lambda memory: memory.recall("kettle", filters={"$no": 1})),
        ("memories", lambda memory: memory.remember(" ")),
        ("memory", lambda memory: memory.search("kettle", kinds=("stamp",))),
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
