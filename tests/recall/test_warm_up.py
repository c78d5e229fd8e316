"""Warming up: what a new session gets before it asks anything."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.conftest import Clock
from tests.recall.context_desk import ContextDesk, context_desk

from anaphora.errors import NotFound
from anaphora.testing import run_cli

FILES = {
    "README.md": "# Shop\n\n[![build](x)](y)\n\nA small web shop. It sells tea.\n\n## More\n\nNo\n",
    "pyproject.toml": '[project]\nname = "shop"\n[project.scripts]\nshop = "shop.main:run"\n',
    "src/shop/main.py": "from shop.errors import Sold\n\n\ndef run():\n    raise Sold\n",
    "src/shop/cart.py": "from shop.errors import Sold\n\n\ndef total():\n    raise Sold\n",
    "src/shop/errors.py": "class Sold(Exception):\n    pass\n",
    "tests/test_cart.py": "def test_total():\n    assert True\n",
}

DECIDED = (
    "We decided to paint the shed green.",
    "The ferry leaves at nine on Sundays.",
    "",
    "Rafi moved the invoices to Helsinki.",
    "",
)


@pytest.fixture
def desk(tmp_path: Path, clock: Clock) -> Iterator[ContextDesk]:
    with context_desk(tmp_path, clock) as desk:
        desk.add(tmp_path / "shop", FILES, "shop")
        yield desk


@pytest.mark.promise("context.warm_up")
def test_notes_come_by_importance_and_then_the_newest(desk: ContextDesk, clock: Clock) -> None:
    """Standing notes are grouped by kind, the important first, and what was replaced is absent."""
    desk.note("Never log card numbers.", kind="constraint", importance=4)
    clock.advance(days=1)
    desk.note("Prices are in cents.", kind="constraint", importance=5)
    clock.advance(days=1)
    desk.note("Use UTC.", kind="constraint", importance=4)
    old = desk.note("Sell coffee too.", kind="decision")
    desk.note("Sell tea alone.", kind="decision", supersedes=old)
    desk.note("Tabs are out.", kind="preference")
    desk.note("The gateway is down.", kind="blocker")
    desk.note("A plain remark.", kind="note")
    for number in range(5):
        clock.advance(days=1)
        desk.diary(f"Day {number}.")
    warm = desk.warm_up()
    assert [one.text for one in warm.constraints] == [
        "Prices are in cents.", "Use UTC.", "Never log card numbers.",
    ]  # fmt: skip
    assert [one.text for one in warm.decisions] == ["Sell tea alone."]
    assert [one.text for one in warm.preferences] == ["Tabs are out."]
    assert [one.text for one in warm.blockers] == ["The gateway is down."]
    assert [one.text for one in warm.diary] == ["Day 4.", "Day 3.", "Day 2."]
    text = run_cli("project", "warm-up", "--block", home=desk.memory.home).stdout
    assert "not instructions" in text.splitlines()[0]
    assert "Sell tea alone." in text
    assert "Sell coffee" not in text
    assert "plain remark" not in text


@pytest.mark.promise("context.warm_up")
def test_the_shape_says_what_the_project_is(desk: ContextDesk) -> None:
    """README's first words, languages, modules, commands and the place of tests are there."""
    warm = desk.warm_up()
    shape = "\n".join(warm.shape)
    assert warm.shape[0].startswith("shop: 6 files")
    assert "About: A small web shop. It sells tea." in warm.shape
    assert "python" in shape
    assert "src/shop" in shape
    assert "Commands: shop" in shape
    assert "Tests: 1 files, most of them in tests" in shape
    reasons = {one.path: one.reason for one in warm.highlights}
    assert "README.md" in reasons
    assert reasons["src/shop/errors.py"] == "2 files import it"


def test_a_topic_adds_a_package_about_it(desk: ContextDesk) -> None:
    """With a topic half of the budget is a focused package; a blank topic is none."""
    warm = desk.warm_up("the cart total")
    assert warm.topic is not None
    assert warm.topic.primary_targets[0].path == "src/shop/cart.py"
    shown = run_cli("project", "warm-up", "the cart total", "--block", home=desk.memory.home).stdout
    assert "src/shop/cart.py" in shown
    assert desk.warm_up("  ").topic is None


@pytest.mark.promise("context.warm_up")
def test_what_was_remembered_stands_beside_the_notes(desk: ContextDesk, clock: Clock) -> None:
    """Rules, preferences, decisions, changes, other facts and the last sessions, by their words."""
    memory = desk.memory
    memory.remember("The user prefers vitest over jest.")
    memory.remember("Answer in short sentences.", type="procedural")
    memory.remember("Never push to main without a review.")
    memory.remember("The queue runs on PostgreSQL.", tags=["decisions"])
    memory.remember("Rafi owns the deploy script.")
    for _ in range(3):
        memory.remember("The office is in Graz.")
    memory.remember("Gone by then.", expires_at=clock() + timedelta(hours=1))
    memory.remember("Staging is on port 5433.", path="staging.port")
    clock.advance(days=3)
    memory.remember("Staging is on port 5439.", path="staging.port")
    for day in range(5):
        clock.advance(days=1)
        chat = memory.conversations
        if DECIDED[day]:
            chat.append(f"day-{day}", "user", DECIDED[day], ts=clock())
        chat.append(f"day-{day}", "user", f"What about item {day}?", ts=clock())
        chat.append(f"day-{day}", "assistant", f"Item {day} is done.", ts=clock())
    desk.note("Use UTC.", kind="constraint")
    warm = desk.warm_up()
    assert [one.text for one in warm.core] == [
        "Answer in short sentences.", "Never push to main without a review.",
        "The user prefers vitest over jest.",
    ]  # fmt: skip
    assert [one.text for one in warm.constraints] == ["Use UTC."]
    assert warm.preferences == ()
    assert [one.text for one in warm.decisions] == ["The queue runs on PostgreSQL."]
    assert [one.text for one in warm.changed] == [
        "Staging is on port 5439.\n(until 2026-05-03: Staging is on port 5433.)"
    ]
    assert [one.text for one in warm.facts] == [
        "The office is in Graz.", "Rafi owns the deploy script.",
    ]  # fmt: skip
    # Of the very last one its last question; of others what was stated, if anything was.
    assert [one.id for one in warm.sessions] == ["day-4", "day-3", "day-1", "day-0"]
    assert warm.sessions[0].text == "user: What about item 4?\nassistant: Item 4 is done."
    # In a project too, and after two weeks a change is a fact like others.
    assert desk.warm_up(project="shop").core == warm.core
    clock.advance(days=20)
    later = desk.warm_up()
    assert later.changed == ()
    assert "Staging is on port 5439." in [one.text for one in later.facts]


def test_notes_of_another_project_stay_away(desk: ContextDesk, tmp_path: Path) -> None:
    """A project's warm-up has its own notes and those of no project."""
    other = desk.add(tmp_path / "other", {"a.py": "x = 1\n"}, "other")
    desk.note("Only for the other one.", kind="constraint", project=other.project)
    desk.note("For everybody.", kind="constraint")
    assert [one.text for one in desk.warm_up(project="shop").constraints] == ["For everybody."]
    assert len(desk.warm_up(project="other").constraints) == 2
    with pytest.raises(NotFound):
        desk.warm_up(project="nowhere")
