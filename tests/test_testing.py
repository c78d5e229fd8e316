"""The tools that users have for tests of their own agents."""

from __future__ import annotations

import ast
import json
from datetime import timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import anaphora
from anaphora import Memory, RemoteMemory
from anaphora.testing import Clock, ScriptedModel, open_memory, run_cli, serve, server_app

FERRY = "The ferry to Vallby leaves at nine."


def test_a_memory_of_a_test_goes_away() -> None:
    """Without a home it lies in a folder that is gone afterwards."""
    with open_memory() as memory:
        memory.remember(FERRY)
        assert memory.recall("when does the ferry leave?")[0].text == FERRY
        home = memory.home
        assert home.exists()
    assert not home.exists()


def test_a_memory_at_a_home_stays(tmp_path: Path) -> None:
    """With a home it is there the next time, as for every `Memory`."""
    with open_memory(tmp_path) as memory:
        memory.remember(FERRY)
    with open_memory(tmp_path) as memory:
        assert memory.stats().memories == 1


def test_a_clock_moves_when_it_is_told_to() -> None:
    """Memories are as old as the clock says."""
    clock = Clock()
    begin = clock()
    assert clock.advance(days=3, hours=1) == clock() == begin + timedelta(days=3, hours=1)
    with open_memory(clock=clock) as memory:
        noted = memory.remember(FERRY)
        assert memory.get(noted.id).created_at == clock.now


@pytest.mark.enable_socket
def test_a_scripted_model_answers() -> None:
    """Deep recall runs the program of the script."""
    model = ScriptedModel(["```python\nsubmit('NOT_FOUND')\n```"])
    with open_memory(model=model) as memory:
        memory.conversations.append_user("chat", FERRY)
        assert memory.deep_recall("Where is the heron?").answer == ""
    assert len(model.asked) == 1


def test_a_command_runs_in_this_process(tmp_path: Path) -> None:
    """Exit code, output and errors are those of the program; what it wrote is in the home."""
    noted = run_cli("remember", "-", home=tmp_path, input=FERRY)
    assert (noted.exit_code, noted.stderr) == (0, "")
    listed = run_cli("list", "--json", home=tmp_path)
    assert [row["text"] for row in json.loads(listed.stdout)["items"]] == [FERRY]
    refused = run_cli("get", "no-such-id", home=tmp_path)
    assert refused.exit_code == 3
    assert refused.stdout == ""
    assert refused.stderr.startswith("anaphora: ")
    settings = {"ANAPHORA_RECALL_TOP_K": "many"}
    assert run_cli("recall", "the ferry", home=tmp_path, env=settings).exit_code == 2


@pytest.mark.enable_socket
def test_a_server_runs_over_a_memory(tmp_path: Path) -> None:
    """It is reached over a port, or in this process."""
    with open_memory(tmp_path) as memory:
        with serve(memory, page=None) as url, RemoteMemory.connect(url) as remote:
            remote.remember(FERRY)
        app = server_app(memory, page=None, require_token=True)
        with TestClient(app, base_url="http://localhost") as client:
            assert client.get("/v1/memories").status_code == 401
        assert memory.stats().memories == 1


def test_every_public_name_is_where_type_checkers_look() -> None:
    """The table of public names, `__all__` and the imports for type checkers agree."""
    shown: dict[str, str] = {}
    for node in ast.walk(ast.parse(Path(anaphora.__file__).read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("anaphora."):
            shown |= {alias.name: str(node.module) for alias in node.names}
    assert shown == anaphora._LAZY
    assert dir(anaphora) == anaphora.__all__ == [*sorted({*shown, "__version__"})]
    assert all(getattr(anaphora, name) is not None for name in anaphora.__all__)
    with pytest.raises(AttributeError):
        anaphora.NoSuchName  # noqa: B018
    assert anaphora.Memory is Memory
