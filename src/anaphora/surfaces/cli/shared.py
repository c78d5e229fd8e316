"""Options that several commands have, as rows of their tables."""

from __future__ import annotations

from typing import Final

from anaphora.surfaces.cli.grammar import Option
from anaphora.surfaces.meanings import LIMIT, meaning

AS_JSON: Final = Option("as_json", "JSON for programs.", bool, default=False, names=("--json",))
MIN_CONFIDENCE: Final = Option("min_confidence", meaning("min_confidence"), float, least=0, most=1)
TIMEOUT: Final = Option("timeout", LIMIT, float, least=0)
