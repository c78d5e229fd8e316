"""Whether anything answers at an address that the user configured, told in seconds, not minutes."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from threading import Thread
from typing import Any, Final

SECONDS: Final = 3.0
"""How long a server may take for its first answer of any kind."""

_NOISE: Final = re.compile(r"\[(?:Errno -?\d+|SSL[^\]]*)\] ?| ?\(_ssl\.c:\d+\)")


class AddressLook:
    """A request to an address, made in the background: looking up a name cannot be interrupted."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        method: str = "GET",
        json: object = None,
        seconds: float = SECONDS,
    ) -> None:
        self._request: dict[str, Any] = {"method": method, "url": url, "headers": dict(headers)}
        if json is not None:
            self._request["json"] = json
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._outcome: int | OSError | None = None
        self._thread = Thread(target=self._look, name="anaphora-address", daemon=True)
        self._thread.start()

    def status(self) -> int:
        """The HTTP status that came. `OSError` says in words why none did."""
        self._thread.join(max(0.0, self._until - time.monotonic()))
        outcome = self._outcome or TimeoutError(f"nothing came within {self._seconds:g} s")
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    def _look(self) -> None:
        import httpx

        try:
            # Proxies of the environment are meant; a redirect could lead to another host.
            with (
                httpx.Client(timeout=self._seconds, follow_redirects=False) as client,
                client.stream(**self._request) as answer,
            ):
                self._outcome = answer.status_code
        except httpx.TimeoutException:
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, who waits is told
            words = _NOISE.sub("", str(error)) or type(error).__name__
            is_secure = "ssl" in str(error).lower()
            self._outcome = OSError(f"no secure connection: {words}" if is_secure else words)
