"""The embedders that a home has used: a small file beside its settings.

It has the calibration of their cosines, the dimensions of an endpoint's vectors and those of a few
sentences, and the files that a folder's name was computed from. It has no secrets and nothing of
the user's texts. Without the file, everything is determined again.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from anaphora.settings import EMBEDDERS_FILE

Record = dict[str, Any]


class EmbedderRegistry:
    """The records of one home, or of this process only if `home` is None.

    A missing home is not created: new records wait for it. A file that cannot be read or written
    only costs time.
    """

    def __init__(self, home: Path | None) -> None:
        self._path = None if home is None else home / EMBEDDERS_FILE
        self._fresh: dict[str, dict[str, Record]] = {}
        self._lock = threading.Lock()

    def get(self, group: str, key: str) -> Record:
        """The record of a key, {} if there is none."""
        with self._lock:
            new_record = self._fresh.get(group, {}).get(key)
            return dict(
                new_record if new_record is not None else self._read().get(group, {}).get(key, {})
            )

    def put(self, group: str, key: str, record: Record) -> None:
        """Set the record of a key."""
        with self._lock:
            self._fresh.setdefault(group, {})[key] = record
        self.flush()

    def flush(self) -> None:
        """Write new records, if the home exists."""
        with self._lock:
            if self._path is None or not self._fresh or not self._path.parent.is_dir():
                return
            stored_groups = self._read()
            for group, records in self._fresh.items():
                stored_groups.setdefault(group, {}).update(records)
            new_file = self._path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.new")
            with suppress(OSError):
                new_file.write_text(
                    json.dumps(stored_groups, indent=1, sort_keys=True), encoding="utf-8"
                )
                new_file.replace(self._path)
                self._fresh = {}

    def _read(self) -> dict[str, dict[str, Record]]:
        if self._path is None:
            return {}
        try:
            stored_groups = json.loads(self._path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        if not isinstance(stored_groups, dict):
            return {}
        groups = {
            group: records for group, records in stored_groups.items() if isinstance(records, dict)
        }
        return {
            group: {key: record for key, record in records.items() if isinstance(record, dict)}
            for group, records in groups.items()
        }
