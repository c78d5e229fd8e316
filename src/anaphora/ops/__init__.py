"""Looking after a home: counting, checking, repairing, backing up, moving.

In: the parts that the facade wired. Out: values. Nothing here changes words in truth: `repair`
makes derived things again, `restore` fills an empty home, and `import_export` adds what is missing.
"""

from __future__ import annotations

from anaphora.ops.backup import Backup, backup, verify
from anaphora.ops.checks import doctor, stats
from anaphora.ops.lanes import lane_checks, repair_sections
from anaphora.ops.repair import repair
from anaphora.ops.restore import restore
from anaphora.ops.transfer import Exported, export, exports_among, is_export
from anaphora.ops.transfer_in import Transferred, import_export

__all__ = [
    "Backup",
    "Exported",
    "Transferred",
    "backup",
    "doctor",
    "export",
    "exports_among",
    "import_export",
    "is_export",
    "lane_checks",
    "repair",
    "repair_sections",
    "restore",
    "stats",
    "verify",
]
