"""docs/claims.md: every claim with what shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.measured import Measurement, measurements
from tools.claims.checking import Registry
from tools.claims.commands import cited_tests, command_of, promises
from tools.claims.durability import PAGE as DURABILITY
from tools.claims.durability import guarantees
from tools.claims.held import last_run
from tools.claims.model import Claim
from tools.claims.prose import Page, pages
from tools.claims.scan import NO_CLAIM

__all__ = ["DOCUMENT", "document"]

DOCUMENT = "docs/claims.md"
_HEAD = """# Claims

Made by `python -m tools.claims` (part of `make docs`); a test checks it. Every figure and promise
of the README and these pages, with the command that shows it. Figures are read from the files in
`bench/results/`, limits from the code, so that no page holds a number of its own. A statement for
which there is no command is taken out.
"""


def document(root: Path, registry: Registry) -> str:
    """The whole page."""
    read = pages(root)
    return "\n".join(
        [
            _HEAD,
            *_measurements(root, registry),
            *_tables(root, registry),
            *_figures(root, registry, read),
            *_limits(root, registry, read),
            *_promises(root, registry, read),
            *_guarantees(read),
            *_quoted(root, registry, read),
            *_no_claims(registry),
        ]
    )


def _measurements(root: Path, registry: Registry) -> Iterator[str]:
    yield "## Measurements\n"
    yield "*Date* and *commit* are those of the run; in italics, from before runs recorded them,"
    yield "those of the commit that brought the result in. `DIR` holds the data sets"
    yield "([which](../bench/README.md)).\n"
    yield "| result | command | date | commit | machine |\n|---|---|---|---|---|"
    known = measurements(root)
    for name in sorted({result for claim in registry.all for result in claim.results}):
        row = known.get(name, Measurement("–", "–", "–", ""))
        date = f"*{row.date}*" if row.dated != "run" else row.date
        link = f"[{name}](../bench/results/{name}.md)"
        yield f"| {link} | `{_command(name)}` | {date} | {row.commit} | {row.machine} |"
    yield ""


def _tables(root: Path, registry: Registry) -> Iterator[str]:
    yield "## Tables"
    for table in registry.tables:
        results = sorted({name for row in table.rows for name in row.results})
        yield f"\n### {table.title}\n\nFrom {_list(results)}.\n\n{table.shown(root)}"


def _figures(root: Path, registry: Registry, read: Sequence[Page]) -> Iterator[str]:
    yield "## Figures in the text\n\n| claim | from | pages |\n|---|---|---|"
    for claim in registry.claims:
        if claim.is_figure:
            yield f"| {_words(root, claim)} | {_list(claim.results)} | {_stating(claim, read)} |"
    yield ""


def _limits(root: Path, registry: Registry, read: Sequence[Page]) -> Iterator[str]:
    yield "## Limits and constants\n\nRead from the code; the check imports it.\n"
    yield "| claim | from | pages |\n|---|---|---|"
    for claim in registry.claims:
        if claim.values and not claim.is_figure:
            sources = _list(sorted({value.source for value in claim.values.values()}))
            yield f"| {_words(root, claim)} | {sources} | {_stating(claim, read)} |"
        elif claim.tests:
            tests = _list([f"pytest {test}" for test in claim.tests])
            yield f"| {_words(root, claim)} | {tests} | {_stating(claim, read)} |"
    yield ""


def _promises(root: Path, registry: Registry, read: Sequence[Page]) -> Iterator[str]:
    run = last_run(root)
    yield "## Promises\n\nEach is held by its tests, in every `make test`. *Said* has the sentences"
    yield "of the pages that give it. " + (
        f"Last recorded run: {run.date}, commit {run.commit}, {run.machine}.\n"
        if run
        else "No run is recorded yet: `make promises` records one.\n"
    )
    yield "| promise | tests: `pytest …` | last run | said |\n|---|---|---|---|"
    for name, words in promises().items():
        said = [
            f"“{_plain(words)}” ({_stating(claim, read)})"
            for claim in registry.claims
            if name in claim.promises
            for words in claim.words
        ]
        tests = " ".join(f"`{test}`" for test in cited_tests().get(name, ()))
        held = run.promises.get(name, "not run") if run else "–"
        cells = (f'<a id="{name}"></a>`{name}` {_plain(words)}', tests, held, "; ".join(said))
        yield f"| {' | '.join(cells)} |"
    yield ""


def _guarantees(read: Sequence[Page]) -> Iterator[str]:
    yield "## Guarantees of durability\n\nTheir words: [durability.md](durability.md).\n"
    yield "| | tests: `pytest …` |\n|---|---|"
    for page in read:
        if page.name == DURABILITY:
            for number, _, tests in guarantees(page):
                yield f"| {number} | {' '.join(f'`{test}`' for test in tests)} |"
    yield ""


def _quoted(root: Path, registry: Registry, read: Sequence[Page]) -> Iterator[str]:
    yield "## Quoted from others\n\nFigures that others publish, which no command here can show.\n"
    yield "| figure | source |\n|---|---|"
    for claim in registry.all:
        if claim.cited:
            yield f"| {_words(root, claim)} | {claim.cited} |"
    yield ""


def _no_claims(registry: Registry) -> Iterator[str]:
    yield "## What is no claim\n\nNumbers and words that the check passes over.\n"
    yield "| pages | reason |\n|---|---|"
    rules = dict.fromkeys(
        (rule.pages or "all", rule.reason) for rule in (*NO_CLAIM, *registry.no_claims)
    )
    for pages_named, reason in rules:
        yield f"| {pages_named} | {reason} |"
    yield ""


def _command(result: str) -> str:
    return command_of(result).replace("../shared/data", "DIR")


def _words(root: Path, claim: Claim) -> str:
    return " / ".join(_plain(claim.shown(root, words)) for words in claim.words)


def _plain(words: str) -> str:
    """Words as a cell holds them: without links, on one line, bars escaped."""
    unlinked = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words)
    return " ".join(unlinked.replace("](", "] (").split()).replace("|", "\\|")


def _stating(claim: Claim, read: Sequence[Page]) -> str:
    names = [
        page.name
        for page in read
        if page.name.startswith(claim.page)
        and any(pattern.search(page.text) for pattern in claim.patterns)
    ]
    return ", ".join(_link(name) for name in names)


def _link(name: str) -> str:
    place = name.removeprefix("docs/") if name.startswith("docs/") else f"../{name}"
    return f"[{name.removeprefix('docs/')}]({place})"


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
