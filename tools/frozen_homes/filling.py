"""What is done with a home before it is frozen: two months of a harbour office, by the facade.

In: an open memory, its clock, a folder for the files that it reads. Out: the home, filled.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tests.document_files import mail

from anaphora import Memory, NewMemory
from anaphora.testing import Clock

__all__ = ["END", "QUESTIONS", "START", "Script", "fill", "fill_device", "write_sources"]

ROOT: Final = Path(__file__).resolve().parents[2]
START: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
END: Final = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
"""The present of every frozen home, when it was made and when it is opened again."""
IMPORTED: Final = (
    "claude_code.jsonl", "rollout-2026-03-11T07-00-00-0198-codex.jsonl", "chatgpt.json",
    "telegram.json",
)  # fmt: skip
PROJECT: Final = {
    "README.md": "# Tide tables\n\nThe server listens on port 8461.\n\n## Lock\n\nOpens at dawn.\n",
    "tides/lock.py": 'class Lock:\n    """The sluice."""\n\n    def open(self): ...\n',
    "tides/table.py": "from tides.lock import Lock\n\n\ndef high_water(day):\n    Lock().open()\n",
}
HERON: Final = b"# Herons\n\nThe heron waits on one leg.\n\n## Food\n\nIt eats eels.\n"
HARD: Final = (
    "Zoë’s 茶 ☕ costs £3\u2028and a half", "a\x00b\x1bc", "line one\r\nline two\t\x85end",
    "lone \ud83d half", "  kept  spaces  ", "ﷺ e\u0301 é",
)  # fmt: skip
QUESTIONS: Final = (
    ("default", "memories", "Where is the office of the harbour?"),
    ("default", "memories", "Which test framework does the user prefer?"),
    ("default", "memories", "How deep is lake 3?"),
    ("default", "turns", "Which port does the tide server listen on?"),
    ("default", "turns", "When does the pilot boat leave?"),
    ("default", "search", "What does the heron eat?"),
    ("default", "search", "high_water of the tide tables"),
    ("default", "search", "Why is the lock opened at dawn?"),
    ("work", "memories", "Who signs the invoices?"),
    ("work", "turns", "Who has the key of the shed?"),
)
"""Namespace, lane and words of what is asked of a full home: the answers are in it."""


class Script:
    """A model that takes one fact from a conversation, and answers no question."""

    def __call__(self, messages: Sequence[Any]) -> str:
        """Facts as JSON, or a search and that nothing was found."""
        if "lasting" in messages[0].text and "JSON" in messages[0].text:
            return json.dumps([{"fact": "The pilot boat leaves at six.", "turns": [0]}])
        if "Output:" not in messages[-1].text:
            return "```python\nprint(len(search(question, limit=5)))\n```"
        return '```python\nsubmit("NOT_FOUND", [])\n```'


def write_sources(folder: Path) -> None:
    """Lay the transcripts and two projects, one of them a repository, into a folder."""
    (folder / "transcripts").mkdir(parents=True)
    for name in IMPORTED:
        shutil.copyfile(ROOT / "tests/ingest/fixtures" / name, folder / "transcripts" / name)
    memories = ROOT / "tests/ingest/fixtures_memories" / "mem0.json"
    shutil.copyfile(memories, folder / "transcripts" / memories.name)
    for project in ("plain", "cloned"):
        for name, text in PROJECT.items():
            place = folder / project / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8")
    git = folder / "cloned" / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n", "utf-8")
    (git / "config").write_text(
        '[remote "origin"]\n\turl = git@example.com:harbour/tides.git\n', "utf-8"
    )


def fill(memory: Memory, clock: Clock, folder: Path) -> None:
    """Do everything that leaves something in a home; `before.jsonl` is of before the forgetting."""
    _talk(memory, clock)
    _import(memory, clock, folder)
    _remember(memory, clock)
    _contradict(memory, clock)
    _keep_documents(memory, clock)
    _work_on_projects(memory, clock, folder)
    _leave_gaps(memory, clock)
    _fill_others(memory, clock)
    memory.ready()
    memory.export(folder / "before.jsonl")
    _forget(memory, clock)
    memory.tokens.create("reader", read_only=True)
    clock.now = END
    memory.ready()


def fill_device(memory: Memory, clock: Clock, name: str) -> None:
    """What each of two devices says on its own, of things that they share and do not share."""
    memory.remember(f"The user drinks tea on the {name}.", path="user.drink", tags=["drink", name])
    memory.remember("The build is green.", category="work")
    memory.remember(f"The {name} is charged on Sundays.")
    memory.observe(f"The {name} takes nine minutes to build.", kind="decision")
    memory.conversations.append("shared", "user", f"Written on the {name}.", speaker="Ann")
    clock.advance(minutes=7)


def _talk(memory: Memory, clock: Clock) -> None:
    threads = memory.conversations
    for text in ("When does the pilot boat leave?", "The pilot boat leaves at six."):
        clock.advance(minutes=1)
        threads.append("harbour", "user", text, speaker="Mara Voss")
    threads.append_assistant("harbour", "Noted: at six.", intent_id="intent-1")
    threads.append("harbour", "user", "This turn will be redacted.", speaker="Ines")
    threads.set_title("harbour", "The pilot’s day")
    for number, text in enumerate(HARD):
        clock.advance(seconds=1.5)
        threads.append("hard words", "user" if number % 2 == 0 else "assistant", text)
    threads.append("tools", "tool", "exit code 0")
    threads.append_user("gone", "A thread that will be deleted.")


def _import(memory: Memory, clock: Clock, folder: Path) -> None:
    clock.advance(days=1)
    memory.import_(folder / "transcripts")
    memory.conversations.append_user("noted", "A session without a place of its own.")
    memory.note_session(["noted"], client="codex", directory=folder / "cloned")


def _remember(memory: Memory, clock: Clock) -> None:
    for text in ("The user prefers jest.", "The user prefers vitest.", "The user prefers pytest."):
        clock.advance(days=1)
        memory.remember(
            text, path="user.testing", tags=["testing"], category="preference", source="chat"
        )
    first = memory.remember(
        "Rafi likes tea with cardamom.",
        payload={"cups": 3, "share": 0.75, "who": "Zoë’s 茶", "none": None, "all": [True, {}]},
        conversation_id="harbour",
        turn_index=1,
        tags=["drink", "Größe"],
    )
    clock.advance(hours=2)
    memory.remember("Rafi likes tea with cardamom.", tags=["again"], source="notes/tea.md")
    memory.remember("Rafi really likes tea with cardamom, always.")
    memory.remember("Cardamom comes from the shop at the mole.", parent=first.id)
    memory.remember("Restore the backup before a migration.", type="procedural")
    memory.remember("The drill took 51 minutes.", type="episodic", created_at=START)
    memory.remember("The guest code is 4711.", expires_at=clock.now + timedelta(days=3))
    memory.remember("The berth is ours until summer.", expires_at=END + timedelta(days=60))
    memory.remember("The key is ghp_" + "a1B2c3D4e5F6" * 3 + ".")
    memory.remember_many(
        [NewMemory(f"Lake {n} is {n + 2} metres deep.", payload={"n": n}) for n in range(5)]
    )
    old = memory.remember("The ferry lands at noon.")
    clock.advance(days=1)
    memory.remember("Since April the boat comes at one.", supersedes=old.id)
    changed = memory.remember("The mole was rebuilt in 1911.", path="harbour.mole")
    memory.update(changed.id, tags=["stone"], category="history")
    memory.update(changed.id, text="The mole was rebuilt in 1912.")
    rule = memory.remember("Never push to main without a review.", category="rule")
    memory.pin(rule.id, 1)
    memory.pin(first.id)
    memory.unpin(memory.remember("The user prefers short answers.", category="preference").id)


def _contradict(memory: Memory, clock: Clock) -> None:
    for verdict, (old, new) in {
        "replaces": ("The office is in Graz.", "The office is in Vienna now."),
        "both_hold": ("The crane lifts nine tons.", "The crane lifts seven tons."),
        "wrong": ("The buoy is green.", "The buoy is red."),
        "": ("The pilot is called Ines.", "The pilot is called Rafi."),
    }.items():
        before = memory.remember(old)
        clock.advance(days=1)
        after = memory.remember(new)
        assert after.conflicts, new
        if verdict:
            memory.settle_contradiction(after.id, before.id, verdict)  # type: ignore[arg-type]


def _keep_documents(memory: Memory, clock: Clock) -> None:
    memory.add_document(HERON, name="heron.md", tags=["birds"], origin="https://example.org/h")
    clock.advance(days=1)
    memory.add_document(HERON + b"\nAnd frogs.\n", name="heron.md", title="Herons", date=START)
    letter = mail("Berth", "The berth costs 40 a month.", [("prices.txt", b"40 a month")])
    memory.add_document(letter, name="letter.eml")
    memory.add_document(b"Only its words are kept.", name="words.txt", keep_file=False)
    memory.add_document(b"This document will be forgotten.", name="forgotten.txt")


def _work_on_projects(memory: Memory, clock: Clock, folder: Path) -> None:
    clock.advance(days=1)
    for name in ("plain", "cloned"):
        memory.index_project(folder / name, name=f"{name}-tides")
        old = memory.observe(
            f"{name}: the lock is slow.", kind="code_insight", project=f"{name}-tides"
        )
        memory.observe(
            f"{name}: the lock is opened at dawn, as the tide turns then.",
            kind="decision",
            importance=5,
            tags=["lock"],
            source="README.md",
            supersedes=old.id,
            project=f"{name}-tides",
        )
        clock.advance(hours=1)
        memory.write_diary(
            f"Rewrote high_water of {name}.", subject="tides", project=f"{name}-tides"
        )
    memory.observe("Every project has a licence.", kind="constraint")


def _leave_gaps(memory: Memory, clock: Clock) -> None:
    clock.now = END - timedelta(days=2)
    memory.deep_recall("Which company audits the books?", scope="all_sessions")
    memory.extract("harbour")


def _fill_others(memory: Memory, clock: Clock) -> None:
    work = memory.scoped("work")
    work.remember("Okafor signs the invoices.", path="work.invoices", tags=["money"])
    work.conversations.append("shed", "user", "Lotte has the key of the shed.", speaker="Jan")
    work.observe("Invoices are numbered by year.", kind="fact")
    memory.scoped("deleted").remember("Nothing of this is left.")
    memory.delete_namespace("deleted")
    audited = memory.scoped("audited")
    audited.audit.on()
    clock.advance(days=1)
    kept = audited.remember("The safe is behind the chart.")
    audited.remember("The safe was sold.", tags=["gone"])
    audited.conversations.append_user("watched", "Who opened the safe?")
    audited.recall("where is the safe?")
    audited.get(kept.id)
    audited.forget(filters={"tags": {"contains": "gone"}})


def _forget(memory: Memory, clock: Clock) -> None:
    clock.advance(days=1)
    threads = memory.conversations
    threads.redact("harbour", 3)
    threads.delete("gone")
    imported = [one.conversation_id for one in threads.list() if one.title.startswith("Bicycle")]
    threads.delete(imported[0])
    memory.forget(filters={"path": "harbour.mole"})
    memory.forget(_id_of(memory, "Lake 0"), soft=True)
    memory.forget(_id_of(memory, "Lake 1"))
    clock.now = END
    memory.forget(_id_of(memory, "Lake 2"), undoable=True)
    (page,) = [one for one in memory.documents() if one.name == "forgotten.txt"]
    memory.forget(page.id)


def _id_of(memory: Memory, beginning: str) -> str:
    (found,) = [one.id for one in memory.list(limit=100).items if one.text.startswith(beginning)]
    return found
