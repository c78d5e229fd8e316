"""The model files that ship with the package: their manifest, and proof that they are those.

A folder comes in; the manifest or a file's bytes go out. No byte of a model is used before its
SHA-256 was compared with the manifest's.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from anaphora.errors import EmbeddingError, ModelIntegrityError

MODELS = Path(__file__).parent / "models"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What `manifest.json` says: who the model is, and the SHA-256 of each of its files.

    `window` counts word pieces with the two special ones. `mean_cosine` is the average cosine to
    the original weights in 32-bit floats, as measured when the model was built.
    """

    folder: Path
    name: str
    dimensions: int
    window: int
    files: dict[str, str]
    mean_cosine: float


def read_manifest(folder: Path) -> Manifest:
    """Read a model's manifest. Raises EmbeddingError when it is missing or malformed."""
    path = folder / "manifest.json"
    try:
        raw = json.loads(path.read_bytes())
        return Manifest(
            folder=folder,
            name=str(raw["name"]),
            dimensions=int(raw["dimensions"]),
            window=int(raw["window"]),
            files={str(file): str(entry["sha256"]) for file, entry in raw["files"].items()},
            mean_cosine=float(raw["measured"]["mean_cosine"]),
        )
    except OSError as error:
        raise EmbeddingError(f"the model's manifest cannot be read: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EmbeddingError(f"{path} is not a model's manifest: {error!r}") from error


def verified(manifest: Manifest, file: str) -> bytes:
    """The bytes of one of the model's files.

    Raises ModelIntegrityError when they are not the bytes that the manifest names, and
    EmbeddingError when they cannot be read.
    """
    path = manifest.folder / file
    try:
        content = path.read_bytes()
    except OSError as error:
        raise EmbeddingError(f"the model cannot be read: {error}") from error
    found = hashlib.sha256(content).hexdigest()
    expected = manifest.files.get(file, "no hash at all")
    if found != expected:
        raise ModelIntegrityError(path, expected, found)
    return content
