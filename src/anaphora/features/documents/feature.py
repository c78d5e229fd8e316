"""Documents: files that are stored as searchable text, in versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.container.feature import CommandLine, Commands, Feature, LineKind
from anaphora.features.documents.calls import DocumentCalls
from anaphora.features.documents.tables import TABLES

if TYPE_CHECKING:
    from anaphora.container.feature import FeatureServices
    from anaphora.container.namespace import NamespaceServices

__all__ = ["FEATURE", "DocumentCalls"]


def _make_services(services: NamespaceServices) -> FeatureServices:
    from anaphora.features.documents.services import DocumentServices

    return DocumentServices(services)


def _list_line_kinds() -> tuple[LineKind, ...]:
    from anaphora.ops.transfer.documents import LINES

    return LINES


FEATURE = Feature(
    "documents",
    _make_services,
    values="anaphora.values.documents",
    tables=TABLES,
    commands=(Commands("anaphora.surfaces.cli.documents:register", ("document",), 30),),
    routes=("anaphora.surfaces.rest.documents:router",),
    cli=CommandLine(show="anaphora.surfaces.cli.documents:show_by_id"),
    line_kinds=_list_line_kinds,
)
