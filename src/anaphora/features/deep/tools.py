"""What all namespaces of a home share for deep recall: the models of both roles, and the sandbox.

They are opened when they are first used: without a deep question they cost nothing.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anaphora.errors import InvalidInput
from anaphora.settings import Settings
from anaphora.values.models import ModelRole

if TYPE_CHECKING:
    from anaphora.features.deep.models.remote import RemoteModel
    from anaphora.features.deep.sandbox.base import Engine


@dataclass(frozen=True, slots=True)
class Models:
    """The model that writes code and the one that reads; they may be the same."""

    code: ModelRole
    sub: ModelRole

    @property
    def names(self) -> tuple[str, ...]:
        """The names of both roles."""
        return self.code.name, self.sub.name

    @property
    def _remote(self) -> list[RemoteModel]:
        from anaphora.features.deep.models.remote import RemoteModel

        return [m for m in dict.fromkeys((self.code, self.sub)) if isinstance(m, RemoteModel)]

    def begin(self) -> None:
        """Look in the background whether their servers answer."""
        for model in self._remote:
            model.begin()

    def check(self) -> None:
        """Raise `ModelError` where a server does not answer, or refuses. Costs nothing."""
        self.begin()
        for model in self._remote:
            model.check()


class DeepTools:
    """The models and the sandbox of a home. Safe to share between threads.

    `code` and `sub` are the caller's own models; without them `settings` names the models.
    """

    def __init__(
        self,
        settings: Settings,
        code: ModelRole | None = None,
        sub: ModelRole | None = None,
        engine: Engine | None = None,
    ) -> None:
        self._settings = settings
        roles: tuple[tuple[str, object], ...] = (("model", code), ("sub_model", sub))
        for name, model in roles:
            if isinstance(model, type) or not isinstance(model, ModelRole | None):
                raise InvalidInput(name, model, "expected a model name or a ModelRole")
        self._roles = code, sub
        self._engine = engine
        self._models: Models | None = None
        self._own: list[ModelRole] = []
        self._lock = threading.Lock()

    def models(self) -> Models | None:
        """The models of both roles; None if none is configured. Raises `NoModel`."""
        with self._lock:
            if self._models is None:
                code, sub = self._roles
                if code is None or (sub is None and self._settings.sub_model is not None):
                    from anaphora.features.deep.models.remote import open_models

                    opened_models = open_models(self._settings)
                    if opened_models is not None:
                        # One of the two may be the caller's own, or both may be the same.
                        self._own = list(dict.fromkeys(opened_models))
                        code, sub = code or opened_models[0], sub or opened_models[1]
                if code is not None:
                    self._models = Models(code, sub or code)
            return self._models

    def engine(self) -> Engine:
        """The sandbox. Raises `MissingExtra`."""
        with self._lock:
            if self._engine is None:
                from anaphora.features.deep.sandbox.monty import MontyEngine

                self._engine = MontyEngine()
            return self._engine

    def close(self) -> None:
        """End the connections of the models that were opened here."""
        with self._lock:
            models, self._own = self._own, []
        for model in models:
            close_model = getattr(model, "close", None)
            if close_model is not None:
                close_model()
