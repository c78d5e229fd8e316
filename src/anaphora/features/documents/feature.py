"""Documents: files that are stored as searchable text, in versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.container.feature import CommandLine, Commands, Feature, LineKind
from anaphora.features.documents.calls import DocumentCalls
from anaphora.features.documents.remote import RemoteDocumentCalls
from anaphora.features.documents.tables import TABLES

if TYPE_CHECKING:
    from anaphora.container.feature import FeatureServices
    from anaphora.container.namespace import NamespaceServices

__all__ = ["FEATURE", "DocumentCalls", "RemoteDocumentCalls"]


def _make_services(services: NamespaceServices) -> FeatureServices:
    from anaphora.features.documents.services import DocumentServices

    return DocumentServices(services)


def _list_line_kinds() -> tuple[LineKind, ...]:
    from anaphora.features.documents.export import LINES

    return LINES


FEATURE = Feature(
    "documents",
    _make_services,
    values=f"{__package__}.values",
    tables=TABLES,
    search_kinds=("document",),
    commands=(Commands(f"{__package__}.commands:register", ("document",), 30),),
    routes=(f"{__package__}.routes:router",),
    cli=CommandLine(show=f"{__package__}.commands:show_by_id"),
    line_kinds=_list_line_kinds,
)
