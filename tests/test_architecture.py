"""The rooms, their one-way imports and the ratchets of size hold."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import filter as filter_names
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src" / "anaphora").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
ROOMS = {
    "adapters",
    "api",
    "calls",
    "client",
    "container",
    "embed",
    "features",
    "index",
    "ingest",
    "language",
    "ops",
    "rank",
    "reading",
    "recall",
    "store",
    "surfaces",
    "system",
    "testing",
    "text",
    "values",
}
FEATURES = {
    "audit",
    "coding_agents",
    "core_block",
    "deep",
    "documents",
    "embedders",
    "importing",
    "mirror",
    "oauth",
    "projects",
    "server",
    "sync",
}
NAMING = {"anaphora", "anaphora.registry", "anaphora.adapters.claude_agent_sdk"}
"""What may name features: the public names, the registry, and the adapter of one coding agent."""
HEAVY = ("numpy", "numkong", "onnxruntime", "sqlalchemy", "typer", "rich")


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
    package = ROOT / "src" / "anaphora"
    assert {p.name for p in package.iterdir() if (p / "__init__.py").exists()} == ROOMS
    folders = {p.parent.name for p in (package / "features").glob("*/feature.py")}
    assert folders == FEATURES


@pytest.mark.promise("package.rooms")
def test_the_kernel_imports_no_feature() -> None:
    """Not in a function, not for a type checker, and not by a module's name in a string."""
    edges = [
        (module, used)
        for module, file in ((module_of(file), file) for file in SOURCES)
        if feature_of(module) is None and module not in NAMING
        for used in modules_named_in(file)
        if feature_of(used) is not None
    ]
    assert edges == []


@pytest.mark.promise("package.rooms")
def test_features_do_not_import_each_other() -> None:
    """What one needs of another comes through a hook of the kernel."""
    edges = [
        (module, used)
        for module, file in ((module_of(file), file) for file in SOURCES)
        if (feature := feature_of(module)) is not None
        for used in modules_named_in(file)
        if feature_of(used) not in (None, feature)
    ]
    assert edges == []


@pytest.mark.promise("package.rooms")
def test_the_registry_imports_each_feature_once() -> None:
    """One line for each, and no other module has one."""
    registry = (ROOT / "src" / "anaphora" / "registry.py").read_text()
    imported = re.findall(r"^from anaphora\.features\.(\w+) import feature as \1$", registry, re.M)
    assert sorted(imported) == sorted(FEATURES)
    assert registry.count("anaphora.features.") == len(FEATURES)


def feature_of(module: str) -> str | None:
    """The feature that a module belongs to."""
    parts = module.split(".")
    return parts[2] if parts[1:2] == ["features"] and len(parts) > 2 else None


@cache
def modules_named_in(file: Path) -> set[str]:
    """Every module of the package that a file imports anywhere, or names in a string."""
    named: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            named.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            named.add(node.module)
            named.update(f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named.update(re.findall(r"\banaphora\.features\.[\w.]+", node.value))
    return {name for name in named if name.startswith("anaphora")}


def nodes_naming(file: Path, *words: str) -> Iterator[ast.AST]:
    """The syntax of a file in whose text one of the words stands: no other one is parsed."""
    text = file.read_text()
    if any(word in text for word in words):
        yield from ast.walk(ast.parse(text))


def test_a_field_of_a_memory_touches_few_places() -> None:
    """A field stands by name in at most 8 modules; `values.memories` tells the others of it.

    `category` is one like any other that a user may add. An adapter has an own one of this
    name, and an importer says which field of another program it is.
    """
    found = {
        module_of(file)
        for file in SOURCES
        for node in nodes_naming(file, "category")
        if not {"adapters", "formats"} & set(file.parts) and _names(node, "category")
    }
    assert found <= {
        # The row: its table.
        "anaphora.store.db.tables",
        # The values, and what is said of each field there.
        "anaphora.values.memories",
        # The signature that an editor shows, options, and what a person reads.
        "anaphora.api.memories",
        "anaphora.surfaces.cli.memories",
        "anaphora.surfaces.mcp_server.render",
        # The lines of an export, and the notes in it that have no such field.
        "anaphora.ops.transfer.memories",
        "anaphora.features.projects.export",
    }


def _names(node: ast.AST, word: str) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == word and ast.unparse(node.value) != "unicodedata"
    if isinstance(node, ast.Constant):
        return bool(node.value == word)
    return word in {getattr(node, "id", None), getattr(node, "arg", None)}


def test_files_stay_small() -> None:
    """No source file is longer than 800 lines: beyond that one no longer reads it in one go."""
    assert [file for file in SOURCES if len(file.read_text().splitlines()) > 800] == []


def test_modules_say_what_they_are() -> None:
    """Every module begins with a docstring."""
    silent = [file for file in SOURCES if not file.read_text().startswith('"""')]
    assert silent == []


def test_only_config_sees_the_environment() -> None:
    """`os.environ` and `os.getenv` are read in one module, which does nothing else."""
    reading = {
        file.name
        for file in SOURCES
        for node in nodes_naming(file, "environ", "getenv")
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}
    }
    assert reading <= {"environment.py"}


@pytest.mark.promise("package.no_telemetry")
def test_the_runtime_that_reports_is_imported_in_one_place() -> None:
    """Only embed/onnx.py, which silences it first, imports onnxruntime itself."""
    importing = {
        file.name
        for file in SOURCES
        for node in nodes_naming(file, "onnxruntime")
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


ALLOWED = {
    "server/processes.py": {"socket"},
    "system/resident.py": {"socket"},
    "resident/server.py": {"socket"},
    "remotes/server.py": {"httpx"},
    "embedders/endpoint.py": {"httpx"},
    "system/addresses.py": {"urllib"},
    "client/connection.py": {"httpx"},
}


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
            # The resident process and its callers have a Unix socket; devices sync through a server
            # that the user named, and such a one may embed; whether one answers is looked at.
            allowed = ALLOWED.get("/".join(file.parts[-2:]), set())
            found = {n.split(".")[0] for n in names} & network - allowed
            assert not found, f"{file} imports {names}"


# Circles of imports at run time, function-level imports counted. The list may only get shorter.
CIRCLES: tuple[set[str], ...] = ()


def test_no_circle_of_imports() -> None:
    """No module imports itself by way of others, not even within a function."""
    new = [
        circle
        for circle in circles(imports_at_run_time())
        if not any(circle <= known for known in CIRCLES)
    ]
    assert new == []


def imports_at_run_time() -> dict[str, set[str]]:
    """What each module imports of the package, wherever in it, but for type checkers."""
    files = {module_of(file): file for file in SOURCES}
    found: dict[str, set[str]] = {}
    for module, file in files.items():
        used: set[str] = set()
        for node in at_run_time(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                used.update(name.name for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                # What is imported from a package may be a module of it.
                inner = {f"{node.module}.{name.name}" for name in node.names}
                used |= (inner & files.keys()) or {node.module}
        found[module] = used & files.keys() - {module}
    return found


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def at_run_time(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below this one, but for what only type checkers read."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from at_run_time(child)


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The sets of modules of which each is reached from each."""
    reached = {module: reachable(graph, module) for module in graph}
    found = [
        {other for other in reached[module] if module in reached[other]}
        for module in graph
        if module in reached[module]
    ]
    return [circle for place, circle in enumerate(found) if circle not in found[:place]]


def reachable(graph: dict[str, set[str]], module: str) -> set[str]:
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        fresh = graph[waiting.pop()] - seen
        seen |= fresh
        waiting.extend(fresh)
    return seen


# What rooms offer beside the public names: classes and pure functions, tested by themselves.
OFFERED = (
    "anaphora.container.feature",
    "anaphora.language.analyser",
    "anaphora.settings",
    "anaphora.text.display",
    "anaphora.system.heap",
    "anaphora.system.incidents",
    "anaphora.language.languages.language",
    "anaphora.calls.operation",
    "anaphora.system.repositories",
    "anaphora.system.resident",
    "anaphora.features.*.commands",
    "anaphora.features.*.mcp_tools",
    "anaphora.features.*.values",
    "anaphora.features.coding_agents.*",
    "anaphora.features.deep.evidence.questions",
    "anaphora.features.embedders.*",
    "anaphora.features.oauth.*",
    "anaphora.features.projects.ranking.*",
    "anaphora.features.server.*",
    "anaphora.features.deep.models.*",
    "anaphora.features.deep.sandbox",
    "anaphora.embed.*",
    "anaphora.index.memories.index",
    "anaphora.features.projects.index.index",
    "anaphora.index.turns.index",
    "anaphora.ingest.bounds",
    "anaphora.ingest.files.*",
    "anaphora.ingest.judging",
    "anaphora.features.importing.formats*",
    "anaphora.features.projects.indexing.git_history",
    "anaphora.ingest.secrets.forms",
    "anaphora.ingest.secrets.masking",
    "anaphora.ingest.secrets.redacting",
    "anaphora.ingest.sections",
    "anaphora.ingest.sections.roles",
    "anaphora.ingest.transcripts",
    "anaphora.ops",
    "anaphora.rank.*",
    "anaphora.reading.*",
    "anaphora.features.core_block.recall",
    "anaphora.recall.candidates",
    "anaphora.recall.ordering",
    "anaphora.recall.snippets",
    "anaphora.recall.links",
    "anaphora.features.projects.recall.excerpts",
    "anaphora.features.projects.recall.focus",
    "anaphora.features.projects.recall.package",
    "anaphora.features.projects.recall.warm_up",
    "anaphora.recall.conversation",
    "anaphora.recall.identifiers",
    "anaphora.recall.query",
    "anaphora.recall.question",
    "anaphora.recall.reading",
    "anaphora.language.times.reading",
    "anaphora.store.db.engine",
    "anaphora.store.escaping",
    "anaphora.store.filters",
    "anaphora.store.hashing",
    "anaphora.store.threads.*",
    "anaphora.store.tokens",
    "anaphora.features.sync.remotes.opening",
)
# How many test files reach further in. It may only fall.
INTERNAL = 53


# The seams by which a test gets from a `Memory` to its rooms.
SEAMS = {"_services", "_container"}


def test_tests_go_through_public_names() -> None:
    """A test file that reaches further into a room than it offers says so, and few do."""
    facts = {file: facts_of(file) for file in TESTS}
    inside = {str(file): inside_of(one) for file, one in facts.items()}
    helpers = {str(file): helpers_of(file, facts) for file in TESTS}
    marked = {str(file) for file, one in facts.items() if "internal" in one.attributes}
    unmarked: dict[str, set[str]] = {}
    for test in helpers.keys() - marked:
        found = {name for one in {test, *reachable(helpers, test)} for name in inside[one]}
        if found and Path(test).name.startswith("test_"):
            unmarked[test] = found
    assert unmarked == {}
    assert len(marked) <= INTERNAL


# What users import. Test files that import nothing else of ours are the share below; it may only
# rise. Inner objects that come by a fixture or a seam are inside as well.
FRONT = {
    "anaphora.adapters",
    "anaphora.client",
    "anaphora.errors",
    "anaphora.keys",
    "anaphora.testing",
}
SHARE = 0.63
INNER_FIXTURES = {"open_again", "truth"}


def test_most_tests_go_through_the_front_door() -> None:
    """At least this share of the test files imports what users import, and nothing else of ours."""
    behind = {
        module
        for module in map(module_of, SOURCES)
        if module != "anaphora" and ".".join(module.split(".")[:2]) not in FRONT
    }
    tests = [file for file in TESTS if file.name.startswith("test_")]
    inside: dict[str, set[str]] = {}
    for file in tests:
        facts = facts_of(file)
        reached = behind & facts.imported | SEAMS & facts.attributes
        reached |= INNER_FIXTURES & facts.arguments
        if reached:
            inside[str(file.relative_to(ROOT))] = reached
    share = 1 - len(inside) / len(tests)
    assert share >= SHARE, f"{share:.3f}: {inside}"


def test_what_rooms_offer_is_there() -> None:
    """No name in the list of what tests may import is out of date."""
    modules = {module_of(file) for file in SOURCES}
    assert [name for name in OFFERED if not filter_names(modules, name)] == []


class Facts(NamedTuple):
    """What is read of a file of the tests: its tree alone is large."""

    imported: set[str]
    attributes: set[str]
    arguments: set[str]
    fixtures: set[str]


@cache
def facts_of(file: Path) -> Facts:
    nodes = list(ast.walk(ast.parse(file.read_text())))
    return Facts(
        imported_by(file, nodes),
        {node.attr for node in nodes if isinstance(node, ast.Attribute)},
        {node.arg for node in nodes if isinstance(node, ast.arg)},
        {
            node.name
            for node in nodes
            if isinstance(node, ast.FunctionDef)
            and any("fixture" in ast.unparse(one) for one in node.decorator_list)
        },
    )


INNER = {
    module_of(source)
    for source in SOURCES
    if source.relative_to(ROOT / "src" / "anaphora").parts[0]
    in ROOMS - {"adapters", "api", "client", "surfaces", "testing", "values"}
}


def inside_of(facts: Facts) -> set[str]:
    """What a file of the tests itself uses of rooms beyond what they offer."""
    imported = INNER & facts.imported
    # A package is only the way to its modules.
    used = {one for one in imported if not any(m.startswith(f"{one}.") for m in imported)}
    used -= {name for offered in OFFERED for name in filter_names(used, offered)}
    return used | SEAMS & facts.attributes


def helpers_of(file: Path, facts: dict[Path, Facts]) -> set[str]:
    """The files of the tests that one of them imports, or takes fixtures of."""
    return {
        str(other)
        for other in TESTS
        if MODULES[other] in facts[file].imported
        or (
            other.name == "conftest.py"
            and other.parent in file.parents
            and facts[file].arguments & facts[other].fixtures
        )
    }


MODULES = {file: ".".join(file.relative_to(ROOT).with_suffix("").parts) for file in TESTS}


def imported_by(file: Path, nodes: list[ast.AST]) -> set[str]:
    """The modules that a file of the tests and its programs import, and the names out of them."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = file.relative_to(ROOT).parts[: -node.level] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            found |= {module, *(f"{module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # A program that the test runs.
            for module, names in re.findall(r"from (anaphora[\w.]*) import ([\w, ]+)", node.value):
                found |= {module, *(f"{module}.{name.strip()}" for name in names.split(","))}
    return found
