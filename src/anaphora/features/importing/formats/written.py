"""Texts that an assistant writes beside its messages: artifacts, canvases, files for the user.

They are what was asked for, so they are kept among its words. A new text comes whole, under its
title; of a change the passage comes that it stands in afterwards, which says what holds now. No
pattern out of a file is ever run.
"""

from __future__ import annotations

import re
from typing import Final

_WHOLE: Final = re.compile(r"(?:\(\?s\))?\^?(?:\.[*+]|\[\\s\\S\][*+])\??\$?")
_ESCAPED: Final = re.compile(r"\\([^\w\s])")


def labelled(name: object, text: str) -> str:
    """A text under the name that it has, if it has one; "" for a blank text."""
    if not text.strip():
        return ""
    label = name.strip() if isinstance(name, str) else ""
    return f"{label}:\n{text}" if label else text


class ConversationTexts:
    """The texts of one conversation, each by its key, as they stand after what was read so far."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[object, str]] = {}
        self._latest = ""

    def write(self, key: object, title: object, text: str) -> str:
        """A text that is new or takes the place of one; returns its words."""
        key = self._remember_key(key)
        previous_title = self._texts.get(key, (None, ""))[0]
        self._texts[key] = (title or previous_title, text)
        return labelled(title or previous_title, text)

    def change(self, key: object, old: str, new: str) -> str:
        """`old` becomes `new` in a text; returns the passage that has it. Where the text or the
        place in it is not known, the words that were put in are all there is."""
        key = self._remember_key(key)
        title, text = self._texts.get(key, (None, ""))
        at = text.find(old) if old else -1
        if at < 0:
            return labelled(title, new)
        changed_text = text[:at] + new + text[at + len(old) :]
        self._texts[key] = (title, changed_text)
        start = changed_text.rfind("\n\n", 0, at)
        end = changed_text.find("\n\n", at + len(new))
        passage = changed_text[
            start + 2 if start >= 0 else 0 : end if end >= 0 else len(changed_text)
        ]
        return labelled(title, passage.strip("\n"))

    def change_pattern(self, pattern: str, new: str) -> str:
        """Replace the match of a canvas's regular expression by `new` in the latest text."""
        if _WHOLE.fullmatch(pattern):
            return self.write(self._latest, None, new)
        return self.change(self._latest, _ESCAPED.sub(r"\1", pattern), new)

    def _remember_key(self, key: object) -> str:
        self._latest = key if isinstance(key, str) and key else self._latest
        return self._latest
