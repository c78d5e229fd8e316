"""What a page states: its numbers, comparisons in letters, and sentences that promise.

Everything counts as a claim but what `NO_CLAIM` names, each with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tools.claims.prose import Page

__all__ = ["NO_CLAIM", "NoClaim", "Statement", "statements"]

_COUNT = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|sixteen|twenty"
    r"|thirty|forty|fifty|sixty|hundred)"
)
_UNIT = (
    r"(?:milliseconds?|seconds?|minutes?|hours?|days?|weeks?|months?|years?|percent|bytes?|tokens?"
    r"|characters?|times|threads|processes|servers|cores|connections|packages)"
)
_FIGURE = re.compile(
    r"(?<![\w.@/$-])[−-]?\d+(?:[.,]\d+)*"
    rf"|\b{_COUNT} (?:in|out of|of(?: a)?) {_COUNT}\b"
    rf"|\b{_COUNT}(?: hundred| thousand| million)? {_UNIT}\b"
    r"|\b(?:hundreds?|thousands?|millions?|tenths?|hundredths?)\b"
    r"|\b(?:half|a third|a quarter|a twelfth|twice) (?:of|the|as|that|a)\b",
    re.IGNORECASE,
)
_PROMISE = re.compile(
    r"\b(?:never|always|guarantee\w*|byte for byte|no telemetry|no network|offline"
    r"|nothing (?:\w+ ){0,3}(?:lost|leaves|is sent)|none (?:\w+ )?lost"
    r"|no (?:\w+ )?(?:write|word|turn) is lost|at any (?:moment|instant|time)|exactly once"
    r"|survives?|verbatim|really|ever|without loss|is on disk"
    r"|cannot be (?:changed|lost|forged))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A number or a promise at a place of a page."""

    page: Page
    kind: str
    start: int
    end: int

    @property
    def place(self) -> str:
        """The page and the line."""
        return f"{self.page.name}:{self.page.line(self.start)}"

    @property
    def context(self) -> str:
        """Its words and those around it."""
        text = self.page.text[max(0, self.start - 60) : self.end + 60]
        return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class NoClaim:
    """What looks like a claim and is none. `pages` limits it to pages whose names begin so."""

    pattern: str
    reason: str
    pages: str = ""


NO_CLAIM: tuple[NoClaim, ...] = (
    NoClaim(r"\[(?:decision )?\d{4}\]", "the number of a decision"),
    NoClaim(r"(?m)^\s*\d+\. ", "the number of a step"),
    NoClaim(
        r"\b(?:RFC \d+|OAuth 2\.1|UTF-8|ISO \d+|SHA-256|HKDF-SHA256|HMAC-SHA256|AES-256-\w+|S256"
        r"|arXiv \d+\.\d+|cp1252|X25519|Ed25519|SPAKE2|BLAKE2b|HTTP/\d)\b",
        "the name of a standard",
    ),
    NoClaim(
        r"\b\d+(?:-| )bits?\b|\b\d+(?:, \d+)* (?:or|and) \d+ bits\b", "a size that a standard sets"
    ),
    NoClaim(r"\b(?:40[13-9]|413|422|429|50[034]|5xx|40001|40P01)\b", "a status or an error code"),
    NoClaim(r"(?i)\b(?:exit )?code(?: is)? \d\b", "an exit code, see docs/reference/cli.md"),
    NoClaim(r"\bport \d+\b|\b(?:127\.0\.0\.1|0\.0\.0\.0)(?::\d+)?", "an address"),
    NoClaim(
        r"\b(?:Python|PostgreSQL|PgBouncer|SQLite|Linux|macOS|version|schema|v|Windows) ?\(?v?"
        r"\d+(?:\.\d+)*(?:(?:,| to| or| and|,? or) \d+(?:\.\d+)+)*\+?",
        "the version of a program",
    ),
    NoClaim(
        r"\b\d{1,2} (?:January|February|March|April|May|June|July|August|September|October"
        r"|November|December)(?: \d{4})?\b|\b\d{4}-\d\d-\d\d\b|\bbefore (?:1[0-9]|20)\d\d\b",
        "a date",
    ),
    NoClaim(r"(?<![\d.,])[01](?![\d.,]\d|\d)", "zero or one: an end of a scale, a default, a name"),
    NoClaim(r"\bmode 0[0-7]{3}\b", "the rights of a file"),
    NoClaim(r"\b(?:chats )?(?:1 to 5|6 to (?:8|10))\b", "a part of a data set, by its name"),
)


def statements(page: Page, extra: Sequence[NoClaim] = ()) -> Iterator[Statement]:
    """What the page states."""
    rules = [rule for rule in (*NO_CLAIM, *extra) if page.name.startswith(rule.pages)]
    excused = [span.span() for rule in rules for span in re.finditer(rule.pattern, page.prose)]
    for kind, pattern in (("figure", _FIGURE), ("promise", _PROMISE)):
        for match in pattern.finditer(page.prose):
            start, end = match.span()
            if not any(first <= start and end <= last for first, last in excused):
                yield Statement(page, kind, start, end)
