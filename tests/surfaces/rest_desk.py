"""A server in process for tests: a real home, real routes, hashed words as vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient
from tests.sqlite_driver import dbapi2

from anaphora import Memory
from anaphora.testing import server_app

BASE = "http://127.0.0.1:7411"


@contextmanager
def served(
    home: Path, options: Mapping[str, Any] | None = None, **given: Any
) -> Iterator[tuple[TestClient, Memory]]:
    """A client of an application over the memory at `home`."""
    opened = Memory.open(home, embedder="hashing", **given)
    with opened as memory:
        app = server_app(memory, **({"page": None} if options is None else options))
        with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
            yield client, memory


def in_namespace(name: str, secret: str | None = None) -> dict[str, str]:
    """The headers of a caller."""
    headers = {"Anaphora-Namespace": name}
    if secret is not None:
        headers["Authorization"] = f"Bearer {secret}"
    return headers


def version(memory: Memory, namespace: str) -> int:
    """The number of the last change that truth has of a namespace."""
    with closing(dbapi2.connect(str(memory.home / "anaphora.db"))) as truth:
        rows = truth.execute("SELECT seq FROM head WHERE namespace = ?", (namespace,)).fetchall()
    return int(rows[0][0]) if rows else 0
