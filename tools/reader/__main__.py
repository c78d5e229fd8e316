"""`python -m tools.reader STEP …`: one step of making a reader (`STEP --help`)."""

from __future__ import annotations

import importlib
import os
import sys

STEPS = {
    "prepare": "read the sets and the corpus, write examples of both judgements",
    "train": "train on the examples, write weights and the 32-bit model",
    "distil": "judge the examples with a larger network, to train a small one on",
    "evaluate": "measure a model on what it was not trained on",
    "build": "make the folder of 8-bit weights",
}


def main(words: list[str]) -> int:
    """Run one step; gives the exit code."""
    if not words or words[0] not in STEPS:
        print("usage: python -m tools.reader STEP [options]\n")
        print("\n".join(f"  {name:10} {what}" for name, what in STEPS.items()))
        return 0 if words[:1] in (["-h"], ["--help"]) else 2
    # Threads that wait for each other awake take ten times as long beside other work. Read by the
    # library of threads as it is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Only the step that runs is imported: three of them need torch, which others do not have.
    importlib.import_module(f"tools.reader.{words[0]}").main(words[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
