"""The weights of `rank/currency`, as `python -m tools.fit_currency` writes them.

Fitted on 5,727 pairs, of which 446 are changes.
"""

from typing import Final

CONSTANT: Final = -5.6021

WEIGHTS: Final = {
    "alike": 1.1935,
    "held": 3.7841,
    "asked in both": -0.8789,
    "else in both": 0.4020,
    "days": 5.2977,
    "reply": 2.8699,
    "gap": -0.0337,
    "meaning gap": 1.3989,
    "asked gap": 1.3169,
    "same subject": 0.5462,
    "other subject": 0.4813,
    "other person": -1.2456,
    "older meaning": 0.3051,
    "older asked": -0.5832,
    "older of asked": -1.0028,
    "older of others": 1.0024,
    "older words": -0.4342,
    "older size": 0.1451,
    "older pasted": -0.3147,
    "older personal": -0.4319,
    "older asks": 0.9653,
    "older unknown": 0.6102,
    "newer meaning": 3.0931,
    "newer asked": 2.3056,
    "newer of asked": -0.1518,
    "newer of others": -1.1640,
    "newer words": 0.1029,
    "newer size": -0.4489,
    "newer pasted": -0.9000,
    "newer personal": -0.1485,
    "newer asks": -1.9915,
    "newer unknown": -1.4238,
    "past": -0.2308,
    "now": 0.8395,
    "long": 0.5488,
    "longer": -2.5341,
    "message": -1.3794,
    "days in a message": -2.9949,
    "gap in a message": 0.9325,
    "meaning gap in a message": 0.1628,
    "asked gap in a message": -0.5258,
    "newer asked in a message": -3.1434,
    "older of asked in a message": -0.4479,
}
