"""Plays the week: each hook is the command that `anaphora setup` wrote, run as the client does.

All lies in one folder: the user's home, the memory, two repositories. Where the agent `stores`,
each session has a memory server beside it, and facts go there as tool calls.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from bench.hooks import residents, started_server
from bench.measuring import memory_of, processor_time, size_of, user_environment
from tools.week.clock import MovedClock
from tools.week.story import Prompt, Session
from tools.week.transcripts import Transcript

from anaphora import Memory

PROGRAM: Final = str(Path(sys.executable).with_name("anaphora"))
CONFIGURATION: Final[Mapping[str, str]] = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
}
"""Where each client's hooks stand, under the user's folder."""
_PROMPTS: Final = {"gemini": "BeforeAgent"}
_QUIET: Final = 0.5
_LONGEST: Final = 60.0
_BARE: Final = 15
_ASKED_HITS: Final = 8


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What a hook printed for the agent, how many seconds it took, and its exit code."""

    text: str
    seconds: float
    code: int


@dataclass(frozen=True, slots=True)
class Block:
    """What a session was given unasked, at its start or after a compaction.

    `held` are the texts that `recall` found for the story's questions and the block's lines at that
    moment, each with whether it was told as what holds; `next_prompt` is what came with the prompt
    after it.
    """

    session: Session
    kind: Literal["start", "restore"]
    text: str
    held: Mapping[str, bool]
    next_prompt: str = ""


@dataclass(slots=True)
class Played:
    """What came of a week: what each session and each prompt was given, and what it cost.

    `memory` is in MB, `home` and `transcripts` in bytes, `bare` the seconds in which the bare
    interpreter starts.
    """

    starts: list[tuple[Session, HookAnswer]] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    prompts: list[tuple[Session, Prompt, HookAnswer]] = field(default_factory=list)
    others: list[HookAnswer] = field(default_factory=list)
    incidents: list[str] = field(default_factory=list)
    memory: float = 0.0
    home: int = 0
    transcripts: int = 0
    bare: float = 0.0


class WeekPlayer:
    """Plays sessions in the folder `root`, which is empty before. `stores`: facts are stored."""

    def __init__(self, root: Path, *, stores: bool) -> None:
        self._root = root
        self._stores = stores
        self._clock = MovedClock(root)
        self._user = root / "user"
        self._environ = {
            **user_environment(root),
            **self._clock.variables,
            "XDG_DATA_HOME": str(root / "data"),
            "TZ": "UTC",
        }
        # The home is where the program puts it by itself.
        del self._environ["ANAPHORA_HOME"]
        self._hooks: dict[str, Mapping[str, str]] = {}
        self._asked: dict[str, list[str]] = {}

    def play(self, sessions: Sequence[Session]) -> Played:
        """The whole week. Processes that it started are ended."""
        played = Played()
        self._clock.set(sessions[0].at)
        for session in sessions:
            asked = self._asked.setdefault(session.project, [])
            asked += [prompt.text for prompt in session.prompts if prompt.expected.needs]
        for client in sorted({session.client for session in sessions}):
            self._set_up(client)
        try:
            for session in sessions:
                self._play(session, played)
            self._measure(played)
        finally:
            for process in residents(self._environ):
                os.kill(process, signal.SIGTERM)
        return played

    def _set_up(self, client: str) -> None:
        subprocess.run(
            [PROGRAM, "setup", client, "--yes"],
            env=self._environ,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        written = json.loads((self._user / CONFIGURATION[client]).read_text("utf-8"))
        self._hooks[client] = {
            event: groups[0]["hooks"][0]["command"] for event, groups in written["hooks"].items()
        }

    def _play(self, session: Session, played: Played) -> None:
        project = self._root / "code" / session.project
        if not project.exists():
            project.mkdir(parents=True)
            subprocess.run(["git", "init", "-q", str(project)], check=True)
        self._clock.set(session.at)
        transcript = Transcript(session, self._user, project)
        common = {
            "session_id": transcript.id,
            "transcript_path": str(transcript.path),
            "cwd": str(project),
        }
        start = self._hook(session.client, "SessionStart", common | {"source": "startup"})
        played.starts.append((session, start))
        held = self._find_held(session, project, start.text, session.at)
        began = Block(session, "start", start.text, held)
        given: list[str] = []
        server = started_server(self._environ, str(project)) if self._stores else None
        for prompt in session.prompts:
            self._clock.set(prompt.at)
            event = _PROMPTS.get(session.client, "UserPromptSubmit")
            answer = self._hook(session.client, event, common | {"prompt": prompt.text})
            played.prompts.append((session, prompt, answer))
            given.append(answer.text)
            transcript.add(prompt, answer.text)
            for fact in prompt.facts if server else ():
                assert server is not None
                server.call("store_memory", {"content": fact})
            if "Stop" in self._hooks[session.client]:
                played.others.append(self._hook(session.client, "Stop", common))
        if server is not None:
            server.finish()
        played.blocks.append(replace(began, next_prompt=given[0]))
        if session.client == "claude-code":
            self._hook(session.client, "PreCompact", common | {"trigger": "auto"})
            lost = self._hook(session.client, "SessionStart", common | {"source": "compact"})
            held = self._find_held(session, project, lost.text, session.prompts[-1].at)
            played.blocks.append(Block(session, "restore", lost.text, held))
        if not session.crashes and "SessionEnd" in self._hooks[session.client]:
            ended = common | {"reason": "prompt_input_exit"}
            played.others.append(self._hook(session.client, "SessionEnd", ended))
        self._wait_until_quiet()

    def _find_held(
        self, session: Session, project: Path, block: str, now: datetime
    ) -> dict[str, bool]:
        """What recall says at this moment, by its texts: whether each is what holds."""
        held: dict[str, bool] = {}
        lines = [line[2:] for line in block.splitlines() if line.startswith("- ")]
        home = self._root / "data" / "anaphora"
        with Memory.open(home, clock=lambda: now) as memory:
            for question in (*self._asked[session.project], *lines):
                found = memory.search(
                    question,
                    kinds=("memory", "turn"),
                    directory=str(project),
                    top_k=_ASKED_HITS,
                    min_confidence=0.0,
                    read=0,
                    budget=1 << 30,
                )
                for hit in found.hits:
                    held[hit.text] = held.get(hit.text, True) and hit.current
        return held

    def _hook(self, client: str, event: str, fields: Mapping[str, str]) -> HookAnswer:
        line = self._hooks[client].get(event)
        if line is None:
            raise ValueError(f"{client} has no hook for {event}")
        began = time.perf_counter()
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            input=json.dumps({"hook_event_name": event, **fields}).encode(),
            env=self._environ,
            cwd=fields["cwd"],
            capture_output=True,
            check=False,
        )
        seconds = time.perf_counter() - began
        printed: dict[str, Any] = json.loads(done.stdout) if done.stdout.strip() else {}
        text = str(printed.get("hookSpecificOutput", {}).get("additionalContext", ""))
        return HookAnswer(
            text, seconds, done.returncode if not done.stderr else done.returncode or 1
        )

    def _wait_until_quiet(self) -> None:
        """Until the resident process has done what was left to do after a session."""
        end, before = time.monotonic() + _LONGEST, -1
        while time.monotonic() < end:
            spent = sum(map(processor_time, residents(self._environ)))
            if spent == before:
                return
            before = spent
            time.sleep(_QUIET)

    def _measure(self, played: Played) -> None:
        played.memory = max(
            (memory_of("VmRSS", process) for process in residents(self._environ)), default=0.0
        )
        played.home = size_of(self._root / "data")
        played.transcripts = sum(
            size_of(self._user / name, "**/*.jsonl") for name in (".claude", ".codex", ".gemini")
        )
        log = [path for path in (self._root / "state").rglob("*") if path.is_file()]
        played.incidents = [
            line for path in log for line in path.read_text("utf-8", "replace").splitlines()
        ]
        bare = []
        for _ in range(_BARE):
            began = time.perf_counter()
            command = [sys.executable, "-I", "-c", "pass"]
            subprocess.run(command, env=self._environ, check=True)
            bare.append(time.perf_counter() - began)
        played.bare = sorted(bare)[_BARE // 2]
