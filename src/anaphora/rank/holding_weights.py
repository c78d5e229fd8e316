"""Weights of `rank/holding`: `make fit ONLY=holding` writes them."""

from typing import Final

CONSTANT: Final = "constant"

# Fitted on 3,564 pairs; in 1,514 the newer one is right.
BEFORE: Final = {
    "constant": -1.7615,
    "replaces": 0.2971,
    "both": -1.4311,
    "repeats": 2.2916,
    "gap": 1.9132,
    "meaning gap": 2.4722,
    "newer meaning": 2.8935,
    "asked gap": -0.6706,
    "days": 3.1173,
    "reply": -0.3425,
    "now": 0.8419,
    "restated": 0.0000,
    "message": -1.2484,
    "newer tentative": -0.7051,
    "newer unknown": -0.8301,
}
