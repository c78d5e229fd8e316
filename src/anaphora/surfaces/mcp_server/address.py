"""The public address by which remote clients reach the server, and the URLs derived from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from anaphora.errors import InvalidInput

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
SCOPES: Final = ("read", "write")
PATH: Final = "/mcp"


@dataclass(frozen=True, slots=True)
class PublicAddress:
    """`origin` as https://memory.example.org, without a slash at its end."""

    origin: str

    @property
    def netloc(self) -> str:
        """The host, with the port unless it is the default one, in lower case."""
        return self.origin.partition("://")[2]

    @property
    def resource(self) -> str:
        """The resource that access tokens are for (RFC 8707)."""
        return self.origin + PATH

    @property
    def resource_metadata(self) -> str:
        """The URL of the metadata that names the issuer of tokens for this server (RFC 9728)."""
        return f"{self.origin}/.well-known/oauth-protected-resource{PATH}"

    def is_resource(self, url: str) -> bool:
        """Whether a URL means this server, with or without a final slash, in any case."""
        try:
            parts = urlsplit(url)
        except ValueError:
            return False
        resource = f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path.rstrip('/')}"
        return resource == self.resource and not parts.query and not parts.fragment


def public_address(given: str) -> PublicAddress:
    """Parse the address that the user gave. Raises `InvalidInput`.

    It must be https, since codes and tokens travel over it; http is accepted for loopback only.
    """
    reason = "expected the address that clients use, as https://memory.example.org"
    try:
        parts = urlsplit(given)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InvalidInput("oauth", given, reason) from None
    if not host or parts.username is not None or parts.query or parts.fragment:
        raise InvalidInput("oauth", given, reason)
    if parts.path.rstrip("/") not in {"", PATH}:
        raise InvalidInput("oauth", given, f"{reason}, without a path")
    if parts.scheme != "https" and not (parts.scheme == "http" and host in LOOPBACK):
        raise InvalidInput("oauth", given, f"{reason}: only this machine is reached without https")
    return PublicAddress(f"{parts.scheme}://{parts.netloc.lower()}")
