"""Finds files of other programs that can be imported, in their usual folders.

Only the beginnings of files in the download folder are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from anaphora.errors import AnaphoraError
from anaphora.settings import ClientFolders
from anaphora.surfaces.cli.offers import download_folder, newest_first

_NAMES: Final = {
    "chatgpt": "export of ChatGPT",
    "claude_ai": "export of Claude.ai",
    "deepseek": "export of DeepSeek",
    "gemini_takeout": "Google Takeout with Gemini",
    "telegram": "export of Telegram",
}
_ENDINGS: Final = (".zip", ".json", ".af")
_UNCERTAIN: Final = frozenset(("jsonl", "markdown", "sharegpt", "neo"))
"""Formats whose detection may be wrong for files of other programs."""
_MOST_FILES: Final = 200
"""How many files of the download folder are examined, newest first."""
_PROGRAMS: Final = (
    (".mem0/history.db", "memories of mem0"),
    (".claude-mem/claude-mem.db", "memories of claude-mem"),
    ("basic-memory", "notes of basic-memory"),
)


def find_offers(folders: ClientFolders) -> Iterator[tuple[Path, str]]:
    """Stores of other programs, then exports in the download folder, newest first."""
    for relative, kind in _PROGRAMS:
        path = folders.user / relative
        if path.exists():
            yield path, kind
    from anaphora.features.importing.formats import detect

    downloads: list[Path] = []
    with suppress(OSError):
        files = download_folder(folders).iterdir()
        downloads = [path for path in files if path.suffix.lower() in _ENDINGS]
    for _, path in newest_first(downloads)[:_MOST_FILES]:
        with suppress(AnaphoraError, OSError):
            form = detect(path)
            if form not in _UNCERTAIN:
                yield path, _NAMES.get(form, form.replace("_", " "))
