"""A process of which every call into the file system is seen, refused, cut short or its last.

In: a `Zygote` (a process that has imported everything and forks for each run), a job for it, the
folder whose files matter, and a `Fault`. Out: a `Run`: the calls that touched the folder, in order
and with the bytes that they wrote, what the job said, and how it ended. The kernel stops the
process at each call (seccomp, SECCOMP_RET_USER_NOTIF) until this side has answered: no thread of
it can slip past, nothing has to be installed, and no right is needed that a plain user lacks.
Linux 5.6 or newer, x86_64 and aarch64; `Unsupported` says so elsewhere.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

__all__ = [
    "CHANGES",
    "READS",
    "Call",
    "Fault",
    "Run",
    "Unsupported",
    "Zygote",
    "listen",
]

ROOT = Path(__file__).resolve().parents[2]
MARK = b"mark:"
_SECONDS = 90.0

# include/uapi/linux/seccomp.h, audit.h; asm/unistd.h of the two architectures.
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
# include/uapi/linux/fs.h: two names trade places.
_EXCHANGE = 2
_PIDFD_OPEN, _PIDFD_GETFD = 434, 438
_NUMBERS: dict[str, dict[str, int]] = {
    "x86_64": {
        "read": 0,
        "write": 1,
        "open": 2,
        "pread64": 17,
        "pwrite64": 18,
        "readv": 19,
        "writev": 20,
        "sendfile": 40,
        "fsync": 74,
        "fdatasync": 75,
        "truncate": 76,
        "ftruncate": 77,
        "rename": 82,
        "mkdir": 83,
        "rmdir": 84,
        "creat": 85,
        "link": 86,
        "unlink": 87,
        "openat": 257,
        "mkdirat": 258,
        "unlinkat": 263,
        "renameat": 264,
        "linkat": 265,
        "fallocate": 285,
        "pwritev": 296,
        "renameat2": 316,
        "copy_file_range": 326,
    },
    "aarch64": {
        "mkdirat": 34,
        "unlinkat": 35,
        "linkat": 37,
        "renameat": 38,
        "truncate": 45,
        "ftruncate": 46,
        "fallocate": 47,
        "openat": 56,
        "read": 63,
        "write": 64,
        "readv": 65,
        "writev": 66,
        "pread64": 67,
        "pwrite64": 68,
        "pwritev": 70,
        "sendfile": 71,
        "fsync": 82,
        "fdatasync": 83,
        "renameat2": 276,
        "copy_file_range": 285,
    },
}
READS = frozenset(("read", "pread64", "readv"))
CHANGES = frozenset(_NUMBERS["x86_64"]) - READS
_OPENS = frozenset(("open", "openat", "creat"))
_WRITES = frozenset(("write", "pwrite64", "writev", "pwritev"))
_AT_CWD = 0xFFFFFF9C
_MASK32 = 0xFFFFFFFF

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_NOTE = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_CONTINUE = 1


class Unsupported(RuntimeError):
    """This kernel, or what surrounds this process, lets no process watch another's calls."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call that touched the folder. `path` is relative to it; `other` the second path.

    `offset` and `data` say where and what was written; `size` is a length that was set, or how
    much was copied. `made` says that an opening made the file, `cut` that it emptied it.
    """

    name: str
    path: str
    other: str = ""
    offset: int = 0
    data: bytes = b""
    size: int = 0
    made: bool = False
    cut: bool = False
    failed: bool = False

    @property
    def writes(self) -> bool:
        """Whether bytes of a file change."""
        return self.name in _WRITES or self.name in {"copy_file_range", "sendfile"}

    @property
    def syncs(self) -> bool:
        """Whether it waits for the disk."""
        return self.name in {"fsync", "fdatasync"}


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at the call number `at` (from 0) among those that `hits`.

    `error` is returned by it (and, if `lasting`, by all later ones that `hits`); `short` carries
    half of a write out first and returns its length; `kill` ends the process there instead, before
    the call or, with `short`, after half of it. `meanwhile` is called while the process stands
    still there, as a suspended one does; the call goes on after it.
    """

    at: int
    hits: Callable[[Call], bool]
    error: int = 0
    lasting: bool = False
    short: bool = False
    kill: bool = False
    meanwhile: Callable[[], object] | None = None


@dataclass(slots=True)
class Run:
    """The calls between the marks "begin" and "end", each mark and the number of calls before it.

    `struck` are the calls that were refused, cut short or the last. `said` is what the job gave
    with its last mark, `status` what the process ended with (negative: a signal), `hung` whether
    it had to be ended.
    """

    calls: list[Call] = field(default_factory=list)
    marks: list[tuple[str, int]] = field(default_factory=list)
    struck: list[Call] = field(default_factory=list)
    said: dict[str, Any] = field(default_factory=dict)
    status: int | None = None
    hung: bool = False

    def point(self, mark: str) -> int | None:
        """How many calls came before a mark; None when it was not reached."""
        return next((at for name, at in self.marks if name == mark), None)


def listen(names: Sequence[str]) -> int:
    """Stop this process, and what it starts, at these calls; the descriptor to answer them by."""
    machine = os.uname().machine
    if sys.platform != "linux" or machine not in _ARCHITECTURES:
        raise Unsupported(f"not on {sys.platform} {machine}")
    numbers = [_NUMBERS[machine][name] for name in names if name in _NUMBERS[machine]]
    steps = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, _ARCHITECTURES[machine]), (_RETURN, 0, 0, _ALLOW)]
    steps += [(_LOAD, 0, 0, 0)]
    for number in numbers:
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _NOTIFY)]
    steps += [(_RETURN, 0, 0, _ALLOW)]
    program = b"".join(struct.pack("=HBBI", *step) for step in steps)
    kept = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("@HP", len(steps), ctypes.addressof(kept))
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(38, 1, 0, 0, 0):
        raise Unsupported("no_new_privs was refused")
    found = int(library.syscall(_SECCOMP[machine], 1, 1 << 3, head))
    if found < 0:
        raise Unsupported(f"seccomp: {os.strerror(ctypes.get_errno())}")
    return found


class Zygote:
    """A process that forks for each job, so that a run costs no start of an interpreter."""

    def __init__(self, script: Path, *arguments: str) -> None:
        environ = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("ANAPHORA_", "NEO_", "SOVSEAL_"))
        }
        paths = [str(ROOT), str(ROOT / "src"), environ.get("PYTHONPATH", "")]
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, str(script), str(theirs.fileno()), *arguments],
            pass_fds=(theirs.fileno(),),
            env=environ,
        )
        theirs.close()
        if self._socket.recv(100) != b"ready":
            raise Unsupported("the process that forks did not start")

    def __enter__(self) -> Zygote:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._process.wait(timeout=30)

    def run(
        self,
        job: dict[str, Any],
        folder: Path,
        fault: Fault | None = None,
        *,
        names: frozenset[str] = CHANGES,
        ignore: Sequence[str] = (),
        begun: Callable[[], object] | None = None,
    ) -> Run:
        """Do a job in a new process; see `Run`. Calls below a path in `ignore` are not seen.

        `begun` is called at the mark "begin", while the process stands still.
        """
        self._socket.send(json.dumps({"names": sorted(names), **job}).encode())
        said, descriptors, _, _ = socket.recv_fds(self._socket, 1000, 1)
        if not descriptors:
            raise Unsupported(said.decode())
        listener = descriptors[0]
        watch = _Watch(int(said), listener, folder, fault, tuple(ignore))
        watch.begun = begun
        try:
            watch.until_end(self._socket)
        finally:
            os.close(listener)
        return watch.run


class _Watch:
    """Answers the calls of one process."""

    def __init__(
        self, pid: int, listener: int, folder: Path, fault: Fault | None, ignore: tuple[str, ...]
    ) -> None:
        self.run = Run()
        self._pid = pid
        self._listener = listener
        self._folder = os.path.realpath(folder)
        self._fault = fault
        self._ignore = ignore
        self._names = {n: name for name, n in _NUMBERS[os.uname().machine].items()}
        self._seen = 0
        self._on = False
        self.begun: Callable[[], object] | None = None

    def until_end(self, ended: socket.socket) -> None:
        """Answer until the process has ended and its parent has said how."""
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        poll.register(ended, select.POLLIN)
        deadline = time.monotonic() + _SECONDS
        while True:
            ready = dict(poll.poll(1000))
            if ready.get(self._listener, 0) & select.POLLIN:
                self._one()
            elif ended.fileno() in ready:
                self.run.status = int(ended.recv(100))
                return
            elif self._listener in ready:
                poll.unregister(self._listener)
            if time.monotonic() > deadline and not self.run.hung:
                self.run.hung = True
                os.kill(self._pid, signal.SIGKILL)

    def _one(self) -> None:
        note = bytearray(_NOTE.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, note)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.EINTR}:
                return  # It was killed, or the call was interrupted, before we looked.
            raise
        identity, thread, _, number, _, _, *arguments = _NOTE.unpack(note)
        value, failed = 0, 0
        call = None
        with suppress(OSError):
            call = self._understood(self._names[number], thread, arguments)
        if call is not None:
            value, failed = self._decide(call, thread, arguments)
        flags = 0 if value or failed else _CONTINUE
        with suppress(OSError):
            fcntl.ioctl(self._listener, _SEND, _ANSWER.pack(identity, value, -failed, flags))

    def _decide(self, call: Call, thread: int, arguments: list[int]) -> tuple[int, int]:
        """What the call returns, and the error that it fails with; nothing: it goes on."""
        fault = self._fault
        if fault is None or not fault.hits(call):
            self.run.calls.append(call)
            return 0, 0
        number, self._seen = self._seen, self._seen + 1
        if number < fault.at or (number > fault.at and not fault.lasting):
            self.run.calls.append(call)
            return 0, 0
        self.run.struck.append(call)
        if fault.meanwhile is not None:
            fault.meanwhile()
            self.run.calls.append(call)
            return 0, 0
        if fault.error and not fault.short:
            self.run.calls.append(replace(call, failed=True))
        done = 0
        if fault.short and number == fault.at and len(call.data) > 1:
            done = self._half(call, arguments)
        if fault.kill:
            os.kill(self._pid, signal.SIGKILL)
        return (done, 0) if done else (0, fault.error)

    def _half(self, call: Call, arguments: list[int]) -> int:
        """Carry out half of a write through the process's own descriptor."""
        library = ctypes.CDLL(None, use_errno=True)
        process = os.pidfd_open(self._pid)
        target = arguments[2] if call.name == "copy_file_range" else arguments[0]
        mine = int(library.syscall(_PIDFD_GETFD, process, target & _MASK32, 0))
        os.close(process)
        if mine < 0:
            raise Unsupported(f"pidfd_getfd: {os.strerror(ctypes.get_errno())}")
        half = call.data[: len(call.data) // 2]
        try:
            written = (
                os.pwrite(mine, half, call.offset)
                if call.name.startswith("pwrite")
                else os.write(mine, half)
            )
        finally:
            os.close(mine)
        self.run.calls.append(replace(call, data=half[:written], size=0))
        return written

    def _understood(self, name: str, thread: int, arguments: list[int]) -> Call | None:
        """The call, if it touches the folder between the marks."""
        if name in READS | _WRITES | {"fsync", "fdatasync", "ftruncate", "fallocate"}:
            return self._of_descriptor(name, thread, arguments)
        if name in {"copy_file_range", "sendfile"}:
            return self._of_copy(name, thread, arguments)
        return self._of_names(name, thread, arguments) if self._on else None

    def _of_descriptor(self, name: str, thread: int, arguments: list[int]) -> Call | None:
        path = _linked(f"/proc/{thread}/fd/{arguments[0] & _MASK32}")
        if path == "/dev/null" and name == "write":
            self._marked(self._bytes(thread, arguments[1], arguments[2]))
            return None
        inside = self._inside(path)
        if inside is None or not self._on:
            return None
        if name in {"ftruncate", "fallocate"}:
            size = arguments[1] if name == "ftruncate" else arguments[2] + arguments[3]
            return Call(name, inside, size=size)
        if name not in _WRITES:
            return Call(name, inside)
        at = arguments[3] if name.startswith("p") else self._position(thread, arguments[0])
        if name.endswith("v"):
            data = self._vector(thread, arguments[1], arguments[2])
        else:
            data = self._bytes(thread, arguments[1], arguments[2])
        return Call(name, inside, offset=at, data=data)

    def _of_copy(self, name: str, thread: int, arguments: list[int]) -> Call | None:
        one, two = (0, 2) if name == "copy_file_range" else (1, 0)
        source = self._inside(_linked(f"/proc/{thread}/fd/{arguments[one] & _MASK32}"))
        target = self._inside(_linked(f"/proc/{thread}/fd/{arguments[two] & _MASK32}"))
        if source is None or target is None or not self._on:
            return None
        pointer = arguments[1] if name == "copy_file_range" else arguments[2]
        if pointer:
            start = int.from_bytes(self._bytes(thread, pointer, 8), sys.byteorder)
        else:
            start = self._position(thread, arguments[one])
        whole = Path(self._folder, source).read_bytes()
        wanted = arguments[4] if name == "copy_file_range" else arguments[3]
        data = whole[start : start + wanted]
        at = self._position(thread, arguments[two])
        return Call(name, target, source, offset=at, data=data, size=len(data)) if data else None

    def _of_names(self, name: str, thread: int, arguments: list[int]) -> Call | None:
        if name in {"rename", "link"}:
            pairs = [(_AT_CWD, arguments[0]), (_AT_CWD, arguments[1])]
        elif name in {"renameat", "renameat2", "linkat"}:
            pairs = [(arguments[0], arguments[1]), (arguments[2], arguments[3])]
        elif name in {"openat", "mkdirat", "unlinkat"}:
            pairs = [(arguments[0], arguments[1])]
        else:
            pairs = [(_AT_CWD, arguments[0])]
        absolute = [self._absolute(thread, *pair) for pair in pairs]
        paths = [self._inside(path) for path in absolute]
        if paths[-1] is None:
            return None
        plain = {"renameat": "rename", "renameat2": "rename", "linkat": "link"}.get(name, name)
        if name == "renameat2" and arguments[4] & _EXCHANGE:
            plain = "exchange"
        if plain in {"rename", "link", "exchange"}:
            return Call(plain, paths[0] or absolute[0], paths[1] or "")
        if name in _OPENS:
            return self._opening(name, paths[-1], Path(absolute[-1]), arguments)
        if name == "unlinkat":
            plain = "rmdir" if arguments[2] & 0x200 else "unlink"
        if name == "truncate":
            return Call(name, paths[-1], size=arguments[1])
        return Call(plain.removesuffix("at"), paths[-1])

    def _opening(self, name: str, inside: str, path: Path, arguments: list[int]) -> Call:
        flags = {"open": arguments[1], "openat": arguments[2]}.get(name, os.O_CREAT | os.O_TRUNC)
        there = path.exists()
        made = bool(flags & os.O_CREAT) and not there
        writes = flags & (os.O_WRONLY | os.O_RDWR)
        return Call("open", inside, made=made, cut=bool(flags & os.O_TRUNC and writes and there))

    def _marked(self, data: bytes) -> None:
        if not data.startswith(MARK):
            return
        name, _, rest = data[len(MARK) :].decode().partition(":")
        if name == "begin":
            self._on = True
            if self.begun is not None:
                self.begun()
        if name == "over":
            self._fault = None
        if rest:
            self.run.said = json.loads(rest)
        self.run.marks.append((name, len(self.run.calls)))
        if name == "end":
            self._on = False

    def _inside(self, path: str) -> str | None:
        """The path relative to the folder; None for what is not in it, or of no interest."""
        if path == self._folder:
            return "."
        if not path.startswith(self._folder + "/") or path.endswith(" (deleted)"):
            return None
        relative = path[len(self._folder) + 1 :]
        if any(relative == one or relative.startswith(one + "/") for one in self._ignore):
            return None
        return relative

    def _absolute(self, thread: int, directory: int, address: int) -> str:
        memory = self._bytes(thread, address, 4096, at_most=True)
        path = os.fsdecode(memory.split(b"\0", 1)[0])
        if not path.startswith("/"):
            if directory & _MASK32 == _AT_CWD:
                above = _linked(f"/proc/{thread}/cwd")
            else:
                above = _linked(f"/proc/{thread}/fd/{directory & _MASK32}")
            path = f"{above}/{path}"
        return os.path.normpath(path)

    def _position(self, thread: int, descriptor: int) -> int:
        known = Path(f"/proc/{thread}/fdinfo/{descriptor & _MASK32}").read_text()
        facts = dict(line.split(":", 1) for line in known.splitlines() if ":" in line)
        if int(facts["flags"], 8) & os.O_APPEND:
            return Path(f"/proc/{thread}/fd/{descriptor & _MASK32}").stat().st_size
        return int(facts["pos"])

    def _bytes(self, thread: int, address: int, count: int, *, at_most: bool = False) -> bytes:
        with Path(f"/proc/{thread}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            if not at_most:
                return memory.read(count)
            # A path may end just before memory that is not there.
            page = 4096 - address % 4096
            data = memory.read(min(count, page))
            if b"\0" not in data and page < count:
                with suppress(OSError):
                    data += memory.read(count - page)
            return data

    def _vector(self, thread: int, address: int, count: int) -> bytes:
        table = self._bytes(thread, address, 16 * count)
        pairs = struct.iter_unpack("=QQ", table)
        return b"".join(self._bytes(thread, base, size) for base, size in pairs)


def _linked(place: str) -> str:
    return os.readlink(place)  # noqa: PTH115 - called at every call; Path is slower
