"""Looking after a home: counting, checking, repairing, backing up, moving.

Nothing here changes words in truth: `repair` makes derived
things again, `restore` fills an empty home, and `import_export` adds what is missing.
"""

from __future__ import annotations

from anaphora.ops.backup import Backup, backup, verify
from anaphora.ops.checks import doctor, stats
from anaphora.ops.health import Health, health
from anaphora.ops.imports import import_sources
from anaphora.ops.repair import repair
from anaphora.ops.restore import restore
from anaphora.ops.transfer import Exported, export, is_export
from anaphora.ops.transfer_in import Transferred, import_export

__all__ = [
    "Backup",
    "Exported",
    "Health",
    "Transferred",
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
