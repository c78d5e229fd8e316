"""The gate itself: what it finds by itself, and that its checks can fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.mcp_client import connected
from tests.tool_reference import documented_tools
from tools.gate.report import Report, must
from tools.gate.surfaces.mcp import wrong_arguments
from tools.gate.surfaces.mcp_samples import SAMPLES
from tools.gate.surfaces.pages import extras_mentioned, extras_named
from tools.gate.surfaces.web import views_of

ROOT = Path(__file__).resolve().parents[1]
WEB = ROOT / "src" / "anaphora" / "surfaces" / "web"


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The arguments of every tool, as a client is shown them."""
    home = tmp_path_factory.mktemp("gate") / "home"

    async def listed() -> dict[str, dict[str, Any]]:
        async with connected(home, "--tools", "all") as session:
            return {tool.name: tool.input_schema for tool in (await session.list_tools()).tools}

    return anyio.run(listed)


def test_every_view_of_the_page_is_tried() -> None:
    """The views are read from the page's program: a module of a view is one of them."""
    files = {file.stem for file in (WEB / "views").glob("*.js")}
    assert set(views_of((WEB / "app.js").read_text("utf-8"))) == files


def test_every_tool_has_a_sample() -> None:
    """A tool without a sample would fail the gate, minutes later."""
    assert SAMPLES.keys() == documented_tools().keys()


@pytest.mark.parametrize("name", SAMPLES)
def test_wrong_arguments_are_wrong_in_each_argument(
    name: str, schemas: dict[str, dict[str, Any]]
) -> None:
    """Every argument of a tool is wrong once, and each set of arguments breaks the schema."""
    import jsonschema

    schema = schemas[name]
    wrong = list(wrong_arguments(schema, _right(schema)))
    untyped = {
        argument
        for argument, known in schema["properties"].items()
        if not {"type", "enum", "anyOf"} & known.keys()
    }
    assert {argument for argument, _ in wrong} >= {*schema["properties"], "nonsense"} - untyped
    # The listing leaves out that nothing else is taken: each call says so.
    whole_schema = schema | {"additionalProperties": False}
    for argument, arguments in wrong:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(arguments, whole_schema)
        assert argument in arguments or argument in schema["required"]


def _right(schema: dict[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(schema.get("required", ()), "x")


@pytest.mark.parametrize(
    ("line", "extras"),
    [
        ("pip install .", ()),
        ("uv tool install 'anaphora[projects]'", ("projects",)),
        ("$ pip install 'anaphora[deep, projects]'", ("deep", "projects")),
        ("anaphora recall x", None),
    ],
)
def test_a_page_names_its_environment(line: str, extras: tuple[str, ...] | None) -> None:
    """By the first installation that it shows."""
    assert extras_named(f"# Page\n\n```console\n{line}\n```\n") == extras


def test_a_page_mentions_the_extras_that_it_needs() -> None:
    """In an installation, in a sentence, or not at all."""
    assert extras_mentioned("Install it (`uv tool install 'anaphora[projects]'`).") == ("projects",)
    assert extras_mentioned("It needs the extra `sync`, and the extra `server`.") == (
        "server",
        "sync",
    )
    assert extras_mentioned("Nothing more is needed.") == ()


def test_a_failure_is_reported_with_its_reason() -> None:
    """A check fails by itself, a surface by what fails outside of its checks."""
    report = Report("base")
    with report.surface("one"):
        with report.check("good"):
            must(True, "")
        with report.check("bad"):
            must(False, "the reason")
    with report.surface("two"):
        Path("no-such-surface").read_bytes()
    assert report.failed == 2
    lines = "\n".join(report.lines())
    assert "one      ok   good" in lines
    assert "one      FAIL bad\n    AssertionError: the reason" in lines
    assert "two      FAIL the surface can be tried\n    FileNotFoundError: " in lines
