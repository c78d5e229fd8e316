"""A home with two months of a small team in it, for pictures of the page and for its tests by eye.

Made of `examples/conversation.json`, the memories, notes and documents below, and this repository's
own sources as the project. Time is that of `MOMENT`, so that every run shows the same days. Deep
recall is answered by a script instead of a model; its code runs in the real sandbox over the turns.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from anaphora import Memory
from anaphora.testing.scripted import ScriptedModel

__all__ = ["MOMENT", "QUESTION", "demo_home"]

ROOT: Final = Path(__file__).resolve().parents[1]
MOMENT: Final = datetime(2026, 4, 24, 9, 12, tzinfo=UTC)
"""The present of every picture."""
QUESTION: Final = "On how many days did we talk about Redis, and what came of it?"

_READ_ALL = """\
Search shows the best hits only, so I read every turn that names Redis.

```python
import re
found = []
for s in list_sessions():
    for start in range(0, s["turns"], 500):
        for t in load_transcript(s["id"], start, start + 500):
            if re.search(r"\\bredis\\b", t["text"], re.IGNORECASE):
                found.append(t)
found.sort(key=lambda t: t["ts"])
days = sorted(set(t["ts"][:10] for t in found))
print(len(found), "turns on", len(days), "days:", ", ".join(days))
for t in found:
    print(t["ts"][:10], t["speaker"], "-", t["text"][:110])
```"""
_JUDGE = """\
Which of these turns says what was decided? The other model reads them.

```python
asked = "Does this turn state a decision about the queue? Answer yes or no.\\n\\n"
answers = llm_query_batched([asked + t["text"] for t in found])
decided = [t for t, a in zip(found, answers) if a.strip().lower().startswith("yes")]
print(len(decided), "decisions, the last:", decided[-1]["text"][:160])
```"""
_SUBMIT = """\
```python
submit(
    f"On {len(days)} days, from {days[0]} to {days[-1]}. The queue moved to PostgreSQL after Redis "
    "had lost 214 jobs; since then Redis only keeps the page cache.",
    sources=[decided[-1]["id"], found[2]["id"], found[-1]["id"]],
)
```"""
_NOT_FOUND = (
    '```python\nhits = search(question, limit=20)\nprint(len(hits))\nsubmit("NOT_FOUND", [])\n```'
)

# Day (month, day), text, and what else is known of it.
_MEMORIES: Final[tuple[tuple[tuple[int, int], str, dict[str, Any]], ...]] = (
    ((2, 10), "Ferrywell's staging database listens on port 5433.",
     {"path": "ferrywell.staging.port", "category": "environment", "tags": ("ferrywell",)}),
    ((2, 12), "Snippets of test code are written with pytest, never with unittest.",
     {"category": "preference", "tags": ("python", "testing")}),
    ((2, 13), "Harbour Lane Books ships about 70 parcels a week.",
     {"path": "shops.harbour-lane.volume", "tags": ("shops",)}),
    ((2, 16), "The job queue of Ferrywell lies in Redis.",
     {"path": "ferrywell.queue", "category": "decision", "tags": ("ferrywell", "queue")}),
    ((2, 19), "Before a migration: restore last night's backup on staging, and time it.",
     {"type": "procedural", "category": "procedure", "tags": ("ferrywell", "database")}),
    ((2, 24), "A webhook is tried 5 times over about 40 minutes.",
     {"path": "ferrywell.webhook.attempts", "tags": ("ferrywell",)}),
    ((3, 2), "Ines's son is allergic to hazelnuts.", {"category": "people"}),
    ((3, 4), "The team of Ferrywell deploys on Wednesdays.", {"tags": ("ferrywell",)}),
    ((3, 9), "The invoice for hosting comes on the 3rd of a month.", {"tags": ("money",)}),
    ((3, 11), "Never send an SMS to a customer twice: check the ledger of messages first.",
     {"type": "procedural", "category": "procedure", "tags": ("incident",)}),
    ((3, 12), "The weekly review of Ferrywell is on Mondays at ten.", {"tags": ("meetings",)}),
    ((3, 19), "Ferrywell's staging database listens on port 5439.",
     {"path": "ferrywell.staging.port", "category": "environment", "tags": ("ferrywell",)}),
    ((3, 24), "Kestrel's KP-4107 means: the client certificate expires within 14 days.",
     {"tags": ("carriers",)}),
    ((3, 26), "The job queue of Ferrywell lies in PostgreSQL (SELECT … FOR UPDATE SKIP LOCKED), "
     "because Redis evicted 214 jobs and could not write a job in the event's transaction.",
     {"path": "ferrywell.queue", "category": "decision", "tags": ("ferrywell", "queue")}),
    ((3, 27), "Redis keeps the page cache of Ferrywell, and nothing that must not be lost.",
     {"category": "environment", "tags": ("ferrywell", "cache")}),
    ((3, 31), "A webhook is tried 8 times over about 11 hours.",
     {"path": "ferrywell.webhook.attempts", "tags": ("ferrywell",)}),
    ((4, 2), "The on-call phone of Ferrywell is with Rafi.", {"tags": ("ferrywell",)}),
    ((4, 7), "The restore drill in April took 51 minutes for 63 GB.",
     {"type": "episodic", "tags": ("ferrywell", "database")}),
    ((4, 9), "Harbour Lane Books ships about 110 parcels a week.",
     {"path": "shops.harbour-lane.volume", "tags": ("shops",)}),
    ((4, 14), "Migrations never drop a column in the release that stops using it.",
     {"type": "procedural", "category": "rule", "tags": ("database",)}),
    ((4, 20), "The weekly review of Ferrywell is on Fridays at ten.", {"tags": ("meetings",)}),
    ((4, 22), "The team of Ferrywell deploys on Thursdays.", {"tags": ("ferrywell",)}),
    ((4, 23), "The on-call phone of Ferrywell is with Ines.", {"tags": ("ferrywell",)}),
    ((4, 23), "Maren writes the release notes in plain words, a line for each change.",
     {"category": "preference"}),
)  # fmt: skip
_CARRIERS: Final = (
    ("Northline", "Gothenburg", 2, 30.0), ("Kestrel", "Rotterdam", 3, 31.5),
    ("Postwerk", "Leipzig", 2, 31.5), ("Blue Heron", "Tallinn", 5, 20.0),
    ("Corvid Express", "Poznań", 1, 25.0), ("Saltmarsh", "Hull", 4, 22.5),
    ("Paquetería Sur", "Sevilla", 3, 30.0), ("Fjordpost", "Bergen", 3, 35.0),
    ("Tramline", "Vienna", 1, 15.0), ("Meridian", "Lyon", 2, 30.0),
)  # fmt: skip
_FACTS: Final = (
    ("carriers.{key}.hub", "{name} sorts the parcels of Ferrywell in {hub}."),
    ("carriers.{key}.days", "{name} takes {days} working days from door to door."),
    ("carriers.{key}.weight", "{name} takes parcels of up to {kilos:g} kg."),
    ("carriers.{key}.pickup", "{name} picks up at {hour}:30 on working days."),
    ("carriers.{key}.digits", "{name}'s tracking numbers have {length} digits."),
    ("carriers.{key}.support", "{name} answers the support line until {late}:00."),
    ("carriers.{key}.claims", "{name} wants claims within {late} days."),
    ("carriers.{key}.scans", "{name} sends a scan event within {minutes} minutes."),
)
_NOTES: Final = (
    ((3, 30), "decision", "Closeness by cosine only links memories; it never merges them.", 5),
    ((4, 8), "constraint", "Modules of src/anaphora/rank read no clock, disk or log.", 4),
    ((4, 16), "code_insight",
     "rank/turns.py adds up the parts of a turn's score, so they explain it.", 3),
    ((4, 21), "blocker", "The wheel for musl waits for a build of the vector index.", 3),
)  # fmt: skip
_DOCUMENTS: Final = (
    ((2, 27), "lease.md", "Lease of the office", """\
# Lease of the office

Between Harbour Estates and Ferrywell, from 1 March 2026.

## Rent

The rent is 1,850 a month, payable by the 5th. It rises by 2 percent each March.

## Notice

Either side may end the lease with three months' notice to the end of a quarter.
"""),
    ((3, 16), "kestrel-terms.txt", "Kestrel: terms for small senders", """\
Kestrel parcels, terms for small senders

1. Parcels of up to 31.5 kg are taken; the longest side is 120 cm at most.

2. Damage is reported within seven days, with pictures of the box and of what was in it.

3. A client certificate is valid for 90 days and is renewed by the sender.
"""),
    ((4, 15), "runbook.md", "Runbook: the queue does not move", """\
# Runbook: the queue does not move

## Look first

Count the rows in `jobs` that are locked for more than five minutes. More than ten means a worker
died with its locks.

## Then

Restart one worker, not all. Wait for two minutes and count again before the next one.
"""),
)  # fmt: skip
_UNKNOWN: Final = (
    "Which company audits the books of Ferrywell?",
    "How many square metres has the office in Bergen?",
    "What did the lawyer say about the name Ferrywell?",
)


class _Clock:
    """The time of the home: that of the day that is being filled in, then that of `MOMENT`."""

    def __init__(self) -> None:
        self.now = MOMENT

    def __call__(self) -> datetime:
        return self.now

    def set(self, day: tuple[int, int], hour: int = 10, minute: int = 0) -> None:
        """Go to this day of the year of `MOMENT`."""
        self.now = datetime(MOMENT.year, *day, hour, minute, tzinfo=UTC)


@contextmanager
def demo_home(place: Path) -> Iterator[Memory]:
    """The home at `place`, filled where it is new, with a scripted model for deep recall."""
    filled = (place / "home").is_dir()
    clock = _Clock()
    model = ScriptedModel(_reply, name="scripted", prices=(0.15, 0.6))
    sub = ScriptedModel(
        lambda messages: "Yes." if "Decided" in messages[-1].text else "No.",
        name="scripted-reader",
        prices=(0.05, 0.2),
    )
    with Memory.open(place / "home", model=model, sub_model=sub, clock=clock) as memory:
        if not filled:
            _fill(memory, clock, place / "ferry")
        memory.ready()
        clock.now = MOMENT
        yield memory


def _reply(messages: Any) -> str:
    """What the model answers: a search in three blocks, or that a thing is nowhere."""
    words = " ".join(message.text for message in messages)
    script = [_READ_ALL, _JUDGE, _SUBMIT] if QUESTION in words else [_NOT_FOUND]
    # Examples that every prompt begins with are replies of a model, too.
    given = sum(bool(m.role == "assistant" and m.text in script) for m in messages)
    return script[given % len(script)]


def _fill(memory: Memory, clock: _Clock, folder: Path) -> None:
    memory.ready()
    memory.import_(ROOT / "examples" / "conversation.json")
    for number, (name, hub, days, kilos) in enumerate(_CARRIERS):
        for line, (path, text) in enumerate(_FACTS):
            clock.set((2 + number // 4, 3 + (7 * number + 3 * line) % 19), 9 + line, 5 * number)
            key = name.split()[0].lower().replace("í", "i")
            values = {
                "name": name, "key": key, "hub": hub, "days": days, "kilos": kilos,
                "hour": 15 + number % 3, "length": 10 + number % 4, "late": 17 + number % 4,
                "minutes": 5 + 5 * (number % 3),
            }  # fmt: skip
            memory.remember(
                text.format(**values), path=path.format(key=key), tags=("carriers", key)
            )
    for number, (day, text, more) in enumerate(_MEMORIES):
        clock.set(day, 9 + number % 8, 7 * number % 60)
        memory.remember(text, **more)
    clock.set((4, 10), 15)
    memory.remember(str(_MEMORIES[1][1]), **_MEMORIES[1][2])
    for day, name, title, text in _DOCUMENTS:
        clock.set(day, 14, 20)
        memory.add_document(text.encode(), name=name, title=title)
    project = folder / "anaphora"
    hidden = shutil.ignore_patterns("__pycache__", "models", "*.pyc")
    clock.set((4, 23), 17)
    for part in ("core", "index", "rank", "recall", "store", "values"):
        source = ROOT / "src" / "anaphora" / part
        shutil.copytree(source, project / source.relative_to(ROOT), ignore=hidden)
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, project / name)
    memory.index_project(project, name="anaphora")
    memory.ready()
    for day, kind, text, importance in _NOTES:
        clock.set(day, 16, 40)
        memory.observe(text, kind=kind, importance=importance, project="anaphora")  # type: ignore[arg-type]
    clock.set((4, 23), 18)
    memory.write_diary(
        "The weights of a turn's ranking were fitted anew; recall@10 is as it was.",
        subject="ranking",
        project="anaphora",
    )
    clock.now = MOMENT - timedelta(days=1)
    for question in _UNKNOWN:
        memory.deep_recall(question, scope="all_sessions")
    memory.deep_recall(QUESTION, scope="all_sessions")
