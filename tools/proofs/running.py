"""Running chosen tests on a tree, in the environment of this Python with the tree's source first.

The environment is a virtual one that borrows every package of this Python's and has no other of
its own, so that the programs which tests start, without `PYTHONPATH` too, use the tree's source.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tools.proofs.changes import environment_without_git

CONFIGURATION = ".proofs.toml"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a test, or of a file that could not be collected."""

    state: str
    """`passed`, `failed`, `skipped`, `slow` (stopped at its limit)."""
    why: str = ""


@dataclass(slots=True)
class Results:
    """The outcomes of a run."""

    tests: dict[str, Outcome] = field(default_factory=dict)
    """Id of a test with its parameters → outcome."""
    files: dict[str, tuple[bool, str]] = field(default_factory=dict)
    """File that could not be collected → whether names of ours are missing, and the error."""
    out_of_time: bool = False
    broken: str = ""
    """Why nothing ran at all."""

    def blocked(self, test: str) -> tuple[bool, str] | None:
        """Why a test did not even begin, and whether for want of a name of ours."""
        path = PurePosixPath(test.partition("::")[0])
        for part in (path, *path.parents):
            if str(part) in self.files:
                return self.files[str(part)]
        if self.broken:
            # A file of the tests that is imported before all others.
            return "MissingFeature: " in self.broken, self.broken
        return None

    def of(self, test: str) -> dict[str, Outcome]:
        """The outcomes of a test for each of its parameters."""
        return {
            name: outcome
            for name, outcome in self.tests.items()
            if name == test or name.startswith((f"{test}[", f"{test}::"))
        }


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop: the end of everything (of the monotonic clock), and seconds for a test."""

    end: float
    test_seconds: float

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.end - time.monotonic()

    def part(self, share: float) -> Limits:
        """The same, ending after a share of what is left."""
        return Limits(time.monotonic() + share * self.left, self.test_seconds)


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment for a tree."""

    folder: Path
    tree: Path
    tests: str
    source: str

    @classmethod
    def make(cls, folder: Path, tree: Path, tests: str, source: str) -> Environment:
        """Make it: the tree's source, then the packages of this Python, and their programs."""
        venv.EnvBuilder(symlinks=os.name != "nt", with_pip=False).create(folder)
        environment = cls(folder, tree, tests, source)
        plugin = folder / "plugin"
        plugin.mkdir()
        shutil.copy(Path(__file__).with_name("recorder.py"), plugin / "proofs_recorder.py")
        names = {"base": str(folder), "platbase": str(folder)}
        borrowed = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
        lines = [str(plugin), str(tree / source)]
        lines += [f"import site; site.addsitedir({packages!r})" for packages in borrowed]
        packages = Path(sysconfig.get_path("purelib", "venv", vars=names))
        (packages / "proofs.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
        if sys.prefix != sys.base_prefix and os.name != "nt":
            environment._borrow_programs()
        return environment

    @property
    def programs(self) -> Path:
        """The folder of its programs."""
        return self.folder / ("Scripts" if os.name == "nt" else "bin")

    def _borrow_programs(self) -> None:
        """Link the programs of this Python; those that name it in their text name this one."""
        folder = Path(sysconfig.get_path("scripts"))
        old, new = os.fsencode(folder), os.fsencode(self.programs)
        for program in folder.iterdir():
            target = self.programs / program.name
            if target.exists() or not program.is_file():
                continue
            content = program.read_bytes()
            if content.startswith(b"#!") and old in content:
                target.write_bytes(content.replace(old, new))
                shutil.copymode(program, target)
            else:
                target.symlink_to(program)

    def run(self, tests: Sequence[str], limits: Limits) -> Results:
        """Run tests, given by their ids without parameters."""
        task, record, output = (self.folder / name for name in ("task", "record", "output"))
        record.write_text("", encoding="utf-8")
        content = {
            "tests": list(tests),
            "folder": str(self.tree / self.tests),
            "packages": sorted(set(self._packages())),
            "record": str(record),
        }
        task.write_text(json.dumps(content), encoding="utf-8")
        files = sorted({test.partition("::")[0] for test in tests})
        with output.open("wb") as sink:
            process = subprocess.Popen(
                [self.programs / "python", "-m", "pytest", *self._options(limits), *files],
                cwd=self.tree,
                env=self._environ(task),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            out_of_time = False
            try:
                process.wait(max(limits.left, 0.1))
            except subprocess.TimeoutExpired:
                out_of_time = True
            finally:
                _end(process)
        results = Results(out_of_time=out_of_time)
        _read(record.read_text("utf-8").splitlines(), results)
        if not (out_of_time or results.tests or results.files):
            results.broken = _last_line(output.read_text("utf-8", "replace"))
        return results

    def _packages(self) -> Iterator[str]:
        """What the tree itself offers to be imported: from its source folder and its root."""
        for folder in {self.tree / self.source, self.tree}:
            for entry in folder.iterdir() if folder.is_dir() else ():
                name = entry.stem if entry.suffix == ".py" else entry.name
                if name.isidentifier() and name != Path(self.tests).parts[0]:
                    yield name

    def _options(self, limits: Limits) -> list[str]:
        options = ["-q", "-n", "0", "-p", "proofs_recorder", "-p", "no:randomly"]
        options += ["-p", "no:cacheprovider", "--hypothesis-seed=0"]
        options += [f"--timeout={limits.test_seconds:g}", "--continue-on-collection-errors"]
        if (self.tree / CONFIGURATION).exists():
            options += ["-c", CONFIGURATION, "--rootdir", str(self.tree)]
        return options

    def _environ(self, task: Path) -> dict[str, str]:
        environ = environment_without_git()
        for name in [name for name in environ if name.startswith(("PYTHON", "PYTEST"))]:
            del environ[name]
        return {
            **environ,
            "PROOFS_TASK": str(task),
            "VIRTUAL_ENV": str(self.folder),
            "PATH": os.pathsep.join((str(self.programs), os.environ.get("PATH", ""))),
        }


def _read(lines: list[str], results: Results) -> None:
    """Read what the plugin recorded."""
    for line in lines:
        event = json.loads(line)
        if event["event"] == "test":
            slow = event["outcome"] == "failed" and event["why"].startswith("Failed: Timeout (>")
            state = "slow" if slow else event["outcome"]
            results.tests[event["test"]] = Outcome(state, event["why"])
        elif event["event"] == "file":
            results.files[event["file"] or "."] = (event["missing"], event["why"])


def _last_line(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "pytest printed nothing"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a run, and the programs that its tests started."""
    if os.name == "nt":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
