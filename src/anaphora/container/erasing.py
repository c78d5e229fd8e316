"""Deleting a namespace with all that it holds or held, for every process that uses the home."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anaphora.core.names import standing_form
from anaphora.errors import InvalidInput, NotFound
from anaphora.store.disk import translate
from anaphora.store.home.sealing import DEFAULT_NAMESPACE, folder_name
from anaphora.store.tokens import Tokens
from anaphora.values.namespaces import DeletedNamespace

if TYPE_CHECKING:
    from anaphora.container.home import Container

_FOLDERS: Final = ("index", "namespaces")
"""Those of threads are the last: while they are there the namespace is listed."""
_MIRRORS: Final = "mirrors"


def mirror_name(namespace: str) -> str:
    """What the ledger of a namespace's mirror is called, without its ending."""
    return hashlib.sha256(f"mirror {namespace}".encode()).hexdigest()[:16]


@contextmanager
def hold_namespace(container: Container, purpose: str, namespace: str) -> Iterator[None]:
    """Hold a lock of a namespace: on a database server among all its machines."""
    from anaphora.store.db.locks import hold_server_lock
    from anaphora.store.threads.files import ThreadLocks

    digest = hashlib.sha256(f"{purpose} {namespace}".encode()).digest()
    if container.truth.path is None:
        key = int.from_bytes(digest[:8], signed=True)
        with hold_server_lock(container.truth, key):
            yield
        return
    key_name = f"{purpose.replace(' ', '-')}-{digest.hex()[:16]}"
    with ThreadLocks(container.home.root).hold(key_name):
        yield


def delete_namespace(container: Container, name: str) -> DeletedNamespace:
    """As `Memory.delete_namespace`."""
    if name == DEFAULT_NAMESPACE:
        reason = "it belongs to the home: to delete all of it, delete the home's folder"
        raise InvalidInput("name", name, reason)
    listed = container.namespaces()

    def stands(one: str) -> bool:
        # A process that was killed amid this may have left files of a name that is listed no more.
        return one in listed or any(map(os.path.lexists, _files(container, one)))

    name = standing_form(name, stands)
    if not stands(name):
        raise NotFound("namespace", name)
    with (
        hold_namespace(container, "mirror", name),
        hold_namespace(container, "sync", name),
        hold_namespace(container, "sync here", name),
    ):
        left = _outside(container, name)
        tokens = _tokens(container).close_namespace(name)
        clean = container.erase_namespace(name)
    return DeletedNamespace(name, tokens, left, clean)


def remove_files(container: Container, name: str) -> None:
    """Remove the files of a namespace. Raises `StoreError` and its kinds."""
    for place in _files(container, name):
        if place.suffix == ".json" and not place.is_dir():
            try:
                place.unlink(missing_ok=True)
            except OSError as error:
                raise translate(error, "remove", place) from error
        else:
            _remove_folder(place)


def _files(container: Container, name: str) -> tuple[Path, ...]:
    """The files and folders of a namespace in the home."""
    root = container.home.root
    watched = root / "index" / f"watched-{folder_name(name)}.json"
    folders = (root / place / folder_name(name) for place in _FOLDERS)
    return (root / _MIRRORS / f"{mirror_name(name)}.json", watched, *folders)


def remove_orphans(container: Container) -> None:
    """Remove the index of every namespace that another process has deleted."""
    folder = container.home.root / "index"
    known = {folder_name(name) for name in container.namespaces()}
    if folder.is_dir():
        for place in list(folder.iterdir()):
            if place.is_dir() and not place.is_symlink() and place.name not in known:
                _remove_folder(place)


def _remove_folder(folder: Path) -> None:
    try:
        if folder.exists():
            shutil.rmtree(folder)
        # An empty one lists nothing, and says that there was something.
        parent = folder.parent
        if parent.exists() and next(parent.iterdir(), None) is None:
            parent.rmdir()
    except OSError as error:
        raise translate(error, "remove", folder) from error


def _tokens(container: Container) -> Tokens:
    rows = container.sealing.rows
    return Tokens(container.truth, rows, clock=container.clock, ids=container.ids)


def _outside(container: Container, name: str) -> tuple[str, ...]:
    """What of a namespace lies outside the home."""
    from anaphora.store.table_rows import TableRows

    left = []
    ledger = container.home.root / _MIRRORS / f"{mirror_name(name)}.json"
    # A ledger that is missing or damaged names no folder.
    with suppress(OSError, ValueError, KeyError, TypeError):
        left.append(f"mirror: {json.loads(ledger.read_bytes())['folder']}")
    rows = TableRows(container.truth, name, container.sealing.rows)
    for row in rows.find("sync_state", {"name": "remote"}):
        address, *_ = json.loads(row["value"])["value"]
        left.append(f"sync remote: {address}")
    return tuple(left)
