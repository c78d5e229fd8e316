"""S3-compatible storage as a remote, through `obstore`.

Keys are `<prefix>/<project>/<device>/00000001.entry`. Entries are never overwritten: storage
without conditional writes (`If-None-Match`) fails at the first write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from anaphora.errors import Diverged, InvalidInput, MissingExtra, RemoteError, RemoteTampered
from anaphora.features.sync.remotes.base import NAME, before_gap, entry_name, number_in
from anaphora.ingest.secrets.masking import mask_text
from anaphora.system.bounded import MOST_BYTES

_AT_ONCE: Final = 8
_OPTIONS: Final = ("endpoint", "region", "virtual_hosted_style_request")


class ObjectRemote:
    """The bucket of an address such as `s3://bucket/prefix?endpoint=https://…&region=…`.

    `secret` is "key id:secret key"; without it, and for what the address leaves out, the variables
    and files that AWS's own programs read count.
    """

    def __init__(self, address: str, secret: str | None) -> None:
        try:
            import obstore
            from obstore.exceptions import AlreadyExistsError, BaseError
            from obstore.store import S3Store
        except ModuleNotFoundError as error:
            raise MissingExtra("sync", "obstore") from error
        parts = urlsplit(address)
        options: Any = dict(parse_qsl(parts.query))
        unknown = options.keys() - set(_OPTIONS)
        if not parts.netloc or unknown or parts.username is not None:
            raise InvalidInput(
                "remote",
                address,
                f"expected s3://bucket/prefix, with {', '.join(_OPTIONS)} behind a question mark",
            )
        if secret is not None:
            options["access_key_id"], _, options["secret_access_key"] = secret.partition(":")
        self._address = address.partition("?")[0]
        self._calls = obstore
        self._failed, self._exists = BaseError, AlreadyExistsError
        plain = str(options.get("endpoint", "")).startswith("http://")
        try:
            self._store = S3Store(
                parts.netloc,
                prefix=parts.path.strip("/") or None,
                client_options={"allow_http": plain, "timeout": "30s"},
                retry_config={"max_retries": 2},
                config=options,
            )
        except BaseError as error:
            raise InvalidInput("remote", address, str(error)) from error

    @property
    def name(self) -> str:
        """The address, without what is behind its question mark."""
        return self._address

    @property
    def in_order(self) -> bool:
        """As `Remote.in_order`: what was put is listed at once."""
        return True

    def check(self) -> None:
        """As `Remote.check`."""
        self.heads("ana_proj_0")

    def close(self) -> None:
        """As `Remote.close`."""

    def heads(self, project: str) -> Mapping[str, int]:
        """As `Remote.heads`."""
        numbers: dict[str, set[int]] = {}
        try:
            for page in self._calls.list(self._store, prefix=f"{project}/"):
                for listed_object in page:
                    device, _, name = (
                        str(listed_object["path"]).removeprefix(f"{project}/").partition("/")
                    )
                    number = number_in(name)
                    if NAME.fullmatch(device) and number:
                        numbers.setdefault(device, set()).add(number)
        except self._failed as error:
            raise self._remote_error(error) from error
        last_numbers = {
            device: before_gap(device_numbers) for device, device_numbers in numbers.items()
        }
        return {device: number for device, number in sorted(last_numbers.items()) if number}

    def read(self, project: str, device: str, number: int, count: int) -> Sequence[bytes]:
        """As `Remote.read`; several are asked for at once."""
        keys = [_key(project, device, index) for index in range(number, number + count)]
        if count == 1:
            bodies = [self._read_one(keys[0])]
        else:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                bodies = list(pool.map(self._read_one, keys))
        return [
            body for body in takewhile(lambda body: body is not None, bodies) if body is not None
        ]

    def _read_one(self, key: str) -> bytes | None:
        try:
            answer = self._calls.get(self._store, key)
            content, size = bytearray(), int(answer.meta["size"])
            if size <= MOST_BYTES:
                for piece in answer.stream():
                    content += bytes(piece)
                    size = max(size, len(content))
                    if size > MOST_BYTES:
                        break
            if size > MOST_BYTES:
                device, _, name = key.rpartition("/")
                device = device.rpartition("/")[2]
                raise RemoteTampered(self.name, device, number_in(name), "it is too large")
            return bytes(content)
        except FileNotFoundError:
            return None
        except self._failed as error:
            raise self._remote_error(error) from error

    def write(self, project: str, device: str, number: int, data: bytes) -> None:
        """As `Remote.write`."""
        try:
            self._calls.put(self._store, _key(project, device, number), data, mode="create")
        except self._exists as error:
            if self.read(project, device, number, 1) != [data]:
                raise Diverged(
                    self.name, f"entry {number} of this device is another one"
                ) from error
        except self._failed as error:
            raise self._remote_error(error) from error

    def drop(self, project: str, device: str, number: int, data: bytes) -> None:
        """As `Remote.drop`."""
        try:
            self._calls.put(self._store, _key(project, device, number), data)
        except self._failed as error:
            raise self._remote_error(error) from error

    def _remote_error(self, error: Exception) -> RemoteError:
        text = mask_text(" ".join(str(error).split()))
        return RemoteError(
            self.name,
            text[:300],
            lasting=any(word in type(error).__name__ for word in ("Permission", "Unauthenticated")),
        )


def _key(project: str, device: str, number: int) -> str:
    return f"{project}/{device}/{entry_name(number)}"
