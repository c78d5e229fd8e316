"""`python -m tools.judge STEP …`: one step of making the judge of pairs (`STEP --help`)."""

from __future__ import annotations

import sys

from tools.models.__main__ import main

STEPS = {
    "trees": "fit the trees over features of pairs",
    "prepare": "write what the pair model is trained on",
    "restore": "make float weights of what ships, to train on from",
    "train": "train the pair model",
    "build": "make its folder of 8-bit weights",
    "stack": "put its judgement and the trees' together",
    "evaluate": "measure the judges on what nothing was fitted to",
    "gap": "measure recall without links, with what ships and with perfect labels",
}

if __name__ == "__main__":
    sys.exit(main("tools.judge", STEPS, sys.argv[1:]))
