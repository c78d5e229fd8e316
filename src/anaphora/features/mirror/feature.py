"""A namespace as a folder of Markdown, read and edited by other programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from anaphora.container.feature import Commands, Feature, later
from anaphora.features.mirror.calls import MirrorCalls

if TYPE_CHECKING:
    from pathlib import Path


__all__ = ["FEATURE", "MirrorCalls"]


def _list_files(root: Path, namespace: str) -> Iterable[Path]:
    from anaphora.features.mirror.ledger import ledger_path

    return (ledger_path(root, namespace),)


FEATURE = Feature(
    "mirror",
    later(f"{__package__}.services:MirrorServices"),
    values=f"{__package__}.values",
    commands=(Commands(f"{__package__}.commands:register", 120, behind={"mirror": "Devices"}),),
    events=("mirror", "mirror_stopped"),
    locks=("mirror",),
    files=_list_files,
)
