"""What a turn's text shows at a glance: small marks that ranking reads instead of the text.

In: one turn's text. Out: an integer of flags. It never looks at other turns and never fails,
whatever the text; a text of megabytes is judged by its beginning and its end.
"""

from __future__ import annotations

import re

PERSONAL = 1  # the speaker says something of themselves: what questions about people ask for
STANDING = 2  # an instruction for later ("always …", "from now on …", "… when I ask about …")

# Pasted logs and files are judged by what surrounds them, where people write their own words.
_HEAD = 4000
_TAIL = 1000
# Who gives a standing instruction opens with it; further down, "always" is somebody's document.
_OPENING = 400

_PERSONAL = re.compile(r"\b(?:I|my|My|we|We|our|Our|mine|I['’](?:m|ve|d|ll))\b")
_STANDING = re.compile(
    r"(?:^|[.!?\n])\s*(?:please\s+)?(?:always|never|from now on|going forward)\b"
    r"|\bwhen(?:ever)? I ask\b",
    re.IGNORECASE,
)


def turn_flags(text: str) -> int:
    """The flags of `text`, or-ed together.

    English words are known; a text in another language has no flags, which costs it nothing
    against others of that language. Takes a few microseconds for a usual turn.
    """
    shown = text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]} {text[-_TAIL:]}"
    flags = PERSONAL if _PERSONAL.search(shown) else 0
    if _STANDING.search(text, 0, _OPENING):
        flags |= STANDING
    return flags
