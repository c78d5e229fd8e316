"""A client for TypeScript, generated from the OpenAPI document, compiles strictly and works."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.client.serving import served

from anaphora import Memory
from anaphora.client.memory import REQUESTS
from anaphora.testing import server_app

SOURCES = Path(__file__).parent / "typescript"
# Brought by tools/bring_tools.sh, of the versions that are pinned beside the program.
TOOLS = Path(__file__).resolve().parents[2] / ".typescript"


def need_tools() -> str:
    """The folder of node's packages; where everything has to run, a test without them fails."""
    ready, wanted = TOOLS / "ready.json", SOURCES / "package-lock.json"
    there = ready.exists() and shutil.which("node") is not None
    if there and ready.read_bytes() == wanted.read_bytes():
        return str(TOOLS / "node_modules")
    why = "there is no node, or not its packages: tools/bring_tools.sh brings them"
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(["node", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.enable_socket
@pytest.mark.slow
@pytest.mark.promise("rest.generated")
def test_a_generated_client_makes_a_round_trip(tmp_path: Path) -> None:
    """It is generated, compiled with --strict, remembers, recalls, forgets, and is told errors."""
    packages = need_tools()
    for name in ("package.json", "tsconfig.json", "round_trip.ts"):
        shutil.copy(SOURCES / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(packages)
    options = {"page": None, "require_token": True}
    with served(tmp_path / "home", options) as (url, memory):
        document = server_app(memory, **options).openapi()
        (tmp_path / "openapi.json").write_text(json.dumps(document))
        run(
            tmp_path,
            "node_modules/openapi-typescript/bin/cli.js",
            *("openapi.json", "--output", "schema.ts", "--default-non-nullable=false"),
        )
        run(tmp_path, "node_modules/typescript/bin/tsc", "--strict")
        token = memory.tokens.create("typescript", namespaces=["birds"]).secret
        found = json.loads(run(tmp_path, "made/round_trip.js", url, token))
        assert memory.scoped("birds").list().items == ()
        assert [one.conversation_id for one in memory.scoped("birds").conversations.list()] == [
            "chat"
        ]
    missing = found["problems"].pop(0)
    assert missing.startswith("no memory ")
    assert found == {
        "actions": ["added", "reinforced"],
        "statuses": [200, 404, 401],
        "texts": ["Herons wade at dawn."],
        "created": True,
        "tags": ["bird"],
        "indexes": [0],
        "forgotten": 1,
        "problems": ["filters.tags.has", "urn:anaphora:problem:token"],
    }


@pytest.mark.promise("rest.generated")
def test_the_document_says_what_a_generator_needs(tmp_path: Path) -> None:
    """Names are the facade's and unique, problems told apart by type, values have all fields."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        document = server_app(memory, page=None).openapi()
    operations = {
        f"{method.upper()} {path}": operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    names = [operation["operationId"] for operation in operations.values()]
    assert len(set(names)) == len(names)
    said = {"namespaces": "session", "get": "get_memory", "update": "update_memory"}
    said |= {"list": "list_memories", "projects": "list_projects"}
    said |= {"import_": "import_file"}
    for method, http in REQUESTS.items():
        assert operations[http.request]["operationId"] == said.get(method, method)
    schemas = document["components"]["schemas"]
    problem = schemas["Problem"]
    assert problem["discriminator"]["propertyName"] == "type"
    forms = [one["$ref"].rsplit("/", 1)[1] for one in problem["oneOf"]]
    types = [one for form in forms for one in schemas[form]["properties"]["type"]["enum"]]
    assert sorted(types) == sorted(problem["discriminator"]["mapping"])
    assert len(set(types)) == len(types)
    for name in ("Remembered", "MemoryHit", "MemoryRecord", "SearchHit", "DeepAnswer", "WarmUp"):
        assert schemas[name]["required"] == list(schemas[name]["properties"])
        assert schemas[name]["description"]
