"""The command line: every command with `--json`, what doctor says, a session of each hook client.

In: an empty folder. Out: exit code, standard output and standard error of each command, in the
recording. Each command runs in a child of this process, which has the fixed clock and randomness.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.hooks.hook_desk import CLIENTS, write_transcript
from tools.golden.fixed import move_time
from tools.golden.recording import Recording
from tools.golden.scenario import EXAMPLE, write_project

__all__ = ["CommandLine", "diagnose_damage", "play_commands", "play_hooks"]

PATIENCE_SECONDS = 120
SESSIONS = (
    "11111111-aaaa-4bbb-8ccc-000000000001",
    "22222222-aaaa-4bbb-8ccc-000000000002",
    "33333333-aaaa-4bbb-8ccc-000000000003",
)
FACT = "The staging database of the ferry shop listens on port 5439, Rafi moved it there."
RULE = "Never commit to main without a review, always open a pull request."
QUESTION = "Which port is the staging database of the ferry shop on?"
IMPORTED_ONCE = (
    "anaphora.api.memory",
    "anaphora.surfaces.cli.app",
    "anaphora.features.coding_agents.hooks.session",
    "numpy",
    "sqlalchemy",
)
"""What nearly every command needs: children that share it start in a tenth of the time."""
THREAD = "claude_ai_8aa490fe-8cae-4a50-9a1c-2bd1dcd71fa6"
"""A conversation of the example that is imported."""
ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b")


class CommandLine:
    """The command `anaphora` in one user's folders, each call recorded by its name."""

    def __init__(self, folder: Path, record: Recording, under: str) -> None:
        self._folder = folder
        self._record = record
        self._under = under
        for module in IMPORTED_ONCE:
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        for name in ("user", "run", "state"):
            (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        self.environment = {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "COLUMNS": "100",
            "HOME": str(folder / "user"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "XDG_STATE_HOME": str(folder / "state"),
            "ANAPHORA_HOME": str(folder / "home"),
            "ANAPHORA_RESIDENT": "0",
            "ANAPHORA_READER": "off",
            "ANAPHORA_EMBEDDER": "hashing",
            "PYTHONPATH": os.environ["PYTHONPATH"],
        }

    def run(self, name: str, words: Sequence[object], stdin: str = "", **extra: str) -> str:
        """Run `anaphora WORDS`, record what came of it, and return its standard output."""
        move_time(minutes=5)
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as output,
            tempfile.TemporaryFile() as errors,
        ):
            given.write(stdin.encode())
            given.seek(0)
            child = os.fork()
            if child == 0:
                for target, stream in enumerate((given, output, errors)):
                    os.dup2(stream.fileno(), target)
                _become([str(word) for word in words], self.environment | extra, self._folder)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            output.seek(0)
            errors.seek(0)
            printed, complained = output.read().decode(), errors.read().decode()
        self._record.keep(
            f"{self._under}/{name}",
            {"code": code, "output": _parsed(printed), "errors": complained},
        )
        return printed


def _become(words: list[str], environment: dict[str, str], folder: Path) -> None:
    # What never ends is killed: its exit code is recorded as any other.
    signal.alarm(PATIENCE_SECONDS)
    code = 70
    try:
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.argv = ["anaphora", *words]
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        from anaphora.surfaces.cli import main

        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _parsed(printed: str) -> Any:
    """Standard output as JSON where it is that, or as lines that are, or as lines."""
    with contextlib.suppress(ValueError):
        return json.loads(printed)
    lines = printed.splitlines()
    with contextlib.suppress(ValueError):
        return [json.loads(line) for line in lines]
    return lines


def play_commands(line: CommandLine, folder: Path) -> None:
    """Every command that answers by itself, with `--json` and without."""

    def both(*words: object) -> str:
        """Run with `--json`, then for a reader; return what the first printed."""
        name = " ".join(map(str, words)).replace(str(folder), "<work>")
        printed = line.run(f"{name} --json", [*words, "--json"])
        line.run(name, words)
        return printed

    project = write_project(folder / "aviary")
    (folder / "heron.md").write_text("# Herons\n\nThe heron waits.\n\n## Food\n\nIt eats fish.\n")
    os.utime(folder / "heron.md", (1_777_000_000, 1_777_000_000))
    (folder / "passphrase").write_text("a heron waits\n")
    (folder / "remote").mkdir()
    for option in ("", "--help", "--version", "nope", "recall"):
        line.run(f"anaphora {option}", option.split())
    for command in ("stats", "doctor", "recall port"):
        line.run(f"{command} of nothing", command.split())
    first = _play_memories(both)
    _play_threads(both, folder)
    for words in (
        ("core", "add", "Answer in German."),
        ("core", "pin", first),
        ("core", "show"),
        ("core", "move", first, 1),
        ("core", "unpin", first),
        ("document", "add", folder / "heron.md"),
        ("document", "list"),
        ("document", "show", "heron.md"),
        ("project", "index", project),
        ("project", "list"),
        ("project", "recall", "where is fly_kestrel?"),
        ("project", "warm-up"),
        ("observe", "fly_kestrel is slow.", "--kind", "code_insight"),
        ("notes",),
        ("diary", "Flew the kestrel twice."),
        ("diary",),
        ("project", "same", project, project),
        ("project", "apart", project, project),
        ("project", "remove", project),
        ("audit", "on"),
        ("audit", "status"),
        ("remember", "The audit sees this."),
        ("audit", "show"),
        ("audit", "verify"),
        ("audit", "off"),
        ("namespace", "list"),
        ("namespace", "access"),
        ("token", "create", "reader"),
        ("token", "list"),
        ("token", "own"),
        ("token", "revoke", "nothing"),
        ("deep", "how often was the port named?"),
        ("gaps",),
        ("dream",),
        ("extract", THREAD),
        ("redact-memories",),
        ("export", folder / "export.jsonl"),
        ("backup", folder / "home.backup"),
        ("restore", folder / "home.backup"),
        ("mirror", "init", folder / "vault"),
        ("mirror", "now"),
        ("mirror", "status"),
        ("mirror", "leave"),
        ("sync", "init", folder / "remote"),
        ("sync", "now"),
        ("sync", "status"),
        ("sync", "key"),
        ("sync", "devices"),
        ("sync", "verify"),
        ("sync", "compact"),
        ("sync", "rollback", "2026-05-01T09:30", "--dry-run"),
        ("sync", "remove", "nothing", "--yes"),
        ("sync", "open", folder / "passphrase"),
        ("sync", "fork"),
        ("sync", "leave"),
        ("stats",),
        ("doctor",),
        ("encrypt",),
        ("encrypt", "--kept", "file"),
        ("key", "export", "--passphrase-file", folder / "passphrase"),
        ("key", "import", folder / "none.json"),
        # What has no vector yet would depend on how fast the machine is.
        ("--home", folder / "home", "reindex"),
        ("recall", "what does the user drink today?"),
        ("key", "rotate"),
        ("decrypt",),
        ("conversation", "delete", THREAD),
        ("namespace", "delete", "default"),
    ):
        both(*words)
    line.run("document file", ["document", "file", "heron.md", folder / "copy.md"])
    both("document", "forget", "heron.md")
    for client in ("claude-code", "codex", "gemini", "cursor", "vscode", "nope"):
        both("setup", client, "--dry-run")


def _play_memories(both: Callable[..., str]) -> str:
    """Store, change, contradict and forget memories; return the id of the first."""

    def first_id(printed: str) -> str:
        return next(iter(ID.findall(printed)), "none")

    first = first_id(both("remember", "The user drinks tea.", "--path", "user.drink"))
    both("remember", "The user drinks coffee.", "--path", "user.drink")
    graz = first_id(both("remember", "The office is in Graz."))
    vienna = first_id(both("remember", "The office is in Vienna now."))
    both("remember", "The key is ghp_" + "a1B2c3D4e5F6" * 3 + ".")
    both("remember", "  ")
    for words in (
        ("get", first),
        ("get", "nothing"),
        ("update", first, "--category", "kitchen"),
        ("history", "user.drink"),
        ("list",),
        ("contradictions",),
        ("settle", vienna, graz, "--as", "replaces"),
        ("reopen", vienna, graz),
        ("forget", first, "--dry-run"),
        ("forget", first),
        ("undo-forget", first),
    ):
        both(*words)
    return first


def _play_threads(both: Callable[..., str], folder: Path) -> None:
    """Import conversations, search everything, redact a turn."""
    both("import", EXAMPLE / "conversation.json")
    both("import", folder / "none.json")
    both("conversation", "import", EXAMPLE / "conversation.json")
    both("conversation", "list")
    both("conversation", "show", THREAD)
    both("conversation", "show", "none")
    both("reindex")
    for question in ("which port is staging on?", "what does the user drink?", "tea on monday", ""):
        for command in (("recall",), ("memory", "recall"), ("conversation", "recall")):
            both(*command, question)
    both("conversation", "redact", THREAD, 1)
    both("conversation", "redact", THREAD, 9999)
    both("conversation", "delete", "none")


def diagnose_damage(line: CommandLine, folder: Path) -> None:
    """What doctor says of homes that are damaged, one kind of damage each."""
    home = folder / "home"
    for name, path, content in (
        ("thread", home / "conversations" / "torn.json", b'{"id": "torn", "turns": ['),
        ("known thread", home / "conversations" / f"{THREAD}.json", b'{"id": '),
        ("index", home / "index" / "junk", b"\x00" * 16),
        ("database", home / "anaphora.db", b"SQLite format 3\x00" + b"\xff" * 200),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_bytes() if path.exists() else None
        path.write_bytes(content)
        line.run(f"doctor {name} damaged", ["doctor"])
        line.run(f"doctor {name} damaged --json", ["doctor", "--json"])
        line.run(f"recall {name} damaged", ["recall", "tea"])
        if before is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(before)
    line.run("doctor unknown embedder", ["doctor"], ANAPHORA_EMBEDDER="nope")
    line.run("doctor no endpoint", ["doctor"], ANAPHORA_EMBEDDER="http://127.0.0.1:9/v1")


def play_hooks(folder: Path, record: Recording) -> None:
    """Three sessions of each client: a fact is stated, comes back, and a compaction is survived."""
    for client in CLIENTS:
        line = CommandLine(folder / client, record, f"hook {client}")
        (folder / client / "shop").mkdir()
        for number, session in enumerate(SESSIONS):
            _play_session(line, folder / client, client, session, number)
        line.run("broken", ["hook", client], "{")
        line.run("nothing", ["hook", client], "")
        line.run("all", ["list", "--json"])
        line.run("threads", ["conversation", "list", "--json"])
        line.run("doctor", ["doctor"])


def _play_session(line: CommandLine, folder: Path, client: str, session: str, number: int) -> None:
    events = CLIENTS[client]
    project, transcript = folder / "shop", folder / "transcripts" / f"{session}.jsonl"
    texts = [FACT, RULE, "The berth is called Ada."][: 2 + (number > 0)]
    write_transcript(client, transcript, session, project, texts)
    # A client whose lines have no times is dated by its file.
    os.utime(transcript, (1_777_000_000 + number, 1_777_000_000 + number))

    def send(event: str, step: str, **fields: Any) -> None:
        message = {
            **events["common"],
            "session_id": session,
            "cwd": str(project),
            "conversation_id": session,
            "workspace_roots": [str(project)],
            "transcript_path": str(transcript),
            "hook_event_name": events[event],
            **fields,
            **events.get(f"{event}_fields", {}),
        }
        line.run(f"{number} {step}", ["hook", client], json.dumps(message))

    send("start", "start", source="startup", is_background_agent=False)
    for at, prompt in enumerate((QUESTION, QUESTION, "rename foo to bar", "weiter", "")):
        send("prompt", f"prompt {at}", prompt=prompt)
    send("compact", "compact")
    send("start", "after compaction", source="compact")
    send("prompt", "prompt after", prompt="how do we get changes into main?")
    send("end", "end")
