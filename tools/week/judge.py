"""What came, beside what was needed: by the texts that the story names, nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from tools.week.player import Block, Played
from tools.week.story import Expectation, Session

Source = Literal["prompt", "start", "earlier", "missed", ""]

_CHATTER: Final = 6
"""Words of a prompt at most that is small talk, where the story wants nothing of it."""
_QUOTED: Final = 90
"""Characters of a text by which a line that quotes it is known."""
_LEAST: Final = 12
_DATED: Final = re.compile(r"^- (?:\d{4}-\d\d-\d\d |\d\d:\d\d \w+: )(?:user: )?")
_MARKS: Final = ("(until ", "(replaced ", "(older", "not settled", "instead of")


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


@dataclass(frozen=True, slots=True)
class BlockVerdict:
    """How the lines of the blocks fared that sessions were given unasked.

    `current` lines tell nothing that recall says was replaced, `marked` ones say so where it does,
    `stale` ones do not; `unknown` ones recall finds in nothing that it gives. `small_talk` lines
    quote chatter, and `again` came with the prompt after the block once more.
    """

    lines: int
    current: int
    marked: int
    stale: tuple[str, ...]
    unknown: tuple[str, ...]
    small_talk: tuple[str, ...]
    again: tuple[str, ...]


def judge_blocks(blocks: Iterable[Block], sessions: Iterable[Session]) -> BlockVerdict:
    """One verdict on every line of the blocks."""
    chatter = {
        _plain(prompt.text)
        for session in sessions
        for prompt in session.prompts
        if len(prompt.text.split()) <= _CHATTER
        and not (prompt.facts or prompt.calls or prompt.expected.needs or prompt.expected.useful)
    }
    rows = [
        (block, item)
        for block in blocks
        for item in items_of(block.text)
        if not item.startswith("- files changed")
    ]
    names: dict[str, list[str]] = {
        "current": [], "marked": [], "stale": [], "unknown": [], "talk": [], "again": []
    }  # fmt: skip
    for block, item in rows:
        title = f"{block.session.id}, {block.kind}: {item}"
        names[_standing(item, block.held)].append(title)
        statements = re.split(r"; |: ", _plain(item.partition("\n")[0]))
        if chatter & {statement.strip() for statement in statements}:
            names["talk"].append(title)
        for given in items_of(block.next_prompt):
            told = _plain(given.partition("\n")[0].partition(": ")[2])
            if told and told in _plain(item):
                names["again"].append(title)
    counts = len(rows), len(names["current"]), len(names["marked"])
    return BlockVerdict(
        *counts, *(tuple(names[name]) for name in ("stale", "unknown", "talk", "again"))
    )


def _standing(item: str, held: Mapping[str, bool]) -> str:
    """What recall says of what a line quotes: the whole of a text, or its first part."""
    line, found = _plain(item), "unknown"
    sentence = _DATED.sub("", line)
    for text, is_current in held.items():
        head = _plain(text)[:_QUOTED]
        # What stands in a mark is quoted as replaced.
        before, quoted, after = line.partition(head)
        if not quoted and len(sentence) >= _LEAST and sentence in _plain(text):
            # A sentence of it.
            before, quoted, after = "", head, ""
        if len(head) < _LEAST or not quoted or before.endswith('"'):
            continue
        if not is_current:
            mark = after.partition("; ")[0]
            if not any(word in mark for word in _MARKS):
                return "stale"
            found = "marked"
        elif found == "unknown":
            found = "current"
    return found


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(" .!")


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
