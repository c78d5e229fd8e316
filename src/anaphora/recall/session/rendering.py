"""The parts of what a new session is told, with their headings, and as a few lines of text."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from anaphora.text.display import one_line
from anaphora.text.shown_times import shown_day

STANDING_CHARACTERS: Final = 200
SESSION_CHARACTERS: Final = 900
HEADINGS: Final = {
    "core": "Core block:",
    "constraints": "Constraints:",
    "blockers": "Blocked:",
    "decisions": "Decisions:",
    "preferences": "Preferences:",
    "changed": "Changed lately:",
    "diary": "Done lately:",
    "sessions": "Last sessions:",
    "facts": "Also kept:",
}


@dataclass(frozen=True, slots=True)
class Told:
    """What a line tells in full: the `kind` and the `id` that it has as a hit of a search."""

    kind: str
    id: str


def render_standing(
    warm: object, without: Collection[str] = ("facts",)
) -> Iterator[tuple[str, tuple[Told, ...]]]:
    """What holds and what was done last: a few lines of each part, and what each line tells.

    `warm` has a field for each part.
    """
    if question := getattr(warm, "question", ""):
        yield question, ()
    for part, heading in HEADINGS.items():
        if part not in without and (memories := getattr(warm, part)):
            yield heading, ()
            for memory in memories:
                day = f"{shown_day(memory.created_at)} " if memory.created_at else ""
                has_title = part == "sessions" and memory.title not in {"", memory.id}
                title = f"{one_line(memory.title, 70)} – " if has_title else ""
                max_characters = SESSION_CHARACTERS if part == "sessions" else STANDING_CHARACTERS
                # What is said of a text in its last line is not cut off with it.
                body, mark, remark = memory.text.rpartition("\n(")
                if mark and remark.endswith(")"):
                    line = f"{one_line(body, max_characters)} ({one_line(remark, max_characters)}"
                else:
                    line = one_line(memory.text, max_characters)
                is_whole = len(one_line(body or memory.text, None)) <= max_characters
                told = [Told("turn", turn) for turn in memory.turns]
                if not (memory.turns or memory.kind.startswith("session")):
                    told = [Told("memory" if memory.importance is None else "note", memory.id)]
                yield f"- {day}{title}{line}", tuple(told) if is_whole else ()
