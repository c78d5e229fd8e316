"""What came, beside what was needed: by the texts that the story names, nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tools.week.player import Played
from tools.week.story import Expectation, Session

Source = Literal["prompt", "start", "earlier", "missed", ""]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one prompt fared.

    `met_by` says where its need came from: with the prompt, in the block at the start of the
    session, with an earlier prompt of it, or nowhere; "" where it needs nothing. `noise` are lines
    that neither its needs nor what is useful to it names, `outdated` the lines of an old value that
    nothing marks.
    """

    session: str
    prompt: str
    needs: tuple[str, ...]
    met_by: Source
    lines: tuple[str, ...]
    useful: int
    repeated: int
    noise: tuple[str, ...]
    outdated: tuple[str, ...]

    @property
    def is_idle(self) -> bool:
        """Whether the prompt needs nothing."""
        return not self.met_by


def judge(played: Played) -> list[Verdict]:
    """A verdict for each prompt, in order."""
    starts = {session.id: given.text.casefold() for session, given in played.starts}
    before: dict[str, str] = {}
    verdicts = []
    for session, prompt, given in played.prompts:
        expected, lines = prompt.expected, items_of(given.text)
        useful, repeated, noise = _sort(lines, expected)
        came = given.text.casefold()
        source: Source = ""
        if expected.needs:
            source = "missed"
            for name, text in (
                ("earlier", before.get(session.id, "")),
                ("start", starts[session.id]),
                ("prompt", came),
            ):
                if any(need in text for need in expected.needs):
                    source = name  # type: ignore[assignment]
        verdicts.append(
            Verdict(
                session.id,
                prompt.text,
                expected.needs,
                source,
                tuple(lines),
                useful,
                repeated,
                noise,
                unmarked(lines, expected),
            )
        )
        before[session.id] = before.get(session.id, "") + came
    return verdicts


def failed_starts(starts: Iterable[tuple[Session, str]]) -> list[str]:
    """The sessions whose first block lacks a rule, or has one that no longer holds, unmarked."""
    failed = []
    for session, text in starts:
        expected = session.expected
        if expected.needs and not any(need in text.casefold() for need in expected.needs):
            failed.append(f"{session.id}: nothing of {' | '.join(expected.needs)}")
        failed += [f"{session.id}: {line}" for line in unmarked(items_of(text), expected)]
    return failed


def items_of(block: str) -> list[str]:
    """The items of a recalled block, each with the lines that say more about it."""
    items: list[str] = []
    for line in block.splitlines():
        if line.startswith("- "):
            items.append(line)
        elif line.startswith("  (") and items:
            items[-1] += f"\n{line}"
    return items


def unmarked(items: Iterable[str], expected: Expectation) -> tuple[str, ...]:
    """The items that have an outdated value, neither the present one nor a word that says so."""
    return tuple(
        item
        for item in items
        if any(old in item.casefold() for old in expected.outdated)
        and not any(need in item.casefold() for need in expected.needs)
        and "(" not in item.partition("\n")[2]
    )


def _sort(items: Iterable[str], expected: Expectation) -> tuple[int, int, tuple[str, ...]]:
    """How many items are useful, how many repeat a fact, and those that are neither."""
    useful, repeated, noise = 0, 0, []
    seen: set[str] = set()
    for item in items:
        text = item.casefold()
        named = {need for need in (*expected.needs, *expected.useful) if need in text}
        if not named:
            noise.append(item)
        elif named <= seen:
            repeated += 1
        else:
            useful += 1
        seen |= named
    return useful, repeated, tuple(noise)
