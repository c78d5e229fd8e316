"""Where the files of a run lie. What ships is its folder `product`, and nothing else of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from anaphora.ingest.judging import STACK_FILE, TREES_FILE, read_arrays
from anaphora.rank.pairs import CalibratedTrees, Stack
from anaphora.reading.model import MANIFEST_FILE, MODEL_FILE

RUN: Final = Path(__file__).resolve().parents[2] / ".models" / "judge"
"""The folder that all steps read and write by default."""

PRODUCT: Final = "product"
"""The folder of a run that is the product's, as `anaphora.ingest.judging` reads it."""

_STEPS: Final = {
    TREES_FILE: "trees",
    MODEL_FILE: "build",
    MANIFEST_FILE: "build",
    STACK_FILE: "stack",
}


def product_file(run: Path, name: str) -> Path:
    """A file of the product's folder. Raises SystemExit where it is missing."""
    file = run / PRODUCT / name
    if not file.is_file():
        raise SystemExit(f"{file} is missing: `python -m tools.judge {_STEPS[name]}` writes it")
    return file


def product_model(run: Path) -> Path:
    """The folder of the pair model. Raises SystemExit where a file of it is missing."""
    product_file(run, MODEL_FILE)
    return product_file(run, MANIFEST_FILE).parent


def read_trees(run: Path) -> CalibratedTrees:
    """The trees of a run. Raises SystemExit where there are none."""
    return CalibratedTrees.of(read_arrays(product_file(run, TREES_FILE)))


def read_stack(run: Path) -> Stack:
    """The stack of a run. Raises SystemExit where there is none."""
    arrays = read_arrays(product_file(run, STACK_FILE))
    return Stack(arrays["weights"], str(arrays["model"]))
