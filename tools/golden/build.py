"""What a recording takes of a build besides its public names, of every build that can be recorded.

In: a model's script, an open memory, the name of an embedder. Out: the build's own parts. Their
public names come first, then the modules that had them before there were public ones.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["embedder", "scripted_model", "server_app"]


def scripted_model(script: Callable[[Sequence[Any]], str]) -> Any:
    """A model that answers by a script."""
    model = _named(
        ("anaphora.testing", "ScriptedModel"), ("anaphora.deep.models.scripted", "ScriptedModel")
    )
    return model(script)


def server_app(memory: Any) -> Any:
    """The server over a memory, without its web page."""
    app = _named(("anaphora.testing", "server_app"), ("anaphora.surfaces.rest", "create_app"))
    if app.__name__ == "server_app":
        return app(memory, page=None)
    options = _named(("anaphora.surfaces.rest", "ServerOptions"))
    return app(memory, settings=options(page=None))


def embedder(name: str) -> Any:
    """The embedder of this name, loaded."""
    return _named(("anaphora.embed.service", "spec_for"))(name).load()


def _named(*places: tuple[str, str]) -> Any:
    """The first of these (module, name) that the build has."""
    for module, name in places:
        try:
            return getattr(importlib.import_module(module), name)
        except (ModuleNotFoundError, AttributeError):
            continue
    raise LookupError(f"this build has none of {places}")
