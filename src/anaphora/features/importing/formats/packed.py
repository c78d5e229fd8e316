"""Files that were packed one by one (`.jsonl.zst`): unpacked while they are read, up to a size."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
from importlib.util import find_spec
from typing import BinaryIO, Final, cast

_NAME: Final = re.compile(
    r"(.+\.(?:json|jsonl|ndjson))\.(zst|zstd|gz|xz|lzma|bz2|br|lz4|snappy|7z|rar)", re.IGNORECASE
)


PACKED: Final = "it is packed as"
"""The beginning of the reason why a packed file cannot be read."""


def split_name(name: str) -> tuple[str, str]:
    """The name that a packed file had, and how it is packed ("zst"); "" if it is not."""
    match = _NAME.fullmatch(name)
    return (match[1], match[2].lower()) if match else (name, "")


def why_packed(packing: str) -> str:
    """Why a file that is packed so cannot be read here; "" if it can."""
    is_known = packing in {"gz", "xz", "lzma", "bz2", ""} or (
        packing in {"zst", "zstd"} and find_spec("zstandard") is not None
    )
    return "" if is_known else f"{PACKED} .{packing}, which is not read here: unpack it first"


class Unpacked(io.RawIOBase):
    """The contents of a packed file. Reading raises OSError beyond `room` bytes."""

    def __init__(self, raw: BinaryIO, packing: str, room: int) -> None:
        super().__init__()
        self._room = self._left = room
        # What reading raises beside OSError where the contents are damaged.
        self._damaged: type[Exception] = EOFError
        if packing == "gz":
            stream: object = gzip.GzipFile(fileobj=raw, mode="rb")
        elif packing in {"xz", "lzma"}:
            stream = lzma.LZMAFile(raw)  # noqa: SIM115 - closed with its file
            self._damaged = lzma.LZMAError
        elif packing == "bz2":
            stream = bz2.BZ2File(raw)
        else:
            import zstandard

            stream = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
            self._damaged = zstandard.ZstdError
        self._stream = cast("BinaryIO", stream)

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most `size`."""
        try:
            chunk = self._stream.read(size)
        except self._damaged as error:
            raise OSError(f"what is packed in it is damaged ({error})") from error
        self._left -= len(chunk)
        if self._left < 0:
            raise OSError(
                f"it would become more than {self._room:,} bytes; unpack it yourself if that is "
                "what you expect, and import the file"
            )
        return chunk
