"""A walk of the graph reads few relations, and chooses as if it had read all."""

from __future__ import annotations

from pathlib import Path

import pytest

from anaphora.store.db.engine import Database
from anaphora.store.projects.graph_rows import RelationRow

from .project_desk import ProjectDesk
from .project_files import write

pytestmark = pytest.mark.internal

# What says most comes first, as the graph has it.
ORDER = (
    "applies_to", "concerns", "supersedes", "covers", "imports", "contains", "uses_package",
    "defines",
)  # fmt: skip


@pytest.mark.promise("project.graph")
def test_a_bounded_read_chooses_as_a_whole_one(truth: Database, tmp_path: Path) -> None:
    """Of entities with many relations, and some between them, the same are followed as of all."""
    desk = ProjectDesk(truth)
    users = {f"tests/test_{n}.py": "from heron import core, cli\n" for n in range(30)}
    symbols = "".join(f"def f{n}():\n    pass\n\n\n" for n in range(40))
    files = {
        "heron/__init__.py": "",
        "heron/core.py": symbols,
        "heron/cli.py": f"from heron import core\n\n\n{symbols}",
        "heron/web.py": "from heron import core, cli\n",
        **users,
    }
    project = desk.indexer.index(write(tmp_path / "heron", files)).project
    asked = ["heron/core.py", "heron/cli.py", "heron/web.py", "tests/test_7.py"]
    start = [row.id for row in desk.graph.entities_at(project, asked).values()]
    every = desk.graph.relations(start)
    assert len(every) > 130
    for limit in (1, 3, 8, 20):
        found = desk.graph.neighbours(start, limit=limit)
        assert [one.relation for one in found] == followed(every, start, limit)


def followed(every: tuple[RelationRow, ...], start: list[str], limit: int) -> list[RelationRow]:
    """Each kind in turn, the strongest first, until no entity has room."""
    seen: dict[tuple[str, str], int] = {}
    ranked = []
    for number, row in enumerate(every):
        nths = []
        for end in (row.subject, row.object):
            if end in start:
                nths.append(seen.get((end, row.predicate), 0))
                seen[end, row.predicate] = nths[-1] + 1
        ranked.append((min(nths), ORDER.index(row.predicate), number))
    room = dict.fromkeys(start, limit)
    chosen = []
    for _, _, number in sorted(ranked):
        row = every[number]
        near = next((end for end in (row.subject, row.object) if room.get(end, 0) > 0), None)
        if near is not None:
            room[near] -= 1
            chosen.append(row)
    return chosen
