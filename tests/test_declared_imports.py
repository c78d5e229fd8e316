"""What the code imports is declared: by the base, or by the extra that the importing code is of.

A developer's environment holds everything, so a missing declaration is not seen there. Therefore
each import is compared with `pyproject.toml`, and for each extra the modules are imported in a
process that sees nothing but what installing this extra brings.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest
from tests.adapters.frameworks import FRAMEWORKS
from tests.declared_imports import (
    BASE,
    ROOT,
    Declared,
    Import,
    distribution_of,
    importable,
    imports,
    imports_in,
    modules,
)

DECLARED = Declared()

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "adapters.anthropic_memory": ("anthropic",),
    "adapters.langgraph": ("langgraph",),
    "adapters.openai_agents": ("openai-agents",),
    "client.connection": ("client",),
    "embed.tokenizing": ("embedders",),
    "features.deep.models.remote": ("deep",),
    "features.deep.models.remote._anthropic": ("anthropic",),
    "features.deep.models.remote._google": ("google",),
    "features.deep.sandbox": ("deep",),
    "features.embedders.endpoint": ("embedders",),
    "features.oauth": ("mcp",),
    "features.sync.membership": ("sync",),
    "features.sync.pairing": ("sync",),
    "features.sync.remotes": ("sync",),
    "index.vectors.ann": ("large",),
    "store.crypto.cipher": ("encryption", "sync"),
    "store.crypto.key_stores": ("encryption",),
    "store.db.connecting": ("postgresql",),
    "surfaces.mcp_server.callers": ("mcp",),
    "surfaces.mcp_server.http": ("mcp",),
    "surfaces.mcp_server.sdk": ("mcp",),
    "surfaces.mcp_server.sessions": ("mcp",),
}
"""Which extras the code of a module, package or function is of, by its name without `anaphora.`.

The longest name counts. With several extras, each of them alone brings all that is imported there.
"""

OTHERS_FRAMEWORKS = {
    f"adapters.{one.adapter}" for one in FRAMEWORKS if f"adapters.{one.adapter}" not in EXTRAS
}
"""Adapters of frameworks that the user's own program brings: no extra, an error that names it."""

_GRAMMARS = "ingest.sections.grammars"
GRAMMARS = tuple(
    sorted(set(re.findall(r'"(tree_sitter_\w+)"', dict(modules())[_GRAMMARS].read_text("utf-8"))))
)
"""The parsers of programming languages, by the names that their table has."""

COMPUTED: Mapping[str, tuple[str, ...]] = {
    "__getattr__": (),  # a lazy name of our own
    "system.helper.serve": (),  # a function of our own, by name
    "system.worker_child._function": (),  # a reader of our own, by name
    f"{_GRAMMARS}.can_parse": GRAMMARS,
    f"{_GRAMMARS}.language": GRAMMARS,
    # Of our own modules.
    "calls.arguments.signature_types": (),
    "container.feature.load": (),
    "surfaces.cli.run_at_once": (),
    "surfaces.cli.run_by_table": (),
    "surfaces.rest.openapi._value_types": (),
    "values.__getattr__": (),
}
"""The modules of others that imports of computed names mean, by where these imports stand."""

PROBED = {"pip": "how the environment is installed into is found out, and pip not imported"}
"""Modules whose presence is asked for though nothing declares them."""

NOT_IMPORTED = {
    "langgraph": "the graphs that the store is made for; the store needs its checkpoint part alone",
    "psycopg": "SQLAlchemy imports it for a URL of PostgreSQL",
    "pydantic-monty-runtime": "a program, which pydantic-monty-client starts",
    "pystemmer": "snowballstemmer imports it where it is installed",
    "tzdata": "zoneinfo reads it where the system has no zones",
}
"""What is declared without an import of ours, and why."""


def extras_of(scope: str) -> tuple[str, ...]:
    """The extras that the code in a scope is of; nothing for the base."""
    parts = scope.split(".")
    names = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((EXTRAS[name] for name in names if name in EXTRAS), ())


def undeclared(found: Import, declared: Declared) -> list[str]:
    """What must declare this import, and does not: names of extras, or `BASE`."""
    name = distribution_of(found)
    if name in declared.direct(BASE):
        return []
    wanted = extras_of(found.scope) or (BASE,)
    return [extra for extra in wanted if name not in declared.direct(extra)]


@cache
def all_imports() -> list[Import]:
    """Every import, with those of computed names as the ones that they stand for."""
    made: list[Import] = []
    for one in imports():
        if one.names is None:
            computed = COMPUTED[one.scope]
            made += [Import(one.scope, one.line, (name,), probe=one.probe) for name in computed]
        else:
            made.append(one)
    return made


@pytest.mark.promise("package.declared")
def test_every_import_is_declared_where_it_is_needed() -> None:
    """Not only brought along by what is declared: its distribution is named itself."""
    wrong = [
        f"{one} is of {distribution_of(one)}, which {extra or 'the base'} does not declare"
        for one in all_imports()
        if not one.probe and one.scope not in OTHERS_FRAMEWORKS
        for extra in undeclared(one, DECLARED)
    ]
    assert wrong == []


@pytest.mark.promise("package.declared")
def test_a_framework_of_the_user_is_a_guarded_import() -> None:
    """An adapter without an extra survives that its framework is not there."""
    found = [one for one in all_imports() if one.scope in OTHERS_FRAMEWORKS]
    assert {one.scope for one in found} == OTHERS_FRAMEWORKS
    assert [str(one) for one in found if not one.guarded] == []


def test_what_is_looked_for_can_be_installed() -> None:
    """A module whose presence decides something is one that an extra or the base brings."""
    known = frozenset().union(*(DECLARED.direct(name) for name in (BASE, *DECLARED.extras)))
    probes = [one for one in all_imports() if one.probe and one.root not in PROBED]
    assert [str(one) for one in probes if distribution_of(one) not in known] == []


def test_every_extra_is_of_some_code() -> None:
    """A new extra needs a row here, and a row names an extra and code that exist."""
    assert {name for names in EXTRAS.values() for name in names} == set(DECLARED.extras)
    scopes = {name for name, _ in modules()} | {one.scope for one in all_imports()}
    assert [name for name in EXTRAS if name not in scopes] == []


def test_nothing_is_declared_in_vain() -> None:
    """Each declared distribution is imported by the code it is declared for, or has a reason."""
    used: dict[str, set[str]] = {extra: set() for extra in (BASE, *DECLARED.extras)}
    for one in all_imports():
        for extra in (*extras_of(one.scope), BASE):
            used[extra].add(distribution_of(one))
    vain = {
        f"{name} of {extra or 'the base'}"
        for extra, names in used.items()
        for name in DECLARED.direct(extra) - names - NOT_IMPORTED.keys()
    }
    assert vain == set()


def failures(extra: str, names: Iterable[str]) -> dict[str, str]:
    """Why which modules cannot be imported where the base and this extra alone are installed."""
    closure = DECLARED.closure(extra)
    roots, shared = importable(closure)
    asked = {
        "modules": [f"anaphora.{name}".rstrip(".") for name in names],
        "roots": roots,
        "shared": shared,
        "distributions": sorted(closure),
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", Path(__file__).with_name("declared_imports_child.py")],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.promise("package.declared")
def test_the_base_imports_with_what_the_base_brings() -> None:
    """Every module that is of no extra; the others fail as code does whose extra is missing."""
    names = [name for name, _ in modules()]
    failed = failures(BASE, names)
    missing = ("ModuleNotFoundError: No module named", "MissingExtra: ")
    for module, error in failed.items():
        scope = module.removeprefix("anaphora.")
        assert extras_of(scope) or scope in OTHERS_FRAMEWORKS, f"{module}: {error}"
        assert error.startswith(missing), f"{module}: {error}"
    assert "anaphora.adapters.langgraph" in failed


@pytest.mark.promise("package.declared")
@pytest.mark.parametrize("extra", DECLARED.extras)
def test_an_extra_imports_with_what_it_brings(extra: str) -> None:
    """Every module of the extra, where nothing else is installed."""
    assert failures(extra, [name for name, _ in modules() if extra in extras_of(name)]) == {}


SAMPLE = """
from typing import TYPE_CHECKING
import json, fastapi
if TYPE_CHECKING:
    import mypy
else:
    import lancedb
try:
    import mammoth
except ImportError:
    import pypdf
class A:
    async def b(self):
        from google.genai import types
        importlib.import_module("keyring"), find_spec("pip"), import_module(name)
"""


def test_the_reading_of_imports() -> None:
    """Imports in functions, branches and calls are seen; those for types and of Python are not."""
    seen = [(one.scope, one.root, one.guarded, one.probe) for one in imports_in("m", SAMPLE)]
    assert seen == [
        ("m", "fastapi", False, False),
        ("m", "lancedb", False, False),
        ("m", "mammoth", True, False),
        ("m", "pypdf", False, False),
        ("m.A.b", "google", False, False),
        ("m.A.b", "keyring", False, False),
        ("m.A.b", "pip", False, True),
        ("m.A.b", "", False, False),
    ]
    genai = next(one for one in imports_in("m", SAMPLE) if one.root == "google")
    assert distribution_of(genai) == "google-genai"


def test_what_is_borrowed_counts_as_undeclared() -> None:
    """A requirement of a requirement is no declaration, nor is that of another extra."""
    borrowed = Import("surfaces.mcp_server.http", 1, ("typing_extensions",))
    assert "typing-extensions" in DECLARED.closure("mcp")
    assert undeclared(borrowed, DECLARED) == ["mcp"]
    of_an_extra = Import("core.config", 1, ("httpx",))
    assert undeclared(of_an_extra, DECLARED) == [BASE]


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="each platform has its own"
)
def test_the_page_counts_the_packages_of_the_base() -> None:
    """`docs/install.md` says how many packages the base brings, Anaphora itself not counted."""
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    said = re.search(r"consists of (\d+) packages", page)
    assert said is not None
    assert int(said[1]) == len(DECLARED.closure(BASE))
