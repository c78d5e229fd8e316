"""The words of a calendar (RFC 5545), as mails carry for invitations. Imports icalendar."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

from anaphora.errors import MissingExtra
from anaphora.ingest.documents.base import BROKEN, ExtractedDocument, Reading, TextBlock, one_line
from anaphora.ingest.documents.encodings import decoded

if TYPE_CHECKING:
    from icalendar import Component

_KINDS: Final = {"VEVENT": "Event", "VTODO": "Task", "VJOURNAL": "Journal", "VFREEBUSY": "Busy"}
_METHODS: Final = {
    "REQUEST": "Invitation",
    "REPLY": "Answer to an invitation",
    "CANCEL": "Cancelled",
    "COUNTER": "Other time proposed",
}
_MOST_PEOPLE: Final = 200


def read_calendar(data: bytes, reading: Reading, charset: str | None = None) -> ExtractedDocument:
    """A block for each event or task: what, when, where and who. `UnreadableDocument`, or
    `MissingExtra`."""
    try:
        from icalendar import Component
    except ImportError as error:
        raise MissingExtra("documents", "icalendar") from error
    text = decoded(data, charset or "utf-8", reading, "its characters").strip("\ufeff\x00 \r\n")
    try:
        calendars = Component.from_ical(text.rstrip() + "\r\n", multiple=True)
    except BROKEN as error:
        raise reading.refuse(f"it is a calendar that is damaged: {error}") from error
    blocks: list[TextBlock] = []
    for calendar in calendars:
        method = str(calendar.get("METHOD", "")).upper()
        for kind, name in _KINDS.items():
            for component in calendar.walk(kind):
                reading.spend("parts")
                word = _METHODS.get(method, name)
                blocks += reading.counted([TextBlock("\n".join(_lines(component, word)))])
    if not blocks:
        raise reading.refuse("it is a calendar without an event")
    return ExtractedDocument("text", tuple(blocks))


def _lines(component: Component, kind: str) -> list[str]:
    fields = {
        kind: _text(component, "SUMMARY"),
        "When": _when(component),
        "Due": _moment(component, "DUE"),
        "Repeats": _text(component, "RRULE"),
        "Where": _text(component, "LOCATION"),
        "Organizer": "; ".join(_people(component, "ORGANIZER")),
        "Attendees": "; ".join(_people(component, "ATTENDEE")),
        "Status": _text(component, "STATUS"),
        "Link": _text(component, "URL"),
    }
    lines = [f"{name}: {value}" for name, value in fields.items() if value]
    for name in ("DESCRIPTION", "COMMENT"):
        if words := _text(component, name):
            lines += ["", words]
    return lines


def _text(component: Component, name: str) -> str:
    values = component.get(name)
    words = []
    for value in values if isinstance(values, list) else [values]:
        with suppress(*BROKEN):
            words.append(value.to_ical().decode() if name == "RRULE" else str(value or "").strip())
    return "; ".join(word for word in words if word)


def _when(component: Component) -> str:
    start, end = _moment(component, "DTSTART"), _moment(component, "DTEND")
    if end and end != start:
        return f"{start} to {end}"
    length = _text(component, "DURATION") if component.get("DURATION") is not None else ""
    with suppress(*BROKEN):
        length = str(component.decoded("DURATION")) if length else ""
    return f"{start} for {length}" if length else start


def _moment(component: Component, name: str) -> str:
    value: Any = component.get(name)
    if value is None:
        return ""
    try:
        moment: date | datetime = value.dt
    except BROKEN:
        return str(value).strip()
    if not isinstance(moment, datetime):
        return moment.isoformat()
    zone = one_line(value.params.get("TZID")) or moment.tzname() or ""
    return f"{moment:%Y-%m-%d %H:%M} {zone}".strip()


def _people(component: Component, name: str) -> list[str]:
    values = component.get(name)
    people = []
    for value in (values if isinstance(values, list) else [values])[:_MOST_PEOPLE]:
        if value is None:
            continue
        address = str(value).strip()
        address = address[7:] if address.lower().startswith("mailto:") else address
        params = getattr(value, "params", {})
        person = one_line(params.get("CN"))
        person = f"{person} <{address}>" if person and person != address else address
        state = str(params.get("PARTSTAT", "")).lower()
        people.append(f"{person} ({state})" if state not in {"", "needs-action"} else person)
    return people
