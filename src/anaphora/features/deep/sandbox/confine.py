"""Gives up rights and becomes another program: Landlock, a filter of system calls, an empty
environment, no inherited descriptor.

`confine.py files [FILE …] -- PROGRAM [ARGUMENT …]`: the files are all that the program may read;
`any` in place of `files` leaves Landlock out, and `only [NUMBER …]` the filter too, the numbers
being descriptors that the program needs besides the first three. If that fails, exit code 126 and
the reason. It is self-contained (run by `python -I -S`, it imports nothing of the package) and
never runs the program with fewer restrictions than requested.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys

_FIRST_OF_OTHERS = 3

# include/uapi/linux/landlock.h; the numbers of these calls are the same on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 2, 1 << 3
_PATH_BENEATH = 1

_DIE_WITH_PARENT, _NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 1, 38, 22, 2
_KILL_SIGNAL = 9

# Linux audit architectures; every pair of numbers below is in this order.
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE = (56, 220)
_CLONE3 = 435
_CLONE_THREAD = 0x00010000
# Calls that an interpreter without files, sockets and processes never needs: new processes,
# sockets, other processes' memory, mounts, namespaces, kernel features with many known holes.
_DENIED = {
    "socket": (41, 198),
    "socketpair": (53, 199),
    "fork": (57, None),
    "vfork": (58, None),
    "ptrace": (101, 117),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "mount": (165, 40),
    "umount2": (166, 39),
    "init_module": (175, 105),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "perf_event_open": (298, 241),
    "open_by_handle_at": (304, 265),
    "setns": (308, 268),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "finit_module": (313, 273),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
}
# Newer calls have one number everywhere: io_uring, pidfd_getfd, the new mount calls.
_DENIED_EVERYWHERE = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442)

_LOAD, _EQUAL, _AT_LEAST, _HAS_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _ENOSYS = 0x00050000 | 1, 0x00050000 | 38


def landlock_version() -> int:
    """The version of Landlock that this kernel offers; 0 without it."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(int(_libc().syscall(_CREATE_RULESET, None, 0, 1)), 0)


def syscall_filter(machine: str) -> bytes | None:
    """The filter as a program of the kernel's packet filter; None for an unknown machine.

    `machine` is what `os.uname().machine` says. Everything that is not named is allowed; a call of
    another architecture ends the process.
    """
    if machine not in _ARCHITECTURES:
        return None
    column = list(_ARCHITECTURES).index(machine)
    numbers = (pair[column] for pair in _DENIED.values())
    denied_calls = (*(call for call in numbers if call is not None), *_DENIED_EVERYWHERE)
    steps = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        # The x32 numbers of the same architecture would go around the list.
        (_AT_LEAST, 0, 1, 0x40000000),
        (_RETURN, 0, 0, _EPERM),
    ]
    for number in denied_calls:
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _EPERM)]
    steps += [
        # clone3 hides its flags behind a pointer: "not implemented" makes the C library use clone.
        (_EQUAL, 0, 1, _CLONE3),
        (_RETURN, 0, 0, _ENOSYS),
        (_EQUAL, 0, 3, _CLONE[column]),
        (_LOAD, 0, 0, 16),
        (_HAS_BIT, 1, 0, _CLONE_THREAD),
        (_RETURN, 0, 0, _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def restrict_files(files: list[str]) -> None:
    """Allow this thread to read and execute `files` (or folders), nothing else. Raises OSError."""
    version = landlock_version()
    if version < 1:
        raise OSError("this kernel has no Landlock")
    rights = (1 << 13) - 1
    for since, bit in ((2, 13), (3, 14), (5, 15)):
        rights |= (1 << bit) if version >= since else 0
    # TCP from version 4; signals and abstract sockets of other processes from version 6.
    attribute = struct.pack("=QQQ", rights, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _call(_CREATE_RULESET, attribute[:size], size, 0)
    for file in files:
        descriptor = os.open(file, os.O_PATH | os.O_CLOEXEC)
        access_bits = _EXECUTE | _READ_FILE | (_READ_FOLDER if os.path.isdir(file) else 0)  # noqa: PTH112 - pathlib would double the start
        rule = struct.pack("=Qi", access_bits, descriptor)
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
        os.close(descriptor)
    _no_new_privileges()
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def restrict_syscalls() -> None:
    """Put the filter on this thread, if there is one for this machine. Raises OSError."""
    program = syscall_filter(os.uname().machine)
    if program is None:
        return
    program_buffer = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("@HP", len(program) // 8, ctypes.addressof(program_buffer))
    _no_new_privileges()
    if _libc().prctl(_SET_SECCOMP, _FILTER, head, 0, 0):
        raise OSError(ctypes.get_errno(), "the system refused the system call filter")


def close_descriptors(kept: set[int]) -> None:
    """Close all but the first three and `kept`. Raises OSError if they cannot be listed.

    The parent of the host, or a library in it, may have left inheritable descriptors open: a
    listening socket, a terminal, a file of secrets. The limit of open files may have been lowered
    since, so that it is no upper bound of their numbers.
    """
    for number in sorted({int(name) for name in os.listdir("/dev/fd")}):  # noqa: PTH208 - as above
        if number < _FIRST_OF_OTHERS or number in kept:
            continue
        # The listing's own descriptor is closed already.
        with contextlib.suppress(OSError):
            os.close(number)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    return_code = int(_libc().syscall(number, *arguments))
    if return_code < 0:
        raise OSError(ctypes.get_errno(), f"system call {number} failed")
    return return_code


def _no_new_privileges() -> None:
    if _libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs was refused")


def main(arguments: list[str]) -> int:
    """Restrict this process and become the program. Returns only when that failed."""
    separator_index = arguments.index("--")
    (kind, *files), command = arguments[:separator_index], arguments[separator_index + 1 :]
    parent = os.getppid()
    try:
        if kind == "only":
            close_descriptors({int(number) for number in files})
            os.execve(command[0], command, {})  # noqa: S606 - as below
        close_descriptors(set())
        _libc().prctl(_DIE_WITH_PARENT, _KILL_SIGNAL, 0, 0, 0)
        if os.getppid() != parent:
            # The parent died before the signal was set.
            return 126
        if kind != "any":
            restrict_files([*files, command[0]])
        restrict_syscalls()
        # The purpose of this file. No shell, and an empty environment.
        os.execve(command[0], command, {})  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"{error}\n")
    return 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
