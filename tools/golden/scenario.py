"""A week of calls on one home: every method of the facade, good and bad arguments, two sessions.

In: an open memory and a folder with a small project. Out: every answer, in the recording.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tools.golden.recording import Recording

__all__ = ["EXAMPLE", "FILTER", "play", "write_project"]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples"
FILTER = {"AND": [{"category": "development"}, {"tags": {"contains": "testing"}}]}
_WRITTEN = 1_777_000_000_000_000_000
FOCUS = "where is fly_kestrel, and which port is decided?"
DEEP = "how often did the user name the port of staging?"
PROJECT = {
    "pyproject.toml": '[project]\nname = "aviary"\ndependencies = ["numpy"]\n',
    "README.md": "# Aviary\n\nKestrels fly here. Run `make fly`.\n\n## Ports\n\nStaging: 5433.\n",
    "aviary/__init__.py": '"""Birds that fly, and the cages that they come back to."""\n',
    "aviary/kestrel.py": (
        "from aviary.cage import Cage\n\n\ndef fly_kestrel(speed):\n"
        '    """Fly at this speed, then home."""\n    Cage().open()\n    return speed\n'
    ),
    "aviary/cage.py": 'class Cage:\n    """Where a bird sleeps."""\n\n    def open(self): ...\n',
    "tests/test_kestrel.py": "from aviary.kestrel import fly_kestrel\n\n\ndef test_fly(): ...\n",
}


def write_project(root: Path) -> Path:
    """Lay the small project into a folder."""
    for name, text in PROJECT.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    for place in (root, *root.rglob("*")):
        os.utime(place, ns=(_WRITTEN, _WRITTEN))
    return root


class Script:
    """A model that finds, counts and answers by programs that stand here."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, messages: Sequence[Any]) -> str:
        """The next reply: facts for an extraction, else a search and its answer."""
        self.asked.append("\n".join(message.text for message in messages))
        last = messages[-1].text
        if "lasting" in messages[0].text and "JSON" in messages[0].text:
            return json.dumps([{"fact": "Staging listens on port 5433.", "turns": [0]}])
        if "Output:" not in last:
            return '```python\nhits = search("port of staging", limit=5)\nprint(len(hits))\n```'
        return '```python\nsubmit("Twice.", [hits[0]["id"]])\n```'


def play(memory: Any, project: Path, folder: Path, record: Recording, under: str) -> None:
    """Call everything, and record what each call answers or raises."""

    def call(name: str, function: Callable[[], Any]) -> Any:
        return record.keep_call(f"{under}/{name}", function)

    _conversations(memory, call)
    _memories(memory, call)
    _documents(memory, call)
    _projects(memory, project, call)
    _deep(memory, call)
    _home(memory, folder, call)


Call = Callable[[str, Callable[[], Any]], Any]


def _conversations(memory: Any, call: Call) -> None:
    threads = memory.conversations
    for number, text in enumerate(
        ("The staging database listens on port 5433.", "Port 5433 again?", "Yes.", "  ")
    ):
        call(f"append {number}", partial(threads.append_user, "chat", text))
    call("append assistant", lambda: threads.append_assistant("chat", "Noted.", intent_id="i1"))
    call("append speaker", lambda: threads.append("chat", "user", "Tea at noon.", speaker="Mara"))
    call("append blank id", lambda: threads.append_user("", "x"))
    call("import", lambda: memory.import_(EXAMPLE / "conversation.json"))
    call("import again", lambda: memory.import_(EXAMPLE / "conversation.json"))
    call("import nothing", lambda: memory.import_(EXAMPLE / "README.md", format="nope"))
    call("list", threads.list)
    call("recent", lambda: threads.recent("chat", 3))
    call("get", lambda: threads.get("chat"))
    call("get none", lambda: threads.get("nobody"))
    call("title", lambda: threads.set_title("chat", "Ports"))
    call("redact", lambda: threads.redact("chat", 1))
    call("append elsewhere", lambda: threads.append_user("gone", "A thread that goes."))
    call("delete", lambda: threads.delete("gone"))
    call("delete again", lambda: threads.delete("gone"))
    call("problems", threads.problems)
    # What is written in the background is waited for: scores depend on whether it has been.
    call("turns ready", lambda: memory.ready(60))
    questions = json.loads((EXAMPLE / "questions.json").read_text())
    for one in questions if isinstance(questions, list) else questions["questions"]:
        asked = one["question"]
        for mode in ("hybrid", "words", "vector"):
            call(
                f"turns {mode}: {asked}",
                partial(memory.recall_conversation, None, asked, top_k=10, mode=mode),
            )
    call("turns of one", lambda: memory.recall_conversation("chat", "which port?", budget=20))
    call("turns excluded", lambda: memory.recall_conversation("chat", "tea", exclude=["Yes."]))
    call("turns blank", lambda: memory.recall_conversation("chat", " "))


def _memories(memory: Any, call: Call) -> None:
    from anaphora import NewMemory

    first = call(
        "remember",
        lambda: memory.remember(
            "The user prefers vitest over jest.",
            path="user.testing",
            payload={"framework": "vitest", "since": 2026, "share": 0.75},
            tags=["testing"],
            category="development",
            source="chat",
        ),
    )
    call("remember again", lambda: memory.remember("The user prefers vitest over jest."))
    call("supersede", lambda: memory.remember("The user prefers pytest.", path="user.testing"))
    call("near", lambda: memory.remember("The user really prefers vitest over jest, always."))
    call("derived", lambda: memory.remember("Vitest runs in watch mode.", parent=first.id))
    call("secret", lambda: memory.remember("The key is ghp_" + "a1B2c3D4e5F6" * 3 + "."))
    call("bad type", lambda: memory.remember("x", type="nope"))
    call("blank", lambda: memory.remember("  "))
    turns = [f"The turbine number {n} is cooled by water from the lake." for n in range(30)]
    call("many", lambda: [memory.remember(t, type="episodic", tags=[t[20:22]]) for t in turns])
    items = [NewMemory(f"Lake {n} is {n} metres deep.", payload={"n": n}) for n in range(5)]
    call("many at once", lambda: memory.remember_many(items))
    call("memories ready", lambda: memory.ready(60))
    for mode in ("hybrid", "words", "vector"):
        for asked in ("which test framework does the user prefer?", "turbine 7", "zebra"):
            call(
                f"memories {mode}: {asked}",
                partial(memory.recall, asked, top_k=8, mode=mode, explain=True),
            )
    call("filtered", lambda: memory.recall("preferences", filters=FILTER, min_score=0.1))
    call("bad filter", lambda: memory.recall("x", filters={"nope": {"contains": 1}}))
    call("get memory", lambda: memory.get(first.id))
    call("get unknown", lambda: memory.get("nobody"))
    call("history", lambda: memory.history("user.testing"))
    page = call("listed", lambda: memory.list(limit=5))
    call("listed on", lambda: memory.list(limit=5, cursor=page.cursor))
    call("update", lambda: memory.update(first.id, tags=["testing", "changed"]))
    call("update text", lambda: memory.update(first.id, text="The user prefers vitest."))
    told = call("conflicting", lambda: memory.remember("The office is in Graz."))
    other = call("conflict", lambda: memory.remember("The office is in Vienna now."))
    ends = other.id, told.id
    call("contradictions", memory.contradictions)
    call("settle", lambda: memory.settle_contradiction(*ends, "replaces"))
    call("settled", lambda: memory.contradictions(settled=True))
    call("settle twice", lambda: memory.settle_contradiction(*ends, "wrong"))
    call("reopen", lambda: memory.reopen_contradiction(*ends))
    _core_block(memory, call, first.id, other.id)
    call("forget soft", lambda: memory.forget(filters={"tags": {"contains": "13"}}, soft=True))
    call("forget", lambda: memory.forget(filters={"tags": {"contains": "14"}}))
    call("forget none", memory.forget)
    gone = call("forget undoable", lambda: memory.forget(told.id, undoable=True))
    call("forget dry", lambda: memory.forget(told.id, dry_run=True))
    call("undo", lambda: memory.undo_forget(gone.ids[0]))
    call("redact memories dry", lambda: memory.redact_memories(dry_run=True))
    call("redact memories", memory.redact_memories)
    call("resolve", lambda: memory.resolve_id(told.id[-8:]))
    call("notes", memory.notes)
    call("diary", memory.diary)
    call("tool calls", lambda: memory.tool_calls("nobody"))
    call("note session", lambda: memory.note_session(["nobody"], client="codex"))


def _core_block(memory: Any, call: Call, first: str, other: str) -> None:
    call("pin", lambda: memory.pin(other))
    call("pin first", lambda: memory.pin(first, 1))
    call("unpin", lambda: memory.unpin(other))
    call("core block", memory.core_block)
    call("audit", lambda: memory.audit.status())  # noqa: PLW0108 - the client refuses the attribute


def _documents(memory: Any, call: Call) -> None:
    page = b"# Herons\n\nThe heron waits.\n\n## Food\n\nIt eats fish.\n"
    added = call("document", lambda: memory.add_document(page, name="heron.md"))
    call("documents", memory.documents)
    call("document again", lambda: memory.document(added.document.id))
    call("sections", lambda: memory.document_sections(added.document.id))
    call("versions", lambda: memory.document_history("heron.md"))
    call("file", lambda: memory.document_file(added.document.id))


def _projects(memory: Any, project: Path, call: Call) -> None:
    call("index", lambda: memory.index_project(project, name="aviary"))
    call("index again", lambda: memory.index_project(project, name="aviary"))
    call("index nowhere", lambda: memory.index_project(project / "nowhere"))
    old = call("observe", lambda: memory.observe("fly_kestrel is slow.", kind="code_insight"))
    call(
        "observe on",
        lambda: memory.observe(
            "fly_kestrel takes the port 5433.", kind="decision", importance=5, supersedes=old.id
        ),
    )
    call("write diary", lambda: memory.write_diary("Flew the kestrel twice.", subject="flights"))
    call("projects", memory.projects)
    call("map", lambda: memory.project_map("aviary"))
    call("map within", lambda: memory.project_map("aviary", within="aviary"))
    for asked in (FOCUS, "continue the flights", "tests of fly_kestrel", "why was it before", "??"):
        for full in (False, True):
            call(
                f"package {full}: {asked}",
                partial(memory.recall_context, asked, include_sources=full),
            )
    call("package small", lambda: memory.recall_context(FOCUS, budget=150))
    call("package refused", lambda: memory.recall_context(FOCUS, budget=1))
    for kinds in (("memory", "note", "turn", "file"), ("tool_call",)):
        call(f"search {kinds[0]}", partial(memory.search, FOCUS, kinds=kinds))
    call("search nobody's", lambda: memory.search(FOCUS, project="nobody's"))
    call("warm up", memory.warm_up)
    call("warm up topic", lambda: memory.warm_up("kestrel", project="aviary"))
    call("same project", lambda: memory.same_project(str(project), str(project)))
    other = memory.scoped("aside")
    call("index aside", lambda: other.index_project(project, name="aside", embed=False))
    call("remove", lambda: other.remove_project("aside"))
    call("remove again", lambda: other.remove_project("aside"))


def _deep(memory: Any, call: Call) -> None:
    call("deep", lambda: memory.deep_recall(DEEP, scope="all_sessions"))
    call("deep again", lambda: memory.deep_recall(DEEP, scope="all_sessions"))
    call(
        "deep one",
        lambda: memory.deep_recall(DEEP, scope="current_session", conversation_id="chat"),
    )
    call("deep bad", lambda: memory.deep_recall("", scope="nope"))
    call("gaps", lambda: memory.gaps(None))
    call("extract", lambda: memory.extract("chat"))
    call("extract none", lambda: memory.extract("nobody"))
    call("end session", lambda: memory.end_session("chat"))
    call("jobs", memory.run_jobs)
    call("dream", lambda: memory.dream(model=False))
    traces = call("traces", memory.traces)
    call("trace", lambda: memory.trace(traces[0].id))


def _home(memory: Any, folder: Path, call: Call) -> None:
    call("ready", lambda: memory.ready(60))
    call("stats", memory.stats)
    call("namespaces", memory.namespaces)
    token = call("token", lambda: memory.tokens.create("reader", read_only=True))
    call("tokens", lambda: memory.tokens.list())  # noqa: PLW0108 - the client refuses the attribute
    call("sync", lambda: memory.sync.status())  # noqa: PLW0108 - the client refuses the attribute
    call("mirror", lambda: memory.mirror.status())  # noqa: PLW0108 - the client refuses the attribute
    call("hosted logs", lambda: memory.hosted_logs.heads("nobody"))
    call("token revoked", lambda: memory.tokens.revoke(token.token.id))
    call("export", lambda: memory.export(folder / "export.jsonl"))
    call("exported", (folder / "export.jsonl").read_bytes)
    call("import export", lambda: memory.scoped("other").import_(folder / "export.jsonl"))
    call("other", lambda: memory.scoped("other").list(limit=100))
    call("other ready", lambda: memory.scoped("other").ready(60))
    call("backup", lambda: memory.backup(folder / "home.backup"))
    call("delete namespace", lambda: memory.delete_namespace("other"))
    call("delete namespace again", lambda: memory.delete_namespace("other"))
    call("namespaces left", memory.namespaces)
