"""A page: one memory or note as a Markdown file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from anaphora.text.front_matter import split_front_matter, write_front_matter
from anaphora.values.memories import LABELS, MEMORY_FIELDS

PageKind = Literal["memory", "note"]


@dataclass(frozen=True, slots=True)
class PageContent:
    """The editable parts of a page. `type` is that of a memory, or the kind of a note.

    `labels` are those fields of a memory that it is sorted by, without empty ones.
    """

    text: str
    type: str
    labels: Mapping[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The digest of its text alone."""
        return hashlib.sha256(
            _strip_line_ends(self.text).encode("utf-8", "surrogatepass")
        ).hexdigest()

    @property
    def digest(self) -> str:
        """The digest that pages with the same content share: 64 hexadecimal digits.

        Line ends, and blank lines at either end, do not matter.
        """
        labels = {
            name: sorted(set(label)) if isinstance(label, tuple) else label
            for name, label in sorted(self.labels.items())
        }
        return hashlib.sha256(
            json.dumps([_strip_line_ends(self.text), self.type, labels]).encode()
        ).hexdigest()


@dataclass(frozen=True, slots=True)
class HomePage:
    """A memory or note of the home as a page. `id` is that of its present version.

    `changed` is when it was changed last; `related` are ids of memories that are close to it.
    """

    id: str
    kind: PageKind
    said: PageContent
    created: datetime
    changed: datetime
    path: str | None = None
    source: str | None = None
    payload: Mapping[str, Any] | None = None
    related: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FilePage:
    """The content of a file. `id` and `path` are those of its front matter, None if missing.

    `labels` are as in `PageContent`; `type` is None if missing.
    """

    text: str
    id: str | None = None
    path: str | None = None
    type: str | None = None
    labels: Mapping[str, Any] = field(default_factory=dict)

    def said(self, type_: str) -> PageContent:
        """Its editable parts, with this type if it names none.

        A missing label was removed, or never set.
        """
        return PageContent(self.text, self.type or type_, self.labels)


class EmptyPage(ValueError):
    """A file without text: half-saved by an editor, or emptied by a crash."""


def write_page(page: HomePage, links: tuple[str, ...]) -> str:
    """The file of a page. `links` are the names of the files of its related ones.

    The body is the text, verbatim.
    """
    content = page.said
    payload, importance = None, None
    if page.kind == "note":
        importance = str((page.payload or {}).get("importance", ""))
    elif page.payload:
        payload = json.dumps(dict(page.payload), ensure_ascii=False, sort_keys=True)
    head = write_front_matter(
        {
            "id": page.id,
            "path": page.path,
            "kind" if page.kind == "note" else "type": content.type,
            "importance": importance,
            **content.labels,
            "created": page.created.isoformat(timespec="seconds"),
            "source": page.source,
            "payload": payload,
            "related": tuple(f"[[{link}]]" for link in links),
        }
    )
    return f"{head}\n{content.text}\n"


def read_page(text: str) -> FilePage:
    """The page in a file. Raises EmptyPage, ValueError if its front matter does not end."""
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    properties, body, lines, _ = split_front_matter(text)
    if not lines and text.startswith("---\n"):
        raise ValueError("its front matter has no end")
    body = _strip_line_ends(body)
    if not body.strip():
        raise EmptyPage("it is empty")
    type_ = _text_or_none(properties.get("kind", properties.get("type")))
    labels = {
        name: label for name in LABELS if (label := _read_label(name, properties.get(name, "")))
    }
    return FilePage(
        body,
        _text_or_none(properties.get("id")),
        _text_or_none(properties.get("path")),
        type_,
        labels,
    )


def _read_label(name: str, value: str | list[str]) -> str | tuple[str, ...]:
    """A label as a memory has it: people write lists in several forms."""
    if MEMORY_FIELDS[name].kind != "tags":
        return value if isinstance(value, str) else ", ".join(value)
    labels = value if isinstance(value, list) else value.split(",")
    return tuple(tag for part in labels if (tag := part.strip().removeprefix("#")))


def _text_or_none(value: str | list[str] | None) -> str | None:
    return value if isinstance(value, str) else None


def _strip_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").strip("\n")
