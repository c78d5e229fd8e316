"""The transcripts that a client has already: they are memory that waits to be imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anaphora.core.config import ClientFolders


@dataclass(frozen=True, slots=True)
class WaitingTranscripts:
    """A folder of transcripts, and how many there are in it."""

    folder: str
    count: int


_FOLDERS: Final[Mapping[str, tuple[Callable[[ClientFolders], Path], str]]] = {
    "claude-code": (lambda at: at.claude / "projects", "*.jsonl"),
    "codex": (lambda at: at.codex / "sessions", "*.jsonl"),
    "gemini": (lambda at: at.user / ".gemini" / "tmp", "session-*.json*"),
    "cursor": (lambda at: at.applications / "Cursor" / "User", "state.vscdb"),
    "vscode": (lambda at: at.applications / "Code" / "User", "chatSessions/*.json*"),
}
"""Where each client keeps them, and what their names look like."""


def waiting_transcripts(client: str, folders: ClientFolders) -> WaitingTranscripts | None:
    """What lies in a client's own folder; None where nothing does. No file is opened."""
    if client not in _FOLDERS:
        return None
    place, pattern = _FOLDERS[client]
    folder = place(folders)
    try:
        count = sum(1 for _ in folder.rglob(pattern))
    except OSError:
        return None
    return WaitingTranscripts(str(folder), count) if count else None
