"""The parts of what a new session is told, with their headings, and as a few lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from anaphora.text.display import one_line
from anaphora.text.shown_times import shown_day

STANDING_CHARACTERS: Final = 200
SESSION_CHARACTERS: Final = 420
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


def render_standing(warm: object) -> Iterator[str]:
    """What holds and what was done last, without facts: a few lines of each.

    `warm` has a field for each part.
    """
    if question := getattr(warm, "question", ""):
        yield question
    for part, heading in HEADINGS.items():
        if part != "facts" and (memories := getattr(warm, part)):
            yield heading
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
                yield f"- {day}{title}{line}"
