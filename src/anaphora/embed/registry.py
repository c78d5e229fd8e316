"""What a home knows of the embedders that it has used: a small file beside its settings.

How their cosines lie, how long an endpoint's vectors are and what they were for a few sentences,
and which files a folder's name was made from. Nothing in it is secret and nothing is of the user's
texts. Without the file all of it is found out again.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from anaphora.core.config import EMBEDDERS_FILE

Record = dict[str, Any]


class EmbedderRegistry:
    """The records of one home, or of nothing but this process where `home` is None.

    A home that is not there yet is not made: what is to be kept waits for it. A file that cannot be
    read or written costs time and nothing else.
    """

    def __init__(self, home: Path | None) -> None:
        self._path = None if home is None else home / EMBEDDERS_FILE
        self._fresh: dict[str, dict[str, Record]] = {}
        self._lock = threading.Lock()

    def get(self, group: str, key: str) -> Record:
        """What is known, {} if nothing is."""
        with self._lock:
            fresh = self._fresh.get(group, {}).get(key)
            return dict(fresh if fresh is not None else self._read().get(group, {}).get(key, {}))

    def put(self, group: str, key: str, record: Record) -> None:
        """Know this from now on."""
        with self._lock:
            self._fresh.setdefault(group, {})[key] = record
        self.flush()

    def flush(self) -> None:
        """Write what was not written yet, where there is a home to write it to."""
        with self._lock:
            if self._path is None or not self._fresh or not self._path.parent.is_dir():
                return
            kept = self._read()
            for group, records in self._fresh.items():
                kept.setdefault(group, {}).update(records)
            fresh = self._path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.new")
            with suppress(OSError):
                fresh.write_text(json.dumps(kept, indent=1, sort_keys=True), encoding="utf-8")
                fresh.replace(self._path)
                self._fresh = {}

    def _read(self) -> dict[str, dict[str, Record]]:
        if self._path is None:
            return {}
        try:
            found = json.loads(self._path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        if not isinstance(found, dict):
            return {}
        groups = {group: records for group, records in found.items() if isinstance(records, dict)}
        return {
            group: {key: one for key, one in records.items() if isinstance(one, dict)}
            for group, records in groups.items()
        }
