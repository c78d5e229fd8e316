"""Run as a process: every lane once, where the kernel ends a process that opens an internet socket.

In: a folder, and the seconds to wait at the end for what libraries do later on threads of their
own. `socket` instead of seconds opens one, so that the wall itself can be tested.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
import threading
from pathlib import Path

_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_SOCKET = {"x86_64": 41, "aarch64": 198}
_INTERNET = (2, 10)  # AF_INET, AF_INET6
_KILL_PROCESS, _ALLOW = 0x80000000, 0x7FFF0000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def end_at_internet_sockets() -> None:
    """From here on `socket(AF_INET…)` and `socket(AF_INET6…)` end the process, on every thread."""
    load, equal, answer = 0x20, 0x15, 0x06
    steps = (
        (load, 0, 0, 0),  # the number of the call
        (equal, 0, 4, _SOCKET[platform.machine()]),
        (load, 0, 0, 16),  # its first argument: the family
        (equal, 1, 0, _INTERNET[0]),
        (equal, 0, 1, _INTERNET[1]),
        (answer, 0, 0, _KILL_PROCESS),
        (answer, 0, 0, _ALLOW),
    )
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    libc = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(steps), code)
    done = libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(
        _SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0
    )
    if done:
        raise OSError(ctypes.get_errno(), "no filter of system calls here")


def use_every_lane(folder: Path) -> None:
    """What a user does in a day, with the bundled model and LanceDB."""
    from anaphora import Memory

    project = folder / "project"
    project.mkdir()
    (project / "README.md").write_text("# Queue\n\nThe queue runs on PostgreSQL.\n")
    with Memory.open(folder / "home") as memory:
        memory.conversations.append_user("chat", "Staging's database listens on port 5433.")
        for number in range(8):
            memory.remember(f"Server {number} is in rack {number * 3}.")
        memory.index_project(project)
        memory.ready()
        assert memory.recall("which rack holds server 3?")
        assert memory.recall_conversation("chat", "which port is staging on?")
        memory.recall_context("what does the queue run on?")
        memory.deep_recall("how often did we talk of staging?", scope="all_sessions")
        memory.dream()
        memory.health()


def main() -> None:
    """Wall first, then everything else."""
    folder, wait = Path(sys.argv[1]), sys.argv[2]
    end_at_internet_sockets()
    if wait == "socket":
        import socket

        socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    os.environ["ANAPHORA_EXACT_CAP"] = "4"  # beyond it LanceDB searches
    use_every_lane(folder)
    threading.Event().wait(float(wait))
    print("offline")


if __name__ == "__main__":
    main()
