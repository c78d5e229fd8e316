"""A program for whoever starts programs itself: a process of `tests.commands` does its work.

In: the socket of that process, then what Python is told. It gives away its streams, hands
on what would end it, and ends as the command does.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys


def main() -> int:
    """The exit code of the command."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(sys.argv[1])
        # `pathlib` takes longer to import than all of this.
        folder = os.getcwd()  # noqa: PTH109
        request = {"words": sys.argv[2:], "environ": dict(os.environ), "folder": folder}
        # The other end is open as long as this process is there.
        asker, _ours = os.pipe()
        socket.send_fds(connection, [json.dumps(request).encode()], [0, 1, 2, asker])
        # Whoever reads the other end of a stream must see when the command closes it.
        for stream in (0, 1, 2, asker):
            os.close(stream)
        process = int(connection.recv(16))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda told, _: os.kill(process, told))
        ended = connection.recv(16)
        if not ended:
            os.kill(os.getpid(), signal.SIGKILL)
        return int(ended)


if __name__ == "__main__":
    os._exit(main())
