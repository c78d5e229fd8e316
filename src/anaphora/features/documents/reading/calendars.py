"""The words of a calendar (RFC 5545), as mails carry for invitations. Imports icalendar."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

from anaphora.features.documents.reading.base import (
    BROKEN,
    ExtractedDocument,
    Reading,
    TextBlock,
    one_line,
)
from anaphora.features.documents.reading.encodings import decoded

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
    """A block for each event or task: title, time, place and people. `UnreadableDocument`."""
    from icalendar import Component

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
                blocks += reading.counted([TextBlock("\n".join(_list_lines(component, word)))])
    if not blocks:
        raise reading.other("it is a calendar without an event")
    return ExtractedDocument("text", tuple(blocks))


def _list_lines(component: Component, kind: str) -> list[str]:
    start, end = _read_moment(component, "DTSTART"), _read_moment(component, "DTEND")
    span = f"{start} to {end}" if end and end != start else start
    if span == start and (length := _read_text(component, "DURATION")):
        with suppress(*BROKEN):
            length = str(component.decoded("DURATION"))
        span = f"{start} for {length}" if length else start
    fields = {
        kind: _read_text(component, "SUMMARY"),
        "When": span,
        "Due": _read_moment(component, "DUE"),
        "Repeats": _read_text(component, "RRULE"),
        "Where": _read_text(component, "LOCATION"),
        "Organizer": "; ".join(_list_people(component, "ORGANIZER")),
        "Attendees": "; ".join(_list_people(component, "ATTENDEE")),
        "Status": _read_text(component, "STATUS"),
        "Link": _read_text(component, "URL"),
    }
    lines = [f"{name}: {text}" for name, text in fields.items() if text]
    for name in ("DESCRIPTION", "COMMENT"):
        if words := _read_text(component, name):
            lines += ["", words]
    return lines


def _read_text(component: Component, name: str) -> str:
    values = component.get(name)
    words = []
    for prop in values if isinstance(values, list) else [values]:
        with suppress(*BROKEN):
            words.append(prop.to_ical().decode() if name == "RRULE" else str(prop or "").strip())
    return "; ".join(word for word in words if word)


def _read_moment(component: Component, name: str) -> str:
    prop: Any = component.get(name)
    if prop is None:
        return ""
    try:
        moment: date | datetime = prop.dt
    except BROKEN:
        return str(prop).strip()
    if not isinstance(moment, datetime):
        return moment.isoformat()
    zone = one_line(prop.params.get("TZID")) or moment.tzname() or ""
    return f"{moment:%Y-%m-%d %H:%M} {zone}".strip()


def _list_people(component: Component, name: str) -> list[str]:
    values = component.get(name)
    people = []
    for prop in (values if isinstance(values, list) else [values])[:_MOST_PEOPLE]:
        if prop is None:
            continue
        address = str(prop).strip()
        address = address[7:] if address.lower().startswith("mailto:") else address
        params = getattr(prop, "params", {})
        person = one_line(params.get("CN"))
        person = f"{person} <{address}>" if person and person != address else address
        state = str(params.get("PARTSTAT", "")).lower()
        people.append(f"{person} ({state})" if state not in {"", "needs-action"} else person)
    return people
