"""Each page names the extras that its commands and programs need, and only extras that exist."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.adapters.frameworks import FRAMEWORKS
from tests.declared_imports import BASE, Declared, distribution_of, imports_in
from tests.docs.pages import blocks
from tests.docs.running import ROOT

DECLARED = Declared()
PAGES = [
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
    ROOT / "docs" / "tutorial.md",
    ROOT / "docs" / "scale.md",
    ROOT / "README.md",
]
_PROGRAM = r"(?m)^(?:\$ )?anaphora(?: --?[\w-]+(?: [\w./-]+)?)*? "

SIGNS: Mapping[str, str] = {
    "client": r"\bRemoteMemory\b",
    "deep": r"\bScriptedModel\b|ANAPHORA_MODEL_URL=",
    "embedders": r"--embedder (?:\./|\"?(?:ollama|openai):)",
    "encryption": r"\bencrypt=True\b",
    "mcp": _PROGRAM + r"mcp .*--http",
    "postgresql": r"\bpostgresql(?:\+psycopg)?://",
    "sync": _PROGRAM + r"sync \w",
    "anthropic": r"\banaphora\.adapters\.anthropic_memory\b",
    "langgraph": r"\banaphora\.adapters\.langgraph\b",
    "openai-agents": r"\banaphora\.adapters\.openai_agents\b",
}
"""What shows in code that it needs an extra. `google` and `large` are asked for by a setting."""


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def code_of(page: Path) -> str:
    return "\n".join(block.text for block in blocks(page.read_text("utf-8")))


def extras_named(text: str) -> set[str]:
    """The extras that a page names: "the `a` extra", "extras `a` and `b`", '.[a,b]'."""
    names = r"(`[\w-]+`(?:(?:,\s+|\s+and\s+)`[\w-]+`)*)"
    listed = re.findall(rf"\bextras?\s+{names}", text) + re.findall(rf"{names}\s+extras?\b", text)
    found = {name for part in listed for name in re.findall(r"`([\w-]+)`", part)}
    for part in re.findall(r"'(?:\.|anaphora)\[([\w,-]+)\]'", text):
        found |= set(part.split(","))
    return found


def needed(page: Path) -> set[str]:
    code = code_of(page)
    return {extra for extra, sign in SIGNS.items() if re.search(sign, code)}


@pytest.mark.promise("docs.installs")
def test_every_extra_has_a_sign() -> None:
    """A new extra is looked for on the pages, too."""
    assert {*SIGNS, "google", "large"} == set(DECLARED.extras)


@pytest.mark.promise("docs.installs")
@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_page_names_the_extras_that_it_needs(page: Path) -> None:
    """Whoever installs what the page says can run what it shows."""
    assert needed(page) - extras_named(page.read_text("utf-8")) == set()


@pytest.mark.promise("docs.installs")
@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_page_installs_extras_that_there_are(page: Path) -> None:
    """What stands in brackets behind the name is an extra."""
    brackets = re.findall(r"'(?:\.|anaphora)\[([\w,-]+)\]'", page.read_text("utf-8"))
    assert {name for part in brackets for name in part.split(",")} <= set(DECLARED.extras)


@pytest.mark.promise("docs.installs")
@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=named)
def test_an_example_runs_with_what_its_page_installs(example: Path) -> None:
    """Its imports are brought by the extras, or by the package, that the page says it needs."""
    shown = f"python examples/{example.name}"
    (page,) = [page for page in PAGES if shown in page.read_text("utf-8")]
    text = page.read_text("utf-8")
    brought = set(DECLARED.direct(BASE))
    for extra in needed(page) & extras_named(text):
        brought |= DECLARED.closure(extra)
    words = " ".join(text.split())
    brought |= {
        one.package for one in FRAMEWORKS if f"requires the `{one.package}` package" in words
    }
    lacking = {
        str(one)
        for one in imports_in(example.stem, example.read_text("utf-8"))
        if distribution_of(one) not in brought and not _of_its_framework(one.root, brought)
    }
    assert lacking == set()


def _of_its_framework(root: str, brought: set[str]) -> bool:
    """Whether a module is of a framework that is not installed here, and that the page names."""
    return any(
        one.module.partition(".")[0] == root and one.package in brought for one in FRAMEWORKS
    )


def test_the_reading_of_extras() -> None:
    """Extras are read out of prose and commands; other words in code style are none."""
    text = "Needs the `mcp` extra (`x`). With the extras `a` and `b`. pip install '.[c,d]'; `e`"
    assert extras_named(text) == {"mcp", "a", "b", "c", "d"}
    assert extras_named("The extra is large, `f`.") == set()
