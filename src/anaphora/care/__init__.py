"""Looking after a home: counting, checking, repairing, backing up, moving.

In: the parts that the facade wired. Out: values. Nothing here changes words in truth: `repair`
makes derived things again, `restore` fills an empty home, and `import_export` adds what is missing.
"""

from __future__ import annotations

from anaphora.care.backup import Backup, backup, verify
from anaphora.care.checks import doctor, stats
from anaphora.care.lanes import lane_checks, repair_sections
from anaphora.care.repair import repair
from anaphora.care.restore import restore
from anaphora.care.transfer import Exported, export, exports_among, is_export
from anaphora.care.transfer_in import Transferred, import_export

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
