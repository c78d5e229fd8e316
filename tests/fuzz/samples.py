"""Files in layouts of which there is no fixture: sessions of coding agents, notebooks, mails."""

from __future__ import annotations

from typing import Any, Final

_AT: Final = "2026-03-02T09:00:00.000Z"


def _claude(kind: str, number: int, **more: Any) -> dict[str, Any]:
    where = {"sessionId": "s", "cwd": "/work", "gitBranch": "main", "timestamp": _AT}
    above = f"u{number - 1}" if number else None
    return {"type": kind, "uuid": f"u{number}", "parentUuid": above, **where, **more}


def _said(kind: str, number: int, content: Any, **more: Any) -> dict[str, Any]:
    return _claude(kind, number, message={"role": kind, "content": content}, **more)


def _asked(key: str, name: str, given: Any) -> list[Any]:
    return [{"type": "tool_use", "id": key, "name": name, "input": given}]


def _gave(key: str, content: Any, **more: Any) -> list[Any]:
    return [{"type": "tool_result", "tool_use_id": key, "content": content, **more}]


_QUESTION: Final = {
    "questions": [{"question": "Where?", "header": "Place", "options": [{"label": "Ceph"}]}]
}
_CLAUDE: Final = [
    _said("user", 0, "Where is the hose?"),
    _claude("attachment", 1, attachment={"type": "queued_command", "prompt": "And the ladder?"}),
    _claude(
        "attachment",
        2,
        attachment={"type": "queued_command", "prompt": [{"type": "text", "text": "Blue."}]},
    ),
    _said("assistant", 3, _asked("t1", "AskUserQuestion", _QUESTION)),
    _said(
        "user",
        4,
        _gave("t1", 'User has answered your questions: "Where?"="On Ceph".'),
        toolUseResult={"answers": {"Where?": "On Ceph"}, **_QUESTION},
    ),
    _said("assistant", 5, _asked("t2", "ExitPlanMode", {"plan": "# Plan\n1. Dig."})),
    _said(
        "user",
        6,
        _gave("t2", "The user doesn't want to proceed. the user said:\nUse sshfs.", is_error=True),
        toolUseResult="Error: rejected",
    ),
    _said("user", 7, [{"type": "text", "text": "Caveat"}], isMeta=True),
    {"type": "summary", "summary": "Hoses", "leafUuid": "u6"},
    {"type": "queue-operation", "operation": "enqueue", "content": "Later.", "sessionId": "s"},
]


def _codex(number: int, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": _AT, "ordinal": number, "type": kind, "payload": payload}


def _item(number: int, kind: str, **more: Any) -> dict[str, Any]:
    item = {"type": kind, "id": f"i{number}", **more}
    return _codex(number, "event_msg", {"type": "item_completed", "item": item, "turn_id": "t"})


_CODEX: Final = [
    _codex(0, "session_meta", {"id": "c", "cwd": "/w", "git": {"branch": "main"}, "source": "cli"}),
    _item(1, "UserMessage", content=[{"type": "text", "text": "The gate closes at nine."}]),
    _item(2, "AgentMessage", content=[{"type": "Text", "text": "Noted."}], phase="final"),
    _item(3, "Plan", text="1. Dig."),
    _codex(4, "response_item", {
        "type": "function_call", "name": "request_user_input", "call_id": "q",
        "arguments": '{"questions": [{"id": "a", "question": "Where?", "options": []}]}',
    }),
    _codex(5, "response_item", {
        "type": "function_call_output", "call_id": "q",
        "output": '{"answers": {"a": {"answers": ["On Ceph"]}}}',
    }),
]  # fmt: skip
_GEMINI: Final = {"sessionId": "s", "projectHash": "h", "directories": ["/w"], "messages": [
    {"id": "1", "type": "user", "content": "Where is the hose?", "timestamp": "2026-03-01"},
    {"id": "2", "type": "gemini", "content": [{"text": "By the gate."}], "thoughts": [{}],
     "toolCalls": [{"id": "t", "name": "ls", "args": {"path": "/"}, "status": "success"}]},
]}  # fmt: skip
_NOTEBOOK: Final = {
    "nbformat": 4, "nbformat_minor": 5,
    "metadata": {"kernelspec": {"language": "python", "name": "p"}, "title": "Tides"},
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Tides\n", "At six."]},
        {"cell_type": "code", "metadata": {}, "source": "print(6)", "execution_count": 1,
         "outputs": [{"output_type": "stream", "name": "stdout", "text": ["6\n"]}]},
        {"cell_type": "raw", "metadata": {}, "source": ["x"]},
    ],
}  # fmt: skip
_CANVAS: Final = {
    "nodes": [
        {"id": "a", "type": "text", "text": "The quay", "x": 0, "y": 0, "width": 9, "height": 9},
        {"id": "b", "type": "file", "file": "Log.md", "x": 0, "y": 0, "width": 9, "height": 9},
        {"id": "g", "type": "group", "label": "Harbour", "x": 0, "y": 0, "width": 9, "height": 9},
        {"id": "l", "type": "link", "url": "https://example.org", "x": 0, "y": 0},
    ],
    "edges": [{"id": "e", "fromNode": "a", "toNode": "b", "label": "see"}],
}
OTHERS: Final[dict[str, list[Any]]] = {
    "claude-code-asked.jsonl": _CLAUDE,
    "rollout-items.jsonl": _CODEX,
    "session-1.json": [_GEMINI],
    "tides.ipynb": [_NOTEBOOK],
    "harbour.canvas": [_CANVAS],
}
"""The values of each, one a line."""
INVITATION: Final = b"""\
From: Ola <ola@example.org>
To: teo@example.org
Subject: =?utf-8?q?Hafen=C3=BCbung?=
Date: Mon, 2 Mar 2026 09:00:00 +0100
Message-ID: <1@example.org>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="m"

--m
Content-Type: multipart/alternative; boundary="a"

--a
Content-Type: text/plain; charset="iso-8859-2"
Content-Transfer-Encoding: quoted-printable

We meet at =B3ine.
--a
Content-Type: text/html; charset="utf-8"

<p>We meet at <b>nine</b>.</p>
--a
Content-Type: text/calendar; charset="utf-8"; method=REQUEST

BEGIN:VCALENDAR
VERSION:2.0
METHOD:REQUEST
BEGIN:VEVENT
UID:1
DTSTART;TZID=Europe/Warsaw:20260303T090000
DTEND:20260303T100000Z
SUMMARY:Drill
LOCATION:Quay
ORGANIZER;CN=Ola:mailto:ola@example.org
RRULE:FREQ=WEEKLY;COUNT=3
END:VEVENT
END:VCALENDAR
--a--
--m
Content-Type: message/rfc822

From: a@b
Subject: Inner
Content-Type: text/plain

The crane is out.
--m
Content-Type: application/octet-stream; name="a.txt"
Content-Disposition: attachment; filename*=utf-8''a%20b.txt
Content-Transfer-Encoding: base64

VGhlIHRpZGUu
--m--
"""
