"""Maintenance of a home: `doctor` (checks, health, repair), `backup`, `transfer` (export, import).

Nothing here changes texts in the database: `repair` rebuilds derived data, `restore` fills an empty
home, and `import_export` adds what is missing.
"""

from __future__ import annotations

from anaphora.ops.backup.create import Backup, backup, verify
from anaphora.ops.backup.restore import restore
from anaphora.ops.doctor.checks import doctor, stats
from anaphora.ops.doctor.health import health
from anaphora.ops.doctor.repair import repair
from anaphora.ops.transfer.export import Exported, export, is_export
from anaphora.ops.transfer.load import import_export, import_sources
from anaphora.values.conversations import Health

__all__ = [
    "Backup",
    "Exported",
    "Health",
    "backup",
    "doctor",
    "export",
    "health",
    "import_export",
    "import_sources",
    "is_export",
    "repair",
    "restore",
    "stats",
    "verify",
]
