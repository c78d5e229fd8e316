"""The sandbox of deep recall: code that a model wrote runs here and touches nothing else.

In: code, plain data and a few functions of the host. Out: what the code printed and asked for. It
never gives the code a file, a socket, a process, the environment or a Python object of the host.
"""

from __future__ import annotations

from anaphora.deep.sandbox.base import (
    Engine,
    HostFunction,
    HostRefusal,
    JsonValue,
    LimitName,
    Limits,
    Run,
    Session,
    Wall,
)
from anaphora.deep.sandbox.monty import MontyEngine

__all__ = [
    "Engine",
    "HostFunction",
    "HostRefusal",
    "JsonValue",
    "LimitName",
    "Limits",
    "MontyEngine",
    "Run",
    "Session",
    "Wall",
]
