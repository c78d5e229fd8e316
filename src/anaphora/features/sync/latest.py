"""The clocks of other devices, as a write of records sees them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from anaphora.features.sync.tables import SYNC_STATE
from anaphora.store.codecs import from_micros, to_micros

if TYPE_CHECKING:
    from anaphora.store.records.transaction import RecordTransaction

_LAST_TIME: Final = datetime(9999, 12, 30, tzinfo=UTC)


def latest_seen(work: RecordTransaction) -> datetime | None:
    """How far the clocks of devices are whose changes were seen; None if nothing is synced."""
    for row in work.find_rows(SYNC_STATE, name="clock"):
        micros = int(json.loads(row["value"])["value"][0])
        return from_micros(min(micros, to_micros(_LAST_TIME)))
    return None
