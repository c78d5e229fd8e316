"""What does not agree: pages, claims, results, commands. In: the root that holds the pages and the
results, and a registry. Out: one line for each thing that is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measured import Measurement, measurements, stale
from tools.claims.commands import cited_tests, command_of, missing, promises
from tools.claims.durability import guarantees
from tools.claims.held import last_run
from tools.claims.model import Claim, ClaimError, Table
from tools.claims.prose import END, Page, begin, pages
from tools.claims.scan import NoClaim, statements

__all__ = ["Registry", "problems", "renewed"]


@dataclass(frozen=True, slots=True)
class Registry:
    """All claims, the tables, and what looks like a claim on some page and is none."""

    claims: tuple[Claim, ...]
    tables: tuple[Table, ...] = ()
    no_claims: tuple[NoClaim, ...] = ()

    @property
    def all(self) -> tuple[Claim, ...]:
        """The claims of the text and those of the tables."""
        return (*self.claims, *(row for table in self.tables for row in table.rows))


def problems(root: Path, registry: Registry) -> list[str]:
    """Everything that is wrong, in the order of pages and claims."""
    read = pages(root)
    lines = list(_shown_wrongly(root, registry))
    for claim in registry.all:
        lines += (f"claim {claim.id}: {text}" for text in _without_proof(claim))
    run = last_run(root)
    lines += (
        f"promise {name}: a test of it failed in the run of {run.date}"
        for name, outcome in (run.promises if run else {}).items()
        if run and outcome == "failed"
    )
    used = {name for claim in registry.all for name in claim.results}
    lines += _results(root, used)
    for page in read:
        lines += _page(root, page, registry)
    lines += _stated_nowhere(read, registry)
    names = [claim.id for claim in registry.all]
    lines += (f"claim {name}: the id is used twice" for name in set(names) if names.count(name) > 1)
    return lines


def renewed(root: Path, page: Page, registry: Registry) -> str:
    """The page with every value as it is now, and the tables between their comments."""
    text = page.text
    for claim in _of(page, registry.claims):
        for pattern in claim.patterns:
            for match in reversed(list(pattern.finditer(text))):
                for name in sorted(match.groupdict(), key=match.start, reverse=True):
                    value = _value(root, claim, name) or match[name]
                    text = text[: match.start(name)] + value + text[match.end(name) :]
    for table in registry.tables:
        region = re.compile(re.escape(begin(table.name)) + ".*?" + re.escape(END), re.DOTALL)
        made = begin(table.name) + _table(root, table) + END
        text = region.sub(made.replace("\\", "\\\\"), text)
    return text


def _shown_wrongly(root: Path, registry: Registry) -> Iterator[str]:
    for claim in registry.all:
        for name, value in claim.values.items():
            try:
                value.shown(root)
            except ClaimError as error:
                yield f"claim {claim.id}: {name}: {error}"


def _without_proof(claim: Claim) -> Iterator[str]:
    unsaid = [name for name in claim.values if f"{{{name}}}" not in " ".join(claim.words)]
    yield from (f"no words have its value {name}" for name in unsaid)
    if not (claim.values or claim.tests or claim.promises or claim.cited):
        yield "no command shows it: name one, or take the sentence out"
    for result in claim.results:
        command = command_of(result)
        if not command:
            yield f"bench/results_page.py names no command for {result}"
        elif text := missing(command):
            yield f"{command}: {text}"
    for test in claim.tests:
        if text := missing(f"pytest {test}"):
            yield text
    for promise in claim.promises:
        if promise not in promises():
            yield f"tests/behaviours.py has no promise {promise}"
        elif promise not in cited_tests():
            yield f"no test cites {promise}"


def _results(root: Path, used: set[str]) -> Iterator[str]:
    known = measurements(root)
    for name in sorted(used):
        if not isinstance(known.get(name), Measurement):
            yield f"bench/results/{name}: measured.json has no date, commit and machine for it"
        elif stale(root, name):
            yield f"bench/results/{name}: not what the measurement wrote; measure it again"


def _page(root: Path, page: Page, registry: Registry) -> Iterator[str]:
    covered: list[tuple[int, int]] = []
    for claim in _of(page, registry.claims):
        for pattern in claim.patterns:
            for match in pattern.finditer(page.text):
                covered.append(match.span())
                yield from _differing(root, page, claim, match)
    for table in registry.tables:
        region = re.compile(re.escape(begin(table.name)) + "(.*?)" + re.escape(END), re.DOTALL)
        for match in region.finditer(page.text):
            covered.append(match.span())
            if match[1] != _table(root, table):
                yield (
                    f"{page.name}:{page.line(match.start())}: the table {table.name} is not what "
                    "the results give; `python -m tools.claims` writes it"
                )
    covered += [span for _, span, _ in guarantees(page)]
    for statement in statements(page, registry.no_claims):
        if not any(a <= statement.start and statement.end <= b for a, b in covered):
            yield f"{statement.place}: no claim has this {statement.kind}: … {statement.context} …"


def _table(root: Path, table: Table) -> str:
    try:
        return table.shown(root)
    except ClaimError as error:
        return f"{error}"


def _differing(root: Path, page: Page, claim: Claim, match: re.Match[str]) -> Iterator[str]:
    for name, text in match.groupdict().items():
        value = _value(root, claim, name)
        if value and " ".join(text.split()) != value:
            line = page.line(match.start(name))
            yield f"{page.name}:{line}: {text}, but {claim.id} ({name}) is {value}"


def _value(root: Path, claim: Claim, name: str) -> str:
    """A value as it is to stand on a page; "" if it cannot be read, which is reported elsewhere."""
    try:
        return claim.values[name].shown(root)
    except ClaimError:
        return ""


def _stated_nowhere(read: Sequence[Page], registry: Registry) -> Iterator[str]:
    for claim in registry.claims:
        for words, pattern in zip(claim.words, claim.patterns, strict=True):
            if not any(pattern.search(page.text) for page in read if page in _pages(claim, read)):
                yield f"claim {claim.id}: no page says: {words}"
    for table in registry.tables:
        if not any(begin(table.name) in page.text for page in read) and not table.rows:
            yield f"table {table.name}: it has no rows"


def _pages(claim: Claim, read: Sequence[Page]) -> list[Page]:
    return [page for page in read if page.name.startswith(claim.page)]


def _of(page: Page, claims: Sequence[Claim]) -> list[Claim]:
    return [claim for claim in claims if page.name.startswith(claim.page)]
