"""Whether a home is still in the state in which this process opened it.

In: the folder of a home. Out: nothing, or `SealChanged`. A process that opened a clear home must
not write clear rows into it after another process has sealed it, and the other way round; one
look at a file's status (about 2 µs) before every read and write tells.
"""

from __future__ import annotations

from pathlib import Path

from anaphora.errors import SealChanged
from anaphora.store.crypto import marker


class Guard:
    """Watches the marker of one home. `check` is the data key's, None for a clear home."""

    def __init__(self, home: Path, key_check: str | None) -> None:
        self._home = home
        self._key_check = key_check
        self._place = marker.place_of(home) if key_check is not None else None

    def check(self) -> None:
        """Raise `SealChanged` when the home was sealed, opened up or given another data key."""
        place = marker.place_of(self._home)
        if place == self._place:
            return
        found = marker.read(self._home)
        same = found.check if found is not None and found.state == "sealed" else None
        if same != self._key_check or (found is not None and same is None):
            reason = "it was encrypted, decrypted or given new keys meanwhile; open it again"
            raise SealChanged(str(self._home), reason)
        # A new master key alone changes nothing for who has the data key.
        self._place = place
