"""The world of one page: a folder, a home and an environment in which its blocks are run in order.

In: blocks. Out: what they printed. Commands of the program and blocks of Python run where
`Programs` says: in this process, so that a page costs one interpreter, or in an environment of its
own, as in tools/gate. Everything else runs in a shell.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tests.docs.pages import Block, shown_as_pattern

from anaphora.testing import run_cli

__all__ = ["ROOT", "InProcess", "Programs", "Shown", "World", "commands"]

ROOT = Path(__file__).resolve().parents[2]
CLOSE = 0.02
"""Decimal numbers may differ by so much: processors round differently."""

_CHANGING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "…"),
    (re.compile(r"anaphora_[0-9a-f]{64}"), "anaphora_…"),
    (re.compile(r"\b\d+\.\d+ s\b"), "… s"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?"), "…"),
)
_PROGRAMS = frozenset(
    ("anaphora", "curl", "ls", "cat", "python", "rm", "cp", "mkdir", "echo", "mv", "printf", "grep")
)
_SHELL = re.compile(r"[|<>;&$`]")


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a console block, what the page shows of its output, and where that stands."""

    line: str
    shown: str | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page shows, what was printed, and where in the page the first stands."""

    shown: str
    printed: str
    place: tuple[int, int]

    @property
    def trouble(self) -> str:
        """Why the two do not agree; nothing where they do."""
        pattern, numbers = shown_as_pattern(self.shown)
        match = pattern.fullmatch(self.plain)
        if match is None:
            return f"the page shows\n{self.shown}\nand this was printed:\n{self.plain}"
        for said, found in zip(numbers, match.groups(), strict=True):
            if abs(said - float(found)) > CLOSE:
                return f"the page shows {said} where {found} was printed:\n{self.plain}"
        return ""

    @property
    def plain(self) -> str:
        """What was printed, white space at the ends of lines left out."""
        lines = [line.rstrip() for line in self.printed.strip("\n").split("\n")]
        return "\n".join(lines) + "\n"

    @property
    def renewed(self) -> str:
        """What the page should show: what changes from run to run left open."""
        text = self.plain
        for pattern, instead in _CHANGING:
            text = pattern.sub(instead, text)
        return text


def commands(text: str) -> list[Command]:
    """The commands of a console block: every line, or what stands behind `$ ` with its output."""
    found: list[Command] = []
    prompted = any(line.startswith("$ ") for line in text.split("\n"))
    at = 0
    lines: list[tuple[str, int, int]] = []
    for line in text.splitlines(keepends=True):
        lines.append((line, at, at + len(line)))
        at += len(line)
    number = 0
    while number < len(lines):
        line, _, end = lines[number]
        number += 1
        if not line.strip() or (prompted and not line.startswith("$ ")):
            continue
        said = line.removeprefix("$ ").rstrip("\n")
        while said.endswith("\\") and number < len(lines):
            more, _, end = lines[number]
            said = said[:-1].rstrip() + " " + more.strip()
            number += 1
        begin, until = end, end
        while prompted and number < len(lines) and not lines[number][0].startswith("$ "):
            until = lines[number][2]
            number += 1
        shown = text[begin:until] if prompted and text[begin:until].strip() else None
        found.append(Command(said, shown, begin, until))
    return found


class Programs(Protocol):
    """Where the program's commands and blocks of Python run."""

    @property
    def bin(self) -> Path:
        """The folder of the program and its interpreter."""

    def command(self, words: list[str]) -> tuple[int, str, str]:
        """The exit code of a command of the program, its output and its standard error."""

    def python(self, text: str, name: str) -> str:
        """What a block of Python prints; the names of earlier blocks are known in it."""

    def close(self) -> None:
        """End what was begun."""


class InProcess:
    """Commands and blocks in this process."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {}

    @property
    def bin(self) -> Path:
        return Path(sys.executable).parent

    def command(self, words: list[str]) -> tuple[int, str, str]:
        return _in_process(words)

    def python(self, text: str, name: str) -> str:
        out = io.StringIO()
        code = compile(text, name, "exec", dont_inherit=True)
        with redirect_stdout(out):
            exec(code, self._names)
        return out.getvalue()

    def close(self) -> None:
        """Close memories that the page left open."""
        with ExitStack() as after:
            for value in self._names.values():
                if hasattr(value, "close") and type(value).__module__ == "anaphora.api.memory":
                    after.callback(value.close)


@dataclass
class World:
    """A folder with the examples, a home, an environment. `instead` are words put for others.

    In `first` a shell looks for programs before it does where those of the page are.
    """

    folder: Path
    instead: dict[str, str] = field(default_factory=dict)
    programs: Programs = field(default_factory=InProcess)
    source: Path = ROOT
    first: Path | None = None
    left_over: list[subprocess.Popen[str]] = field(default_factory=list)

    @contextmanager
    def entered(self, home: str | None = "home") -> Iterator[World]:
        """The process stands in the folder, with the page's own environment, until the end.

        Without `home` the memory is where it is for a new user.
        """
        shutil.copytree(self.source / "examples", self.folder / "examples")
        user = self.folder / "user"
        user.mkdir()
        before = dict(os.environ)
        where = Path.cwd()
        os.environ.update(
            {
                "HOME": str(user),
                "XDG_CONFIG_HOME": str(user / ".config"),
                **({} if home is None else {"ANAPHORA_HOME": str(self.folder / home)}),
                "PATH": ":".join(
                    [
                        *([str(self.first)] if self.first else []),
                        str(self.programs.bin),
                        before["PATH"],
                    ]
                ),
                "COLUMNS": "100",
                "TZ": "UTC",
            }
        )
        for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
            os.environ.pop(name, None)
        os.chdir(self.folder)
        try:
            yield self
        finally:
            self._end()
            os.chdir(where)
            os.environ.clear()
            os.environ.update(before)

    def run(self, block: Block, offset: int) -> Iterator[Shown]:
        """Run one block; what it shows and what it printed. `offset` is where its text begins."""
        if block.note == "not run" or (block.language == "text" and not block.note):
            return
        if block.note == "save":
            self._path(block.said).parent.mkdir(parents=True, exist_ok=True)
            self._path(block.said).write_text(self._put(block.text), encoding="utf-8")
        elif block.note == "file":
            yield Shown(block.text, self._back(self._path(block.said).read_text("utf-8")), (0, 0))
        elif block.language == "console":
            yield from self._console(block, offset)
        elif block.language == "python":
            printed = self._python(block)
            _must_print(block, printed)
            if block.output is not None:
                yield Shown(block.output, printed, block.output_at)
        elif block.language in {"json", "toml", "sql"}:
            known: dict[str, Callable[[str], object]]
            known = {"json": json.loads, "toml": tomllib.loads, "sql": self._sql}
            known[block.language](block.text)
        else:
            raise AssertionError(f"line {block.line}: nobody knows how to run {block.language}")

    def _sql(self, text: str) -> None:
        """Run statements in the database of the page, each by itself."""
        import psycopg

        url = os.environ["ANAPHORA_DATABASE"].replace("+psycopg", "")
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in text.split(";"):
                if statement.strip():
                    connection.execute(statement.encode())

    def _console(self, block: Block, offset: int) -> Iterator[Shown]:
        expected = int(block.said) if block.note == "exit" else 0
        whole = ""
        for command in commands(block.text):
            code, printed = self._command(self._put(command.line))
            whole += printed
            assert code == expected, f"{command.line}: exit code {code}\n{printed}"
            if command.shown is not None:
                place = (offset + command.start, offset + command.end)
                yield Shown(command.shown, printed, place)
        _must_print(block, whole)

    def _command(self, line: str) -> tuple[int, str]:
        words = shlex.split(line, comments=True)
        known = {"pip": self._pip, "uv": self._pip, "make": self._make, "export": self._export}
        if words[0] in known:
            known[words[0]](words)
            return 0, ""
        if words[0] == "anaphora" and "serve" in words and line.endswith("&"):
            return 0, self._served(words[:-1])
        if words[0] == "anaphora" and words[1:2] == ["mcp"] and line.endswith("&"):
            return 0, self._served(words[:-1])
        if words[0] == "anaphora" and words[-2:-1] == [">"]:
            # Here, not in a shell: the page's keychain is in this process.
            code, printed, said = self.programs.command(words[:-2])
            Path(words[-1]).write_text(printed, "utf-8")
            return code, self._back(said)
        if words[0] == "anaphora" and not _SHELL.search(_unquoted(line)):
            code, printed, said = self.programs.command(words)
            return code, self._back(printed + said)
        assert words[0] in _PROGRAMS, f"cannot run {line}"
        done = subprocess.run(
            ["bash", "-c", line], capture_output=True, text=True, check=False, timeout=60
        )
        return done.returncode, self._back(done.stdout + done.stderr)

    def _served(self, words: list[str]) -> str:
        """A server in the background, on a free port that stands for the one it is said to have."""
        at = words.index("--http") if "--http" in words else -1
        if at > 0:
            usual = words[at + 1]
            words[at + 1] = "127.0.0.1:0"
        else:
            usual = "127.0.0.1:7411"
            words += ["--port", "0"]
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.left_over.append(process)
        assert process.stdout is not None
        said = process.stdout.readline()
        match = re.search(r"http://([\w.]+:\d+)", said)
        assert match, said
        self.instead[usual] = match[1]
        return self._back(said)

    def _python(self, block: Block) -> str:
        return self._back(self.programs.python(self._put(block.text), f"line {block.line}"))

    def _pip(self, words: list[str]) -> None:
        """What is installed must be there to be installed: this project, with extras it has."""
        assert "install" in words[1:3], words
        project = tomllib.loads((self.source / "pyproject.toml").read_text("utf-8"))["project"]
        for word in words[2:]:
            for extra in re.findall(r"\[([^\]]*)\]", word):
                for name in extra.split(","):
                    assert name in project["optional-dependencies"], f"there is no extra {name}"

    def _make(self, words: list[str]) -> None:
        makefile = (self.source / "Makefile").read_text("utf-8")
        for word in words[1:]:
            if "=" not in word:
                target = re.search(rf"^{word}:", makefile, re.MULTILINE)
                assert target, f"no such target: {word}"

    def _export(self, words: list[str]) -> None:
        name, _, value = " ".join(words[1:]).partition("=")
        if value.startswith("$(anaphora ") and value.endswith(")"):
            os.environ[name] = self.programs.command(shlex.split(value[2:-1]))[1].rstrip("\n")
            return
        for word in words[1:]:
            name, _, value = word.partition("=")
            os.environ[name] = value

    def _put(self, text: str) -> str:
        for word, other in self.instead.items():
            text = text.replace(word, other)
        return text

    def _back(self, text: str) -> str:
        for word, other in self.instead.items():
            text = text.replace(other, word)
        text = text.replace(str(self.folder / "user"), "/home/you")
        text = text.replace(str(self.programs.bin), "/home/you/.venv/bin")
        return text.replace(str(self.folder), "/home/you/work")

    def _path(self, said: str) -> Path:
        place = Path(said)
        return Path.home() / place.relative_to("~") if said.startswith("~") else place

    def _end(self) -> None:
        """End what the page began: servers, and memories that it left open."""
        with ExitStack() as after:
            after.callback(self.programs.close)
            for process in self.left_over:
                process.terminate()
                process.wait(30)
                if process.stdout is not None:
                    process.stdout.close()


def _in_process(words: list[str]) -> tuple[int, str, str]:
    """The exit code of a command of the program, what it printed, and what it said beside."""
    kept = {"ANAPHORA_EMBEDDER": os.environ.get("ANAPHORA_EMBEDDER")}
    done = run_cli(*words[1:], env=kept)
    return done.exit_code, done.stdout, done.stderr


def _must_print(block: Block, printed: str) -> None:
    """What the block says that it prints stands in its output, in this order."""
    at = 0
    for words in block.said.split(";") if block.note == "prints" else ():
        position = printed.find(words.strip(), at)
        assert position >= 0, f"line {block.line}: {words.strip()!r} is not printed:\n{printed}"
        at = position + len(words.strip())


def _unquoted(line: str) -> str:
    return re.sub(r"'[^']*'|\"[^\"]*\"", "", line)
