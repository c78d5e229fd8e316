"""`anaphora serve` as processes, each with a home of its own, on one PostgreSQL.

In: folders, a database's URL, an embedder's name. Out: running servers, and ways to kill them and
to start them again on their port. What they print as errors is kept in a file beside their home.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Server", "cpu_seconds", "fleet", "megabytes"]

_STOP_SECONDS = 60


@dataclass(slots=True)
class Server:
    """One `anaphora serve`. `homes` counts the homes that it has had; the last one is in use."""

    number: int
    folder: Path
    url: str
    embedder: str
    port: int = 0
    homes: int = 1
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def home(self) -> Path:
        """The folder of its indexes."""
        return self.folder / f"home-{self.number}-{self.homes}"

    @property
    def log(self) -> Path:
        """What it wrote to its standard error, over all its lives."""
        return self.folder / f"server-{self.number}.log"

    def launch(self) -> None:
        """Start the process, without waiting for it."""
        with self.log.open("a", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "anaphora", "serve", "--no-token", "--port", str(self.port)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=os.environ
                | {
                    "ANAPHORA_HOME": str(self.home),
                    "ANAPHORA_DATABASE": self.url,
                    "ANAPHORA_EMBEDDER": self.embedder,
                    "PYTHONUNBUFFERED": "1",
                },
            )

    def wait(self) -> None:
        """Wait until it says where it listens. RuntimeError with its own words when it ends."""
        assert self.process is not None
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        found = re.search(r"http://\S+?:(\d+)", said)
        if found is None:
            raise RuntimeError(f"server {self.number}: {said}{self.log.read_text('utf-8')}")
        self.port = int(found[1])

    def kill(self) -> None:
        """SIGKILL: it learns nothing of it."""
        assert self.process is not None
        self.process.kill()
        self.process.communicate(timeout=_STOP_SECONDS)

    def stop(self) -> int:
        """End it in peace; its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.communicate(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        return self.process.returncode

    def tracebacks(self) -> int:
        """How many tracebacks it has printed."""
        return self.log.read_text("utf-8").count("Traceback (most recent call last)")


@contextmanager
def fleet(folder: Path, url: str, embedder: str, count: int) -> Iterator[list[Server]]:
    """`count` servers, started at one moment: an empty database is made ready by all at once."""
    servers = [Server(number, folder, url, embedder) for number in range(count)]
    try:
        for server in servers:
            server.launch()
        for server in servers:
            server.wait()
        yield servers
    finally:
        for server in servers:
            if server.process is not None:
                server.stop()


def cpu_seconds(servers: Sequence[Server]) -> float:
    """Processor time of the running servers until now; 0 where the system does not tell."""
    return sum(_ticks(server) for server in servers) / os.sysconf("SC_CLK_TCK")


def megabytes(server: Server) -> float:
    """Resident memory of a running server; 0 where the system does not tell."""
    if server.process is None:
        return 0.0
    status = Path(f"/proc/{server.process.pid}/status")
    found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text()) if status.is_file() else None
    return int(found[1]) / 1024 if found else 0.0


def _ticks(server: Server) -> int:
    if server.process is None:
        return 0
    stat = Path(f"/proc/{server.process.pid}/stat")
    if not stat.is_file():
        return 0
    fields = stat.read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])
