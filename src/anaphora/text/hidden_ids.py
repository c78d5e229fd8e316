"""Names for ids that hold a secret: they leave a home under such a name, and are found by it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

__all__ = ["hidden_id", "is_hidden", "named_so"]

_PREFIX: Final = "masked-"
_HIDDEN: Final = re.compile(rf"{_PREFIX}[0-9a-f]{{24}}")


def hidden_id(whole: str) -> str:
    """The name of an id: always the same for the same one, and nothing of it can be read."""
    return _PREFIX + hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def is_hidden(name: str) -> bool:
    """Whether this is such a name."""
    return _HIDDEN.fullmatch(name) is not None


def named_so(name: str, ids: Iterable[str]) -> str:
    """The id with this name; what is no such name, or of no id, is given back as it is."""
    if not is_hidden(name):
        return name
    return next((full_id for full_id in ids if hidden_id(full_id) == name), name)
