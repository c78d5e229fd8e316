"""A home that has lived through every lane: a project, notes, a diary, deep questions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.deep.asking import TEA, Script, finds, submits, tell
from tests.exported import exported

from anaphora import Memory

FILES = {
    "README.md": "# Kestrel\n\nCounts quills.\n\n## Install\n\nRun `make nest`.\n",
    "src/kestrel/quillbook.py": (
        '"""Where quills are counted."""\n\n\nclass Inkwell:\n    """Holds marmalade ink."""\n\n'
        "    def refill_slowly(self, drops):\n        return drops\n"
    ),
    "src/kestrel/flight.py": (
        "from kestrel.quillbook import Inkwell\n\n\ndef swoop(wind):\n    return Inkwell()\n"
    ),
}
NUTS = "How many walnuts does Bob own?"


def project_at(place: Path) -> Path:
    """A small project in a folder."""
    for path, text in FILES.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
        # A file that was written just now would be read twice.
        os.utime(place / path, (1.7e9, 1.7e9))
    return place


def opened(home: Path, clock: Any, script: Script | None = None, **options: Any) -> Memory:
    """The home with a script as its model, or with none."""
    model = script.model if script else None
    return Memory.open(home, embedder="hashing", model=model, clock=clock, **options)


def live(memory: Memory, root: Path, script: Script, clock: Any) -> dict[str, str]:
    """Everything that the new lanes do in a session; ids by what they are."""
    project = memory.index_project(root, name="kestrel").project
    old = memory.observe(
        "Ink is kept in `quillbook.py` as litres", kind="decision", project="kestrel"
    )
    clock.advance(minutes=1)
    new = memory.observe(
        "Ink is kept in `quillbook.py` as drops",
        kind="decision",
        importance=5,
        tags=["units"],
        source="src/kestrel/quillbook.py",
        supersedes=old.id,
        project="kestrel",
    )
    rule = memory.observe("Never refill while swooping", kind="constraint")
    diary = memory.write_diary(
        "Moved the inkwell to drops; flight.py is next", subject="drops", project="kestrel"
    )
    tell(memory)
    script.said = finds("Ada lapsang tea")
    answer = memory.deep_recall(TEA)
    assert answer.trace_id is not None
    script.said = submits("NOT_FOUND")
    gap = memory.deep_recall(NUTS, scope="all_sessions").gap_id
    assert gap is not None
    assert memory.ready(60)
    return {
        "project": project,
        "old": old.id,
        "new": new.id,
        "rule": rule.id,
        "diary": diary.id,
        "trace": answer.trace_id,
        "gap": gap,
    }


def said(memory: Memory) -> dict[str, Any]:
    """What the new lanes answer, without what differs from home to home."""
    package = memory.recall_context("Where is ink kept, in drops or litres?", include_sources=True)
    past = memory.recall_context("What was decided before about ink in litres?")
    first = memory.warm_up("refill the inkwell")
    return {
        "targets": [(one.path, one.title, round(one.score, 4)) for one in package.primary_targets],
        "memories": [(one.kind, one.title, one.text) for one in package.memories],
        "graph": sorted((one.subject, one.predicate, one.object) for one in package.graph),
        "quality": package.quality,
        "past": [(one.kind, one.text) for one in past.history],
        "rules": [one.text for one in first.constraints],
        "decisions": [one.text for one in first.decisions],
        "diary": [one.text for one in first.diary],
        "gaps": [(gap.question, gap.asked, gap.status) for gap in memory.gaps(None)],
    }


def notes_of(memory: Memory) -> dict[str, Any]:
    """Every note with its events, by id, as an export says it."""
    lines = exported(memory, "observation") + exported(memory, "diary")
    return {line["id"]: line for line in lines}
