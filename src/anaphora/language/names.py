"""Names in the form in which they are compared: paths, tags, categories, ids, namespaces, speakers.

What looks the same on a screen is one name, however it was typed: a name is kept composed (NFC).
What an earlier release kept in another form is found by either.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Final

__all__ = ["composed", "folded_path", "forms_of", "label_of", "standing_form"]

_LABEL: Final = re.compile(r"\s*([^\W_][\w.-]{1,40})\s*[:：]\s")


def label_of(text: str) -> str:
    """The word that a text begins with before a colon ("kestrel: …"), in small letters; or ""."""
    label = _LABEL.match(text)
    return label[1].casefold() if label else ""


def composed(name: str) -> str:
    """The name in Unicode's NFC, the one form in which names are kept and compared."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def forms_of(name: str) -> tuple[str, ...]:
    """The forms in which a name may have been kept, each once: as given, composed, taken apart."""
    if name.isascii():
        return (name,)
    return tuple(dict.fromkeys((name, composed(name), unicodedata.normalize("NFD", name))))


def standing_form(name: str, stands: Callable[[str], bool]) -> str:
    """The form of a name under which something stands already; composed where nothing does."""
    if name.isascii():
        return name
    return next((form for form in forms_of(name) if stands(form)), composed(name))


def folded_path(path: str) -> str:
    """What paths have in common that differ only in case or in Unicode form.

    Small letters and no more: "maße" and "masse" are two words.
    """
    return path.lower() if path.isascii() else composed(composed(path).lower())
