"""A page: what one Markdown file says of one memory or note."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from anaphora.core.front_matter import split_front_matter, write_front_matter

PageKind = Literal["memory", "note"]


@dataclass(frozen=True, slots=True)
class Said:
    """What a person may change in a page. `type` is that of a memory, or the kind of a note."""

    text: str
    type: str
    category: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """What two pages that say the same have alike: 64 hexadecimal digits.

        Line ends, and blank lines at either end, are nothing that somebody said.
        """
        told = [_plain(self.text), self.type, self.category, sorted(set(self.tags))]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class HomePage:
    """A memory or note of the home as a page. `id` is that of its present version.

    `changed` is when it was said last; `related` are ids of memories that are close to it.
    """

    id: str
    kind: PageKind
    said: Said
    created: datetime
    changed: datetime
    path: str | None = None
    source: str | None = None
    payload: Mapping[str, Any] | None = None
    related: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FilePage:
    """What a file says. `id` and `path` are those of its front matter, None where it has none.

    `given` are the properties that it sets.
    """

    text: str
    id: str | None = None
    path: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict)

    def said(self, type_: str) -> Said:
        """What it says; it is of this type where it names none.

        A label that it does not have was taken away, or was never there.
        """
        given = self.given
        return Said(
            self.text, given.get("type", type_), given.get("category"), given.get("tags", ())
        )


class EmptyPage(ValueError):
    """A file without a word: an editor's half-saved one, or one that a crash has emptied."""


def write_page(page: HomePage, links: tuple[str, ...]) -> str:
    """The file of a page. `links` are the names of the files of its related ones.

    The body is the text, verbatim.
    """
    said = page.said
    payload, importance = None, None
    if page.kind == "note":
        importance = str((page.payload or {}).get("importance", ""))
    elif page.payload:
        payload = json.dumps(dict(page.payload), ensure_ascii=False, sort_keys=True)
    head = write_front_matter(
        {
            "id": page.id,
            "path": page.path,
            "kind" if page.kind == "note" else "type": said.type,
            "importance": importance,
            "category": said.category,
            "tags": said.tags,
            "created": page.created.isoformat(timespec="seconds"),
            "source": page.source,
            "payload": payload,
            "related": tuple(f"[[{link}]]" for link in links),
        }
    )
    return f"{head}\n{said.text}\n"


def read_page(text: str) -> FilePage:
    """What a file says. Raises EmptyPage, ValueError where its front matter does not end."""
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    properties, body, lines = split_front_matter(text)
    if not lines and text.startswith("---\n"):
        raise ValueError("its front matter has no end")
    body = _plain(body)
    if not body.strip():
        raise EmptyPage("it is empty")
    given: dict[str, Any] = {}
    for name in ("type", "category"):
        value = properties.get("kind" if name == "type" and "kind" in properties else name)
        if isinstance(value, str):
            given[name] = value
    tags = properties.get("tags", [])
    listed = tags if isinstance(tags, list) else [one.strip() for one in tags.split(",")]
    if listed:
        given["tags"] = tuple(one.removeprefix("#") for one in listed if one)
    return FilePage(body, _text(properties.get("id")), _text(properties.get("path")), given)


def _text(value: str | list[str] | None) -> str | None:
    return value if isinstance(value, str) else None


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip("\n")
