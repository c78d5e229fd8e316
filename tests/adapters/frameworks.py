"""The frameworks whose adapters are tested with the real package, each apart from the others.

`python -m tools.adapters` makes the environments and runs the tests there. Where a framework is
installed anyway, as some are for developers, its tests run with all others, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework: the module that says whether it is there, the adapter, the page about it."""

    name: str
    module: str
    adapter: str
    package: str
    page: str
    environ: tuple[tuple[str, str], ...] = ()

    @property
    def folder(self) -> Path:
        """Its tests."""
        return HERE / self.name

    @property
    def requirements(self) -> Path:
        """Every version in its environment."""
        return self.folder / "requirements.txt"

    @property
    def is_installed(self) -> bool:
        """Whether it can be imported here."""
        try:
            return find_spec(self.module) is not None
        except ModuleNotFoundError:
            return False


FRAMEWORKS: Final = (
    Framework(
        "anthropic_sdk", "anthropic", "anthropic_memory", "anthropic", "anthropic-memory-tool.md"
    ),
    Framework("pydantic_ai", "pydantic_ai", "pydantic_ai", "pydantic-ai-slim", "pydantic-ai.md"),
    Framework(
        "llama_index", "llama_index.core", "llama_index", "llama-index-core", "llama-index.md"
    ),
    Framework(
        "claude_agent_sdk",
        "claude_agent_sdk",
        "claude_agent_sdk",
        "claude-agent-sdk",
        "claude-agent-sdk.md",
    ),
    Framework("google_adk", "google.adk", "google_adk", "google-adk", "google-adk.md"),
    Framework(
        "agent_framework",
        "agent_framework",
        "agent_framework",
        "agent-framework-core",
        "agent-framework.md",
        (("AGENT_FRAMEWORK_USER_AGENT_DISABLED", "true"),),
    ),
    Framework("agno", "agno", "agno", "agno", "agno.md", (("AGNO_TELEMETRY", "false"),)),
)
