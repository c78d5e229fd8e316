"""The filled-in fields and the notes of a PDF, which are not in the text of its pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from anaphora.features.documents.reading.base import BROKEN

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

_MOST: Final = 20_000
"""Fields and notes that are read on a page, and outside of pages."""
_DEEPEST: Final = 20
_PUSH_BUTTON: Final = 1 << 16
_NO_NOTES: Final = frozenset(("/Link", "/Widget", "/Popup", "/PrinterMark", "/TrapNet"))


class FormReader:
    """Gives each field of a PDF once, where it first stands."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def lines_of(self, page: PageObject) -> Iterator[str]:
        """ "name: value" of each field on a page that has one, and the words of its notes."""
        for reference in _list_at(page, "/Annots"):
            with suppress(*BROKEN):
                annotation = reference.get_object()
                kind = annotation.get("/Subtype")
                if kind == "/Widget":
                    yield from self._read_field(annotation)
                elif kind not in _NO_NOTES and (words := _as_text(annotation.get("/Contents"))):
                    yield words if kind == "/FreeText" else f"Note: {words}"

    def lines_beside(self, reader: PdfReader) -> Iterator[str]:
        """The same of fields that stand on no page."""
        form = _resolve(reader.trailer["/Root"]).get("/AcroForm")
        waiting = [(reference, 0) for reference in reversed(_list_at(_resolve(form), "/Fields"))]
        count = 0
        while waiting and count < _MOST:
            reference, depth = waiting.pop()
            count += 1
            with suppress(*BROKEN):
                field = reference.get_object()
                children = [
                    child for child in _list_at(field, "/Kids") if "/T" in child.get_object()
                ]
                if children and depth < _DEEPEST:
                    waiting += [(child, depth + 1) for child in reversed(children)]
                else:
                    yield from self._read_field(field)

    def _read_field(self, field: Any) -> Iterator[str]:
        chain = [field]
        while "/Parent" in chain[-1] and len(chain) < _DEEPEST:
            chain.append(chain[-1]["/Parent"].get_object())
        names = [_as_text(ancestor.get("/T")) for ancestor in reversed(chain)]
        name = ".".join(part for part in names if part)
        label = _as_text(_find_inherited(chain, "/TU")) or name
        if name in self._seen:
            return
        text = _read_value(chain)
        if text:
            self._seen.add(name)
            caption = label if not name or name in label else f"{label} ({name})"
            yield f"{caption or 'field'}: {text}"


def _read_value(chain: list[Any]) -> str:
    kind, stored_value = _find_inherited(chain, "/FT"), _find_inherited(chain, "/V")
    if kind == "/Btn":
        if int(_find_inherited(chain, "/Ff") or 0) & _PUSH_BUTTON:
            return ""
        state = stored_value if stored_value is not None else chain[0].get("/AS")
        text = _as_text(state).removeprefix("/")
        if text in {"", "Off"}:
            return ""
        options = _as_list(_find_inherited(chain, "/Opt"))
        at = int(text) if text.isdecimal() and len(text) < 6 else -1
        return _as_text(options[at]) if 0 <= at < len(options) else text
    if kind == "/Sig":
        signature = _resolve(stored_value)
        return f"signed by {_as_text(signature.get('/Name')) or 'a key'}" if signature else ""
    labels = {}
    if kind == "/Ch":
        # An option is shown as its text, and kept as what a program makes of it.
        for option in _as_list(_find_inherited(chain, "/Opt")):
            pair = _as_list(option)
            if len(pair) == 2:
                labels[_as_text(pair[0])] = _as_text(pair[1])
    choices = [_as_text(choice) for choice in _as_list(stored_value)] or [_as_text(stored_value)]
    return ", ".join(labels.get(choice, choice) for choice in choices if choice)


def _find_inherited(chain: list[Any], name: str) -> Any:
    """What a field or one above it says, resolved."""
    for ancestor in chain:
        if name in ancestor:
            return ancestor[name].get_object()
    return None


def _resolve(target: Any) -> Any:
    target = target.get_object() if target is not None else None
    return target if isinstance(target, dict) else {}


def _list_at(holder: Any, name: str) -> list[Any]:
    return _as_list(holder.get(name))[:_MOST]


def _as_list(target: Any) -> list[Any]:
    target = target.get_object() if hasattr(target, "get_object") else target
    return target if isinstance(target, list) else []


def _as_text(target: Any) -> str:
    """A string of a PDF, or the stream that stands for a long one."""
    target = target.get_object() if hasattr(target, "get_object") else target
    if target is None or isinstance(target, list):
        return ""
    if hasattr(target, "get_data"):
        target = target.get_data()
    if isinstance(target, bytes):
        target = target.decode("utf-8", "replace")
    if isinstance(target, dict):
        return ""
    return "\n".join(" ".join(line.split()) for line in str(target).splitlines()).strip()
