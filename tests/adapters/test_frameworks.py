"""What holds of every adapter, whether its framework is here or not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.adapters.frameworks import FRAMEWORKS, Framework
from tools.adapters import TEST_TOOLS, pinned

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = ROOT / "src" / "anaphora" / "adapters"
# These need no framework, or are tested with all others.
ALWAYS = {"__init__", "memory_files", "prompting", "langgraph", "openai_agents"}


@pytest.mark.promise("adapters.lazy")
def test_every_adapter_is_of_a_framework() -> None:
    """Each has tests, a page, and an example that the examples' page names."""
    assert {one.adapter for one in FRAMEWORKS} | ALWAYS == {p.stem for p in ADAPTERS.glob("*.py")}
    named = (ROOT / "examples" / "README.md").read_text("utf-8")
    for one in FRAMEWORKS:
        assert list(one.folder.glob("test_*.py"))
        page = (ROOT / "docs" / "how-to" / one.page).read_text("utf-8")
        shown = re.search(r"python (examples/(\w+\.py))", page)
        assert shown is not None, one.page
        assert (ROOT / shown[1]).exists()
        assert f"`{shown[2]}`" in named


IMPORTING = """
import json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE or name.startswith(f"{MODULE}."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

found = {}
for MODULE, adapter in json.loads(sys.argv[1]):
    for name in [name for name in sys.modules if name == MODULE or name.startswith(f"{MODULE}.")]:
        del sys.modules[name]
    sys.meta_path.insert(0, Missing())
    try:
        __import__(f"anaphora.adapters.{adapter}")
    except ImportError as error:
        found[adapter] = [type(error).__name__, str(error)]
    sys.meta_path.pop(0)
import anaphora, anaphora.adapters
print(json.dumps(found))
"""


@pytest.mark.promise("adapters.lazy")
def test_without_its_framework_an_adapter_says_what_brings_it() -> None:
    """The error is ours, and names an extra that there is, or the package itself."""
    asked = [(one.module, one.adapter) for one in FRAMEWORKS]
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING, json.dumps(asked)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for one in FRAMEWORKS:
        kind, said = found[one.adapter]
        assert kind == "MissingExtra"
        extra = re.search(r"\(extra ([\w-]+)\); run: ", said)
        if extra is not None:
            assert extra[1] in project["optional-dependencies"]
        else:
            head, _, command = said.partition("; run: ")
            assert head == f"{one.package} is not installed"
            assert " install " in command
            assert command.split()[-1].strip("\"'") == one.package


@pytest.mark.promise("adapters.pinned")
@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda one: one.name)
def test_every_version_is_pinned(framework: Framework) -> None:
    """The framework, the package's own dependencies and the test tools have one version each."""
    found = {re.sub(r"[-_.]+", "-", name) for name in pinned(framework)}
    assert {framework.package, "numpy", "sqlalchemy", *TEST_TOOLS} <= found
    wanted = (framework.folder / "requirements.in").read_text("utf-8")
    assert wanted.startswith(framework.package)
