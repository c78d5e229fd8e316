"""Embedders beside the bundled one: model folders and endpoints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.container.feature import Feature
from anaphora.embed.kinds import EmbedderKind
from anaphora.errors import InvalidInput

if TYPE_CHECKING:
    from anaphora.embed.base import Embedder
    from anaphora.embed.registry import EmbedderRegistry
    from anaphora.embed.service import EmbedderSpec
    from anaphora.settings import Settings

_ENDPOINTS = ("openai:", "ollama:")


def _is_path(setting: str) -> bool:
    if setting.startswith(_ENDPOINTS):
        return False
    return setting.startswith((".", "~")) or "/" in setting or "\\" in setting


def _folder_at(setting: str) -> Path:
    """The path that a setting names. Raises InvalidInput for the home of an unknown user."""
    try:
        return Path(setting).expanduser()
    except RuntimeError as error:
        raise InvalidInput("embedder", setting, "names the home of an unknown user") from error


def _find_folder(
    setting: str, _settings: Settings | None, registry: EmbedderRegistry, _anew: bool
) -> EmbedderSpec:
    from anaphora.embed.service import EmbedderSpec
    from anaphora.features.embedders.folder import FolderEmbedder, identity, read_folder

    folder = read_folder(_folder_at(setting))
    name = identity(folder, registry)
    return EmbedderSpec(name, folder.dimensions, lambda: FolderEmbedder(folder, name))


def _find_endpoint(
    setting: str, settings: Settings | None, registry: EmbedderRegistry, anew: bool
) -> EmbedderSpec:
    from anaphora.embed.service import EmbedderSpec
    from anaphora.features.embedders.endpoint import (
        OPENAI_URL,
        EndpointEmbedder,
        known_endpoint,
        parse_endpoint,
    )

    endpoint = parse_endpoint(setting)
    if endpoint is None:
        raise InvalidInput("embedder", setting, "names no endpoint")
    key = None if settings is None else settings.embedder_key
    if key is None and settings is not None and endpoint.url == OPENAI_URL:
        key = settings.openai_key
    details = known_endpoint(endpoint, key, registry, anew=anew)

    def load() -> Embedder:
        remote = EndpointEmbedder(endpoint, details, key)
        # Checked now, so that `away` is known before the first question.
        remote.look()
        return remote

    return EmbedderSpec(details.name, details.dimensions, load, remote=True)


FEATURE = Feature(
    "embedders",
    embedders=(
        EmbedderKind(
            "./a/folder", _is_path, _find_folder, lambda path: str(_folder_at(path).resolve())
        ),
        EmbedderKind(
            "openai:MODEL, ollama:MODEL",
            lambda setting: setting.startswith(_ENDPOINTS),
            _find_endpoint,
        ),
    ),
)
