"""Options that several commands have, as rows of their tables."""

from __future__ import annotations

from typing import Final

from anaphora.calls.parameters import PARAMETERS
from anaphora.surfaces.cli.grammar import Option

AS_JSON: Final = Option("as_json", "JSON for programs.", bool, default=False, names=("--json",))
MIN_CONFIDENCE: Final = Option(
    "min_confidence", PARAMETERS["min_confidence"].meaning, float, least=0, most=1
)
TIMEOUT: Final = Option("timeout", PARAMETERS["timeout"].meaning, float, least=0)
