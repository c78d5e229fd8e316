"""Deleting a namespace with all that it holds or held, for every process that uses the home."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anaphora.container.feature import registered
from anaphora.errors import InvalidInput, NotFound
from anaphora.language.names import standing_form
from anaphora.store.disk import translate
from anaphora.store.home.sealing import DEFAULT_NAMESPACE, folder_name
from anaphora.store.tokens import Tokens
from anaphora.values.namespaces import DeletedNamespace

if TYPE_CHECKING:
    from anaphora.container.home import Container

_FOLDERS: Final = ("index", "namespaces")
"""Thread folders are removed last: while they exist the namespace is listed."""


@contextmanager
def hold_namespace(container: Container, purpose: str, namespace: str) -> Iterator[None]:
    """Hold a lock of a namespace; with a database server, across all its machines."""
    from anaphora.store.db.locks import hold_server_lock
    from anaphora.store.threads.files import ThreadLocks

    digest = hashlib.sha256(f"{purpose} {namespace}".encode()).digest()
    if container.truth.path is None:
        key = int.from_bytes(digest[:8], signed=True)
        with hold_server_lock(container.truth, key):
            yield
        return
    key_name = f"{purpose.replace(' ', '-')}-{digest.hex()[:16]}"
    # What it is held for, such as an exchange with other devices, may take minutes.
    with ThreadLocks(container.home.root).hold(key_name, patience=-1):
        yield


def delete_namespace(container: Container, name: str) -> DeletedNamespace:
    """As `Memory.delete_namespace`."""
    if name == DEFAULT_NAMESPACE:
        reason = "it belongs to the home: to delete all of it, delete the home's folder"
        raise InvalidInput("name", name, reason)
    namespaces = container.namespaces()

    def stands(one: str) -> bool:
        # A process killed during a deletion may have left files of an unlisted name.
        return one in namespaces or any(map(os.path.lexists, _files(container, one)))

    name = standing_form(name, stands)
    if not stands(name):
        raise NotFound("namespace", name)
    with ExitStack() as locks:
        for feature in registered():
            for purpose in feature.locks:
                locks.enter_context(hold_namespace(container, purpose, name))
        features = container.own(name).features
        remaining = tuple(text for feature in features for text in feature.list_outside())
        rows = container.sealing.rows
        store = Tokens(container.truth, rows, clock=container.clock, ids=container.ids)
        tokens = store.close_namespace(name)
        rows.vouch(name, [])
        clean = container.erase_namespace(name)
    return DeletedNamespace(name, tokens, remaining, clean)


def remove_files(container: Container, name: str) -> None:
    """Remove the files of a namespace. Raises `StoreError` and its kinds."""
    for path in _files(container, name):
        if path.suffix == ".json" and not path.is_dir():
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise translate(error, "remove", path) from error
        else:
            _remove_folder(path)


def _files(container: Container, name: str) -> tuple[Path, ...]:
    """The files and folders of a namespace in the home."""
    root = container.home.root
    watch_file = root / "index" / f"watched-{folder_name(name)}.json"
    folders = (root / folder / folder_name(name) for folder in _FOLDERS)
    of_features = (path for feature in registered() for path in feature.files(root, name))
    return (*of_features, watch_file, *folders)


def remove_orphans(container: Container) -> None:
    """Remove the indexes of namespaces that other processes have deleted."""
    folder = container.home.root / "index"
    current = {folder_name(name) for name in container.namespaces()}
    if folder.is_dir():
        for path in list(folder.iterdir()):
            if path.is_dir() and not path.is_symlink() and path.name not in current:
                _remove_folder(path)


def _remove_folder(folder: Path) -> None:
    try:
        if folder.exists():
            shutil.rmtree(folder)
        # An empty folder would reveal that there was a namespace.
        parent = folder.parent
        if parent.exists() and next(parent.iterdir(), None) is None:
            parent.rmdir()
    except OSError as error:
        raise translate(error, "remove", folder) from error
