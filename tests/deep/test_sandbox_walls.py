"""Each outer wall holds alone: a Python program with no interpreter around it is kept in as well.

The program is this Python, started by the same launchers as the sandbox, with its library added to
what may be read. A wall that does not stand on this machine is skipped, and said so.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from anaphora.features.deep.checks import sandbox_checks
from anaphora.features.deep.sandbox import confine
from anaphora.features.deep.sandbox.base import SandboxLimits
from anaphora.features.deep.sandbox.monty import MontyEngine, Watchdog
from anaphora.features.deep.sandbox.walls import OUTER, Launcher, Outer, detect

CANARY = "canary-51c0de-of-the-host"
PYTHON = Path(sys.executable).resolve()
LIBRARY = Path(os.__file__).resolve().parent
MEBIBYTE = 1024 * 1024
HERE = tuple(one for one in OUTER if one != "seatbelt")

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="walls of Linux"),
    pytest.mark.internal,
]


def launcher(outer: Outer) -> Launcher:
    """Starts Python behind one wall."""
    found = Launcher(PYTHON, outer, (LIBRARY,))
    if found.standing.outer != outer:
        missing = next(w.detail for w in found.standing.walls if not w.active)
        pytest.skip(f"{outer} does not stand here: {missing}")
    return found


def tries(outer: Outer, code: str, memory: int = 64 * MEBIBYTE) -> str:
    """What a piece of Python prints behind a wall: "got …" if it gets its way, else "no …"."""
    program = (
        "import os, sys\ntry:\n    got = (" + code + ")\n    print('got', got)\n"
        "except BaseException as error:\n    print('no', type(error).__name__)\n"
    )
    started_by = launcher(outer)
    done = subprocess.run(
        [started_by.path(memory), "-I", "-S", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"ANAPHORA_CANARY": CANARY, "PATH": "/usr/bin:/bin"},
    )
    # A filter or a limit may end the program instead of refusing: that is a "no" as well.
    return done.stdout.strip() or f"no exit {done.returncode}"


READS = {
    "a file of the user": "open('SECRET').read()",
    "the passwords": "open('/etc/passwd').read()",
    "the list of a folder": "os.listdir('HOME')",
    "the root": "sorted({'bin', 'boot', 'etc', 'mnt', 'tmp', 'var'} & {*os.listdir('/')})[0]",
    "its own environment": "open('/proc/self/environ').read()",
    "processes": "[n for n in os.listdir('/proc') if n.isdecimal()][0]",
    "the terminal": "os.open('/dev/tty', os.O_RDWR)",
}
ACTS = {
    "a file in the temporary folder": "os.open('/tmp/anaphora-x', os.O_CREAT | os.O_WRONLY)",
    "a file beside the secret": "os.open('HOME/x', os.O_CREAT | os.O_WRONLY)",
    "the file itself": "os.open('SECRET', os.O_WRONLY)",
    "removing a file": "os.unlink('SECRET')",
    "a new process": "os.fork()",
    "another program": "os.execv('/bin/sh', ['sh', '-c', 'echo got'])",
    "a spawned program": "os.posix_spawn('/bin/true', ['true'], {})",
    "a socket": "__import__('_socket').socket(2, 1)",
    "a datagram socket": "__import__('_socket').socket(2, 2)",
    "a unix socket": "__import__('_socket').socket(1, 1)",
    "a pair of sockets": "__import__('_socket').socketpair()",
    "a signal to the host": "os.kill(PARENT, 0)",
    "changing the root": "os.chroot('/')",
}


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    place = tmp_path / "secret.txt"
    place.write_text(CANARY)
    return place


@pytest.mark.promise("sandbox.walls")
@pytest.mark.parametrize("outer", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("what", [*READS, *ACTS])
def test_nothing_of_the_machine_is_reached(outer: Outer, what: str, secret: Path) -> None:
    """Behind namespaces, and behind Landlock, files, processes and the network are out of reach."""
    if what == "a signal to the host" and outer == "landlock" and confine.landlock_version() < 6:
        pytest.skip("this Landlock does not know signals")
    code = {**READS, **ACTS}[what]
    code = code.replace("SECRET", str(secret)).replace("HOME", str(secret.parent))
    said = tries(outer, code.replace("PARENT", str(os.getpid())))
    assert said.startswith("no"), said
    assert secret.read_text() == CANARY
    assert sorted(secret.parent.iterdir()) == [secret]


@pytest.mark.parametrize("what", [n for n in ACTS if "process" in n or "socket" in n])
def test_the_filter_alone_stops_processes_and_sockets(what: str) -> None:
    """Where neither namespaces nor Landlock stand, the filter still refuses these."""
    assert tries("syscalls", ACTS[what]) == "no PermissionError"


def test_without_any_filter_the_limits_stand_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without all of them the limits are left, and each missing wall says why."""
    from anaphora.features.deep.sandbox import walls

    monkeypatch.setattr(walls, "_find_bubblewrap", lambda: None)
    monkeypatch.setattr(confine, "landlock_version", lambda: 0)
    monkeypatch.setattr(confine, "syscall_filter", lambda machine: None)
    detect.cache_clear()
    engine = MontyEngine()
    assert {w.name: w.detail for w in engine.walls() if not w.active} == {
        "namespaces": "no program for it",
        "landlock": "this kernel has none",
        "syscalls": "no filter for this machine",
    }
    with engine.open({}, {}) as session:
        assert session.run("print(1)").output == "1\n"
    detect.cache_clear()


@pytest.mark.parametrize("outer", ["bubblewrap", "landlock", "syscalls", "rlimits"])
@pytest.mark.parametrize("size", [1, 4])
def test_memory_is_bounded_by_every_wall(outer: Outer, size: int) -> None:
    """No wall lets a program take much more than its values may have."""
    assert tries(outer, f"len(bytearray({size} << 30))") == "no MemoryError"
    assert tries(outer, "len(bytearray(32 << 20))") == f"got {32 * MEBIBYTE}"


@pytest.mark.parametrize("outer", ["bubblewrap", "landlock", "syscalls", "rlimits"])
def test_what_no_wall_lets_out(outer: Outer, tmp_path: Path) -> None:
    """Behind every wall the environment is empty, nothing can be written, descriptors are few."""
    assert tries(outer, "os.environ['ANAPHORA_CANARY']") == "no KeyError"
    assert tries(outer, "[os.dup(0) for _ in range(100)]") == "no OSError"
    limit = "__import__('resource').getrlimit"
    assert tries(outer, f"{limit}(4)") == "got (0, 0)", "no core dump"
    cpu = tries(outer, f"max({limit}(0))")
    assert cpu.startswith("got ")
    assert 0 < int(cpu.split()[1]) <= 600
    place = tmp_path / "out"
    said = tries(outer, f"os.write(os.open('{place}', os.O_CREAT | os.O_WRONLY), b'x' * 100)")
    assert said.startswith("no"), said
    assert not place.exists() or place.stat().st_size == 0


@pytest.mark.parametrize("outer", ["bubblewrap", "landlock", "syscalls", "rlimits"])
def test_a_limit_of_the_process_cannot_be_lifted(outer: Outer) -> None:
    """A program behind a wall cannot give itself more open files or bytes to write."""
    for number in (1, 7, 9):
        code = f"__import__('resource').setrlimit({number}, (1 << 40, 1 << 40))"
        said = tries(outer, code)
        # An administrator may lift limits where no namespace took that right away.
        assert said.startswith("no") or (outer != "bubblewrap" and os.getuid() == 0), said


@pytest.mark.parametrize("outer", ["bubblewrap", "landlock", "syscalls", "rlimits", "none"])
def test_the_sandbox_runs_behind_every_wall(outer: Outer) -> None:
    """The same code gives the same answer whichever wall stands, and the walls are named."""
    engine = MontyEngine(outer)
    with engine.open({"words": "b a c"}, {"twice": lambda n: n * 2}) as session:
        assert session.run("print(sorted(words.split()), twice(21))").output == (
            "['a', 'b', 'c'] 42\n"
        )
    standing = {w.name for w in engine.walls() if w.active}
    assert {"interpreter", "watchdog"} <= standing
    if outer == "none":
        assert standing == {"interpreter", "watchdog"}
    else:
        assert {"rlimits", "environment"} <= standing
    assert ("namespaces" in standing) <= (outer == "bubblewrap")
    assert ("landlock" in standing) <= (outer == "landlock")


@pytest.fixture
def left_open() -> Iterator[list[int]]:
    """What somebody left open for every program that this process starts."""
    near = socket.create_server(("127.0.0.1", 0))
    near.set_inheritable(True)
    # More than a worker may open itself, and the one by which the filter of calls comes in.
    far = [fcntl.fcntl(near, fcntl.F_DUPFD, least) for least in (9, 50, 300)]
    yield [near.fileno(), *far]
    for number in far:
        os.close(number)
    near.close()


@pytest.mark.enable_socket
@pytest.mark.promise("sandbox.descriptors")
@pytest.mark.parametrize("outer", HERE[1:])
def test_no_descriptor_of_the_host_is_inherited(outer: Outer, left_open: list[int]) -> None:
    """A program behind any wall has its three streams, whatever the host left open to inherit."""
    code = (
        "import os\nfound = []\nfor n in range(1024):\n    try:\n        os.fstat(n)\n"
        "    except OSError:\n        continue\n    found.append(n)\nprint(found)"
    )
    started_by = launcher(outer)
    words: list[str | Path] = [started_by.path(64 * MEBIBYTE), "-I", "-S", "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=True, close_fds=False)
    assert done.stdout.strip() == "[0, 1, 2]"
    # The same without a launcher: the test would see them.
    done = subprocess.run(
        [PYTHON, "-I", "-S", "-c", code],
        capture_output=True, text=True, check=True, close_fds=False,
    )  # fmt: skip
    assert set(left_open) <= set(json.loads(done.stdout))


@pytest.mark.enable_socket
@pytest.mark.promise("sandbox.descriptors")
@pytest.mark.parametrize("outer", HERE)
def test_a_session_inherits_its_pipe_alone(outer: Outer, left_open: list[int]) -> None:
    """No process of a session that runs has a socket of the host, or anything but pipes."""
    with MontyEngine(outer).open({}, {}) as session:
        assert session.run("print(1)").output == "1\n"
        for process in _descendants(_worker(session)):
            opened = {p.name: str(p.readlink()) for p in Path(f"/proc/{process}/fd").iterdir()}
            others = {k: v for k, v in opened.items() if not v.startswith(("pipe:", "/dev/null"))}
            # What watches over the namespaces keeps an event of its own.
            assert {v for v in others.values() if not v.startswith("anon_inode:")} == set(), others
            assert not any("socket" in target for target in opened.values())


def monty_program() -> Path:
    """The interpreter of the sandbox, as it is installed."""
    from pydantic_monty._binary import find_monty_binary

    return Path(find_monty_binary())


def interpreter(outer: Outer) -> Launcher:
    """Starts the interpreter of the sandbox behind one wall."""
    found = Launcher(monty_program(), outer)
    if found.standing.outer != outer:
        pytest.skip(f"{outer} does not stand here")
    return found


@pytest.mark.parametrize("outer", ["bubblewrap", "landlock", "syscalls", "rlimits"])
@pytest.mark.parametrize(
    "code",
    [
        "x = []\nwhile True:\n    x.append('a' * 10**6 + str(len(x)))",
        "x = 'a' * 10**10",
        "x = ['a' * 99]\nfor _ in range(60):\n    x = [x, x]\nprint(x)",
    ],
    ids=["list", "text", "shared"],
)
def test_memory_is_bounded_without_the_limit_of_the_interpreter(outer: Outer, code: str) -> None:
    """With the interpreter's own limits lifted, its process ends before it takes much."""
    import pydantic_monty

    started_by = interpreter(outer)
    with (
        pydantic_monty.Monty(
            binary_path=started_by.path(32 * MEBIBYTE), request_timeout=30.0
        ) as pool,
        pytest.raises(pydantic_monty.MontyError) as ended,
        pool.checkout() as session,
    ):
        session.feed_run(code)
    if isinstance(ended.value, pydantic_monty.MontyCrashedError):
        assert not ended.value.timed_out
    else:
        assert "MemoryError" in str(ended.value.exception().__class__)


@pytest.mark.parametrize("outer", HERE)
def test_time_is_bounded_without_the_limit_of_the_interpreter(outer: Outer) -> None:
    """With the interpreter's own limits lifted, the watchdog ends its process."""
    import pydantic_monty

    started_by = Launcher(monty_program(), outer)
    with pydantic_monty.Monty(binary_path=started_by.path(32 * MEBIBYTE)) as pool:
        session = pool.checkout()
        session.__enter__()
        watchdog = Watchdog(session.worker_pid)
        with watchdog.over(0.2), pytest.raises(pydantic_monty.MontyCrashedError):
            session.feed_run("while True:\n    pass")
        assert watchdog.fired
        watchdog.close()


def test_a_missing_wall_is_said_and_not_replaced_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where bubblewrap does not start, Landlock stands instead; without both the limits alone."""
    from anaphora.features.deep.sandbox import walls

    monkeypatch.setattr(walls, "_find_bubblewrap", lambda: Path("/bin/false"))
    detect.cache_clear()
    found = {w.name: w for w in MontyEngine().walls()}
    assert not found["namespaces"].active
    assert "exit code 1" in found["namespaces"].detail
    if confine.landlock_version():
        assert found["landlock"].active
        assert found["syscalls"].active == (confine.syscall_filter(os.uname().machine) is not None)
    monkeypatch.setattr(confine, "landlock_version", lambda: 0)
    detect.cache_clear()
    engine = MontyEngine()
    found = {w.name: w for w in engine.walls()}
    assert (found["landlock"].active, found["landlock"].detail) == (False, "this kernel has none")
    assert found["syscalls"].active == (confine.syscall_filter(os.uname().machine) is not None)
    assert found["rlimits"].active
    with engine.open({}, {}) as session:
        assert session.run("print(1)").output == "1\n"
    checks = {c.name: c for c in sandbox_checks()}
    assert not checks["sandbox"].ok
    assert "without an outer wall" in checks["sandbox"].detail
    assert not checks["sandbox.namespaces"].ok
    detect.cache_clear()


def test_the_doctor_is_told_about_every_wall() -> None:
    """`sandbox_checks` names each wall, whether it stands, and that the sandbox runs."""
    checks = {c.name: c for c in sandbox_checks()}
    walls = {f"sandbox.{w.name}": w for w in MontyEngine().walls()}
    assert checks.keys() == {"sandbox", *walls}
    for name, wall in walls.items():
        assert checks[name].detail.startswith("stands" if wall.active else "does not stand")
    assert checks["sandbox"].detail.startswith("works")


def test_a_filter_is_made_for_known_machines_alone() -> None:
    """The filter is a whole number of steps, ends in a verdict, and is None for other machines."""
    for machine in ("x86_64", "aarch64"):
        program = confine.syscall_filter(machine)
        assert program is not None
        assert len(program) % 8 == 0
        assert program[-8:-6] == b"\x06\x00", "the last step returns"
    assert confine.syscall_filter("riscv64") is None


def test_the_launchers_go_with_their_process() -> None:
    """Whoever made launchers leaves none of them behind."""
    code = (
        "from anaphora.features.deep.sandbox.monty import MontyEngine\n"
        "engine = MontyEngine()\n"
        "with engine.open({}, {}) as session:\n    session.run('x = 1')\n"
        "print(engine._launcher._folder)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    folder = Path(done.stdout.strip())
    assert folder.name.startswith("anaphora-sandbox-")
    assert not folder.exists()


def test_launchers_that_were_tidied_away_are_made_again() -> None:
    """A folder for temporary files that is emptied meanwhile does no harm."""
    import shutil

    engine = MontyEngine("rlimits")
    for _ in range(2):
        with engine.open({}, {}) as session:
            assert session.run("print(1)").output == "1\n"
        folder = engine._launcher._folder
        assert folder is not None
        shutil.rmtree(folder)


@pytest.mark.parametrize("outer", ["bubblewrap", "landlock", "syscalls"])
def test_the_code_dies_with_its_host(outer: Outer) -> None:
    """When the host is killed, code that would run on for a minute is gone at once."""
    interpreter(outer)
    program = (
        "from anaphora.features.deep.sandbox.base import SandboxLimits\n"
        "from anaphora.features.deep.sandbox.monty import MontyEngine\n"
        f"session = MontyEngine({outer!r}).open({{}}, {{}}, SandboxLimits(seconds=60.0))\n"
        "print(session._inner.worker_pid, flush=True)\n"
        "session.run('while True:\\n    pass')\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        process = int(host.stdout.readline())
        inner = _descendants(process)
        handles = [os.pidfd_open(number) for number in inner]
        host.kill()
    for handle in handles:
        try:
            assert select.select([handle], [], [], 30)[0] == [handle]
        finally:
            os.close(handle)


def _descendants(process: int) -> list[int]:
    """A process and all that came of it."""
    found = [process]
    for number in found:
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
        found.extend(int(child) for child in children)
    return found


def test_no_process_is_left_behind() -> None:
    """A closed session, a killed one and a dead one leave no process."""
    for code in ("x = 1", "while True:\n    pass", "x = 'a' * 10**11"):
        with MontyEngine().open({}, {}, SandboxLimits(seconds=0.3)) as session:
            process = os.pidfd_open(_worker(session))
            session.run(code)
        try:
            # Readable as soon as the process has ended.
            assert select.select([process], [], [], 30)[0] == [process]
        finally:
            os.close(process)


@pytest.mark.parametrize("outer", HERE)
def test_a_killed_worker_is_a_dead_session(outer: Outer) -> None:
    """When the process goes, whatever the cause, the run says so and the next session works."""
    engine = MontyEngine(outer)
    with engine.open({}, {}) as session:
        assert session.run("x = 1").alive
        for process in reversed(_descendants(_worker(session))):
            with contextlib.suppress(ProcessLookupError):
                handle = os.pidfd_open(process)
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                select.select([handle], [], [], 30)
                os.close(handle)
        run = session.run("print(x)")
        assert (run.limit, run.alive) == ("crash", False)
    with engine.open({}, {}) as session:
        assert session.run("print(2)").output == "2\n"


def _worker(session: object) -> int:
    process = session._inner.worker_pid  # type: ignore[attr-defined]
    assert isinstance(process, int)
    return process


def test_a_folder_that_starts_no_programs_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no program starts from the folder for temporary files, another one is taken."""
    from anaphora.features.deep.sandbox import walls

    tried: list[str] = []

    def starts(place: str) -> bool:
        tried.append(place)
        return place == "/dev/shm"

    monkeypatch.setattr(walls, "_starts_programs", starts)
    walls.find_program_folder.cache_clear()
    assert walls.find_program_folder() == "/dev/shm"
    assert len(tried) == 2
    walls.find_program_folder.cache_clear()


FAKE_SEATBELT = """#!/bin/sh
[ "$1" = -p ] || exit 64
shift 2
exec "$@"
"""


@pytest.mark.parametrize("works", [True, False])
def test_on_macos_seatbelt_is_the_wall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    """There the program starts behind `sandbox-exec`; where that refuses, `doctor` is not content.

    The profile itself can only be tried on a Mac; there a launcher that does not start is no wall.
    """
    from anaphora.features.deep import checks
    from anaphora.features.deep.sandbox import walls

    fake = tmp_path / "sandbox-exec"
    fake.write_text(FAKE_SEATBELT if works else "#!/bin/sh\nexit 71\n")
    fake.chmod(0o755)
    monkeypatch.setattr(walls, "SEATBELT", fake)
    monkeypatch.setattr(walls, "_is_macos", lambda: True)
    detect.cache_clear()
    try:
        found = {wall.name: wall for wall in MontyEngine().walls()}
        assert found["seatbelt"].active is works
        assert not {"namespaces", "landlock", "syscalls"} & found.keys()
        assert found["rlimits"].active
        first = checks.sandbox_checks()[0]
        assert first.ok is works
        assert ("behind seatbelt" in first.detail) is works
        if works:
            *_, fake_place, option, profile = detect(Path("/bin/true")).command
            assert (fake_place, option) == (str(fake), "-p")
            assert profile.startswith("(version 1)\n(deny default)\n")
            assert profile.count("(") == profile.count(")")
            assert "network" not in profile
    finally:
        detect.cache_clear()
