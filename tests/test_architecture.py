"""The rooms, their one-way imports and the ratchets of size hold."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src" / "anaphora").rglob("*.py"))
ROOMS = {
    "adapters",
    "api",
    "container",
    "ops",
    "core",
    "deep",
    "embed",
    "index",
    "ingest",
    "rank",
    "recall",
    "store",
    "surfaces",
    "values",
}
HEAVY = ("numpy", "onnxruntime", "tokenizers", "tantivy", "sqlalchemy", "alembic", "typer", "rich")


@pytest.mark.promise("package.rooms")
def test_imports_go_one_way() -> None:
    """The import rules of pyproject.toml hold."""
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tree_shows_the_rooms() -> None:
    """The package has exactly the rooms that the architecture names."""
    found = {p.name for p in (ROOT / "src" / "anaphora").iterdir() if (p / "__init__.py").exists()}
    assert found == ROOMS


@pytest.mark.parametrize("file", SOURCES, ids=lambda p: str(p.relative_to(ROOT / "src")))
def test_files_stay_small(file: Path) -> None:
    """No source file is longer than 800 lines: beyond that one no longer reads it in one go."""
    assert len(file.read_text().splitlines()) <= 800


@pytest.mark.parametrize("file", SOURCES, ids=lambda p: str(p.relative_to(ROOT / "src")))
def test_modules_say_what_they_are(file: Path) -> None:
    """Every module begins with a docstring."""
    assert ast.get_docstring(ast.parse(file.read_text()))


def test_only_config_sees_the_environment() -> None:
    """`os.environ` and `os.getenv` are read in config.py alone."""
    reading = {
        file.name
        for file in SOURCES
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}
    }
    assert reading <= {"config.py"}


@pytest.mark.promise("package.no_telemetry")
def test_the_runtime_that_reports_is_imported_in_one_place() -> None:
    """Only embed/onnx.py, which silences it first, imports onnxruntime itself."""
    importing = {
        file.name
        for file in SOURCES
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Import) and any(name.name == "onnxruntime" for name in node.names)
    }
    assert importing == {"onnx.py"}


@pytest.mark.promise("package.light")
def test_importing_the_package_brings_in_nothing_heavy() -> None:
    """`from anaphora import Memory` loads none of the heavy libraries."""
    code = (
        "import sys; from anaphora import Memory; "
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.promise("package.offline")
def test_no_room_talks_to_the_network() -> None:
    """No module of the package imports a network client or a socket, or opens a connection."""
    network = {"socket", "http", "urllib", "requests", "httpx", "httpx2", "ftplib", "smtplib"}
    # An event loop is no network by itself: what would make it one are these.
    opening = {"open_connection", "start_server", "create_connection", "create_server"}
    for file in SOURCES:
        assert not {name for name in opening if f".{name}(" in file.read_text()}, file
        for node in ast.walk(ast.parse(file.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                # That part of urllib only takes addresses apart.
                names = [node.module] if node.module != "urllib.parse" else []
            assert not {n.split(".")[0] for n in names} & network, f"{file} imports {names}"
