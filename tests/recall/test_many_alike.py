"""Of many statements that are worded alike, one change replaces the one that it is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from anaphora import Memory

THINGS = ("metrics", "billing", "login", "chat", "mail", "search", "archive", "image")


@pytest.mark.promise("recall.current")
@pytest.mark.parametrize("changed", ["mail", "archive"])
def test_a_change_marks_the_one_that_it_is_about(tmp_path: Path, changed: str) -> None:
    with Memory.open(tmp_path / "home") as memory:
        for number, thing in enumerate(THINGS):
            memory.remember(f"The {thing} database listens on port {6000 + 5 * number}.")
        new = memory.remember(f"We moved the {changed} database, it listens on port 7070 now.")
        assert memory.ready(60)
        for thing in THINGS:
            hits = memory.recall(f"which port does the {thing} database listen on?", top_k=20)
            outdated = {hit.text.split()[1] for hit in hits if not hit.current}
            assert outdated == {changed}, thing
            assert all(hit.older_than.id == new.id for hit in hits if hit.older_than)
