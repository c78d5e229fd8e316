"""The client of the user's resident process: its address, how it is started, and requests to it.

One process per user keeps the model and the homes open, so that a hook answers in milliseconds and
the model is loaded only once. Paths, times and keys are resolved in that process, so callers with
different relevant variables (`environment.caller_mark`) do not share one. It listens on a Unix
socket in a folder that only the user may enter, or on a named pipe with a key that only the user
may read. It is optional: a program that cannot reach it does the work itself. This module imports
little, since the client of a hook waits for it.
"""

from __future__ import annotations

import os
import stat
import sys
import time

from anaphora.system.environment import TRIAL_VARIABLE, caller_mark, with_whole_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from multiprocessing.connection import Connection
    from subprocess import Popen
    from typing import Any, Final, Self, TypeAlias

    MessageChannel: TypeAlias = "Connection | SocketConnection"

VARIABLE: Final = "ANAPHORA_RESIDENT"
DEFAULT_IDLE: Final = 20.0
"""Minutes without requests after which a resident process ends."""

_POLL: Final = 0.01
_LONGEST_PATH: Final = 100
_LONGEST_MESSAGE: Final = 0x7FFF_FFFF
_OTHERS: Final = 0o077
_ANSWER: Final = 2.0
"""Seconds that a process has to answer a greeting, or a hook."""

_BODY: Final = "body"
_PRIME: Final = (1 << 64) - 59


class NoResident(Exception):
    """The resident process cannot be reached, or did not answer.

    `hopeless`: waiting is pointless, since there is no address where one could listen, or one that
    listens does not answer.
    """

    def __init__(self, reason: str, *, hopeless: bool = False) -> None:
        self.hopeless = hopeless
        super().__init__(reason)


def idle_minutes(environ: Mapping[str, str]) -> float:
    """`ANAPHORA_RESIDENT` in minutes, 0 if none may be used; the default if it is no number."""
    try:
        return max(0.0, float(environ.get(VARIABLE, "").strip() or DEFAULT_IDLE))
    except ValueError:
        return DEFAULT_IDLE


def program_stamp() -> str:
    """Distinguishes this program from another version, or from itself before an upgrade."""
    package = _package()
    try:
        changed_ns = os.stat(f"{package}/__init__.py").st_mtime_ns  # noqa: PTH116 - slow to import
    except OSError:
        changed_ns = 0
    return f"{package}|{sys.prefix}|{changed_ns}"


def address(environ: Mapping[str, str]) -> str:
    """The address of the resident process for this environment and installation. OSError."""
    parts = f"{_package()}|{sys.prefix}|{caller_mark(environ)}"
    # A hash without an import; the mark itself goes with each greeting.
    key = f"{int.from_bytes(parts.encode(errors='surrogateescape'), 'big') % _PRIME:016x}"
    if sys.platform == "win32":
        return rf"\\.\pipe\anaphora-{environ.get('USERNAME', 'user')}-{key}"
    path = f"{_runtime_folder(environ)}/{key}.sock"
    if len(path) > _LONGEST_PATH:
        raise OSError(f"{path} is too long for a socket")
    return path


def _package() -> str:
    return os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120


def _runtime_folder(environ: Mapping[str, str]) -> str:
    """The folder of the socket, of the user only (mode 700); made if missing. OSError."""
    # Not by `pathlib`: a hook would wait for its import.
    base = environ.get("XDG_RUNTIME_DIR", "").strip()
    if sys.platform == "win32":
        local = environ.get("LOCALAPPDATA", "").strip() or os.path.expanduser("~")  # noqa: PTH111
        folder = os.path.join(local, "anaphora")  # noqa: PTH118
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        return folder
    folder = f"{base.rstrip('/')}/anaphora" if base else f"/tmp/anaphora-{os.getuid()}"  # noqa: S108
    try:  # noqa: SIM105 - contextlib is slow to import
        os.mkdir(folder, 0o700)  # noqa: PTH102
    except FileExistsError:
        pass
    # Another user could have created a folder of that name in /tmp.
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise OSError(f"{folder} belongs to another user")
    if status.st_mode & _OTHERS:
        os.chmod(folder, 0o700)  # noqa: PTH101
    return folder


def pipe_key(environ: Mapping[str, str]) -> bytes | None:
    """The key of a named pipe; None if the file system protects the socket."""
    if sys.platform == "win32":
        path = os.path.join(_runtime_folder(environ), "pipe.key")  # noqa: PTH118
        try:
            with open(path, "xb") as file:  # noqa: PTH123
                file.write(os.urandom(32))
        except FileExistsError:
            pass
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read()
    return None


def connect(environ: Mapping[str, str]) -> MessageChannel:
    """A connection to the resident process. Raises `NoResident`."""
    if not idle_minutes(environ):
        raise NoResident(f"{VARIABLE} is 0", hopeless=True)
    try:
        path, key = address(environ), pipe_key(environ)
    except OSError as error:
        raise NoResident(str(error), hopeless=True) from error
    try:
        if sys.platform == "win32":
            from multiprocessing.connection import Client

            return Client(path, authkey=key)
        return SocketConnection(path)
    except (OSError, ImportError, EOFError) as error:
        raise NoResident(str(error)) from error


class SocketConnection:
    """The caller's end of a Unix socket, in the form of `multiprocessing.connection`: each message
    after its length.

    That module takes longer to import than a hook's answer takes to come, and so does `socket`.
    """

    def __init__(self, path: str) -> None:
        import _socket

        self._socket = _socket.socket(_socket.AF_UNIX)
        try:
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise

    def send_bytes(self, buf: bytes, /) -> None:
        """Send a message. OSError."""
        if len(buf) > _LONGEST_MESSAGE:
            raise OSError("the message is too long")
        self._socket.sendall(len(buf).to_bytes(4, "big") + buf)

    def recv_bytes(self) -> bytes:
        """Wait for a message. OSError, EOFError."""
        size = int.from_bytes(self._read(4), "big", signed=True)
        if size == -1:
            size = int.from_bytes(self._read(8), "big")
        return self._read(size)

    def poll(self, timeout: float, /) -> bool:
        """Whether a message, or the end, comes within so many seconds."""
        import _socket

        self._socket.settimeout(timeout)
        try:
            self._socket.recv(1, _socket.MSG_PEEK)
        except (TimeoutError, BlockingIOError):
            return False
        finally:
            self._socket.settimeout(None)
        return True

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # As in `multiprocessing`: a client of the model keeps one connection open.
        if hasattr(self, "_socket"):
            self._socket.close()

    def _read(self, size: int) -> bytes:
        parts = []
        while size > 0:
            part = self._socket.recv(min(size, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def start_process(environ: Mapping[str, str]) -> Popen[bytes]:
    """Start the resident process, if it may be; it outlives this one. Raises `NoResident`."""
    if not idle_minutes(environ):
        raise NoResident(f"{VARIABLE} is 0", hopeless=True)
    import subprocess

    # It works in another folder, and outlives a trial.
    variables = with_whole_paths(environ)
    variables.pop(TRIAL_VARIABLE, None)
    flags: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        flags = {"creationflags": 0x00000008 | 0x00000200}  # detached, a process group of its own
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "anaphora", "resident"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=sys.prefix,
            env=variables,
            close_fds=True,
            **flags,
        )
    except OSError as error:
        raise NoResident(str(error)) from error


def reach(environ: Mapping[str, str], patience: float, *, start: bool = True) -> MessageChannel:
    """A connection to a resident process of this version; `start`: one is started if needed.

    Waits at most `patience` seconds for a starting one. Raises `NoResident`.
    """
    return greet(environ, {"call": "hello"}, patience, start=start)[0]


def greet(
    environ: Mapping[str, str], request: Mapping[str, Any], patience: float, *, start: bool = True
) -> tuple[MessageChannel, dict[str, Any]]:
    """A connection as of `reach`, and the answer to its first request. Raises `NoResident`.

    A process of another version or environment refuses; that of another version ends then. The
    first answer to a hook says that it is at work, and the answer itself follows (`receive`).
    """
    greeting = {**request, "stamp": program_stamp(), "caller": caller_mark(environ)}
    began, process = time.monotonic(), None
    while True:
        try:
            connection = connect(environ)
            answer = ask(connection, greeting, _ANSWER)
            if "refused" not in answer:
                return connection, answer
            connection.close()
        except NoResident as error:
            if error.hopeless or not start or time.monotonic() - began > patience:
                raise
            # Another one that listens already has it end well.
            if process is not None and process.poll():
                raise NoResident("it ended as it started") from error
        if start and process is None:
            process = start_process(environ)
        if time.monotonic() - began > patience:
            raise NoResident("it is still starting")
        time.sleep(_POLL)


def end(environ: Mapping[str, str]) -> None:
    """Let the resident process end, if there is one: it does for a caller without a version."""
    try:
        with connect(environ) as connection:
            ask(connection, {"call": "hello"}, _ANSWER)
    except NoResident:
        pass


def ask(connection: MessageChannel, request: Mapping[str, Any], patience: float) -> dict[str, Any]:
    """Send a request and wait at most so many seconds for its answer. Raises `NoResident`."""
    try:
        connection.send_bytes(packed(request))
    except (OSError, ValueError) as error:
        raise NoResident(str(error) or type(error).__name__) from error
    return receive(connection, patience)


def receive(connection: MessageChannel, patience: float) -> dict[str, Any]:
    """Wait at most so many seconds for an answer, or the next part of it. Raises `NoResident`."""
    try:
        if not connection.poll(patience):
            raise NoResident(f"no answer within {patience:.0f} s", hopeless=True)
        return unpacked(connection.recv_bytes())
    except (OSError, EOFError, ValueError) as error:
        raise NoResident(str(error) or type(error).__name__) from error


def packed(message: Mapping[str, Any]) -> bytes:
    """A request or an answer as bytes: names with texts that have no NUL, then the bytes `body`."""
    texts = "".join(f"{name}={text}\0" for name, text in message.items() if name != _BODY)
    body: bytes = message.get(_BODY, b"")
    return texts.encode(errors="surrogatepass") + b"\0" + body


def unpacked(content: bytes) -> dict[str, Any]:
    """The message of `packed`. ValueError."""
    texts, _, body = content.partition(b"\0\0")
    fields = (field.partition("=") for field in texts.decode(errors="surrogatepass").split("\0"))
    return {**{name: text for name, _, text in fields}, _BODY: body}
