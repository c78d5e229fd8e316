"""Law 8: every surface, a reopened home and another process give the same first hit and marks."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

from tools.laws.asking import Told, tell_statements
from tools.laws.homes import NOW, Lane, Statement
from tools.laws.trial import Trial, law

from anaphora import Memory

SHOWN: Final = 6
"""Hits whose marks are compared."""
PATIENCE: Final = 120
_COMMANDS: Final[Mapping[Lane, tuple[str, ...]]] = {
    "memories": ("memory", "recall"),
    "turns": ("conversation", "recall"),
}
_TOOLS: Final[Mapping[Lane, str]] = {"memories": "recall_memory", "turns": "recall_conversation"}
_KINDS: Final[Mapping[Lane, str]] = {"memories": "memory", "turns": "turn"}


@dataclass(frozen=True, slots=True)
class Shown:
    """A hit as a surface shows it: its id, and whether it is marked as older than another one."""

    id: str
    current: bool


Answer = tuple[Shown, ...]


@law(
    "every surface, a reopened home and another process give the same first hit and marks",
    "surfaces-search",
    "surfaces-reopened",
    kinds=("plain", "changes"),
)
def check_here(trial: Trial) -> None:
    """The search over everything, and a second opening of the home."""
    told = trial.told
    for question in trial.questions():
        expected = ask_facade(told.memory, trial.lane, question.text)
        searched = ask_search(told.memory, trial.lane, question.text)
        _compare(trial, "surfaces-search", question.text, expected, searched)
        with Memory.open(
            told.memory.home,
            namespace=told.memory.namespace,
            embedder=trial.asker.embedder,
            clock=lambda: NOW,
            warm=False,
        ) as again:
            reopened = ask_facade(again, trial.lane, question.text)
        _compare(trial, "surfaces-reopened", question.text, expected, reopened)


@law(
    "the command line, MCP and the hooks' block are other processes, and say the same",
    "surfaces-command",
    "surfaces-mcp",
    "surfaces-hooks",
    kinds=("plain", "changes"),
    slow=True,
)
def check_processes(trial: Trial) -> None:
    """Keep the home by the real clock, as programs have no other, and ask each of them."""
    with tempfile.TemporaryDirectory(prefix="anaphora-laws-") as folder:
        root = Path(folder)
        environ = _environment(root)
        questions = [question.text for question in trial.questions()]
        with Memory.open(root / "memory", embedder=trial.asker.embedder, warm=False) as memory:
            told = Told(memory, trial.lane, _shifted(trial.home.statements), trial.told.read)
            tell_statements(told)
            assert memory.ready(PATIENCE)
            expected = [ask_facade(memory, trial.lane, text) for text in questions]
            blocks = [memory.search(text, kinds=("memory", "turn")) for text in questions]
        for text, answer in zip(questions, expected, strict=True):
            answered = ask_command(root / "memory", environ, trial.lane, text)
            _compare(trial, "surfaces-command", text, answer, answered)
        with (root / "server.log").open("w") as log:
            served = asyncio.run(_ask_served(root / "memory", environ, trial.lane, questions, log))
        for text, answer, answered in zip(questions, expected, served, strict=True):
            _compare(trial, "surfaces-mcp", text, answer, answered)
        for text, found in zip(questions, blocks, strict=True):
            block = ask_hook(root, environ, text)
            first = found.hits[0].snippet if found.hits else ""
            reason = ""
            if block and first not in block[0]:
                reason = f"the block begins with {block[0]!r}, the search with {first!r}"
            trial.judge("surfaces-hooks", text, reason)


def ask_facade(memory: Memory, lane: Lane, question: str) -> Answer:
    """The lane's own answer."""
    if lane == "memories":
        hits = memory.recall(question, top_k=SHOWN, min_confidence=0.0)
        return tuple(Shown(hit.id, hit.current) for hit in hits)
    turns = memory.recall_conversation(
        None, question, top_k=SHOWN, budget=10**6, min_confidence=0.0
    )
    return tuple(Shown(f"{hit.conversation_id}#{hit.index}", hit.current) for hit in turns)


def ask_search(memory: Memory, lane: Lane, question: str) -> Answer:
    """The search over everything, which has only this lane to search."""
    found = memory.search(question, top_k=SHOWN, budget=10**6, min_confidence=0.0)
    return tuple(Shown(hit.id, hit.current) for hit in found if hit.kind == _KINDS[lane])


def ask_command(home: Path, environ: Mapping[str, str], lane: Lane, question: str) -> Answer:
    """The command line's answer."""
    words = [*_COMMANDS[lane], question, "--json", "--min-confidence", "0", "-k", str(SHOWN)]
    if lane == "turns":
        words += ["--budget", "1000000"]
    done = subprocess.run(
        [sys.executable, "-m", "anaphora", "--home", str(home), *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
        env=dict(environ),
    )
    return tuple(_read(json.loads(done.stdout)["hits"]))


async def _ask_served(
    home: Path, environ: Mapping[str, str], lane: Lane, questions: Sequence[str], log: TextIO
) -> list[Answer]:
    """The answers of the server of the Model Context Protocol; what it logs goes into `log`."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    start = StdioServerParameters(
        command=sys.executable,
        args=["-m", "anaphora", "--home", str(home), "mcp", "--tools", "all"],
        env=dict(environ),
    )
    answers = []
    async with stdio_client(start, errlog=log) as streams, ClientSession(*streams) as session:
        await session.initialize()
        for question in questions:
            arguments: dict[str, Any] = {"query": question, "topK": SHOWN, "minConfidence": 0}
            if lane == "turns":
                arguments["budget"] = 100_000
            result = await session.call_tool(_TOOLS[lane], arguments)
            content = getattr(result, "structured_content", None)
            assert isinstance(content, dict), result
            answers.append(tuple(_read(content["data"])))
    return answers


def ask_hook(root: Path, environ: Mapping[str, str], prompt: str) -> list[str]:
    """The lines of the block that a coding agent is given with a prompt."""
    event = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "laws",
        "cwd": str(root),
        "transcript_path": str(root / "none.jsonl"),
        "permission_mode": "default",
        "prompt": prompt,
    }
    done = subprocess.run(
        [sys.executable, "-m", "anaphora", "hook", "claude-code"],
        input=json.dumps(event),
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
        env={**environ, "ANAPHORA_HOME": str(root / "memory")},
    )
    if not done.stdout.strip():
        return []
    text = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
    return [line for line in text.splitlines() if line.startswith("- ")]


def _read(hits: Iterable[Mapping[str, Any]]) -> Iterable[Shown]:
    for hit in hits:
        key = hit["id"] if "id" in hit else f"{hit['conversation_id']}#{hit['index']}"
        yield Shown(key, hit.get("current", True))


def _compare(trial: Trial, name: str, question: str, expected: Answer, answer: Answer) -> None:
    marks = {hit.id: hit.current for hit in expected}
    reason = ""
    if [hit.id for hit in expected[:1]] != [hit.id for hit in answer[:1]]:
        reason = f"the first hit is {answer[:1]}, and not {expected[:1]}"
    elif differing := [hit for hit in answer if marks.get(hit.id, hit.current) != hit.current]:
        reason = f"other marks: {differing}"
    trial.judge(name, question, reason)


def _shifted(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The same distances to the machine's clock as to that of the other trials."""
    by = datetime.now(UTC) - NOW
    return tuple(replace(statement, at=statement.at + by) for statement in statements)


def _environment(root: Path) -> dict[str, str]:
    for name in ("home", "state", "run"):
        (root / name).mkdir(mode=0o700)
    return {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(root / "home"),
        "XDG_STATE_HOME": str(root / "state"),
        "XDG_RUNTIME_DIR": str(root / "run"),
        "ANAPHORA_RESIDENT": "0",
        "ANAPHORA_READER": "off",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
