"""A memory on a server, with the interface of the facade: `RemoteMemory`.

`memory` is the facade itself, `conversations` its threads; `connection` asks, waits and asks again;
`problems` makes the errors of a server's refusals. Which call is which request, and what a server
does not offer, is in the descriptions of the calls (`calls.operation`).
"""

from __future__ import annotations

from anaphora.client.memory import RemoteMemory

__all__ = ["RemoteMemory"]
