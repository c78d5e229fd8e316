"""The line of `doctor` about unexpected errors: how many there were lately, and the newest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from anaphora.system.incidents import incidents, log_path, program_version
from anaphora.text.display import one_line
from anaphora.text.shown_times import shown_minute
from anaphora.values.conversations import Check

LATELY: Final = 7 * 86_400.0
"""Seconds for which an incident is reported."""


def incident_check(environ: Mapping[str, str], now: datetime) -> Check:
    """Not ok after an incident of this version that failed a call; others are only reported.

    An upgrade may have fixed the failures before it.
    """
    recent = incidents(environ, now.timestamp() - LATELY)
    if not recent:
        return Check("incidents", ok=True, detail="no unexpected errors in the last 7 days")
    counts = Counter(incident.surface for incident in recent)
    version = program_version()
    failures = [event for event in recent if not event.note and event.version == version]
    # A failure is more important than a newer incident that failed no call.
    newest = (failures or recent)[-1]
    when = datetime.fromtimestamp(newest.at, UTC)
    operation = f"{newest.surface} {newest.operation}".strip()
    note = f", {newest.note}" if newest.note else ""
    detail = (
        f"{len(recent):,} in the last 7 days "
        f"({', '.join(f'{surface} {count:,}' for surface, count in sorted(counts.items()))}); "
        f"the newest {newest.id} on {shown_minute(when)} in {operation}: "
        f"{newest.summary}{note} (version {newest.version}); log: {log_path(environ)}"
    )
    return Check("incidents", ok=not failures, detail=one_line(detail, None))
