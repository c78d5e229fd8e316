"""Finds the transcripts of coding agents that can be imported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anaphora.features.coding_agents.setup.clients import CLIENTS
from anaphora.features.coding_agents.setup.transcripts import waiting_transcripts
from anaphora.settings import ClientFolders
from anaphora.surfaces.wire import counted


def find_offers(folders: ClientFolders) -> Iterator[tuple[Path, str]]:
    """The folders of transcripts, by client."""
    for client in CLIENTS:
        waiting = waiting_transcripts(client, folders)
        if waiting is not None:
            yield Path(waiting.folder), f"{counted(waiting.count, 'transcript')} of {client}"
