"""A keychain that keeps passwords in memory, for pages that use one."""

from __future__ import annotations

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError

__all__ = ["MemoryKeychain"]


class MemoryKeychain(KeyringBackend):
    """What a desktop's keychain is to a program."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self._kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self._kept.pop((service, username), None) is None:
            raise PasswordDeleteError(username)
