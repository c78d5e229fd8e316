"""What was filled into the forms of a PDF and noted on its pages, which is not in their text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from anaphora.ingest.documents.base import BROKEN

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

_MOST: Final = 20_000
"""Fields and notes that are looked at on a page, and beside all pages."""
_DEEPEST: Final = 20
_PUSH_BUTTON: Final = 1 << 16
_NO_NOTES: Final = frozenset(("/Link", "/Widget", "/Popup", "/PrinterMark", "/TrapNet"))


class FormReader:
    """Gives each field of a PDF once, where it first stands."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def lines_of(self, page: PageObject) -> Iterator[str]:
        """ "name: value" of each field on a page that has one, and the words of its notes."""
        for entry in _list_of(page, "/Annots"):
            with suppress(*BROKEN):
                annotation = entry.get_object()
                kind = annotation.get("/Subtype")
                if kind == "/Widget":
                    yield from self._field(annotation)
                elif kind not in _NO_NOTES and (words := _text(annotation.get("/Contents"))):
                    yield words if kind == "/FreeText" else f"Note: {words}"

    def lines_beside(self, reader: PdfReader) -> Iterator[str]:
        """The same of fields that stand on no page."""
        form = _resolved(reader.trailer["/Root"]).get("/AcroForm")
        waiting = [(entry, 0) for entry in reversed(_list_of(_resolved(form), "/Fields"))]
        seen = 0
        while waiting and seen < _MOST:
            entry, depth = waiting.pop()
            seen += 1
            with suppress(*BROKEN):
                field = entry.get_object()
                children = [one for one in _list_of(field, "/Kids") if "/T" in one.get_object()]
                if children and depth < _DEEPEST:
                    waiting += [(one, depth + 1) for one in reversed(children)]
                else:
                    yield from self._field(field)

    def _field(self, field: Any) -> Iterator[str]:
        chain = [field]
        while "/Parent" in chain[-1] and len(chain) < _DEEPEST:
            chain.append(chain[-1]["/Parent"].get_object())
        names = [_text(one.get("/T")) for one in reversed(chain)]
        name = ".".join(part for part in names if part)
        label = _text(_inherited(chain, "/TU")) or name
        if name in self._seen:
            return
        value = _value(chain)
        if value:
            self._seen.add(name)
            shown = label if not name or name in label else f"{label} ({name})"
            yield f"{shown or 'field'}: {value}"


def _value(chain: list[Any]) -> str:
    kind, value = _inherited(chain, "/FT"), _inherited(chain, "/V")
    if kind == "/Btn":
        if int(_inherited(chain, "/Ff") or 0) & _PUSH_BUTTON:
            return ""
        state = value if value is not None else chain[0].get("/AS")
        text = _text(state).removeprefix("/")
        if text in {"", "Off"}:
            return ""
        options = _list_of_value(_inherited(chain, "/Opt"))
        at = int(text) if text.isdecimal() and len(text) < 6 else -1
        return _text(options[at]) if 0 <= at < len(options) else text
    if kind == "/Sig":
        signature = _resolved(value)
        return f"signed by {_text(signature.get('/Name')) or 'a key'}" if signature else ""
    shown = {}
    if kind == "/Ch":
        # An option is shown as its text, and kept as what a program makes of it.
        for option in _list_of_value(_inherited(chain, "/Opt")):
            pair = _list_of_value(option)
            if len(pair) == 2:
                shown[_text(pair[0])] = _text(pair[1])
    chosen = [_text(one) for one in _list_of_value(value)] or [_text(value)]
    return ", ".join(shown.get(one, one) for one in chosen if one)


def _inherited(chain: list[Any], name: str) -> Any:
    """What a field or one above it says, resolved."""
    for one in chain:
        if name in one:
            return one[name].get_object()
    return None


def _resolved(value: Any) -> Any:
    value = value.get_object() if value is not None else None
    return value if isinstance(value, dict) else {}


def _list_of(holder: Any, name: str) -> list[Any]:
    return _list_of_value(holder.get(name))[:_MOST]


def _list_of_value(value: Any) -> list[Any]:
    value = value.get_object() if hasattr(value, "get_object") else value
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    """A string of a PDF, or the stream that stands for a long one."""
    value = value.get_object() if hasattr(value, "get_object") else value
    if value is None or isinstance(value, list):
        return ""
    if hasattr(value, "get_data"):
        value = value.get_data()
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return ""
    return "\n".join(" ".join(line.split()) for line in str(value).splitlines()).strip()
