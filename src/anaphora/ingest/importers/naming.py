"""A lasting key for a conversation that has no id of its own, and whose name is whose.

In: what a file says of a conversation. Out: keys. Never looks at the disk.
"""

from __future__ import annotations

import json
from collections import Counter

from anaphora.ingest.importers.base import ImportFile
from anaphora.ingest.importers.drafts import digest


class ChatKeys:
    """Keys for the conversations of one file."""

    def __init__(self, file: ImportFile) -> None:
        self._stem = file.stem
        self._taken: Counter[str] = Counter()

    def take(self, own: object, first: object) -> str:
        """The conversation's own id; without one the file's stem and a hash of its first message.

        The hash, not the place in the file: a conversation that a newer file has further down
        must stay the same. Two that begin alike are told apart by their order.
        """
        if isinstance(own, str) and own:
            return own
        if isinstance(own, int) and not isinstance(own, bool):
            return str(own)
        key = f"{self._stem}-{digest(json.dumps(first, sort_keys=True))[:8]}"
        self._taken[key] += 1
        return key if self._taken[key] == 1 else f"{key}-{self._taken[key]}"
