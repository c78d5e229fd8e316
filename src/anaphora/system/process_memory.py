"""How much memory a process holds now, asked of the system without any other program."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any, Final

# struct rusage_info_v0 of macOS: a UUID, six times of 8 bytes, then the resident size.
_RUSAGE_SIZE, _RESIDENT_AT = 96, 16 + 6 * 8
_QUERY_AND_READ: Final = 0x0410


def resident_bytes(process: int) -> int | None:
    """The bytes of memory that a process holds; None where the system does not tell."""
    system: str = sys.platform
    with suppress(OSError, AttributeError, ValueError, IndexError):
        if system.startswith("linux"):
            import resource

            with open(f"/proc/{process}/statm", "rb") as file:  # noqa: PTH123 - asked often
                return int(file.read().split()[1]) * resource.getpagesize()
        if system == "darwin":
            import ctypes

            buffer = ctypes.create_string_buffer(_RUSAGE_SIZE)
            library: Any = ctypes.CDLL("/usr/lib/libproc.dylib")
            if library.proc_pid_rusage(process, 0, buffer):
                return None
            return int.from_bytes(buffer.raw[_RESIDENT_AT : _RESIDENT_AT + 8], sys.byteorder)
        if system == "win32":
            return _resident_on_windows(process)
    return None


def _resident_on_windows(process: int) -> int | None:
    import ctypes

    class Counters(ctypes.Structure):
        """PROCESS_MEMORY_COUNTERS."""

        _fields_ = (
            ("size", ctypes.c_uint32),
            ("faults", ctypes.c_uint32),
            *((f"bytes{number}", ctypes.c_size_t) for number in range(8)),
        )

    kernel: Any = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined, unused-ignore]
    kernel.OpenProcess.restype = ctypes.c_void_p
    number = kernel.OpenProcess(_QUERY_AND_READ, 0, process)
    if not number:
        return None
    handle = ctypes.c_void_p(number)
    counters = Counters(size=ctypes.sizeof(Counters))
    try:
        is_done = kernel.K32GetProcessMemoryInfo(handle, ctypes.byref(counters), counters.size)
    finally:
        kernel.CloseHandle(handle)
    # The second of the eight: WorkingSetSize.
    return int(counters.bytes1) if is_done else None
