"""The tags and the text of HTML, in time that grows with its length alone.

Python's own parser looks for the end of what is never closed again and again, on most versions that
we run on: 100 kB of `<!--` take it ten seconds. Here every character is looked at a bounded number
of times. What is not closed when the page ends is a comment, or else text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

Attributes = list[tuple[str, str | None]]

HEADINGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6")
BLOCKS: Final = frozenset(
    ("p", "div", "section", "article", "header", "footer", "ul", "ol", "table", "tr", "blockquote",
     "hr", *HEADINGS)
)  # fmt: skip
"""Elements that begin a line in every reading of HTML."""
UNSEEN: Final = frozenset(("script", "style", "head", "template"))
"""Elements whose text is in no reading of HTML."""

_RAW: Final = ("script", "style")
_NAME: Final = re.compile(r"[a-zA-Z][^\t\n\r\f />]*+")
_ATTRIBUTE: Final = re.compile(
    r"""[\s/]*+([^\s/>][^\s/>=]*+)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|(?!["'])[^\s>]*+))?"""
)
_SPACE: Final = re.compile(r"[\s/]*+")
_RAW_END: Final = {tag: re.compile(rf"</{tag}(?=[\s/>])", re.I) for tag in _RAW}
_NUMBER: Final = re.compile(r"&#(?:[0-9]{8,}+|[xX][0-9a-fA-F]{7,}+);?")
_LONGEST_END: Final = len("</script>")
_SPACES: Final = re.compile(r"[ \t\r\n\f]+")


@dataclass(slots=True)
class MarkupReader:
    """Calls `start(tag, attributes)`, `end(tag)` and `text(characters)` as they come.

    Names are in small letters, references to characters are resolved. `held` is what waits for the
    rest of a tag or comment.
    """

    start: Callable[[str, Attributes], None]
    end: Callable[[str], None]
    text: Callable[[str], None]
    held: str = ""
    _raw: str = field(default="")

    def read(self, markup: str) -> None:
        """Read a whole page."""
        self.feed(markup)
        self.close()

    def feed(self, markup: str) -> None:
        """Read on."""
        is_open = self.held.startswith("<") and len(self.held) > _LONGEST_END and not self._raw
        if is_open and ">" not in markup:
            # The tag or comment that is open goes on: it is read again when it may end.
            self.held += markup
            return
        self.held = self._read(self.held + markup if self.held else markup, last=False)

    def close(self) -> None:
        """Read what is left: nothing more comes."""
        remaining, self.held = self.held, ""
        self._read(remaining, last=True)

    def _read(self, markup: str, *, last: bool) -> str:
        """Read all that is complete, or with `last` all; what is left."""
        at, size = 0, len(markup)
        while at < size:
            if self._raw:
                following = self._read_raw(markup, at, last=last)
            elif markup[at] == "<":
                following = self._read_tag(markup, at)
                if following < 0 and last:
                    # A comment without an end is left out, anything else is text.
                    if not markup.startswith(("<!", "<?"), at):
                        self.text(resolved(markup[at:]))
                    following = len(markup)
            else:
                following = markup.find("<", at)
                if following < 0:
                    # A reference may be cut in two.
                    cut_position = -1 if last else markup.rfind("&", max(at, size - 40))
                    following = size if cut_position < 0 else cut_position
                    if following == at:
                        return markup[at:]
                self.text(resolved(markup[at:following]))
            if following < 0:
                return markup[at:]
            at = following
        return ""

    def _read_raw(self, markup: str, at: int, *, last: bool) -> int:
        """Past the text of a script, up to what ends it; -1 if that may still come."""
        match = _RAW_END[self._raw].search(markup, at)
        if match is not None:
            self._raw = ""
            self.text(markup[at : match.start()])
            return match.start()
        following = len(markup) if last else max(at, len(markup) - _LONGEST_END)
        if following == at:
            return -1
        self.text(markup[at:following])
        return following

    def _read_tag(self, markup: str, at: int) -> int:
        """Past the tag or comment at this place; -1 if it has no end."""
        if markup.startswith("<!--", at):
            # `<!-->` and `<!--->` are whole.
            closing = markup.find("-->", at + 2)
            return closing + 3 if closing >= 0 else -1
        opening = markup[at + 1 : at + 2]
        if opening in ("!", "?") or (opening == "/" and not _NAME.match(markup, at + 2)):
            if opening == "/" and len(markup) < at + 3:
                return -1
            return markup.find(">", at + 2) + 1 or -1
        closes = opening == "/"
        name = _NAME.match(markup, at + 1 + closes)
        if name is None:
            if len(markup) < at + 2:
                return -1
            self.text("<")
            return at + 1
        attributes, stop = _read_attributes(markup, name.end())
        if stop < 0:
            return -1
        tag = name[0].lower()
        if closes:
            self.end(tag)
            return stop
        self.start(tag, attributes)
        if markup[stop - 2] == "/":
            self.end(tag)
        elif tag in _RAW:
            self._raw = tag
        return stop


def collapse_spaces(text: str) -> str:
    """Text outside preformatted elements: white space of any kind and length is one space."""
    return _SPACES.sub(" ", text)


def elements(text: str, tag: str) -> Iterator[str]:
    """What stands in each element of a name that programs put into texts as it is."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    start = text.find(opening)
    while start >= 0 and (end := text.find(closing, start)) >= 0:
        yield text[start + len(opening) : end]
        start = text.find(opening, end)


def _read_attributes(markup: str, at: int) -> tuple[Attributes, int]:
    """The attributes of a tag, and where it ends; -1 if it has no end."""
    attributes: Attributes = []
    while True:
        space = _SPACE.match(markup, at)
        at = space.end() if space is not None else at
        if at >= len(markup):
            return attributes, -1
        if markup[at] == ">":
            return attributes, at + 1
        match = _ATTRIBUTE.match(markup, at)
        if match is None:
            return attributes, -1
        name, attribute_text = match.groups()
        if attribute_text is not None and attribute_text[:1] in ("'", '"'):
            attribute_text = attribute_text[1:-1]
        attributes.append(
            (name.lower(), None if attribute_text is None else resolved(attribute_text))
        )
        at = match.end()


def resolved(text: str) -> str:
    """Text with its references to characters resolved; a number of no character is U+FFFD."""
    if "&" not in text:
        return text
    return html.unescape(_NUMBER.sub(_shorten, text))


def _shorten(match: re.Match[str]) -> str:
    """A reference without leading zeros. Python refuses to read a number of many digits."""
    number = match[0][2:].rstrip(";")
    mark = number[:1] if number[:1] in "xX" else ""
    digits = number.removeprefix(mark).lstrip("0") or "0"
    return f"&#{mark}{digits if len(digits) < 8 else 'fffd' if mark else '65533'};"
