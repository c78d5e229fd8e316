"""Whether anything answers at an address that the user configured, told in seconds, not minutes."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from threading import Thread
from typing import Any, Final

SECONDS: Final = 3.0
"""How long a server may take for its first answer of any kind."""

_NOISE: Final = re.compile(r"\[(?:Errno -?\d+|SSL[^\]]*)\] ?| ?\(_ssl\.c:\d+\)")


class AddressLook:
    """A request to an address, made in the background: looking up a name cannot be interrupted.

    A `body` is sent as JSON, by POST.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        body: object = None,
        seconds: float = SECONDS,
    ) -> None:
        self._url, self._headers, self._data = url, dict(headers), None
        if body is not None:
            self._headers["content-type"] = "application/json"
            self._data = json.dumps(body).encode()
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
        import urllib.error
        import urllib.request

        class Stay(urllib.request.HTTPRedirectHandler):
            """A redirect could lead to another host."""

            def redirect_request(self, *_: Any) -> None:
                return None

        try:
            # Proxies of the environment are meant.
            opener = urllib.request.build_opener(Stay)
            request = urllib.request.Request(self._url, self._data, self._headers)  # noqa: S310
            with opener.open(request, timeout=self._seconds) as answer:
                self._outcome = answer.status
        except urllib.error.HTTPError as error:
            self._outcome = error.code
            error.close()
        except TimeoutError:
            return
        except ValueError:
            self._outcome = OSError("an address begins with its protocol, such as https://")
        except Exception as error:  # noqa: BLE001 - whatever it is, who waits is told
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                return
            words = _NOISE.sub("", str(reason)) or type(reason).__name__
            is_secure = "ssl" in str(reason).lower()
            self._outcome = OSError(f"no secure connection: {words}" if is_secure else words)
