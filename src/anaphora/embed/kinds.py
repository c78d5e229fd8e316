"""The kinds of embedders that features add to the bundled one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from anaphora.embed.registry import EmbedderRegistry
    from anaphora.embed.service import EmbedderSpec
    from anaphora.settings import Settings


class EmbedderKind(NamedTuple):
    """Embedders that a setting can name; `label` describes such settings in messages.

    `matches` says whether a setting names one, and `find` gives its `EmbedderSpec`, with the
    settings, the registry of the home, and whether an endpoint is asked anew. `whole` is the
    setting as a home stores it.
    """

    label: str
    matches: Callable[[str], bool]
    find: Callable[[str, Settings | None, EmbedderRegistry, bool], EmbedderSpec]
    whole: Callable[[str], str] = lambda setting: setting


KINDS: Final[list[EmbedderKind]] = []
"""The kinds of all registered features."""
