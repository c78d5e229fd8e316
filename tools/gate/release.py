"""What `make release-check` adds: each extra alone, and the how-to pages where they say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.adapters.frameworks import FRAMEWORKS
from tests.docs.pages import blocks
from tools.gate.environments import Environment, Wanted, all_extras
from tools.gate.report import Report, must
from tools.gate.surfaces.pages import check_page, extras_mentioned

__all__ = ["release_wanted", "try_release"]

# These need a part that only the tests of the documents start: a keychain, a model, a database.
_ELSEWHERE: Final = frozenset({"encryption.md", "local-model.md", "postgresql.md"})


def release_wanted(source: Path) -> Iterator[Wanted]:
    """An environment for each extra alone, and for each installation that a page names."""
    alone = {(extra,) for extra in all_extras(source)}
    named = {extras for extras, _ in _how_to_pages(source)}
    for extras in sorted(alone | named):
        yield Wanted(f"with-{','.join(extras) or 'nothing'}", extras)


def try_release(environment: Environment, source: Path, report: Report) -> None:
    """A memory is stored and found, and the pages that name this environment run."""
    with report.surface("package"):
        user = environment.user("package")
        with report.check("a memory is stored and found, and doctor agrees"):
            user.run("anaphora", "remember", "The ferry leaves at nine.")
            hits = user.json("anaphora", "recall", "when does the ferry leave?", "--json")["hits"]
            must("nine" in json.dumps(hits), f"recalled {hits}")
            user.run("anaphora", "doctor")
    pages = [page for extras, page in _how_to_pages(source) if extras == environment.extras]
    if pages:
        with report.surface("pages"):
            for page in pages:
                check_page(environment, source, page, report, resident=False)


def _how_to_pages(source: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """The pages with the extras that they mention; where none is, those of the README."""
    readme = extras_mentioned((source / "README.md").read_text("utf-8"))
    left_out = _ELSEWHERE | {one.page for one in FRAMEWORKS if not one.is_installed}
    for path in sorted((source / "docs" / "how-to").glob("*.md")):
        text = path.read_text("utf-8")
        if blocks(text) and path.name not in left_out:
            yield extras_mentioned(text) or readme, f"docs/how-to/{path.name}"
