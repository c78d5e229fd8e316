"""`python -m tools.reader STEP …`: one step of making a reader (`STEP --help`)."""

from __future__ import annotations

import sys

from tools.models.__main__ import main

STEPS = {
    "prepare": "read the sets and the corpus, write examples of both judgements",
    "train": "train on the examples, write weights and the 32-bit model",
    "distil": "judge the examples with a larger network, to train a small one on",
    "evaluate": "measure a model on what it was not trained on",
    "build": "make the folder of 8-bit weights",
}

if __name__ == "__main__":
    sys.exit(main("tools.reader", STEPS, sys.argv[1:]))
