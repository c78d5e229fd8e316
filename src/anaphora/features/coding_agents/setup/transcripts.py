"""Finds existing transcripts of a client that can be imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anaphora.settings import ClientFolders


@dataclass(frozen=True, slots=True)
class WaitingTranscripts:
    """A folder of transcripts, and their number."""

    folder: str
    count: int


_FOLDERS: Final[Mapping[str, tuple[Callable[[ClientFolders], Path], str]]] = {
    "claude-code": (lambda at: at.claude / "projects", "*.jsonl"),
    "codex": (lambda at: at.codex / "sessions", "*.jsonl"),
    "gemini": (lambda at: at.user / ".gemini" / "tmp", "session-*.json*"),
    "cursor": (lambda at: at.applications / "Cursor" / "User", "state.vscdb"),
    "vscode": (lambda at: at.applications / "Code" / "User", "chatSessions/*.json*"),
}
"""Where each client keeps its transcripts, and the pattern of their names."""


def waiting_transcripts(client: str, folders: ClientFolders) -> WaitingTranscripts | None:
    """The transcripts in a client's own folder; None if there are none. No file is opened."""
    if client not in _FOLDERS:
        return None
    folder_of, pattern = _FOLDERS[client]
    folder = folder_of(folders)
    try:
        count = sum(1 for _ in folder.rglob(pattern))
    except OSError:
        return None
    return WaitingTranscripts(str(folder), count) if count else None
