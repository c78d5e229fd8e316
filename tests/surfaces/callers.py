"""Callers of a server who say what they like, byte by byte."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any

PATIENT = 60
WHOLE = b"POST /v1/recall HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
ASK = WHOLE + b'Content-Length: 14\r\n\r\n{"query": "x"}'


def came(port: int, said: bytes = b"") -> socket.socket:
    """A caller who says this and nothing more."""
    caller = socket.create_connection(("127.0.0.1", port), timeout=PATIENT)
    caller.sendall(said)
    return caller


def heard(caller: socket.socket) -> bytes:
    """All that the server says until it closes the connection."""
    found = b""
    with caller:
        try:
            while piece := caller.recv(65_536):
                found += piece
        except ConnectionResetError:
            pass
    return found


def ask(port: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENT)
    try:
        given = None if body is None else json.dumps(body)
        connection.request(method, path, given, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
