"""Reads the commands in a client's configuration as the client itself does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from typing import Any, Final

from anaphora.errors import InvalidInput, StoreError
from anaphora.features.coding_agents.setup.clients import CLIENTS, SettingsEntry, entries
from anaphora.features.coding_agents.setup.files import read_document
from anaphora.features.coding_agents.setup.ours import own_hooks
from anaphora.settings import ClientFolders
from anaphora.store.disk import translate

_ANY_COMMAND: Final = ("anaphora",)
"""A placeholder: the position of an entry does not depend on its command."""


@dataclass(frozen=True, slots=True)
class WrittenServer:
    """How a client starts the memory server: the words, and additional variables."""

    words: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class WrittenSetup:
    """The configuration of one client. `hooks` has the shell line of each event."""

    client: str
    server: WrittenServer | None
    hooks: Mapping[str, str]


def written_setup(client: str, folders: ClientFolders) -> WrittenSetup:
    """Read a client's configuration back.

    `InvalidInput` if a file or an entry is malformed, `StoreError` if a file cannot be read.
    """
    server: WrittenServer | None = None
    hooks: dict[str, str] = {}
    for entry in entries(client, folders, _ANY_COMMAND):
        if not entry.keys:
            # The skill is a text and starts nothing.
            continue
        content: Any = None
        try:
            content = read_document(entry.form, entry.path, entry.path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            raise translate(error, "read", entry.path) from error
        for key in entry.keys:
            content = content.get(key) if isinstance(content, Mapping) else None
        if entry.hook:
            for path in own_hooks(content, entry.hook, None):
                hook = reduce(getitem, path, content)
                hooks.setdefault(entry.keys[-1], hook["command"])
        elif not entry.given and content is not None:
            server = _server(entry, content)
    return WrittenSetup(client, server, hooks)


def clients_set_up(folders: ClientFolders) -> tuple[str, ...]:
    """The clients with Anaphora in their files, including unreadable files."""
    clients = []
    for client in CLIENTS:
        try:
            setup = written_setup(client, folders)
            is_set_up = setup.server is not None or bool(setup.hooks)
        except (InvalidInput, StoreError):
            is_set_up = False
            # A damaged file that does not mention Anaphora is ignored.
            for path in {entry.path for entry in entries(client, folders, _ANY_COMMAND)}:
                with suppress(OSError):
                    is_set_up = is_set_up or b"anaphora" in path.read_bytes()
        if is_set_up:
            clients.append(client)
    return tuple(clients)


def _server(entry: SettingsEntry, value: Any) -> WrittenServer:
    location = f"{entry.path}: {'.'.join(entry.keys)}"
    if not isinstance(value, Mapping):
        raise InvalidInput(location, value, "expected an object with a command")
    command, words = value.get("command"), value.get("args", [])
    variables, folder = value.get("env", {}), value.get("cwd")
    if not isinstance(command, str) or not command or not _are_texts(words):
        raise InvalidInput(location, command, "expected a command and a list of arguments")
    if not isinstance(variables, Mapping) or not _are_texts(list(variables.values())):
        raise InvalidInput(f"{location}.env", None, "expected an object of texts")
    return WrittenServer(
        (command, *words), dict(variables), folder if isinstance(folder, str) else None
    )


def _are_texts(values: Any) -> bool:
    return isinstance(values, Sequence) and all(isinstance(text, str) for text in values)
