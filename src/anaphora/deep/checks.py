"""Whether deep recall could work here: which models are configured, which walls stand.

In: the models and the sandbox of a home. Out: `Check` values. A sandbox is started and ended (some
hundredth of a second); no model is asked, and no key is ever part of a finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.deep.sandbox import sandbox_checks
from anaphora.errors import AnaphoraError, MissingExtra
from anaphora.values.conversations import Check

if TYPE_CHECKING:
    from anaphora.deep.tools import DeepTools


def deep_checks(tools: DeepTools | None) -> tuple[Check, ...]:
    """The models by name, then the sandbox. Nothing raises: what fails is a finding."""
    return (_models(tools), *sandbox_checks())


def _models(tools: DeepTools | None) -> Check:
    try:
        models = None if tools is None else tools.models()
    except MissingExtra as error:
        return Check("models", ok=False, detail=f"configured, but not installed: {error}")
    except AnaphoraError as error:
        return Check("models", ok=False, detail=str(error))
    if models is None:
        return Check("models", ok=True, detail="none configured: deep recall gives evidence alone")
    detail = f"{models.code.name} writes the searches, {models.sub.name} reads"
    return Check("models", ok=True, detail=detail)
