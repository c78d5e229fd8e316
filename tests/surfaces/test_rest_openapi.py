"""The OpenAPI document is what the server does: tried by schemathesis under every check."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anaphora import Memory
from anaphora.testing import server_app

with warnings.catch_warnings():
    # What it imports in turn warns of its own age.
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.engine import events, from_schema

# The name by which its client calls an application in process.
OPTIONS = {"page": None, "hosts": ("testserver",)}
CONFIG = {
    "seed": 7,
    "generation": {"max-examples": 3},
    # Following links takes minutes; the tests of lanes follow ids by hand.
    "phases": {"stateful": {"enabled": False}},
    # What a schema cannot say (two fields that exclude each other, a filter's operators, a name
    # that can name nothing) is refused with the documented 400 or 422.
    "checks": {
        "positive_data_acceptance": {
            "expected-statuses": ["2xx", "400", "401", "403", "404", "422"]
        }
    },
}
LANES = (
    "/v1/memories", "/v1/(recall|forget|resolve)", "/v1/conversations",
    "/v1/(deep|dream|extract|gaps|jobs|traces)",
    "/v1/(projects|context|observations|diary|warm-up)",
    "/v1/(session|stats|ready|import|export)|^/conversations|^/health|^/metrics",
)  # fmt: skip


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing") as opened:
        opened.remember("The heron is grey.", tags=("bird",), category="birds")
        opened.conversations.append("c", "user", "a heron came by")
        yield opened


@pytest.mark.promise("rest.openapi")
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lane", LANES)
def test_the_document_is_what_the_server_does(memory: Memory, lane: str) -> None:
    """Every operation, asked rightly and wrongly, answers as documented, and never with 5xx."""
    bearer = f"Bearer {memory.tokens.create('all', namespaces=('*',)).secret}"
    schema = schemathesis.openapi.from_asgi(
        "/openapi.json",
        server_app(memory, **OPTIONS),
        # With a token no folder of this machine is indexed, whatever is made up as one.
        config=schemathesis.Config.from_dict(CONFIG | {"headers": {"Authorization": bearer}}),
    ).include(path_regex=f"^{lane}")
    checked: Counter[str] = Counter()
    failures: list[str] = []
    for event in from_schema(schema).execute():
        assert not isinstance(event, (events.FatalError, events.NonFatalError)), event
        if isinstance(event, events.ScenarioFinished):
            for case_id, checks in event.recorder.checks.items():
                for check in checks:
                    checked[check.name] += 1
                    if check.failure_info is not None:
                        failures.append(_told(event.recorder, case_id, check))
    assert not failures, "\n".join(sorted(set(failures))[:10])
    assert checked["not_a_server_error"] > 20
    assert checked["response_schema_conformance"] > 20


@pytest.mark.promise("rest.openapi")
def test_every_parameter_and_field_of_a_request_says_what_it_means(memory: Memory) -> None:
    """A newcomer finds a sentence beside each thing that a request can hold."""
    document = server_app(memory, **OPTIONS).openapi()
    schemas = document["components"]["schemas"]
    lacking, seen = [], set()
    for path, item in document["paths"].items():
        for verb, operation in item.items():
            for one in operation["parameters"]:
                seen.add(one["name"])
                lacking += [] if one.get("description") else [f"{verb} {path}: {one['name']}"]
            for content in operation.get("requestBody", {}).get("content", {}).values():
                name = content["schema"].get("$ref", "/").rsplit("/", 1)[1]
                for field, schema in schemas.get(name, {}).get("properties", {}).items():
                    seen.add(field)
                    lacking += [] if schema.get("description") else [f"{name}.{field}"]
    assert not lacking
    assert {"memory_id", "filters", "budget", "focus", "turns"} <= seen


@pytest.mark.promise("rest.openapi")
def test_a_list_that_may_be_left_out_says_what_it_is_then(memory: Memory) -> None:
    """A default that pydantic has to make would not be in the document."""
    document = server_app(memory, **OPTIONS).openapi()
    schemas = document["components"]["schemas"]
    for body in ("NewObservation", "NewDiaryEntry"):
        assert schemas[body]["properties"]["tags"]["default"] == []
    query = {
        one["name"]: one["schema"]
        for one in document["paths"]["/v1/documents"]["post"]["parameters"]
    }
    assert query["tag"]["default"] == []


def _told(recorder: Any, case_id: str, check: Any) -> str:
    case, done = recorder.cases[case_id].value, recorder.interactions.get(case_id)
    answer = done.response.text[:200] if done is not None and done.response else ""
    sent = f"{case.path_parameters} {case.query} {case.headers} {str(case.body)[:200]}"
    said = check.failure_info.failure.message[:300]
    return f"{check.name}: {case.operation.label}: {said}: {sent}: {answer}"


@pytest.mark.promise("rest.openapi")
def test_every_route_is_documented(memory: Memory) -> None:
    """The document has every route, and every refusal as a problem document."""
    app = server_app(memory, **OPTIONS)
    document = app.openapi()
    hidden = {"/openapi.json", "/v1/memories/recall"}
    known = {getattr(route, "path", "") for route in app.routes} - hidden
    assert set(document["paths"]) == known
    for path, item in document["paths"].items():
        for operation in item.values():
            assert operation["summary"]
            assert operation["description"]
            for status, response in operation["responses"].items():
                content = response.get("content", {})
                if int(status) >= 400 and path != "/health":
                    assert list(content) == ["application/problem+json"], (path, status)
    assert "HTTPValidationError" not in json.dumps(document)
