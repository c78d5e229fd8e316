"""XML of Word made readable: what mammoth passes over, in elements that it reads.

Fields (`w:fldSimple`), runs of another direction, ruby, text boxes and equations hold words like
any other run; mammoth leaves out each of these elements with all that is in it.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

_W: Final = (
    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}",
    "{http://purl.oclc.org/ooxml/wordprocessingml/main}",
)
_M: Final = (
    "{http://schemas.openxmlformats.org/officeDocument/2006/math}",
    "{http://purl.oclc.org/ooxml/officeDocument/math}",
)
_MC: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_V: Final = "{urn:schemas-microsoft-com:vml}"
_SHAPES: Final = frozenset(
    ("group", "imagedata", "rect", "roundrect", "shadow", "shape", "shapetype", "textbox")
)
"""Those that mammoth reads; what is in any other it passes over."""
_PARTS: Final = re.compile(r"word/(?:document|footnotes|endnotes)\d*\.xml\Z")
_PASSED_OVER: Final = re.compile(
    rb"[<:](?:fldSimple|oMath|oMathPara|dir|bdo|ruby|AlternateContent|txbxContent|ddList|cr|ptab"
    rb"|gridBefore)[\s>/]"
)
_WRAPPERS: Final = frozenset(("fldSimple", "dir", "bdo", "rubyBase", "oMathPara"))
_PARENTHESES: Final = (("begChr", "("), ("endChr", ")"))


def readable_word(data: bytes) -> bytes:
    """A DOCX in which mammoth finds all text; the same bytes if nothing has to change.

    Raises what `zipfile` and `ElementTree` raise; the file was looked through for entities before.
    """
    changed_parts: dict[str, bytes] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        for name in filter(_PARTS.match, dict.fromkeys(names)):
            part = archive.read(name)
            if _PASSED_OVER.search(part):
                root = ElementTree.fromstring(part)  # noqa: S314 - without a DTD, see `docx`
                # Every element below the root, the inner ones first.
                order = [root]
                for element in order:
                    order.extend(element)
                for element in reversed(order):
                    element[:] = [new_child for child in element for new_child in _replace(child)]
                changed_parts[name] = ElementTree.tostring(root, "utf-8")
        if not changed_parts:
            return data
        output = io.BytesIO()
        with zipfile.ZipFile(output, "w") as copy:
            for name in dict.fromkeys(names):
                copy.writestr(name, changed_parts.get(name) or archive.read(name))
        return output.getvalue()


def _is_element(node: Element) -> bool:
    return isinstance(node.tag, str)


def _replace(element: Element) -> Iterable[Element]:
    """The replacement of an element, after its own children were replaced."""
    if not _is_element(element):
        return ()
    space, _, name = element.tag.rpartition("}")
    space += "}"
    if space in _M:
        if name == "oMath":
            return [_make_run(_W[_M.index(space)], f" {_write_formula(element)} ")]
        return list(element) if name == "oMathPara" else [element]
    if space == _MC:
        if name == "AlternateContent" and element.find(f"{_MC}Fallback") is None:
            # mammoth reads the `mc:Fallback` alone: without one the first choice becomes it.
            choice = element.find(f"{_MC}Choice")
            if choice is not None:
                choice.tag = f"{_MC}Fallback"
        return [element]
    if space == _V and name not in _SHAPES and len(element):
        return list(element)
    if space not in _W:
        return [element]
    if name in _WRAPPERS:
        return list(element)
    make = _MAKERS.get(name)
    return make(space, element) if make else [element]


def _make_run(space: str, text: str) -> Element:
    run = Element(f"{space}r")
    ElementTree.SubElement(run, f"{space}t").text = text
    return run


def _write_ruby(space: str, element: Element) -> Iterable[Element]:
    """Its base, and how that is read in parentheses behind it."""
    reading = element.find(f"{space}rt")
    base_children = [
        child for child in element if child.tag.rpartition("}")[2] not in {"rubyPr", "rt"}
    ]
    if reading is None or not "".join(reading.itertext()).strip():
        return base_children
    return [*base_children, _make_run(space, "("), *reading, _make_run(space, ")")]


def _extract_boxes(space: str, element: Element) -> Iterable[Element]:
    """A drawing with text boxes is these: of one, mammoth reads its pictures alone."""
    boxes = list(element.iter(f"{space}txbxContent"))
    if not boxes:
        return [element]
    picture = Element(f"{space}pict")
    picture.extend(boxes)
    return [picture]


def _write_choice(space: str, element: Element) -> Iterable[Element]:
    """What was chosen in a list of a form, which stands in its properties alone."""
    drop = element.find(f"{space}ffData/{space}ddList")
    if drop is None:
        return [element]
    entries = [option.get(f"{space}val", "") for option in drop.iter(f"{space}listEntry")]
    choice = drop.find(f"{space}result")
    if choice is None:
        choice = drop.find(f"{space}default")
    number = choice.get(f"{space}val", "0") if choice is not None else "0"
    at = int(number) if number.isdecimal() and len(number) < 6 else 0
    text = Element(f"{space}t")
    text.text = entries[at] if at < len(entries) else ""
    return [text, element]


def _fill_row(space: str, element: Element) -> Iterable[Element]:
    """A row that begins further right has cells there that are empty."""
    grid_before = element.find(f"{space}trPr/{space}gridBefore")
    number = grid_before.get(f"{space}val", "0") if grid_before is not None else "0"
    for _ in range(min(int(number), 60) if number.isdecimal() and len(number) < 6 else 0):
        at = next(i for i, child in enumerate(element) if child.tag.endswith("}trPr")) + 1
        element.insert(at, Element(f"{space}tc"))
    return [element]


_MAKERS: Final[Mapping[str, Callable[[str, Element], Iterable[Element]]]] = {
    "cr": lambda space, _: [Element(f"{space}br")],
    "ptab": lambda space, _: [Element(f"{space}tab")],
    "ruby": _write_ruby,
    "drawing": _extract_boxes,
    "fldChar": _write_choice,
    "tr": _fill_row,
}


def _write_formula(element: Element) -> str:
    """An equation in one line: its letters and numbers, and signs for what its layout says."""
    space, _, name = element.tag.rpartition("}")
    if name == "t":
        return element.text or ""
    write = _WRITERS.get(name)
    if write is not None:
        return write(f"{space}}}", element)
    return "".join(_write_formula(child) for child in element if _is_element(child))


def _write_part(space: str, element: Element, name: str) -> str:
    child = element.find(space + name)
    return "" if child is None else _write_formula(child)


def _write_grouped(space: str, element: Element, name: str) -> str:
    text = _write_part(space, element, name)
    return text if len(text) < 2 or text.isalnum() else f"({text})"


def _read_sign(space: str, element: Element, path: str, default: str) -> str:
    child = element.find("/".join(space + step for step in path.split("/")))
    return default if child is None else child.get(f"{space}val", "")


def _write_scripted(space: str, element: Element) -> str:
    subscript, superscript = (_write_grouped(space, element, name) for name in ("sub", "sup"))
    scripts = (f"_{subscript}" if subscript else "") + (f"^{superscript}" if superscript else "")
    base = _write_part(space, element, "e")
    if not element.tag.endswith("}nary"):
        return base + scripts
    return f"{_read_sign(space, element, 'naryPr/chr', '∫')}{scripts} {base}"


def _write_root(space: str, element: Element) -> str:
    degree = _write_part(space, element, "deg")
    return f"√{f'[{degree}]' if degree else ''}({_write_part(space, element, 'e')})"


def _write_delimited(space: str, element: Element) -> str:
    inner_text = ", ".join(map(_write_formula, element.findall(f"{space}e")))
    start, end = (_read_sign(space, element, f"dPr/{at}", sign) for at, sign in _PARENTHESES)
    return f"{start}{inner_text}{end}"


_WRITERS: Final[Mapping[str, Callable[[str, Element], str]]] = {
    "f": lambda space, element: "/".join(
        _write_grouped(space, element, part) for part in ("num", "den")
    ),
    "sSup": _write_scripted,
    "sSub": _write_scripted,
    "sSubSup": _write_scripted,
    "nary": _write_scripted,
    "rad": _write_root,
    "d": _write_delimited,
    "mr": lambda _, element: ", ".join(map(_write_formula, element)) + "; ",
}
