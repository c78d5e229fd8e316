"""A server of Anaphora as a remote: `/v2/agent-state`, with a token of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from anaphora.errors import Diverged, MissingExtra, RemoteError
from anaphora.features.sync.entries import read_number
from anaphora.features.sync.remotes.base import NAME
from anaphora.ingest.secrets.masking import mask_text
from anaphora.system.bounded import Unbounded, pieces_of, read_json

_TIMEOUT: Final = 30.0
_PATIENCE: Final = 60.0
"""Seconds in which an answer must be complete."""
_REFUSED: Final = {
    401: "it does not accept the token",
    403: "the token may not do that there",
    413: "an entry is larger than it takes",
}


class ServerRemote:
    """The server at `url`; `token` opens the namespace with the logs."""

    def __init__(self, url: str, token: str | None) -> None:
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise MissingExtra("sync", "httpx") from error
        self._url = url.rstrip("/")
        # Other encodings may decompress to any size at once.
        headers = {"Accept-Encoding": "gzip"}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        self._failed = httpx.HTTPError
        # Proxies of the environment are the user's choice; redirects could lead to another host.
        self._client = httpx.Client(
            base_url=self._url, headers=headers, timeout=_TIMEOUT, follow_redirects=False
        )

    @property
    def name(self) -> str:
        """The server's address."""
        return self._url

    @property
    def in_order(self) -> bool:
        """As `Remote.in_order`."""
        return True

    def check(self) -> None:
        """As `Remote.check`."""
        self.heads("ana_proj_0")

    def heads(self, project: str) -> Mapping[str, int]:
        """As `Remote.heads`."""
        body = self._request("GET", "/v2/agent-state", params={"project_id": project})
        try:
            return {
                device: read_number(head["number"])
                for device, head in body["heads"].items()
                if NAME.fullmatch(device)
            }
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RemoteError(self.name, "its answer is none of an Anaphora server") from error

    def read(self, project: str, device: str, number: int, count: int) -> Sequence[bytes]:
        """As `Remote.read`."""
        body = self._request(
            "GET",
            "/v2/agent-state/entries",
            params={"project_id": project, "device": device, "after": number - 1, "limit": count},
        )
        entries = body.get("entries")
        if not isinstance(entries, list):
            raise RemoteError(self.name, "its answer is none of an Anaphora server")
        return [json.dumps(line).encode() for line in entries[:count]]

    def write(self, project: str, device: str, number: int, data: bytes) -> None:
        """As `Remote.write`."""
        self._request(
            "POST", "/v2/agent-state", json={"project_id": project, "entries": [json.loads(data)]}
        )

    def drop(self, project: str, device: str, number: int, data: bytes) -> None:
        """As `Remote.drop`."""
        self._request(
            "POST",
            "/v2/agent-state/drop",
            json={"project_id": project, "entries": [json.loads(data)]},
        )

    def close(self) -> None:
        """As `Remote.close`."""
        self._client.close()

    def _request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        try:
            with self._client.stream(method, path, **options) as answer:
                payload = b"".join(pieces_of(answer, _PATIENCE))
        except self._failed as error:
            raise RemoteError(self.name, mask_text(str(error)) or type(error).__name__) from error
        except Unbounded as error:
            raise RemoteError(self.name, str(error)) from error
        if answer.status_code == 409:
            raise Diverged(self.name, _read_detail(payload))
        if answer.status_code != 200:
            code = answer.status_code
            raise RemoteError(
                self.name,
                _REFUSED.get(code) or f"it answered {code}: {_read_detail(payload)}",
                lasting=400 <= code < 500 and code != 429,
            )
        try:
            body = read_json(payload)
        except ValueError as error:
            raise RemoteError(self.name, "its answer is not JSON") from error
        if not isinstance(body, dict):
            raise RemoteError(self.name, "its answer is none of an Anaphora server")
        return body


def _read_detail(data: bytes) -> str:
    try:
        return mask_text(str(read_json(data).get("detail", "")))[:200]
    except (ValueError, AttributeError):
        return mask_text(data[:800].decode(errors="replace"))[:200]
