"""`python -m tools.models STEP …`: one step of making an embedder (`STEP --help`)."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping

STEPS = {
    "history": "make a story of an export and labels of your own",
    "candidates": "ask the product itself, keep what it brings",
    "prepare": "read the sets and the corpus, write examples",
    "distil": "score the examples' passages with a larger model",
    "train": "train on the examples, write weights",
    "mix": "mix networks that were trained from the same weights",
    "e5": "write a multilingual network to begin with",
    "align": "train it into the space of the English one",
    "evaluate": "measure a model on what it was not trained on",
    "build": "make the product's folder of 8-bit weights",
}


def main(package: str, steps: Mapping[str, str], words: list[str]) -> int:
    """Run one step of a package; gives the exit code."""
    if not words or words[0] not in steps:
        print(f"usage: python -m {package} STEP [options]\n")
        print("\n".join(f"  {name:10} {purpose}" for name, purpose in steps.items()))
        return 0 if words[:1] in (["-h"], ["--help"]) else 2
    # Threads that wait for each other awake take ten times as long beside other work. Read by the
    # library of threads as it is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Only the step that runs is imported: some need torch, which others do not have.
    importlib.import_module(f"{package}.{words[0]}").main(words[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main("tools.models", STEPS, sys.argv[1:]))
